"""Regular expressions that come from outside: only those that cannot take long are taken.

Python's engine tries one way after the other, so the ways are counted: every choice multiplies them. What a loop goes
round must have one length and no choice in it, or the ways would grow exponentially. A loop that only optional parts
follow is never tried again, and costs nothing.
"""

import re
import re._constants as parts  # type: ignore[import-not-found]  # Python's own, without stubs
import re._parser as parser  # type: ignore[import-not-found]
import warnings
from collections.abc import Iterable, Sequence
from math import comb
from typing import Any

from .actions import LONGEST_MATCHED
from .schema import LONGEST_PATTERN

MOST_STEPS = 5_000_000
"""Of one pattern: less than a tenth of a second."""
MOST_STEPS_IN_ALL = 20_000_000

Node = tuple[Any, Any]
_REPEATS = (parts.MAX_REPEAT, parts.MIN_REPEAT, parts.POSSESSIVE_REPEAT)
_ASSERTIONS = (parts.ASSERT, parts.ASSERT_NOT)
_SINGLE = (parts.LITERAL, parts.NOT_LITERAL, parts.IN, parts.ANY)


class SlowPattern(Exception):
    """A pattern that is not taken; says why."""


def steps_of(pattern: str) -> int:
    """About how many steps a comparison takes at most. Raises `SlowPattern`, also for what is not a pattern."""
    if len(pattern) > LONGEST_PATTERN:
        raise SlowPattern(f"it has {len(pattern)} characters; at most {LONGEST_PATTERN} can be")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parsed = parser.parse(pattern)
            re.compile(pattern)
    except (re.error, RecursionError, OverflowError, ValueError) as error:
        raise SlowPattern(f"it is not a regular expression: {error}") from error
    nodes: list[Node] = list(parsed)
    loops, ways = _count(nodes)
    tries = loops + (0 if _is_anchored(nodes, parsed.state.flags) else 1)
    steps = ways * comb(LONGEST_MATCHED + tries, tries)
    if steps > MOST_STEPS:
        raise SlowPattern(f"it could take too long: {loops} loops, and {ways} ways through its other choices")
    return steps


def _is_anchored(nodes: list[Node], flags: int) -> bool:
    """Whether a match can begin only where the message does."""
    if not nodes or nodes[0][0] is not parts.AT:
        return False
    return nodes[0][1] is parts.AT_BEGINNING_STRING or (nodes[0][1] is parts.AT_BEGINNING and not flags & re.MULTILINE)


def _count(nodes: Sequence[Node], is_tail: bool = True) -> tuple[int, int]:
    """The loops that are tried again, and the ways through all other choices.

    `is_tail`: nothing that could fail comes after these nodes.
    """
    loops, ways = 0, 1
    for number, node in enumerate(nodes):
        more, times = _count_one(node, is_tail and _can_be_empty(nodes[number + 1 :]))
        loops, ways = loops + more, ways * times
    return loops, ways


def _count_one(node: Node, is_tail: bool) -> tuple[int, int]:
    kind, what = node
    if kind in _SINGLE or kind is parts.AT:
        return 0, 1
    if kind in _REPEATS:
        return _repeat(*what, is_tail=is_tail)
    if kind is parts.SUBPATTERN:
        return _count(list(what[-1]), is_tail)
    if kind is parts.ATOMIC_GROUP:
        return _count(list(what), is_tail=False)
    if kind is parts.BRANCH:
        counted = [_count(list(branch), is_tail) for branch in what[1]]
        return max(loops for loops, _ in counted), sum(ways for _, ways in counted)
    if kind in _ASSERTIONS:
        return _count(list(what[1]), is_tail=False)
    raise SlowPattern(f"it has a part that is not taken here ({str(kind).lower()}), such as a back-reference")


def _repeat(least: int, most: int, body: Iterable[Node], *, is_tail: bool) -> tuple[int, int]:
    nodes = list(body)
    if most <= 1:
        loops, ways = _count(nodes, is_tail)
        return loops, ways + (least == 0)
    if not all(_is_fixed(node) for node in nodes):
        raise SlowPattern("it has a choice or a loop within a loop, which can take for ever")
    if is_tail or least == most:
        return 0, 1
    return (1, 1) if most - least >= LONGEST_MATCHED // 10 else (0, most - least + 1)


def _is_fixed(node: Node) -> bool:
    kind, what = node
    if kind is parts.SUBPATTERN:
        return all(_is_fixed(one) for one in what[-1])
    return kind in _SINGLE


def _can_be_empty(nodes: Sequence[Node]) -> bool:
    """Whether nodes match nothing at all, whatever comes: every one of them is optional."""
    return all(
        (kind in _REPEATS and what[0] == 0) or (kind is parts.SUBPATTERN and _can_be_empty(list(what[-1])))
        for kind, what in nodes
    )
