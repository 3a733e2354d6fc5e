"""What the data files of a project hold, as types. They are the schema: what does not fit is refused with its place.

Reading is liberal where the meaning is certain: a missing or null field gets its default, one text is taken for a list
of one, `InProgress` for `in_progress`, `type` for `component_type`. Fields that are not listed here are not looked at;
files are changed in place (`data_files`), so they survive.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from ripstop.kernel.text_limits import shown

STATUSES = ("pending", "in_progress", "completed", "blocked")
PRIORITIES = ("high", "medium", "low")
CATEGORIES = ("functional", "non_functional")
FEEDBACK_TYPES = ("build_error", "quality_issue", "missing_requirement", "suggestion")
SEVERITIES = ("critical", "major", "minor")
MAX_ID = 100
"""Characters."""
_ALSO = {"done": "completed", "complete": "completed", "inprogress": "in_progress", "nonfunctional": "non_functional"}
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class InvalidData(Exception):
    """A value in a data file, or one to be written there, is wrong; `place` is its path inside the file."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(f"{place}: {problem}" if place else problem)
        self.place = place


class Requirement(Struct, kw_only=True):
    id: str
    title: str
    description: str = ""
    priority: str = "medium"
    category: str = "functional"
    acceptance_criteria: list[str] = []
    related_features: list[str] = []


class Feature(Struct, kw_only=True):
    id: str
    name: str
    description: str = ""
    requirement_ids: list[str] = []
    status: str = "pending"
    assigned_to_tasks: list[str] = []
    completion_criteria: list[str] = []
    created_at: str | None = None
    completed_at: str | None = None
    metadata: dict[str, Any] = {}


class DesignComponent(Struct, kw_only=True):
    id: str
    name: str
    component_type: str = ""
    responsibilities: list[str] = []
    technology: str = ""
    interfaces: list[Any] = []
    related_features: list[str] = []


class DevelopmentTask(Struct, kw_only=True):
    id: str
    title: str
    description: str = ""
    feature_id: str = ""
    component_id: str = ""
    status: str = "pending"
    dependencies: list[str] = []
    estimated_effort: str | None = None
    files_to_create: list[str] = []
    acceptance_criteria: list[str] = []
    created_at: str | None = None
    started_at: str | None = None
    completed_at: str | None = None


class CodeFile(Struct, kw_only=True):
    path: str
    size: int = 0
    sha256: str = ""
    task_id: str | None = None


class FeedbackEntry(Struct, kw_only=True):
    id: str = ""
    stage: str = ""
    feedback_type: str = "suggestion"
    severity: str = "minor"
    details: str
    suggested_fix: str | None = None
    by: str = ""
    source: str = ""
    """`person`, `critic`, or the name of an agent."""
    at: str = ""


class CompletionMark(Struct, kw_only=True):
    """A stage is finished: its products then, with their hashes."""

    products: dict[str, str] = {}
    at: str = ""


class SessionMeta(Struct, kw_only=True):
    current_stage: str | None = None
    restart_reason: str | None = None
    run: str = ""
    runs: list[str] = []
    """All runs that have worked on it, in order."""
    flow: str = ""
    """The file of its flow, relative to the project where that is possible; `shipped:NAME` for one that is shipped, and
    empty for the first of those."""
    idea: str = ""
    stages: list[str] = []
    restartable: list[str] = []
    completed: dict[str, CompletionMark] = {}
    code_before: dict[str, str] | None = None
    """The code when the work on this delivery began: hashes by path. None: no run has looked."""
    change: str | None = None
    """What a person, or a stage that asked for a restart, wants changed: until a delivery in which it has left a trace.
    None: nothing; empty: it was not said what."""
    code_at_change: dict[str, str] | None = None
    """The code when that was asked for."""
    created_at: str = ""
    updated_at: str = ""


Entry = TypeVar("Entry", bound=Struct)

_CHOICES: Mapping[type[Struct], Mapping[str, Sequence[str]]] = {
    Requirement: {"priority": PRIORITIES, "category": CATEGORIES},
    Feature: {"status": STATUSES},
    DevelopmentTask: {"status": STATUSES},
}
_OTHER_NAMES: Mapping[type[Struct], Mapping[str, str]] = {
    DesignComponent: {"type": "component_type"},
    FeedbackEntry: {"timestamp": "at"},
}


def choice(value: Any, valid: Sequence[str], place: str) -> str:
    """The one of `valid` that is certainly meant. Raises `InvalidData`."""
    if isinstance(value, str) and len(value) <= MAX_ID:
        written = re.sub(r"[\s_-]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", value.strip())).casefold()
        for meant in (written, _ALSO.get(written.replace("_", ""), "")):
            if meant in valid:
                return meant
    raise InvalidData(place, f"is {shown(value)}; expected one of: {', '.join(valid)}")


def convert_entry(kind: type[Entry], raw: Any, place: str) -> Entry:
    """An entry of a file as its type. Raises `InvalidData`."""
    if not isinstance(raw, dict):
        raise InvalidData(place, f"is {shown(raw)}, but must be an object")
    given: dict[str, Any] = {}
    types = get_type_hints(kind)
    for key, value in raw.items():
        name = _OTHER_NAMES.get(kind, {}).get(key, key)
        if value is None or name not in types or (name != key and raw.get(name) is not None):
            continue
        if name == "component_type" and isinstance(value, dict) and len(value) == 1:
            value = next(iter(value.values()))  # noqa: PLW2901  # {"other": "cli"}
        elif get_origin(types[name]) is list and isinstance(value, str):
            value = [value]  # noqa: PLW2901
        given[name] = value
    for name, valid in _CHOICES.get(kind, {}).items():
        if name in given:
            given[name] = choice(given[name], valid, f"{place}.{name}")
    try:
        found = msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        problem, _, below = str(error).partition(" - at `$")
        raise InvalidData(place + below.rstrip("`"), problem) from error
    if "id" in given:
        check_id(given["id"], f"{place}.id")
    return found


def check_id(value: str, place: str) -> None:
    if not value.strip() or len(value) > MAX_ID or _CONTROL.search(value):
        raise InvalidData(place, f"is {shown(value)}; an id is one line of at most {MAX_ID} characters")


def folded(text: str) -> str:
    """A title as it is compared with others: case and spaces do not count."""
    return "".join(text.casefold().split())
