"""A message says what to do next without the name of a command; a face puts its own name there."""

import ast
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import ripstop
from ripstop.app.plugins import BUILT_IN, installed
from ripstop.app.settings.settings_file import Models, Settings
from ripstop.app.trust import NotTrusted, Trust
from ripstop.faces.cli.errors import error_report
from ripstop.faces.cli.main import COMMANDS as OWN_COMMANDS
from ripstop.faces.next_steps import COMMANDS, command_of, in_commands
from ripstop.faces.web.errors import said_of
from ripstop.journals.sqlite.file import explain
from ripstop.kernel.advice import Advice, NextStep
from ripstop.kernel.errors import JournalError, RunNotFound, UsageError
from ripstop.kernel.style import EndpointUse
from ripstop.security.consent import Consents

ROOT = Path(ripstop.__file__).parent
RESUME = NextStep("resume", "resume it", "`{}`", "r-1")
FULL = Advice("The disk is full. Make room, then ", RESUME, ".")
NAMES = {*OWN_COMMANDS, *installed().commands}
COMMAND = re.compile(rf"\bripstop ({'|'.join(sorted(NAMES))})\b")
FACES = re.compile(r"faces/|testing/|styles/\w+/(cli|http|demo)\b|styles/\w+/cli_\w+\.py")
NOT_MESSAGES = {"styles/graph/schema.py"}
"""Descriptions of a file's fields, for editors: they say what a command does with a field."""


def test_an_advice_is_a_plain_text_that_a_face_says_with_its_own_names() -> None:
    assert FULL == "The disk is full. Make room, then resume it."
    assert in_commands(FULL) == "The disk is full. Make room, then `ripstop resume r-1`."
    assert in_commands("The disk is full.") == "The disk is full."
    assert msgspec.json.decode(msgspec.json.encode(str(FULL))) == FULL, "as it is recorded"


def test_an_advice_in_another_keeps_its_steps() -> None:
    assert in_commands(Advice("So: ", FULL)) == "So: The disk is full. Make room, then `ripstop resume r-1`."
    assert Advice("So: ", FULL, RESUME).steps == (RESUME, RESUME)


def test_a_step_that_a_face_has_no_name_for_is_said_in_plain_words() -> None:
    assert in_commands(Advice("You can ", NextStep("fly", "fly", "fly with `{}`"), ".")) == "You can fly."


def test_braces_in_a_message_are_only_text() -> None:
    assert in_commands(Advice("{0} {x} ", RESUME)) == "{0} {x} `ripstop resume r-1`"
    assert command_of(NextStep("trust", "", "{}", "{odd}")) == "ripstop trust {odd}"


def test_the_id_of_a_run_is_quoted_for_a_shell() -> None:
    for id_, shown in (("r-1", "r-1"), ("chat:shop:ann", "chat:shop:ann"), ("chat:shop:a b;c", "'chat:shop:a b;c'")):
        assert command_of(NextStep("resume", "", "{}", id_)) == f"ripstop resume {shown}"
        assert command_of(NextStep("fork", "", "{}", id_)) == f"ripstop fork {shown} --at N"


def test_an_error_has_the_steps_of_its_message() -> None:
    error = JournalError(FULL)
    assert (str(error), error.message, error.next_steps) == (FULL, FULL, (RESUME,))
    assert type(str(error)) is str
    plain = RunNotFound("r")
    assert (plain.message, plain.next_steps) == ("There is no run 'r'.", ())
    assert (UsageError().message, UsageError().next_steps) == ("", ())


def steps_in(tree: ast.Module) -> Iterator[str]:
    """The actions of the steps that a module names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("NextStep", "_agree"):
            first = node.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value


MODULES = {
    str(path.relative_to(ROOT)): ast.parse(path.read_text(encoding="utf-8")) for path in sorted(ROOT.rglob("*.py"))
}


def test_the_command_line_has_a_name_for_every_step_and_none_for_others() -> None:
    named = {action for tree in MODULES.values() for action in steps_in(tree)}
    known = [*COMMANDS, *(action for plugin in BUILT_IN for action in plugin.steps)]
    assert sorted(known) == sorted(named)


@pytest.mark.parametrize("action", [*COMMANDS, *(action for plugin in BUILT_IN for action in plugin.steps)])
def test_the_name_of_a_step_is_a_command_that_exists(action: str) -> None:
    assert COMMAND.match(command_of(NextStep(action, "", "{}", "x")))


def messages_of(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every text of a module but its docstrings, with what is filled in left out."""
    described = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in described:
            yield node.lineno, node.value


def test_no_message_below_the_faces_names_a_command() -> None:
    found = [
        f"{name}:{line}: {text!r}"
        for name, tree in MODULES.items()
        if not FACES.match(name) and name not in NOT_MESSAGES
        for line, text in messages_of(tree)
        if COMMAND.search(text)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (
            sqlite3.SQLITE_FULL,
            "cannot grow: the disk is full. Make room, then `ripstop resume`. What was",
        ),
        (sqlite3.SQLITE_CORRUPT, "is damaged. `ripstop verify` shows more; restore it from a backup (SQLite: odd)."),
        (sqlite3.SQLITE_IOERR, "is safe. Check the disk, then `ripstop resume` (SQLite: odd)."),
        (sqlite3.SQLITE_INTERRUPT, "can need. `ripstop verify` shows more; restore it from a backup (SQLite: odd)."),
    ],
)
def test_the_command_line_says_which_command_helps_with_a_journal(code: int, says: str) -> None:
    odd = sqlite3.OperationalError("odd")
    odd.sqlite_errorcode = code
    error = explain(Path("j.db"), odd)
    assert says in error_report(error).error
    assert not COMMAND.search(str(error)) and error.next_steps


def test_the_command_line_says_how_to_agree(tmp_path: Path) -> None:
    url = "http://example.test/v1"
    settings = Settings(models=Models(base_url=url), address_from="ripstop.toml")
    trust = Trust(settings, tmp_path, Consents(tmp_path / "state"), {})
    with pytest.raises(NotTrusted) as refused:
        trust.check(url, "r-1")
    ways = "Look at it and agree with `ripstop trust r-1`, or choose an address: --base-url URL."
    assert error_report(refused.value).error.endswith(ways)
    assert str(refused.value).endswith("Look at it and agree to it, or choose an address: --base-url URL.")
    assert [(step.action, step.subject) for step in refused.value.next_steps] == [("trust", "r-1")]
    (other,) = trust.unagreed_endpoints([EndpointUse(tool="buy", url="https://shop.test/x", headers={})])
    assert error_report(other).error.endswith(
        "Agree with `ripstop trust CONFIG`, or name it yourself: --allow https://shop.test."
    )


def test_the_web_desk_says_what_to_do_in_its_readers_language() -> None:
    error = UsageError(Advice("It is not installed. ", NextStep("install_model", "Install it", "Run `{}`"), "."))
    assert said_of(error, "en") == "It is not installed. Install it. At the server's terminal:  ripstop model install"
    assert said_of(error, "zh").endswith("请在服务器终端上运行：  ripstop model install")
    assert said_of(JournalError(FULL), "en") == FULL, "the hint about journals names the commands"
    assert said_of(UsageError("No."), "en") == "No."
