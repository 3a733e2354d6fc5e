"""The worker: how many at once, what is tried again, what is stopped, what a failure becomes."""

import asyncio
import logging
import subprocess
import sys
from pathlib import Path

import pytest
from world import Does, World, a_world, until

from ripstop.kernel.effects import AgentReplied, AskAgent, CallTool, Failed, ToolReturned
from ripstop.kernel.errors import JournalError
from ripstop.kernel.events import Answered
from ripstop.runtime.live import Appended, Began, Retrying, Sight, Token
from ripstop.runtime.pace import Pace
from ripstop.runtime.ports import Kind, Refused, Request, TryAgain

TOOL, AGENT = CallTool(tool="hammer"), AskAgent(agent="ada")


def answers(events: list[object]) -> list[Answered]:
    return [event for event in events if isinstance(event, Answered)]


def test_never_does_more_at_once_than_it_may(tmp_path: Path) -> None:
    async def story() -> None:
        at_once, most = 0, 0

        async def count(request: Request) -> ToolReturned:
            nonlocal at_once, most
            at_once += 1
            most = max(most, at_once)
            await asyncio.sleep(0.002)
            at_once -= 1
            return ToolReturned(value=1)

        async with a_world(tmp_path / "j.db") as world:
            await world.work({CallTool: Does(count)}, concurrency=3)
            await asyncio.gather(*(world.start(f"r{number}", (TOOL, TOOL)) for number in range(10)))
            for number in range(10):
                await world.ended(f"r{number}")
        assert most == 3

    asyncio.run(story())


FULL = """
import asyncio, sys
from pathlib import Path
from ripstop.kernel.effects import CallTool, ToolReturned
from world import Does, a_world

async def slowly(request):
    await asyncio.sleep(0.01)
    return ToolReturned(value=1)

async def main(path, only):
    async with a_world(Path(path)) as world:
        for number in range(4):
            await world.start(f"r{number}", (CallTool(tool="t"),))
        await world.work({CallTool: Does(slowly)}, concurrency=1, only=only or None)
        await world.ended(only or "r3")
        print(sum(info.status == "completed" for info in await world.engine.runs()))

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize(("only", "done"), [("", 4), ("r2", 1)])
def test_takes_up_what_was_left_bit_by_bit_when_it_is_full(tmp_path: Path, only: str, done: int) -> None:
    # in a process of its own: when this breaks, the loop spins and no timeout inside it can fire
    command = [sys.executable, "-c", FULL, str(tmp_path / "j.db"), only]
    path = {"PYTHONPATH": ":".join([str(Path(__file__).parent), *sys.path])}
    told = subprocess.run(command, env=path, capture_output=True, text=True, timeout=15)
    assert told.stdout == f"{done}\n", told.stderr


CUT_SHORT = """
import asyncio, sys
from pathlib import Path
from world import World

async def main(path, turns):
    world = World(Path(path))
    worker = await world.work({})
    await asyncio.sleep(0.01)
    worker.wake()
    for _ in range(int(turns)):
        await asyncio.sleep(0)
    raise SystemExit(7)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("turns", [0, 1, 2, 3])
def test_does_not_keep_a_process_alive_whose_main_function_failed(tmp_path: Path, turns: int) -> None:
    command = [sys.executable, "-c", CUT_SHORT, str(tmp_path / "j.db"), str(turns)]
    path = {"PYTHONPATH": ":".join([str(Path(__file__).parent), *sys.path])}
    assert subprocess.run(command, env=path, timeout=10).returncode == 7


# Trying again


@pytest.mark.req("S3-92")
def test_tries_again_only_what_surely_had_no_effect_with_growing_pauses(tmp_path: Path) -> None:
    async def story() -> None:
        def fails_thrice(request: Request) -> AgentReplied:
            if request.attempt < 4:
                raise TryAgain("too many requests")
            return AgentReplied(text="at last")

        agent = Does(fails_thrice, provider="acme")
        pauses: list[float] = []

        def watch(sight: Sight) -> None:
            if isinstance(sight, Retrying):
                pauses.append(sight.seconds)

        async with a_world(tmp_path / "j.db") as world:
            world.engine.live.watch(watch)
            await world.work({AskAgent: agent}, backoff=0.001)
            await world.start("r", (AGENT,))
            await world.ended("r")
            (answer,) = answers(await world.events("r"))
        assert [request.attempt for request in agent.asked] == [1, 2, 3, 4]
        assert {request.key for request in agent.asked} == {"r/3"}
        assert pauses == [0.001, 0.002, 0.004]
        assert answer.answer == AgentReplied(text="at last")
        assert answer.attempt == 4

    asyncio.run(story())


def test_keeps_to_the_pause_that_the_other_side_asks_for(tmp_path: Path) -> None:
    async def story() -> None:
        def once(request: Request) -> AgentReplied:
            if request.attempt == 1:
                raise TryAgain("wait", after=0.0123)
            return AgentReplied(text="ok")

        pauses: list[float] = []
        async with a_world(tmp_path / "j.db") as world:
            world.engine.live.watch(lambda sight: pauses.append(sight.seconds) if isinstance(sight, Retrying) else None)
            await world.work({AskAgent: Does(once)}, backoff=99)
            await world.start("r", (AGENT,))
            await world.ended("r")
        assert pauses == [0.0123]

    asyncio.run(story())


def test_gives_up_after_so_many_attempts_and_says_how_many(tmp_path: Path) -> None:
    async def story() -> None:
        def never(request: Request) -> AgentReplied:
            raise TryAgain("overloaded")

        agent = Does(never)
        async with a_world(tmp_path / "j.db") as world:
            await world.work({AskAgent: agent}, attempts=3, backoff=0.001)
            await world.start("r", (AGENT,))
            await world.ended("r")
            (answer,) = answers(await world.events("r"))
        assert len(agent.asked) == 3
        assert isinstance(answer.answer, Failed)
        assert "overloaded" in answer.answer.reason and "3 times" in answer.answer.reason

    asyncio.run(story())


def test_never_repeats_a_refusal(tmp_path: Path) -> None:
    async def story() -> None:
        def refuse(request: Request) -> ToolReturned:
            raise Refused("No such file.", fault="agent")

        tool = Does(refuse)
        async with a_world(tmp_path / "j.db") as world:
            await world.work({CallTool: tool}, backoff=0.001)
            await world.start("r", (TOOL,))
            await world.ended("r")
            (answer,) = answers(await world.events("r"))
        assert len(tool.asked) == 1
        assert answer.answer == Failed(reason="No such file.", fault="agent")

    asyncio.run(story())


@pytest.mark.req("S3-90")
def test_an_exception_in_a_performer_is_a_failed_answer_and_not_a_crash(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        def stumble(request: Request) -> ToolReturned:
            raise ZeroDivisionError("by zero")

        async with a_world(tmp_path / "j.db") as world:
            worker = await world.work({CallTool: Does(stumble)})
            await world.start("r", (TOOL,))
            await world.ended("r")
            await worker.idle()
            (answer,) = answers(await world.events("r"))
        assert answer.answer == Failed(reason="ZeroDivisionError: by zero", fault="ours")

    with caplog.at_level(logging.CRITICAL, "ripstop.worker"):
        asyncio.run(story())


def test_an_answer_that_cannot_be_recorded_is_the_tools_failure_and_not_a_crash(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            worker = await world.work({CallTool: Does(lambda request: ToolReturned(value=object()))})
            await world.start("r", (TOOL,))
            await world.ended("r")
            await worker.idle()
            (answer,) = answers(await world.events("r"))
        assert isinstance(answer.answer, Failed)

    asyncio.run(story())


# Pace


def test_keeps_one_pace_per_provider_over_all_runs() -> None:
    async def story() -> None:
        time = 0.0
        slept: list[float] = []
        pace = Pace({"acme": 2.0}, now=lambda: time)

        async def wait(provider: str) -> float:
            nonlocal time
            waiting = asyncio.ensure_future(pace.wait(provider))
            await asyncio.sleep(0)
            if not waiting.done():
                slept.append(time)
                time = pace._free[provider]
                waiting.cancel()
                await pace.wait(provider)
            return time

        assert [await wait("acme") for _ in range(3)] == [0.0, 2.0, 4.0]
        assert await wait("other") == 4.0
        assert len(slept) == 2

    asyncio.run(story())


def test_a_provider_that_says_too_many_is_left_alone_by_all_runs(tmp_path: Path) -> None:
    async def story() -> None:
        calls: list[tuple[str, float]] = []
        loop = asyncio.get_running_loop()

        def limited(request: Request) -> AgentReplied:
            calls.append((request.run_id, loop.time()))
            if len(calls) == 1:
                raise TryAgain("too many", after=0.15, provider_wide=True)
            return AgentReplied(text="ok")

        async with a_world(tmp_path / "j.db") as world:
            await world.work({AskAgent: Does(limited, provider="acme"), CallTool: Does()}, concurrency=8)
            await world.start("first", (AGENT,))
            await until(lambda: len(calls) == 1)
            await asyncio.sleep(0.01)
            await world.start("second", (AGENT,))
            await world.start("tool", (TOOL,))
            await world.ended("tool")
            assert len(calls) == 1, "the others are not held up, this provider is"
            await world.ended("first")
            await world.ended("second")
        assert min(at for _, at in calls[1:]) - calls[0][1] >= 0.15

    asyncio.run(story())


# Stopping


def test_cancelling_a_run_stops_the_call_that_it_waits_for(tmp_path: Path) -> None:
    async def story() -> None:
        stopped = asyncio.Event()

        async def for_ever(request: Request) -> AgentReplied:
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()
            return AgentReplied()

        agent = Does(for_ever)
        async with a_world(tmp_path / "j.db") as world:
            worker = await world.work({AskAgent: agent})
            await world.start("r", (AGENT,))
            await until(lambda: bool(agent.asked))
            run = await world.engine.cancel("r", by="ada")
            assert run.ended is not None and run.ended.outcome == "stopped"
            async with asyncio.timeout(5):
                await stopped.wait()
                await worker.idle()
            assert worker.failure is None
            assert answers(await world.events("r")) == []

    asyncio.run(story())


def test_what_was_still_waiting_for_its_turn_is_not_done_after_its_run_was_cancelled(tmp_path: Path) -> None:
    async def story() -> None:
        free = asyncio.Event()

        async def wait(request: Request) -> ToolReturned:
            await free.wait()
            return ToolReturned(value=1)

        tool = Does(wait)
        async with a_world(tmp_path / "j.db") as world:
            worker = await world.work({CallTool: tool}, concurrency=1)
            await world.start("first", (TOOL,))
            await until(lambda: bool(tool.asked))
            await world.start("second", (TOOL,))
            await world.engine.cancel("second")
            free.set()
            await world.ended("first")
            await worker.idle()
        assert [request.run_id for request in tool.asked] == ["first"]

    asyncio.run(story())


def test_a_graceful_stop_lets_calls_finish_and_gives_the_rest_back(tmp_path: Path) -> None:
    async def story() -> None:
        free = asyncio.Event()

        async def wait(request: Request) -> ToolReturned:
            await free.wait()
            return ToolReturned(value=request.run_id)

        tool = Does(wait)
        async with a_world(tmp_path / "j.db") as world:
            worker = await world.work({CallTool: tool}, concurrency=1)
            await world.start("first", (TOOL,), (TOOL,))
            await until(lambda: bool(tool.asked))
            await world.start("second", (TOOL,))
            stopping = asyncio.ensure_future(worker.stop(grace=5))
            await asyncio.sleep(0.01)
            free.set()
            await stopping
            assert len(tool.asked) == 1, "nothing new was begun"
            assert len(answers(await world.events("first"))) == 1, "what ran could finish"
            world.worker = None
            await world.work({CallTool: tool})
            await world.ended("first")
            await world.ended("second")
        assert sorted(request.key for request in tool.asked) == ["first/3", "first/6", "second/3"]

    asyncio.run(story())


def test_what_was_not_done_within_the_grace_is_resumed_by_another_worker(tmp_path: Path) -> None:
    async def story() -> None:
        async def slow_at_first(request: Request) -> ToolReturned:
            if request.attempt == 1:
                await asyncio.Event().wait()
            return ToolReturned(value="resumed")

        tool = Does(slow_at_first)
        async with a_world(tmp_path / "j.db") as world:
            worker = await world.work({CallTool: tool})
            await world.start("r", (TOOL,))
            await until(lambda: bool(tool.asked))
            await worker.stop(grace=0)
            world.worker = None
            assert answers(await world.events("r")) == []
            await world.work({CallTool: tool})
            await world.ended("r")
            (answer,) = answers(await world.events("r"))
        assert answer.answer == ToolReturned(value="resumed")
        assert answer.attempt == 2

    asyncio.run(story())


def test_an_answer_that_comes_after_the_lease_was_lost_is_not_recorded(tmp_path: Path) -> None:
    async def story() -> None:
        free = asyncio.Event()

        async def wait(request: Request) -> ToolReturned:
            await free.wait()
            return ToolReturned(value="too late")

        tool = Does(wait)
        async with a_world(tmp_path / "j.db") as world:
            worker = await world.work({CallTool: tool})
            await world.start("r", (TOOL,))
            await until(lambda: bool(tool.asked))
            other = World(tmp_path / "j.db")
            later = other.clock() + 3600 * 1_000_000
            holder = await other.journal.enrol(later)
            (task,) = await other.journal.claim(holder, later, 1)
            assert (task.number, task.doubtful) == (3, True)
            free.set()
            await worker.idle()
            assert worker.failure is None
            assert answers(await world.events("r")) == []
            await other.journal.close()

    asyncio.run(story())


def test_a_journal_that_fails_makes_the_worker_give_up_and_say_why(tmp_path: Path) -> None:
    async def story() -> None:
        async with a_world(tmp_path / "j.db") as world:
            calls = 0

            def fill(request: Request) -> AgentReplied:
                nonlocal calls
                calls += 1
                if calls == 3:
                    world.journal._writing.execute("PRAGMA max_page_count = 1")
                return AgentReplied(text="x" * 50_000)

            worker = await world.work({AskAgent: Does(fill)})
            await world.start("r", *[(AGENT,)] * 9)
            with pytest.raises(JournalError, match="disk is full"):
                async with asyncio.timeout(5):
                    await worker.idle()
            assert calls == 3, "nothing more was begun"
            assert len(answers(await world.events("r"))) == 2, "what was acknowledged is there"
            world.journal._writing.execute("PRAGMA max_page_count = 100000")

    asyncio.run(story())


# Watching


def test_watchers_see_what_happens_as_it_happens(tmp_path: Path) -> None:
    async def story() -> None:
        seen: list[Sight] = []
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
            assert "hel\"" not in str(await world.events("r")), "tokens are never recorded"

    asyncio.run(story())


def test_a_watcher_that_falls_over_does_not_hold_up_a_run(tmp_path: Path) -> None:
    async def story() -> None:
        def fall(sight: Sight) -> None:
            raise BrokenPipeError("nobody reads any more")

        async with a_world(tmp_path / "j.db") as world:
            await world.work({AskAgent: Does(lambda request: AgentReplied(text="hello"))})
            world.engine.live.watch(fall)
            await world.start("r", (AGENT,), (AGENT,))
            view = await world.ended("r")
            assert view.run.ended is not None and view.run.ended.outcome == "completed"

    asyncio.run(story())


def test_the_key_is_the_same_for_every_attempt_and_for_nothing_else(tmp_path: Path) -> None:
    async def story() -> None:
        def once(request: Request) -> ToolReturned:
            if request.attempt == 1:
                raise TryAgain("again")
            return ToolReturned(value=1)

        tool = Does(once, kind=Kind.KEYED)
        async with a_world(tmp_path / "j.db") as world:
            await world.work({CallTool: tool}, backoff=0.001)
            await world.start("r", (TOOL, TOOL))
            await world.ended("r")
        keys = [request.key for request in tool.asked]
        assert sorted(keys) == ["r/3", "r/3", "r/4", "r/4"]

    asyncio.run(story())
