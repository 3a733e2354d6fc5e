import asyncio
import sys
import threading
from typing import Any

import httpx2
import pytest

from ripstop.engine.live import Live, Token
from ripstop.engine.performers import PromptTooLong, Refused, ToolSpec, TryAgain, Unavailable
from ripstop.kernel.effects import ToolCall
from ripstop.kernel.prompt import Message
from ripstop.models import providers
from ripstop.models.providers import ProviderAgent
from tests.models.asking import ask

pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed: pip install 'ripstop[providers]'")

from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError, UnexpectedModelBehavior
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.models.test import TestModel as CannedModel

READ = ToolSpec("read", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}})


def perform(model, request, **options):
    return asyncio.run(ProviderAgent(model, **options).perform(request))


def raising(error):
    def answer(messages, info):
        raise error

    return FunctionModel(answer)


def test_words_and_usage_come_back():
    reply = perform(CannedModel(custom_output_text="hello"), ask())
    assert reply.text == "hello"
    assert reply.usage.input_tokens > 0
    assert reply.usage.output_tokens > 0


def test_a_tool_is_offered_and_its_call_comes_back():
    reply = perform(CannedModel(), ask(tools=("read",)), tools=lambda names: [READ])
    (call,) = reply.calls
    assert call.tool == "read"
    assert call.id


def test_the_whole_conversation_goes_out():
    seen = []

    def answer(messages, info):
        seen.append((messages, info))
        return ModelResponse(parts=[TextPart("a"), ToolCallPart("read", '{"path": "b"}', "c2"), TextPart("b")])

    messages = (
        Message(role="system", text="sys"),
        Message(role="user", text="ask"),
        Message(role="assistant", text="look", calls=(ToolCall(id="c1", tool="read", arguments={"path": "a"}),)),
        Message(role="tool", text="soup", call_id="c1"),
        Message(role="user", text="and?"),
    )
    request = ask(messages=messages, tools=("read",), max_tokens=9)
    reply = perform(FunctionModel(answer), request, tools=lambda names: [READ])
    assert reply.calls == (ToolCall(id="c2", tool="read", arguments={"path": "b"}),)
    (first, second, third), info = seen[0]
    assert [(part.part_kind, part.content) for part in first.parts] == [
        ("system-prompt", "sys"),
        ("user-prompt", "ask"),
    ]
    assert [part.part_kind for part in second.parts] == ["text", "tool-call"]
    assert [(part.part_kind, part.content) for part in third.parts] == [
        ("tool-return", "soup"),
        ("user-prompt", "and?"),
    ]
    assert third.parts[0].tool_name == "read"
    assert info.function_tools[0].parameters_json_schema == READ.parameters
    assert info.model_settings == {"max_tokens": 9, "max_retries": 0}


def test_a_schema_goes_out_to_models_that_can_be_held_to_one():
    seen = []

    def answer(messages, info):
        seen.append(info.model_request_parameters)
        return ModelResponse(parts=[TextPart("{}")])

    schema = {"type": "object", "properties": {}}
    perform(FunctionModel(answer, profile={"supports_json_schema_output": True}), ask(schema=schema))
    assert seen[0].output_mode == "native"
    assert seen[0].output_object.json_schema == schema
    perform(FunctionModel(answer, profile={"supports_json_schema_output": False}), ask(schema=schema))
    assert seen[1].output_mode == "text"


def test_errors_are_sorted_by_whether_they_may_pass():
    with pytest.raises(TryAgain) as limited:
        perform(raising(ModelHTTPError(429, "m", "slow", headers={"Retry-After": "3"})), ask())
    assert (limited.value.provider_wide, limited.value.after) == (True, 3.0)
    for passing in (ModelHTTPError(503, "m"), ModelAPIError("m", "no route"), UnexpectedModelBehavior("odd")):
        with pytest.raises(TryAgain):
            perform(raising(passing), ask())
    for status, fault in ((400, "agent"), (401, "definition"), (404, "definition")):
        with pytest.raises(Refused, match="key in the environment") as refused:
            perform(raising(ModelHTTPError(status, "m")), ask())
        assert refused.value.fault == fault
    with pytest.raises(TryAgain):
        perform(raising(ModelHTTPError(400, "m", {"message": "The model is overloaded."})), ask())
    with pytest.raises(PromptTooLong):
        perform(raising(ModelHTTPError(400, "m", {"message": "prompt is too long: 9 tokens > 8 maximum"})), ask())


def test_a_used_up_quota_of_any_provider_waits_for_a_person():
    for status, body in ((429, {"error": {"code": "insufficient_quota"}}), (402, None)):
        with pytest.raises(Unavailable, match="used up what it may spend"):
            perform(raising(ModelHTTPError(status, "m", body)), ask())


def test_a_key_that_a_provider_does_not_accept_waits_for_a_person_whatever_the_status():
    with pytest.raises(Unavailable):
        perform(raising(ModelHTTPError(400, "m", {"error": {"message": "API key not valid."}})), ask())


def test_bad_arguments_are_told_to_the_agent():
    model = FunctionModel(lambda messages, info: ModelResponse(parts=[ToolCallPart("read", "{", "c")]))
    (called,) = perform(model, ask(tools=("read",)), tools=lambda names: [READ]).calls
    assert "not JSON" in called.malformed


def test_a_reply_that_reached_its_limit_of_length_is_cut():
    model = FunctionModel(lambda messages, info: ModelResponse(parts=[TextPart("half")], finish_reason="length"))
    assert perform(model, ask()).cut


def test_an_unknown_provider_and_a_missing_library_are_named(monkeypatch):
    with pytest.raises(Refused, match="nosuch:model"):
        perform("nosuch:model", ask())
    monkeypatch.setitem(sys.modules, "pydantic_ai.models", None)
    with pytest.raises(Refused, match=r"pip install 'ripstop\[anthropic\]'") as refused:
        perform("anthropic:some-model", ask())
    assert refused.value.fault == "definition"


def watched(model, request, **options):
    """The reply, and what somebody who watched has seen of it."""
    live = Live()
    seen: list[Any] = []
    live.watch(seen.append)
    return perform(model, request, live=live, **options), seen


def test_words_are_shown_as_they_come():
    reply, seen = watched(CannedModel(custom_output_text="the sea at night"), ask(number=7, run="r"))
    assert reply.text == "the sea at night"
    assert reply.usage.output_tokens > 0
    assert len(seen) > 1
    assert all(isinstance(token, Token) and (token.run_id, token.number) == ("r", 7) for token in seen)
    assert "".join(token.text for token in seen) == reply.text


def test_a_streamed_tool_call_comes_back_whole_and_is_not_shown():
    async def stream(messages, info):
        yield "I look. "
        yield {1: DeltaToolCall(name="read", json_args='{"pa', tool_call_id="c1")}
        yield {1: DeltaToolCall(json_args='th": "a"}')}

    reply, seen = watched(FunctionModel(stream_function=stream), ask(tools=("read",)), tools=lambda names: [READ])
    assert reply.calls == (ToolCall(id="c1", tool="read", arguments={"path": "a"}),)
    assert [token.text for token in seen] == ["I look. "]


@pytest.mark.parametrize("trouble", [ModelHTTPError(503, "m"), httpx2.ReadError("gone")])
def test_a_stream_that_breaks_may_be_tried_again(trouble):
    async def stream(messages, info):
        yield "half a "
        raise trouble

    with pytest.raises(TryAgain):
        watched(FunctionModel(stream_function=stream), ask())


def test_a_model_that_cannot_stream_is_asked_all_at_once():
    class Plain(FunctionModel):
        request_stream = Model.request_stream

    model = Plain(lambda messages, info: ModelResponse(parts=[TextPart("all at once")]))
    reply, seen = watched(model, ask())
    assert (reply.text, seen) == ("all at once", [])


def test_nobody_watches_so_nothing_is_streamed():
    model = FunctionModel(lambda messages, info: ModelResponse(parts=[TextPart("quietly")]))
    assert perform(model, ask(), live=Live()).text == "quietly"


def test_a_deadline_is_held_while_a_library_is_imported(monkeypatch):
    go_on, imports = threading.Event(), []

    def slow(spec):
        imports.append(spec)
        go_on.wait(60)
        return CannedModel(custom_output_text="hello")

    async def ask_twice():
        agent = ProviderAgent("slow:x")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await agent.perform(ask())
        go_on.set()
        return await agent.perform(ask())

    monkeypatch.setattr(providers, "model_of", slow)
    assert asyncio.run(ask_twice()).text == "hello"
    assert imports == ["slow:x"]


def test_a_library_that_was_missing_is_looked_for_again(monkeypatch):
    found = [Refused("not installed"), CannedModel(custom_output_text="hello")]

    def model_of(spec):
        one = found.pop(0)
        if isinstance(one, Refused):
            raise one
        return one

    async def ask_twice():
        agent = ProviderAgent("some:x")
        with pytest.raises(Refused):
            await agent.perform(ask())
        return await agent.perform(ask())

    monkeypatch.setattr(providers, "model_of", model_of)
    assert asyncio.run(ask_twice()).text == "hello"
