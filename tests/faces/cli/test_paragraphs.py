"""What people see is wrapped at words and keeps its indent; what programs read stays on its line."""

import io

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from ripstop.app.plugins import installed
from ripstop.faces.cli.blocks import print_indented, print_labelled, print_line
from ripstop.faces.cli.main import COMMANDS, cli

LONG = "The second line is lovely, but the last one comes too early. Once more, please."


def console(terminal: bool, width: int = 40) -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    return Console(file=out, force_terminal=terminal, width=width, soft_wrap=True, color_system=None, emoji=False), out


def test_in_a_terminal_text_keeps_its_indent() -> None:
    shown, out = console(terminal=True)
    print_indented(shown, 4, LONG)
    lines = out.getvalue().splitlines()
    assert len(lines) > 1
    assert all(line.startswith("    ") and cell_len(line) <= 40 for line in lines)
    assert " ".join(line.strip() for line in lines) == LONG


def test_beside_a_label_text_keeps_its_column() -> None:
    shown, out = console(terminal=True)
    print_labelled(shown, "last", LONG)
    first, *others = out.getvalue().splitlines()
    assert first.startswith("last    The second")
    assert all(line.startswith(" " * 8) and line[8] != " " for line in others)


def test_for_a_program_a_line_is_a_line() -> None:
    shown, out = console(terminal=False)
    print_indented(shown, 4, LONG)
    print_labelled(shown, "last", LONG)
    assert out.getvalue() == f"    {LONG}\nlast    {LONG}\n"


@pytest.mark.parametrize("width", [24, 40, 60, 80])
def test_a_line_is_wrapped_at_words_in_a_terminal_only(width: int) -> None:
    shown, out = console(terminal=True, width=width)
    print_line(shown, (LONG, "dim"))
    lines = out.getvalue().splitlines()
    assert all(cell_len(line) <= width for line in lines)
    assert " ".join(line.strip() for line in lines) == LONG
    shown, out = console(terminal=False, width=width)
    print_line(shown, LONG, "\nsecond")
    assert out.getvalue() == f"{LONG}\\nsecond\n"


@pytest.mark.parametrize("terminal", [True, False])
def test_a_label_without_text_has_nothing_after_it(terminal: bool) -> None:
    shown, out = console(terminal)
    print_labelled(shown, "waiting ", "")
    assert out.getvalue() == "waiting\n"


@given(st.text(alphabet="ab [/]:_海夜", min_size=1, max_size=60))
def test_words_of_agents_are_never_taken_for_markup(text: str) -> None:
    shown, out = console(terminal=False)
    print_labelled(shown, "last", text, "dim")
    print_indented(shown, 2, text)
    assert out.getvalue() == f"last    {text}\n  {text}\n"


NAMES = list(COMMANDS)


@pytest.mark.parametrize("name", ["", *NAMES])
def test_help_fits_into_eighty_columns(name: str) -> None:
    context = click.Context(cli, info_name="ripstop", terminal_width=80)
    command = cli.get_command(context, name) if name else cli
    assert command is not None
    own = click.Context(command, parent=context if name else None, info_name=name or "ripstop", terminal_width=80)
    for line in command.get_help(own).splitlines():
        assert len(line) <= 80, line


def test_help_names_every_command_once() -> None:
    text = cli.get_help(click.Context(cli, info_name="ripstop"))
    for name in [*COMMANDS, *installed().commands]:
        assert text.count(f"\n  {name} ") == 1


def test_help_says_which_command_prints_a_document_a_line() -> None:
    text = " ".join(cli.get_help(click.Context(cli, info_name="ripstop")).split())
    assert "Print one JSON document (`log`: one a line), also for an error." in text
