"""Reading `pipeline.yaml` into a `Pipeline`: all problems at once, each with its position.

The agent of a stage has the stage's name unless it has its own, and the critic has that name with `_critic`.
`stage_order` checks whether the stages fit one another.
"""

import re
from functools import cache
from importlib.resources import files as resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from ripstop.definitions.example_files import scenario_files, scenarios_in, write_files
from ripstop.definitions.loading import inside, read_inside
from ripstop.definitions.options import OptionReader, fields_of
from ripstop.definitions.problems import Position, Problem, WrongDefinition, in_order
from ripstop.definitions.references import Reference
from ripstop.definitions.yaml_tree import Value, YamlEntry, parse, read_text, set_fields, tree_of
from ripstop.kernel.errors import UsageError

from .definition import MAX_RETURNS, MAX_REVIEWS, Critic, Pipeline, PipelineStage
from .schema import (
    CRITIC,
    KINDS,
    LONGEST_INSTRUCTIONS,
    LONGEST_NAME,
    LONGEST_PATH,
    LONGEST_TITLE,
    MOST_ITERATIONS,
    MOST_PATHS,
    MOST_RETURNS,
    MOST_REVIEWS,
    MOST_STAGES,
    MOST_TOOLS,
    NAME,
    PIPELINE,
    SLOWEST,
    STAGE,
)
from .stage_order import StageRead, check_stages

FILE = "pipeline.yaml"
OURS = ("session", "logs", "backups")
"""Folders below `.cowork` that only the engine writes to."""
REPORTER = "provide_feedback"
"""The tool that a critic reports with."""


class PipelineRead(Struct, frozen=True):
    pipeline: Pipeline
    references: tuple[Reference, ...]
    warnings: tuple[Problem, ...]


def read_pipeline(path: Path) -> PipelineRead:
    """The pipeline in a YAML file. Raises `WrongDefinition` with everything that is wrong, warnings included."""
    tree, problems = parse(read_text(path, str(path)), str(path))
    return read_tree(tree, PipelineReader(problems, path.parent))


def read_tree(tree: Value, reader: "PipelineReader") -> PipelineRead:
    """The pipeline that a tree is. Raises `WrongDefinition`."""
    pipeline = reader.pipeline(tree)
    if reader.problems:
        raise WrongDefinition(in_order([*reader.problems, *reader.warnings]))
    return PipelineRead(pipeline, tuple(reader.references), tuple(in_order(reader.warnings)))


class PipelineReader(OptionReader):
    def __init__(self, problems: list[Problem], folder: Path | None) -> None:
        """`folder`: where files with instructions are; none if there cannot be any."""
        super().__init__(problems)
        self._folder = folder
        self.references: list[Reference] = []

    def pipeline(self, tree: Value) -> Pipeline:
        top = self.mapping(tree, "a pipeline", fields_of(PIPELINE))
        if not isinstance(tree.value, dict):
            return Pipeline(name="", stages=())
        items = self.items(top.get("stages"), "'stages'")
        if not items and ("stages" not in top or top["stages"].value.value in (None, [])):
            place = top["stages"].value.place if "stages" in top else tree.place
            self.problem(place, "the pipeline has no stages", "add `stages:` with a list")
        if len(items) > MOST_STAGES:
            text = f"there are {len(items)} stages; at most {MOST_STAGES} can be"
            self.problem(items[MOST_STAGES].place, text, "let a stage run a `workflow`")
        stages = [self.stage(item) for item in items[:MOST_STAGES]]
        check_stages(self, [one for one in stages if one is not None])
        return Pipeline(
            name=self._name(top, tree, "the pipeline"),
            stages=tuple(one.stage for one in stages if one is not None),
            description=self.field(top, "description", str, ""),
            rate_limit=self._rate_limit(top),
            max_reviews=self.whole(top, "max_reviews", MAX_REVIEWS, 1, MOST_REVIEWS),
            auto_goto=self.field(top, "auto_goto", bool, False),
            max_returns=self.whole(top, "max_returns", MAX_RETURNS, 0, MOST_RETURNS),
            guards=self.guards(top.get("guards")),
        )

    def stage(self, item: Value) -> StageRead | None:
        fields = self.mapping(item, "a stage", fields_of(STAGE))
        if not isinstance(item.value, dict):
            return None
        name = self._name(fields, item, "the stage")
        kind: Any = self.one_of(fields, "kind", KINDS, "work")
        workflow = self._reference(fields, "workflow")
        draft = self._path(fields["draft"].value, "draft") if is_set(fields, "draft") else ""
        inputs, outputs = self._paths(fields, "inputs"), self._paths(fields, "outputs")
        stage = PipelineStage(
            name=name,
            title=self._title(fields),
            kind=kind if kind in KINDS else "work",
            agent="" if workflow and not draft else self._agent(fields, name),
            instructions=self._instructions(fields),
            model=self._reference(fields, "model"),
            inputs=tuple(one.value for one in inputs),
            draft=draft,
            draft_tools=self._tools(fields, "draft_tools"),
            review=self.field(fields, "review", bool, False),
            outputs=tuple(one.value for one in outputs),
            tools=self._tools(fields, "tools"),
            critic=self._critic(fields.get("critic"), name),
            max_iterations=self.whole(fields, "max_iterations", 1, 1, MOST_ITERATIONS),
            workflow=workflow,
            writes_code=self.field(fields, "writes_code", bool, False),
        )
        return StageRead(stage, item.place, fields, tuple(inputs), tuple(outputs))

    def _critic(self, entry: YamlEntry | None, stage: str) -> Critic | None:
        if entry is None or entry.value.value is None:
            return None
        fields = self.mapping(entry.value, "a critic", fields_of(CRITIC))
        if not isinstance(entry.value.value, dict):
            return None
        instructions = self._instructions(fields)
        if not instructions.strip() and not _is_broken(fields, "instructions", "instructions_file"):
            self.problem(entry.key, "the critic has no instructions", "say what it has to check")
        tools = self._tools(fields, "tools")
        if REPORTER not in tools:
            text = f"the critic cannot report what it finds: it has no tool {REPORTER!r}"
            self.warn(fields["tools"].key if "tools" in fields else entry.key, text, "add it to its `tools`")
        agent = self._agent(fields, f"{stage}_critic")
        return Critic(agent, instructions, self._reference(fields, "model"), tools)

    # Fields

    def _name(self, fields: dict[str, YamlEntry], owner: Value, what: str) -> str:
        name = self.required(fields, "name", owner, what)
        if name.strip():
            self._check_name(fields["name"].value.place, name, f"the name of {what}")
        return name

    def _agent(self, fields: dict[str, YamlEntry], default: str) -> str:
        if not is_set(fields, "agent"):
            return default
        name = self.field(fields, "agent", str, default)
        if name is not default:
            self._check_name(fields["agent"].value.place, name, "the name of an agent")
        return name

    def _check_name(self, place: Position, name: str, what: str) -> None:
        if not re.fullmatch(NAME, name) or name.endswith("\n"):
            hint = f"use letters, digits, - and _, begin with a letter, and use at most {LONGEST_NAME}"
            self.problem(place, f"{name[:LONGEST_NAME]!r} cannot be {what}", hint)

    def _title(self, fields: dict[str, YamlEntry]) -> str:
        title = self.field(fields, "title", str, "")
        if len(title) > LONGEST_TITLE or not title.isprintable():
            self.problem(fields["title"].value.place, f"'title' must be one line of at most {LONGEST_TITLE} characters")
        return title

    def _rate_limit(self, top: dict[str, YamlEntry]) -> float | None:
        if not is_set(top, "rate_limit"):
            return None
        seconds = self.field(top, "rate_limit", float, 0.0)
        if not 0 <= seconds <= SLOWEST:
            text = f"'rate_limit' must be from 0 to {SLOWEST} seconds, but this is {seconds:g}"
            self.problem(top["rate_limit"].value.place, text)
        return seconds

    def _reference(self, fields: dict[str, YamlEntry], key: Literal["model", "workflow"]) -> str:
        """The name of a model or a workflow."""
        name = self.field(fields, key, str, "").strip()
        if name:
            self.references.append(Reference(key, name, fields[key].value.place))
        return name

    def _tools(self, fields: dict[str, YamlEntry], key: str) -> tuple[str, ...]:
        found: list[str] = []
        items = self.items(fields.get(key), repr(key))
        if len(items) > MOST_TOOLS:
            self.problem(items[MOST_TOOLS].place, f"{key!r} has {len(items)} tools; at most {MOST_TOOLS} can be")
        for item in items[:MOST_TOOLS]:
            if not isinstance(item.value, str) or not item.value.strip():
                self.problem(item.place, f"a tool must be a name, but this is {item.kind}")
            elif item.value in found:
                self.problem(item.place, f"the tool {item.value!r} is listed twice", "keep one")
            else:
                found.append(item.value)
                self.references.append(Reference("tool", item.value, item.place))
        return tuple(found)

    # Paths

    def _paths(self, fields: dict[str, YamlEntry], key: str) -> list[Value]:
        """The paths of a list that could be used."""
        items = self.items(fields.get(key), repr(key))
        if len(items) > MOST_PATHS:
            self.problem(items[MOST_PATHS].place, f"{key!r} has {len(items)} paths; at most {MOST_PATHS} can be")
        found: dict[str, Value] = {}
        for item in items[:MOST_PATHS]:
            path = self._path(item, key)
            if path and path in found:
                self.problem(item.place, f"{path!r} is in {key!r} twice", "keep one")
            elif path:
                found[path] = item
        return list(found.values())

    def _path(self, value: Value, key: str) -> str:
        """A path below `.cowork`; empty if it is not one."""
        if not isinstance(value.value, str):
            self.problem(value.place, f"{key!r} must hold a path, but this is {value.kind}")
            return ""
        path: str = value.value
        why = _wrong_path(path)
        if why:
            hint = "write it relative to .cowork, such as artifacts/notes.md or data/notes.json"
            self.problem(value.place, f"{path[:LONGEST_PATH]!r} cannot be in {key!r}: {why}", hint)
        return "" if why else path

    # Instructions

    def _instructions(self, fields: dict[str, YamlEntry]) -> str:
        text = self.field(fields, "instructions", str, "")
        place = fields["instructions"].value.place if "instructions" in fields else None
        if is_set(fields, "instructions_file"):
            entry = fields["instructions_file"]
            place = entry.value.place
            if text:
                self.problem(entry.key, "there are both 'instructions' and 'instructions_file'", "keep one of them")
            else:
                text = self._instructions_in(entry.value)
        if place and len(text) > LONGEST_INSTRUCTIONS:
            self.problem(place, f"the instructions have {len(text)} characters; at most {LONGEST_INSTRUCTIONS} can be")
        return text

    def _instructions_in(self, value: Value) -> str:
        if not isinstance(value.value, str) or not inside(value.value):
            text = f"'instructions_file' must be a path in the folder of this file, but this is {value.value!r}"
            self.problem(value.place, text if isinstance(value.value, str) else text.split(", but", maxsplit=1)[0])
            return ""
        if self._folder is None:
            self.problem(value.place, "a file with instructions cannot be read here", "write `instructions`")
            return ""
        try:
            text = read_inside(self._folder, value.value).removesuffix("\n")
        except WrongDefinition as error:
            self.problem(value.place, f"{value.value!r} cannot be read: {error.problems[0].text}")
            return ""
        if not text.strip():
            self.problem(value.place, f"{value.value!r} is empty", "say how the agent works")
        return text


def is_set(fields: dict[str, YamlEntry], key: str) -> bool:
    """Whether a field is there with a value; an empty text is none."""
    return key in fields and fields[key].value.value not in (None, "")


def _is_broken(fields: dict[str, YamlEntry], *keys: str) -> bool:
    """Whether one of these fields is there, so that what is wrong with it has been said."""
    return any(is_set(fields, key) for key in keys)


def _wrong_path(path: str) -> str:
    """Why a path cannot be that of a file below `.cowork`; empty if it can."""
    parts = path.split("/")
    if path.startswith("/") or not path.strip():
        return "it is not relative"
    if "\\" in path or not path.isprintable() or len(path) > LONGEST_PATH or path != path.strip():
        return "a path has parts with / between them, and no other odd characters"
    if ".." in parts:
        return "it leads out of the folder"
    if any(not part or part.startswith(".") for part in parts):
        return "one of its parts is empty, or begins with a dot"
    if len(parts) < 2:
        return "it is not in a folder"
    if parts[0].casefold() in OURS:
        return f"the folder {parts[0]!r} is the engine's own"
    return ""


# Pipelines that are shipped. The first one is the default: idea, PRD, design, plan, coding, check, delivery. The others
# are the same in other languages.


SHIPPED = "shipped:"
"""How the source of a shipped flow other than the first begins."""
CHINESE = "delivery-zh"
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff]")
_OTHER_THAN_CHINESE = re.compile("[\u3040-\u30ff\uac00-\ud7a3]")
"""Kana and Hangul: Japanese and Korean have Han characters as well."""
_WORDS = re.compile(r"[^\W\d_\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff]+")


def scenarios() -> tuple[str, ...]:
    """Their names; first the default flow."""
    return scenarios_in(_shipped())


def write_scenario(folder: Path, scenario: str = "") -> list[Path]:
    """Write a copy of a shipped pipeline into a folder. Raises `UsageError` if there is one already."""
    return write_files(folder, scenario_files(_shipped(), scenario))


def default_flow(idea: str = "") -> Path:
    """The file of the default flow: the one in the language of the idea, if it is shipped."""
    return _flow_of(CHINESE if is_chinese(idea) else scenarios()[0])


def is_chinese(text: str) -> bool:
    """Whether a text is in Chinese rather than in another language: a character of it counts as a word of others."""
    if _OTHER_THAN_CHINESE.search(text):
        return False
    return len(_HAN.findall(text)) > len(_WORDS.findall(text))


def source_of(path: Path) -> str:
    """How a flow is known later: by its path, or by its name if it is shipped; empty for the first one."""
    file = path.resolve()
    name = next((one for one in scenarios() if _flow_of(one).resolve() == file), None)
    if name is None:
        return str(file)
    return "" if name == scenarios()[0] else f"{SHIPPED}{name}"


def shipped_flow(source: str) -> Path | None:
    """The file of a flow that `source_of` has named; none if it is not a shipped one. Raises `UsageError`."""
    if not source.startswith(SHIPPED):
        return None
    name = source.removeprefix(SHIPPED)
    if name not in scenarios():
        raise UsageError(f"There is no shipped flow {name[:100]!r}; expected one of: {', '.join(scenarios())}.")
    return _flow_of(name)


def _flow_of(scenario: str) -> Path:
    return Path(str(_shipped() / scenario / FILE))


@cache
def default_pipeline() -> Pipeline:
    return read_pipeline(default_flow()).pipeline


def _shipped() -> Traversable:
    return resources(__package__) / "flows"


# Checking a pipeline that comes from a journal, which somebody else may have made.
#
# It is written out as its author would have written it, and read again by the same reader. Flows in JSON become
# pipelines in the same way.


def check_pinned(pipeline: Pipeline) -> None:
    """Raise `WrongDefinition` unless a pipeline could have been read from a file."""
    written = {
        "name": pipeline.name,
        "description": pipeline.description,
        "rate_limit": pipeline.rate_limit,
        "max_reviews": pipeline.max_reviews,
        "auto_goto": pipeline.auto_goto,
        "max_returns": pipeline.max_returns,
        "guards": pipeline.guards,
        "stages": [written_stage(stage) for stage in pipeline.stages],
    }
    read_tree(tree_of(written, Position(FILE)), PipelineReader([], None))


def written_stage(stage: PipelineStage) -> dict[str, Any]:
    """A stage as a mapping, with the fields that a file has. What is not set is left out."""
    written = set_fields(stage)
    return {**written, "critic": set_fields(stage.critic)} if stage.critic else written
