"""What acts or hides is written out; ordinary text of every language stays as it is."""

import json
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripstop.text.visible_text import pieces, visible, visible_json, visible_line, without_hidden

ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=()))  # surrogates, too


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[31mred", r"\x1b[31mred"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("\x9b2J\x7f\x00", r"\x9b2J\x7f\x00"),
        ("pay\u202egpj.exe", r"pay\u202egpj.exe"),
        ("done\rfailed", r"done\rfailed"),
        ("one\u2028two", r"one\u2028two"),
        ("a\u200bb\ufeffc\xadd", r"a\u200bb\ufeffc\xadd"),
        ("hi\U000e0068\U000e0069", r"hi\U000e0068\U000e0069"),
        ("\ud83d x \udcff", r"\ud83d x \udcff"),
        ("海\u200d\u200c\u200db", "海\u200d\\u200c\\u200db"),
        ("海\ufe0f\ufe01\U000e0101", "海\ufe0f\\ufe01\\U000e0101"),
        ("a\u200cdmin \u200d", r"a\u200cdmin \u200d"),
        ("o\U000e0141k\ufe01 n\ufe0fo", r"o\U000e0141k\ufe01 n\ufe0fo"),
        ("1\U000e0141 \ufe0f.\ufe00", r"1\U000e0141 \ufe0f.\ufe00"),
        ("a\u034fb", r"a\u034fb"),
    ],
)
def test_writes_out_what_acts_or_hides(raw: str, shown: str) -> None:
    assert visible(raw) == visible_line(raw) == shown


@pytest.mark.parametrize(
    "text",
    [
        "海 夜 葛\U000e0100",
        "👨\u200d👩\u200d👧 ❤\ufe0f",
        "می\u200cخواهم",
        "Zoë e\u0301",
        "שלום",
        "→ ● … \\x1b",
        "1\ufe0f\u20e3 ©\ufe0f",
        "ᠠ\u180b",
    ],
)
def test_keeps_ordinary_text_as_it_is(text: str) -> None:
    assert visible(text) == visible_line(text) == text


def test_keeps_newlines_in_a_text_and_escapes_them_in_a_line() -> None:
    assert visible("a\tb\r\nc\n") == "a\tb\nc\n"
    assert visible_line("a\tb\r\nc\n") == r"a\tb\r\nc\n"


@given(ANY_TEXT)
def test_leaves_nothing_that_acts(text: str) -> None:
    for shown in (visible(text).replace("\n", "").replace("\t", ""), visible_line(text)):
        assert not [char for char in shown if unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp")]
        assert not re.search("[\u061c\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]", shown)
        assert visible(shown) == shown


HIDING = st.text(alphabet="a海❤1\u200b\u200c\u200d\ufe00\ufe0f\U000e0101\u202e\n ")


@given(HIDING, HIDING)
def test_what_is_shown_is_shown_the_same_again_wherever_it_is_put(text: str, before: str) -> None:
    assert visible(visible(text)) == visible(text)
    assert visible(f"{before}\n{visible(text)}").endswith(visible(text))
    assert "".join(piece for piece, _ in pieces(text)) == visible(text)
    assert "".join(piece for piece, is_hidden in pieces(text) if not is_hidden) == without_hidden(text)


@given(st.lists(ANY_TEXT))
def test_a_sequence_cut_into_pieces_is_still_escaped(pieces: list[str]) -> None:
    shown = "".join(map(visible_line, pieces))
    assert not [char for char in shown if unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp")]


@given(st.recursive(ANY_TEXT, lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT, inner), max_leaves=5))
def test_json_is_read_back_as_the_same_value(value: object) -> None:
    document = visible_json(json.dumps(value, ensure_ascii=False))
    # a pair of lone surrogates is one character once it has been read
    joined = json.loads(json.dumps(value))
    assert json.loads(document) == joined
    document.encode()
    assert visible(document) == document
