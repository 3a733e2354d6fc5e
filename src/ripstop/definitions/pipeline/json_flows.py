"""Flows in JSON, `flows/NAME.json`, with their stages in `../stages/`: read as the pipeline that they mean.

A flow becomes the tree that `pipeline.yaml` would be, with every value at its place in the JSON, and the same reader
reads it. Stages are in the order of `on_success`, from `start_stage`; where no stage has it, in the order of the list.
"""

import os
from pathlib import Path

from msgspec import Struct

from ripstop.definitions.folders import inside
from ripstop.definitions.json_tree import JsonValue, parse_json
from ripstop.definitions.problems import Position, WrongDefinition, did_you_mean, in_order
from ripstop.definitions.yaml_tree import Value, YamlEntry, read_text

from .flows import default_pipeline
from .json_stages import Entries, JsonStageReader, entry, is_given
from .reader import PipelineRead, PipelineReader, read_tree
from .schema import MOST_STAGES
from .stage_order import CODE, REPORTS

FIELDS = ("id", "name", "description", "version", "stages", "start_stage", "global_hooks", "config", "tags", "metadata")
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
        top = self.mapping(tree, "a flow", FIELDS)
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
        self.keep_out(config, "inheritance", "a person says where a project goes on: ripstop modify --from STAGE")
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
