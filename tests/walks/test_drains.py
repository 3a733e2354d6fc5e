"""A service that is stopped lets calls under way finish and begins none; a second signal ends it at once.

The tool that is called says so and then waits for the test, each through a named pipe: nothing depends on time.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ripstop import App
from ripstop.kernel.effects import AskAgent, CallTool
from ripstop.kernel.events import Answered, Asked, Doubted, Event
from tests.walks.commands import ripstop

TOOLS = '''
from pathlib import Path

import ripstop

HERE = Path(__file__).parent


@ripstop.tool("unsafe")
def press() -> str:
    """Press the button."""
    (HERE / "begun").write_text("x")
    (HERE / "go").read_text()
    return "pressed"
'''
WORKFLOW = """\
name: press
initial_message: Press.
agents: [{name: presser, type: ask, tools: [press]}]
states:
  - name: press
    agent: presser
    prompt: "{{COLLABORATION_GUIDE}} {{initial_message}} Decide: done."
    transitions: [{to: END, condition: done}]
"""
REPLIES = ({"calls": [{"tool": "press", "args": {}}]}, {"reply": '{"content": "Done.", "decisions": {"done": true}}'})
BOT = "name: Pearl\nsop: Answer.\ngreeting: Hello.\n"
SERVICES = {"work": ["work"], "serve": ["serve", "bot", "--port", "0"], "web": ["web", "--port", "0"]}
STOPPED = 128 + signal.SIGTERM


@pytest.fixture(params=SERVICES)
def service(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> "Iterator[subprocess.Popen[str]]":
    """A service that has just called the tool for the run `RUN`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "buttons.py").write_text(TOOLS, encoding="utf-8")
    (tmp_path / "press.yaml").write_text(WORKFLOW, encoding="utf-8")
    (tmp_path / "bot").mkdir()
    (tmp_path / "bot" / "bot.yaml").write_text(BOT, encoding="utf-8")
    (tmp_path / "script.jsonl").write_text("\n".join(map(json.dumps, REPLIES)), encoding="utf-8")
    for pipe in ("begun", "go"):
        os.mkfifo(tmp_path / pipe)
    asyncio.run(start())
    command = [sys.executable, "-m", "ripstop", "--tools", "buttons", *SERVICES[request.param], "--drain", "600"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            (tmp_path / "begun").read_text()
            yield process
        finally:
            process.kill()


async def start() -> None:
    async with App(scope=None) as app:
        await app.start("press.yaml", key="one", model="script:script.jsonl")


def on_record() -> list[Event]:
    async def read() -> list[Event]:
        async with App(scope=None) as app:
            (info,) = (await app.runs()).items
            return [record.event for record in await app.engine.journal.read(info.run_id)]

    return asyncio.run(read())


def stop(process: "subprocess.Popen[str]") -> None:
    """Ask the service to stop, and wait until it says that it does."""
    process.send_signal(signal.SIGTERM)
    assert process.stderr is not None
    line = next(line for line in process.stderr if "stopping" in line)
    assert "Calls under way get 600 s to finish; a second signal ends at once." in line


def test_a_drain_lets_a_call_finish_and_begins_no_other(service: "subprocess.Popen[str]", tmp_path: Path) -> None:
    stop(service)
    (tmp_path / "go").write_text("x")
    service.communicate()
    assert service.returncode == STOPPED
    events = on_record()
    commands = {number: one.command for number, one in enumerate(events, 1) if isinstance(one, Asked)}
    answered = [type(commands[one.to]) for one in events if isinstance(one, Answered)]
    assert answered == [AskAgent, CallTool], "what came of the call is left to the next worker"
    assert not [one for one in events if isinstance(one, Doubted)]


def test_a_second_signal_during_a_drain_ends_at_once(service: "subprocess.Popen[str]", tmp_path: Path) -> None:
    stop(service)
    service.send_signal(signal.SIGTERM)
    _, said = service.communicate()  # the tool still waits, and so would the drain
    assert (service.returncode, "Nothing is lost" in said) == (STOPPED, True)
    assert ripstop("--tools", "buttons", "work", "--until-idle", cwd=tmp_path).returncode == 0
    (item,) = json.loads(ripstop("--json", "desk", cwd=tmp_path).stdout)
    assert item["kind"] == "doubt", "the call may have happened, so a person is asked"
