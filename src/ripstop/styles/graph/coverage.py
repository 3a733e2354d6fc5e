"""What a state's conditions cover, found by checking every case.

The condition language is decidable: a condition can tell apart only finitely many values of a field. A boolean
field has two; a number is below, at, between or above the numbers it is compared with; a text is one of those
it is compared with, or another. So all cases can be listed, and a condition becomes a set of cases. A set is one
large int with a bit for each case, which makes AND, OR and NOT single operations.

- More than `MOST_CASES` cases are not checked; then `cover` returns `None`.
- A field that the agent leaves out, or gives another type, is not a case of `cover`: the run asks the agent again.
  `uncovered_oddities` returns the fields that need that.
- Names that the engine knows are also cases, as far as they can vary: `turns` counts from 1; `error_occurred` is
  false whenever transitions are tried. A decision with an engine's name is not considered.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ripstop.definitions.problems import WARNING, Problem, did_you_mean
from ripstop.definitions.yaml_tree import Value, YamlEntry
from ripstop.kernel.events import OUTCOMES

from . import condition, template
from .condition import And, Compare, Expression, Literal, Name, Not, Or
from .definition import END, OUTCOME, SAVE, Graph, State
from .flow import described, type_name
from .prompts import ENGINE_NAMES, TURNS_OF, is_engine_name, shown_decisions

# The cases that conditions can tell apart: which values each field may have, and all their combinations.
#
# A case is a combination of values, one for each field. Cases are numbered; a set of cases is an int with the bits
# of its cases set. The value of the first field changes slowest.


ORDERINGS = ("<", ">", "<=", ">=")
MOST_LINKS = 6
"""Comparisons of one field with another; with more there are too many cases anyway."""
LARGEST = 2**53
"""Up to here numbers lie close enough to find one between two others."""


class Choices(Struct, frozen=True):
    """How a field is used, and so the values that it may have."""

    literals: tuple[Any, ...] = ()
    """What it is compared with."""
    bare: bool = False
    """Whether it is used alone, as true or false."""
    ordered: bool = False
    company: int = 1
    """How many fields it is compared with, itself among them: that many values between two literals differ."""
    fixed: tuple[Any, ...] = ()

    @classmethod
    def whole(cls, literals: Iterable[Any], least: int, most: int | None) -> "Choices":
        """Choices of a counter that runs from `least` to `most`."""
        near = {least, least + 1} if most is None else {least, most}
        for literal in literals:
            if isinstance(literal, int | float) and not isinstance(literal, bool) and abs(literal) < 10**9:
                near |= {int(literal) - 1, int(literal), int(literal) + 1}
        inside = sorted(n for n in near if n >= least and (most is None or n <= most))
        return cls(literals=tuple(literals), fixed=tuple(inside))

    def values(self) -> list[Any]:
        if self.fixed:
            return list(self.fixed)
        numbers = sorted({x for x in self.literals if isinstance(x, int | float) and not isinstance(x, bool)})
        texts = sorted({x for x in self.literals if isinstance(x, str)})
        if self.ordered and not numbers and not texts:
            numbers = [0]  # compared with other fields only: numbers do as well as anything
        boolean = any(isinstance(x, bool) for x in self.literals) or not (numbers or texts)
        found: list[Any] = [False, True] if boolean else []
        if numbers:
            found += _numbers(sorted({*numbers, 0}) if self.bare else numbers, self.company)
        if texts:
            found += _texts(texts, self.bare, self.ordered, self.company)
        return found


def _numbers(literals: list[Any], company: int) -> list[Any]:
    """Below, at, between and above the literals; as many in each place as there are fields to tell apart."""
    found: list[Any] = [literals[0] - company + i for i in range(company)]
    for low, high in zip(literals, [*literals[1:], None], strict=True):
        found.append(low)
        if high is None or (high - low > company and isinstance(low, int)):
            found += [low + 1 + i for i in range(company)]
        else:
            found += [low + (high - low) * (i + 1) / (company + 1) for i in range(company)]
    return list(dict.fromkeys(found))


def _texts(literals: list[str], bare: bool, ordered: bool, company: int) -> list[Any]:
    others = [f"something else{f' {i + 1}' if i else ''}" for i in range(company)]
    found = ([""] if bare or ordered else []) + literals + [other for other in others if other not in literals]
    if ordered:
        found += [f"{text}{'a' * (i + 1)}" for text in literals for i in range(company)]
    return list(dict.fromkeys(found))


def choices(nodes: Iterable[Expression]) -> dict[str, Choices] | None:
    """The fields of some conditions, in the order in which they appear, and how each is used.

    `None` if that is beyond what can be listed.
    """
    found: dict[str, Choices] = {}
    links: set[tuple[str, str]] = set()
    for node in nodes:
        _collect(node, found, links)
    numbers = [x for each in found.values() for x in each.literals if isinstance(x, int | float)]
    if len(links) > MOST_LINKS or any(abs(number) > LARGEST for number in numbers):
        return None
    for left, right in sorted(links) * len(links):  # what one field is compared with reaches the others step by step
        both = tuple(_distinct(found[left].literals + found[right].literals))
        ordered = found[left].ordered or found[right].ordered
        for name in (left, right):
            found[name] = replace(found[name], literals=both, ordered=ordered, company=len(links) + 1)
    return found


def _collect(node: Expression, found: dict[str, Choices], links: set[tuple[str, str]]) -> None:
    if isinstance(node, Name):
        found[node.name] = replace(found.get(node.name, Choices()), bare=True)
        return
    sides = [getattr(node, side) for side in ("left", "right", "operand") if hasattr(node, side)]
    if not isinstance(node, Compare):
        for side in sides:
            _collect(side, found, links)
        return
    fields = [side.name for side in sides if isinstance(side, Name)]
    for name in fields:
        known = found.get(name, Choices())
        # a side that is neither a field nor a value is an expression in brackets, which is true or false
        news = tuple(s.value if isinstance(s, Literal) else True for s in sides if not isinstance(s, Name))
        ordered = known.ordered or node.operator in ORDERINGS
        literals = tuple(_distinct(known.literals + news))
        found[name] = replace(known, literals=literals, ordered=ordered)
    if len({*fields}) == 2:
        links.add((min(fields), max(fields)))
    for side in sides:
        if not isinstance(side, Name):
            _collect(side, found, links)


def _distinct(values: Iterable[Any]) -> list[Any]:
    """Each value once, where 1 and true are two values."""
    return [value for _, value in {(type(v), v): v for v in values}.items()]


class Cases(Struct, frozen=True):
    """All combinations of the values of some fields."""

    all: int
    fields: dict[str, list[tuple[Any, int]]]
    """The values of every field, each with the cases in which the field has it."""
    derived: dict[str, list[tuple[Any, int]]]
    """The same for names whose value follows from a field."""

    @classmethod
    def build(cls, found: dict[str, list[Any]], most: int) -> "Cases | None":
        """`None` if there are more than `most`."""
        size = prod(len(values) for values in found.values())
        if size > most:
            return None
        everything, stride = (1 << size) - 1, 1
        fields: dict[str, list[tuple[Any, int]]] = {}
        for name in reversed(found):
            fields[name] = _spread(found[name], stride, everything)
            stride *= len(found[name])
        return cls(everything, fields, {})

    def values(self, name: str) -> list[tuple[Any, int]]:
        return self.derived[name] if name in self.derived else self.fields[name]

    def example(self, found: int, impossible: int) -> dict[str, Any]:
        """The first of some cases, without the fields that do not matter to it."""
        first = found & -found
        chosen = {name: next(v for v in values if v[1] & first) for name, values in self.fields.items()}
        for name in list(chosen):
            without = {other: value for other, value in chosen.items() if other != name}
            having = self.all
            for _, cases in without.values():
                having &= cases
            if not having & ~found & ~impossible:
                chosen = without
        return {name: value for name, (value, _) in reversed(chosen.items())}


def _spread(values: list[Any], stride: int, everything: int) -> list[tuple[Any, int]]:
    """The cases of each value: a run of `stride` cases, again and again."""
    every_period = everything // ((1 << stride * len(values)) - 1)
    run = (1 << stride) - 1
    return [(value, (run << index * stride) * every_period) for index, value in enumerate(values)]


MOST_CASES = 65_536
EXCEEDED, ERROR = "max_turns_exceeded", "error_occurred"
TURNS, OLD_TURNS = "turns", "turn_count"
Example = dict[str, Any]
NOTHING_ODD: Mapping[str, Sequence[Any]] = {}


class _OtherType:
    """The type of a value that is neither a boolean nor a number nor a text."""


OTHER_TYPE = _OtherType()


class Dead(Struct, frozen=True):
    """A transition that never fires: `because` of these earlier ones; if none, its own condition never holds."""

    index: int
    because: tuple[int, ...] = ()
    by_exit: bool = False
    """Whether exit conditions have a part in it."""
    at_limit: bool = False
    """It holds only when the turns are used up, and then only a transition to END counts."""


class CaseGap(Struct, frozen=True):
    """A field with which no transition holds when it is `missing`, or of the `wrong` type."""

    name: str
    kind: str
    """What the conditions compare it with: a number, a text, true or false; nothing if that differs."""
    missing: bool
    wrong: bool


class Coverage(Struct, frozen=True):
    gap: Example | None
    """Decisions with which no transition holds, if there are any. Only the fields that matter."""
    dead: tuple[Dead, ...] = ()


def cover(graph: Graph, state: State) -> Coverage | None:
    """What the transitions of a state cover; `None` if there are too many cases to tell."""
    nodes = [condition.parse(transition.condition) for transition in state.transitions]
    exits = [condition.parse(exit_condition.condition) for exit_condition in graph.exit_conditions]
    cases = cases_of(graph, [*nodes, *exits])
    if cases is None:
        return None
    everything = cases.all & ~holds(Name(0, ERROR), cases)
    exceeded = holds(Name(0, EXCEEDED), cases)
    # when the turns are used up, a transition to END still counts, whatever the exit conditions say
    left = _union(holds(node, cases) for node in exits) & everything & ~exceeded
    sets = [holds(node, cases) & everything for node in nodes]
    ends = [transition.to == END for transition in state.transitions]
    own = [found if end else found & ~exceeded for found, end in zip(sets, ends, strict=True)]
    dead = [found for index in range(len(sets)) if (found := _dead(index, own[index], sets, left))]
    possible = everything & ~exceeded & ~left
    uncovered = possible & ~_union(sets)
    return Coverage(cases.example(uncovered, cases.all & ~possible) if uncovered else None, tuple(dead))


def uncovered_oddities(graph: Graph, state: State) -> list[CaseGap]:
    """The fields that must be there, and of the right type, for a transition of a state to hold.

    For a state that covers everything else. Fields with too many cases to tell are left out.
    """
    nodes = [node for _, _, node in state.ways]
    compared: dict[str, list[Any]] = {}
    for compare in [compare for node in nodes for compare in condition.comparisons(node)]:
        for side, other in ((compare.left, compare.right), (compare.right, compare.left)):
            if isinstance(side, Name) and not is_engine_name(side.name):
                compared.setdefault(side.name, []).extend([other.value] if isinstance(other, Literal) else [])
    found = [_oddity(graph, nodes, name, literals) for name, literals in compared.items()]
    return [oddity for oddity in found if oddity]


def _oddity(graph: Graph, nodes: Sequence[Expression], name: str, literals: Sequence[Any]) -> CaseGap | None:
    exits = [condition.parse(exit_condition.condition) for exit_condition in graph.exit_conditions]
    cases = cases_of(graph, [*nodes, *exits], {name: (condition.MISSING, OTHER_TYPE)})
    if cases is None:
        return None
    stopped = _union(holds(node, cases) for node in (*exits, Name(0, ERROR), Name(0, EXCEEDED)))
    uncovered = cases.all & ~stopped & ~_union(holds(node, cases) for node in nodes)
    missing, wrong = (
        any(value is odd and uncovered & having for value, having in cases.values(name))
        for odd in (condition.MISSING, OTHER_TYPE)
    )
    kinds = {type_name(literal) for literal in literals}
    return CaseGap(name, kinds.pop() if len(kinds) == 1 else "", missing, wrong) if missing or wrong else None


def can_hold(graph: Graph, source: str) -> tuple[bool, bool]:
    """Whether a condition can hold, and whether it can fail, while turns are left and nothing went wrong."""
    node = condition.parse(source)
    cases = cases_of(graph, [node])
    if cases is None:
        return True, True
    ordinary = cases.all & ~holds(Name(0, ERROR), cases) & ~holds(Name(0, EXCEEDED), cases)
    found = holds(node, cases) & ordinary
    return found != 0, found != ordinary


def cases_of(graph: Graph, nodes: Sequence[Expression], odd: Mapping[str, Sequence[Any]] = NOTHING_ODD) -> Cases | None:
    """Every case that these conditions can tell apart; some fields may have `odd` values besides."""
    found = choices([*nodes, Name(0, ERROR), Name(0, EXCEEDED)])
    if found is None:
        return None
    # a run that was saved and resumed has turns beyond the limit
    saves = any(exit_condition.action == SAVE for exit_condition in graph.exit_conditions)
    most = None if saves else graph.max_turns
    counted = [found.pop(name) for name in (TURNS, OLD_TURNS) if name in found]
    if counted:
        literals = [literal for each in counted for literal in each.literals]
        found[TURNS] = Choices.whole([*literals, graph.max_turns], 1, most)
    for name in [name for name in found if name.startswith(f"{OLD_TURNS}_")]:
        found[name] = Choices.whole(found[name].literals, 0, most)
    if counted and not saves:
        del found[EXCEEDED]
    cases = Cases.build({name: [*each.values(), *odd.get(name, ())] for name, each in found.items()}, MOST_CASES)
    if cases is not None and counted:
        cases.derived[OLD_TURNS] = turns = cases.fields[TURNS]
        if not saves:
            used_up = _union(cases_with for number, cases_with in turns if number >= graph.max_turns)
            cases.derived[EXCEEDED] = [(True, used_up), (False, cases.all & ~used_up)]
    return cases


def holds(node: Expression, cases: Cases) -> int:
    """The cases in which a condition holds."""
    match node:
        case And(left=left, right=right):
            return holds(left, cases) & holds(right, cases)
        case Or(left=left, right=right):
            return holds(left, cases) | holds(right, cases)
        case Not(operand=operand):
            return cases.all & ~holds(operand, cases)
    return _union(found for value, found in _values(node, cases) if value)


def _values(node: Expression, cases: Cases) -> list[tuple[Any, int]]:
    """The values that an expression can have, each with the cases in which it has it."""
    match node:
        case Literal(value=value):
            return [(value, cases.all)]
        case Name(name=name):
            return cases.values(name)
        case Compare(left=left, right=right, operator=operator):
            found = _union(
                here & there
                for x, here in _values(left, cases)
                for y, there in _values(right, cases)
                if condition.compare(operator, x, y)
            )
        case _:
            found = holds(node, cases)
    return [(True, found), (False, cases.all & ~found)]


def _dead(index: int, own: int, sets: list[int], left: int) -> Dead | None:
    """Whether a transition never fires: it could in the cases `own`, and holds in `sets[index]`."""
    if not own:
        return Dead(index, at_limit=sets[index] != 0)
    if own & ~left & ~_union(sets[:index]):
        return None
    for earlier in range(index):
        if not own & ~sets[earlier]:
            return Dead(index, (earlier,))
    part = tuple(earlier for earlier in range(index) if own & ~left & sets[earlier])
    return Dead(index, part, bool(own & left))


def _union(sets: Iterable[int]) -> int:
    union = 0
    for found in sets:
        union |= found
    return union


# Warnings at a value of the tree, or at a character inside it.


def warning(value: Value, text: str, hint: str) -> Problem:
    return Problem(value.place, text, hint, WARNING)


def warning_inside(value: Value, offset: int, text: str, hint: str) -> Problem:
    place, source = value.inside(offset)
    return Problem(place, text, hint, WARNING, source)


# Words of prompts and conditions that do not fit together: warnings about values that can never be equal.
#
# A condition compares exactly: case matters, and a text is never a number or a boolean. So a word that the prompt
# spells otherwise than the condition is almost certainly a slip.


_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_BEFORE, _AFTER = "\"'`“‘「", "\"'`”’」"


def lint_speakers(graph: Graph, prompt: Value) -> Iterator[Problem]:
    """`{% if last_agent_name == "…" %}` with a name that no agent has."""
    agents = [*(agent.name for agent in graph.agents), *graph.workflows]
    for offset, name in template.speakers(prompt.value):
        if name and name not in agents:
            text = f"no agent is named {name!r}, so this {{% if %}} never holds"
            yield warning_inside(prompt, offset, text, did_you_mean(name, agents))


def lint_engine_names(graph: Graph, prompt: Value) -> Iterator[Problem]:
    """A prompt that asks for a decision which the engine's own value hides."""
    names = [*ENGINE_NAMES, *(f"{TURNS_OF}{state.name}" for state in graph.states)]
    for name in names:
        found = re.search(rf"[{_BEFORE}]{re.escape(name)}[{_AFTER}]", prompt.value)
        if found:
            text = f"a decision cannot be named {name!r}: conditions use the engine's own value of that name"
            yield warning_inside(prompt, found.start() + 1, text, "use another name")


def lint_outcomes(node: Expression, written: Value) -> Iterator[Problem]:
    """The outcome of a workflow, compared with a text that is not an outcome."""
    for compare in condition.comparisons(node):
        name, value = _sides(compare)
        if name is not None and name.name == OUTCOME and value not in OUTCOMES:
            text = f"a workflow never ends as {described(value)}, so this comparison says nothing"
            yield warning_inside(written, name.column, text, did_you_mean(str(value), OUTCOMES))


def lint_values(graph: Graph, top: dict[str, YamlEntry]) -> Iterator[Problem]:
    """Values that are declared and that no prompt uses."""
    used = {name for state in graph.states for name in template.variables(state.prompt or state.input)}
    for name in graph.values:
        if name not in used:
            hint = f"write {{{{{name}}}}} in one, or remove it"
            yield Problem(top["values"].value.value[name].key, f"no prompt uses the value {name!r}", hint, WARNING)


class Comparisons:
    """Checks what conditions compare decisions with against what prompts say."""

    def __init__(self, graph: Graph) -> None:
        nodes = [node for state in graph.states for _, _, node in state.ways]
        nodes += [condition.parse(each.condition) for each in graph.exit_conditions]
        self._booleans = {name for node in nodes for name in _booleans(node)}

    def lint(self, node: Expression, written: Value, prompt: str, told: str) -> Iterator[Problem]:
        """Warnings about one condition; `told` is all that the agent reads, without tags."""
        shown = shown_decisions(prompt)
        for compare in condition.comparisons(node):
            name, value = _sides(compare)
            if name is None or is_engine_name(name.name):
                continue
            found = self._as_text(name.name, compare.operator, value, told) or _other_case(name.name, value, told)
            if not found and name.name in shown:
                found = _other_type(name.name, value, shown[name.name])
            if found:
                yield warning_inside(written, name.column, *found)

    def _as_text(self, name: str, operator: str, value: Any, told: str) -> tuple[str, str] | None:
        """A boolean or a number in quotes, unless the prompt asks for just that text."""
        plain = value.strip().lower() if isinstance(value, str) else ""
        is_boolean = plain in ("true", "false")
        if not is_boolean and not _NUMBER.fullmatch(plain):
            return None
        asked_for = any(f"{quote}{value}{quote}" in told for quote in "\"'")
        if asked_for and not (is_boolean and name in self._booleans):
            return None
        kind = "a decision that is true or false" if is_boolean else "a number"
        return f'"{value}" is text, and {kind} is never equal to it', f"did you mean `{name} {operator} {plain}`?"


def _other_case(name: str, value: Any, told: str) -> tuple[str, str] | None:
    """A text that the prompt spells with other capitals."""
    if not isinstance(value, str) or not value.strip() or mentions(told, value):
        return None
    near = re.search(_word(value.strip()), told, re.IGNORECASE)
    if not near:
        return None
    return f'{name!r} is compared with "{value}", but the prompt says "{near[0]}"', f'did you mean "{near[0]}"?'


def _other_type(name: str, value: Any, example: Any) -> tuple[str, str] | None:
    """A value of another type than the one in the prompt's example."""
    if isinstance(example, list | dict) or example is None or condition.comparable(value, example):
        return None
    text = f"{name!r} is compared with {described(value)}, but the prompt shows it as {described(example)}"
    return text, "use one type in both"


def mentions(text: str, name: str) -> bool:
    """Whether a text holds a name as a word. Chinese text may touch it; Latin letters and digits may not."""
    return re.search(_word(name), text) is not None


def _word(text: str) -> str:
    return rf"(?<![A-Za-z0-9_]){re.escape(text)}(?![A-Za-z0-9_])"


def _sides(compare: Compare) -> tuple[Name | None, Any]:
    """The decision and the value of a comparison that has one of each."""
    match compare.left, compare.right:
        case (Name() as name, Literal(value=value)) | (Literal(value=value), Name() as name):
            return name, value
    return None, None


def _booleans(node: Expression) -> set[str]:
    """The names that a condition uses as true or false."""
    compared: set[Name] = set()
    names: set[str] = set()
    for compare in condition.comparisons(node):
        compared |= {side for side in (compare.left, compare.right) if isinstance(side, Name)}
        name, value = _sides(compare)
        if name and isinstance(value, bool):
            names.add(name.name)
    return names | {name.name for name in condition.names(node) if name not in compared}
