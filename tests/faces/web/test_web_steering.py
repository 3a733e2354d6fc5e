"""Steering runs from a browser: every form acts once, says what it did, and refuses what has changed meanwhile."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ripstop.engine.ports import RunQuery
from ripstop.faces.web.application import WebFace
from ripstop.faces.web.sessions import WebSessions
from ripstop.kernel.effects import AgentReplied, AskAgent, AskPerson, CallTool, Limits
from ripstop.kernel.events import CancelRequested, Forked, ResumeRequested, RetryRequested, RunSettings
from ripstop.styles.graph.reader import READER
from tests.faces.web.desk_browser import TOKEN, Desk, Page, Person
from tests.faces.web.run_stories import tell
from tests.styles.pipeline import pipelines

ADA, BOB = AskAgent(agent="ada"), AskAgent(agent="bob")
INTENT = {"intent": "b" * 22}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a script for agents."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.jsonl").write_text('{"reply": "never", "delay": 600}\n')
    return tmp_path


def scripted(folder: Path, workspace: str = "") -> RunSettings:
    return RunSettings(model=f"script:{folder / 'script.jsonl'}", workspace=workspace)


async def events(desk: Desk, run: str, kind: type) -> list[Any]:
    return [record.event for record in await desk.engine.journal.read(run) if isinstance(record.event, kind)]


async def length(desk: Desk, run: str) -> str:
    return str((await desk.engine.look(run)).run.length)


async def all_runs(desk: Desk) -> set[str]:
    return {info.run_id for info in (await desk.engine.runs(RunQuery())).items}


def notice(page: Page) -> str:
    return page.headers.get("set-cookie", "")


# Trying again


def test_a_paused_run_is_retried_once_from_its_page(project: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.refused("note-aaaaa", reason="overloaded")
        assert 'action="/runs/note-aaaaa/retry"' in (await desk.ann.get("/runs/note-aaaaa")).html
        form = {"length": await length(desk, "note-aaaaa")}
        pages = [await desk.ann.post("/runs/note-aaaaa/retry", form) for _ in range(3)]
        assert {page.status for page in pages} == {303} and "is tried again" in notice(pages[0])
        (asked,) = await events(desk, "note-aaaaa", RetryRequested)
        assert asked.by == "ann"
        assert "/retry" not in (await desk.ann.get("/runs/note-aaaaa")).html

    tell(project, story)


def test_all_runs_that_were_paused_when_the_page_was_made_are_retried_at_once(project: Path) -> None:
    async def story(desk: Desk) -> None:
        for run in ("one-aaaaa", "two-aaaaa"):
            await desk.refused(run)
        for path in ("/runs?status=paused", "/desk?kind=outage"):
            page = await desk.ann.get(path)
            assert 'action="/retry"' in page.html
            assert 'action="/retry"' not in (await desk.ann.get(path.partition("?")[0])).html
        until = {"until": page.values("until")[0]}
        await desk.refused("late-aaaaa")
        done = await desk.ann.post("/retry", {**until, "then": "/desk"})
        again = await desk.ann.post("/retry", {**until, "then": "/desk"}, accept="application/json")
        assert done.to == "/desk" and "2 runs are tried again" in notice(done)
        assert '"runs":[]' in again.html
        retried = {
            run: len(await events(desk, run, RetryRequested)) for run in ("one-aaaaa", "two-aaaaa", "late-aaaaa")
        }
        assert retried == {"one-aaaaa": 1, "two-aaaaa": 1, "late-aaaaa": 0}

    tell(project, story)


def test_a_desk_that_only_looks_retries_nothing(project: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.refused("note-aaaaa")
        looking = Desk(desk.app, look_only=True)
        for path in ("/runs/note-aaaaa", "/runs?status=paused", "/desk?kind=outage"):
            assert "/retry" not in (await looking.ann.get(path)).html
        assert (await looking.ann.post("/retry", {"until": "9" * 16})).status == 403
        assert await events(desk, "note-aaaaa", RetryRequested) == []

    tell(project, story)


# Forking


def test_a_fork_form_that_is_sent_twice_makes_one_fork(project: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.ask("note-aaaaa", ADA, BOB, settings=scripted(project))
        await desk.lead("note-aaaaa", AgentReplied(text="one"))
        assert 'name="at"' in (await desk.ann.get("/runs/note-aaaaa/fork?at=4")).html
        pages = await asyncio.gather(*(desk.ann.post("/runs/note-aaaaa/fork", {"at": "4", **INTENT}) for _ in range(3)))
        again = await desk.ann.post("/runs/note-aaaaa/fork", {"at": "4", **INTENT})
        assert {page.status for page in (*pages, again)} == {303}
        (fork,) = await all_runs(desk) - {"note-aaaaa"}
        assert {page.to for page in (*pages, again)} == {f"/runs/{fork}"} and fork.startswith("note-")
        assert [event.at for event in await events(desk, fork, Forked)] == [4]
        await desk.ann.post("/runs/note-aaaaa/fork", {"at": "", "definition": ""})
        assert len(await all_runs(desk)) == 3, "another form is another fork"

    tell(project, story)


def test_a_fork_gets_a_copy_of_the_files(project: Path) -> None:
    files = project / ".ripstop" / "workspaces" / "note-aaaaa"
    files.mkdir(parents=True)
    (files / "note.md").write_text("a draft")

    async def story(desk: Desk) -> None:
        desk.app.folders.remember(files)
        await desk.ask("note-aaaaa", ADA, settings=scripted(project, str(files)))
        for _ in range(2):
            page = await desk.ann.post("/runs/note-aaaaa/fork", {"at": "1", **INTENT})
            assert page.status == 303
        fork = page.to.removeprefix("/runs/")
        workspace = Path((await desk.engine.look(fork)).run.settings.workspace)
        assert workspace != files and (workspace / "note.md").read_text() == "a draft"

    tell(project, story)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"at": "99"}, "cannot be forked at 99"),
        ({"at": "x"}, "not a whole number"),
        ({"definition": "/etc/passwd"}, "not inside the folder"),
        ({"definition": "workflows/first"}, "of style"),
        ({"intent": "short"}, "no valid intent"),
    ],
)
def test_a_fork_that_cannot_be_is_refused(project: Path, fields: dict[str, str], words: str) -> None:
    READER.example(project / "workflows" / "first")

    async def story(desk: Desk) -> None:
        await desk.ask("note-aaaaa", ADA, settings=scripted(project))
        page = await desk.ann.post("/runs/note-aaaaa/fork", fields)
        assert page.status == 422 and words in page.text
        assert await all_runs(desk) == {"note-aaaaa"}

    tell(project, story)


def test_a_run_that_cannot_be_forked_says_why(project: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.project("cowork", pipelines.said("# One"))
        for page in (await desk.ann.get("/runs/cowork/fork"), await desk.ann.post("/runs/cowork/fork", {})):
            assert page.status == 422 and "cannot be forked" in page.text
        assert "/runs/cowork/fork" not in (await desk.ann.get("/runs/cowork")).html

    tell(project, story)


def test_files_that_the_user_has_not_named_are_not_copied(project: Path, tmp_path_factory: Any) -> None:
    theirs = tmp_path_factory.mktemp("theirs")
    (theirs / "secret").write_text("secret")

    async def story(desk: Desk) -> None:
        await desk.ask("note-aaaaa", ADA, settings=scripted(project, str(theirs)))
        page = await desk.ann.post("/runs/note-aaaaa/fork", {})
        assert page.status == 422 and "which you have not named" in page.text
        assert await all_runs(desk) == {"note-aaaaa"}

    tell(project, story)


# Cancelling


def test_a_run_is_cancelled_once_and_by_name(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.ask("shop", ADA)
        page = await desk.ann.get("/runs/shop/cancel")
        assert "Cancel shop?" in page.text and (await desk.engine.look("shop")).run.ended is None
        done = await desk.ann.post("/runs/shop/cancel", {"because": "not needed", **INTENT})
        again = await desk.bob.post("/runs/shop/cancel", {"because": "me, too", **INTENT})
        assert (done.status, done.to, again.status, again.to) == (303, "/runs/shop", 303, "/runs/shop")
        assert "had ended already" in notice(again)
        assert await events(desk, "shop", CancelRequested) == [CancelRequested(by="ann", because="not needed")]
        assert (await desk.ann.get("/runs/shop/cancel")).status == 303
        assert "/runs/shop/cancel" not in (await desk.ann.get("/runs/shop")).html

    tell(tmp_path, story)


# Resuming


async def stopped(desk: Desk, folder: Path, run: str = "shop") -> None:
    """A run that has reached its limit of calls."""
    await desk.ask(run, ADA, BOB, ADA, limits=Limits(calls=2), settings=scripted(folder))
    await desk.lead(run, AgentReplied(text="one"), AgentReplied(text="two"))


def test_a_limit_is_raised_once_however_often_the_form_is_sent(project: Path) -> None:
    async def story(desk: Desk) -> None:
        await stopped(desk, project)
        form = {"length": await length(desk, "shop"), "raise.calls": "5", **INTENT}
        done, again = [await desk.ann.post("/runs/shop/resume", form) for _ in range(2)]
        assert (done.status, done.to, again.status) == (303, "/runs/shop", 303)
        assert "continues" in notice(done) and "waits for a worker" in notice(again)
        await desk.engine.journal.enrol(desk.engine.clock())
        assert "going on already" in notice(await desk.ann.post("/runs/shop/resume", form))
        assert await events(desk, "shop", ResumeRequested) == [ResumeRequested(raises={"calls": 5}, by="ann")]
        assert (await desk.engine.look("shop")).run.limits.calls == 7

    tell(project, story)


def test_a_run_whose_guard_asks_can_be_resumed_from_its_reasons(project: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.guard("shop", Limits(calls=1), ADA, BOB)
        await desk.engine.change_settings("shop", scripted(project))
        await desk.lead("shop", AgentReplied(text="one"))
        assert len(await desk.open_questions("shop")) == 1
        page = await desk.ann.get(f"/runs/shop/{await length(desk, 'shop')}/why")
        form = {"length": page.values("length")[0], "raise.calls": page.values("raise.calls")[0]}
        assert (await desk.ann.post("/runs/shop/resume", form)).status == 303
        assert await desk.open_questions("shop") == [] and not (await desk.engine.look("shop")).run.verdict

    tell(project, story)


def test_a_page_that_is_older_than_the_run_resumes_nothing(project: Path) -> None:
    async def story(desk: Desk) -> None:
        await stopped(desk, project)
        seen = await length(desk, "shop")
        await desk.bob.post("/runs/shop/resume", {"length": seen, "raise.calls": "1"})
        await desk.lead("shop", AgentReplied(text="three"))
        assert (await desk.engine.look("shop")).run.ended
        page = await desk.ann.post("/runs/shop/resume", {"length": seen, "raise.calls": "1"})
        assert page.status == 409 and "has changed since this page was made" in page.text
        page = await desk.ann.post("/runs/shop/resume", {"raise.calls": "1"})
        assert page.status == 409, "a form without a length was made by nobody"
        assert len(await events(desk, "shop", ResumeRequested)) == 1

    tell(project, story)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "Raise calls"),
        ({"raise.calls": "0"}, "not a number above 0"),
        ({"raise.calls": "1e9"}, "not a number above 0"),
        ({"raise.luck": "5"}, "no limit 'luck'"),
    ],
)
def test_a_raise_that_cannot_be_is_refused(project: Path, fields: dict[str, str], words: str) -> None:
    async def story(desk: Desk) -> None:
        await stopped(desk, project)
        page = await desk.ann.post("/runs/shop/resume", {"length": await length(desk, "shop"), **fields})
        assert page.status == 422 and words in page.text
        assert await events(desk, "shop", ResumeRequested) == []

    tell(project, story)


def test_a_run_that_is_set_aside_is_put_back_when_nothing_is_wrong_any_more(project: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.ask("shop", ADA, settings=scripted(project))
        await desk.engine.journal.set_aside("shop", "its model was missing")
        page = await desk.ann.get("/runs/shop")
        assert "its model was missing" in page.text and "/runs/shop/resume" in page.html
        page = await desk.ann.post("/runs/shop/resume", {"length": await length(desk, "shop")})
        assert page.status == 303 and "put back to work" in notice(page)
        info = await desk.engine.journal.run("shop")
        assert info is not None and not info.set_aside

    tell(project, story)


def test_a_run_with_files_of_somebody_else_stays_set_aside(project: Path, tmp_path_factory: Any) -> None:
    theirs = tmp_path_factory.mktemp("theirs")

    async def story(desk: Desk) -> None:
        await desk.ask("shop", ADA, settings=scripted(project, str(theirs)))
        await desk.engine.journal.set_aside("shop", "its folder is not yours")
        page = await desk.ann.post("/runs/shop/resume", {"length": await length(desk, "shop")})
        assert page.status == 422 and "which you have not named" in page.text
        info = await desk.engine.journal.run("shop")
        assert info is not None and info.set_aside

    tell(project, story)


def test_an_address_that_the_user_has_not_chosen_is_not_used(project: Path) -> None:
    async def story(desk: Desk) -> None:
        settings = RunSettings(model="openai:gpt", base_url="https://evil.example/v1")
        await desk.ask("shop", ADA, BOB, limits=Limits(calls=1), settings=settings)
        await desk.lead("shop", AgentReplied(text="one"))
        form = {"length": await length(desk, "shop"), "raise.calls": "1"}
        for path in ("/runs/shop/resume", "/runs/shop/fork"):
            page = await desk.ann.post(path, form)
            assert page.status == 422 and "evil.example" in page.text
        assert await all_runs(desk) == {"shop"} and await events(desk, "shop", ResumeRequested) == []

    tell(project, story)


# Models and actions


def test_another_model_is_used_from_now_on(project: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.ask("shop", ADA)
        for _ in range(2):
            page = await desk.ann.post("/runs/shop/use", {"model": "script:script.jsonl"})
            assert page.status == 303
        run = (await desk.engine.look("shop")).run
        assert run.settings.model_for_all == f"script:{project / 'script.jsonl'}" and run.length == 4
        for model, words in {"": "Name a model", "script:gone": "gone"}.items():
            page = await desk.ann.post("/runs/shop/use", {"model": model})
            assert page.status == 422 and words in page.text

    tell(project, story)


def test_an_action_of_a_style_is_done_by_who_is_signed_in(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        run = await desk.handed_over(tmp_path, "4711", "I want a person", by="bob")
        page = await desk.ann.get(f"/runs/{run}")
        action = desk.engine.style((view := await desk.engine.look(run)).run).people.actions(view.run)[0]
        assert f"/runs/{run}/act/{action.name}" in page.html
        seen = await length(desk, run)
        assert (await desk.ann.get(f"/runs/{run}/act/{action.name}")).status == 200
        page = await desk.bob.post(f"/runs/{run}/act/{action.name}", {"seen": seen})
        assert (page.status, page.to) == (303, f"/runs/{run}")
        page = await desk.bob.post(f"/runs/{run}/act/{action.name}", {"seen": seen})
        assert page.status == 409 and "has changed" in page.text
        page = await desk.bob.post(f"/runs/{run}/act/no_such_thing", {"seen": await length(desk, run)})
        assert page.status == 422 and "not possible" in page.text
        assert (await desk.bob.get(f"/runs/{run}/act/no_such_thing")).status == 422

    tell(tmp_path, story)


# Whoever may not


def test_nothing_is_done_without_the_token_of_the_session(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.ask("shop", ADA, AskPerson(question="Sure?"), CallTool(tool="pay", arguments={}))
        for path in ("cancel", "resume", "fork", "use", "act/close"):
            page = await desk.ann.post(f"/runs/shop/{path}", {"csrf": "of another session"})
            assert page.status == 403, path
        assert (await desk.ann.post("/runs", {"csrf": ""})).status == 403
        assert await all_runs(desk) == {"shop"} and await length(desk, "shop") == "3"

    tell(tmp_path, story)


def test_a_desk_that_only_looks_neither_does_nor_offers_anything(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.ask("shop", ADA, limits=Limits(calls=9))
        face = WebFace(desk.app, WebSessions(TOKEN, "ann", 8517), look_only=True)
        ann = Person(face, "ann")
        for path in ("/runs", "/runs/shop", "/runs/shop/3", "/runs/shop/summary"):
            page = await ann.get(path)
            assert page.status == 200 and 'method="post"' not in page.html and "/fork" not in page.html, path
        assert (await ann.post("/runs/shop/cancel", {})).status == 403
        assert (await desk.engine.look("shop")).run.ended is None

    tell(tmp_path, story)
