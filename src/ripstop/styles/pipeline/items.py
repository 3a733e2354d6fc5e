"""Entries of the data files, created, updated and deleted one at a time.

- Titles and names are unique within a file, so an entry is known by its values: a create that was killed is found again
  by them, and nothing is created twice.
- Ids in a call must exist. Requirements list their features, and features their tasks; both lists are kept here.
- Only the fields that were given change. A status changes the times that belong to it.
- What names an entry is cleaned before the entry is removed. So a delete that was killed leaves nothing that names what
  is not there, and a repeat completes it.
"""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct

from ripstop.engine.performers import Refused
from ripstop.tools.toolbox import ToolContext

from .checks import changing, dependency_cycle
from .data_files import (
    BY_PATH,
    DESIGN,
    FEATURES,
    MAX_ITEMS,
    PLAN,
    REQUIREMENTS,
    DataDocument,
    DataFile,
    cleaned,
    load,
    problems_in,
    save,
)
from .models import CompletionMark, convert_entry, folded
from .store import COWORK, CoworkFolder, now, sha_of


class ItemReference(Struct, frozen=True):
    """A field that names entries of another file, which may list the entry in turn."""

    field: str
    target: DataFile
    back: str = ""
    """The list in the target's entries."""


REFERENCES: Mapping[str, tuple[ItemReference, ...]] = {
    FEATURES.name: (ItemReference("requirement_ids", REQUIREMENTS, "related_features"),),
    DESIGN.name: (ItemReference("related_features", FEATURES),),
    PLAN.name: (
        ItemReference("feature_id", FEATURES, "assigned_to_tasks"),
        ItemReference("component_id", DESIGN),
        ItemReference("dependencies", PLAN),
    ),
}


def create(context: ToolContext, file: DataFile, given: Mapping[str, Any]) -> dict[str, Any]:
    """Add an entry. Raises `Refused` if there is one with its title."""
    values = cleaned(given, file.entry)
    with changing(context.workspace) as folder:
        document = load(folder, file)
        at = _labelled(document, values[file.label])
        if at is not None:
            if context.attempt > 1 and _has(document.entries[at], values):  # written by an attempt that then failed
                return _linked(folder, file, document.entries[at])
            raise _exists(document, at)
        if len(document.raw) >= MAX_ITEMS:
            raise Refused(f"There are {len(document.raw)} {file.noun}s; at most {MAX_ITEMS} are possible.", "agent")
        _check_references(folder, file, values)
        raw = _new_entry(file, _next_id(document), values)
        document.raw.append(raw)
        save(folder, document, by=context.agent)
        return _linked(folder, file, convert_entry(file.entry, raw, ""))


def created(context: ToolContext, file: DataFile, given: Mapping[str, Any]) -> dict[str, Any] | None:
    """What `create` returned if there is an entry with exactly these values, else nothing."""
    values = cleaned(given, file.entry)
    with changing(context.workspace) as folder:
        document = load(folder, file)
        at = _labelled(document, values[file.label])
        if at is None or not _has(document.entries[at], values):
            return None
        return _linked(folder, file, document.entries[at])


def update(context: ToolContext, file: DataFile, wanted: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Change fields of an entry: those that are not `None`. Repeating it changes nothing."""
    values = cleaned({name: value for name, value in given.items() if value is not None}, file.entry)
    if not values:
        raise Refused(f"Give at least one field to change: {', '.join(given)}.", "agent")
    with changing(context.workspace) as folder:
        document = load(folder, file)
        at = document.index(wanted)
        if at is None:
            raise _unknown(document, wanted)
        if file.label in values:
            other = _labelled(document, values[file.label])
            if other not in (None, at):
                assert other is not None
                raise _exists(document, other)
        _check_references(folder, file, values)
        entry, raw = document.entries[at], document.raw[at]
        changed = {name: value for name, value in values.items() if getattr(entry, name) != value}
        if changed:
            _change(raw, changed)
            document.entries[at] = convert_entry(file.entry, raw, "")
            _check_cycle(file, document)
            save(folder, document, by=context.agent)
        return _linked(folder, file, document.entries[at])


def delete(context: ToolContext, file: DataFile, wanted: str) -> dict[str, Any]:
    """Remove an entry, and its id wherever another entry names it. A repeat completes what was begun."""
    with changing(context.workspace) as folder:
        document = load(folder, file)
        at = document.index(wanted)
        if at is None and context.attempt == 1:
            raise _unknown(document, wanted)
        _unlink(folder, file, wanted)
        if at is not None:  # else an attempt that then failed has removed it
            document = load(folder, file)  # what names an entry can be in the same file
            del document.raw[at]
            save(folder, document, by=context.agent)
        return {"id": wanted, "deleted": True, "file": f"{COWORK}/{file.path}"}


# Parts


def _unknown(document: DataDocument, wanted: str) -> Refused:
    known = ", ".join(document.ids) or "none"
    return Refused(f"There is no {document.file.noun} {wanted[:100]!r}; there are: {known}.", "agent")


def _labelled(document: DataDocument, label: str) -> int | None:
    wanted, field = folded(label), document.file.label
    return next((at for at, entry in enumerate(document.entries) if folded(getattr(entry, field)) == wanted), None)


def _has(entry: Any, values: Mapping[str, Any]) -> bool:
    return all(getattr(entry, name) == value for name, value in values.items())


def _exists(document: DataDocument, at: int) -> Refused:
    file, entry = document.file, document.entries[at]
    return Refused(
        f"{entry.id} is a {file.noun} with the {file.label} {getattr(entry, file.label)!r} already. "
        f"Change it with update_{file.noun}, or give another {file.label}.",
        "agent",
    )


def _next_id(document: DataDocument) -> str:
    prefix = document.file.prefix
    numbers = [int(found[1]) for one in document.ids if (found := re.fullmatch(rf"{prefix}-(\d{{1,9}})", one))]
    return f"{prefix}-{max(numbers, default=0) + 1:03}"


def _new_entry(file: DataFile, entry_id: str, values: Mapping[str, Any]) -> dict[str, Any]:
    raw = {"id": entry_id, **values}
    if "created_at" in file.entry.__struct_fields__:
        raw["created_at"] = now()
    found: dict[str, Any] = msgspec.to_builtins(convert_entry(file.entry, raw, ""))
    return found


def _change(raw: dict[str, Any], changed: Mapping[str, Any]) -> None:
    for name, value in changed.items():
        raw["type" if name == "component_type" and "type" in raw and name not in raw else name] = value
    status = changed.get("status")
    if status is None:
        return
    if status == "in_progress" and "started_at" in raw and not raw["started_at"]:
        raw["started_at"] = now()
    if status == "completed" or raw.get("completed_at"):
        raw["completed_at"] = now() if status == "completed" else None


def _check_references(folder: CoworkFolder, file: DataFile, values: Mapping[str, Any]) -> None:
    for reference in REFERENCES.get(file.name, ()):
        named = _named(values.get(reference.field))
        if reference.field in values and (named or reference.back):
            known = load(folder, reference.target).ids
            wrong = [one for one in named if one not in known]
            if wrong:
                valid = ", ".join(known) or f"none; create a {reference.target.noun} first"
                raise Refused(
                    f"{reference.field}: there is no {reference.target.noun} {wrong[0][:100]!r}; there are: {valid}.",
                    "agent",
                )


def _check_cycle(file: DataFile, document: DataDocument) -> None:
    cycle = dependency_cycle(document.entries) if file is PLAN else []
    if cycle:
        raise Refused(f"These dependencies would be a cycle: {' → '.join(cycle)}.", "agent")


def _linked(folder: CoworkFolder, file: DataFile, entry: Any) -> dict[str, Any]:
    """See to it that the entries that it names list it, and no others. Returns it as a tool does."""
    for reference in REFERENCES.get(file.name, ()):
        if not reference.back:
            continue
        target = load(folder, reference.target)
        named, is_changed = _named(getattr(entry, reference.field)), False
        for one, raw in zip(target.entries, target.raw, strict=True):
            listed = getattr(one, reference.back)
            if (entry.id in listed) != (one.id in named):
                raw[reference.back] = [*(other for other in listed if other != entry.id)]
                if one.id in named:
                    raw[reference.back].append(entry.id)
                is_changed = True
        if is_changed:
            save(folder, target)
    told = {"id": entry.id, file.label: getattr(entry, file.label), "file": f"{COWORK}/{file.path}"}
    return {**told, "status": entry.status} if hasattr(entry, "status") else told


def _unlink(folder: CoworkFolder, file: DataFile, removed: str) -> None:
    """Take an id out of every entry that names it. Raises `Refused`, before anything is changed."""
    for document, fields in [(load(folder, owner), fields) for owner, fields in _fields_naming(file)]:
        is_changed = False
        for entry, raw in zip(document.entries, document.raw, strict=True):
            for field in fields:
                value = getattr(entry, field)
                if removed in _named(value):
                    raw[field] = "" if isinstance(value, str) else [one for one in value if one != removed]
                    is_changed = True
        if is_changed:
            save(folder, document)


def _fields_naming(file: DataFile) -> list[tuple[DataFile, list[str]]]:
    """The fields of each file whose values are ids of entries of this one."""
    found: dict[str, list[str]] = {}
    for owner, references in REFERENCES.items():
        for reference in references:
            if reference.target is file:
                found.setdefault(owner, []).append(reference.field)
            if owner == file.name and reference.back:
                found.setdefault(reference.target.name, []).append(reference.back)
    return [(one, found[one.name]) for one in BY_PATH.values() if one.name in found]


def relink(folder: CoworkFolder, paths: Iterable[str]) -> None:
    """Let entries that list those that name them list what is there, after files were removed or put back.

    What cannot be read stays as it is: the stage that works with it says so.
    """
    for file in (BY_PATH[path] for path in paths if path in BY_PATH):
        for reference in REFERENCES.get(file.name, ()):
            if reference.back:
                with suppress(Refused):
                    _relink(folder, file, reference)


def _relink(folder: CoworkFolder, file: DataFile, reference: ItemReference) -> None:
    target = load(folder, reference.target)
    naming = {entry.id: _named(getattr(entry, reference.field)) for entry in load(folder, file).entries}
    is_changed = False
    for one, raw in zip(target.entries, target.raw, strict=True):
        listed = getattr(one, reference.back)
        there = [other for other in listed if other in naming]
        wanted = [*there, *(other for other, named in naming.items() if one.id in named and other not in there)]
        if reference.back in raw and wanted != listed:
            raw[reference.back] = wanted
            is_changed = True
    if is_changed:
        save(folder, target)


def _named(value: Any) -> list[str]:
    return [] if not value else [value] if isinstance(value, str) else list(value)


# Which stages of a project are finished, as `session/meta.json` says, and whether their products are still there.


class MarkState(Struct, frozen=True):
    missing: list[str] = []
    """Products that are not there, or not valid any more."""
    changed: list[str] = []
    """Products that were changed since, but not by an agent's tools."""


def mark_state(folder: CoworkFolder, mark: CompletionMark, logged: dict[str, set[str]]) -> MarkState:
    """Args:
    logged: The hashes that the engine has written, by path: tasks get another status long after the plan is finished.
    """
    missing, changed = [], []
    for path, sha in mark.products.items():
        state = _state(folder, path, sha, logged.get(path, set()))
        if state == "changed":
            changed.append(f"{COWORK}/{path}")
        elif state:
            missing.append(state)
    return MarkState(missing, changed)


def _state(folder: CoworkFolder, path: str, sha: str, logged: set[str]) -> str:
    """Empty, `changed`, or why the product does not count."""
    try:
        data = folder.read(path)
    except Refused as refusal:
        return str(refusal)
    if data is None:
        return f"There is no {COWORK}/{path}."
    now_sha = sha_of(data)
    if now_sha == sha:
        return ""
    if path in BY_PATH and (problems := problems_in(BY_PATH[path], data)):
        return problems[0]
    return "" if now_sha in logged else "changed"


def new_mark(folder: CoworkFolder, products: tuple[str, ...]) -> CompletionMark:
    """A mark for those products that are there."""
    found = {path: folder.sha(path) for path in products}
    return CompletionMark(products={path: sha for path, sha in found.items() if sha}, at=now())
