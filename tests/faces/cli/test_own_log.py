"""`-v` shows what ripstop does, and nothing of the libraries; `work` names runs that fail."""

import asyncio
import json
import logging
from pathlib import Path

import pytest

from ripstop import App
from ripstop.faces.cli.terminal import log_to_stderr
from ripstop.testing.commands import command
from tests.walks.test_command_line import HAIKU, SCRIPT


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("option", "levels"), [("-v", {"INFO"}), ("-vv", {"INFO", "DEBUG"})])
def test_verbose_shows_our_own_log_alone(option: str, levels: set[str]) -> None:
    done = command(option, "run", str(HAIKU), "--model", SCRIPT, "--json")
    run = json.loads(done.out)["run"]
    logged = [line.split(": ")[0].split() for line in done.err.splitlines() if line.startswith(("INFO", "DEBUG"))]
    assert {level for level, _ in logged} == levels
    assert {name.partition(".")[0] for _, name in logged} == {"ripstop"}
    assert f"INFO ripstop.worker: {run}/2: performing AskAgent poet, attempt 1" in done.err
    log_to_stderr()
    assert logging.getLogger("ripstop").level == logging.WARNING


def test_work_names_a_run_that_failed(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('{"error": "refused"}\n')

    async def start() -> str:
        async with App(scope=None) as app:
            return (await app.start(HAIKU, model=f"script:{tmp_path / 'bad.jsonl'}")).id

    run = asyncio.run(start())
    done = command("work", "--until-idle")
    assert f"{run}  failed: " in done.err, done
