"""What is typed into a chat: keys from bytes that are cut anywhere, a line that is edited, and what is shown of it."""

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from ripstop.styles.conversation.cli.line_editor import LONGEST_PASTE, MAX_TYPED, NAMES, Key, KeyReader, LineEditor

PASTE = "\x1b[200~a\r\nb\x1b[31m\x1b[201~"
SEQUENCES = [*NAMES, PASTE, "\x1b[5~", "\x1b[<0;12;3M", "\x1bx", "海", "é", "a b", "👩\u200d👧"]


def typed(*texts: str) -> LineEditor:
    editor, reader = LineEditor(), KeyReader()
    for text in texts:
        for key in reader.read(text.encode()):
            editor.press(key)
    return editor


@given(st.lists(st.sampled_from(SEQUENCES)).map("".join), st.lists(st.integers(1, 5)))
def test_where_bytes_are_cut_does_not_matter(text: str, sizes: list[int]) -> None:
    whole, reader, rest, keys = text.encode(), KeyReader(), text.encode(), []
    for size in sizes:
        keys += reader.read(rest[:size])
        rest = rest[size:]
    keys += reader.read(rest)
    assert keys == KeyReader().read(whole)


@given(st.lists(st.binary()))
def test_nothing_that_acts_is_typed(pieces: list[bytes]) -> None:
    reader = KeyReader()
    for piece in pieces:
        for key in reader.read(piece):
            assert key.name or len(key.text) > 1 or key.text >= " "


def test_special_keys_have_names_and_unknown_ones_are_dropped() -> None:
    assert KeyReader().read(b"\x1b[A\x1bOD\x1b[3~\x1b[1;5C") == [
        Key("up"),
        Key("left"),
        Key("delete"),
        Key("word right"),
    ]
    assert KeyReader().read(b"\x1b[15~\x1b[<0;1;1M\x1bz\x03a") == [Key(text="a")]
    reader = KeyReader()
    assert reader.read(b"\x1b[" + b"1" * 100) == [] and reader.read(b"b") == [Key(text="b")]


def test_a_paste_is_one_text_whatever_is_in_it() -> None:
    assert KeyReader().read(b"\x1b[200~one\r\ntwo\r\x1b[A\x1b[201~x") == [Key(text="one\ntwo\n\x1b[A"), Key(text="x")]
    (key,) = KeyReader().read(b"\x1b[200~" + b"x" * (LONGEST_PASTE + 5) + b"\x1b[201~")
    assert len(key.text) == LONGEST_PASTE


def test_enter_sends_and_a_backslash_or_alt_enter_goes_on() -> None:
    editor = typed("one\\\ntwo", "\x1b\r", "three")
    assert editor.text == "one\ntwo\nthree"
    assert editor.press(Key("enter")) == "one\ntwo\nthree" and (editor.text, editor.cursor) == ("", 0)
    assert editor.press(Key("enter")) == ""


def test_ctrl_d_leaves_only_an_empty_line() -> None:
    editor = typed("ab", "\x01", "\x04")
    assert editor.text == "b"
    assert editor.press(Key("end of input")) == "" and editor.press(Key("end of input")) is None


def test_words_are_skipped_and_cut() -> None:
    assert typed("one two  three", "\x17").text == "one two  "
    assert typed("one two  three", "\x17", "\x17").text == "one "
    assert typed("one two", "\x01", "\x1bf", "!").text == "one! two"
    assert typed("one two", "\x1bb", "!").text == "one !two"
    assert typed("one two", "\x1bb", "\x15").text == "two" and typed("one two", "\x1bb", "\x0b").text == "one "


def test_what_was_sent_comes_back() -> None:
    editor = typed("one\r", "two\r", "draft", "\x1b[A", "\x1b[A")
    assert editor.text == "one"
    for key, text in (("up", "one"), ("down", "two"), ("down", "draft"), ("down", "draft")):
        editor.press(Key(key))
        assert editor.text == text


@given(st.lists(st.sampled_from(SEQUENCES), max_size=40), st.integers(4, 60))
def test_what_is_shown_fits_and_has_the_cursor(texts: list[str], width: int) -> None:
    editor = typed(*texts)
    assert 0 <= editor.cursor <= len(editor.text)
    shown = editor.shown(width)
    assert "\n" not in shown.text and "\x1b" not in shown.text
    assert 0 <= shown.cursor < width and sum(map(cell_len, shown.text)) <= width


def test_a_text_has_a_bound() -> None:
    editor = LineEditor()
    for _ in range(3):
        editor.press(Key(text="x" * MAX_TYPED))
    assert len(editor.text) == editor.cursor == MAX_TYPED
