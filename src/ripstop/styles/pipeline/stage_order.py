"""Whether the stages of a pipeline fit one another, and the fields of a stage its kind.

- An input is made by an earlier stage: a new project has no other files.
- No two stages make the same file, or going back to the first would remove what the second has made.
- The delivery is the last stage. Reports and `data/code_metadata.json` are the engine's.
- One name is one role: an actor in one stage cannot be a critic, there or in another.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from ripstop.definitions.fields import Reader
from ripstop.definitions.problems import Position
from ripstop.definitions.yaml_tree import Value, YamlEntry

from .definition import CHECK_REPORT, DELIVERY_REPORT, PipelineStage

CODE = "data/code_metadata.json"
"""What the engine writes about the files of a stage that writes code."""
REPORTS = {"check": CHECK_REPORT, "delivery": DELIVERY_REPORT}
WORK_ONLY = ("draft", "draft_tools", "review", "critic", "max_iterations", "workflow", "writes_code")
"""Fields of a stage that is neither check nor delivery."""
ACTOR_ONLY = ("agent", "instructions", "instructions_file", "model")


class StageRead(Struct, frozen=True):
    """A stage, and where its parts are."""

    stage: PipelineStage
    place: Position
    fields: dict[str, YamlEntry]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]

    def at(self, key: str) -> Position:
        """Where a field is; the stage, if it does not have it."""
        return self.fields[key].value.place if key in self.fields else self.place

    def has(self, key: str) -> bool:
        return key in self.fields and self.fields[key].value.value not in (None, "", False, [])

    @property
    def makes(self) -> Iterator[tuple[str, Position]]:
        """Every file that is there once the stage is finished."""
        places = {str(one.value): one.place for one in self.outputs}
        for path in self.stage.products:
            yield path, places.get(path, self.at("draft") if path == self.stage.draft else self.at("kind"))
        if self.stage.writes_code:
            yield CODE, self.at("writes_code")


def check_stages(reader: Reader, stages: Sequence[StageRead]) -> None:
    _names(reader, stages)
    _roles(reader, stages)
    made: dict[str, str] = {}
    later = {path: one.stage.name for one in reversed(stages) for path, _ in one.makes}
    for number, one in enumerate(stages):
        _check_inputs(reader, one, made, later)
        for path, place in one.makes:
            if path in made and path != CODE:
                text = f"two stages make {path!r}: {made[path]!r} and {one.stage.name!r}"
                reader.problem(place, text, "use another file")
            made.setdefault(path, one.stage.name)
        _check_kind(reader, one, number == len(stages) - 1)
        _check_work(reader, one)


def _names(reader: Reader, stages: Sequence[StageRead]) -> None:
    seen: dict[str, Position] = {}
    for one in stages:
        if one.stage.name in seen and one.stage.name:
            first = seen[one.stage.name]
            text = f"there is a stage {one.stage.name!r} already, in line {first.line}"
            reader.problem(one.at("name"), text, "use another name")
        seen.setdefault(one.stage.name, one.at("name"))


def _roles(reader: Reader, stages: Sequence[StageRead]) -> None:
    actors = {one.stage.agent: one.stage.name for one in stages if one.stage.agent}
    for one in stages:
        critic = one.stage.critic
        if critic is None or critic.agent not in actors:
            continue
        fields = one.fields["critic"].value.value
        place = fields["agent"].value.place if "agent" in fields else one.fields["critic"].key
        text = f"{critic.agent!r} is the critic here, and the actor of {actors[critic.agent]!r}"
        reader.problem(place, text, "nobody checks their own work: use another name")


def _check_inputs(reader: Reader, one: StageRead, made: dict[str, str], later: dict[str, str]) -> None:
    for item in one.inputs:
        path = item.value
        if path in made:
            continue
        if path in later:
            text = f"{path!r} is an input of {one.stage.name!r}, but {later[path]!r} makes it, which comes later"
            if later[path] == one.stage.name:
                text = f"{path!r} is an input of {one.stage.name!r}, which makes it itself"
            reader.problem(item.place, text)
        elif made:
            hint = f"there are {', '.join(made)}"
            reader.problem(item.place, f"no stage before {one.stage.name!r} makes {path!r}", hint)
        else:
            text = f"{one.stage.name!r} is the first stage, so nothing has made {path!r}"
            reader.problem(item.place, text, "it gets the idea without being told")


def _check_kind(reader: Reader, one: StageRead, is_last: bool) -> None:
    stage = one.stage
    for item in one.outputs:
        owner = next((kind for kind, report in REPORTS.items() if report == item.value), "")
        if owner == stage.kind:
            reader.problem(item.place, f"{item.value!r} is written by the engine", "leave it out")
        elif owner:
            reader.problem(item.place, f"only a stage with `kind: {owner}` makes {item.value!r}", "use another file")
        elif item.value == CODE:
            text = f"{item.value!r} is written by the engine, for a stage that writes code"
            reader.problem(item.place, text, "write `writes_code: true` instead")
    if stage.kind == "work":
        return
    if stage.kind == "delivery" and not is_last:
        reader.problem(one.at("kind"), "a delivery is the last stage, and there is one after it", "move it to the end")
    for key in WORK_ONLY:
        if one.has(key):
            text = f"a stage with `kind: {stage.kind}` cannot have {key!r}"
            reader.problem(one.fields[key].key, text, "the engine finds the facts and writes the report")


def _check_work(reader: Reader, one: StageRead) -> None:
    stage = one.stage
    if stage.agent and not stage.instructions.strip() and not one.has("instructions_file"):
        reader.problem(one.place, f"the agent of {stage.name!r} has no instructions", "add `instructions: |`")
    if stage.kind != "work":
        return
    _check_draft(reader, one)
    if stage.workflow:
        _check_workflow(reader, one)
    elif stage.tools:
        if not stage.outputs and not stage.writes_code:
            text = f"nothing shows whether {stage.name!r} has used its tools"
            reader.warn(one.at("tools"), text, "name its files in `outputs`, or write `writes_code: true`")
    elif one.outputs:
        text = f"{stage.name!r} has no tools that could make {one.outputs[0].value!r}"
        reader.problem(one.outputs[0].place, text, "add `tools` or a `workflow`")
    elif stage.writes_code:
        text = f"{stage.name!r} has no tools that could write code"
        reader.problem(one.at("writes_code"), text, "add `tools: [write_file]`")
    elif not stage.draft:
        reader.problem(one.place, f"{stage.name!r} makes nothing", "add a `draft`, or `tools` and `outputs`")
    if stage.max_iterations > 1 and not stage.critic:
        reader.warn(one.at("max_iterations"), f"{stage.name!r} has no critic, so there is one iteration only")


def _check_draft(reader: Reader, one: StageRead) -> None:
    stage = one.stage
    if stage.draft:
        for item in one.outputs:
            if item.value == stage.draft:
                text = f"{stage.draft!r} is the draft, which is kept as it is"
                reader.problem(item.place, text, "leave it out of `outputs`")
        return
    for key, why in (("review", "no draft that a person could review"), ("draft_tools", "no draft")):
        if one.has(key) and not one.has("draft"):
            reader.problem(one.at(key), f"{stage.name!r} has {why}", "add `draft: artifacts/NAME.md`")


def _check_workflow(reader: Reader, one: StageRead) -> None:
    if one.has("tools"):
        text = f"{one.stage.name!r} has a workflow, which has its own tools"
        reader.problem(one.fields["tools"].key, text, "keep one of them")
    for key in ACTOR_ONLY if not one.stage.draft else ():
        if one.has(key):
            text = f"a workflow does the work of {one.stage.name!r}, and nobody writes a draft"
            reader.problem(one.fields[key].key, text, f"leave {key!r} out, or add a `draft`")
