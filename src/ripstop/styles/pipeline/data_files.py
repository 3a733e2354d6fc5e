"""The JSON files of a project: decoded with bounds, checked against their types, changed in place.

A file that a person has broken is never overwritten: what wants to change it gets `Refused`, with the file, the place
inside it, and what is wrong there.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from ripstop.engine.performers import Refused
from ripstop.kernel.text_limits import DEEPEST, is_plain, shown
from ripstop.tools.shared_folder import parts_of

from .models import (
    CATEGORIES,
    PRIORITIES,
    STATUSES,
    CodeFile,
    DesignComponent,
    DevelopmentTask,
    Feature,
    FeedbackEntry,
    InvalidData,
    Requirement,
    SessionMeta,
    choice,
    convert_entry,
)
from .store import COWORK, CoworkFolder, as_json, as_text, is_of_records, now

MAX_ITEMS = 500
"""Entries that tools put into one file."""
MOST_READ = 10_000
"""Entries that are read from one."""
SCHEMA_VERSION = "1.0"
META = "session/meta.json"
_PATTERN = re.compile(r"\*|\?|\{[^{}]*,[^{}]*\}")
"""What makes a path one of many files. Brackets are in real names, such as `[id].tsx`."""


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


# Values that agents give: checked before anything is read or written. What is wrong is said in words for the agent.


MAX_TEXT = 20_000
"""Characters of one text."""
MAX_LIST = 200
"""Texts in one list."""
MAX_DEPTH = 20
"""Levels of lists and objects in one value."""
MAX_LINE = 300
"""Characters of a title or a name."""
_LINES = ("title", "name", "component_type")
_CHOICES = {"status": STATUSES, "priority": PRIORITIES, "category": CATEGORIES}
_ACTING = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029]")


def cleaned(given: Mapping[str, Any], kind: type[Struct]) -> dict[str, Any]:
    """The values as they are written: one text for a list is a list of one. Raises `Refused`."""
    values: dict[str, Any] = {}
    lists = [name for name, hint in get_type_hints(kind).items() if get_origin(hint) is list]
    for name, value in given.items():
        if name in _CHOICES:
            values[name] = chosen(value, _CHOICES[name], name)
        elif name in lists:
            values[name] = _texts(name, [value] if isinstance(value, str) else list(value))
        elif name in _LINES:
            values[name] = line(value, name)
        else:
            values[name] = text(value, name)
    return values


def chosen(value: Any, valid: tuple[str, ...], name: str) -> str:
    try:
        return choice(value, valid, name)
    except InvalidData as error:
        raise Refused(f"{error}.", "agent") from error


def line(value: str, name: str) -> str:
    """A title or name: not empty, and one line."""
    found = text(value, name).strip()
    if not found or len(found) > MAX_LINE or "\n" in found or "\r" in found:
        raise Refused(f"{name} must be one line of 1 to {MAX_LINE} characters, not {shown(value)}.", "agent")
    return found


def text(value: str, name: str, most: int = MAX_TEXT) -> str:
    if len(value) > most:
        raise Refused(f"{name} is too long: {len(value):,} characters, at most {most:,}.", "agent")
    wrong = _ACTING.search(value)
    if wrong:
        raise Refused(
            f"{name} has the control character U+{ord(wrong[0]):04X} at {wrong.start()}; leave it out.", "agent"
        )
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise Refused(f"Character {error.start} of {name} cannot be written as UTF-8.", "agent") from error
    return value


def _texts(name: str, values: list[Any]) -> list[Any]:
    if len(values) > MAX_LIST:
        raise Refused(f"{name} has {len(values):,} entries; at most {MAX_LIST} are possible.", "agent")
    for number, one in enumerate(values):
        if not is_plain(one, DEEPEST - MAX_DEPTH) or len(repr(one)) > 2 * MAX_TEXT:
            raise Refused(f"{name}[{number}] is too long or nested more than {MAX_DEPTH} levels deep.", "agent")
        _check_texts(one, f"{name}[{number}]")
    if name == "files_to_create":
        for one in values:
            _check_planned(one)
    return values


def _check_planned(named: str) -> None:
    """Check the path of a file that a task is to make: one that can be there, or nothing would ever be delivered."""
    parts = parts_of(named)
    if is_of_records(parts):
        raise Refused(
            f"files_to_create has {shown(named)}, and {COWORK} has the project's records. Name files of the product.",
            "agent",
        )
    wrong = _PATTERN.search(named)
    if not named.strip() or named.rstrip().endswith("/") or wrong:
        why = f"{wrong[0]!r} makes it a pattern" if wrong else "it names no file"
        raise Refused(f"files_to_create has {shown(named)}, and {why}. Name each file by its path.", "agent")


def _check_texts(value: Any, place: str) -> None:
    """Check every text in a value that is not too deep."""
    if isinstance(value, str):
        text(value, place)
    elif isinstance(value, list | dict):
        for one in value:
            _check_texts(one, place)
            if isinstance(value, dict):
                _check_texts(value[one], place)
