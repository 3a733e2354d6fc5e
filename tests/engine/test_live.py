"""Watching what happens as it happens."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ripstop.engine.live import Appended, Began, Live, LiveEvent, Token
from ripstop.engine.performers import Request
from ripstop.kernel.effects import AgentReplied, AskAgent, CallTool
from ripstop.kernel.run import Run
from ripstop.kernel.style import Picture
from ripstop.testing.stub_style import ErrandView
from tests.engine.world import Does, a_world

TOOL, AGENT = CallTool(tool="hammer"), AskAgent(agent="ada")


def test_watchers_see_what_happens_as_it_happens(tmp_path: Path) -> None:
    async def story() -> None:
        seen: list[LiveEvent] = []
        async with a_world(tmp_path / "j.db") as world:

            async def speak(request: Request) -> AgentReplied:
                for word in ("hel", "lo"):
                    world.engine.live.show(Token(request.run_id, request.number, word))
                return AgentReplied(text="hello")

            stop = world.engine.live.watch(seen.append)
            await world.work({AskAgent: Does(speak)})
            await world.start("r", (AGENT,))
            await world.ended("r")
            stop()
            before = len(seen)
            await world.start("unseen", (AGENT,))
            await world.ended("unseen")
            assert len(seen) == before
            tokens = [sight.text for sight in seen if isinstance(sight, Token)]
            assert [type(sight) for sight in seen] == [Appended, Began, Token, Token, Appended]
            assert tokens == ["hel", "lo"]
            assert 'hel"' not in str(await world.events("r")), "tokens are never recorded"

    asyncio.run(story())


def test_a_watcher_that_falls_over_does_not_hold_up_a_run(tmp_path: Path) -> None:
    async def story() -> None:
        def fall(sight: LiveEvent) -> None:
            raise BrokenPipeError("nobody reads any more")

        async with a_world(tmp_path / "j.db") as world:
            await world.work({AskAgent: Does(lambda request: AgentReplied(text="hello"))})
            world.engine.live.watch(fall)
            await world.start("r", (AGENT,), (AGENT,))
            view = await world.ended("r")
            assert view.run.ended is not None and view.run.ended.outcome == "completed"

    asyncio.run(story())


def test_a_watcher_of_one_run_sees_it_and_its_children_only() -> None:
    live, seen = Live(), list[str]()
    stop = live.watch(lambda sight: seen.append(sight.run_id), "a")
    for run_id in ("a", "a.3", "a.3.7", "ab", "b", "b.3"):
        live.show(Token(run_id, 1, "word"))
    assert seen == ["a", "a.3", "a.3.7"]
    stop()
    stop()
    live.show(Token("a", 1, "word"))
    assert len(seen) == 3
    assert not live.watched


def test_a_picture_is_made_once_for_every_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    shown: list[Picture] = []
    real = ErrandView.picture

    def picture(view: ErrandView, run: Run[Any]) -> Picture:
        made.append(run.length)
        return real(view, run)

    monkeypatch.setattr(ErrandView, "picture", picture)

    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            world.engine.live.watch(lambda event: shown.append(event.picture) if type(event) is Appended else None)
            await world.work({CallTool: Does()})
            await world.start("r", (TOOL,), (TOOL,))
            view = await world.ended("r")
            assert (await world.engine.look("r")).picture == view.picture == shown[-1]

    asyncio.run(story())
    assert len(made) == len(set(made)) == len(shown)
