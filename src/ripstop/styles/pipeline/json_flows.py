"""Flows in JSON, `flows/NAME.json`, with their stages in `../stages/`: read as the pipeline that they mean.

A flow becomes the tree that `pipeline.yaml` would be, with every value at its place in the JSON, and the same reader
reads it. Stages are in the order of `on_success`, from `start_stage`; where no stage has it, in the order of the list.
"""

import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

from msgspec import Struct

from ripstop.definitions.json_tree import JsonValue, parse_json
from ripstop.definitions.loading import inside, read_inside
from ripstop.definitions.options import JsonOptionReader
from ripstop.definitions.problems import WARNING, Position, Problem, WrongDefinition, did_you_mean, in_order
from ripstop.definitions.yaml_tree import Value, YamlEntry, read_text, tree_of
from ripstop.kernel.advice import Advice, NextStep

from .definition import PipelineStage
from .parsing import REPORTER, PipelineRead, PipelineReader, default_pipeline, read_tree, written_stage
from .schema import MOST_ITERATIONS, MOST_PATHS, MOST_STAGES
from .stage_order import CODE, REPORTS, check_stages

# Stages of flows in JSON, `stages/NAME.json`: their fields as those of `pipeline.yaml`, each at its own place.
#
# - A stage does not say how its agents work. One that the default flow has takes instructions, tools and inputs from
#   there; another one takes its description.
# - The first Markdown artifact is the draft; other artifacts are outputs. A folder is code.
# - What ripstop does not have is kept out with a warning. It is an error where the run would skip something that the
#   author relies on: a hook that blocks, or a confirmation of nothing.


Entries = dict[str, YamlEntry]
SIMPLE, ACTOR_CRITIC = "simple", "actor_critic"
STAGE_FIELDS = (
    "id",
    "name",
    "description",
    "stage_type",
    "agent",
    ACTOR_CRITIC,
    "needs_confirmation",
    "artifacts",
    "hooks",
    "timeout_secs",
    "version",
    "tags",
    "metadata",
)
CRITIC_FIELDS = ("actor", "critic", "max_iterations")
ARTIFACT_FIELDS = ("path", "required", "description")
MARKDOWN = (".md", ".markdown")
DOCUMENT = (
    "Work from what you are given. Your reply is the document itself: begin with its heading, and write nothing before "
    "or after it."
)
FAULTS = f"Report each fault with {REPORTER}; if there are none, report nothing. End with one sentence."


def check_stage_file(path: Path) -> list[Problem]:
    """What is wrong with a stage; and that it is a stage, which nobody can run."""
    try:
        tree, problems = parse_json(read_text(path, str(path)), str(path))
        reader = JsonStageReader(problems)
        name = reader.field(reader.mapping(tree, "a stage", STAGE_FIELDS), "id", str, "") or path.stem
        fields = reader.native(name, name, tree.value if isinstance(tree.value, dict) else {}, tree.place)
        fields.pop("inputs", None)
        native = PipelineReader(problems, None)
        read = native.stage(JsonValue(fields, tree.place))
        check_stages(native, [read] if read else [])
    except WrongDefinition as error:
        return error.problems
    found = in_order([*problems, *reader.warnings, *native.warnings])
    return found if problems else [not_a_flow(path, WARNING), *found]


def not_a_flow(path: Path, severity: str = "error") -> Problem:
    hint = "name a flow that uses it, such as flows/default.json"
    return Problem(Position(str(path)), "this is one stage of a flow, and cannot run by itself", hint, severity)


def entry(thing: Any, place: Position) -> YamlEntry:
    return YamlEntry(place, tree_of(thing, place))


def is_given(fields: Entries, key: str) -> bool:
    return key in fields and fields[key].value.value not in (None, "", [], {})


class JsonStageReader(JsonOptionReader):
    def unknown_key(self, place: Position, what: str, key: str, known: Collection[str]) -> None:
        self.warn(place, f"kept out: {what} has no field {key!r} here", did_you_mean(key, known))

    def keep_out(self, fields: Entries, key: str, why: str) -> None:
        if is_given(fields, key):
            self.warn(fields[key].key, f"kept out: {key!r}", why)

    def hooks(self, fields: Entries, key: str) -> None:
        for item in self.items(fields.get(key), repr(key)):
            named = item.value if isinstance(item.value, dict) else {}
            if "blocking" in named and named["blocking"].value.value is not False:
                text = "ripstop has no hooks, and the run would go on without waiting for this one"
                self.problem(item.place, text, "remove it, or let a tool or a workflow of a stage do it")
            else:
                self.warn(item.place, "kept out: a hook, which nobody waits for")

    def stage_file(self, path: Path) -> Entries | None:
        """The fields of a stage's file; none if it is not right at all."""
        try:
            text = read_inside(path.parent.parent, f"{path.parent.name}/{path.name}")
            tree, problems = parse_json(text, str(path))
        except WrongDefinition as error:
            self.problems += error.problems
            return None
        self.problems += problems
        fields = self.mapping(tree, "a stage", STAGE_FIELDS)
        if not isinstance(tree.value, dict):
            return None
        named = self.field(fields, "id", str, "")
        if named and named != path.stem:
            self.warn(fields["id"].value.place, f"the stage calls itself {named!r}, but its file is {path.name}")
        return fields

    def native(
        self, name: str, stage_id: str, given: Entries, place: Position, overrides: Entries | None = None
    ) -> Entries:
        """The fields of `pipeline.yaml` for a stage.

        Args:
            given: What its file says; nothing is what the default flow has.
            place: Where it is named.
            overrides: What the flow says in place of its file.
        """
        base = default_pipeline().stage(stage_id)
        fields = _base(base, place, bool(given))
        fields["name"] = entry(name, place)
        said = given | (overrides or {})
        title = self.field(said, "name", str, "")
        if title:
            fields["title"] = YamlEntry(said["name"].key, said["name"].value)
        self.hooks(said, "hooks")
        self.keep_out(said, "timeout_secs", "give a limit to the run: --max-seconds N")
        if "artifacts" in said:
            self._artifacts(said, fields, base)
        self._agents(said, fields, base, place)
        if "needs_confirmation" in said:
            self._review(said, fields)
        return fields

    # Agents

    def _agents(self, said: Entries, fields: Entries, base: PipelineStage | None, place: Position) -> None:
        kind = self.one_of(
            said, "stage_type", (SIMPLE, ACTOR_CRITIC), ACTOR_CRITIC if is_given(said, ACTOR_CRITIC) else SIMPLE
        )
        described = self.field(said, "description", str, "") or self.field(said, "name", str, "")
        if base is None:
            fields["instructions"] = entry(f"{described.strip().rstrip('.')}.\n\n{DOCUMENT}", place)
        if kind not in (SIMPLE, ACTOR_CRITIC):
            return
        if kind == SIMPLE:
            if is_given(said, "agent"):
                fields.pop("critic", None)
            self._agent(said, "agent", fields)
            return
        both: Entries = {}
        if is_given(said, ACTOR_CRITIC):
            both = self.mapping(said[ACTOR_CRITIC].value, f"{ACTOR_CRITIC!r}", CRITIC_FIELDS)
        if not both:
            where = said["stage_type"].value.place if "stage_type" in said else place
            self.problem(where, f"a stage of this type needs {ACTOR_CRITIC!r}", "with actor, critic and max_iterations")
            return
        self._agent(both, "actor", fields)
        critic: Entries = dict(fields["critic"].value.value) if "critic" in fields else {}
        if not critic:
            critic = {
                "instructions": entry(f"Check what this stage has made: {described}\n\n{FAULTS}", place),
                "tools": entry([REPORTER], place),
            }
        self._agent(both, "critic", critic, "agent")
        fields["critic"] = YamlEntry(said[ACTOR_CRITIC].key, JsonValue(critic, said[ACTOR_CRITIC].value.place))
        if "max_iterations" in both:
            most = self.whole(both, "max_iterations", 1, 1, MOST_ITERATIONS)
            fields["max_iterations"] = entry(min(max(most, 1), MOST_ITERATIONS), both["max_iterations"].value.place)

    def _agent(self, said: Entries, key: str, fields: Entries, native: str = "agent") -> None:
        if self.field(said, key, str, ""):
            fields[native] = YamlEntry(said[key].key, said[key].value)

    def _review(self, said: Entries, fields: Entries) -> None:
        confirmed, place = self.field(said, "needs_confirmation", bool, False), said["needs_confirmation"].value.place
        if confirmed and "draft" not in fields:
            text = "there is nothing that a person could confirm: the stage has no Markdown artifact"
            self.problem(place, text, 'add one, or write "needs_confirmation": false')
            return
        fields["review"] = entry(confirmed, place)

    # Artifacts

    def _artifacts(self, said: Entries, fields: Entries, base: PipelineStage | None) -> None:
        outputs: list[Value] = list(fields["outputs"].value.value) if "outputs" in fields else []
        has_draft = False
        for item in self.items(said["artifacts"], "'artifacts'")[:MOST_PATHS]:
            path, required = self._artifact(item)
            if path is None or (base and path.value == REPORTS.get(base.kind)):
                continue
            written = str(path.value)
            if written.endswith("/"):
                fields["writes_code"] = entry(True, path.place)
            elif base and base.kind != "work":
                self.warn(path.place, f"kept out: {written!r}", f"the report of this stage is {REPORTS[base.kind]}")
            elif written.lower().endswith(MARKDOWN) and not has_draft:
                has_draft, fields["draft"] = True, YamlEntry(path.place, path)
            elif written in [one.value for one in outputs]:
                outputs = [path if one.value == written else one for one in outputs]
                if not required:
                    text = f"{written!r} has to be there, though it is not required"
                    self.warn(path.place, text, "the default flow's stage makes it, and others read it")
            elif required:
                outputs.append(path)
            else:
                self.warn(path.place, f"kept out: {written!r}, which is not required")
        if outputs:
            fields["outputs"] = YamlEntry(said["artifacts"].key, JsonValue(outputs, said["artifacts"].value.place))
        if base is None and outputs:
            text = f"nothing here can make {outputs[0].value!r}: only stages of the default flow have tools"
            self.problem(outputs[0].place, text, "write the flow as pipeline.yaml, with the tools of each stage")
            fields["tools"] = entry([REPORTER], outputs[0].place)

    def _artifact(self, item: Value) -> tuple[Value | None, bool]:
        if isinstance(item.value, str):
            return item, True
        fields = self.mapping(item, "an artifact", ARTIFACT_FIELDS)
        if not self.required(fields, "path", item, "the artifact").strip():
            return None, False
        return fields["path"].value, self.field(fields, "required", bool, False)


def _base(base: PipelineStage | None, place: Position, has_file: bool) -> Entries:
    """A stage of the default flow. A file says itself whether there is a review, a critic, and how many iterations."""
    if base is None:
        return {}
    fields: Entries = tree_of(written_stage(base), place).value
    if has_file:
        fields = {key: one for key, one in fields.items() if key not in ("review", "max_iterations")}
    return fields


FLOW_FIELDS = (
    "id",
    "name",
    "description",
    "version",
    "stages",
    "start_stage",
    "global_hooks",
    "config",
    "tags",
    "metadata",
)
CONFIG = ("stop_on_failure", "save_state_on_interrupt", "memory_scope", "inheritance", "max_total_time_secs")
IN_FLOW = ("stage_id", "alias", "overrides", "condition", "on_success", "on_failure")
OVERRIDES = ("name", "description", "stage_type", "agent", "actor_critic", "max_iterations", "needs_confirmation",
             "artifacts", "hooks", "timeout_secs")  # fmt: skip
STAGES, SUFFIX = "stages", ".json"
MOST_FILES = 1000


class FlowStage(Struct, frozen=True):
    """A stage as a flow names it."""

    name: str
    stage_id: str
    fields: Entries
    place: Position

    @property
    def then(self) -> Value | None:
        return self.fields["on_success"].value if is_given(self.fields, "on_success") else None


def read_flow(path: Path) -> PipelineRead:
    """The pipeline that a flow means. Raises `WrongDefinition`."""
    tree, problems = parse_json(read_text(path, str(path)), str(path))
    flow = _FlowReader(problems)
    pipeline = flow.pipeline(tree, path)
    reader = PipelineReader(problems, None)
    reader.warnings = flow.warnings
    return read_tree(pipeline, reader)


class _FlowReader(JsonStageReader):
    def pipeline(self, tree: Value, path: Path) -> Value:
        top = self.mapping(tree, "a flow", FLOW_FIELDS)
        if not isinstance(tree.value, dict):
            return tree
        self.hooks(top, "global_hooks")
        self._config(top)
        listed = self._listed(top)
        fields: Entries = {"name": entry(path.stem.lower(), tree.place)}
        if is_given(top, "id"):
            fields["name"] = top["id"]
        if is_given(top, "description"):
            fields["description"] = top["description"]
        stages = self._stages(listed, self._ordered(listed, top), path)
        if "stages" in top:
            fields["stages"] = YamlEntry(top["stages"].key, JsonValue(stages, top["stages"].value.place))
        if stages:
            text = "how agents work is not in a flow: instructions and tools are those of the default flow's stages"
            self.warn(top["stages"].key, text, "files in agents/ are not read")
        return JsonValue(fields, tree.place)

    def _stages(self, listed: list[FlowStage], ordered: list[FlowStage], path: Path) -> list[Value]:
        """Raises `WrongDefinition` if one of them cannot be read: what the others lack is then not worth saying."""
        read = [self._stage(one, path) for one in ordered]
        built = [stage for stage in read if stage is not None]
        if len(built) < len(listed) and self.problems:
            raise WrongDefinition(in_order([*self.problems, *self.warnings]))
        for number, stage in enumerate(built):
            self._inputs(stage, built[:number], ordered[number])
        return [JsonValue(stage, stage["name"].value.place) for stage in built]

    def _config(self, top: Entries) -> None:
        if not is_given(top, "config"):
            return
        config = self.mapping(top["config"].value, "'config'", CONFIG)
        for key, meaning in (
            ("stop_on_failure", "a stage that fails stops the run, which can be resumed"),
            ("save_state_on_interrupt", "every step is saved"),
        ):
            if not self.field(config, key, bool, True):
                self.warn(config[key].key, f"kept out: {key!r}: false", meaning)
        self.keep_out(config, "memory_scope", "stages share the files below .cowork, and nothing else")
        where = "a person says where a project goes on"
        restart = NextStep("restart_project", where, f"{where}: {{}}", "STAGE")
        self.keep_out(config, "inheritance", Advice(restart))
        self.keep_out(config, "max_total_time_secs", "give the limit to the run: --max-seconds N")

    # Order

    def _listed(self, top: Entries) -> list[FlowStage]:
        found: dict[str, FlowStage] = {}
        items = self.items(top.get("stages"), "'stages'")
        if len(items) > MOST_STAGES:
            self.problem(items[MOST_STAGES].place, f"there are {len(items)} stages; at most {MOST_STAGES} can be")
        for item in items[:MOST_STAGES]:
            fields = self.mapping(item, "a stage of a flow", IN_FLOW)
            stage_id = self.required(fields, "stage_id", item, "a stage of a flow")
            if not stage_id:
                continue
            name = self.field(fields, "alias", str, "") or stage_id
            place = fields["alias" if is_given(fields, "alias") else "stage_id"].value.place
            if name in found:
                self.problem(place, f"there is a stage {name!r} already", "give one of them an alias")
            for key in ("condition", "on_failure"):
                if is_given(fields, key):
                    text = f"{key!r} is a branch, and the stages of a pipeline are in one order"
                    self.problem(fields[key].key, text, "remove it; an agent can go back with the tool goto_stage")
            found.setdefault(name, FlowStage(name, stage_id, fields, place))
        return list(found.values())

    def _ordered(self, listed: list[FlowStage], top: Entries) -> list[FlowStage]:
        if not listed:
            return []
        start = self._named(top["start_stage"].value, listed) if is_given(top, "start_stage") else listed[0]
        if start is None:
            return []
        is_chained = any(one.then for one in listed)
        found = self._followed(start, listed) if is_chained else listed[listed.index(start) :]
        for one in listed:
            if found and one not in found:
                self.warn(one.place, f"kept out: the stage {one.name!r}, which nothing leads to")
        return found

    def _followed(self, start: FlowStage, listed: list[FlowStage]) -> list[FlowStage]:
        found = [start]
        while (then := found[-1].then) is not None:
            following = self._named(then, listed)
            if following is None:
                return []
            if following in found:
                text = f"{found[-1].name!r} leads back to {following.name!r}, so the flow never ends"
                self.problem(then.place, text, "an agent can go back with the tool goto_stage")
                return []
            found.append(following)
        return found

    def _named(self, value: Value, listed: list[FlowStage]) -> FlowStage | None:
        """The stage that a name in the flow means; its alias first."""
        if not isinstance(value.value, str):
            self.problem(value.place, f"this must be the name of one stage, but it is {value.kind}")
            return None
        known = {one.stage_id: one for one in reversed(listed)} | {one.name: one for one in listed}
        if value.value not in known:
            self.problem(value.place, f"the flow has no stage {value.value!r}", did_you_mean(value.value, known))
        return known.get(value.value)

    # Stages

    def _stage(self, one: FlowStage, flow: Path) -> Entries | None:
        folder = Path(os.path.normpath(flow.parent / ".." / STAGES))
        file = folder / f"{one.stage_id}{SUFFIX}"
        is_name = "/" not in one.stage_id and inside(one.stage_id)
        known = default_pipeline().stage(one.stage_id)
        given: Entries | None = {}
        if is_name and os.path.lexists(file):
            given = self.stage_file(file)
        elif known is None:
            place = one.fields["stage_id"].value.place
            text = f"there is no stage {one.stage_id[:80]!r}, neither in {folder.name}/ nor in the default flow"
            self.problem(place, text, did_you_mean(one.stage_id, _known(folder)))
            return None
        else:
            text = f"there is no {folder.name}/{one.stage_id}{SUFFIX}, so the default flow's {one.stage_id!r} is used"
            self.warn(one.fields["stage_id"].value.place, text)
        if given is None:
            return None
        return self.native(one.name, one.stage_id, given, one.place, self._overrides(one, given))

    def _overrides(self, one: FlowStage, given: Entries) -> Entries:
        if not is_given(one.fields, "overrides"):
            return {}
        said = dict(self.mapping(one.fields["overrides"].value, "'overrides'", (*OVERRIDES, "skip")))
        if "skip" in said and said["skip"].value.value is not False:
            self.problem(said["skip"].key, f"the stage {one.name!r} would not be skipped", "take it out of the flow")
        most = said.pop("max_iterations", None)
        both = said.get("actor_critic") or given.get("actor_critic")
        if most is not None and both is not None and isinstance(both.value.value, dict):
            merged = {**both.value.value, "max_iterations": most}
            said["actor_critic"] = YamlEntry(both.key, JsonValue(merged, both.value.place))
        elif most is not None:
            self.warn(most.key, "kept out: 'max_iterations', because the stage's file has no 'actor_critic'")
        return {key: value for key, value in said.items() if key in OVERRIDES}

    def _inputs(self, stage: Entries, before: list[Entries], one: FlowStage) -> None:
        """What the default flow's stage reads, as far as this flow makes it; else what the stage before has made."""
        made = [path for earlier in before for path in _makes(earlier)]
        wanted = [str(item.value) for item in stage["inputs"].value.value] if "inputs" in stage else []
        found = [path for path in wanted if path in made]
        missing = ", ".join(path for path in wanted if path not in made)
        if missing:
            self.warn(one.place, f"kept out: inputs of {one.name!r} that no stage before it makes: {missing}")
        if not found and before:
            found = next((list(_makes(earlier)) for earlier in reversed(before) if _makes(earlier)), [])
        stage["inputs"] = entry(found, one.place)


def _makes(stage: Entries) -> list[str]:
    """The files that a stage makes, as far as they are texts."""
    kind = stage["kind"].value.value if "kind" in stage else ""
    outputs = stage["outputs"].value.value if "outputs" in stage else []
    found = [stage["draft"].value.value if "draft" in stage else None, *(item.value for item in outputs)]
    found += [REPORTS.get(kind), CODE if "writes_code" in stage else None]
    return [path for path in found if isinstance(path, str)]


def _known(folder: Path) -> list[str]:
    names = [stage.name for stage in default_pipeline().stages]
    files = sorted(path.stem for path in folder.glob(f"*{SUFFIX}"))[:MOST_FILES]
    return list(dict.fromkeys([*files, *names]))
