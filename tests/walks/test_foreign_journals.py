"""A journal from somebody else: nothing in it is acted on before it was checked."""

import asyncio
import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ripstop.app import CODEC, STYLES, now
from ripstop.definitions.finding import find, load
from ripstop.journals.sqlite import SqliteJournal
from ripstop.runtime.engine import Engine
from ripstop.styles.graph.definition import Agent, Graph, State
from ripstop.testing.commands import command

ASK = """\
name: ask
initial_message: Write it.
agents: [{name: ada, type: coder}]
states:
  - {name: work, agent: ada, prompt: "{{COLLABORATION_GUIDE}} {{initial_message}}", transitions: [{to: END}]}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a home beside it."""
    for name in ("home", "here"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def script(*replies: dict[str, Any]) -> str:
    Path("script.jsonl").write_text("\n".join(map(json.dumps, replies)), encoding="utf-8")
    return f"script:{Path('script.jsonl').resolve()}"


def writes(path: str, content: str = "x") -> dict[str, Any]:
    call = {"tool": "write_file", "arguments": {"path": path, "content": content}}
    return {"calls": [call]}


def craft(definition: Graph, settings: dict[str, Any], store: str = "foreign.db") -> str:
    """A journal as an enemy would send it: every hash is right, and a run waits for its first turn."""

    async def write() -> None:
        journal = SqliteJournal(store, CODEC)
        engine = Engine(journal, STYLES, load, now)
        content = msgspec.json.encode(definition, order="deterministic")
        await engine.start("evil-1", "graph", content, "go", settings=settings)
        await journal.close()

    asyncio.run(write())
    return f"sqlite:{store}"


def graph(agent: str = "ada", **fields: Any) -> Graph:
    state = State(name="work", agent=agent, prompt="{{COLLABORATION_GUIDE}} go")
    return Graph(name="ask", start="work", agents=(Agent(name=agent),), states=(state,), initial_message="x", **fields)


def interrupted() -> str:
    """A run of ours that waits for its first turn."""
    return craft(graph(), {"model": script({"reply": '{"content": "done", "decisions": {}}'})}, "mine.db")


def tamper(store: str, statement: str) -> None:
    db = sqlite3.connect(store.removeprefix("sqlite:"))
    assert db.execute(statement).rowcount > 0
    db.commit()
    db.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE records SET body = replace(body, 'go', 'no')",
        "UPDATE records SET at = at + 1",
        "UPDATE runs SET length = length + 1",
        "UPDATE runs SET status = 'completed'",
        "DELETE FROM outbox",
        "UPDATE outbox SET due = NULL",
        "UPDATE blobs SET body = replace(body, 'ada', 'eve')",
    ],
)
@pytest.mark.parametrize("args", [("resume", "evil-1"), ("cancel", "evil-1"), ("fork", "evil-1")], ids=" ".join)
def test_a_run_that_verify_rejects_is_not_acted_on(here: Path, args: tuple[str, ...], statement: str) -> None:
    store = interrupted()
    tamper(store, statement)
    before = Path("mine.db").read_bytes()
    assert command("--store", store, "verify").code == 1
    done = command("--store", store, *args)
    assert done.code == 1, done
    assert "not what was written" in done.err or "was changed" in done.err
    assert _records(before) == _records(Path("mine.db").read_bytes())


def _records(content: bytes) -> list[Any]:
    Path("look.db").write_bytes(content)
    db = sqlite3.connect("look.db")
    try:
        return db.execute("SELECT * FROM records").fetchall()
    finally:
        db.close()


def test_a_sound_run_is_resumed(here: Path) -> None:
    done = command("--store", interrupted(), "resume", "evil-1")
    assert done.code == 0, done


def test_a_fork_of_a_damaged_run_is_not_resumed(here: Path) -> None:
    store = interrupted()
    forked = json.loads(command("--store", store, "fork", "evil-1", "--json").out)["run"]
    tamper(store, "UPDATE records SET body = replace(body, 'go', 'no') WHERE position = 1")
    done = command("--store", store, "resume", forked)
    assert (done.code, "not what was written" in done.err) == (1, True), done


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda: graph(".ssh"), "cannot be the name of a folder"),
        (lambda: graph("../up"), "cannot be the name of a folder"),
        (lambda: graph("collab"), "the folder that all agents share"),
        (lambda: graph(max_turns=10**9), "max_turns"),
        (lambda: msgspec.structs.replace(graph(), start="work", states=(State("work", "nobody", "x"),)), "nobody"),
    ],
)
def test_a_definition_that_check_rejects_is_not_acted_on(here: Path, change: Callable[[], Graph], said: str) -> None:
    store = craft(graph(), {"model": script(writes("authorized_keys"))})
    _swap_definition(change())
    assert command("--store", store, "verify").code == 0
    done = command("--store", store, "resume", "evil-1")
    assert done.code in (1, 2) and said in done.err, done
    assert "Traceback" not in done.err


def _swap_definition(wrong: Graph) -> None:
    """As `craft`, for a definition that the style itself could not begin with."""
    content = msgspec.json.encode(wrong, order="deterministic")
    os.remove("foreign.db")
    from hashlib import sha256

    from ripstop.journals import chain

    craft(graph(), {"model": f"script:{Path('script.jsonl').resolve()}"})
    db = sqlite3.connect("foreign.db")
    ((at, body),) = db.execute("SELECT at, body FROM records").fetchall()
    old, new = json.loads(body)[0]["definition"], sha256(content).hexdigest()
    body = body.replace(old, new)
    digest = chain.link(chain.first("evil-1"), 1, at, body.encode())
    db.execute("UPDATE records SET body = ?, hash = ?", (body, digest))
    db.execute("UPDATE runs SET head = ?", (digest,))
    db.execute("UPDATE blobs SET hash = ?, body = ?", (new, content))
    db.commit()
    db.close()


def test_every_example_passes_the_check_of_pinned_definitions() -> None:
    from ripstop.definitions.pinned import check_pinned

    examples = Path(__file__).parents[2] / "examples"
    files = sorted(examples.rglob("workflow.yaml"))
    assert files
    for file in files:
        workflow = find(str(file), "a goal", any_name=True)
        check_pinned(load("graph", workflow.content))
