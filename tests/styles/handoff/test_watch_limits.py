"""`ripstop docs watch` stops when its agents have spent together what they may."""

import asyncio
import json
from pathlib import Path

import pytest

from ripstop.engine.live import Appended
from ripstop.kernel.effects import AgentReplied, Usage
from ripstop.kernel.events import Answered, Record
from ripstop.kernel.style import Picture
from ripstop.styles.handoff.cli_watch import STOPPED, WatchBudget
from ripstop.testing.commands import command


def script(**more: object) -> None:
    decisions = {"action": "pass", "to": "writer", "next_action": "Again", "result": ""}
    replies = ({"content": f"Round {number}.", "decisions": decisions} for number in range(9))
    lines = (json.dumps({"agent": "writer", "reply": json.dumps(reply), **more}) for reply in replies)
    Path("script.jsonl").write_text("\n".join(lines), encoding="utf-8")


@pytest.fixture(autouse=True)
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "roles").mkdir()
    (tmp_path / "roles" / "writer.md").write_text("You work.", encoding="utf-8")
    command("docs", "new", "Ink", "--to", "writer", "--from", "ann", "--id", "ink")


@pytest.mark.parametrize(
    ("limit", "amount", "said"),
    [
        ("calls", "1", "The call limit of 1 for this watch is reached."),
        ("tokens", "12", "The token limit of 12 for this watch is reached."),
        ("money", "0.25", "The cost limit of 0.25 for this watch is reached."),
    ],
)
def test_a_watch_stops_at_its_limit(limit: str, amount: str, said: str) -> None:
    script(usage={"input_tokens": 10, "output_tokens": 2, "money": 0.25})
    watched = command("docs", "watch", "--once", "--model", "script:script.jsonl", f"--max-{limit}", amount)
    assert (watched.code, said in watched.err) == (STOPPED, True), watched.err


def test_a_watch_stops_when_its_time_is_up() -> None:
    script(delay=600)
    watched = command("docs", "watch", "--once", "--model", "script:script.jsonl", "--max-seconds", "0.2")
    assert watched.code == STOPPED
    assert "The time limit of 0.2 s for this watch is reached." in watched.err


def test_a_watch_counts_tokens_that_the_server_did_not_report() -> None:
    async def spend(run_id: str) -> bool:
        budget = WatchBudget({"tokens": 100}, holds=lambda run: run == "folder.ink")
        reply = Answered(to=2, answer=AgentReplied(usage=Usage(1, 1, unreported_input=90, unreported_output=8)))
        budget.see(Appended(run_id, (Record(3, 0, reply),), Picture()))
        return budget.reached.done()

    assert asyncio.run(spend("folder.ink"))
    assert not asyncio.run(spend("another.ink"))
