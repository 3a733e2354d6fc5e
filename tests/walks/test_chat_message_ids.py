"""`chat --message-id`: what one id stands for."""

from pathlib import Path

import pytest

from ripstop.testing.commands import command
from tests.walks.talking_bot import decision, script, write_bot


def test_other_words_with_the_id_of_a_message_are_refused_and_not_lost_without_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    bot = write_bot(tmp_path, decision("It is open."), decision("Cancelled."))
    tell = ("chat", str(bot), "--model", script(bot), "--session", "ann", "--message-id", "m1", "--message")
    assert command(*tell, "Is it open?").out.endswith("It is open.\n")
    other = command(*tell, "Cancel it.")
    assert (other.code, other.out) == (2, "") and "'m1' was used for another message" in other.err
    assert command(*tell, "Is it open?").out.endswith("It is open.\n"), "the same message is heard once"
    assert "Cancel it." not in command("log", "chat:shop:ann", "--json").out
    other_session = (*tell[:5], "bob", *tell[6:])
    assert command(*other_session, "Cancel it.").code == 0, "ids are those of a session"
