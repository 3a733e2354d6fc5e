"""Conditions: what they mean, checked against an evaluator written in another way."""

import operator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ripstop.styles.graph.condition import (
    MAX_DEPTH,
    MAX_LENGTH,
    MISSING,
    And,
    Compare,
    ConditionError,
    Expression,
    Literal,
    Name,
    Not,
    Or,
    evaluate,
    names,
    parse,
    trace,
)

DECISIONS: dict[str, Any] = {
    "yes": True,
    "no": False,
    "score": 8,
    "half": 7.5,
    "zero": 0,
    "word": "done",
    "empty": "",
    "通过": True,
    "AND_more": True,
    "items": ["a"],
    "nothing": None,
}


def value(source: str) -> Any:
    return evaluate(parse(source), lambda name: DECISIONS.get(name, MISSING))


@pytest.mark.req("S1-58", "S1-59", "S1-60", "S1-61", "S1-62", "S1-63", "S1-64", "S1-65", "S1-66", "S1-71")
@pytest.mark.parametrize(
    ("source", "holds"),
    [
        ("yes", True),
        ("no", False),
        ("yes AND no", False),
        ("yes and yes", True),
        ("no OR yes", True),
        ("NOT no", True),
        ("NOT no AND no", False),
        ("NOT (no AND no)", True),
        ("yes OR no AND no", True),
        ("(yes OR no) AND no", False),
        ("NOT score > 9", True),
        ("yes AND score >= 8", True),
        ("score > 8", False),
        ("score <= 8 AND half < 8", True),
        ('word == "done"', True),
        ("word == 'done'", True),
        ('word != "done"', False),
        ('word == "yes AND no"', False),
        ('"a" < "b"', True),
        ("yes == true", True),
        ("yes == TRUE AND no == False", True),
        ("yes == 1", False),
        ("zero == false", False),
        ('score == "8"', False),
        ('score != "8"', True),
        ("score == 8.0", True),
        ("score < word", False),
        ("yes > no", False),
        ("missing", False),
        ("NOT missing", True),
        ("missing == 1", False),
        ("missing != 1", False),
        ("missing == missing", False),
        ("missing OR yes", True),
        ("score", True),
        ("zero", False),
        ("empty", False),
        ("通过 AND 通过", True),
        ("AND_more", True),
        ("score > -1", True),
        ("", True),
        ("   ", True),
        ("always", True),
        ("never", False),
        ("true", True),
        ("false", False),
        ("items == items", True),
        ("items < items", False),
    ],
)
def test_means_what_it_says(source: str, holds: bool) -> None:
    assert bool(value(source)) is holds


@pytest.mark.req("S1-72")
@pytest.mark.parametrize(
    ("source", "column", "text"),
    [
        ("done AND", 8, "the condition ends"),
        ("AND done", 0, "found 'AND'"),
        ("done done", 5, "found 'done'"),
        ("(done", 5, "')'"),
        ("done)", 4, "found ')'"),
        ("a = 1", 2, "write =="),
        ("a && b", 2, "write AND"),
        ("a || b", 2, "write OR"),
        ("!a", 0, "write NOT"),
        ("1 < a < 3", 6, "cannot be chained"),
        ('a == "x', 5, "never closed"),
        ("a @ b", 2, "does not belong"),
        ("a == 1x", 5, "does not belong"),
        ("()", 1, "found ')'"),
        ("NOT", 3, "the condition ends"),
    ],
)
def test_says_where_and_what_is_wrong(source: str, column: int, text: str) -> None:
    with pytest.raises(ConditionError) as caught:
        parse(source)
    assert (caught.value.column, text in str(caught.value)) == (column, True), str(caught.value)


def test_depth_and_length_are_bounded() -> None:
    assert parse("(" * (MAX_DEPTH - 1) + "a" + ")" * (MAX_DEPTH - 1))
    for source in ("(" * 5000 + "a" + ")" * 5000)[:MAX_LENGTH], "a" * (MAX_LENGTH + 1), "NOT " * 900 + "a":
        with pytest.raises(ConditionError):
            parse(source)
    assert evaluate(parse(" AND ".join(["yes"] * 300)), lambda name: DECISIONS[name]), "a long chain is not deep"
    with pytest.raises(ConditionError, match="more than 300"):
        parse(" OR ".join(["a"] * 302))


# An independent reference: it builds the value while it builds the text.

COMPARISONS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}


def _kind(x: Any) -> str:
    if x is MISSING:
        return "missing"
    if isinstance(x, bool):
        return "bool"
    return "number" if isinstance(x, int | float) else type(x).__name__


def reference_compare(symbol: str, x: Any, y: Any) -> bool:
    kinds = {_kind(x), _kind(y)}
    if "missing" in kinds:
        return False
    if len(kinds) > 1:
        return symbol == "!="
    if symbol in ("==", "!=") or kinds <= {"number", "str"}:
        return bool(COMPARISONS[symbol](x, y))
    return False


_keyword = {
    "AND": st.sampled_from(["AND", "and", "And"]),
    "OR": st.sampled_from(["OR", "or"]),
    "NOT": st.sampled_from(["NOT", "not"]),
}
_blank = st.sampled_from([" ", "  ", "\t", "\n"])
_operand = st.one_of(
    st.sampled_from([*DECISIONS, "unknown", "gone"]).map(lambda n: (n, DECISIONS.get(n, MISSING))),
    st.integers(-20, 20).map(lambda n: (str(n), n)),
    st.sampled_from([0.5, 7.5, -1.25]).map(lambda n: (str(n), n)),
    st.sampled_from([("true", True), ("FALSE", False)]),
    st.text(st.characters(exclude_characters='"\\', exclude_categories=["Cs"]), max_size=6).map(
        lambda t: (f'"{t}"', t)
    ),
)


@st.composite
def _expressions(draw: st.DrawFn, depth: int = 4) -> tuple[str, Any, int]:
    """(text, value, strength of its outermost operator: 4 atom … 1 OR)"""
    kind = draw(st.integers(0, 5)) if depth else 0
    space = draw(_blank)
    if kind == 0:
        text, found = draw(_operand)
        return text, found, 5
    if kind == 1:
        (left, x), (right, y) = draw(_operand), draw(_operand)
        symbol = draw(st.sampled_from(list(COMPARISONS)))
        return f"{left}{space}{symbol}{space}{right}", reference_compare(symbol, x, y), 4
    if kind == 2:
        text, found, strength = draw(_expressions(depth - 1))
        inner = text if strength >= 3 and draw(st.booleans()) else f"({text})"
        return f"{draw(_keyword['NOT'])}{space}{inner}", not found, 3
    if kind == 5:
        text, found, _ = draw(_expressions(depth - 1))
        return f"({space}{text}{space})", found, 5
    word, own = ("AND", 2) if kind == 3 else ("OR", 1)
    (left, x, ls), (right, y, rs) = draw(_expressions(depth - 1)), draw(_expressions(depth - 1))
    left = left if ls >= own and draw(st.booleans()) else f"({left})"
    right = right if rs > own and draw(st.booleans()) else f"({right})"
    both = bool(x) and bool(y) if kind == 3 else bool(x) or bool(y)
    return f"{left}{space}{draw(_keyword[word])}{space}{right}", both, own


@pytest.mark.long
@given(_expressions())
@settings(max_examples=2000, deadline=None, suppress_health_check=list(HealthCheck))
def test_agrees_with_the_reference_on_any_expression(expression: tuple[str, Any, int]) -> None:
    text, expected, strength = expression
    assert bool(value(text)) is bool(expected), text
    if strength < 5:
        node = parse(text)
        assert trace(node, lambda name: DECISIONS.get(name, MISSING)).value == bool(expected)


@given(st.text(max_size=60))
@settings(max_examples=2000, deadline=None)
def test_any_text_is_read_or_refused_and_never_fails_otherwise(text: str) -> None:
    try:
        node = parse(text)
    except ConditionError as error:
        assert 0 <= error.column <= len(text)
    else:
        evaluate(node, lambda name: MISSING)


@pytest.mark.long
@given(st.lists(st.sampled_from(["a", "AND", "OR", "NOT", "(", ")", "==", "<", "1", '"x"', "true"]), max_size=14))
@settings(max_examples=2000, deadline=None)
def test_any_row_of_words_is_read_or_refused(words: list[str]) -> None:
    try:
        parse(" ".join(words))
    except ConditionError:
        pass


def test_the_tree_knows_its_places_and_names() -> None:
    node = parse("a AND NOT (b >= 3 OR c)")
    assert isinstance(node, And) and isinstance(node.right, Not) and isinstance(node.right.operand, Or)
    compare = node.right.operand.left
    assert isinstance(compare, Compare) and isinstance(compare.left, Name) and isinstance(compare.right, Literal)
    assert [(n.name, n.column) for n in names(node)] == [("a", 0), ("b", 11), ("c", 21)]
    assert isinstance(node, Expression)
