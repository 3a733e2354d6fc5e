"""Against the real HTTP server of llama.cpp, and against a tiny real one for what that never says."""

import asyncio
import json
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ripstop.engine.live import Live
from ripstop.engine.performers import PromptTooLong, Refused, ToolSpec, TryAgain, Unavailable
from ripstop.kernel.effects import AgentReplied, ToolCall, Usage
from ripstop.kernel.prompt import Message
from ripstop.models.openai_compatible import OpenAICompatibleAgent
from tests.models.asking import ask

READ = ToolSpec("read", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
KEY = "sk-very-secret"


@asynccontextmanager
async def server(*answers, seen=None):
    """Answers one request after the other with the bytes given; `None` hangs, b"" hangs up."""
    left, ended = list(answers), asyncio.Event()

    async def handle(reader, writer):
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            size = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            body = await reader.readexactly(size)
            if seen is not None:
                seen.append((head.decode(), json.loads(body)))
            answer = left.pop(0)
            if answer is None:
                await ended.wait()
            else:
                writer.write(answer)
                await writer.drain()
        finally:
            writer.close()

    listening = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
    finally:
        ended.set()
        listening.close()


def response(status, body, *headers):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = (f"HTTP/1.1 {status} X", f"Content-Length: {len(data)}", "Connection: close", *headers)
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def events(*chunks, done=True):
    data = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + ("data: [DONE]\n\n" if done else "")
    return response(200, data.encode(), "Content-Type: text/event-stream")


def delta(finish=None, **said):
    return {"choices": [{"index": 0, "delta": said, "finish_reason": finish}]}


def heard(*answers, request=None, seen=None, **options):
    async def play():
        async with server(*answers, seen=seen) as url:
            agent = OpenAICompatibleAgent("m", url, **options)
            try:
                return await agent.perform(request or ask())
            finally:
                await agent.close()

    return asyncio.run(play())


# The real server


@pytest.fixture
def real(llama_server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", llama_server.key)

    def perform(request, **options):
        async def play():
            agent = OpenAICompatibleAgent("smollm2", llama_server.url, **options)
            try:
                return await agent.perform(request)
            finally:
                await agent.close()

        return asyncio.run(play())

    return perform


def test_a_real_server_streams_words_and_usage(real):
    live = Live()
    seen: list[Any] = []
    live.watch(seen.append)
    reply = real(ask("Say hello.", max_tokens=8, run="r3", number=9), live=live)
    assert reply.text
    assert reply.usage.output_tokens == 8
    assert reply.usage.input_tokens > 5
    assert "".join(token.text for token in seen) == reply.text
    assert {(token.run_id, token.number) for token in seen} == {("r3", 9)}


def test_a_real_server_keeps_to_a_schema(real):
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    reply = real(ask("Is soup food?", schema=schema, max_tokens=100))
    assert isinstance(json.loads(reply.text)["ok"], bool)


def test_a_real_server_takes_tools_and_their_results(real):
    messages = (
        Message(role="user", text="What is in a.txt?"),
        Message(role="assistant", calls=(ToolCall(id="c1", tool="read", arguments={"path": "a.txt"}),)),
        Message(role="tool", text="soup", call_id="c1"),
    )
    reply = real(ask(messages=messages, tools=("read",), max_tokens=10), tools=lambda names: [READ])
    assert reply.usage.output_tokens > 0


def test_a_real_server_refuses_a_wrong_key_and_none(real, llama_server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with pytest.raises(Refused, match=r"401.*OPENAI_API_KEY is set, but not accepted") as refused:
        real(ask())
    assert KEY not in str(refused.value)
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(Refused, match="OPENAI_API_KEY is not set"):
        real(ask())
    monkeypatch.setenv("OTHER_KEY", llama_server.key)
    assert real(ask(max_tokens=2), key_name="OTHER_KEY").usage.output_tokens == 2


def test_a_real_server_says_that_a_prompt_is_too_long(real):
    with pytest.raises(PromptTooLong, match=r"400.*exceeds the available context size"):
        real(ask("soup " * 3000))


# What goes out


def test_the_request_has_messages_tools_and_limits_but_no_schema_beside_tools(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    seen: list[Any] = []
    heard(
        events(delta("stop", content="x")),
        request=ask("甲", tools=("read",), schema={"type": "object"}, max_tokens=7),
        seen=seen,
        tools=lambda names: [READ],
    )
    head, body = seen[0]
    assert head.startswith("POST /v1/chat/completions ")
    assert f"Bearer {KEY}" in head
    function = {"name": "read", "description": "Read a file.", "parameters": READ.parameters}
    assert body == {
        "model": "m",
        "messages": [{"role": "user", "content": "甲"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [{"type": "function", "function": function}],
        "max_tokens": 7,
    }


# What comes back


def test_tool_calls_are_put_together_from_their_pieces():
    def piece(index, **function):
        return {"index": index, **({"id": f"c{index}"} if "name" in function else {}), "function": function}

    reply = heard(
        events(
            delta(role="assistant", content=None),
            delta(content="I look. "),
            delta(tool_calls=[piece(0, name="read", arguments="")]),
            delta(tool_calls=[piece(0, arguments='{"path": ')]),
            delta(tool_calls=[piece(1, name="list", arguments="{}")]),
            delta(tool_calls=[piece(0, arguments='"a.txt"}')]),
            delta("tool_calls"),
            {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 6}},
        )
    )
    assert reply == AgentReplied(
        text="I look. ",
        calls=(ToolCall(id="c0", tool="read", arguments={"path": "a.txt"}), ToolCall(id="c1", tool="list")),
        usage=Usage(input_tokens=5, output_tokens=6),
    )


def test_a_server_that_does_not_stream_is_understood():
    whole = {"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 1}}
    assert heard(response(200, whole, "Content-Type: application/json")).text == "hi"


@pytest.mark.parametrize("arguments", ["{", "[1]"])
def test_arguments_that_are_not_an_object_are_told_to_the_agent(arguments):
    call = {"index": 0, "id": "c", "function": {"name": "read", "arguments": arguments}}
    (called,) = heard(events(delta("tool_calls", tool_calls=[call]))).calls
    assert called.malformed and not called.arguments


@pytest.mark.parametrize(
    ("headers", "after"),
    [
        (("Retry-After: 7",), 7.0),
        (("Retry-After: 0.5",), 0.5),
        (("Retry-After: Mon, 16 Nov 2026 10:00:30 GMT", "Date: Mon, 16 Nov 2026 10:00:00 GMT"), 30.0),
        (("Retry-After: Mon, 16 Nov 2026 10:00:00 GMT", "Date: Mon, 16 Nov 2026 10:00:30 GMT"), 0.0),
        (("Retry-After: Mon, 16 Nov 2026 10:00:30 GMT",), None),
        (("Retry-After: soon",), None),
        ((), None),
    ],
)
def test_too_many_requests_pauses_the_provider_for_as_long_as_it_says(headers, after):
    with pytest.raises(TryAgain, match="429: slow down") as again:
        heard(response(429, {"error": {"message": "slow down"}}, *headers))
    assert again.value.provider_wide
    assert again.value.after == after


@pytest.mark.parametrize("status", [408, 500, 502, 503, 529])
def test_a_fault_of_the_server_may_pass(status):
    with pytest.raises(TryAgain, match=f"{status}: <h1>oops</h1>") as again:
        heard(response(status, b"<h1>oops</h1>"))
    assert not again.value.provider_wide


@pytest.mark.parametrize(
    ("status", "fault", "advice"),
    [
        (400, "agent", "'m'"),
        (401, "definition", "OPENAI_API_KEY"),
        (403, "definition", "KEY"),
        (404, "definition", "/v1"),
    ],
)
def test_a_refusal_quotes_the_server_but_never_the_key(status, fault, advice, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with pytest.raises(Refused, match="Wrong key … given") as refused:
        heard(response(status, {"error": {"message": f"Wrong key {KEY} given"}}))
    assert refused.value.fault == fault
    assert advice in str(refused.value)
    assert KEY not in str(refused.value)


def test_an_error_in_the_middle_of_a_stream_is_not_a_reply():
    with pytest.raises(TryAgain, match="overloaded"):
        heard(events(delta(content="He"), {"error": {"message": "overloaded", "code": 503}}))
    with pytest.raises(Refused, match="too odd"):
        heard(events({"error": {"message": "too odd", "code": 400}}))


@pytest.mark.parametrize(
    "error",
    [
        {"message": "no money", "code": "insufficient_quota"},
        {"message": "no money", "type": "insufficient_quota", "code": None},
        {"message": "wrong key", "type": "invalid_request_error", "code": "invalid_api_key"},
        {"message": "wrong key", "type": "authentication_error"},
        {"message": "no such model", "code": "404"},
    ],
)
def test_an_error_within_a_reply_that_waiting_does_not_mend_waits_for_a_person(error):
    with pytest.raises(Unavailable, match="answered 200 with an error") as refused:
        heard(response(200, {"error": error}))
    assert "answered 500" not in str(refused.value)


def test_a_rate_limit_within_a_reply_holds_back_all_calls_to_the_provider():
    with pytest.raises(TryAgain, match="slow down") as refused:
        heard(events({"error": {"message": "slow down", "code": "rate_limit_exceeded"}}))
    assert refused.value.provider_wide


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (429, {"code": "insufficient_quota"}),
        (429, {"type": "exceeded_current_quota_error"}),
        (400, {"code": "billing_hard_limit_reached"}),
        (400, {"code": "Arrearage"}),
        (403, {"message": "Insufficient Balance"}),
        (400, {"message": "Your credit balance is too low to use this API."}),
    ],
)
def test_an_account_without_money_is_no_failure_of_the_run_whatever_the_status(status, error):
    with pytest.raises(Unavailable, match="used up what it may spend"):
        heard(response(status, {"error": error}))


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, {"message": "x", "code": "invalid_api_key"}),
        (400, {"message": "API key not valid. Please pass a valid API key.", "status": "INVALID_ARGUMENT"}),
        (422, {"message": "Incorrect API key provided"}),
        (407, {"message": "the proxy wants a password"}),
        (400, {"message": "x", "code": "model_not_found"}),
        (400, {"message": "x", "type": "permission_error"}),
    ],
)
def test_an_error_that_only_a_person_can_mend_waits_for_one_whatever_its_status(status, error):
    with pytest.raises(Unavailable, match=f"answered {status}"):
        heard(response(status, {"error": error}))


@pytest.mark.parametrize("name", ["rate_limit_exceeded", "overloaded_error"])
def test_an_error_that_passes_by_its_name_is_tried_again_whatever_its_status(name):
    with pytest.raises(TryAgain):
        heard(response(400, {"error": {"message": "x", "type": name}}))


@pytest.mark.parametrize("status", [400, 403, 422])
@pytest.mark.parametrize(
    "said",
    [
        "server overloaded, try later",
        "The model is overloaded. Please try again later.",
        "model is loading",
        "Model m is currently loading",
        "Loading model",
        "The service is temporarily unavailable",
    ],
)
def test_a_server_that_says_it_is_busy_is_asked_again_whatever_its_status(status, said):
    with pytest.raises(TryAgain, match=f"answered {status}"):
        heard(response(status, {"error": {"message": said}}))


@pytest.mark.parametrize(
    "said",
    [
        "The model m is not available in your region",
        "temperature must be below 2",
        "Unknown field 'loading'",
        "The model is not loaded",
        "Retry with another model",
    ],
)
def test_an_error_that_will_come_again_is_not_taken_for_a_busy_server(said):
    with pytest.raises(Refused) as refused:
        heard(response(400, {"error": {"message": said}}))
    assert not isinstance(refused.value, Unavailable)


@pytest.mark.parametrize("page", [b"<html><head><title>400", b"\r\n<!DOCTYPE html>\n<html>"])
def test_a_web_page_instead_of_an_error_waits_for_a_person_who_checks_the_address(page):
    with pytest.raises(Unavailable, match="is it http or https"):
        heard(response(400, page, "Content-Type: text/html"))


def test_a_rate_limit_that_speaks_of_a_quota_is_tried_again():
    error = {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "You exceeded your current quota. Retry in 20 s."}
    with pytest.raises(TryAgain):
        heard(response(429, {"error": error}))


@pytest.mark.parametrize("status", [400, 413, 422, 500])
def test_a_prompt_that_is_too_long_is_not_just_refused_and_the_key_is_not_said(status, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    error = {"message": f"maximum context length is 9 tokens, {KEY}", "code": "context_length_exceeded"}
    with pytest.raises(PromptTooLong, match="maximum context length") as refused:
        heard(response(status, {"error": error}))
    assert KEY not in str(refused.value)
    with pytest.raises(PromptTooLong, match="maximum context length"):
        heard(events({"error": error}))


def test_a_stream_that_breaks_off_is_not_a_reply():
    with pytest.raises(TryAgain, match="broke off"):
        heard(events(delta(content="Hel"), done=False))
    with pytest.raises(TryAgain, match="cannot be reached"):
        heard(events(delta(content="Hel"))[:-30])
    with pytest.raises(TryAgain, match="cannot be reached"):
        heard(b"")
    with pytest.raises(TryAgain, match="not a JSON object"):
        heard(response(200, b"data: {\n\n", "Content-Type: text/event-stream"))


def test_silence_is_a_timeout():
    with pytest.raises(TryAgain, match="in time"):
        heard(None, timeout=0.05)


def test_nobody_at_the_address_may_pass_but_no_address_does_not():
    async def play():
        async with server() as url:
            pass
        await OpenAICompatibleAgent("m", url).perform(ask())

    with pytest.raises(TryAgain, match="cannot be reached"):
        asyncio.run(play())
    with pytest.raises(Refused, match="not the address of a server"):
        asyncio.run(OpenAICompatibleAgent("m", "localhost:80").perform(ask()))


def test_a_request_has_left_once_it_is_written_and_not_before():
    async def play():
        left, request = asyncio.Event(), ask()
        request.progress.on_left = left.set

        async def handle(reader, writer):
            await left.wait()  # would wait for ever if the request had left only with its answer
            writer.write(events(delta(content="hello"), delta("stop")))
            writer.close()

        listening = await asyncio.start_server(handle, "127.0.0.1", 0)
        agent = OpenAICompatibleAgent("m", f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1")
        assert (await agent.perform(request)).text == "hello"
        listening.close()
        await agent.close()
        left.clear()
        with pytest.raises(TryAgain):
            await agent.perform(request)
        await agent.close()
        assert not left.is_set(), "there was no connection to write to"

    asyncio.run(play())


# Bounds


def heard_endlessly(head, piece, pause=0.0, timeout=60.0):
    """What comes of a server that sends `piece` again and again, as long as somebody reads."""

    async def play():
        talking: set[Any] = set()

        async def handle(reader, writer):
            talking.add((asyncio.current_task(), writer))
            await reader.readuntil(b"\r\n\r\n")
            writer.write(head)
            while True:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(pause)

        listening = await asyncio.start_server(handle, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
        agent = OpenAICompatibleAgent("m", url, timeout=timeout)
        try:
            return await agent.perform(ask())
        finally:
            await agent.close()
            listening.close()
            for task, writer in talking:
                task.cancel()
                writer.transport.abort()
            await asyncio.gather(*(task for task, _ in talking), return_exceptions=True)
            await asyncio.sleep(0.01)  # so that the transports are closed before their loop is

    return asyncio.run(play())


STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


@pytest.mark.parametrize(
    ("head", "piece", "problem"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n", b" " * 65536, "more than 4 MiB"),
        (STREAM, b"data: " + b"x" * 65536, "more than 4 MiB"),
        (STREAM, b": still here" * 5000 + b"\n", "more than 64 MiB"),
        (STREAM, b'data: {"choices": [{"delta": {"content": "' + b"x" * 65536 + b'"}}]}\n\n', "longer than 2 MiB"),
        (STREAM, b"data: {}\n\n" * 2000, "500,000 pieces"),
        (b"HTTP/1.1 503 No\r\n\r\n", b"x" * 65536, "answered 503: xxx"),
        (b"HTTP/1.1 200 OK\r\n", b"A: b\r\n" * 5000, "cannot be reached"),
    ],
    ids=["body", "line", "comments", "text", "events", "error", "headers"],
)
def test_a_reply_without_end_is_given_up(head, piece, problem):
    with pytest.raises(TryAgain, match=problem) as trouble:
        heard_endlessly(head, piece)
    assert len(str(trouble.value)) < 800


@pytest.mark.parametrize(("head", "piece"), [(STREAM, b":"), (b"", b"HTTP/1.1 102 Wait\r\n\r\n"), (b"H", b"")])
def test_a_call_has_an_end_however_alive_the_server_is(head, piece):
    with pytest.raises(TryAgain, match=r"a call has 0\.3 s|did not answer in time"):
        heard_endlessly(head, piece, pause=0.02, timeout=0.3)


@pytest.mark.parametrize("value", ["inf", "-inf", "nan", "1e300", "-5", "9" * 90, "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_an_absurd_retry_after_is_bounded(value):
    headers = (f"Retry-After: {value}", "Date: Mon, 16 Nov 2026 10:00:00 GMT")
    with pytest.raises(TryAgain) as again:
        heard(response(503, b"later", *headers))
    assert again.value.after is None or 0 <= again.value.after <= 600


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_refused_and_the_key_does_not_follow(status, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    seen: list[Any] = []
    with pytest.raises(Refused, match=r"a redirect to http://127\.0\.0\.2:9/v1") as refused:
        heard(response(status, b"", "Location: http://127.0.0.2:9/v1"), seen=seen)
    assert refused.value.fault == "definition"
    assert len(seen) == 1


def test_compression_is_not_asked_for_and_not_read():
    seen: list[Any] = []
    with pytest.raises(Refused, match=r"compresses its reply \(gzip\)"):
        heard(response(200, b"\x1f\x8b", "Content-Encoding: gzip"), seen=seen)
    assert "accept-encoding: identity" in seen[0][0].lower()
    with pytest.raises(TryAgain, match="compressed with gzip"):
        heard(response(503, b"\x1f\x8b", "Content-Encoding: gzip"))


def test_cookies_are_not_sent_back():
    seen: list[Any] = []

    async def play():
        whole = {"choices": [{"message": {"content": "hi"}}]}
        async with server(*[response(200, whole, "Set-Cookie: a=b; Path=/")] * 2, seen=seen) as url:
            agent = OpenAICompatibleAgent("m", url)
            for _ in range(2):
                await agent.perform(ask())
            await agent.close()

    asyncio.run(play())
    assert "cookie" not in seen[1][0].lower()


def test_a_reply_without_choices_is_tried_again():
    with pytest.raises(TryAgain, match="no `choices`"):
        heard(response(200, {}, "Content-Type: application/json"))
    with pytest.raises(TryAgain, match="no `choices`"):
        heard(events())
    with pytest.raises(TryAgain, match="not a JSON object"):
        heard(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")


@pytest.mark.parametrize("finish", ["error", "ERROR", "abort", "insufficient_system_resource"])
def test_a_reply_that_the_server_gave_up_is_asked_for_again(finish):
    with pytest.raises(TryAgain, match="broke off its reply"):
        heard(events(delta(content='{"content": "ha'), delta(finish)))


def test_half_an_object_of_a_server_that_does_not_say_why_it_ended_is_cut():
    assert heard(events(delta(content='I think: {"content": "ha'))).cut
    for whole in ("words", '{"content": "ha"}', 'I think: {"content": {"a": [1]}} so', "def f() { return 1", "{ x"):
        assert not heard(events(delta(content=whole))).cut, whole
    assert not heard(events(delta("stop", content='{"content": "ha'))).cut


@pytest.mark.parametrize("content", [None, "", " "])
def test_a_reply_that_a_filter_withheld_is_asked_for_again_a_few_times(content):
    withheld = {"choices": [{"message": {"content": content}, "finish_reason": "content_filter"}]}
    answer = response(200, withheld, "Content-Type: application/json")
    with pytest.raises(TryAgain, match="filter withheld the reply") as trouble:
        heard(answer, request=ask(attempt=9))
    assert trouble.value.most == 3, "refusals, not attempts: workers that died have withheld nothing"


def test_a_filter_that_let_words_through_has_withheld_nothing():
    answer = heard(events(delta("content_filter", content="words")))
    assert answer.text == "words"


def test_a_server_that_says_the_key_back_in_garbage_does_not_get_it_recorded(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for garbage in (response(200, KEY.encode()), f"HTTP/1.1 200 OK\r\n{KEY}\r\n\r\n".encode(), KEY.encode() * 9):
        with pytest.raises(TryAgain) as trouble:
            heard(garbage)
        assert KEY not in str(trouble.value)
