"""The cases that conditions can tell apart: which values each field may have, and all their combinations.

A case is a combination of values, one for each field. Cases are numbered; a set of cases is an int with the bits
of its cases set. The value of the first field changes slowest.
"""

from collections.abc import Iterable
from math import prod
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ripstop.styles.condition import Compare, Expression, Literal, Name

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
