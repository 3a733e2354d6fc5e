"""Journals with many runs or with long ones, written by the real engine from another process than the server's.

Every run follows one workflow of two agents, `review`. What agents say comes from here, or from a script that the
server's own worker reads (`SPOKEN`).
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ripstop.app.application import App
from ripstop.app.run_sync import in_loop
from ripstop.app.settings.settings_file import Settings
from ripstop.kernel.events import Answered
from ripstop.security.files import OURS, make_folder
from ripstop.styles.graph.definition import END, Agent, Graph, State, Transition
from tests.styles.loops import says
from tests.web.desk_server import DeskServer

T = TypeVar("T")
TOGETHER = 500
"""Runs that are started at once, so that the journal writes them together."""
GRAPH = Graph(
    name="review",
    start="write",
    agents=(Agent("writer"), Agent("reviewer")),
    states=(
        State("write", "writer", "Write {{initial_message}}.", (Transition("score", "drafted"), Transition("write"))),
        State("score", "reviewer", "Score.", (Transition(END, "score >= 8 AND NOT blocking"), Transition("write"))),
    ),
    guards={"patience": 0},
    max_turns=10_000,
)
SPOKEN = """\
name: spoken
initial_message: the weather
max_turns: 40
agents:
  - name: writer
    type: ask
  - name: reviewer
    type: ask
states:
  - name: write
    agent: writer
    start: true
    prompt: Write about {{initial_message}}. {{last_agent_content}}
    transitions:
      - to: score
        condition: drafted
      - to: write
        condition: NOT drafted
  - name: score
    agent: reviewer
    prompt: Score {{last_agent_content}}.
    transitions:
      - to: END
        condition: score >= 8
      - to: write
"""


def journal_of(folder: Path) -> Path:
    return folder / OURS / "journal.db"


def in_journal(folder: Path, act: Callable[[App], Awaitable[T]]) -> T:
    """Do something with the journal of a folder, in this process and without a worker."""

    async def main() -> T:
        make_folder(folder / OURS)
        async with App(Settings(store=f"sqlite:{journal_of(folder)}"), scope=None) as app:
            return await act(app)

    return in_loop(main)


def start_runs(folder: Path, names: Iterable[str], workflow: Graph = GRAPH, about: str = "a note") -> None:
    content, waiting = msgspec.json.encode(workflow), list(names)

    async def start(app: App) -> None:
        for at in range(0, len(waiting), TOGETHER):
            batch = waiting[at : at + TOGETHER]
            await asyncio.gather(*(app.engine.start(name, "graph", content, about) for name in batch))

    in_journal(folder, start)


def add_turns(folder: Path, run: str, turns: int) -> int:
    """Have a run's agents take turns, three records each; returns how many records it has then."""

    async def grow(app: App) -> int:
        now = (await app.engine.look(run)).run
        for _ in range(turns):
            number = max(now.open)
            reply = says(f"Turn of record {number}.", drafted=True, score=1)
            now, _ = await app.engine.tell(run, Answered(to=number, answer=reply))
        return now.length

    return in_journal(folder, grow)


def write_spoken(folder: Path, lines: Iterable[dict[str, Any]]) -> dict[str, str]:
    """Write the workflow `spoken` and a script for its agents; returns the environment for the server."""
    place = folder / "workflows" / "spoken"
    place.mkdir(parents=True)
    (place / "workflow.yaml").write_text(SPOKEN, encoding="utf-8")
    script = folder / "script.jsonl"
    script.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return {"RIPSTOP_MODEL": f"script:{script}"}


def start_spoken(server: DeskServer, about: str = "the weather") -> str:
    """Start the workflow `spoken` with the form of the page; returns the run."""
    reply = server.sign_in().post("/runs", {"workflow": "spoken", "input": about}, page="/runs/new?workflow=spoken")
    assert reply.status == 303, reply.text[:3000]
    return reply.headers["location"].rpartition("/")[2]


def line(agent: str, content: str, delay: float = 0.0, **decisions: Any) -> dict[str, Any]:
    """One line of a script."""
    reply = json.dumps({"content": content, "decisions": decisions}, ensure_ascii=False)
    return {"agent": agent, "delay": delay, "reply": reply}
