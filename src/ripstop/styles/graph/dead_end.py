"""Why no transition of a state holds: the values that its conditions saw, and which of them could not be compared.

- A decision that is missing, or of another type than what it is compared with, makes a comparison false whatever
  the agent meant. So each condition is evaluated once more with such comparisons as *unknown*.
- A decision that is not compared with anything is false if it is missing, which is what the author can rely on. Only
  if the agent decided something of almost the same name (`Approved`) is it unknown.
- A condition that then is neither true nor false could hold if the agent decided properly: its decisions are worth
  another question. If every condition is false either way, asking again would not help.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from .. import condition
from ..condition import MISSING, And, Compare, Expression, Literal, Name, Not, Or
from .definition import State
from .schema import is_engine_name

Lookup = Callable[[str], Any]

MOST_SHOWN = 60
"""Characters of a value that are shown: an agent can decide on a whole book."""
MOST_NAMED = 8
"""Decisions that are named in one message."""


class DeadEnd(Struct, frozen=True):
    problems: tuple[str, ...]
    """What was wrong with the decisions that kept a condition from holding; empty if nothing was."""
    values: tuple[str, ...]
    """Every decision that the conditions name, with the value it had."""

    def __str__(self) -> str:
        return "; ".join((self.problems or self.values)[:MOST_NAMED])


def explain_dead_end(here: State, decisions: Mapping[str, Any], lookup: Lookup) -> DeadEnd:
    """Why none of the transitions of `here` holds. `lookup` is what evaluated them."""
    unfit: dict[str, None] = {}
    compared: dict[str, dict[str, Any]] = {}
    for _, _, node in here.ways:
        found: dict[str, None] = {}
        if _holds(node, lookup, decisions, found) is None:
            unfit |= found
        _compared(node, lookup, compared)
    problems = tuple(_problem(name, lookup(name), compared[name], decisions) for name in unfit)
    values = tuple(_value(name, lookup(name), against) for name, against in compared.items())
    return DeadEnd(problems, values)


def wrongly_typed(here: State, decisions: Mapping[str, Any]) -> list[str]:
    """What is wrong with decisions that are of another type than all that the transitions compare them with."""
    return [
        _problem(name, decisions[name], {_shown(value): value for value in values}, decisions)
        for name, values in here.compared.items()
        if name in decisions and not any(condition.comparable(decisions[name], value) for value in values)
    ]


def _holds(node: Expression, lookup: Lookup, decisions: Mapping[str, Any], unfit: dict[str, None]) -> bool | None:
    """Whether a condition holds; none if that depends on decisions that are missing or of the wrong type."""
    match node:
        case Name(name=name):
            value = lookup(name)
            if value is MISSING and _misspelt(name, decisions):
                unfit[name] = None
                return None
            return bool(value)
        case Compare(operator=symbol, left=left, right=right):
            values = condition.evaluate(left, lookup), condition.evaluate(right, lookup)
            blamed = [] if condition.comparable(*values) else _blamed((left, right), lookup)
            unfit |= dict.fromkeys(blamed)
            return None if blamed else condition.compare(symbol, *values)
        case Not(operand=operand):
            inner = _holds(operand, lookup, decisions, unfit)
            return None if inner is None else not inner
        case And(left=left, right=right) | Or(left=left, right=right):
            decisive = isinstance(node, Or)
            first = _holds(left, lookup, decisions, unfit)
            if first is decisive:
                return decisive
            second = _holds(right, lookup, decisions, unfit)
            return decisive if second is decisive else None if first is None or second is None else not decisive
    return bool(condition.evaluate(node, lookup))


def _blamed(sides: tuple[Expression, Expression], lookup: Lookup) -> list[str]:
    """The decisions because of which two sides cannot be compared: those that are missing, else both."""
    names = [side.name for side in sides if isinstance(side, Name) and not is_engine_name(side.name)]
    return [name for name in names if lookup(name) is MISSING] or names


def _compared(node: Expression, lookup: Lookup, found: dict[str, dict[str, Any]]) -> None:
    """What each name of a condition is compared with: as it is written, and the value."""
    match node:
        case Name(name=name):
            found.setdefault(name, {})
        case Compare(left=left, right=right):
            for side, other in ((left, right), (right, left)):
                if isinstance(side, Name):
                    value = condition.evaluate(other, lookup)
                    written = other.name if isinstance(other, Name) else _shown(value)
                    found.setdefault(side.name, {})[written] = value
                elif not isinstance(side, Literal):
                    _compared(side, lookup, found)
        case Not(operand=operand):
            _compared(operand, lookup, found)
        case And(left=left, right=right) | Or(left=left, right=right):
            _compared(left, lookup, found)
            _compared(right, lookup, found)


def _problem(name: str, value: Any, against: Mapping[str, Any], decisions: Mapping[str, Any]) -> str:
    if value is MISSING:
        said = f"{name} is missing"
        wrong = _misspelt(name, decisions)
        if wrong:
            said += f", but {_shown(wrong)} is there (did you mean {_shown(name)}?)"
    else:
        wanted = type_name(next(iter(against.values()), True))
        said = f"{name} is {described(value)}" + (f", not {wanted}" if wanted not in ("", type_name(value)) else "")
    return f"{said}; the transitions compare it with {', '.join([*against][:MOST_NAMED])}" if against else said


def _misspelt(name: str, decisions: Mapping[str, Any]) -> str:
    """The decision that was perhaps meant: its name differs only in case, spaces, hyphens or underscores."""
    wanted = _plain(name)
    return next((given for given in decisions if len(given) < 2 * len(name) + 9 and _plain(given) == wanted), "")


def _plain(name: str) -> str:
    return "".join(name.casefold().replace("-", "").replace("_", "").split())


def _value(name: str, value: Any, against: Mapping[str, Any]) -> str:
    said = f"{name} is {described(value)}"
    near = _other_case(value, against.values())
    return f"{said} (did you mean {_shown(near)}?)" if near else said


def _other_case(value: Any, against: Any) -> str:
    """The text that a value is compared with and differs from only in case or in spaces around it."""
    if not isinstance(value, str) or len(value) > MOST_SHOWN or value in against:
        return ""
    texts = (other for other in against if isinstance(other, str))
    return next((text for text in texts if text.casefold().strip() == value.casefold().strip()), "")


def described(value: Any) -> str:
    """A value as a message names it: `the text "9"`, `true`, `a list`."""
    kind = type_name(value)
    if value is MISSING:
        return "missing"
    if value is None or isinstance(value, bool):
        return _shown(value)
    return f"{kind.replace('a ', 'the ', 1)} {_shown(value)}" if isinstance(value, str | int | float) else kind


def type_name(value: Any) -> str:
    """What a value is, with its article; nothing for a value that is missing."""
    if isinstance(value, bool):
        return "true or false"
    names = {int: "a number", float: "a number", str: "a text", list: "a list", dict: "an object", type(None): "null"}
    return names.get(type(value), "")


def _shown(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return str(value).lower().replace("none", "null")
    text = value if isinstance(value, str) else repr(value)
    text = text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"
    return json.dumps(text, ensure_ascii=False) if isinstance(value, str) else text
