"""A journal from somebody else: nothing in it is acted on before it was checked."""

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ripstop.app.application import now
from ripstop.app.plugins import find, installed
from ripstop.engine.engine import Engine
from ripstop.journals import hash_chain as chain
from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.kernel.events import RunSettings
from ripstop.styles.graph.definition import Agent, Graph, State
from ripstop.testing.commands import command

ASK = """\
name: ask
initial_message: Write it.
agents: [{name: ada, type: coder}]
states:
  - {name: work, agent: ada, prompt: "{{COLLABORATION_GUIDE}} {{initial_message}}", transitions: [{to: END}]}
"""


DONE = {"reply": '{"content": "done", "decisions": {}}'}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a home beside it."""
    for name in ("home", "here"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def written(home: Path) -> list[Path]:
    """What is in the user's home, but for what ripstop remembers there of a journal that the user names."""
    remembered = home / ".local" / "state" / "ripstop" / "journals"
    return [one for one in home.rglob("*") if not one.is_relative_to(remembered) and not remembered.is_relative_to(one)]


def script(*replies: dict[str, Any]) -> str:
    Path("script.jsonl").write_text("\n".join(map(json.dumps, replies)), encoding="utf-8")
    return f"script:{Path('script.jsonl').resolve()}"


def writes(path: str, content: str = "x") -> dict[str, Any]:
    call = {"tool": "write_file", "args": {"path": path, "content": content}}
    return {"calls": [call]}


def craft(definition: Graph, settings: dict[str, Any], store: str = "foreign.db") -> str:
    """A journal as an enemy would send it: every hash is right, and a run waits for its first turn."""
    write("evil-1", definition, settings, store)
    return f"sqlite:{store}"


def write(run: str, definition: Graph, settings: dict[str, Any], store: str, parent: str = "") -> None:
    async def start() -> None:
        registry = installed().registry
        journal = SqliteJournal(store, registry.codec)
        content = msgspec.json.encode(definition, order="deterministic")
        command = (parent, 2) if parent else None
        engine = Engine(journal, registry, now)
        await engine.start(run, "graph", content, "go", settings=RunSettings(**settings), parent=command)
        await journal.close()

    asyncio.run(start())


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
    craft(graph(), {"model": f"script:{Path('script.jsonl').resolve()}"})
    db = sqlite3.connect("foreign.db")
    ((at, body),) = db.execute("SELECT at, body FROM records").fetchall()
    old, new = json.loads(body)[0]["definition"], sha256(content).hexdigest()
    body = body.replace(old, new)
    digest = chain.link(chain.first("evil-1"), 1, at, body.encode())
    db.execute("UPDATE records SET body = ?, hash = ?", (body, digest))
    db.execute("UPDATE runs SET head = ?", (digest,))
    db.execute("UPDATE blobs SET hash = ?, body = ?", (new, content))
    db.execute("UPDATE blob_uses SET hash = ?", (new,))
    db.commit()
    db.close()


def test_every_example_passes_the_check_of_pinned_definitions() -> None:
    examples = Path(__file__).parents[2] / "examples"
    files = sorted(examples.rglob("workflow.yaml"))
    assert files
    for file in files:
        workflow = find(str(file), "a goal", any_name=True)
        installed().check_pinned("graph", installed().registry.load("graph", workflow.content))


# Folders


def test_a_workspace_that_only_the_journal_names_is_refused(here: Path) -> None:
    ssh = here.parent / "home" / ".ssh"
    ssh.mkdir()
    store = craft(graph(), {"model": script(writes("authorized_keys")), "workspace": str(ssh)})
    done = command("--store", store, "resume", "evil-1")
    assert (done.code, "--workspace" in done.err, str(ssh) in done.err) == (2, True, True), done
    assert command("--store", store, "fork", "evil-1").code == 2
    assert list(ssh.iterdir()) == []


def test_the_home_as_workspace_is_refused_even_from_the_home(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = here.parent / "home"
    (home / "ssh").mkdir()
    monkeypatch.chdir(home)
    store = craft(graph("ssh"), {"model": script(writes("x")), "workspace": str(home)}, str(here / "foreign.db"))
    assert command("--store", store, "resume", "evil-1").code == 2
    assert list((home / "ssh").iterdir()) == []


@pytest.mark.parametrize("link", ["workspaces/evil-1", "workspaces", ""])
def test_a_link_in_the_place_of_a_run_s_own_folder_is_refused(here: Path, link: str) -> None:
    target = here.parent / "home"
    place = here / ".ripstop" / link if link else here / ".ripstop"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(target)
    own = here / ".ripstop" / "workspaces" / "evil-1"
    store = craft(graph(), {"model": script(writes("x")), "workspace": str(own)})
    assert command("--store", store, "resume", "evil-1").code == 2
    assert written(target) == []


def test_the_workspace_of_a_child_is_looked_at_as_well(here: Path) -> None:
    evil = here.parent / "home"
    store = craft(graph(), {"model": script(writes("x"))})
    write("evil-1.2", graph(), {"workspace": str(evil)}, "foreign.db", parent="evil-1")
    done = command("--store", store, "resume", "evil-1")
    assert (done.code, "evil-1.2" in done.err) == (2, True), done
    assert written(evil) == []


def test_documents_in_a_folder_that_only_the_journal_names_are_refused(here: Path) -> None:
    evil = here.parent / "home"
    store = craft(graph(), {"model": script(writes("x")), "folder": str(evil)})
    assert command("--store", store, "resume", "evil-1").code == 2
    assert written(evil) == []


def test_naming_the_workspace_is_consent_for_that_journal_alone(here: Path) -> None:
    there = here.parent / "there"
    store = craft(graph(), {"model": script(writes("a.md"), DONE), "workspace": str(there)})
    assert command("--store", store, "resume", "evil-1").code == 2
    done = command("--store", store, "resume", "evil-1", "--workspace", str(there))
    assert done.code == 0, done
    assert (there / "ada" / "a.md").read_text().strip() == "x"
    other = craft(graph(), {"model": script(writes("b.md"), DONE), "workspace": str(there)}, "other.db")
    assert command("--store", other, "resume", "evil-1").code == 2


def test_a_folder_that_has_a_copy_here_is_not_named_in_the_command(here: Path) -> None:
    there = here.parent / "there"
    store = craft(graph(), {"model": script(writes("a.md"), DONE), "workspace": str(there)})
    assert f"--workspace {there}` does so." in command("--store", store, "resume", "evil-1").err
    (here / "there").mkdir()
    said = command("--store", store, "resume", "evil-1").err
    assert "--workspace DIR` is for that one or 'there' in this folder." in " ".join(said.split())


def test_another_workspace_can_be_named_instead(here: Path) -> None:
    home = here.parent / "home"
    store = craft(graph(), {"model": script(writes("a.md"), DONE), "workspace": str(home)})
    done = command("--store", store, "resume", "evil-1", "--workspace", "mine")
    assert done.code == 0, done
    assert (here / "mine" / "ada" / "a.md").is_file() and not (home / "ada").exists()


@pytest.mark.parametrize("has_home", [True, False])
def test_a_run_of_ours_with_a_workspace_elsewhere_is_resumed(
    here: Path, monkeypatch: pytest.MonkeyPatch, has_home: bool
) -> None:
    if not has_home:
        monkeypatch.delenv("HOME")
    Path("ask.yaml").write_text(ASK, encoding="utf-8")
    there = str(here.parent / "there")
    model = script(writes("a.md"), DONE)
    done = command("run", "ask.yaml", "--workspace", there, "--model", model, "--max-calls", "1", "--json")
    assert done.code == 3, done
    resumed = command("resume", json.loads(done.out)["run"], "--raise", "calls=5")
    assert resumed.code == 0, resumed


def test_trust_lists_and_revokes_a_named_workspace(here: Path) -> None:
    Path("ask.yaml").write_text(ASK, encoding="utf-8")
    there, model = str(here.parent / "there"), script(writes("a.md"), DONE)
    run = command("run", "ask.yaml", "--workspace", there, "--model", model, "--max-calls", "1", "--json")
    journal = str(here / ".ripstop" / "journal.db")
    folder = {"kind": "folder", "content": there, "project": str(here), "journal": journal}
    agreed = [folder, {"kind": "journal", "content": journal, "project": str(here)}]
    assert json.loads(command("trust", "--list", "--json").out)["agreed"] == agreed
    assert command("trust", "--list").out.split("\n")[0].split() == ["agreed", "folder", there, journal]
    assert json.loads(command("trust", "--revoke", "--json").out) == {"revoked": agreed}
    assert "not agreed to anything" in command("trust", "--list").out
    resume = [sys.executable, "-m", "ripstop", "resume", json.loads(run.out)["run"], "--raise", "calls=5"]
    refused = subprocess.run(resume, capture_output=True, text=True, check=False)  # another process: this one knows it
    assert (refused.returncode, "neither made nor agreed to" in refused.stderr) == (2, True), refused
    assert command("trust", "--yes").code == 0
    refused = subprocess.run(resume, capture_output=True, text=True, check=False)
    assert (refused.returncode, there in refused.stderr) == (2, True), refused


# The project's own files


@pytest.mark.parametrize("agent", ["workflows", "roles", "definitions"])
def test_an_agent_cannot_have_a_folder_of_the_project(here: Path, agent: str) -> None:
    for name in ("workflows", "roles", "definitions"):
        Path(name).mkdir()
    file = Path("definitions/ask.yaml")
    file.write_text(ASK.replace("ada", agent), encoding="utf-8")
    done = command("run", str(file), "--workspace", ".", "--model", script(writes("ask.yaml"), DONE))
    assert (done.code, "part of this project" in done.err) == (2, True), done
    assert file.read_text(encoding="utf-8") == ASK.replace("ada", agent)


def test_an_agent_cannot_have_the_folder_that_holds_the_project(here: Path) -> None:
    Path("ask.yaml").write_text(ASK.replace("ada", "here"), encoding="utf-8")
    done = command("run", "ask.yaml", "--workspace", "..", "--model", script(writes("ask.yaml"), DONE))
    assert (done.code, "part of this project" in done.err) == (2, True), done


def test_an_agent_can_have_a_new_folder_in_the_project(here: Path) -> None:
    Path("ask.yaml").write_text(ASK, encoding="utf-8")
    for _ in range(2):
        done = command("run", "ask.yaml", "--workspace", ".", "--model", script(writes("a.md"), DONE))
        assert done.code == 0, done
    assert (here / "ada" / "a.md").is_file()


@pytest.mark.parametrize("link", [".ripstop", ".ripstop/workspaces", ".ripstop/journal.db"])
def test_a_run_does_not_follow_a_link_that_its_project_ships(here: Path, link: str) -> None:
    target = here.parent / "home"
    (here / link).parent.mkdir(exist_ok=True)
    (here / link).symlink_to(target / "j.db" if link.endswith(".db") else target)
    (here / "ask").mkdir()
    (here / "ask" / "workflow.yaml").write_text(ASK, encoding="utf-8")
    ended = command("run", "ask", "--model", script(writes("x"), DONE))
    assert (ended.code, f"{link} is a symbolic link" in ended.err) == (2, True), ended
    assert list(target.iterdir()) == []


@pytest.mark.parametrize(
    "args",
    [("--model", "script:gone.jsonl"), ("--model", "lcoal"), ("--set", "a=b"), ("--workspace", "ask/workflow.yaml")],
)
def test_a_run_that_cannot_start_leaves_nothing_behind(here: Path, args: tuple[str, str]) -> None:
    (here / "ask").mkdir()
    (here / "ask" / "workflow.yaml").write_text(ASK, encoding="utf-8")
    assert command("run", "ask", *args).code == 2
    assert os.listdir(here) == ["ask"]
    assert os.listdir(here.parent / "home") == []
