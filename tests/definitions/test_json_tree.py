"""JSON as a tree with positions: the same values that the standard library reads, each with its place."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripstop.definitions.json_tree import parse_json, plain
from ripstop.definitions.problems import WrongDefinition
from ripstop.definitions.yaml_tree import Value

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=20,
)


@given(VALUES, st.sampled_from([None, 0, 2, "\t"]), st.booleans())
def test_reads_what_the_standard_library_writes(value: Any, indent: Any, ascii_only: bool) -> None:
    tree, problems = parse_json(json.dumps(value, indent=indent, ensure_ascii=ascii_only), "f")
    assert plain(tree) == value and problems == []


@given(st.text(alphabet='{}[]":,\\u1e-.tnf \n', max_size=30))
def test_refuses_what_the_standard_library_refuses(text: str) -> None:
    def strictly(number: str) -> float:
        if len(number) > 40 or float(number) in (float("inf"), float("-inf")):
            raise ValueError(number)
        return float(number)

    try:
        wanted = json.loads(text, parse_float=strictly, object_pairs_hook=lambda pairs: pairs)
    except (ValueError, RecursionError):
        with pytest.raises(WrongDefinition):
            parse_json(text, "f")
    else:
        tree, _ = parse_json(text, "f")
        assert (tree.value is None) == (wanted is None)


def places(tree: Value) -> dict[Any, tuple[int, int]]:
    found: dict[Any, tuple[int, int]] = {}
    for entry in tree.value.values():
        found[entry.value.value if not isinstance(entry.value.value, list) else "list"] = (
            entry.value.place.line,
            entry.value.place.column,
        )
    return found


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_lines_and_columns_are_those_of_an_editor(newline: str) -> None:
    text = newline.join(['{"a": 1,', '\t"b": "x\u2028y",', ' "结论": [2],', '"d": null}'])
    tree, _ = parse_json(text, "f")
    assert places(tree) == {1: (1, 7), "x\u2028y": (2, 7), "list": (3, 8), None: (4, 6)}
    assert [(entry.key.line, entry.key.column) for entry in tree.value.values()] == [(1, 2), (2, 2), (3, 2), (4, 1)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1', "1:1: error: an object begins here that is never closed"),
        ("[1,\n [2", "2:2: error: a list begins here that is never closed"),
        ('{"a":', "1:6: error: the file ends where a value should be"),
        ('{"a" 1}', "1:6: error: a ':' is missing after the key 'a'"),
        ('{"a": 1 "b": 2}', "1:9: error: a ',' or '}' is missing here"),
        ("[1, 2,]", "1:7: error: there is no value before ']'; remove the comma"),
        ("{'a': 1}", "1:2: error: ' is not \""),
        ("[True]", "1:2: error: this is not a value; write true, false"),
        ("[NaN]", "1:2: error: this is not a value"),
        ("[01]", "1:2: error: this is not a value"),
        ("[1e999]", "1:2: error: the number is too large"),
        ('["\\q"]', "1:3: error: this escape is not known"),
        ('["a\nb"]', "1:2: error: a text in double quotes is not closed in its line"),
        ("[1] # one", "1:5: error: JSON has no comments"),
        ("[1]\xa0", "1:4: error: U+00A0 is not allowed here"),
    ],
)
def test_a_mistake_is_told_in_the_words_of_json(text: str, said: str) -> None:
    with pytest.raises(WrongDefinition) as raised:
        parse_json(text, "f")
    assert str(raised.value).startswith(f"f:{said}")


def test_half_a_character_is_not_text() -> None:
    _, problems = parse_json('["\\ud800"]', "f")
    assert "half of a character" in problems[0].text
