"""Replacing a piece of a text that stands in it once."""

from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ripstop.tools.files import NotOnce, Undecidable, edited, is_edited, occurrences


@pytest.mark.parametrize(
    ("text", "search", "replace", "after"),
    [
        ("a\nb\nc\n", "b\n", "x\ny\n", "a\nx\ny\nc\n"),
        ("one two three", "two", "2", "one 2 three"),
        ("ab\nb\n", "b\n", "x\n", "ab\nx\n"),
        ("a\nb", "b\n", "x\n", "a\nx\n"),
        ("a  \nb\t\nc\n", "a\nb\n", "x\n", "x\nc\n"),
        ("a\nb\nc\n", "a  \nb \n", "x\n", "x\nc\n"),
        ("a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\n", "x\r\ny\r\nc\r\n"),
        ("a \nb\n", "a\nb", "x", "x\n"),
        ("  a\nb\n", "  a\n", "", "b\n"),
        (" a\na \na\na", "a\na\na", "b", " a\nb"),
    ],
)
def test_replaces_exactly_or_with_other_line_ends(text: str, search: str, replace: str, after: str) -> None:
    assert edited(text, search, replace) == after
    assert is_edited(after, search, replace)
    assert not is_edited(text, search, replace)


@pytest.mark.parametrize(
    ("text", "search", "why"),
    [
        ("a\na\n", "a\n", "2 times"),
        ("a \na\t\n", "a\n", "2 times"),
        ("  a\n", "a\n", "line 1 is like"),
        ("a\n", "\n\n", "not there"),
        ("", "a", "not there, nor"),
        ("foo bar baz\n", "foo\n", r"by whole lines, and 'foo' is only a part of line 1: 'foo bar baz'"),
        ("a\n  foo bar\nb\n", "a\nfoo\n", r"'foo' is only a part of line 2: 'foo bar'"),
        ("a\nb\n", "a\nc\n", "line 1 is like"),
    ],
)
def test_says_what_is_there_instead(text: str, search: str, why: str) -> None:
    with pytest.raises(NotOnce, match=why):
        edited(text, search, "x")


_lines = st.lists(st.sampled_from(["a", "b", "ab", " a", "a ", "", "c\r"]), max_size=6).map("\n".join)


@pytest.mark.long
@settings(max_examples=1000)
@given(_lines, _lines, _lines)
def test_an_edit_that_was_made_is_never_taken_for_one_to_come(text: str, search: str, replace: str) -> None:
    assume(search and replace.strip())
    try:
        after = edited(text, search, replace)
        assert is_edited(after, search, replace)
    except (NotOnce, Undecidable):
        pass


@pytest.mark.parametrize(
    ("text", "search", "replace"), [("a\na \n", "a\n", "x\n"), ("baab", "ab", "bab"), ("a\nb\n", "a\n", "a\nc\n")]
)
def test_what_is_left_looks_like_the_old_piece(text: str, search: str, replace: str) -> None:
    after = edited(text, search, replace)
    try:
        assert is_edited(after, search, replace)
    except Undecidable:
        assert occurrences(after, search)


@given(st.text(max_size=30), st.text(min_size=1, max_size=4))
def test_occurrences_do_not_overlap(text: str, piece: str) -> None:
    spans = occurrences(text, piece)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    assert all(0 <= start <= end <= len(text) for start, end in spans)


def _naive(text: str, piece: str) -> list[tuple[int, int]]:
    """As `occurrences`, in the plainest words."""
    at_line = piece.endswith("\n")
    found, position = [], 0
    while position <= len(text) - len(piece):
        fits = text.startswith(piece, position) and not (at_line and position and text[position - 1] != "\n")
        if fits:
            found.append((position, position + len(piece)))
        position += len(piece) if fits else 1
    if found:
        return found
    wanted = [line.rstrip() for line in piece.removesuffix("\n").split("\n")]
    lines = text.split("\n")
    number = 0
    while any(wanted) and number + len(wanted) <= len(lines):
        end = number + len(wanted)
        if [line.rstrip() for line in lines[number:end]] == wanted:
            begin = sum(len(line) + 1 for line in lines[:number])
            after = sum(len(line) + 1 for line in lines[:end])
            found.append((begin, min(after if at_line else after - 1, len(text))))
            number = end
        else:
            number += 1
    return found


@settings(max_examples=300)
@given(_lines, _lines.filter(bool))
def test_finds_what_a_plain_search_finds(text: str, piece: str) -> None:
    assert occurrences(text, piece) == _naive(text, piece)


@pytest.mark.parametrize(
    ("text", "search"),
    [
        ("a\n" * 450_000, "a\n" * 225_000 + "b\n"),
        ("a \n" * 300_000, "a\n" * 150_000 + "b\n"),
        ("aa\n" * 300_000, "a\n" + "aa\n" * 150_000),
        ("a" * 900_000, "a" * 450_000 + "\n"),
        ("".join(f"{n} {'xy' * 100}\n" for n in range(4_400)), "yx" * 100),
    ],
)
def test_a_long_text_full_of_near_matches_is_searched(text: str, search: str) -> None:
    """With a search that starts anew at every line, the first of these takes minutes."""
    with pytest.raises(NotOnce):
        edited(text, search, "x\n")
    assert not is_edited(text, search, "x\n")


def test_a_replacement_that_is_everywhere_leaves_open_whether_it_was_made() -> None:
    with pytest.raises(Undecidable, match="more than"):
        is_edited("b\nc\n" * 2 + "a\n" * 450_000, "b\nc\n", "a\n")
