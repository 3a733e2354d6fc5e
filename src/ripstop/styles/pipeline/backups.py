"""`backups/<run>/`: the products that a `modify` removed, and how they are put back.

- The files are copied first and `manifest.json` is written last, so a backup with a manifest is complete.
- A backup is `saved`, then `undoing` while its files are put back, then `undone`. Before anything is put back, what is
  in its place goes into a backup of its own (`kept`). A killed undo is completed by the next one, and loses nothing.
- The caller holds the project's lock.
"""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ripstop.engine.performers import Refused

from .data_files import CODE, Session, load
from .items import relink
from .store import BACKUPS, COWORK, CoworkFolder, as_json, now, sha_of

MANIFEST = "manifest.json"
MAX_BACKUPS = 10_000

State = Literal["saved", "undoing", "undone", "kept"]


class BackupManifest(Struct, frozen=True, kw_only=True):
    name: str
    number: int
    """Counted over all backups of a project."""
    state: State
    key: str = ""
    """Of the command that made it."""
    stage: str = ""
    at: str = ""
    products: list[str] = []
    """All paths that it is about; those that had no file are not in `files`."""
    files: dict[str, str] = {}
    """The hashes of the copies."""
    kept_code: list[str] = []
    session: dict[str, Any] = {}
    """Fields of `meta.json` as they were."""


class UndoneBackup(Struct, frozen=True):
    """What an undo did."""

    backup: str
    stage: str
    restored: list[str]
    removed: list[str]
    kept_in: str
    """The backup of what was there before."""


_SESSION: dict[str, Any] = {
    "current_stage": None,
    "restart_reason": None,
    "completed": {},
    "change": None,
    "code_at_change": None,
}
"""The fields of `meta.json` that an undo puts back, each as it is where there was none."""


def back_up_and_remove(
    folder: CoworkFolder, session: Session, run_id: str, key: str, stage: str, products: Sequence[str]
) -> BackupManifest:
    """Back products up, then remove them. With the same key it completes what was begun."""
    manifest = _of_command(folder, run_id, key)
    if manifest.state == "saved" and not manifest.at:
        manifest = replace(manifest, stage=stage, kept_code=code_paths(folder))
        manifest = _save(folder, manifest, products, session)
    for path in manifest.files:
        folder.remove(path, stage)
    return manifest


def undo(folder: CoworkFolder, session: Session) -> UndoneBackup:
    """Put back what the last `modify` removed that was not undone. Raises `Refused` if there is none."""
    manifests = list(all_backups(folder))
    wanted = next((one for one in manifests if one.state == "undoing"), None)
    wanted = wanted or next((one for one in manifests if one.state == "saved"), None)
    if wanted is None:
        raise Refused("There is no backup to put back: no stage was restarted, or all of it was undone.")
    copies = {path: _copy(folder, wanted, path) for path in wanted.files}
    kept_in = f"undo-{wanted.number}"
    if wanted.state == "saved":
        begun = next((one.number for one in manifests if one.name == kept_in), manifests[0].number + 1)
        kept = BackupManifest(name=kept_in, number=begun, state="kept", stage=wanted.stage)
        _save(folder, kept, wanted.products, session)
        wanted = _write_manifest(folder, replace(wanted, state="undoing"))
    removed = [path for path in wanted.products if path not in wanted.files and folder.read(path) is not None]
    for path in removed:
        folder.remove(path, wanted.stage)
    for path, data in copies.items():
        folder.write(path, data, wanted.stage, "undo")
    relink(folder, wanted.products)
    session.change(wanted.stage, **{name: wanted.session.get(name, none) for name, none in _SESSION.items()})
    _write_manifest(folder, replace(wanted, state="undone"))
    return UndoneBackup(wanted.name, wanted.stage, sorted(copies), removed, kept_in)


def all_backups(folder: CoworkFolder) -> list[BackupManifest]:
    """Complete backups, the latest first. Raises `Refused` for a manifest that is not valid."""
    found = [_manifest(folder, name) for name in folder.names(BACKUPS)[:MAX_BACKUPS]]
    return sorted((one for one in found if one), key=lambda one: -one.number)


# Parts


def _of_command(folder: CoworkFolder, run_id: str, key: str) -> BackupManifest:
    """The backup of a command: the one that it has made, or a new name for it."""
    plain = run_id.replace("/", "-")
    for count in range(1, MAX_BACKUPS):
        name = plain if count == 1 else f"{plain}.{count}"
        found = _manifest(folder, name)
        if found is None:
            known = all_backups(folder)
            return BackupManifest(name=name, number=known[0].number + 1 if known else 1, state="saved", key=key)
        if found.key == key:
            return found
    raise Refused(f"{COWORK}/{BACKUPS} has too many backups. Move some away.")


def _save(folder: CoworkFolder, manifest: BackupManifest, products: Sequence[str], session: Session) -> BackupManifest:
    files: dict[str, str] = {}
    for path in products:
        data = folder.read(path)
        if data is not None:
            files[path] = folder.write(f"{BACKUPS}/{manifest.name}/{path}", data, manifest.stage, "back up")
    before = {name: session.content[name] for name in _SESSION if name in session.content}
    return _write_manifest(folder, replace(manifest, at=now(), products=list(products), files=files, session=before))


def _write_manifest(folder: CoworkFolder, manifest: BackupManifest) -> BackupManifest:
    folder.write(f"{BACKUPS}/{manifest.name}/{MANIFEST}", as_json(manifest), manifest.stage, manifest.state)
    return manifest


def _manifest(folder: CoworkFolder, name: str) -> BackupManifest | None:
    """`None` for a backup that was not completed."""
    path = f"{BACKUPS}/{name}/{MANIFEST}"
    try:
        data = folder.read(path)
    except Refused as refusal:
        raise Refused(f"The backup {name!r} cannot be read: {refusal}") from refusal
    if data is None:
        return None
    try:
        return msgspec.json.decode(data, type=BackupManifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(f"{COWORK}/{path} is not valid: {error}. Move that backup away.") from error


def _copy(folder: CoworkFolder, manifest: BackupManifest, path: str) -> bytes:
    """The bytes of a copy. Raises `Refused` if it is not what was backed up."""
    data = folder.read(f"{BACKUPS}/{manifest.name}/{path}")
    if data is None or sha_of(data) != manifest.files[path]:
        what = "is not there any more" if data is None else "was changed"
        raise Refused(f"{COWORK}/{BACKUPS}/{manifest.name}/{path} {what}, so nothing is put back.")
    return data


def code_paths(folder: CoworkFolder) -> list[str]:
    """The code files that the engine knows of."""
    try:
        return [one.path for one in load(folder, CODE).entries]
    except Refused:  # it is removed with the other products, and the backup has it
        return []
