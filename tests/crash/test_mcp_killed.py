"""A worker is killed while an MCP server waits for a person: the answer is not lost, and the call is done once."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ripstop.app.application import App
from ripstop.kernel.effects import ToolReturned
from ripstop.kernel.events import Answered
from ripstop.testing.commands import command
from tests.faces.cli.test_tools_command import WORKFLOW
from tests.tools.mcp.served import HARNESS

SCRIPT = [
    {"calls": [{"tool": "shop__order", "args": {"article": "ink"}}]},
    {"reply": '{"content": "Ordered.", "decisions": {"done": true}}'},
]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "shop.yaml").write_text(WORKFLOW)
    (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, SCRIPT)))
    server = HARNESS / "asking_mcp.py"
    (tmp_path / "ripstop.toml").write_text(f'[mcp.shop]\ncommand = ["{sys.executable}", "{server}", "done.txt"]\n')
    monkeypatch.chdir(tmp_path)
    assert command("tools", "trust", "shop", "--yes").code == 0
    return tmp_path


async def killed(failpoint: str) -> None:
    """Work until the process is killed at a fail-point."""
    environment = {**os.environ, "RIPSTOP_FAILPOINT": failpoint}
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "ripstop", "work"), stdout=subprocess.DEVNULL, env=environment
    )
    assert await asyncio.wait_for(worker.wait(), 60) == -signal.SIGKILL


@pytest.mark.req("S2-28")
@pytest.mark.parametrize("failpoint", ["worker.after_park", pytest.param("worker.before_park", marks=pytest.mark.long)])
def test_input_that_is_given_after_the_worker_was_killed_is_used_once(project: Path, failpoint: str) -> None:
    async def story() -> None:
        async with App(scope=None) as app:
            run = await app.start("shop.yaml", model="script:s.jsonl")
            await killed(failpoint)
            (question,) = await app.desk()
            await app.answer(question, choice="accept", fields={"number": 3}, by="ann")
            assert not (project / "done.txt").exists()
        async with App() as app:
            view = await asyncio.wait_for(app.wait(run), 60)
            if failpoint == "worker.before_park":  # the call had begun, and was never said to be parked
                (doubt,) = await app.desk()
                assert "shop__order" in doubt.command.question and not (project / "done.txt").exists()
                await app.answer(doubt, choice="again")
                view = await asyncio.wait_for(app.wait(run), 60)
            assert view.run.ended is not None and view.run.ended.outcome == "completed"
            records = await app.engine.journal.read(run.id)
            returned = [record.event.answer for record in records if isinstance(record.event, Answered)]
            assert ToolReturned(value="ordered 3 ink") in returned
            assert await app.desk() == [] and await app.engine.journal.verify() == []

    asyncio.run(story())
    assert (project / "done.txt").read_text() == "ordered 3 ink\n"
