"""Forks of a graph's runs: at any record, with files and tool calls, and without harm to the old run."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ripstop.app.application import App
from ripstop.app.fork import fork_run
from ripstop.app.settings.settings_file import Models, Settings
from ripstop.definitions.loading import Workflow, find
from ripstop.definitions.reader import Environment
from ripstop.engine.engine import View
from ripstop.engine.following import until_settled
from ripstop.history.timeline import explain, path, timeline
from ripstop.kernel.effects import AgentReplied, Failed
from ripstop.kernel.errors import UsageError
from ripstop.kernel.events import Answered, Asked, Forked, TurnRestarted, Warned, Withdrawn
from ripstop.styles.turn import Corrected

FLOW = """\
name: flow
initial_message: a note
max_turns: 3
agents:
  - {name: maker, type: coder}
  - {name: judge, type: ask}
states:
  - name: make
    agent: maker
    start: true
    prompt: "{{COLLABORATION_GUIDE}} Decide: done."
    transitions: [{to: mend}]
  - name: mend
    agent: maker
    prompt: "{{COLLABORATION_GUIDE}} Decide: done."
    transitions: [{to: look}]
  - name: look
    agent: judge
    prompt: "{{COLLABORATION_GUIDE}} Decide: good."
    transitions: [{to: END}]
"""
DONE = '{"content": "ok", "decisions": {"done": true, "good": true}}'
WRITES = [{"tool": "write_file", "args": {"path": f"called{n}.txt", "content": f"by a call {n}\n"}} for n in (1, 2)]
SCRIPT: list[dict[str, Any]] = [
    {"agent": "maker", "reply": "two files", "calls": WRITES},
    {"agent": "maker", "reply": DONE},
    {"agent": "maker", "reply": f"told.txt\n```\nin the text\n```\n\ncollab/shared.txt\n```\nfor all\n```\n{DONE}"},
    {"agent": "judge", "reply": "a file", "calls": [{"tool": "read_file", "args": {"path": "collab/shared.txt"}}]},
    {"agent": "judge", "reply": DONE},
    *({"agent": agent, "reply": DONE} for agent in ("maker", "judge")),  # for turns that a fork asks for anew
]
FILES = {
    "maker/called1.txt": "by a call 1\n",
    "maker/called2.txt": "by a call 2\n",
    "maker/told.txt": "in the text\n",
    "collab/shared.txt": "for all\n",
}


@asynccontextmanager
async def an_app(folder: Path, script: list[dict[str, Any]] = SCRIPT) -> AsyncIterator[App]:
    lines = folder / "script.jsonl"
    lines.write_text("\n".join(json.dumps(line) for line in script), encoding="utf-8")
    (folder / "flow.yaml").write_text(FLOW, encoding="utf-8")
    store, model = f"sqlite:{folder / 'journal.db'}", f"script:{lines}"
    # these tests count records, and a deadline is one
    settings = Settings(store=store, models=Models(default=model), default_limits=False)
    async with App(settings) as app:
        yield app


def workflow(app: App, path: Path) -> Workflow:
    return find(app.plugins.readers, str(path), Environment(any_name=True))


async def a_run(app: App, folder: Path) -> View:
    run = await app.start(workflow(app, folder / "flow.yaml"), workspace=folder / "w")
    return await until_settled(app.engine, app.worker, run.id)


async def forked(app: App, run_id: str, at: int | None, workspace: Path | None = None) -> View:
    run = await fork_run(app.engine, app.plugins, run_id, at, workspace=workspace)
    return await until_settled(app.engine, app.worker, run.id)


def files_in(workspace: Path) -> dict[str, str]:
    found = (path for path in workspace.rglob("*") if path.is_file())
    return {str(path.relative_to(workspace)): path.read_text(encoding="utf-8") for path in found}


def test_a_fork_at_any_record_does_all_that_the_run_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def story() -> None:
        async with an_app(tmp_path) as app:
            old = (await a_run(app, tmp_path)).run
            assert old.ended is not None and old.ended.outcome == "completed", old.ended
            assert files_in(tmp_path / "w") == FILES
            for at in range(1, old.length + 1):
                view = await forked(app, old.id, at)
                assert view.status == "completed", (at, view.run.ended)
                events = [record.event for record in await app.engine.journal.read(view.run.id)]
                assert [e for e in events if isinstance(e, Warned)] == [], at
                answers = [event.answer for event in events if isinstance(event, Answered)]
                assert [answer for answer in answers if isinstance(answer, Failed)] == [], at
                assert files_in(tmp_path / ".ripstop" / "workspaces" / view.run.id) == FILES, at
                assert path(app.engine, await timeline(app.engine, view.run.id)) == ["make", "mend", "look"], at
                replies = [answer for answer in answers if isinstance(answer, AgentReplied)]
                assert (view.run.spent.turns, view.run.spent.calls) == (3, len(replies)), at
            assert files_in(tmp_path / "w") == FILES
            assert await app.engine.journal.verify() == []

    asyncio.run(story())


def test_a_fork_at_a_reply_writes_the_files_of_the_reply(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def story() -> None:
        async with an_app(tmp_path) as app:
            old = (await a_run(app, tmp_path)).run
            shutil.rmtree(tmp_path / "w")
            written = []
            for record in await app.engine.journal.read(old.id):
                if isinstance(record.event, Answered) and isinstance(record.event.answer, AgentReplied):
                    fork = (await forked(app, old.id, record.number)).run
                    written.append(files_in(Path(fork.settings.workspace)))
            told = {path: text for path, text in FILES.items() if "called" not in path}
            assert written[:3] == [FILES, told, told]
            assert not (tmp_path / "w").exists()

    asyncio.run(story())


def test_a_fork_begins_with_the_old_files_and_leaves_them_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    async def story() -> None:
        async with an_app(tmp_path) as app:
            old = (await a_run(app, tmp_path)).run
            (tmp_path / "w" / "maker" / "told.txt").write_text("changed by hand")
            named, full = tmp_path / "named", tmp_path / "full"
            full.mkdir()
            (full / "mine.txt").write_text("mine")
            last = old.length
            await forked(app, old.id, last, named)
            assert files_in(named) == {**FILES, "maker/told.txt": "changed by hand"}
            await forked(app, old.id, last, full)
            assert files_in(full) == {"mine.txt": "mine"}, "a folder with files in it is used as it is"
            await forked(app, old.id, 1, tmp_path / "w")
            assert files_in(tmp_path / "w") == FILES, "the old folder is worked on because it was named"

    asyncio.run(story())


def test_a_fork_that_cannot_be_leaves_no_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def story() -> None:
        async with an_app(tmp_path) as app:
            old = (await a_run(app, tmp_path)).run
            with pytest.raises(UsageError, match="cannot be forked at 999"):
                await fork_run(app.engine, app.plugins, old.id, 999)
            assert list((tmp_path / ".ripstop" / "workspaces").iterdir()) == []
            with pytest.raises(UsageError, match=r"script\.jsonl is a file"):
                await fork_run(app.engine, app.plugins, old.id, 1, workspace=tmp_path / "script.jsonl" / "x")
            assert [info.run_id for info in (await app.engine.runs()).items] == [old.id]

    asyncio.run(story())


REFUSED = {"agent": "maker", "error": "refused"}
WRITES_NONSENSE = {"agent": "maker", "reply": "late.txt\n```\nwritten\n```\nbut no decisions"}
FAILURES = {
    "the call fails": [REFUSED],
    "the call fails in the middle of a turn": [SCRIPT[0], REFUSED],
    "the protocol is broken": [{"agent": "maker", "reply": "nonsense"}] * 2,
    "the protocol is broken after files": [WRITES_NONSENSE] * 2,
}


@pytest.mark.parametrize("script", FAILURES.values(), ids=FAILURES.keys())
def test_a_plain_fork_of_a_run_that_failed_through_its_agent_asks_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: list[dict[str, Any]]
) -> None:
    monkeypatch.chdir(tmp_path)
    done = {"agent": "maker", "reply": DONE}

    async def story() -> None:
        async with an_app(tmp_path, [done, *script]) as app:
            failed = (await a_run(app, tmp_path)).run
            assert failed.ended is not None and failed.ended.outcome == "failed"
            told = await timeline(app.engine, failed.id)
            assert [way.action for way in explain(app.engine, told, told[-1]).ways] == ["fork"]
        async with an_app(tmp_path, [done] * 4 + SCRIPT[3:]) as app:  # the agent is in a better mood
            view = await forked(app, failed.id, None)
            assert view.status == "completed", view.run.ended
            assert view.run.spent.turns == 3
            assert path(app.engine, await timeline(app.engine, view.run.id)) == ["make", "mend", "look"]

    asyncio.run(story())


def test_a_plain_fork_keeps_the_model_that_the_run_was_told_to_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    other = tmp_path / "other.jsonl"
    other.write_text(json.dumps(REFUSED), encoding="utf-8")

    async def story() -> None:
        async with an_app(tmp_path, [{"agent": "maker", "reply": DONE, "delay": 30}]) as app:
            run = await app.start(workflow(app, tmp_path / "flow.yaml"))
            await app.use_model(run.id, f"script:{other}", "")
            await app.worker.stop(grace=0)
        async with an_app(tmp_path) as app:
            view = await until_settled(app.engine, app.worker, run.id)
            assert view.status == "failed"
            other.write_text("\n".join(json.dumps(line) for line in SCRIPT), encoding="utf-8")
        async with an_app(tmp_path, []) as app:
            view = await forked(app, run.id, None)
            assert view.status == "completed", view.run.ended
            assert view.run.settings.model_for_all == f"script:{other}"

    asyncio.run(story())


def test_a_new_definition_decides_anew_on_a_reply_but_not_on_a_call_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = FLOW.replace("max_turns: 3", "max_turns: 3\nreasks: 2")
    (tmp_path / "patient.yaml").write_text(text, encoding="utf-8")

    async def events_of_fork(script: list[dict[str, Any]]) -> list[object]:
        async with an_app(tmp_path, script) as app:
            failed = (await a_run(app, tmp_path)).run
            app.engine.dispatcher = None  # nobody goes on with the fork
            patient = workflow(app, tmp_path / "patient.yaml")
            run = await fork_run(app.engine, app.plugins, failed.id, workflow=patient)
            return [record.event for record in await app.engine.journal.read(run.id)]

    after_nonsense = asyncio.run(events_of_fork(FAILURES["the protocol is broken"]))
    assert [type(event) for event in after_nonsense[-4:]] == [Answered, Forked, Corrected, Asked]
    after_failure = asyncio.run(events_of_fork(FAILURES["the call fails"]))
    assert [type(event) for event in after_failure[-4:]] == [Forked, Withdrawn, TurnRestarted, Asked]
