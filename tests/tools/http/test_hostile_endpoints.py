"""Endpoints that misbehave: every call ends within its bounds, and says what is known about its effect."""

import asyncio
import json
import zlib
from typing import Any

import pytest

from ripstop.engine.performers import InDoubt, Refused, TryAgain
from tests.tools.http.endpoint_server import (
    Answers,
    EndpointServer,
    Seen,
    answering,
    by_path,
    called,
    endpoints,
    head,
    redirecting,
    serving,
)

MEBIBYTE = 2**20


def ask(
    answer: Answers, effect: str = "pure", path: str = "/x", timeout: float = 5.0, **call: Any
) -> tuple[Any, EndpointServer]:
    """What a call to such a server returns or raises, and the server."""

    async def story() -> tuple[Any, EndpointServer]:
        async with serving(answer) as server:
            performer = endpoints(server.origin)
            method = "GET" if effect == "pure" else "POST"
            try:
                return await called(
                    performer, f"{server.origin}{path}", effect, timeout=timeout, **{"method": method, **call}
                ), server
            except (Refused, TryAgain, InDoubt) as error:
                return error, server

    return asyncio.run(story())


def raw(*pieces: bytes) -> Answers:
    return lambda seen: seen.send(*pieces)


def endless(piece: bytes, begin: bytes = b"", pause: float = 0.0) -> Answers:
    async def answer(seen: Seen) -> None:
        await seen.send(begin)
        await seen.forever(piece, pause)

    return answer


def bomb() -> bytes:
    """About a megabyte that is a gigabyte when it is decompressed."""
    squeezing = zlib.compressobj(9, zlib.DEFLATED, 31)
    start = squeezing.compress(b"") + squeezing.flush(zlib.Z_FULL_FLUSH)
    block = squeezing.compress(b" " * MEBIBYTE) + squeezing.flush(zlib.Z_FULL_FLUSH)
    return start + block * 1024


def test_of_an_endless_body_a_mebibyte_is_read_and_the_beginning_given_on() -> None:
    value, server = ask(endless(b"word " * 10_000, head(kind="text/plain")))
    assert value["status"] == 200 and value["body"].startswith("word word ")
    assert value["body"].endswith("(cut here: the answer has more than a mebibyte)")
    assert len(value["body"]) < 20_100
    assert server.sent < 32 * MEBIBYTE, "what the sockets hold, and no more"


@pytest.mark.parametrize("effect", ["pure", "unsafe"])
def test_a_compressed_answer_is_not_decompressed(effect: str) -> None:
    answer = raw(head("200 OK", "application/json", "Content-Encoding: gzip", "Connection: close"), bomb())
    value, _ = ask(answer, effect)
    if effect == "pure":
        assert isinstance(value, Refused) and "compresses its answer (gzip)" in str(value)
    else:
        assert value["status"] == 200 and "took effect" in value["body"]


LONG_HEADERS = b"".join(b"X-%d: %s\r\n" % (n, b"y" * 50) for n in range(10_000))
BREAKS: dict[str, Answers] = {
    "says nothing": raw(),
    "breaks off in the status": raw(b"HTTP/1.1 2"),
    "is not http": raw(b"\x16\x03\x01\x00\xff" * 50),
    "speaks another protocol": raw(b"220 mail.example ESMTP\r\n\r\n"),
    "headers without end": endless(b"X-A: b\r\n" * 1000, b"HTTP/1.1 200 OK\r\n"),
    "a header without end": endless(b"x" * 65_536, b"HTTP/1.1 200 OK\r\nX-A: "),
    "ten thousand long headers": raw(b"HTTP/1.1 200 OK\r\n", LONG_HEADERS, b"\r\n"),
    "two lengths": raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
    "a negative length": raw(b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nabcde"),
    "a header with a line feed": raw(b"HTTP/1.1 200 OK\r\nX: a\x00b\r\n\r\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", BREAKS)
@pytest.mark.parametrize(("effect", "kind"), [("pure", TryAgain), ("keyed", InDoubt), ("unsafe", InDoubt)])
def test_what_breaks_after_the_request_left_is_in_doubt_unless_it_can_be_repeated(
    name: str, effect: str, kind: type[Exception]
) -> None:
    value, server = ask(BREAKS[name], effect)
    assert isinstance(value, kind), value
    assert str(value).startswith("lookup: ")
    assert server.sent < 16 * MEBIBYTE


SLOW: dict[str, Answers] = {
    "silent": endless(b"", pause=0.02),
    "slow headers": endless(b"X", b"HTTP/1.1 200 OK\r\n", 0.01),
    "a flood of interim answers": endless(b"HTTP/1.1 102 P\r\n\r\n" * 100, pause=0.001),
}


@pytest.mark.parametrize("name", SLOW)
@pytest.mark.parametrize(("effect", "kind"), [("pure", TryAgain), ("unsafe", InDoubt)])
def test_the_time_limit_is_for_the_whole_call(name: str, effect: str, kind: type[Exception]) -> None:
    value, _ = ask(SLOW[name], effect, timeout=0.15)
    assert isinstance(value, kind) and "within its time limit of 0.15 s" in str(value), value


def test_a_body_that_drips_is_given_up_and_a_call_that_was_done_says_so() -> None:
    dripping = endless(b".", head(kind="text/plain"), 0.01)
    assert isinstance(ask(dripping, timeout=0.15)[0], TryAgain)
    value, _ = ask(dripping, "unsafe", timeout=0.15)
    assert value["status"] == 200 and "took effect" in value["body"] and "0.15 s" in value["body"]


def test_a_body_that_is_shorter_than_its_length_is_not_a_result() -> None:
    short = raw(head("200 OK", "application/json", "Content-Length: 1000"), b'{"a": 1}')
    assert isinstance(ask(short)[0], TryAgain)
    value, _ = ask(short, "unsafe")
    assert value["status"] == 200 and "took effect" in value["body"]


def test_a_body_that_is_longer_than_its_length_ends_there() -> None:
    value, _ = ask(raw(head("200 OK", "application/json", "Content-Length: 8"), b'{"a": 1}{"b": 2}'))
    assert value == {"status": 200, "body": {"a": 1}}


def test_ten_thousand_short_headers_do_no_harm() -> None:
    flood = b"HTTP/1.1 200 OK\r\n" + b"a:\r\n" * 10_000 + b"Content-Length: 2\r\n\r\nok"
    value, _ = ask(raw(flood))
    assert value == {"status": 200, "body": "ok"}


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": ', b"{'a': 1}", b"[1, 2", b"NaN", b"", b"nonsense", b"\xff\xfe\x00", b'{"a": 1} trailing',
        b"[" * 100_000 + b"]" * 100_000, b'{"a":' * 5_000 + b"1" + b"}" * 5_000, b"[" * 101 + b"]" * 101,
        b"1" * 5_000, b'"\\ud800"',
    ],
)  # fmt: skip
def test_what_is_not_usable_json_is_given_on_as_text(body: bytes) -> None:
    value, _ = ask(answering(body))
    assert value["status"] == 200 and isinstance(value["body"], str)
    assert len(value["body"]) <= 20_100
    json.dumps(value).encode()


def test_a_redirect_loop_ends_after_three_hops() -> None:
    value, server = ask(redirecting(302, "/x"))
    assert isinstance(value, Refused) and "more than 3 times" in str(value)
    assert server.connections == 4


@pytest.mark.parametrize("effect", ["pure", "unsafe"])
def test_a_redirect_to_a_private_address_is_not_followed(effect: str) -> None:
    value, server = ask(redirecting(307, "http://169.254.169.254/latest/meta-data/"), effect)
    assert isinstance(value, Refused) and "169.254.169.254" in str(value), "307: surely not done"
    assert server.connections == 1
    value, _ = ask(redirecting(303, "http://169.254.169.254/latest/meta-data/"), effect)
    assert isinstance(value, Refused if effect == "pure" else InDoubt), "303: the first request may have been done"


@pytest.mark.parametrize("location", ["http://[", "http://a b/", "javascript:alert(1)", "\x7f", "//", "http://x:0/"])
def test_a_redirect_to_nowhere_is_refused(location: str) -> None:
    value, _ = ask(redirecting(302, location))
    assert isinstance(value, Refused), value


def test_an_error_text_without_end_does_not_hold_up_its_status() -> None:
    value, server = ask(endless(b"x" * 65_536, head("400 X", "text/plain")), "unsafe")
    assert isinstance(value, Refused) and "answered 400: xxxx" in str(value) and len(str(value)) < 700
    assert server.sent < 16 * MEBIBYTE


def test_cookies_are_not_kept() -> None:
    async def show(seen: Seen) -> None:
        await answering(json.dumps({"cookie": seen.headers.get("cookie", "")}).encode())(seen)

    first = answering(b"", "302 X", "Location: /show", "Set-Cookie: session=1; Path=/")
    assert ask(by_path(x=first, show=show))[0]["body"] == {"cookie": ""}
