"""Bytes on a socket, against the real server: what is ambiguous, endless or late is refused or cut."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripstop.faces.http import connection
from ripstop.faces.http import door as body
from ripstop.faces.http import server as server_module
from ripstop.faces.http.asgi import Receive, Scope, Send
from ripstop.faces.http.door import AllowedHosts, Door, DoorBounds, TokenAdmission
from ripstop.faces.http.server import bind, serving
from ripstop.kernel.errors import UsageError
from tests.faces.http.requests_to import TOKEN, Inside

BOUND = 10.0
"""Seconds that anything here may take: what hangs fails."""
POST = b"POST / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nAUTH\r\n"
Server = tuple[asyncio.Runner, int, Inside]


@asynccontextmanager
async def served(inside: Inside, **bounds: float) -> AsyncIterator[int]:
    listener = bind("127.0.0.1", 0)
    port = listener.getsockname()[1]
    door = Door(inside, AllowedHosts(port), TokenAdmission(TOKEN), DoorBounds(**bounds))  # type: ignore[arg-type]
    async with asyncio.timeout(BOUND), serving(door, listener):
        yield port


async def exchange(port: int, data: bytes) -> bytes:
    """All that the server says to these bytes, until it closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


def raw(port: int, *lines: bytes, target: bytes = b"/", method: bytes = b"GET", body: bytes = b"") -> bytes:
    """A good request with further lines in its head."""
    head = [
        method + b" " + target + b" HTTP/1.1",
        b"Host: 127.0.0.1:%d" % port,
        b"Authorization: Bearer " + TOKEN.encode(),
        b"Connection: close",
        *lines,
    ]
    return b"\r\n".join(head) + b"\r\n\r\n" + body


def statuses(answer: bytes) -> list[int]:
    return [int(part.split(b" ", 1)[0]) for part in answer.split(b"HTTP/1.1 ")[1:]]


def run(talk: Callable[[int, Inside], Awaitable[None]], **bounds: float) -> None:
    async def main() -> None:
        inside = Inside()
        async with served(inside, **bounds) as port:
            await talk(port, inside)

    asyncio.run(main())


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    inside = Inside()
    listener = bind("127.0.0.1", 0)
    port = listener.getsockname()[1]
    server = serving(Door(inside, AllowedHosts(port), TokenAdmission(TOKEN)), listener)
    with asyncio.Runner() as runner:
        runner.run(server.__aenter__())
        yield runner, port, inside
        runner.run(server.__aexit__(None, None, None))


def test_a_good_request_passes_and_the_server_does_not_say_what_it_is() -> None:
    async def talk(port: int, inside: Inside) -> None:
        answer = await exchange(port, raw(port, b"Content-Length: 2", method=b"POST", body=b"hi"))
        assert statuses(answer) == [200] and answer.endswith(b"http:hi")
        assert b"server:" not in answer.lower() and b"x-content-type-options: nosniff" in answer

    run(talk)


NOBODY = b"POST / HTTP/1.1\r\nHost: evil.example\r\n"


@pytest.mark.parametrize(
    "head",
    [
        NOBODY + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        NOBODY + b"Transfer-Encoding: gzip\r\n",
        NOBODY + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        NOBODY.replace(b"1.1", b"1.0") + b"Transfer-Encoding: chunked\r\nConnection: keep-alive\r\n",
    ],
)
def test_nothing_follows_a_body_of_two_lengths_whoever_sends_it(server: Server, head: bytes) -> None:
    runner, port, _ = server
    follows = (b"GET / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nAUTH\r\n\r\n").replace(b"PORT", b"%d" % port)
    follows = follows.replace(b"AUTH", f"Authorization: Bearer {TOKEN}".encode())
    answer = runner.run(exchange(port, head + b"\r\n0\r\n\r\n" + follows))
    assert answer.startswith(b"HTTP/1.1 400 ") and answer.count(b"HTTP/1.1 ") == 1
    assert b"connection: close" in answer.lower()


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nHost: evil.example\r\nAUTH\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nHost: 127.0.0.1:PORT\r\nAUTH\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nAUTH\r\n\r\n", 400),
        (b"GET / HTTP/1.0\r\nAUTH\r\n\r\n", 421),
        (b"GET http://127.0.0.1:PORT/ HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nAUTH\r\n\r\n", 400),
        (b"GET http://evil.example/ HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nAUTH\r\n\r\n", 400),
        (b"OPTIONS * HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nAUTH\r\n\r\n", 400),
        (b"CONNECT evil.example:443 HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nAUTH\r\n\r\n", 400),
        (POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi", 400),
        (POST + b"Content-Length: 2, 3\r\n\r\nhi", 400),
        (POST + b"Content-Length: +2\r\n\r\nhi", 400),
        (POST + b"Content-Length : 2\r\n\r\nhi", 400),
        (POST + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (POST + b"Transfer-Encoding: gzip\r\n\r\n", 400),
        (POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n Folded: x\r\nAUTH\r\n\r\n", 421),
        (b"GET / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nX: a\x00b\r\nAUTH\r\n\r\n", 400),
        (b"GET /a b HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nAUTH\r\n\r\n", 400),
        (b"GET / HTTP/9.9\r\nHost: 127.0.0.1:PORT\r\nAUTH\r\n\r\n", 400),
        (b"PRI * HTTP/2.0\r\nAUTH\r\n\r\n", 421),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 40 + b"\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nAUTH\r\nX: " + b"a" * 20_000 + b"\r\n\r\n", 431),
        (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nAUTH\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nAUTH\r\nX: " + b"a" * 20_000, 400),
        (b"GET / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nAUTH\r\n" + b"X: y\r\n" * 100 + b"\r\n", 431),
    ],
)
def test_refuses_what_two_readers_could_read_in_two_ways(server: Server, data: bytes, status: int) -> None:
    runner, port, inside = server
    inside.seen.clear()
    auth = b"Authorization: Bearer " + TOKEN.encode() + b"\r\nConnection: close"
    answer = runner.run(exchange(port, data.replace(b"PORT", b"%d" % port).replace(b"AUTH", auth)))
    assert statuses(answer)[:1] == [status], answer
    assert not inside.seen
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"application/json" in head and json.loads(body)["error"]


def test_the_same_length_twice_is_one_length_to_all() -> None:
    async def talk(port: int, inside: Inside) -> None:
        twice = (b"Content-Length: 2", b"Content-Length: 2")
        answer = await exchange(port, raw(port, *twice, method=b"POST", body=b"hiGET /x HTTP/1.1\r\n\r\n"))
        assert statuses(answer) in ([200], [400]) and len(inside.seen) <= 1

    run(talk)


def test_a_request_inside_a_body_is_not_a_request() -> None:
    async def talk(port: int, inside: Inside) -> None:
        hidden = b"POST /hidden HTTP/1.1\r\nHost: x\r\n\r\n"
        chunk = b"%x\r\n%s\r\n0\r\n\r\n" % (len(hidden), hidden)
        answer = await exchange(port, raw(port, b"Transfer-Encoding: chunked", method=b"POST", body=chunk))
        assert statuses(answer) == [200] and answer.count(hidden) == 1
        assert [one["path"] for one in inside.seen] == ["/"]

    run(talk)


def test_a_large_body_is_refused_and_the_client_still_reads_why() -> None:
    async def talk(port: int, inside: Inside) -> None:
        body = b"x" * (3 << 20)
        answer = await exchange(port, raw(port, b"Content-Length: %d" % len(body), method=b"POST", body=body))
        assert statuses(answer) == [413]
        chunk = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        answer = await exchange(port, raw(port, b"Transfer-Encoding: chunked", method=b"POST", body=chunk))
        assert statuses(answer) == [413] and not inside.seen

    run(talk)


async def _flood(port: int, data: bytes, piece: bytes) -> int:
    """Send without end, as slowly as the server reads; how many bytes until it cuts the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    sent = 0
    try:
        writer.write(data)
        while True:
            writer.write(piece)
            await writer.drain()
            sent += len(piece)
    except ConnectionError:
        return sent
    finally:
        writer.close()
        reader.feed_eof()


def test_a_body_without_end_is_cut_even_without_a_token() -> None:
    async def talk(port: int, inside: Inside) -> None:
        head = b"POST / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: 99999999999\r\n\r\n" % port
        assert await _flood(port, head, b"x" * 65_536) < 40 << 20
        assert not inside.seen

    run(talk)


def test_a_head_that_is_never_complete_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.2)
    monkeypatch.setattr(server_module, "IDLE_SECONDS", 1)
    monkeypatch.setattr(body, "UNWANTED_SECONDS", 0.1)

    async def talk(port: int, inside: Inside) -> None:
        silent = exchange(port, b"")
        part = exchange(port, b"GET / HTTP/1.1\r\nHost: x\r\nX: ")
        dripping = _drip(port, b"GET / HTTP/1.1\r\nX: ", b"a")
        answers = await asyncio.gather(silent, part, dripping, _second(port))
        assert not any(answers[:3]) and statuses(answers[3]) == [200]
        unfinished = b"POST / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: 50\r\n\r\nabc" % port
        assert statuses(await exchange(port, unfinished)) == [401], "answered, and then not waited for"

    run(talk)


async def _second(port: int) -> bytes:
    """The answer to a request, after which the next one stays unfinished."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(raw(port).replace(b"Connection: close\r\n", b""))
    answer = await reader.readuntil(b"http:")
    writer.write(b"GET / HT")
    answer += await reader.read()
    writer.close()
    return answer


async def _drip(port: int, data: bytes, drop: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        while not reader.at_eof():
            writer.write(drop)
            await writer.drain()
            await asyncio.sleep(0.01)
    except ConnectionError:
        pass
    finally:
        writer.close()
    return b""


def test_a_body_that_drips_is_refused_in_time() -> None:
    async def talk(port: int, inside: Inside) -> None:
        answer = await exchange(port, raw(port, b"Content-Length: 50", method=b"POST", body=b"abc"))
        assert statuses(answer) == [408] and not inside.seen

    run(talk, body_seconds=0.2)


class _Endless(Inside):
    """Answers without end, and notes when its client is gone."""

    def __init__(self) -> None:
        super().__init__()
        self.gone = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        listening = asyncio.ensure_future(receive())
        while not listening.done():
            await send({"type": "http.response.body", "body": b"x" * 65_536, "more_body": True})
            await asyncio.sleep(0)
        self.gone.set()


def test_a_client_that_does_not_read_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "UNREAD_SECONDS", 0.2)

    async def main() -> None:
        inside = _Endless()
        async with served(inside) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
            writer.write(raw(port))
            await inside.gone.wait()
            writer.close()
            assert reader

    asyncio.run(main())


def test_there_is_a_bound_on_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MOST_CONNECTIONS", 5)

    async def talk(port: int, inside: Inside) -> None:
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(5)]
        assert await exchange(port, raw(port)) == b""
        for _, writer in held:
            writer.close()
            await writer.wait_closed()
        async with asyncio.timeout(25):
            while statuses(await exchange(port, raw(port))) != [200]:  # until the server has seen that they are closed
                pass

    run(talk)


def test_pipelined_requests_are_checked_one_by_one() -> None:
    async def talk(port: int, inside: Inside) -> None:
        good = raw(port).replace(b"Connection: close\r\n", b"")
        bad = raw(port).replace(TOKEN.encode(), b"guess")
        assert statuses(await exchange(port, good + bad)) == [200, 401]
        assert len(inside.seen) == 1

    run(talk)


def test_upgrades_and_expectations_change_nothing() -> None:
    async def talk(port: int, inside: Inside) -> None:
        upgrade = (b"Upgrade: websocket", b"Sec-WebSocket-Key: x", b"Sec-WebSocket-Version: 13")
        data = raw(port, *upgrade).replace(b"Connection: close", b"Connection: Upgrade, close")
        assert statuses(await exchange(port, data)) == [200]
        waits = raw(port, b"Content-Length: 9999999", b"Expect: 100-continue", method=b"POST")
        assert statuses(await exchange(port, waits)) == [413]

    run(talk)


PARTS = st.sampled_from(
    [
        b"GET / HTTP/1.1\r\n", b"POST /x HTTP/1.1\r\n", b"Host: HERE\r\n", b"Content-Length: 5\r\n", b"\r\n", b"\n",
        b"Transfer-Encoding: chunked\r\n", b"5\r\nhello\r\n", b"0\r\n\r\n", b"\x00", b": \r\n", b"hello",
        b"Authorization: Bearer guess\r\n", b" ", b"\xff\xfe", b"Connection: keep-alive\r\n", b"HTTP/1.1 200\r\n",
    ]
)  # fmt: skip


@settings(max_examples=120)
@given(st.lists(PARTS, max_size=12))
def test_no_bytes_without_token_get_in_or_break_the_server(server: Server, parts: list[bytes]) -> None:
    runner, port, inside = server
    inside.seen.clear()
    data = b"".join(parts).replace(b"HERE", b"127.0.0.1:%d" % port) + b"\r\n\r\n"

    async def talk() -> list[int]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(data)
        writer.write_eof()
        async with asyncio.timeout(BOUND):
            try:
                found = statuses(await reader.read())
            except ConnectionError:
                found = []
            assert statuses(await exchange(port, raw(port))) == [200]
        writer.close()
        return found

    found = runner.run(talk())
    assert {*found} <= {400, 401, 421, 429} and len(inside.seen) == 1


def test_a_port_that_is_taken_is_said_so() -> None:
    first = bind("127.0.0.1", 0)
    first.listen()
    try:
        with pytest.raises(UsageError, match="Another process listens there"):
            bind("127.0.0.1", first.getsockname()[1])
        with pytest.raises(UsageError, match="not an address of this machine"):
            bind("no such host", 0)
        with pytest.raises(UsageError, match="Cannot listen on"):
            bind("192.0.2.1", 0)
    finally:
        first.close()


def test_of_two_servers_that_start_at_one_address_the_second_says_that_it_is_taken() -> None:
    async def story() -> None:
        first = bind("127.0.0.1", 0)
        second = bind("127.0.0.1", first.getsockname()[1])
        with second:
            async with serving(Inside(), first):
                with pytest.raises(UsageError, match="Another process listens there"):
                    async with serving(Inside(), second):
                        raise AssertionError("two servers listen at one address")

    asyncio.run(story())
