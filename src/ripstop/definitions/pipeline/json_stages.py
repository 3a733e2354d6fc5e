"""Stages of flows in JSON, `stages/NAME.json`: their fields as those of `pipeline.yaml`, each at its own place.

- A stage does not say how its agents work. One that the default flow has takes instructions, tools and inputs from
  there; another one takes its description.
- The first Markdown artifact is the draft; other artifacts are outputs. A folder is code.
- What ripstop does not have is kept out with a warning. It is an error where the run would skip something that the
  author relies on: a hook that blocks, or a confirmation of nothing.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Any

from ripstop.definitions.folders import refuse_link
from ripstop.definitions.json_tree import JsonValue, parse_json
from ripstop.definitions.options import JsonOptionReader
from ripstop.definitions.plain_tree import tree_of
from ripstop.definitions.problems import WARNING, Position, Problem, WrongDefinition, did_you_mean, in_order
from ripstop.definitions.yaml_tree import Value, YamlEntry, read_text
from ripstop.styles.pipeline.definition import PipelineStage

from .flows import default_pipeline
from .pinned import written_stage
from .reader import REPORTER, PipelineReader
from .schema import MOST_ITERATIONS, MOST_PATHS
from .stage_order import REPORTS, check_stages

Entries = dict[str, YamlEntry]
SIMPLE, ACTOR_CRITIC = "simple", "actor_critic"
FIELDS = ("id", "name", "description", "stage_type", "agent", ACTOR_CRITIC, "needs_confirmation", "artifacts", "hooks",
          "timeout_secs", "version", "tags", "metadata")  # fmt: skip
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
        tree, problems = _tree(path)
        reader = JsonStageReader(problems)
        name = reader.field(reader.mapping(tree, "a stage", FIELDS), "id", str, "") or path.stem
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


def _tree(path: Path) -> tuple[Value, list[Problem]]:
    refuse_link(path)
    return parse_json(read_text(path, str(path)), str(path))


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
            tree, problems = _tree(path)
        except WrongDefinition as error:
            self.problems += error.problems
            return None
        self.problems += problems
        fields = self.mapping(tree, "a stage", FIELDS)
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
