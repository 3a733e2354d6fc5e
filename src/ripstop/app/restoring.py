"""A journal that was put back from a copy, or lies in another place: its runs are held, and their folders mapped.

What happened after the copy was made is not on record. So every run that had not ended then is told so, before anything
of it is performed, and a person says what became of it (`kernel.restoring`).
"""

import os
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from ripstop.engine.engine import Engine
from ripstop.engine.ports import JournalIdentity, RunInfo, RunQuery
from ripstop.engine.soundness import UNUSABLE
from ripstop.journals.sqlite.file import beside
from ripstop.journals.sqlite.journal import backup
from ripstop.journals.sqlite.liveness import Liveness
from ripstop.kernel.errors import RunHasEnded, UsageError
from ripstop.kernel.events import OUTCOMES, Restored, RunSettings
from ripstop.kernel.registry import QUESTION_STYLE
from ripstop.security.consent import OF_DOCUMENTS, WORKSPACES, TrustedFolders
from ripstop.security.files import OURS, make_folder
from ripstop.security.known_journals import new_id

from .relocation import untrusted_folder
from .resume import all_runs, document_folders

SCRIPT = "script:"
MICROS = 1_000_000
MARK = 12
"""Characters of the random mark of keys."""


async def unfinished_runs(engine: Engine) -> list[RunInfo]:
    """Every run that has not ended, the oldest first; questions of a call go with their call."""
    found = await all_runs(engine, RunQuery())
    return [info for info in reversed(found) if info.status not in OUTCOMES and info.style != QUESTION_STYLE]


async def hold_runs(engine: Engine, identity: JournalIdentity, why: str) -> int:
    """Hold every run that has not ended until a person says what became of it; returns how many there are.

    Those that have ended and can be resumed are told, too. Repeating it for the same copy changes nothing.
    """
    mark = new_id()[:MARK]
    day = f"{datetime.fromtimestamp(identity.copied / MICROS, UTC):%Y-%m-%d %H:%M} UTC"
    runs = [info for info in reversed(await all_runs(engine, RunQuery())) if info.style != QUESTION_STYLE]
    for info in runs:
        begun = await engine.journal.begun(info.run_id)
        copy = f"{identity.id}@{identity.copied}"
        told = Restored(copy=copy, evidence=f"{why} ({day})", begun=begun, mark=mark)
        try:
            await engine.tell_fact(info.run_id, told)
        except UNUSABLE:
            if info.status not in OUTCOMES:
                raise  # else nobody can resume it
    return sum(info.status not in OUTCOMES for info in runs)


# Folders


Folders = Mapping[Path, Path]
"""Where folders are now, by where they were; both absolute."""


def read_map(pairs: Iterable[str]) -> dict[Path, Path]:
    """`OLD=NEW` options. Raises `UsageError`."""
    found: dict[Path, Path] = {}
    for pair in pairs:
        old, equals, new = pair.partition("=")
        if not (equals and old and new and os.path.isabs(old)):
            raise UsageError(f"{pair!r} is not OLD=NEW. OLD is the absolute path of a folder as the runs know it.")
        found[Path(os.path.normpath(old))] = Path(os.path.abspath(new))
    return found


def mapped(path: str, folders: Folders) -> str:
    """A path as it is now: the longest folder that it is in counts."""
    where = Path(path)
    for old in sorted(folders, key=lambda one: len(one.parts), reverse=True):
        if path and where.is_relative_to(old):
            return str(folders[old] / where.relative_to(old))
    return path


def with_folders_mapped(settings: RunSettings, folders: Folders, documents: Iterable[str]) -> RunSettings:
    """Settings with every folder as it is now. `documents`: the folders that the run's definitions name."""

    def model(spec: str) -> str:
        return f"{SCRIPT}{mapped(spec[len(SCRIPT) :], folders)}" if spec.startswith(SCRIPT) else spec

    return replace(
        settings,
        workspace=mapped(settings.workspace, folders),
        folder=mapped(settings.folder, folders),
        read_only=tuple(mapped(one, folders) for one in settings.read_only),
        model=model(settings.model),
        model_for_all=model(settings.model_for_all),
        moved=tuple(
            (named, now)
            for named in dict.fromkeys(documents)
            if (now := mapped(settings.where(named), folders)) != named
        ),
    )


class UnmappedFolders(UsageError):
    """Raised before a journal is put in place whose runs use folders that its user has not named here."""

    def __init__(self, folders: Mapping[Path, int]) -> None:
        self.folders = dict(folders)
        named = ", ".join(f"{folder} ({number})" for folder, number in folders.items())
        first = next(iter(folders))
        super().__init__(
            f"Runs that have not ended put their files into folders that you have not named here: {named}. Say where "
            f"each is now: --map {first}=NEW, or --map {first}={first} if it is still there. Nothing was changed."
        )


async def check_mapped(engine: Engine, trusted: TrustedFolders, folders: Folders) -> None:
    """Raise `UnmappedFolders` unless every folder of a run that has not ended is mapped, or can be used as it is."""
    found: dict[Path, int] = {}
    for info in await unfinished_runs(engine):
        run = (await engine.look(info.run_id)).run
        documents = [run.settings.where(named) for named in await document_folders(engine, run)]
        uses = [RunSettings(workspace=run.settings.workspace), RunSettings(folder=run.settings.folder)]
        for settings in (*uses, *(RunSettings(folder=one) for one in documents)):
            was = settings.workspace or settings.folder
            if not _is_in(was, folders) and untrusted_folder(settings, trusted):
                where = _project_of(Path(was))
                found[where] = found.get(where, 0) + 1
    if found:
        raise UnmappedFolders(found)


def _is_in(folder: str, folders: Folders) -> bool:
    """Whether the user has said where a folder is now."""
    return bool(folder) and any(Path(folder).is_relative_to(old) for old in folders)


async def map_folders(engine: Engine, trusted: TrustedFolders, folders: Folders) -> int:
    """Have every run use its folders where they are now: the user has named them. Returns how many runs changed."""
    changed = 0
    for info in await all_runs(engine, RunQuery()):
        run = (await engine.look(info.run_id)).run
        documents = await document_folders(engine, run)
        settings = with_folders_mapped(run.settings, folders, documents)
        used = [run.settings.workspace, run.settings.folder, *(run.settings.where(named) for named in documents)]
        for was in used:
            if not run.ended and _is_in(was, folders):
                trusted.remember(Path(mapped(was, folders)))
        if settings != run.settings:
            try:
                await engine.change_settings(info.run_id, settings)
                changed += 1
            except RunHasEnded:
                continue  # for good: it uses no folder any more
    return changed


def _project_of(folder: Path) -> Path:
    """The folder of the project that a workspace belongs to, which is what moves."""
    if folder.parent.name == WORKSPACES and folder.parent.parent.name == OURS:
        return folder.parent.parent.parent
    return folder.parent if folder.name == OF_DOCUMENTS else folder


def moved_folders(old_journal: str, journal: Path) -> dict[Path, Path]:
    """Where the project of a journal that was moved is now, if it was moved with it."""
    old, new = Path(old_journal), journal.resolve()
    if old.parent.name != OURS or new.parent.name != OURS:
        return {}
    return {old.parent.parent: new.parent.parent}


# Putting a copy in place


def put_in_place(copy: Path, journal: Path, now: int) -> Path | None:
    """Put a copy where the journal is, or was. Returns where the one that was there is kept, if there was one.

    Raises `UsageError` while somebody works on the journal that is there, and `JournalError` if the copy is none.
    """
    if not copy.exists():
        raise UsageError(f"There is no file {copy}.")
    make_folder(journal.parent)
    waiting = journal.with_name(f"{journal.name}.restored")
    waiting.unlink(missing_ok=True)
    backup(copy, waiting, now)
    was_there, kept = os.path.lexists(journal), _free_name(journal)
    if was_there:
        _check_idle(journal)
    # also what is left of a journal that is gone: SQLite would take it for a part of the new one
    for part, new in zip((*beside(journal), journal), (*beside(kept), kept), strict=True):
        if os.path.lexists(part):
            part.rename(new)
    waiting.rename(journal)
    return kept if was_there else None


def _check_idle(journal: Path) -> None:
    liveness = Liveness(journal)
    try:
        if any(not liveness.gone(worker) for worker in liveness.marks()):
            raise UsageError(f"A worker is at work on {journal}. Stop it first. Nothing was changed.")
    finally:
        liveness.close()


def _free_name(journal: Path) -> Path:
    number = 1
    while True:
        found = journal.with_name(f"{journal.name}.replaced-{number}")
        if not any(os.path.lexists(part) for part in (found, *beside(found))):
            return found
        number += 1
