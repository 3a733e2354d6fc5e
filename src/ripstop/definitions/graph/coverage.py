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

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ripstop.styles import condition
from ripstop.styles.condition import And, Compare, Expression, Literal, Name, Not, Or
from ripstop.styles.graph.dead_end import type_name
from ripstop.styles.graph.definition import END, SAVE, Graph, State
from ripstop.styles.graph.schema import is_engine_name

from .cases import Cases, Choices, choices

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
