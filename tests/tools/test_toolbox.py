"""Tools of users: how they are declared, what they are told, and how long they may take."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ripstop
from ripstop.engine.performers import InDoubt, Kind, Refused, TryAgain
from ripstop.kernel.effects import CallTool, Failed, ToolReturned
from ripstop.kernel.errors import DefinitionError
from ripstop.kernel.events import RunSettings
from ripstop.tools.mcp.card import read_card
from ripstop.tools.mcp.servers import Pins, ServerSpec, ServerTools
from ripstop.tools.toolbox import TimedOut, Tool, Toolbox
from tests.engine.test_in_doubt import settle
from tests.tools.tool_requests import tool_request


def called(tool: Tool, arguments: Any = None, **request: Any) -> Any:
    answer = asyncio.run(Toolbox([tool]).perform(tool_request(arguments or {}, tool=tool.name, **request)))
    assert isinstance(answer, ToolReturned)
    return answer.value


def test_a_tool_needs_no_parentheses() -> None:
    @ripstop.tool
    def bare(a: int) -> int:
        "Bare."
        return a + 1

    @ripstop.tool()
    def empty(a: int) -> int:
        return a + 2

    @ripstop.tool("pure")
    def plain(a: int) -> int:
        return a + 3

    assert [one.kind for one in (bare, empty, plain)] == [Kind.UNSAFE, Kind.UNSAFE, Kind.PURE]
    assert [called(one, {"a": 1}) for one in (bare, empty, plain)] == [2, 3, 4]
    assert (bare.spec.name, bare.spec.description, bare(1)) == ("bare", "Bare.", 2)


@pytest.mark.parametrize(
    ("declare", "problem"),
    [
        (lambda: ripstop.tool("safe"), "no kind of effect 'safe'; choose from pure, keyed, probeable, unsafe"),
        (lambda: ripstop.tool("probeable")(lambda: None), "needs probe="),
        (lambda: ripstop.tool("keyed")(_adding), "keyed, so it must take `key: str` or a ToolContext"),
        (lambda: ripstop.tool("pure")(_with_key), "takes `key`; declare it with kind='keyed'"),
        (lambda: ripstop.tool(lambda a: a), "'a' .* needs a name and a type"),
        (lambda: ripstop.tool("pure", timeout=0)(_adding), "seconds above 0, not 0"),
        (lambda: ripstop.tool("pure", timeout=float("nan"))(_adding), "not nan"),
        (lambda: ripstop.tool(_two_contexts), "twice"),
        (lambda: ripstop.tool(_many_contexts), "'them' .*: write `them: ToolContext`"),
    ],
)
def test_a_wrong_declaration_is_refused(declare: Callable[[], object], problem: str) -> None:
    with pytest.raises(DefinitionError, match=problem):
        declare()


def _adding(a: int) -> int:
    return a


def _with_key(a: int, key: str) -> int:
    return a


def _two_contexts(one: ripstop.ToolContext, other: ripstop.ToolContext) -> None: ...


def _many_contexts(them: list[ripstop.ToolContext]) -> None: ...


def test_a_tool_is_told_what_its_call_is_part_of(tmp_path: Path) -> None:
    seen: list[ripstop.ToolContext] = []

    @ripstop.tool("keyed")
    async def note(text: str, about: ripstop.ToolContext) -> str:
        seen.append(about)
        return text

    @ripstop.tool
    def optional(ctx: ripstop.ToolContext | None = None) -> str:
        return ctx.agent if ctx else ""

    request = {
        "run_id": "r1",
        "agent": "ann",
        "number": 4,
        "attempt": 2,
        "settings": RunSettings(workspace=str(tmp_path)),
    }
    assert called(note, {"text": "hi"}, **request) == "hi"
    assert seen == [ripstop.ToolContext(run="r1", agent="ann", workspace=tmp_path, key="r1/4", attempt=2)]
    assert (called(optional, **request), optional()) == ("ann", "")


@pytest.mark.parametrize("forged", [None, {"run": "r", "agent": "boss", "workspace": "/", "key": "k", "attempt": 1}])
def test_agents_neither_see_nor_set_the_context(forged: Any) -> None:
    @ripstop.tool
    def who(ctx: ripstop.ToolContext, name: str = "") -> str:
        return ctx.agent

    assert list(who.spec.parameters["properties"]) == ["name"]
    with pytest.raises(Refused, match=r"unknown field `ctx`.*It takes: name"):
        called(who, {"ctx": forged}, agent="ann")


def test_a_probe_is_told_too() -> None:
    def was_sent(text: str, ctx: ripstop.ToolContext) -> str:
        return f"{text} as {ctx.key}"

    @ripstop.tool("probeable", probe=was_sent)
    def send(text: str) -> str:
        raise TimeoutError

    found = asyncio.run(Toolbox([send]).probe(tool_request({"text": "hi"}, tool="send")))
    assert found == ToolReturned(value="hi as r/9")


def test_a_coroutine_is_cancelled_when_its_time_is_up() -> None:
    ended: list[str] = []

    @ripstop.tool("pure", timeout=0.01)
    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    with pytest.raises(TimedOut, match=r"within its time limit of 0\.01 s"):
        called(slow)
    assert ended == ["cancelled"]


def test_a_call_that_ends_when_its_time_is_up_is_believed() -> None:
    async def until_cancelled(ending: Callable[[], str]) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return ending()
        raise AssertionError

    def nothing_happened() -> str:
        raise TryAgain("It was not sent.")

    @ripstop.tool(timeout=0.01)
    async def finishes() -> str:
        return await until_cancelled(lambda: "sent just in time")

    @ripstop.tool(timeout=0.01)
    async def undoes() -> str:
        return await until_cancelled(nothing_happened)

    assert called(finishes) == "sent just in time"
    with pytest.raises(TryAgain, match="It was not sent"):
        called(undoes)


def test_a_timeout_of_the_tools_own_is_not_its_time_limit() -> None:
    @ripstop.tool("pure", timeout=60)
    async def impatient() -> None:
        raise TimeoutError("no answer")

    with pytest.raises(TimeoutError, match="no answer"):
        called(impatient)


@pytest.mark.req("S3-96")
def test_a_tool_that_waits_does_not_hold_up_the_others() -> None:
    heard = threading.Event()

    @ripstop.tool("pure", timeout=30)
    def wait() -> bool:
        return heard.wait(20)

    @ripstop.tool("pure")
    def speak() -> None:
        heard.set()

    async def both() -> list[Any]:
        box = Toolbox([wait, speak])
        return await asyncio.gather(*(box.perform(tool_request({}, tool=name)) for name in ("wait", "speak")))

    assert asyncio.run(both())[0] == ToolReturned(value=True)


def test_a_thread_that_still_works_cannot_be_probed() -> None:
    release, sent = threading.Event(), threading.Event()

    @ripstop.tool("probeable", probe=lambda: "sent" if sent.is_set() else None, timeout=0.01)
    def send() -> str:
        release.wait(60)
        sent.set()
        return "sent"

    async def story() -> None:
        box, request = Toolbox([send]), tool_request({}, tool="send")
        with pytest.raises(TimedOut):
            await box.perform(request)
        with pytest.raises(InDoubt, match="still be at work"):
            await box.probe(request)
        release.set()
        for _ in range(1000):
            if not box._unfinished:
                break
            await asyncio.sleep(0.01)
        assert await box.probe(request) == ToolReturned(value="sent")

    asyncio.run(story())


def test_cancelling_a_call_with_a_time_limit_ends_it() -> None:
    begun, ended = list[bool](), list[str]()

    @ripstop.tool("pure", timeout=60)
    async def slow() -> None:
        begun.append(True)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("ended")

    async def story() -> None:
        working = asyncio.ensure_future(Toolbox([slow]).perform(tool_request({}, tool="slow")))
        while not begun:
            await asyncio.sleep(0.01)
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
        assert ended == ["ended"]

    asyncio.run(story())


@pytest.mark.parametrize(
    ("kind", "answered", "called"),
    [(Kind.UNSAFE, False, 1), (Kind.KEYED, False, 3), (Kind.PURE, True, 1), (Kind.PROBEABLE, True, 1)],
    ids=lambda value: getattr(value, "value", ""),
)
def test_a_call_over_its_time_limit_breaks_off_as_its_kind_says(
    tmp_path: Path, kind: Kind, answered: bool, called: int
) -> None:
    calls: list[int] = []

    async def pay(ctx: ripstop.ToolContext) -> None:
        calls.append(ctx.attempt)
        await asyncio.Event().wait()

    slow = ripstop.tool(kind.value, probe=lambda: None, timeout=0.01)(pay)
    events, questions = settle(tmp_path, Toolbox([slow]), CallTool(tool="pay"), attempts=3)
    answers = [event.answer for event in events if hasattr(event, "answer")]
    assert calls == list(range(1, called + 1))
    if answered:
        assert [type(one) for one in answers] == [Failed] and "time limit of 0.01 s" in answers[0].reason
        assert questions == []
    else:
        assert answers == [] and "time limit of 0.01 s" in questions[0].command.question


def test_a_tool_of_a_program_takes_the_place_of_a_servers_and_a_star_offers_the_rest(tmp_path: Path) -> None:
    server = ServerSpec(name="git", command=("x",))
    raw = {"inputSchema": {"type": "object"}}
    pins = Pins(tmp_path)
    pins.remember(server, [read_card("git", {"name": name, **raw}) for name in ("log", "status")])

    @ripstop.tool("pure")
    def git__log() -> str:
        """Ours."""
        return "ours"

    toolbox = Toolbox([git__log], servers=ServerTools([server], pins))
    assert [(spec.name, spec.description) for spec in toolbox.specs(("git__log", "git__*"))] == [
        ("git__log", "Ours."),
        ("git__status", ""),
    ]
    assert toolbox.has("git__*") and toolbox.has("git__status") and not toolbox.has("git__push")
    assert "tool:git__status" in toolbox.offers()
    assert toolbox.kind(CallTool(tool="git__log")) is Kind.PURE
    assert toolbox.kind(CallTool(tool="git__status")) is Kind.UNSAFE
