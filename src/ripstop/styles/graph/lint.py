"""What an author of a graph would want to know although it runs: warnings, each with its place and a suggestion.

Only graphs without errors are checked, so the tree has the shape that the graph has.
"""

import re
from collections.abc import Iterator
from typing import Any

from ripstop.definitions.problems import WARNING, Problem, in_order, nearest
from ripstop.definitions.yaml_tree import Value, YamlEntry

from . import condition
from .condition import And, Expression, Name, Not, Or
from .coverage import (
    EXCEEDED,
    CaseGap,
    Comparisons,
    Coverage,
    Dead,
    can_hold,
    cover,
    lint_engine_names,
    lint_outcomes,
    lint_speakers,
    lint_values,
    mentions,
    uncovered_oddities,
    warning,
    warning_inside,
)
from .definition import END, NEVER_WRITES, OUTCOME, Graph, State, Transition, allowed_tools
from .parsing import Written
from .prompts import ENGINE_NAMES, is_engine_name
from .view import show

GUIDE = re.compile(r"\{\{\s*COLLABORATION_GUIDE\s*\}\}")
OLD_VARIABLE = re.compile(r"\{\{\s*turn_count\s*\}\}")
OPENING = re.compile(r"\{\{|\{%")
CLOSING = {"{{": "}}", "{%": "%}"}
NEVER = ("never", "false")
OLD_COUNTER = "turn_count"


def lint_graph(written: Written) -> list[Problem]:
    return in_order(_Linter(written).problems())


class _Linter:
    def __init__(self, written: Written) -> None:
        self._graph: Graph = written.graph
        self._tree = written.tree
        self._top: dict[str, YamlEntry] = written.tree.value
        self._states: list[Value] = self._top["states"].value.value
        self._comparisons = Comparisons(self._graph)
        self._coverage = {state.name: cover(self._graph, state) for state in self._graph.states}

    def problems(self) -> Iterator[Problem]:
        yield from self._whole()
        for state, item in zip(self._graph.states, self._states, strict=True):
            if state.workflow:
                yield from self._input(item.value.get("input"))
            else:
                yield from self._prompt(item.value["prompt"].value)
                yield from lint_engine_names(self._graph, item.value["prompt"].value)
            yield from self._conditions(state, item)
            yield from self._covered(state, item)
        yield from self._exits()
        yield from self._ways()

    # The workflow

    def _whole(self) -> Iterator[Problem]:
        if "max_turns" not in self._top:
            text = f"'max_turns' is not set, so {self._graph.max_turns} turns are allowed"
            yield warning(self._tree, text, f"add `max_turns: {self._graph.max_turns}`")
        if not any(_true(item.value.get("start")) for item in self._states):
            text = f"no state has `start: true`, so the workflow begins with the first, {self._graph.start!r}"
            yield warning(self._states[0], text, "add `start: true` to it")
        used = {state.agent for state in self._graph.states}
        for item in self._top["agents"].value.value if "agents" in self._top else ():
            name = item.value["name"].value
            if name.value not in used:
                yield warning(name, f"the agent {name.value!r} has no state", "give it one, or remove it")
            yield from _never_writes(item.value)
        yield from lint_values(self._graph, self._top)

    def _exits(self) -> Iterator[Problem]:
        entry = self._top.get("exit_conditions")
        items = (entry.value.value or []) if entry else []
        mentioned = {name.name for state in self._graph.states for name in _names(state)}
        for exit_condition, item in zip(self._graph.exit_conditions, items, strict=True):
            written = item.value["condition"].value
            possible, avoidable = can_hold(self._graph, exit_condition.condition)
            if possible and not avoidable:
                text = "this exit condition holds after every turn, so the first turn is the last"
                yield warning(written, text, "name a decision, or a name of the engine such as max_turns_exceeded")
            node = condition.parse(exit_condition.condition)
            yield from self._comparisons.lint(node, written, "", " ".join(map(self._told, self._graph.states)))
            for name in condition.names(node):
                yield from self._engine_name(name, written)
                near = nearest(name.name, ENGINE_NAMES)
                if near and name.name not in (*ENGINE_NAMES, *mentioned):
                    text = f"{name.name!r} is not a name of the engine, so it is taken for a decision"
                    yield warning_inside(written, name.column, text, f"did you mean {near!r}?")

    # A state's words

    def _prompt(self, prompt: Value) -> Iterator[Problem]:
        if not GUIDE.search(prompt.value):
            yield warning(prompt, "the prompt lacks {{COLLABORATION_GUIDE}}", "begin the prompt with it")
        yield from self._template(prompt, "the agent")

    def _input(self, entry: YamlEntry | None) -> Iterator[Problem]:
        if entry is not None and entry.value.value:
            yield from self._template(entry.value, "the workflow")

    def _template(self, prompt: Value, reader: str) -> Iterator[Problem]:
        text: str = prompt.value
        yield from lint_speakers(self._graph, prompt)
        for found in OLD_VARIABLE.finditer(text):
            yield warning_inside(prompt, found.start(), "{{turn_count}} is deprecated", "leave it out")
        for opening, start in _without_tags(text)[1].items():
            problem = f"{opening!r} is never closed, so {reader} sees it as it is"
            yield warning_inside(prompt, start, problem, f"close it with {CLOSING[opening]}")

    def _conditions(self, state: State, item: Value) -> Iterator[Problem]:
        entry = item.value.get("transitions")
        told = self._told(state)
        undescribed: set[str] = set()
        for (_, transition, node), written in zip(state.ways, (entry.value.value or []) if entry else [], strict=True):
            if "condition" not in written.value:
                continue
            place = written.value["condition"].value
            yield from self._comparisons.lint(node, place, state.prompt, told)
            yield from _used_up(transition, node, place)
            if state.workflow:
                yield from lint_outcomes(node, place)
            for name in condition.names(node):
                yield from self._engine_name(name, place)
                if state.workflow:
                    continue  # what its result has is known when it has ended
                if not is_engine_name(name.name) and name.name not in undescribed and not mentions(told, name.name):
                    undescribed.add(name.name)
                    near = nearest(name.name, [known for known in ENGINE_NAMES if known != OLD_COUNTER])
                    hint = f"did you mean {near!r}?" if near else "say in the prompt what it means"
                    text = f"the prompt of {state.name!r} does not describe the decision {name.name!r}"
                    yield warning_inside(place, name.column, text, hint)

    def _told(self, state: State) -> str:
        """All that an agent reads in a state, as far as it is written down before the run."""
        return _without_tags(state.prompt)[0] + (self._graph.guide if GUIDE.search(state.prompt) else "")

    def _engine_name(self, name: condition.Name, written: Value) -> Iterator[Problem]:
        if name.name == OLD_COUNTER:
            yield warning_inside(written, name.column, "turn_count is deprecated", "write turns")
        of = name.name.removeprefix(f"{OLD_COUNTER}_")
        if of != name.name and self._graph.state(of) is None:
            near = nearest(of, [state.name for state in self._graph.states])
            hint = f"did you mean '{OLD_COUNTER}_{near}'?" if near else ""
            yield warning_inside(written, name.column, f"there is no state {of!r} whose turns could be counted", hint)

    # A state's ways on

    def _covered(self, state: State, item: Value) -> Iterator[Problem]:
        if not state.transitions:
            return
        entry: YamlEntry = item.value["transitions"]
        coverage = self._coverage[state.name]
        if coverage is None:
            text = f"whether the transitions of {state.name!r} cover every case was not checked: there are too many"
            yield Problem(entry.key, text, "let them look at fewer decisions", WARNING)
            return
        for dead in coverage.dead:
            if state.transitions[dead.index].condition.strip() not in NEVER:
                yield self._dead(state, entry.value.value[dead.index], dead)
        if state.workflow and OUTCOME in state.names:
            return  # an outcome that no transition takes fails the run, with the reason
        if coverage.gap is not None:
            text = f"no transition of {state.name!r} holds when {_example(coverage.gap)}; the workflow ends there"
            yield Problem(entry.key, text, _way_on(state), WARNING)
            return
        oddities = [] if state.workflow else uncovered_oddities(self._graph, state)
        if oddities:
            when = ", or ".join(map(_odd, oddities))
            then = "the agent is asked again, and then the workflow ends" if self._graph.reasks else "the workflow ends"
            text = f"no transition of {state.name!r} holds when {when}; {then} there"
            yield Problem(entry.key, text, "add a last transition without a condition", WARNING)

    def _dead(self, state: State, written: Value, dead: Dead) -> Problem:
        place: Value = written.value["condition"].value if "condition" in written.value else written
        to = f"the transition to {state.transitions[dead.index].to!r}"
        if dead.at_limit:
            text = f"{to} can never fire: it holds only after the last turn, when only a transition to {END} counts"
            return warning(place, text, f"lead it to {END}, or let it hold earlier, such as `turns >= …`")
        if not dead.because and not dead.by_exit:
            return warning(place, f"{to} can never fire: its condition cannot hold", "change or remove it")
        lines = [str(state.transitions[index].line) for index in dead.because]
        who = [f"the transition{'s' * (len(lines) > 1)} in line {' and '.join(lines)}"] if lines else []
        who += ["the exit conditions"] * dead.by_exit
        text = f"{to} can never fire: {' and '.join(who)} always come{'s' * (len(who) + len(lines) == 2)} first"
        return warning(place, text, "move it up, or remove it")

    # The graph

    def _ways(self) -> Iterator[Problem]:
        ways = {state.name: self._onward(state) for state in self._graph.states}
        items = dict(zip(ways, self._states, strict=True))
        reached = _closure({self._graph.start}, ways)
        for name, item in items.items():
            if name not in reached:
                text = f"the state {name!r} can never be reached from {self._graph.start!r}"
                yield warning(item.value["name"].value, text, "lead a transition to it, or remove it")
        if any(can_hold(self._graph, each.condition)[0] for each in self._graph.exit_conditions):
            return
        trapped = [name for name in ways if name in reached and END not in _closure({name}, ways)]
        while trapped:
            together = [name for name in trapped if name in _closure({trapped[0]}, ways)]
            text = f"from {', '.join(map(repr, together))} no way leads to END; only 'max_turns' ends it"
            yield warning(items[together[0]].value["name"].value, text, f"add a transition to {END}")
            trapped = [name for name in trapped if name not in together and not _closure({name}, ways) & {*together}]

    def _onward(self, state: State) -> set[str]:
        """Where a state can lead: END too if a case is not covered or it has no transitions."""
        coverage = self._coverage[state.name] or Coverage(None)
        dead = {each.index for each in coverage.dead}
        onward = {each.to for index, each in enumerate(state.transitions) if index not in dead}
        return onward | {END} if not state.transitions or coverage.gap is not None else onward


def _true(entry: YamlEntry | None) -> bool:
    return entry is not None and entry.value.value is True


def _names(state: State) -> list[condition.Name]:
    return [name for each in state.transitions for name in condition.names(condition.parse(each.condition))]


def _without_tags(text: str) -> tuple[str, dict[str, int]]:
    """A prompt's own words, and where tags begin that are never closed (the first of each kind)."""
    words: list[str] = []
    unclosed: dict[str, int] = {}
    at = 0
    while opening := OPENING.search(text, at):
        words.append(text[at : opening.start()])
        closing = CLOSING[opening[0]]
        end = -1 if opening[0] in unclosed else text.find(closing, opening.end())
        if end < 0:
            unclosed.setdefault(opening[0], opening.start())
        at = opening.end() if end < 0 else end + len(closing)
    return "".join([*words, text[at:]]), unclosed


def _never_writes(agent: dict[str, YamlEntry]) -> Iterator[Problem]:
    """Tools in an agent's list that its type may not use."""
    listed = (agent["tools"].value.value if "tools" in agent else None) or ()
    if agent["type"].value.value != NEVER_WRITES:
        return
    for tool in listed:
        if tool.value not in allowed_tools(NEVER_WRITES, (tool.value,)):
            text = f"an agent of type {NEVER_WRITES!r} never writes, so it cannot call {tool.value!r}"
            yield warning(tool, text, "remove it, or make the agent a coder")


def _used_up(transition: Transition, node: Expression, written: Value) -> Iterator[Problem]:
    """`done OR max_turns_exceeded` on the way to a state: the second part has no effect."""
    names = [] if transition.to == END or isinstance(node, Name) else _affirmed(node)
    for name in names:
        if name.name == EXCEEDED:
            text = f"{EXCEEDED} cannot lead to {transition.to!r}: after the last turn only a transition to {END} counts"
            yield warning_inside(written, name.column, text, f"lead it to {END}, or compare turns")


def _affirmed(node: Expression, positive: bool = True) -> list[Name]:
    """The names that make a condition hold by being true."""
    match node:
        case Name():
            return [node] if positive else []
        case Not(operand=operand):
            return _affirmed(operand, not positive)
        case And(left=left, right=right) | Or(left=left, right=right):
            return _affirmed(left, positive) + _affirmed(right, positive)
    return []


def _odd(oddity: CaseGap) -> str:
    wrong = f"not {oddity.kind}" if oddity.kind else "of another type"
    return f"{oddity.name} is {' or '.join(['missing'] * oddity.missing + [wrong] * oddity.wrong)}"


def _example(gap: dict[str, Any]) -> str:
    return ", ".join(f"{name}={_shown(value)}" for name, value in gap.items()) or "anything is decided"


def _shown(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else show(value)


def _way_on(state: State) -> str:
    if len(state.transitions) == 1:
        only = state.transitions[0].condition.strip()
        return f"add a transition with `condition: NOT {only if only.isidentifier() else f'({only})'}`"
    return "add a last transition without a condition, or with one for this case"


def _closure(start: set[str], ways: dict[str, set[str]]) -> set[str]:
    """Everything that can be reached."""
    reached, rest = set(start), list(start)
    while rest:
        new = ways.get(rest.pop(), set()) - reached
        reached |= new
        rest += new
    return reached
