"""What agents write is shown to people as it is: nothing acts on the terminal, hides, or can be clicked."""

import io

import pytest
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st

from ripstop.faces.cli.previews import print_difference, print_document
from ripstop.faces.cli.safe_console import SafeConsole
from ripstop.text.differences import difference

PIECES = [
    "# ",
    "[a](http://b.example)",
    "![a](b)",
    "<b>",
    "<!-- x -->",
    "&#27;]0;x&#7;",
    "\x1b[2J",
    "\u202e",
    "```\n",
    "| a |\n|---|\n",
]
MARKDOWN = st.lists(st.sampled_from([*PIECES, "- ", "> ", "1. ", "\n", "\n\n", "    ", "**", "`", "猫", "word "])).map(
    "".join
)


def shown(text: str, most: int | None = None) -> str:
    """What a terminal gets, without colours of ours."""
    file = io.StringIO()
    console = SafeConsole(
        file=file, force_terminal=True, width=60, color_system=None, highlight=False, emoji=False, markup=False
    )
    print_document(console, text, most, "ripstop desk r/3")
    return file.getvalue()


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("a <!-- hidden --> b", "<!-- hidden -->"),
        ("<div hidden>\nsecret\n</div>", "secret"),
        ("[//]: # (hidden)", "(hidden)"),
        ("[ref]: http://hidden.example", "http://hidden.example"),
        ("[bank.example](http://evil.example)", "bank.example (http://evil.example)"),
        ("![alt](http://evil.example/x.png)", "http://evil.example/x.png"),
        ("```sh curl evil\nls\n```", "sh curl evil"),
        ("\x1b]8;;http://x\x07click\x1b]8;;\x07", "\\x1b]8;;http://x\\x07click"),
        ("&#x202e;evil", "\\u202eevil"),
    ],
)
def test_nothing_in_a_document_is_hidden_or_pretended(text: str, seen: str) -> None:
    assert seen in " ".join(shown(text).split()), shown(text)


@for_all(MARKDOWN)
@settings(max_examples=60)
def test_no_document_reaches_the_terminal_with_a_control_character(text: str) -> None:
    rendered = shown(text)
    assert not [char for char in rendered if char != "\n" and not char.isprintable()], repr(rendered)


def test_a_document_is_rendered() -> None:
    assert "• fast" in shown("# Shop\n\n- *fast*\n") and "*" not in shown("# Shop\n\n- *fast*\n")


def test_a_long_document_says_how_much_is_not_shown() -> None:
    assert "… 98 more lines: ripstop desk r/3" in shown("line  \n" * 100, most=2)


@pytest.mark.parametrize("text", ["x" * 300_000, "> " * 20_000 + "x", "[" * 20_000, "- " * 3_000])
def test_a_document_that_is_made_to_be_slow_or_deep_is_shown(text: str) -> None:
    assert shown(text)


def test_a_difference_marks_lines_and_the_end_without_a_newline() -> None:
    file = io.StringIO()
    print_difference(SafeConsole(file=file, width=60), difference("a\nthe red hat\n", "a\nthe big hat"))
    assert file.getvalue().splitlines() == [
        "     1   a",
        "     2 - the red hat",
        "     2 + the big hat (no newline at the end)",
    ]
