"""Regular expressions from outside: those that are taken are quick, whatever a message says."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripstop.styles.conversation.actions import LONGEST_MATCHED
from ripstop.styles.conversation.patterns import MOST_STEPS, SlowPattern, steps_of
from tests.styles.conversation.bots import problems, said

QUICK = [
    "refund",
    r"^order\s+\d+$",
    r"\b(?:refund|return)s?\b",
    r".*refund.*order.*",
    r"(?i)where is (?:my|the) (?:order|parcel)",
    r"(?:退款|退货)[吗呢]?",
    r"\d{4}-\d{2}-\d{2}",
    r"^(?!.*not).*refund",
    r"[^a-z]+",
    r"x{3,5}y?",
    r"(?P<number>\d+)",
    r"a++b",
]
SLOW = [
    "(a+)+b",
    "(a*)*b",
    "(?:a|a)*b",
    "(?:a|aa)+$",
    "(a?)*b",
    "(?:a{1,9}){1,9}b",
    r"(.*)\1",
    r"(a)?(?(1)b|c)",
    "a*a*a*b",
    ".*a.*a.*a.*b",
    "a?" * 30 + "a" * 30,
    "(?:a|b|ab)" * 12 + "$",
    "(?:(?=a)a)*b",
    "a{0,299}a{0,299}a{0,299}b",
    "x" * 201,
]


@pytest.mark.parametrize("pattern", QUICK)
def test_usual_patterns_are_taken(pattern: str) -> None:
    assert steps_of(pattern) <= MOST_STEPS


@pytest.mark.parametrize("pattern", SLOW)
def test_patterns_that_can_take_long_are_refused(pattern: str) -> None:
    with pytest.raises(SlowPattern):
        steps_of(pattern)


@pytest.mark.parametrize("pattern", ["(", "[a", "*a", "a{2,1}", "(?P<1>a)", "\\", "(" * 150])
def test_what_is_not_a_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(SlowPattern, match="is not a regular expression"):
        steps_of(pattern)


PIECES = st.sampled_from(
    ["a", "b", ".", "[ab]", "\\w", "(?:ab)", "(?:a|b)", "(?:a|ab)", "^", "$", "(?=a)", "(a)", "\\1"]
)
TIMES = st.sampled_from(["", "*", "+", "?", "*?", "{2,4}", "{0,250}", "{3}"])
PATTERNS = st.lists(st.tuples(PIECES, TIMES).map("".join), min_size=1, max_size=8).map("".join)


@settings(max_examples=100, deadline=None)
@given(PATTERNS, st.sampled_from(["(?:{})", "({})*", "({})?", "^{}$", "{}c"]))
def test_whatever_is_taken_is_quick(pattern: str, around: str) -> None:
    pattern = around.format(pattern)
    try:
        steps_of(pattern)
    except SlowPattern:
        return
    for text in ("a" * LONGEST_MATCHED, "ab" * (LONGEST_MATCHED // 2), "a" * (LONGEST_MATCHED - 1) + "!"):
        re.search(pattern, text, re.IGNORECASE)  # a slow one would take hours, and this test would not end


def test_a_slow_pattern_of_a_flow_is_an_error_with_its_place(tmp_path: Path) -> None:
    text = "sop: x\nflows:\n  - id: f\n    tool: t\n    match_type: regex\n    patterns: ['(a+)+$']\n"
    (found,) = problems(tmp_path, text, "bot.yaml")
    assert (found.severity, found.place.line, found.place.column) == ("error", 6, 16)
    assert "a loop within a loop" in found.text


def test_many_patterns_that_are_quick_alone_are_too_much_together(tmp_path: Path) -> None:
    patterns = [f".*a.*{letter}" for letter in "bcdefgh"]
    flow = {"id": "f", "tool": "t", "match_type": "regex", "patterns": patterns}
    assert "all flows together could take too long" in said(problems(tmp_path, {"sop": "x", "flows": [flow]}))
