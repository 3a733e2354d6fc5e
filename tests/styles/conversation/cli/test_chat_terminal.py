"""Chats on a real terminal, from both sides."""

import os
import re
import sys
import termios
import time
from pathlib import Path

import pytest

from ripstop.testing.commands import command
from tests.faces.cli.test_on_the_spot import PATIENCE, Person
from tests.walks.talking_bot import BROKEN, GREETING, HANDOFF, decision, script, write_bot

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
PROMPT = "› ".encode()
NOISY = "Hi \x1b]0;pwned\x07\u202e."


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in (("TERM", "xterm-256color"), ("USER", "kim"), ("LOGNAME", "kim")):
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Chatter(Person):
    """A person at a chat, where something new is shown every second."""

    def sees(self, text: bytes) -> bytes:
        until = time.monotonic() + PATIENCE
        while text not in self._run.shown[self._seen :]:
            self._more()
            assert time.monotonic() < until, (text, self._run.shown.decode(errors="replace"))
        return super().sees(text)

    def ends(self) -> tuple[int, str]:
        self._run.read()
        assert self.echoes, "the terminal is not as it was"
        return super().ends()

    @property
    def echoes(self) -> bool:
        return bool(termios.tcgetattr(self._run.terminal)[3] & termios.ECHO)


def chat(bot: Path, *more: str) -> Chatter:
    person = Chatter(bot.parent, "chat", str(bot), "--session", "ann", "--model", script(bot), *more)
    person.sees(PROMPT)
    return person


def test_a_chat_shows_what_is_said_and_leaves_the_terminal_as_it_was(here: Path) -> None:
    bot = write_bot(here, decision(NOISY), timers=[{"delay": 900, "message": "Still there?"}])
    person = chat(bot)
    assert not person.echoes
    person.types("Hallo" + "\x1b[D" * 4 + "\x1b[3~e\r")  # one letter is mended
    person.sees(b"Hello")
    person.sees(GREETING.encode())
    person.sees(b"\\x1b]0;pwned\\x07\\u202e.")
    person.sees(b"Still there?")
    person.types("half a line\x15\x04")
    code, shown = person.ends()
    assert code == 0 and "The session stays. Continue it with:  ripstop chat" in shown
    assert "\x1b" not in re.sub(r"\x1b\[\?2004[hl]", "", shown) and "\u202e" not in shown and "Traceback" not in shown
    heard = command("sessions", "show", "ann").out
    assert "user: Hello\n" in heard and "half" not in heard


def test_a_slip_in_a_command_is_refused_and_the_next_line_is_sent(here: Path) -> None:
    tool = {"type": "TOOL", "target": "insurance"}
    bot = write_bot(here, decision("One moment.", "processing", tool), BROKEN, BROKEN)
    person = chat(bot)
    person.types("/exit\r")
    person.sees(b"/exit is not a command here; there are: /quit.")
    person.types("Hello\r")  # and not "/exitHello"
    person.sees(b"One moment.")
    person.sees("· tool insurance failed".encode())
    person.sees("· broken off: the decision breaks the contract".encode())
    person.types("/quit\r")
    code, shown = person.ends()
    assert code == 0 and "The session stays. Continue it with:  ripstop chat" in shown
    heard = command("sessions", "show", "ann").out
    assert "user: Hello\n" in heard and "/exit" not in heard and "/quit" not in heard


@pytest.mark.long
@pytest.mark.parametrize("signals", [1, 3])
def test_ctrl_c_leaves_without_a_traceback_while_the_bot_is_at_work(here: Path, signals: int) -> None:
    person = chat(write_bot(here, decision("Never.", delay=600)))
    person.types("Hello\r")
    person.sees(b"is at work")
    person.types("\x03" * signals)
    code, shown = person.ends()
    assert code == 130 and "Traceback" not in shown and shown.count("Nothing is lost") == 1, shown
    assert f"chat {here / 'shop'} --session ann" in shown


@pytest.mark.long
def test_what_is_typed_meanwhile_stays_and_supersedes(here: Path) -> None:
    bot = write_bot(here, decision("One."), decision("Two.", delay=600), decision("Both."))
    person = chat(bot)
    person.types("first\r")
    person.sees(b"One.")
    person.types("second\r")
    person.sees(b"is at work")
    person.types("third\r")
    person.sees(b"Both.")
    person.types("\x04")
    assert person.ends()[0] == 0


@pytest.mark.long
def test_a_timer_speaks_while_something_is_typed(here: Path) -> None:
    bot = write_bot(here, decision("Hi."), timers=[{"delay": 0.5, "message": "Are you there?"}])
    person = chat(bot)
    person.types("Hello\r")
    person.sees(b"Hi.")
    person.types("I was just ty")
    person.sees(b"Are you there?")
    person.sees(b"I was just ty")  # drawn again below it
    person.types("\x15\x04")
    assert person.ends()[0] == 0


@pytest.mark.long
def test_both_sides_see_each_other(here: Path) -> None:
    bot = write_bot(here, HANDOFF, decision("I am back."))
    user = chat(bot)
    user.types("A person, please\r")
    user.sees(b"waits for a person (support was asked)")
    desk = Chatter(here, "chat", "--as-desk", "ann")
    desk.sees(b"A person, please")
    desk.sees(b"nobody has taken this conversation yet")
    desk.types("I am Kim.\r")
    user.sees(b"kim has taken the conversation")
    user.sees(b"I am Kim.")
    user.types("Thank you!\r")
    desk.sees(b"Thank you!")
    desk.types("/release\r")
    desk.sees(b"the bot has the conversation again")
    user.sees(b"I am back.")
    desk.types("too late\r")
    desk.sees(b"Take it over with /take.")
    desk.types("/take\r")
    user.sees(b"kim has taken the conversation")
    desk.types("/quit\r")
    code, shown = desk.ends()
    assert code == 0 and "The conversation stays as it is:  ripstop chat --as-desk chat:shop:ann" in shown
    user.types("\x04")
    assert user.ends()[0] == 0


@pytest.mark.long
def test_a_terminal_that_goes_away_ends_the_chat(here: Path) -> None:
    person = chat(write_bot(here, decision("Hi.")))
    os.close(person._run.terminal)
    assert person._run.wait() in (0, 129)
