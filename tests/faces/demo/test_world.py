"""The demonstration: every kind on the desk, every style, and the same world whenever it is built."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ripstop.app.application import App
from ripstop.engine.clock import system_time
from ripstop.engine.live import LiveEvent, Token
from ripstop.engine.ports import DeskQuery, RunInfo, RunQuery
from ripstop.faces.demo import DemoWorld, build, demo_app
from ripstop.faces.demo.building import open_app
from ripstop.faces.demo.world import RUNS
from ripstop.history.desk import DeskItem, desk_item, halted_runs
from ripstop.kernel.desk_kinds import KINDS
from ripstop.kernel.errors import UsageError
from ripstop.kernel.parts import Claims
from ripstop.security.consent import Consents

pytestmark = pytest.mark.xdist_group("demonstration")  # one process builds the worlds, for all tests

STATUSES = {
    "completed": "completed",
    "fork": "completed",
    "family": "completed",
    "poem": "completed",
    "failed": "failed",
    "limit": "limit",
    "stopped": "stopped",
    "guard": "waiting",
    "doubt": "waiting",
    "board": "waiting",
    "question": "waiting",
    "review": "waiting",
    "document": "completed",
    "unclear_document": "waiting",
    "handoff": "waiting",
    "ready": "listening",
    "closed": "listening",
    "outage": "paused",
    "stuck": "stuck",
    "set_aside": "set_aside",
    "working": "working",
}


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> tuple[DemoWorld, DemoWorld]:
    async def both(first: Path, second: Path) -> tuple[DemoWorld, DemoWorld]:
        return await build(first), await build(second)

    return asyncio.run(both(tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("another with a longer name")))


@pytest.fixture(scope="module")
def world(worlds: tuple[DemoWorld, DemoWorld]) -> DemoWorld:
    return worlds[0]


async def runs_of(app: App) -> dict[str, RunInfo]:
    return {info.run_id: info for info in (await app.engine.runs(RunQuery(size=1000))).items}


async def desk_of(app: App) -> list[DeskItem]:
    questions = (await app.engine.desk(DeskQuery(size=100))).items
    return [*[await desk_item(app.engine, one) for one in questions], *await halted_runs(app.engine)]


def looking(world: DemoWorld, look: Callable[[App], Awaitable[None]]) -> None:
    """Look at a world that nobody works on."""

    async def story() -> None:
        async with open_app(world, works=False) as app:
            await look(app)

    asyncio.run(story())


def test_the_desk_has_every_kind(world: DemoWorld) -> None:
    async def look(app: App) -> None:
        items = await desk_of(app)
        assert items[0].kind == "review"  # what a visitor sees first
        found = {item.run: item.kind for item in items}
        assert set(found.values()) == set(KINDS)
        for kind in ("review", "doubt", "guard", "outage", "handoff", "question", "stuck", "set_aside"):
            assert found[world.runs[kind]] == kind

    looking(world, look)


def test_every_style_has_runs(world: DemoWorld) -> None:
    async def look(app: App) -> None:
        styles = {info.style for info in (await runs_of(app)).values()}
        assert styles >= {"graph", "conversation", "pipeline", "blackboard", "handoff"}

    looking(world, look)


def test_named_runs_are_what_their_names_say(world: DemoWorld) -> None:
    async def look(app: App) -> None:
        runs = await runs_of(app)
        assert {name: runs[run_id].status for name, run_id in RUNS.items()} == STATUSES
        assert runs[RUNS["fork"]].fork_of == RUNS["completed"]
        assert [info.run_id for info in runs.values() if info.status == "failed"] == [RUNS["failed"]]

    looking(world, look)


def test_the_journal_is_sound(world: DemoWorld) -> None:
    async def look(app: App) -> None:
        assert await app.engine.journal.verify() == []

    looking(world, look)


def test_two_worlds_are_the_same(worlds: tuple[DemoWorld, DemoWorld]) -> None:
    found = []

    async def look(app: App) -> None:
        runs = await runs_of(app)
        found.append({run_id: (info.status, info.gist, info.tokens) for run_id, info in runs.items()})

    for world in worlds:
        looking(world, look)
    assert found[0] == found[1]


def test_nothing_happened_in_the_future_or_before_its_run_began(world: DemoWorld) -> None:
    async def look(app: App) -> None:
        runs = await runs_of(app)
        for info in runs.values():
            assert info.created <= info.updated <= system_time()
        assert runs[RUNS["poem"]].created < runs[RUNS["failed"]].created < runs[RUNS["doubt"]].created

    looking(world, look)


def test_the_review_shows_two_rounds_and_what_changed_in_two_scripts(world: DemoWorld) -> None:
    async def look(app: App) -> None:
        (review,) = [item for item in await desk_of(app) if item.kind == "review"]
        assert [(given.by, given.choice) for given in review.answers] == [("ann", "feedback")] * 2
        assert review.difference is not None
        segments = [one for hunk in review.difference for line in hunk.lines for one in line.segments]
        changed = "".join(one.text for one in segments if one.kind == "added")
        assert "restarted (local storage)" in changed and "最新的在最上面" in changed

    looking(world, look)


def test_a_claim_on_the_board_differs_from_what_was_shown(world: DemoWorld) -> None:
    async def look(app: App) -> None:
        run = (await app.engine.look(RUNS["board"])).run
        (claims,) = [part for part in app.engine.style(run).view.parts(run) if isinstance(part, Claims)]
        wrong = [claim for claim in claims.claims if claim.holds is False]
        assert any("92 %" in claim.claimed for claim in wrong) and any("78.4" in claim.shown for claim in wrong)

    looking(world, look)


def test_the_consents_of_the_user_stay_as_they_are(world: DemoWorld) -> None:
    assert not [consent for consent in Consents().all() if str(world.folder) in consent.content]


def test_refuses_a_folder_with_something_in_it(tmp_path: Path) -> None:
    (tmp_path / "letter.md").touch()
    with pytest.raises(UsageError, match="not empty"):
        asyncio.run(build(tmp_path))


def test_the_run_at_work_shows_its_words_as_they_come(worlds: tuple[DemoWorld, DemoWorld]) -> None:
    async def story() -> None:
        async with demo_app(worlds[1].folder) as (app, world):
            words = asyncio.Queue[str]()

            def watch(event: LiveEvent) -> None:
                if isinstance(event, Token):
                    words.put_nowait(event.text)

            app.live.watch(watch, world.runs["working"])
            async with asyncio.timeout(60):
                shown = await words.get() + await words.get()
            assert "I begin with".startswith(shown[:5])
            assert app.worker.failure is None

    asyncio.run(story())


def without_delays(world: DemoWorld) -> None:
    """Have the scripted agents answer at once."""
    for path in (world.folder / "scripts").iterdir():
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        path.write_text("".join(json.dumps({**line, "delay": 0}) + "\n" for line in lines), encoding="utf-8")


def test_whatever_is_answered_the_runs_go_on(worlds: tuple[DemoWorld, DemoWorld]) -> None:
    """The scripts have something to say after every answer."""
    without_delays(worlds[1])

    async def story() -> None:
        async with demo_app(worlds[1].folder) as (app, world):
            asked = {question.run_id: question for question in await app.desk(DeskQuery(size=100))}
            await app.answer(asked[RUNS["review"]], "Say what happens offline.", choice="feedback")
            await app.answer(asked[RUNS["question"]], "写明价格")
            await app.answer(asked[RUNS["doubt"]], choice="happened")
            await app.answer(asked[RUNS["guard"]], choice="continue")
            await app.answer(asked[RUNS["board"]], "30000", choice="continue")
            await app.answer(asked[RUNS["unclear_document"]], choice="again")
            await app.answer(asked[RUNS["handoff"]], "李女士您好，周六上午可以送。", choice="reply", by="安")
            for name in ("question", "doubt", "guard", "board", "unclear_document"):
                assert (await app.wait(RUNS[name])).status == "completed", name
            for _ in range(5):  # requirements, design, plan, coding, code
                assert (await app.wait(RUNS["review"])).status == "waiting"
                (review,) = [one for one in await app.desk() if one.run_id == RUNS["review"]]
                await app.answer(review, choice="pass")
            assert (await app.wait(RUNS["review"])).status == "completed"
            assert (world.project / "index.html").is_file()

    asyncio.run(story())
