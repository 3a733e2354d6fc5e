"""Reading `workflow.yaml` into a `Graph`: all problems at once, each with its position."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ripstop.definitions.loading import read_inside
from ripstop.definitions.options import OptionReader, fields_of
from ripstop.definitions.problems import Position, Problem, WrongDefinition, did_you_mean, in_order
from ripstop.definitions.references import Reference
from ripstop.definitions.yaml_tree import Value, YamlEntry, parse, read_text, tree_of

from . import condition, template
from .definition import END, VARIABLES, Agent, ExitCondition, Graph, State, Transition
from .schema import (
    ACTIONS,
    AGENT,
    EXIT,
    GRAPH,
    LANGUAGES,
    LONGEST_NAME,
    MOST_REASKS,
    MOST_TURNS,
    MOST_VALUES,
    STATE,
    TRANSITION,
    TYPES,
)

FILE = "workflow.yaml"
GUIDE = "guide.md"
SHARED = "collab"
"""The folder that all agents share; no agent may have its name."""
MOST_TEMPLATE_PROBLEMS = 20
_NO_FOLDER = re.compile(r"[/\\\x00-\x1f\x7f]|^\.|^\s|\s$")
"""What a name may not hold that becomes the name of a folder."""
CHILD_FIELDS = ("input", "limits")
"""Fields of a state that only a workflow has."""


def cannot_be_folder(name: str) -> bool:
    return _NO_FOLDER.search(name) is not None


class Written(Struct, frozen=True):
    """A graph, and the tree that it was read from."""

    graph: Graph
    tree: Value


def read_graph(path: Path, goal: str = "", any_name: bool = False) -> Graph:
    """The graph in a file. A `guide.md` next to it replaces the built-in guide.

    `goal` replaces an absent `initial_message`. A `workflow.yaml` must have its folder's name, unless
    `any_name` is given. Raises `WrongDefinition`.
    """
    return read_written(path, goal, any_name).graph


def read_written(path: Path, goal: str = "", any_name: bool = False) -> Written:
    """Like `read_graph`, and keeps the tree for callers that need positions."""
    tree, problems = parse(read_text(path, str(path)), str(path))
    reader = _GraphReader(problems)
    graph = reader.graph(tree, path.name, _guide(path.with_name(GUIDE), problems), goal)
    folder = path.resolve().parent.name
    if path.name == FILE and not any_name and graph.name and graph.name != folder:
        place = tree.value["name"].value.place
        text = f"the workflow is named {graph.name!r}, but its folder is {folder!r}"
        reader.problem(place, text, "rename one of them, or waive this with --any-name")
    if problems:
        raise WrongDefinition(in_order(problems))
    return Written(graph, tree)


def graph_problems(tree: Value) -> list[Problem]:
    """What is wrong with a graph that was not read from a file."""
    reader = _GraphReader([])
    reader.graph(tree, "", "", goal="kept from the run")
    return reader.problems


def _guide(path: Path, problems: list[Problem]) -> str:
    if not os.path.lexists(path):
        return ""
    try:  # whatever else it is, such as a folder or a link to nowhere, is a problem that its author wants to know
        # the line end that closes the file is the file's, not the guide's
        return read_inside(path.parent, path.name).removesuffix("\n")
    except WrongDefinition as error:
        problems += error.problems
        return ""


class _GraphReader(OptionReader):
    _variables = VARIABLES
    """What prompts may use: with the values that the graph declares, once they are read."""

    def graph(self, tree: Value, source: str, guide: str, goal: str) -> Graph:
        top = self.mapping(tree, "a workflow", fields_of(GRAPH))
        if not isinstance(tree.value, dict):
            return Graph(name="", start="", agents=(), states=())
        name = self.required(top, "name", tree, "the workflow")
        self._folder_name(top, name, "workflow")
        message = self.field(top, "initial_message", str, "")
        if not goal and (top.get("initial_message") is None or self._blank(top["initial_message"].value)):
            place = top["initial_message"].value.place if "initial_message" in top else tree.place
            self.problem(place, "the workflow has no 'initial_message'", "add one, or give the goal with --input")
        values = self._values(top.get("values"))
        self._variables = VARIABLES.union(values)
        agents = [self._agent(item) for item in self._agents(top, tree)]
        self._unique(top.get("agents"), "agent")
        states = [self._state(item, {a.name for a in agents}) for item in self._some(top, "states", tree)]
        self._unique(top.get("states"), "state")
        self._targets(top.get("states"), {state.name for state in states})
        exits = [self._exit(item) for item in self.items(top.get("exit_conditions"), "'exit_conditions'")]
        return Graph(
            name=name,
            start=self._start(top.get("states"), states),
            agents=tuple(agents),
            states=tuple(states),
            description=self.field(top, "description", str, ""),
            initial_message=message,
            max_turns=self.whole(top, "max_turns", 10, 1, MOST_TURNS),
            exit_conditions=tuple(exits),
            guide=guide,
            language=self.one_of(top, "language", LANGUAGES, "en"),
            strict_decisions=self.field(top, "strict_decisions", bool, False),
            reasks=self.whole(top, "reasks", 1, 0, MOST_REASKS),
            source=source,
            guards=self.guards(top.get("guards")),
            values=values,
        )

    # Fields

    def _blank(self, value: Value) -> bool:
        return value.value is None or (isinstance(value.value, str) and not value.value.strip())

    def _some(self, top: dict[str, YamlEntry], key: str, tree: Value) -> list[Value]:
        items = self.items(top.get(key), f"{key!r}")
        if not items and (key not in top or top[key].value.value in (None, [])):
            place = top[key].value.place if key in top else tree.place
            self.problem(place, f"the workflow has no {key}", f"add `{key}:` with a list")
        return items

    def _agents(self, top: dict[str, YamlEntry], tree: Value) -> list[Value]:
        """A graph whose states all run workflows needs no agents."""
        states = top["states"].value.value if "states" in top else None
        items = states if isinstance(states, list) else []
        alone = items and all(isinstance(item.value, dict) and "workflow" in item.value for item in items)
        return [] if alone and "agents" not in top else self._some(top, "agents", tree)

    def _folder_name(self, entries: dict[str, YamlEntry], name: str, what: str) -> None:
        if cannot_be_folder(name):
            text = f"the {what}'s name {name!r} cannot be the name of a folder"
            self.problem(entries["name"].value.place, text, "use letters, digits, - and _")

    def _values(self, entry: YamlEntry | None) -> dict[str, str | None]:
        if entry is None or entry.value.value is None:
            return {}
        if not isinstance(entry.value.value, dict):
            text = f"'values' must be a mapping, but this is {entry.value.kind}"
            self.problem(entry.value.place, text, "of names to default texts")
            return {}
        fields: dict[str, YamlEntry] = entry.value.value
        if len(fields) > MOST_VALUES:
            self.problem(entry.value.place, f"there are {len(fields)} values; at most {MOST_VALUES} can be declared")
        for name, field in fields.items():
            if name in VARIABLES:
                self.problem(field.key, f"{name!r} is a variable that every prompt has", "use another name")
            elif not name.isidentifier() or len(name) > LONGEST_NAME:
                hint = f"use up to {LONGEST_NAME} letters, digits and _, and begin with a letter"
                self.problem(field.key, f"{name[:LONGEST_NAME]!r} cannot be the name of a value", hint)
        return {name: self._default(fields, name) for name in fields}

    def _default(self, fields: dict[str, YamlEntry], name: str) -> str | None:
        return None if fields[name].value.value is None else self.field(fields, name, str, "")

    # Agents

    def _agent(self, item: Value) -> Agent:
        fields = self.mapping(item, "an agent", fields_of(AGENT))
        if not isinstance(item.value, dict):
            return Agent(name="")
        name = self.required(fields, "name", item, "the agent")
        self._folder_name(fields, name, "agent")
        if name.casefold() == SHARED:
            self.problem(
                fields["name"].value.place, f"{name!r} is the folder that all agents share", "use another name"
            )
        kind = self.required(fields, "type", item, f"the agent {name!r}" if name else "the agent")
        if kind.strip() and kind not in TYPES:
            self.problem(fields["type"].value.place, f"there is no agent type {kind!r}", did_you_mean(kind, TYPES))
        model = self.field(fields, "model", str, "")
        if "model" in fields and self._blank(fields["model"].value):
            self.problem(fields["model"].value.place, "'model' is empty", "leave it out to use the run's model")
        return Agent(name=name, type=kind, model=model, tools=self._tools(fields.get("tools")))

    def _tools(self, entry: YamlEntry | None) -> tuple[str, ...] | None:
        if entry is None:
            return None
        if entry.value.value is None:
            self.problem(
                entry.value.place, "'tools' is empty", "write [] for none, or leave it out for those of the type"
            )
        tools: list[str] = []
        for item in self.items(entry, "'tools'"):
            if not isinstance(item.value, str) or not item.value.strip():
                self.problem(item.place, f"a tool's name must be text, but this is {item.kind}")
            elif item.value in tools:
                self.problem(item.place, f"the tool {item.value!r} is listed twice")
            else:
                tools.append(item.value)
        return tuple(tools)

    # States

    def _state(self, item: Value, agents: set[str]) -> State:
        fields = self.mapping(item, "a state", fields_of(STATE))
        if not isinstance(item.value, dict):
            return State(name="", agent="", prompt="")
        name = self.required(fields, "name", item, "the state")
        if name == END:
            text = f"{END!r} is where a workflow ends and cannot be a state's name"
            self.problem(fields["name"].value.place, text, "use another name")
        what = f"the state {name!r}" if name else "the state"
        self.field(fields, "start", bool, False)
        transitions = tuple(self._transition(t) for t in self.items(fields.get("transitions"), "'transitions'"))
        if "workflow" in fields:
            return self._nested(fields, State(name, transitions=transitions, line=item.place.line), item, what)
        for key in CHILD_FIELDS:
            if key in fields:
                hint = "put it into `prompt`" if key == "input" else "remove it"
                self.problem(fields[key].key, f"only a state with a workflow can have {key!r}", hint)
        agent = self.required(fields, "agent", item, what)
        if agent.strip() and agent not in agents:
            hint = did_you_mean(agent, sorted(agents - {""}))
            self.problem(fields["agent"].value.place, f"there is no agent {agent!r}", hint)
        prompt = self.required(fields, "prompt", item, what)
        if prompt:
            self._template(fields["prompt"].value)
        return State(name, agent, prompt, transitions, item.place.line)

    def _nested(self, fields: dict[str, YamlEntry], state: State, item: Value, what: str) -> State:
        """A state that runs another workflow."""
        if "agent" in fields:
            self.problem(fields["workflow"].key, f"{what} has both 'agent' and 'workflow'", "keep one of them")
        if "prompt" in fields and "agent" not in fields:
            text = f"{what} runs a workflow, so it cannot have a 'prompt'"
            self.problem(fields["prompt"].key, text, "write `input`, which the workflow gets as its goal")
        workflow = self.required(fields, "workflow", item, what)
        given = self.field(fields, "input", str, "")
        if given:
            self._template(fields["input"].value)
        return replace(state, workflow=workflow, input=given, limits=self.limits(fields.get("limits")))

    def _template(self, value: Value) -> None:
        """Every unknown variable; but only the first wrong block, because it makes those after it doubtful."""
        text: str = value.value
        for _ in range(MOST_TEMPLATE_PROBLEMS):
            try:
                template.parse(text, self._variables)
            except template.TemplateError as error:
                place, source = value.inside(error.offset)
                hint = "or declare it under `values`" if text.startswith("{{", error.offset) else ""
                self.problem(place, str(error), hint, source=source)
                end = text.find("}}", error.offset)
                if not text.startswith("{{", error.offset) or end < 0:
                    return
                text = text[: error.offset] + " " * (end + 2 - error.offset) + text[end + 2 :]
            except RecursionError:
                self.problem(value.place, "the {% if %} blocks of this prompt are nested too deep")
                return
            else:
                return

    def _transition(self, item: Value) -> Transition:
        fields = self.mapping(item, "a transition", fields_of(TRANSITION))
        to = self.required(fields, "to", item, "the transition") if isinstance(item.value, dict) else ""
        place = item.place
        return Transition(to=to, condition=self._condition(fields), line=place.line, column=place.column)

    def _condition(self, fields: dict[str, YamlEntry]) -> str:
        entry = fields.get("condition")
        if entry is not None and isinstance(entry.value.value, bool):
            return "true" if entry.value.value else "false"
        text = self.field(fields, "condition", str, "")
        try:
            condition.parse(text)
        except condition.ConditionError as error:
            assert entry is not None
            place, source = entry.value.inside(error.column)
            self.problem(place, f"the condition cannot be read: {error}", source=source)
            return ""
        return text

    def _exit(self, item: Value) -> ExitCondition:
        fields = self.mapping(item, "an exit condition", fields_of(EXIT))
        if not isinstance(item.value, dict):
            return ExitCondition(condition="", action="")
        action = self.required(fields, "action", item, "the exit condition")
        if action.strip() and action not in ACTIONS:
            self.problem(fields["action"].value.place, f"there is no action {action!r}", did_you_mean(action, ACTIONS))
        if "condition" not in fields:
            self.problem(item.place, "the exit condition has no 'condition'", "add `condition: …`")
        return ExitCondition(condition=self._condition(fields), action=action, line=item.place.line)

    # Across the file

    def _unique(self, entry: YamlEntry | None, what: str) -> None:
        seen: dict[str, int] = {}
        for name in self._names(entry):
            if name.value in seen:
                text = f"the {what} {name.value!r} is already in line {seen[name.value]}"
                self.problem(name.place, text, "give it another name")
            else:
                seen[name.value] = name.place.line

    def _names(self, entry: YamlEntry | None) -> list[Value]:
        items = entry.value.value if entry and isinstance(entry.value.value, list) else []
        named = [item.value["name"].value for item in items if isinstance(item.value, dict) and "name" in item.value]
        return [name for name in named if isinstance(name.value, str) and name.value.strip()]

    def _targets(self, entry: YamlEntry | None, states: set[str]) -> None:
        for item in entry.value.value if entry and isinstance(entry.value.value, list) else []:
            if not isinstance(item.value, dict) or "transitions" not in item.value:
                continue
            transitions = item.value["transitions"].value.value
            for transition in transitions if isinstance(transitions, list) else []:
                to = transition.value.get("to") if isinstance(transition.value, dict) else None
                name = to.value.value if to else None
                if to and isinstance(name, str) and name.strip() and name not in states | {END}:
                    hint = did_you_mean(name, [*sorted(states - {""}), END])
                    self.problem(to.value.place, f"there is no state {name!r}", hint)

    def _start(self, entry: YamlEntry | None, states: list[State]) -> str:
        marked: list[tuple[str, Value]] = []
        for item, state in zip(entry.value.value if entry and states else [], states, strict=False):
            start = item.value.get("start") if isinstance(item.value, dict) else None
            if start and start.value.value is True:
                marked.append((state.name, start.value))
        for name, value in marked[1:]:
            self.problem(value.place, f"{name!r} is a second start state", f"the first is {marked[0][0]!r}; keep one")
        return marked[0][0] if marked else (states[0].name if states else "")


# Checking a graph that comes from a journal, which somebody else may have made.
#
# It is written out as its author would have written it, and read again by the same reader: every rule for files holds
# for it, and none has to be kept in two places.


def check_pinned(graph: Graph) -> None:
    """Raise `WrongDefinition` unless a graph could have been read from a file."""
    problems = graph_problems(tree_of(_written(graph), Position(graph.source or FILE)))
    if problems:
        raise WrongDefinition(in_order(problems))


def _written(graph: Graph) -> dict[str, Any]:
    """A graph as a mapping, with the fields that a file has."""
    return {
        "name": graph.name,
        "description": graph.description,
        "initial_message": graph.initial_message,
        "max_turns": graph.max_turns,
        "language": graph.language,
        "strict_decisions": graph.strict_decisions,
        "reasks": graph.reasks,
        "guards": graph.guards,
        "values": graph.values,
        **({"agents": [_agent(agent) for agent in graph.agents]} if graph.agents else {}),
        "states": [_state(state, state.name == graph.start) for state in graph.states],
        "exit_conditions": [{"condition": one.condition, "action": one.action} for one in graph.exit_conditions],
    }


def _agent(agent: Agent) -> dict[str, Any]:
    return {
        "name": agent.name,
        "type": agent.type,
        **({"model": agent.model} if agent.model else {}),
        **({} if agent.tools is None else {"tools": list(agent.tools)}),
    }


def _state(state: State, start: bool) -> dict[str, Any]:
    """What is set is written, so that what does not go together is found."""
    written: dict[str, Any] = {
        "name": state.name,
        "start": start,
        "transitions": [{"to": way.to, "condition": way.condition} for way in state.transitions],
    }
    for name in ("workflow", "input", "limits"):
        if getattr(state, name):
            written[name] = msgspec.to_builtins(getattr(state, name))
    if not state.workflow or state.agent or state.prompt:
        written |= {"agent": state.agent, "prompt": state.prompt}
    return written


# What a graph names that is outside of it.


def references_of(written: Written) -> Iterator[Reference]:
    top: dict[str, YamlEntry] = written.tree.value
    for item in top["agents"].value.value if "agents" in top else ():
        if "model" in item.value:
            named = item.value["model"].value
            yield Reference("model", named.value, named.place)
        for named in (item.value["tools"].value.value if "tools" in item.value else None) or ():
            yield Reference("tool", named.value, named.place)
    for item in top["states"].value.value:
        if "workflow" in item.value:
            named = item.value["workflow"].value
            yield Reference("workflow", named.value, named.place)
