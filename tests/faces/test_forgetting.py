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


def test_forget_keeps_a_run_with_undelivered_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def write() -> None:
        journal, scribe = SqliteJournal(tmp_path / ".ripstop" / "journal.db", Codec()), Scribe()
        await journal.append(scribe.start("speaks", Say(text="x", channel="mail")))
        await journal.append(scribe.end("speaks", after=2))
        await journal.append(scribe.start("silent"))
        await journal.append(scribe.end("silent"))
        await journal.close()

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
