"""A hundred thousand generated conditions, each worked out while it is written down.

The generator knows what a text means because it puts the meaning together with the text; it has no parser.
"""

import random
from typing import Any

import pytest

from ripstop.styles.graph.condition import MISSING, evaluate, parse
from tests.styles.graph.test_condition import COMPARISONS, DECISIONS, reference_compare

PARTS, EACH = 4, 25_000
BLANKS = (" ", "  ", "\t", "\n", " \r\n ")
WORDS = {"AND": ("AND", "and", "And"), "OR": ("OR", "or", "oR"), "NOT": ("NOT", "not", "Not")}
OPERANDS: list[tuple[str, Any]] = [
    *DECISIONS.items(),
    *[(name, MISSING) for name in ("gone", "nowhere", "andy", "order", "nothing_", "_", "TRUEST")],
    *[(str(number), number) for number in (-20, -1, 0, 1, 7, 8, 100, 0.0, 0.5, 7.5, 8.0, -1.25)],
    *[("true", True), ("TRUE", True), ("false", False), ("False", False)],
    *[(f'"{text}"', text) for text in ("", "done", "a AND b", "it's", "8", "(", "通过", " ")],
    *[(f"'{text}'", text) for text in ("", "done", 'say "x"', "NOT")],
    ('"a \\"b\\""', 'a "b"'),
    ("'\\\\'", "\\"),
]
SYMBOLS = list(COMPARISONS)

# How strongly the outermost operator binds
OR, AND, NOT, COMPARISON, ATOM = range(1, 6)
Written = tuple[str, Any, int]


class Writer:
    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def expression(self, depth: int) -> Written:
        kind = self._chance.randrange(7) if depth else self._chance.randrange(2)
        blank = self._chance.choice(BLANKS)
        if kind == 0:
            return (*self._chance.choice(OPERANDS), ATOM)
        if kind == 1:
            return self._comparison(blank)
        if kind == 2:
            text, value, binds = self.expression(depth - 1)
            return f"{self._word('NOT')}{blank}{self._within(text, binds >= NOT)}", not value, NOT
        if kind == 3:
            text, value, _ = self.expression(depth - 1)
            return f"({blank}{text}{blank})", value, ATOM
        return self._joined(depth, AND if kind < 6 else OR, blank)

    def _comparison(self, blank: str) -> Written:
        (left, x), (right, y) = self._chance.choice(OPERANDS), self._chance.choice(OPERANDS)
        if self._chance.randrange(8) == 0:
            left, x, _ = self.expression(1)
            left = f"({left})"
        symbol = self._chance.choice(SYMBOLS)
        return f"{left}{blank}{symbol}{blank}{right}", reference_compare(symbol, x, y), COMPARISON

    def _joined(self, depth: int, own: int, blank: str) -> Written:
        (left, x, left_binds), (right, y, right_binds) = self.expression(depth - 1), self.expression(depth - 1)
        word = self._word("AND" if own == AND else "OR")
        text = f"{self._within(left, left_binds >= own)}{blank}{word}{blank}{self._within(right, right_binds >= own)}"
        return text, (bool(x) and bool(y)) if own == AND else (bool(x) or bool(y)), own

    def _within(self, text: str, free: bool) -> str:
        """With brackets where they are needed, and sometimes where they are not."""
        return text if free and self._chance.randrange(3) else f"({text})"

    def _word(self, word: str) -> str:
        return self._chance.choice(WORDS[word])


@pytest.mark.long
@pytest.mark.req("S1-58", "S1-59", "S1-60", "S1-61", "S1-62", "S1-63", "S1-64", "S1-65", "S1-66", "S1-71")
@pytest.mark.parametrize("part", range(PARTS))
def test_a_hundred_thousand_conditions_mean_what_they_say(part: int) -> None:
    assert PARTS * EACH >= 100_000
    writer = Writer(seed=part)
    for _ in range(EACH):
        text, value, _ = writer.expression(4)
        found = evaluate(parse(text), lambda name: DECISIONS.get(name, MISSING))
        assert bool(found) is bool(value), text
