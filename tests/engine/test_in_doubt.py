"""A call that breaks off: when it has surely failed, and when a person must say whether it took effect."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ripstop import InDoubt, Refused, TryAgain, tool
from ripstop.engine.performers import Kind, Performer, Request
from ripstop.engine.ports import Question
from ripstop.kernel.doubts import AGAIN, HAPPENED
from ripstop.kernel.effects import AskAgent, CallTool, Failed, ToolReturned
from ripstop.kernel.events import Doubted, DoubtResolved
from ripstop.tools.toolbox import Tool, Toolbox
from tests.engine.world import Does, World, a_world, answers

PAY = CallTool(tool="pay", arguments={"euros": 5})


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "ripstop.worker")


def raises(error: BaseException) -> Callable[[Request], ToolReturned]:
    def do(_: Request) -> ToolReturned:
        raise error

    return do


def settle(
    path: Path, performer: Performer, command: CallTool = PAY, **options: Any
) -> tuple[list[Any], list[Question]]:
    """The events of run `r` and the desk, once its only tool call is answered or in doubt."""

    async def story() -> tuple[list[Any], list[Question]]:
        async with a_world(path / "j.db") as world:
            await world.work({CallTool: performer}, backoff=0.001, **options)
            await world.start("r", (command,))
            await world.until("r", lambda view: view.status != "working")
            return await world.events("r"), await world.desk()

    return asyncio.run(story())


@pytest.mark.parametrize(
    "error",
    [
        TimeoutError("no answer within 5 s"),
        ConnectionResetError("reset by peer"),
        KeyError("euros"),
        SystemExit(2),
        asyncio.CancelledError("inside"),
        InDoubt("the bank took the order and then hung up"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_unsafe_call_that_breaks_off_is_in_doubt(tmp_path: Path, error: BaseException) -> None:
    pay = Does(raises(error), kind=Kind.UNSAFE)
    events, (question,) = settle(tmp_path, pay)
    assert answers(events) == []
    (doubt,) = [event for event in events if isinstance(event, Doubted)]
    for clue in ("'pay'", '{"euros":5}', "r/3, attempt 1", str(error)):
        assert clue in doubt.evidence
    assert doubt.evidence in question.command.question
    assert len(pay.asked) == 1


def test_an_unsafe_call_in_doubt_is_repeated_only_by_a_person(tmp_path: Path) -> None:
    def once(request: Request) -> ToolReturned:
        if request.attempt == 1:
            raise TimeoutError
        return ToolReturned(value="paid")

    async def story() -> None:
        pay = Does(once, kind=Kind.UNSAFE)
        async with a_world(tmp_path / "j.db") as world:
            await world.work({CallTool: pay})
            await world.start("r", (PAY,))
            await world.until("r", lambda view: view.status == "waiting")
            (question,) = await world.desk()
            await world.engine.answer("r", question.number, AGAIN)
            await world.ended("r")
            assert answers(await world.events("r"))[-1].answer == ToolReturned(value="paid")
        assert [request.attempt for request in pay.asked] == [1, 2]

    asyncio.run(story())


@pytest.mark.parametrize("kind", list(Kind))
def test_a_tool_that_refuses_or_asks_to_be_retried_surely_did_nothing(tmp_path: Path, kind: Kind) -> None:
    events, _ = settle(tmp_path / "a", Does(raises(Refused("No such account.")), kind=kind))
    assert [fact.answer for fact in answers(events)] == [Failed(reason="No such account.")]
    events, _ = settle(tmp_path / "b", Does(raises(TryAgain("The bank is closed.")), kind=kind), attempts=2)
    assert [type(fact.answer) for fact in answers(events)] == [Failed]


def test_a_keyed_call_that_breaks_off_is_retried_and_then_in_doubt(tmp_path: Path) -> None:
    pay = Does(raises(TimeoutError("no answer")), kind=Kind.KEYED)
    events, (question,) = settle(tmp_path, pay, attempts=3)
    assert [(request.key, request.attempt) for request in pay.asked] == [("r/3", 1), ("r/3", 2), ("r/3", 3)]
    assert answers(events) == []
    assert "TimeoutError: no answer" in question.command.question


@pytest.mark.parametrize(
    ("found", "answer"),
    [(ToolReturned(value="paid"), ToolReturned(value="paid")), (None, Failed(reason="TimeoutError", fault="ours"))],
)
def test_a_probeable_call_that_breaks_off_is_probed(tmp_path: Path, found: ToolReturned | None, answer: object) -> None:
    pay = Does(raises(TimeoutError()), kind=Kind.PROBEABLE, probe=lambda _: found)
    events, questions = settle(tmp_path, pay)
    assert [fact.answer for fact in answers(events)] == [answer]
    assert (len(pay.asked), len(pay.probed), questions) == (1, 1, [])


def test_a_probeable_call_is_in_doubt_if_its_probe_fails(tmp_path: Path) -> None:
    def nobody_there(_: Request) -> ToolReturned:
        raise ConnectionError("nobody there")

    pay = Does(raises(TimeoutError("no answer")), kind=Kind.PROBEABLE, probe=nobody_there)
    events, (question,) = settle(tmp_path, pay)
    assert answers(events) == []
    assert "TimeoutError: no answer" in question.command.question


def test_a_pure_call_that_breaks_off_has_failed(tmp_path: Path) -> None:
    events, questions = settle(tmp_path, Does(raises(TimeoutError("no answer"))))
    assert [fact.answer for fact in answers(events)] == [Failed(reason="TimeoutError: no answer", fault="ours")]
    assert questions == []


def test_the_evidence_is_bounded_and_can_always_be_recorded(tmp_path: Path) -> None:
    lengthy = CallTool(tool="pay", arguments={"note": "x" * 100_000})
    pay = Does(raises(ValueError("half a character: \ud800 " + "y" * 100_000)), kind=Kind.UNSAFE)
    _, (question,) = settle(tmp_path, pay, lengthy)
    assert "xxx" in question.command.question and "\\ud800" in question.command.question
    assert len(question.command.question) < 2000


# Real tools


def cyclic() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


def deep() -> list[Any]:
    value: list[Any] = []
    for _ in range(300):
        value = [value]
    return value


RESULTS: dict[str, Callable[[], Any]] = {"object": object, "cycle": cyclic, "deep": deep}


def paying(kind: str, result: Callable[[], Any], paid: list[int]) -> Tool:
    def pay(euros: int) -> Any:
        """Pay."""
        paid.append(euros)
        return result()

    def keyed(euros: int, key: str) -> Any:
        return pay(euros)

    keyed.__name__ = "pay"
    return tool(kind, probe=pay if kind == "probeable" else None)(keyed if kind == "keyed" else pay)


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS.keys())
@pytest.mark.parametrize("kind", ["unsafe", "keyed", "probeable"])
def test_a_result_that_cannot_be_recorded_does_not_hide_the_effect(
    tmp_path: Path, kind: str, result: Callable[[], Any]
) -> None:
    paid: list[int] = []
    events, questions = settle(tmp_path, Toolbox([paying(kind, result, paid)]))
    (fact,) = answers(events)
    assert isinstance(fact.answer, ToolReturned)
    assert "took effect" in fact.answer.value
    assert (paid, questions) == ([5], [])


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS.keys())
def test_a_pure_tool_whose_result_cannot_be_recorded_has_failed(tmp_path: Path, result: Callable[[], Any]) -> None:
    events, _ = settle(tmp_path, Toolbox([paying("pure", result, [])]))
    assert [type(fact.answer) for fact in answers(events)] == [Failed]


def test_half_a_character_in_a_result_is_replaced(tmp_path: Path) -> None:
    events, _ = settle(tmp_path, Toolbox([paying("unsafe", lambda: "half: \ud800", [])]))
    assert [fact.answer for fact in answers(events)] == [ToolReturned(value="half: \ufffd")]


def test_a_tool_that_raises_stop_iteration_does_not_hang(tmp_path: Path) -> None:
    def nothing_left() -> Any:
        return next(iter(()))

    events, (question,) = settle(tmp_path, Toolbox([paying("unsafe", nothing_left, [])]))
    assert answers(events) == []
    assert "StopIteration" in question.command.question


def test_no_agent_hears_of_a_doubt_before_a_person_has_decided(tmp_path: Path) -> None:
    """The next round asks an agent; it must wait for the person, or it would simply call the tool again."""

    def no_answer() -> Any:
        raise TimeoutError("no answer")

    async def story(world: World) -> None:
        paid: list[int] = []
        agent = Does(lambda _: ToolReturned(value="unused"))
        await world.work({CallTool: Toolbox([paying("unsafe", no_answer, paid)]), AskAgent: agent})
        await world.start("r", (PAY,), (AskAgent(agent="a"),))
        await world.until("r", lambda view: view.status == "waiting")
        assert (paid, agent.asked) == ([5], [])
        (question,) = await world.desk()
        await world.engine.answer("r", question.number, "receipt 7", choice=HAPPENED)
        await world.until("r", lambda view: bool(agent.asked))
        (resolved,) = [event for event in await world.events("r") if isinstance(event, DoubtResolved)]
        assert resolved.answer == ToolReturned(value="receipt 7")
        assert paid == [5]

    async def in_a_world() -> None:
        async with a_world(tmp_path / "j.db") as world:
            await story(world)

    asyncio.run(in_a_world())
