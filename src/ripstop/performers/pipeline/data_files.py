"""The JSON files of a project: decoded with bounds, checked against their types, changed in place.

A file that a person has broken is never overwritten: what wants to change it gets `Refused`, with the file, the place
inside it, and what is wrong there.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from ripstop.kernel.plain import is_plain, shown
from ripstop.runtime.performers import Refused

from .models import (
    CodeFile,
    DesignComponent,
    DevelopmentTask,
    Feature,
    FeedbackEntry,
    InvalidData,
    Requirement,
    SessionMeta,
    convert_entry,
)
from .store import COWORK, CoworkFolder, as_json, as_text, now

MAX_ITEMS = 500
"""Entries that tools put into one file."""
MOST_READ = 10_000
"""Entries that are read from one."""
SCHEMA_VERSION = "1.0"
META = "session/meta.json"


class DataFile(Struct, frozen=True, kw_only=True):
    """A kind of file that has a list of entries in it."""

    name: str
    """As `check_data_format` calls it."""
    path: str
    keys: tuple[str, ...]
    """Where the list is."""
    entry: type[Struct]
    prefix: str = ""
    """Of the ids."""
    label: str = ""
    """The field that is unique, apart from the id."""
    noun: str = ""


REQUIREMENTS = DataFile(
    name="requirements",
    path="data/requirements.json",
    keys=("requirements",),
    entry=Requirement,
    prefix="REQ",
    label="title",
    noun="requirement",
)
FEATURES = DataFile(
    name="features",
    path="data/feature_list.json",
    keys=("features",),
    entry=Feature,
    prefix="FEAT",
    label="name",
    noun="feature",
)
DESIGN = DataFile(
    name="design",
    path="data/design_spec.json",
    keys=("architecture", "components"),
    entry=DesignComponent,
    prefix="COMP",
    label="name",
    noun="component",
)
PLAN = DataFile(
    name="plan",
    path="data/implementation_plan.json",
    keys=("tasks",),
    entry=DevelopmentTask,
    prefix="TASK",
    label="title",
    noun="task",
)
CODE = DataFile(name="code", path="data/code_metadata.json", keys=("files",), entry=CodeFile)
FEEDBACK = DataFile(name="feedback", path="session/feedback_history.json", keys=("feedbacks",), entry=FeedbackEntry)
DATA_FILES = (REQUIREMENTS, FEATURES, DESIGN, PLAN, CODE)
ALL_FILES = (*DATA_FILES, FEEDBACK)
BY_PATH = {file.path: file for file in ALL_FILES}


class DataDocument:
    """A file's content as it is, with its list of entries; `entries[i]` is the type of `raw[i]`."""

    def __init__(self, file: DataFile, content: dict[str, Any], is_there: bool) -> None:
        """Raises `InvalidData`."""
        self.file = file
        self.content = content
        self.is_there = is_there
        self.raw = _list_in(file, content)
        self.entries: list[Any] = []
        known: dict[str, str] = {}
        for index, one in enumerate(self.raw):
            place = f"{'.'.join(file.keys)}[{index}]"
            entry: Any = convert_entry(file.entry, one, place)
            self.entries.append(entry)
            if file.prefix:
                if entry.id in known:
                    raise InvalidData(f"{place}.id", f"is {entry.id!r}, which {known[entry.id]} has already")
                known[entry.id] = place

    @property
    def ids(self) -> list[str]:
        return [entry.id for entry in self.entries]

    def index(self, wanted: str) -> int | None:
        return next((at for at, entry in enumerate(self.entries) if entry.id == wanted), None)


def decode(path: str, data: bytes) -> Any:
    """The value in a JSON file. Raises `InvalidData` and `Refused`."""
    try:
        value = msgspec.json.decode(as_text(path, data))
    except (msgspec.DecodeError, RecursionError) as error:
        reason = str(error) if isinstance(error, msgspec.DecodeError) else "it is nested too deeply"
        raise InvalidData("", f"it is not JSON: {reason}") from error
    if not is_plain(value):
        raise InvalidData("", "it is nested too deeply, or has a number that is too large")
    return value


def document_of(file: DataFile, data: bytes | None) -> DataDocument:
    """A file's bytes, or none, as a document. Raises `InvalidData` and `Refused`."""
    if data is None:
        return DataDocument(file, new_content(file), is_there=False)
    value = decode(file.path, data)
    if not isinstance(value, dict):
        raise InvalidData("", f"it is {shown(value)}, but must be an object with {file.keys[0]!r} in it")
    return DataDocument(file, value, is_there=True)


def load(folder: CoworkFolder, file: DataFile) -> DataDocument:
    """A file as it is on disk now. Raises `Refused`, with its place, if it is not valid."""
    try:
        return document_of(file, folder.read(file.path))
    except InvalidData as error:
        raise invalid(file.path, error) from error


def save(folder: CoworkFolder, document: DataDocument, stage: str = "", by: str = "") -> str:
    """Write a document that was changed in place. Returns the file's hash."""
    assert is_plain(document.content), "what is written must be read back"
    if "updated_at" in document.content:
        document.content["updated_at"] = now()
    return folder.write(document.file.path, as_json(document.content), stage, f"write by {by}" if by else "write")


def problems_in(file: DataFile, data: bytes | None) -> list[str]:
    """What is wrong with a file's bytes; nothing if it is not there."""
    try:
        document_of(file, data)
    except (InvalidData, Refused) as error:
        text = str(error)
        return [text if text.startswith(COWORK) else f"{COWORK}/{file.path}: {text}"]
    return []


def new_content(file: DataFile) -> dict[str, Any]:
    at = now()
    content: dict[str, Any] = {"schema_version": SCHEMA_VERSION}
    if file is DESIGN:
        content["architecture"] = {"components": []}
    else:
        content[file.keys[0]] = []
    return {**content, "created_at": at, "updated_at": at}


def invalid(path: str, error: InvalidData) -> Refused:
    where = f"{COWORK}/{path}" + (f", at {error.place}" if error.place else "")
    problem = str(error).removeprefix(f"{error.place}: ")
    return Refused(f"{where}: {problem}. The file was not changed; mend it, or put back a valid one.", "agent")


def _list_in(file: DataFile, content: dict[str, Any]) -> list[Any]:
    found: Any = content
    for depth, key in enumerate(file.keys):
        place = ".".join(file.keys[: depth + 1])
        if key not in found or found[key] is None:
            raise InvalidData("", f"it has no {place!r}")
        found = found[key]
        wanted = list if depth == len(file.keys) - 1 else dict
        if not isinstance(found, wanted):
            what = "a list" if wanted is list else "an object"
            raise InvalidData(place, f"is {shown(found)}, but must be {what}")
    if len(found) > MOST_READ:
        raise InvalidData(".".join(file.keys), f"has {len(found):,} entries; at most {MOST_READ:,} are read")
    entries: list[Any] = found
    return entries


# The session


class Session:
    """`session/meta.json` as it is, and as its type. Missing: an empty one."""

    def __init__(self, folder: CoworkFolder) -> None:
        """Raises `Refused`."""
        data = folder.read(META)
        self.is_there = data is not None
        self._folder = folder
        try:
            value = {} if data is None else decode(META, data)
            self.meta = convert_entry(SessionMeta, value, "meta")
        except InvalidData as error:
            raise invalid(META, error) from error
        self.content: dict[str, Any] = value

    def change(self, stage: str = "", **fields: Any) -> None:
        """Set fields, and write the file if that changes it."""
        plain = {name: msgspec.to_builtins(value) for name, value in fields.items()}
        if self.is_there and all(name in self.content and self.content[name] == plain[name] for name in plain):
            return
        at = now()
        self.content = {**self.content, **plain, "created_at": self.content.get("created_at") or at, "updated_at": at}
        self._folder.write(META, as_json(self.content), stage)
        self.meta = convert_entry(SessionMeta, self.content, "meta")
        self.is_there = True


def entries_of(folder: CoworkFolder, *files: DataFile) -> Sequence[list[Any]]:
    """The entries of several files. Raises `Refused`."""
    return [load(folder, file).entries for file in files]
