"""A folder as an enemy would have it cloned: its journal has calls open that spend the user's money."""

import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from ripstop import ALL, App
from ripstop.app.settings.settings_file import Models, Settings
from ripstop.kernel.events import RunSettings

WORKFLOW = """\
name: bill
initial_message: Pay the bill.
agents: [{name: payer, type: coder, tools: [pay]}]
states:
  - {name: work, agent: payer, prompt: "{{COLLABORATION_GUIDE}} {{initial_message}}", transitions: [{to: END}]}
"""
PAYS = {"calls": [{"tool": "pay", "args": {"euros": 9999}}]}
DONE = {"reply": '{"content": "done", "decisions": {}}'}
TOOLS = """\
import os
import ripstop


@ripstop.tool("unsafe")
def pay(euros: int) -> str:
    "Pay an amount."
    with open(os.environ["BANK"], "a") as bank:
        bank.write(f"{euros}\\n")
    return "paid"
"""


@contextmanager
def at_home_of(folder: Path) -> Iterator[None]:
    """Be another user, whose state folder this is."""
    before = os.environ.get("XDG_STATE_HOME")
    os.environ["XDG_STATE_HOME"] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ["XDG_STATE_HOME"]
        else:
            os.environ["XDG_STATE_HOME"] = before


def write_project(folder: Path, replies: int = 1, calls: object = PAYS) -> str:
    """The files of the project; returns the model that plays its agent, which first replies with these calls."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bill.yaml").write_text(WORKFLOW, encoding="utf-8")
    lines = [json.dumps(one) for _ in range(replies) for one in (calls, DONE)]
    (folder / "script.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return f"script:{folder / 'script.jsonl'}"


def write_journal(store: Path, project: Path, enemy: Path, runs: int = 1, calls: object = PAYS) -> list[str]:
    """A journal whose runs wait for the tool `pay`, which its writer's process did not have; or, with the calls
    `DONE`, have ended. One that is there already is continued. Returns the runs."""
    model = write_project(project, runs, calls)

    async def craft() -> list[str]:
        settings = Settings(store=f"sqlite:{store}", models=Models(default=model))
        async with App(settings, scope=ALL) as app:
            started = [(await app.start(project / "bill.yaml")).id for _ in range(runs)]
            for run in started:
                await app.wait(run)
            open_runs = [run for run in started if (await app.look(run)).run.open]
            assert open_runs == ([] if calls == DONE else started)
            for run in open_runs:  # a folder that the journal names would be asked about by itself
                await app.engine.change_settings(run, _nowhere((await app.look(run)).run.settings))
            return started

    with at_home_of(enemy):
        return asyncio.run(craft())


def _nowhere(settings: RunSettings) -> RunSettings:
    return replace(settings, workspace="", folder="")


def rollback_journal(deletes: Path) -> bytes:
    """What SQLite takes for a rollback journal that a crash has left. Played back, it deletes a file."""
    name = str(deletes).encode()
    checksum = sum(byte - 256 * (byte > 127) for byte in name) & 0xFFFFFFFF
    begin = MAGIC.ljust(512, b"\0")  # a header without pages
    end = (0x40000000 // 4096 + 1).to_bytes(4) + name + len(name).to_bytes(4) + checksum.to_bytes(4) + MAGIC
    return begin + end


MAGIC = bytes.fromhex("d9d505f920a163d7")
"""What a rollback journal begins with, and ends with if it names a file."""
