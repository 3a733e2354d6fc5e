"""A person at a terminal is asked right away: previews, choices, feedback, an editor, and what others do meanwhile."""

import json
import os
import re
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.faces.cli import review_style
from tests.faces.cli.review_style import Drafts
from tests.walks.delivery import SCRIPT as DELIVERY
from tests.walks.test_command_line import HAIKU, SCRIPT
from tests.walks.test_exit_paths import OnTerminal

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
FIRST = "# Shop\n\nUsers can upload *files*.\n\n- fast\n- cheap\n"
SECOND = "# Shop\n\nUsers can upload *pictures*.\n\n- fast\n- cheap\n\n## Risks\n\nNone.\n"
PROMPT = b"> "


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a run that waits for a review, and the style that it is of."""
    for name, value in review_style.install(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("USER", "ann")
    monkeypatch.setenv("LOGNAME", "ann")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)
    monkeypatch.chdir(tmp_path)
    review_style.start(tmp_path, "shop", Drafts((FIRST, SECOND)))
    return tmp_path


PATIENCE = 60.0
"""Seconds of silence after which a command will not show anything more."""


class Person:
    """A person at a terminal who types when a prompt is shown."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._run = OnTerminal(*arguments, cwd=folder)
        self._seen = 0

    def sees(self, text: bytes) -> bytes:
        """Wait until something new is shown; returns what was shown until then."""
        while text not in self._run.shown[self._seen :]:
            before = len(self._run.shown)
            self._more()
            assert len(self._run.shown) > before, self._run.shown.decode()
        start, self._seen = self._seen, self._run.shown.index(text, self._seen) + len(text)
        return self._run.shown[start : self._seen]

    def _more(self) -> None:
        if not select.select([self._run.terminal], [], [], PATIENCE)[0]:
            return  # what is waited for never came
        try:
            self._run.shown += os.read(self._run.terminal, 65536)
        except OSError:  # the command has ended
            pass

    def types(self, text: str) -> None:
        os.write(self._run.terminal, text.encode())

    def ends(self) -> tuple[int, str]:
        self._run.read()
        code = self._run.wait()
        self._run.close()
        return code, plain(self._run.shown)


def plain(shown: bytes) -> str:
    """What was shown, without colours and movements of the cursor."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())


@pytest.fixture
def person(shop: Path) -> Person:
    return Person(shop, "resume", "shop")


def answers(folder: Path) -> list[dict[str, Any]]:
    log = ripstop(folder, "log", "shop", "--json").stdout
    return [record["answer"] for record in map(json.loads, log.splitlines()) if record["type"] == "answered"]


def ripstop(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "ripstop", *arguments],
        cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def editor(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch, name: str = "EDITOR") -> None:
    program = folder / "my editor"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv(name, f"'{program}' --wait")


@pytest.mark.req("S3-29", "S3-30", "S3-31", "S3-32", "S3-33", "S3-42", "S3-43")
def test_feedback_an_edit_and_a_pass_are_rounds_of_one_command(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor(shop, """[ "$1" = --wait ] && sed -i s/None/Thieves/ "$2" """, monkeypatch, "VISUAL")
    monkeypatch.setenv("EDITOR", "false")
    person = Person(shop, "resume", "shop")
    assert b"cheap" in person.sees(PROMPT)
    person.types("pass the tests first, \\\n")
    person.sees("… ".encode())
    person.types("and name the risks\n")
    person.sees(b"type: ")
    person.types("bug\n")
    person.sees(b"type: ")
    person.types("quality_issue\n")
    person.sees(b"severity: ")
    person.types("\n")
    shown = person.sees(PROMPT)
    assert b"pictures" in shown and b"+" in shown and b"ann answered" in shown
    person.types("EDIT\n")
    person.sees(b"Thieves")
    person.sees(PROMPT)
    person.types("\n")
    code, told = person.ends()
    assert code == 0 and "Answered: pass." in told and "completed" in told, told
    first, second, third = answers(shop)
    assert first["text"] == "pass the tests first, \nand name the risks"
    assert (first["choice"], first["by"], first["fields"]) == ("feedback", "ann", {"type": "quality_issue"})
    assert (second["choice"], second["document"]) == ("edit", SECOND.replace("None", "Thieves"))
    assert third["choice"] == "pass"
    assert not list((shop / ".ripstop" / "kept").iterdir())


def test_a_draft_is_shown_as_a_turn_before_its_review_and_not_again_after_it(tmp_path: Path) -> None:
    person = Person(tmp_path, "--model", f"script:{DELIVERY}", "new", "a to-do list in the browser")
    before = plain(person.sees(b"Type pass") + person.sees(PROMPT))
    person.types("pass\n")
    after = plain(person.sees(b"Type pass") + person.sees(PROMPT))
    person.types("later\n")
    assert person.ends()[0] == 4
    turn, asked = before.index("● prd  "), before.index("a person is asked:")
    assert turn < before.index("to-do list 1. People can add a task") < asked, before
    assert "to-do list 1. People" not in after and after.index("● design  ") < after.index("a person is asked:"), after


@pytest.mark.parametrize("typed", [" Later \n", pytest.param("\x04", marks=pytest.mark.long)])
def test_a_question_can_be_left_for_the_desk(person: Person, shop: Path, typed: str) -> None:
    person.sees(PROMPT)
    person.types(typed)
    code, told = person.ends()
    assert code == 4 and "shop/3 stays on the desk." in told and "ripstop answer shop/3 CHOICE" in told


@pytest.mark.long
def test_an_answer_from_elsewhere_is_said_and_the_run_goes_on(person: Person, shop: Path) -> None:
    person.sees(PROMPT)
    person.types("half a sen")
    assert ripstop(shop, "answer", "shop/3", "pass", "--as", "bob").returncode == 0
    code, told = person.ends()
    assert code == 0 and "shop/3 was answered already, by bob: 'pass'." in told, told


@pytest.mark.long
def test_ctrl_c_interrupts_as_elsewhere(person: Person, shop: Path) -> None:
    person.sees(PROMPT)
    person.types("\x03")
    code, told = person.ends()
    assert code == 130 and told.count("Nothing is lost; resume with:  ripstop resume shop") == 1, told
    assert answers(shop) == []


@pytest.mark.long
def test_pasted_lines_are_one_text_and_an_editor_that_fails_answers_nothing(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor(shop, 'echo more >> "$2"; exit 3', monkeypatch)
    person = Person(shop, "resume", "shop")
    person.sees(PROMPT)
    person.types("edit\n")
    assert b"exit code 3" in person.sees(PROMPT)
    person.types("one\n\npass\n")
    person.sees(b"type: ")
    person.types("\n")
    person.sees(b"severity: ")
    person.types("\x04")
    code, _ = person.ends()
    assert code == 4 and answers(shop) == []
    (kept,) = (shop / ".ripstop" / "kept").iterdir()
    assert kept.read_text() == f"{FIRST}more\n" and kept.stat().st_mode & 0o777 == 0o600


@pytest.mark.long
def test_a_question_for_another_person_is_not_asked(shop: Path) -> None:
    review_style.start(shop, "legal", Drafts((FIRST,), to="bob"))
    code, told = Person(shop, "resume", "legal").ends()
    assert code == 4 and "ripstop answer legal/3 CHOICE" in told and "Type " not in told


@pytest.mark.long
def test_what_was_typed_before_the_question_is_not_an_answer(shop: Path) -> None:
    person = Person(shop, "resume", "shop")
    person.types("\n\npass\n")
    person.sees(PROMPT)
    person.types("later\n")
    code, told = person.ends()
    assert code == 4 and "stays on the desk" in told and answers(shop) == []


@pytest.mark.long
def test_a_guard_asks_and_its_limit_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ripstop.toml").write_text('[guards]\nthen = "ask"\n')
    person = Person(tmp_path, "run", str(HAIKU), "--model", SCRIPT, "--max-calls", "1")
    assert b"Continue?" in person.sees(PROMPT)
    person.types("perhaps\n")
    assert b"Type continue or stop, or later." in person.sees(PROMPT)
    person.types("continue\n")
    person.sees(b"raise: ")
    person.types("20\n")
    code, told = person.ends()
    assert code == 0 and "Answered: continue (raise=20" in told, told


PAYING = """
import ripstop

@ripstop.tool
def pay(euros: int) -> str:
    "Pay."
    raise RuntimeError("the line went dead")
"""
SHOPPING = """
name: buy
initial_message: Buy it.
agents:
  - {name: buyer, type: coder, tools: [pay]}
states:
  - name: buy
    agent: buyer
    start: true
    prompt: "{{COLLABORATION_GUIDE}} Pay. (done: true)"
    transitions: [{to: END, condition: done}]
"""


@pytest.mark.long
def test_an_effect_in_doubt_is_asked_about_with_what_came_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    (tmp_path / "paying.py").write_text(PAYING)
    (tmp_path / "buy.yaml").write_text(SHOPPING)
    calls = {"agent": "buyer", "reply": "", "calls": [{"tool": "pay", "args": {"euros": 3}}]}
    done = {"agent": "buyer", "reply": json.dumps({"content": "Paid.", "decisions": {"done": True}})}
    (tmp_path / "script.jsonl").write_text(f"{json.dumps(calls)}\n{json.dumps(done)}\n")
    person = Person(tmp_path, "run", "buy.yaml", "--any-name", "--model", "script:script.jsonl", "--tools", "paying")
    assert b"the line went dead" in person.sees(PROMPT)
    person.types("\n")
    person.sees(b"Type happened, again or 'give up', or later.")
    person.sees(PROMPT)
    person.types("It happened\n")
    person.sees(b"What came of it?")
    person.types("receipt 7\n")
    code, told = person.ends()
    assert code == 0 and 'Answered: happened ("receipt 7").' in told, told


@pytest.mark.long
def test_answer_opens_the_editor_on_a_terminal(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor(shop, 'echo "- safe" >> "$2"', monkeypatch)
    code, told = Person(shop, "answer", "shop/3", "Edit", "--as", "eve").ends()
    assert code == 0 and "Answered: edit." in told, told
    (given,) = answers(shop)
    assert (given["by"], given["document"]) == ("eve", f"{FIRST}- safe\n")


@pytest.mark.long
def test_an_edit_that_comes_too_late_is_kept(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = f"{sys.executable} -m ripstop answer shop/3 Shorter. --as bob < /dev/null > /dev/null 2>&1"
    editor(shop, f'echo "- safe" >> "$2"; {other}', monkeypatch)
    person = Person(shop, "resume", "shop")
    person.sees(PROMPT)
    person.types("edit\n")
    told = b" ".join(person.sees(PROMPT).split())
    assert b"shop/3 was answered already, by bob" in told and b"Your text is in .ripstop/kept/shop-3.md" in told
    assert b"pictures" in told, "the next draft is asked about at once"
    person.types("\n")
    assert person.ends()[0] == 0
    assert (shop / ".ripstop/kept/shop-3.md").read_text() == f"{FIRST}- safe\n"
