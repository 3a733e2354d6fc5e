"""What a call has cost is known while it is at work, whoever watches: it may be cut off, or its reply be useless."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ripstop.engine.live import Live
from ripstop.engine.performers import CallProgress, Request, TryAgain, no_tools
from ripstop.kernel.effects import AgentReplied, AskAgent, Failed, Usage
from ripstop.kernel.events import Answered, CallRefused
from ripstop.models.openai_compatible import OpenAICompatibleAgent
from ripstop.models.router import Agents
from ripstop.models.scripted import ScriptedAgent
from tests.engine.world import a_world, until
from tests.models.asking import ask
from tests.models.test_openai_compatible_agent import delta, events, heard, response

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
SAID = {
    "text": delta(content="x" * 80),
    "thoughts": delta(reasoning_content="x" * 80),
    "arguments": delta(tool_calls=[{"index": 0, "id": "c", "function": {"name": "read", "arguments": "x" * 80}}]),
}


def test_a_call_without_a_reply_costs_nothing_unless_it_was_cut_off():
    progress = CallProgress()
    progress.begin(800, (1.0, 4.0))
    assert progress.usage() == Usage()
    assert progress.usage(cut_off=True) == Usage(unreported_input=100, unreported_money=0.0001)
    assert progress.first_token == 0.0


def test_a_reply_that_only_began_costs_its_prompt():
    progress = CallProgress()
    progress.begin(800)
    progress.receive(0)
    assert (progress.usage(), progress.first_token) == (Usage(unreported_input=100), 0.0)


def test_what_a_server_reports_counts_and_the_rest_by_its_bytes():
    progress = CallProgress()
    progress.begin(800, (1.0, 4.0))
    progress.receive(40)
    progress.receive(40)
    progress.report(Usage(input_tokens=120, output_tokens=4))
    found = progress.usage()
    assert (found.input_tokens, found.output_tokens, found.unreported_output) == (120, 4, 6)
    assert found.counted_money == pytest.approx((120 * 1.0 + 10 * 4.0) / 1e6)
    assert progress.first_token > 0


@asynccontextmanager
async def stalling(*pieces: bytes) -> AsyncIterator[str]:
    """A server that sends these and then nothing more."""
    ended = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD + b"".join(pieces))
        await writer.drain()
        await ended.wait()
        writer.close()

    listening = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
    finally:
        ended.set()
        listening.close()


async def cut_off(perform: Callable[[Any], Awaitable[Any]], request: Any) -> Usage:
    """What a call has cost that is cut off when its first bytes have come."""
    request.progress.begin(800)
    working = asyncio.ensure_future(perform(request))
    await until(lambda: request.progress.first_token > 0 or working.done())
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    found: Usage = request.progress.usage(cut_off=True)
    return found


@pytest.mark.parametrize("kind", SAID)
def test_what_a_server_sent_before_the_cut_counts(kind):
    async def story():
        async with stalling(b"data: " + json.dumps(SAID[kind]).encode() + b"\n\n") as url:
            agent = OpenAICompatibleAgent("m", url)
            try:
                return await cut_off(agent.perform, ask())
            finally:
                await agent.close()

    assert asyncio.run(story()) == Usage(unreported_input=100, unreported_output=10)


@pytest.mark.parametrize(
    ("sent", "least"),
    [
        (events(SAID["text"], done=False), Usage(unreported_input=100, unreported_output=10)),
        (response(200, b"{", "Content-Type: application/json"), Usage(unreported_input=100)),
        (response(503, b"busy"), Usage()),
    ],
    ids=["broken off", "not JSON", "no reply"],
)  # fmt: skip
def test_a_useless_reply_costs_what_came(sent, least):
    request = ask()
    request.progress.begin(800)
    with pytest.raises(TryAgain):
        heard(sent, request=request)
    assert request.progress.usage() == least


def test_a_scripted_reply_arrives_after_its_delay(tmp_path):
    (tmp_path / "s.jsonl").write_text(json.dumps({"reply": "x" * 80, "delay": 0.02}))
    request = ask()
    request.progress.begin(800)
    asyncio.run(ScriptedAgent(tmp_path / "s.jsonl").perform(request))
    assert request.progress.first_token >= 0.02
    assert request.progress.usage() == Usage(unreported_input=100, unreported_output=10)


def test_a_local_reply_counts_before_the_cut(model_file):
    from ripstop.models.local import LocalAgent

    found = asyncio.run(cut_off(LocalAgent(model_file).perform, ask("Tell a long story.", max_tokens=500)))
    assert found.unreported_input == 100


@pytest.mark.parametrize("watched", [True, False])
def test_a_reply_of_a_provider_counts(watched):
    pytest.importorskip("pydantic_ai")
    from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart
    from pydantic_ai.models.function import DeltaThinkingPart, FunctionModel

    from ripstop.models.providers import ProviderAgent

    async def stream(messages, info):
        yield {0: DeltaThinkingPart(content="x" * 40)}
        yield "x" * 20
        yield "x" * 20

    def answer(messages, info):
        return ModelResponse(parts=[ThinkingPart("x" * 40), TextPart("x" * 40)])

    live = Live()
    if watched:
        live.watch(lambda _: None)
    request = ask()
    request.progress.begin(800)
    asyncio.run(ProviderAgent(FunctionModel(answer, stream_function=stream), live).perform(request))
    assert request.progress.first_token > 0
    assert request.progress.usage().counted_tokens >= 100 + 10
    assert request.progress._received == 80


class SeenAgents(Agents):
    """Agents that keep the last request."""

    request: Request | None = None

    async def perform(self, request: Request) -> AgentReplied:
        self.request = request
        return await super().perform(request)


@pytest.mark.parametrize("cancel", [True, False], ids=["cut off", "useless"])
def test_the_journal_says_what_a_call_cost_that_led_to_nothing(tmp_path: Path, cancel: bool) -> None:
    async def story() -> Usage:
        first = b"data: " + json.dumps(SAID["text"]).encode() + b"\n\n"
        pieces = (first,) if cancel else (first, b"data: {\n\n")
        async with stalling(*pieces) as url, a_world(tmp_path / "j.db") as world:
            agents = SeenAgents(Live(), no_tools, base_url=url, prices={"openai:m": (0.0, 1_000_000.0)})
            await world.work({AskAgent: agents}, attempts=1)
            await world.start("r", (AskAgent(agent="x", model="openai:m"),))
            if cancel:
                await until(lambda: agents.request is not None and agents.request.progress.first_token > 0)
                await world.engine.cancel("r")
                await world.until("r", lambda view: not view.run.late)
            else:
                await world.until("r", lambda view: view.status == "paused")
            await agents.close()
            (found,) = [one for one in await world.events("r") if isinstance(one, Answered | CallRefused)]
            if isinstance(found, CallRefused):
                return found.usage
            assert isinstance(found.answer, Failed)
            return found.answer.usage

    cost = asyncio.run(story())
    assert (cost.unreported_output, cost.counted_money) == (10, 10.0)
