"""`ripstop forget` keeps what is still needed, and says why."""

import asyncio
import json
from pathlib import Path

import pytest

from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.kernel.codec import Codec
from ripstop.kernel.effects import Say
from ripstop.testing.commands import command
from ripstop.testing.journal_entries import Scribe
from tests.harness.own_journal import own
from tests.walks.talking_bot import decision, script, write_bot


def test_forget_keeps_a_run_with_undelivered_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def write() -> None:
        journal, scribe = SqliteJournal(tmp_path / ".ripstop" / "journal.db", Codec()), Scribe()
        await journal.append(scribe.start("speaks", Say(text="x", channel="mail")))
        await journal.append(scribe.end("speaks", after=2))
        await journal.append(scribe.start("silent"))
        await journal.append(scribe.end("silent"))
        await journal.close()
        await own(tmp_path / ".ripstop" / "journal.db")

    asyncio.run(write())
    monkeypatch.chdir(tmp_path)
    refused = command("forget", "speaks")
    assert refused.code == 2
    assert "1 of its messages is not delivered yet. Start a worker that offers 'channel:mail'" in refused.err
    tried = command("forget", "--older", "0s", "--dry-run")
    assert tried.out == "silent\nWould forget 1 run.\n" and "speaks stays: " in tried.err
    older = command("forget", "--older", "0s")
    assert (older.code, older.out) == (0, "Forgot 1 run.\n")
    assert "speaks stays: Run 'speaks' cannot be forgotten: 1 of its messages" in older.err
    assert [row["run"] for row in json.loads(command("runs", "--json").out)] == ["speaks"]


@pytest.mark.parametrize("options", [("--message", "x"), ()])
def test_a_chat_with_a_forgotten_session_says_when_it_was_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    bot = write_bot(tmp_path, decision("It is on its way."))
    talk = ("chat", str(bot), "--session", "ann", "--model", script(bot))
    assert command(*talk, "--message", "Where is my order?").code == 0
    assert command("cancel", "chat:shop:ann").code == 0
    assert command("forget", "chat:shop:ann").code == 0
    refused = command(*talk, *options)
    assert refused.code == 2
    assert "ripstop: Run 'chat:shop:ann' was forgotten on 20" in refused.err
    assert "is not used again. Choose another --session." in refused.err
    for asked in ("log", "why", "show", "cancel", "resume", "fork", "forget"):
        assert "was forgotten on 20" in command(asked, "chat:shop:ann").err, asked


def test_cancelling_a_session_again_names_the_way_to_continue_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    bot = write_bot(tmp_path, decision("It is on its way."))
    command("chat", str(bot), "--session", "ann", "--model", script(bot), "--message", "Where is my order?")
    assert command("cancel", "chat:shop:ann").code == 0
    again = command("cancel", "chat:shop:ann")
    assert again.code == 2
    assert "`ripstop resume chat:shop:ann` continues it." in again.err and "fork" not in again.err.lower()
