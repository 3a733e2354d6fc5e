"""Lines of Markdown are fenced code, headings, items and rows where CommonMark says so."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from ripstop.text.markdown import (
    Fence,
    Heading,
    ListItem,
    blocks,
    cells_of,
    heading_of,
    item_of,
    split_lines,
    unindented,
)

INDENTS = ("", " ", "   ", "    ", "      ", "\t", "  \t")
MARKS = ("```", "````", "~~~", "~~~~~", "``", "~~", "```~~~", "~~~```")
INFOS = ("", "", "", " ", "\t ", "py", " a b", "~", "`", "x`y", "\xa0", "\u3000", "\x0c", "\\")
TEXTS = ("", "", "text", "# heading", "#tag", "=====", "{", "[x]", "&amp;", "`code`")
NEWLINES = ("\n", "\r\n", "\r")
COMMONMARK = MarkdownIt("commonmark", {"html": False})


def fenced(text: str, any_indent: bool = False) -> list[int]:
    found = blocks(split_lines(text), any_indent)
    return [number for block in found for number in range(block.start, block.end)]


def fenced_by_commonmark(text: str) -> list[int]:
    blocks = [token.map for token in COMMONMARK.parse(text) if token.type == "fence" and token.map]
    last = len(split_lines(text))
    return sorted(number for start, end in blocks for number in range(start, min(end, last)))


marks = st.builds("".join, st.tuples(*map(st.sampled_from, (INDENTS, MARKS, INFOS))))
texts = st.builds("".join, st.tuples(st.sampled_from(INDENTS), st.sampled_from(TEXTS)))


@given(st.lists(st.one_of(marks, texts), max_size=12), st.sampled_from(NEWLINES))
@example(["````markdown", "```", "- T9", "```", "````"], "\n")
@example(["```", "```\xa0", "```"], "\n")
def test_the_same_lines_are_fenced_as_in_commonmark_with_any_white_space(parts: list[str], newline: str) -> None:
    text = newline.join([*parts, "end"])  # what is blank at the end of a text is not in a block there
    assert fenced(text) == fenced_by_commonmark(text.translate(dict.fromkeys(map(ord, "\xa0\u3000\x0c"), " ")))


@given(
    st.lists(st.sampled_from(("- ", "*   ", "1. ", "10)  ")), min_size=1, max_size=4),
    st.sampled_from(("```", "````", "~~~")),
    st.lists(st.sampled_from(("```", "~~~", "- T9: x", "# x", "text", "")), max_size=6),
    st.integers(0, 3),
)
def test_fences_in_lists_are_those_of_commonmark(marks: list[str], fence: str, inner: list[str], further: int) -> None:
    parts, margin = [], ""
    for mark in marks:
        parts += [f"{margin}{mark}item", ""]
        margin += " " * len(mark)
    inside = [f"{margin}{line}" for line in inner if not line.startswith(fence)]
    parts += [f"{margin}{fence}md", *inside, f"{margin}{' ' * further}{fence}", "- T1: outside", "end"]
    text = "\n".join(parts)
    assert fenced(text, any_indent=True) == fenced_by_commonmark(text)


def test_a_block_knows_its_fence_and_its_lines() -> None:
    whole = split_lines("a\n~~~ sh\nls\n~~~~\nb\n```\nopen")
    first, second = blocks(whole)
    assert first.fence == Fence(0, "~", 3, "sh") and first.is_closed
    assert (first.inside(whole), second.inside(whole)) == (["ls"], ["open"])
    assert second.fence.mark == "```" and not second.is_closed


@pytest.mark.parametrize(
    ("line", "columns", "rest"),
    [("\t\tx", 4, "\tx"), ("    x", 4, "x"), ("\tx", 2, "  x"), (" x", 3, "x"), ("x", 3, "x"), ("  \tx", 4, "x")],
)
def test_indentation_is_taken_off_in_columns(line: str, columns: int, rest: str) -> None:
    assert unindented(line, columns) == rest


@given(st.lists(st.sampled_from(("#", "##", "#######", " ", "   ", "\t", "a", "a#", "\\#", "    ")), max_size=6))
def test_headings_are_those_of_commonmark(parts: list[str]) -> None:
    line = "".join(parts)
    tokens = COMMONMARK.parse(line)
    expected = None
    if tokens and tokens[0].type == "heading_open" and tokens[0].markup.startswith("#"):
        expected = Heading(int(tokens[0].tag[1]), tokens[1].content)
    assert heading_of(line) == expected


@pytest.mark.parametrize(
    ("line", "item"),
    [
        ("- a", ListItem(0, "-", "a")),
        ("  12) a b ", ListItem(2, "12)", "a b")),
        ("\t*\ta", ListItem(4, "*", "a")),
        ("+", ListItem(0, "+", "")),
        ("-\r\n", ListItem(0, "-", "")),
        ("-a", None),
        ("1234567890. a", None),
        ("a - b", None),
    ],
)
def test_an_item_begins_with_a_mark_and_a_space(line: str, item: ListItem | None) -> None:
    assert item_of(line) == item


def test_a_cell_says_where_its_text_is_without_emphasis() -> None:
    row = r"| **a** | b \| c |  |"
    assert [(cell.text, row[cell.start : cell.end]) for cell in cells_of(row)] == [
        ("**a**", "a"),
        (r"b \| c", r"b \| c"),
        ("", ""),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "`" * 1_000_000,
        "~" * 1_000_000,
        "``` " * 250_000,
        "> " * 500_000,
        " " * 1_000_000 + "x",
        "# a" + " " * 1_000_000 + "b",
        "#" * 1_000_000,
        "- " * 500_000,
        "|" * 1_000_000,
        "```\n" * 250_000,
        "````\n```\n" * 125_000,
        "\r" * 1_000_000,
    ],
    ids=lambda text: repr(text[:8]),
)
def test_a_megabyte_of_marks_is_read_at_once(text: str) -> None:
    whole = split_lines(text)
    assert [block.end for block in blocks(whole, any_indent=True)][-1:] in ([], [len(whole)], [len(whole) - 1])
    assert not any(heading_of(line) and item_of(line) for line in whole)
    assert len(cells_of(text)) <= len(text) + 1
