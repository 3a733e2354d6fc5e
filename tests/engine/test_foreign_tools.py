"""A process that does not have a tool leaves its calls to one that does."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ripstop.app.application import App
from ripstop.app.settings.settings_file import Models, Settings
from ripstop.engine.engine import View
from ripstop.engine.ports import Tree
from ripstop.kernel.effects import ToolReturned
from ripstop.kernel.errors import UsageError
from ripstop.kernel.events import Answered, Asked, Doubted
from ripstop.testing.commands import command
from ripstop.tools.toolbox import Tool, tool

WORKFLOW = """\
name: shop
initial_message: pay
max_turns: 2
agents:
  - { name: ann, type: ask, tools: [pay] }
states:
  - name: work
    agent: ann
    start: true
    prompt: "{{COLLABORATION_GUIDE}} Go."
"""
SCRIPT = '{"reply": "", "calls": [{"tool": "pay", "args": {}}]}\n{"reply": "{\\"decisions\\": {}}"}\n'
PROGRAM = """
import asyncio
from tests.engine.test_foreign_tools import SETTINGS, pay
from ripstop.app.application import App


async def main():
    async with App(SETTINGS, tools=[pay()]) as app:
        run = await app.start("shop.yaml")
        print(run.id, flush=True)
        await app.wait(run)


asyncio.run(main())
"""
SETTINGS = Settings(models=Models(default="script:s.jsonl"), default_limits=False)


def pay() -> Tool:
    @tool()
    def pay() -> str:
        with open("ledger", "a") as ledger:
            ledger.write("paid\n")
        return "paid"

    return pay


@pytest.fixture(autouse=True)
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "shop.yaml").write_text(WORKFLOW)
    (tmp_path / "s.jsonl").write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def killed_at(failpoint: str) -> str:
    """A run of a program that has the tool and was killed there."""
    root = Path(__file__).parents[2]
    path = os.pathsep.join([str(root), str(root / "src")])
    environment = {**os.environ, "PYTHONPATH": path, "RIPSTOP_FAILPOINT": f"{failpoint}:1"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == -9, done.stderr
    return done.stdout.strip()


async def settled(run_id: str, *tools: Tool) -> View:
    async with App(SETTINGS, tools=tools, scope=Tree(run_id)) as app:
        return await app.wait(run_id)


def test_a_begun_call_is_in_doubt_for_the_next_process_with_the_tool(shop: Path) -> None:
    run_id = killed_at("worker.after_begin")

    async def story() -> None:
        async with App(SETTINGS, scope=None) as app:
            with pytest.raises(UsageError, match=r"waits for the tool 'pay' .* Resume it with the program"):
                await app.resume(run_id)
        view = await settled(run_id)
        assert (view.status, view.needs) == ("working", ("tool:pay",))
        view = await settled(run_id, pay())
        assert view.status == "waiting"
        async with App(SETTINGS, scope=None) as app:
            events = [record.event for record in await app.engine.journal.read(run_id)]
        assert [type(event) for event in events[-2:]] == [Doubted, Asked]
        assert not (shop / "ledger").exists()

    asyncio.run(story())


def test_a_call_that_was_not_begun_waits_for_a_process_with_the_tool(shop: Path) -> None:
    run_id = killed_at("worker.before_begin")

    async def story() -> None:
        async with App(SETTINGS) as app:
            before = await app.engine.journal.read(run_id)
            await asyncio.sleep(0.5)
            assert await app.engine.journal.read(run_id) == before
            assert app.missing_tools((await app.engine.look(run_id)).run) == ["pay"]
        view = await settled(run_id, pay())
        assert view.status == "completed"
        async with App(SETTINGS) as app:
            events = [record.event for record in await app.engine.journal.read(run_id)]
        answers = [e.answer for e in events if isinstance(e, Answered) and isinstance(e.answer, ToolReturned)]
        assert answers == [ToolReturned(value="paid")]
        assert (shop / "ledger").read_text() == "paid\n"

    asyncio.run(story())


def test_show_and_why_name_the_tool_that_a_run_waits_for(shop: Path) -> None:
    run_id = killed_at("worker.before_begin")
    waits = f"for the tool 'pay' ({run_id}/4), which a process has to bring  → ripstop resume {run_id} --tools MODULE"
    for looking in ("show", "why"):
        told = " ".join(command(looking, run_id).out.split())
        assert f"waits {' '.join(waits.split())}" in told, told
    assert json.loads(command("show", run_id, "--json").out)["needs"] == ["tool:pay"]
    (shop / "till.py").write_text("import ripstop\n\n@ripstop.tool\ndef pay() -> str:\n    return 'paid'\n")
    assert command("resume", run_id, "--tools", "till", "--model", "script:s.jsonl").code == 0
    assert "for the tool" not in command("show", run_id).out


def test_a_run_that_waits_for_a_tool_is_interrupted_wherever_it_is_shown(shop: Path) -> None:
    done = command("run", "shop.yaml", "--model", "script:s.jsonl")
    assert done.code == 4 and "\ninterrupted  it waits for the tool 'pay'\n" in done.out, done
    (listed,) = json.loads(command("runs", "--json").out)
    assert listed["status"] == "interrupted"
    assert f"\nnext    ripstop resume {listed['run']} --tools MODULE\n" in done.out
    assert command("work", "--until-idle").out == "1 interrupted\n"
    assert json.loads(command("work", "--until-idle", "--json").out) == {"counts": {"interrupted": 1}}
    told = json.loads(command("run", "shop.yaml", "--model", "script:s.jsonl", "--json").out)
    assert (told["outcome"], told["needs"]) == ("interrupted", ["tool:pay"])


@pytest.mark.req("S3-95")
def test_an_exception_of_a_tool_shows_its_traceback_only_when_asked(shop: Path) -> None:
    (shop / "till_broken.py").write_text(
        "import ripstop\n\n@ripstop.tool('pure')\ndef pay() -> str:\n    raise ValueError('the till is stuck')\n"
    )
    run = [sys.executable, "-m", "ripstop", "run", "shop.yaml", "--model", "script:s.jsonl", "--tools", "till_broken"]
    quiet, told = (
        subprocess.run([*run, *more], capture_output=True, text=True, timeout=240) for more in ((), ("-vv",))
    )
    assert "Traceback" not in quiet.stderr and "the till is stuck" in quiet.stdout + quiet.stderr
    assert "Traceback" in told.stderr
