"""Reading `workflow.yaml` into a `Graph`: every mistake at once, each with its place."""

from pathlib import Path

from ripstop.styles import condition, template
from ripstop.styles.graph.definition import END, Agent, ExitCondition, Graph, State, Transition
from ripstop.styles.graph.style import VARIABLES

from .problems import WrongDefinition, did_you_mean
from .reading import Reader
from .tree import Entry, Value, parse, place_inside, read_text

FILE = "workflow.yaml"
GUIDE = "guide.md"
TYPES = ("coder", "architect", "ask")
ACTIONS = ("force_end", "save_and_end")
MOST_TURNS = 1_000_000


def read_graph(path: Path, goal: str = "") -> Graph:
    """The graph in a file. A `guide.md` beside it replaces the built-in guide.

    `goal` stands in for an absent `initial_message`. Raises `WrongDefinition`.
    """
    tree = parse(read_text(path, str(path)), str(path))
    guide = path.with_name(GUIDE)
    text = read_text(guide, str(guide)) if guide.is_file() else ""
    reader = _GraphReader()
    graph = reader.graph(tree, path.name, text, goal)
    if path.name == FILE and graph.name and graph.name != path.resolve().parent.name:
        entry = tree.value["name"]
        reader.problem(
            entry.value.place,
            f"the workflow is named {graph.name!r}, but its folder is {path.resolve().parent.name!r}",
            "rename one of them",
        )
    if reader.problems:
        raise WrongDefinition(sorted(reader.problems, key=lambda p: (p.place.line, p.place.column)))
    return graph


class _GraphReader(Reader):
    def graph(self, tree: Value, source: str, guide: str, goal: str) -> Graph:
        known = ("name", "description", "initial_message", "max_turns", "agents", "states", "exit_conditions")
        top = self.mapping(tree, "a workflow", known)
        name = self.required(top, "name", tree, "the workflow")
        message = self.field(top, "initial_message", str, "")
        if not message.strip() and not goal:
            place = top["initial_message"].value.place if "initial_message" in top else tree.place
            self.problem(place, "the workflow has no 'initial_message'", "add one, or give the goal with --input")
        agents = [self._agent(item) for item in self._some(top, "agents", tree)]
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
            max_turns=self._turns(top),
            exit_conditions=tuple(exits),
            guide=guide,
            source=source,
        )

    def _some(self, top: dict[str, Entry], key: str, tree: Value) -> list[Value]:
        items = self.items(top.get(key), f"{key!r}")
        if not items and (key not in top or top[key].value.value in (None, [])):
            self.problem(top[key].value.place if key in top else tree.place, f"the workflow has no {key}")
        return items

    def _turns(self, top: dict[str, Entry]) -> int:
        turns = self.field(top, "max_turns", int, 10)
        if not 1 <= turns <= MOST_TURNS:
            self.problem(top["max_turns"].value.place, f"'max_turns' must be 1 or more, but this is {turns}")
        return turns

    def _agent(self, item: Value) -> Agent:
        fields = self.mapping(item, "an agent", ("name", "type"))
        kind = self.required(fields, "type", item, "the agent") if fields else ""
        if kind and kind not in TYPES:
            self.problem(fields["type"].value.place, f"there is no agent type {kind!r}", did_you_mean(kind, TYPES))
        return Agent(name=self.required(fields, "name", item, "the agent") if fields else "", type=kind)

    def _state(self, item: Value, agents: set[str]) -> State:
        fields = self.mapping(item, "a state", ("name", "agent", "start", "prompt", "transitions"))
        if not fields:
            return State(name="", agent="", prompt="")
        name = self.required(fields, "name", item, "the state")
        if name == END:
            self.problem(fields["name"].value.place, f"{END!r} is where a workflow ends and cannot be a state's name")
        agent = self.required(fields, "agent", item, f"the state {name!r}")
        if agent and agent not in agents:
            self.problem(
                fields["agent"].value.place, f"there is no agent {agent!r}", did_you_mean(agent, sorted(agents))
            )
        prompt = self.required(fields, "prompt", item, f"the state {name!r}")
        if prompt:
            self._template(fields["prompt"].value)
        self.field(fields, "start", bool, False)
        transitions = [self._transition(t) for t in self.items(fields.get("transitions"), "'transitions'")]
        return State(name=name, agent=agent, prompt=prompt, transitions=tuple(transitions), line=item.place.line)

    def _template(self, value: Value) -> None:
        try:
            template.parse(value.value, VARIABLES)
        except template.TemplateError as error:
            self.problem(place_inside(value, error.offset), str(error))

    def _transition(self, item: Value) -> Transition:
        fields = self.mapping(item, "a transition", ("to", "condition"))
        to = self.required(fields, "to", item, "the transition") if fields else ""
        return Transition(to=to, condition=self._condition(fields), line=item.place.line)

    def _condition(self, fields: dict[str, Entry]) -> str:
        entry = fields.get("condition")
        if entry is not None and isinstance(entry.value.value, bool):
            return "true" if entry.value.value else "false"
        source = self.field(fields, "condition", str, "")
        try:
            condition.parse(source)
        except condition.ConditionError as error:
            assert entry is not None
            caret = f"{source.splitlines()[0]!r} at character {error.column + 1}"
            self.problem(place_inside(entry.value, error.column), f"the condition cannot be read: {error}", caret)
            return ""
        return source

    def _exit(self, item: Value) -> ExitCondition:
        fields = self.mapping(item, "an exit condition", ("condition", "action"))
        action = self.required(fields, "action", item, "the exit condition") if fields else ""
        if action and action not in ACTIONS:
            self.problem(fields["action"].value.place, f"there is no action {action!r}", did_you_mean(action, ACTIONS))
        if fields and "condition" not in fields:
            self.problem(item.place, "the exit condition has no 'condition'", "add `condition: …`")
        return ExitCondition(condition=self._condition(fields), action=action, line=item.place.line)

    def _unique(self, entry: Entry | None, what: str) -> None:
        seen: dict[str, int] = {}
        for name in self._names(entry):
            if name.value in seen:
                self.problem(name.place, f"the {what} {name.value!r} stands in line {seen[name.value]} already")
            else:
                seen[name.value] = name.place.line

    def _names(self, entry: Entry | None) -> list[Value]:
        items = entry.value.value if entry and isinstance(entry.value.value, list) else []
        named = [item.value["name"].value for item in items if isinstance(item.value, dict) and "name" in item.value]
        return [name for name in named if isinstance(name.value, str)]

    def _targets(self, entry: Entry | None, states: set[str]) -> None:
        for item in entry.value.value if entry and isinstance(entry.value.value, list) else []:
            if not isinstance(item.value, dict) or "transitions" not in item.value:
                continue
            transitions = item.value["transitions"].value.value
            for transition in transitions if isinstance(transitions, list) else []:
                to = transition.value.get("to") if isinstance(transition.value, dict) else None
                if to and isinstance(to.value.value, str) and to.value.value not in states | {END}:
                    hint = did_you_mean(to.value.value, [*sorted(states), END])
                    self.problem(to.value.place, f"there is no state {to.value.value!r}", hint)

    def _start(self, entry: Entry | None, states: list[State]) -> str:
        marked: list[tuple[str, Value]] = []
        for item, state in zip(entry.value.value if entry and states else [], states, strict=False):
            start = item.value.get("start") if isinstance(item.value, dict) else None
            if start and start.value.value is True:
                marked.append((state.name, start.value))
        for name, value in marked[1:]:
            self.problem(value.place, f"{name!r} is a second start state", f"the first is {marked[0][0]!r}; keep one")
        return marked[0][0] if marked else (states[0].name if states else "")
