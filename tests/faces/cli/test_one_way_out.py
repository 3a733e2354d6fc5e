"""Everything that is printed goes through one module, and what does not is still filtered."""

import ast
import io
import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

import ripstop
from ripstop.definitions.problems import Position, Problem
from ripstop.faces.cli.safe_console import SafeConsole
from ripstop.faces.cli.terminal import Output, line_of, log_to_stderr, say, say_json, say_text

SOURCE = Path(ripstop.__file__).parent
WRITERS = {"output.py", "terminal.py", "safe_console.py"}
FORBIDDEN = {"click": {"echo", "secho", "style", "confirm", "prompt", "edit", "echo_via_pager", "progressbar", "pause"}}
HOSTILE = "\x1b]0;pwned\x07\x1b[2J\x9b8m\u202eevil\x00\r\ud800"


def _calls(tree: ast.AST) -> list[str]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            called = ast.unparse(node)
            module, _, name = called.rpartition(".")
            if name in FORBIDDEN.get(module, ()) or called in ("sys.stdout.write", "sys.stderr.write"):
                found.append(called)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("print", "input"):
            found.append(node.func.id)
        if isinstance(node, ast.ImportFrom) and node.module:
            names = {alias.name for alias in node.names}
            if node.module == "rich.console" and "Console" in names:
                found.append("rich.console.Console")
            if node.module in ("rich.prompt", "rich.markup", "rich") or names & FORBIDDEN.get(node.module, set()):
                found.append(node.module)
    return found


def _without_type_checking(tree: ast.Module) -> ast.Module:
    """The module without what only a type checker sees."""

    class Drop(ast.NodeTransformer):
        def visit_If(self, node: ast.If) -> ast.AST | None:
            return None if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING" else node

    dropped = Drop().visit(tree)
    assert isinstance(dropped, ast.Module)
    return dropped


def test_only_the_writer_prints() -> None:
    found = {}
    for path in SOURCE.rglob("*.py"):
        if path.name in WRITERS or "testing" in path.parts:
            continue
        calls = _calls(_without_type_checking(ast.parse(path.read_text(encoding="utf-8"))))
        if calls:
            found[str(path.relative_to(SOURCE))] = calls
    assert not found, "print with say, say_text, say_json or console_for of faces/cli/terminal.py"


def test_a_line_stays_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    say("run ", ("a\nripstop: all is well", "bold"))
    assert capsys.readouterr().out == "run a\\nripstop: all is well\n"


def test_text_keeps_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    say_text(f"one\n{HOSTILE}\n", err=True)
    assert capsys.readouterr().err == "one\n\\x1b]0;pwned\\x07\\x1b[2J\\x9b8m\\u202eevil\\x00\\r\\ud800\n"


def test_json_escapes_what_acts_and_keeps_letters(capsys: pytest.CaptureFixture[str]) -> None:
    say_json({"海": "\x7f\x9b\u202e\u2028\udcff"})
    assert capsys.readouterr().out == '{"海": "\\u007f\\u009b\\u202e\\u2028\\udcff"}\n'


def test_log_messages_are_filtered(capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    before = root.level, list(root.handlers)
    root.handlers.clear()  # what pytest keeps of a log cannot hold half a character where several processes test
    try:
        log_to_stderr(logging.WARNING)
        try:
            raise ValueError(HOSTILE)
        except ValueError:
            logging.getLogger("ripstop.x").exception("cannot read %s", HOSTILE)
    finally:
        root.setLevel(before[0])
        root.handlers[:] = before[1]
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert not set(err) & set("\x1b\x07\x9b\u202e\x00\r\ud800")


def test_output_filters_whatever_is_written_to_it() -> None:
    raw = io.BytesIO()
    output = Output(raw, "utf-8", "backslashreplace")
    print(HOSTILE, file=output)
    output.flush()
    assert raw.getvalue() == b"\\x1b]0;pwned\\x07\\x1b[2J\\x9b8m\\u202eevil\\x00\\r\\ud800\n"


def test_rich_shows_unfiltered_text_escaped() -> None:
    out = io.StringIO()
    console = SafeConsole(
        file=out, force_terminal=True, color_system="standard", width=200, markup=False, highlight=False
    )
    table = Table()
    table.add_column("x")
    table.add_row(HOSTILE)
    console.print(HOSTILE, Text(HOSTILE), Text("red", "red"), table)
    shown = out.getvalue()
    assert shown.count("\x1b[31m") == 1, "our own styles survive"
    unstyled = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert not set(unstyled) & set("\x1b\x07\x9b\u202e\x00\r")


def test_cells_of_a_table_are_as_wide_as_what_is_shown() -> None:
    out = io.StringIO()
    console = SafeConsole(file=out, width=200, markup=False)
    table = Table(box=None, pad_edge=False)
    table.add_column("run", no_wrap=True)
    table.add_column("status")
    for name in ("海の夜", "a\x1bb\u202e", "plain", "e\u0301\u0301"):
        table.add_row(line_of(name), "x")
    console.print(table)
    lines = out.getvalue().splitlines()
    assert len({cell_len(line[: line.rindex("x")]) for line in lines[1:]}) == 1


@pytest.mark.parametrize("before", ["key: ", "海の夜: ", "a\u202eb: ", "e\u0301e\u0301: ", "\t\x1b: ", "👨\u200d👩: "])
def test_a_caret_points_at_its_column_after_escaping(before: str) -> None:
    problem = Problem(Position("f\n\x1b.yaml", 1, len(before) + 1), "wrong", source=f"{before}HERE")
    shown, caret = problem.excerpt.splitlines()
    assert cell_len(shown[: shown.index("HERE")]) == len(caret) - 1
    assert len(str(problem).splitlines()) == 3
    assert "\x1b" not in str(problem)


@pytest.mark.parametrize("line", ["{0}", "show {0}", "runs {0}", "run --max-calls {0} x", "runs --{0}", "answer {0} x"])
def test_usage_errors_escape_what_was_typed(tmp_path: Path, line: str) -> None:
    typed = [part.replace("{0}", "a\x1b[31mb\u202e\n\udcff") for part in line.split()]
    done = subprocess.run([sys.executable, "-m", "ripstop", *typed], cwd=tmp_path, capture_output=True, timeout=240)
    assert done.returncode == 2
    text = done.stderr.decode()
    assert not set(text) & set("\x1b\u202e\r")
    assert r"\x1b[31m" in text


def test_the_traceback_of_a_bug_is_filtered(tmp_path: Path) -> None:
    code = (
        "import ripstop.app.stores, ripstop.faces.cli.main as main\n"
        "def broken(*_, **__): raise ZeroDivisionError('\\x1b]0;x\\x07')\n"
        "ripstop.app.stores.open_engine = broken\n"
        "import sys; sys.argv = ['ripstop', 'runs']\n"
        "main.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, timeout=240, env=os.environ)
    assert done.returncode == 1
    assert b"Traceback" in done.stderr
    assert rb"\x1b]0;x\x07" in done.stderr
    assert b"\x1b" not in done.stderr
