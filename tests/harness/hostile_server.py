"""A model server on loopback that misbehaves in a chosen way: real sockets, raw bytes.

The mode is the first part of the path, so one server plays all of them at once: `http://127.0.0.1:PORT/MODE/v1`.
`MODES` says for each mode how `ripstop run` must end: 0 where the reply can be understood, 1 where the run fails with
a clear message, 3 where a limit ends it.
"""

import asyncio
import json
import struct
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

Play = Callable[["Request"], Awaitable[None]]

GOOD = json.dumps({"content": "hello", "decisions": {"done": True}})
USAGE = {"prompt_tokens": 40, "completion_tokens": 12}
MEBIBYTE = 2**20


class Request:
    """A request that was read, and the connection to answer on."""

    def __init__(self, writer: asyncio.StreamWriter, head: str, port: int) -> None:
        self.writer = writer
        self.head = head
        self.port = port

    @property
    def key(self) -> str:
        return self.head.partition("Bearer ")[2].split("\r\n")[0]

    async def send(self, *pieces: bytes, pause: float = 0.0) -> None:
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()
            if pause:
                await asyncio.sleep(pause)

    async def forever(self, piece: bytes, pause: float = 0.0) -> None:
        while True:
            await self.send(piece)
            await asyncio.sleep(pause)


MODES: dict[str, tuple[int, Play]] = {}


def mode(exit_code: int) -> Callable[[Play], Play]:
    def register(play: Play) -> Play:
        MODES[play.__name__] = (exit_code, play)
        return play

    return register


def head(status: str = "200 OK", kind: str = "application/json", *more: str) -> bytes:
    return (
        "\r\n".join([f"HTTP/1.1 {status}", f"Content-Type: {kind}", "Connection: close", *more]).encode() + b"\r\n\r\n"
    )


STREAM = head(kind="text/event-stream")


def event(chunk: Any, end: bytes = b"\n\n") -> bytes:
    return b"data: " + (chunk if isinstance(chunk, bytes) else json.dumps(chunk).encode()) + end


DONE = b"data: [DONE]\n\n"


def delta(content: Any = None, finish: Any = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": content, **more}, "finish_reason": finish}]}


def usage(**tokens: Any) -> dict[str, Any]:
    return {"choices": [], "usage": tokens}


def streamed(*chunks: Any) -> Play:
    async def play(request: Request) -> None:
        await request.send(STREAM, *(event(chunk) for chunk in chunks), DONE)

    return play


def whole(body: Any, *headers: str, status: str = "200 OK") -> Play:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()

    async def play(request: Request) -> None:
        await request.send(head(status, "application/json", *headers), data)

    return play


def add(name: str, exit_code: int, play: Play) -> None:
    MODES[name] = (exit_code, play)


def call(**fields: Any) -> dict[str, Any]:
    function = {name: fields.pop(name) for name in ("name", "arguments") if name in fields}
    return {"index": 0, "function": {"name": "write_file", "arguments": "{}", **function}, **fields}


# What is said well, in every shape that real servers use

add("good_stream", 0, streamed(delta("", role="assistant"), delta(GOOD), delta(finish="stop"), usage(**USAGE)))
add("good_body", 0, whole({"choices": [{"message": {"content": GOOD}, "finish_reason": "stop"}], "usage": USAGE}))
add("content_in_parts", 0, streamed(delta([{"type": "text", "text": GOOD}], "stop"), usage(**USAGE)))
add("content_as_object", 0, streamed(delta(json.loads(GOOD), "stop"), usage(**USAGE)))
add("choices_as_object", 0, whole({"choices": {"message": {"content": GOOD}}, "usage": USAGE}))
add("delta_as_list", 0, streamed({"choices": [{"delta": [{"content": GOOD}], "finish_reason": "stop"}]}))
add("finish_as_number", 0, streamed(delta(GOOD, 1), usage(**USAGE)))
add("role_changes", 0, streamed(delta("", role="user"), delta(GOOD, role=["x"]), delta(finish="stop", role=7)))
add("reasoning_field", 0, streamed(delta(reasoning_content="hm " * 50), delta(GOOD, "stop"), usage(**USAGE)))
add("many_choices", 0, whole({"choices": [{"index": i, "message": {"content": GOOD}} for i in range(500)]}))
add("lone_surrogate", 0, streamed(delta("\ud800"), delta(GOOD, "stop")))
add("usage_as_float", 0, streamed(delta(GOOD, "stop"), usage(prompt_tokens=1.5, completion_tokens=1e3)))
add("usage_as_text", 0, streamed(delta(GOOD, "stop"), usage(prompt_tokens="9", completion_tokens="many")))
add("usage_as_bool", 0, streamed(delta(GOOD, "stop"), usage(prompt_tokens=True, completion_tokens=False)))
add("usage_huge", 0, streamed(delta(GOOD, "stop"), usage(prompt_tokens=2**70, completion_tokens=10**300)))
add("usage_of_wrong_type", 0, streamed(delta(GOOD, "stop"), {"choices": [], "usage": [1, {}]}))
add("usage_missing", 0, streamed(delta(GOOD, "stop")))
add("no_done", 0, lambda request: request.send(STREAM, event(delta(GOOD)), event(delta(finish="stop"))))
add("with_bom", 0, lambda r: r.send(STREAM, b"\xef\xbb\xbf", event(delta(GOOD, "stop")), DONE))
add("crlf", 0, lambda r: r.send(STREAM, event(delta(GOOD, "stop"), b"\r\n\r\n"), b"data: [DONE]\r\n\r\n"))
add("cr_only", 0, lambda r: r.send(STREAM, event(delta(GOOD, "stop"), b"\r\r"), b"data: [DONE]\r\r"))
add("comments_and_ids", 0, lambda r: r.send(STREAM, b": hi\nid: 1\nretry: x\n", event(delta(GOOD, "stop")), DONE))
add("byte_by_byte", 0, lambda r: r.send(STREAM, *(bytes([b]) for b in event(delta(GOOD, "stop")) + DONE)))
add("some_1xx_first", 0, lambda r: r.send(b"HTTP/1.1 102 P\r\n\r\n" * 20, STREAM, event(delta(GOOD, "stop")), DONE))
add("id_as_number", 3, streamed(delta(GOOD, "stop", tool_calls=[call(id=7, arguments={"path": "a", "content": "x"})])))

# Wrong types

for name, chunk in {
    "name_as_object": delta(tool_calls=[call(name={})]),
    "id_as_object": delta(tool_calls=[call(id={})]),
    "index_as_object": delta(tool_calls=[call(index={})]),
    "content_as_number": delta(7),
    "choices_as_text": {"choices": "none"},
    "chunk_as_list": [1, 2],
    "arguments_not_json": delta(tool_calls=[call(arguments="{path:")]),
    "arguments_too_deep": delta(tool_calls=[call(arguments='{"a":' * 5000 + "1" + "}" * 5000)]),
    "call_flood": delta(tool_calls=[call(index=i) for i in range(20_000)]),
    "deep_chunk": b'{"choices": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    "not_a_number": b'{"choices": [{"delta": {"content": NaN}}]}',
    "invalid_json": b'{"choices": [',
    "error_in_stream": {"error": {"message": "overloaded", "code": 503}},
    "odd_error_in_stream": {"error": [[["x"]]]},
}.items():
    # arguments that cannot be read are the agent's fault: it is told, and the turn ends when it goes on like that
    add(name, 1 if name.startswith("arguments_") else 4, streamed(chunk, delta(finish="stop")))

add("empty_choices", 4, whole({"choices": []}))
add("empty_body", 4, whole(b""))
add("html", 4, lambda r: r.send(head(kind="text/html"), b"<html><body>Log in</body></html>"))
add("binary", 4, lambda r: r.send(head(), bytes(range(256)) * 20))

# Budgets

add("usage_negative", 3, streamed(delta('{"content": "' + "x" * 8000 + '", "decisions": {"done": false}}', "stop"),
                                  usage(prompt_tokens=-50_000, completion_tokens=-50_000)))  # fmt: skip
add("usage_never", 3, streamed(delta('{"content": "' + "x" * 8000 + '", "decisions": {"done": false}}', "stop")))

# Statuses

for status in (400, 401, 403, 404, 408, 418, 429, 500, 503):
    add(f"status_{status}", 1 if status in (400, 418) else 4, whole({"error": {"message": "no"}}, status=f"{status} X"))
add("status_204", 1, whole(b"", status="204 X"))
for name, value in {
    "inf": "inf", "nan": "nan", "1e300": "1e300", "negative": "-5", "far_date": "Fri, 31 Dec 9999 23:59:59 GMT",
}.items():  # fmt: skip
    date = "Date: Mon, 16 Nov 2026 10:00:00 GMT"
    add(f"retry_after_{name}", 4, whole(b"later", f"Retry-After: {value}", date, status="429 X"))


@mode(4)
async def redirect_elsewhere(request: Request) -> None:
    await request.send(head("307 X", "text/plain", f"Location: http://localhost:{request.port}/good_stream/v1"))


@mode(4)
async def redirect_to_itself(request: Request) -> None:
    await request.send(head("302 X", "text/plain", "Location: ."))


@mode(1)
async def error_with_control_characters(request: Request) -> None:
    await request.send(
        head("400 X"), json.dumps({"error": {"message": "\x1b[2J\x1b]0;x\x07\x9b31m\x00\u202e"}}).encode()
    )


@mode(4)
async def error_with_the_key(request: Request) -> None:
    await request.send(head("401 X"), json.dumps({"error": {"message": f"wrong key {request.key}"}}).encode())


@mode(1)
async def headers_with_the_key(request: Request) -> None:
    await request.send(f"HTTP/1.1 400 {request.key}\r\nX-Key: {request.key}\r\nX-Esc: \x1b[2J\r\n\r\n".encode())


@mode(4)
async def redirect_with_the_key(request: Request) -> None:
    await request.send(head("302 X", "text/plain", f"Location: http://127.0.0.1:1/{request.key}"))


@mode(0)
async def reply_with_the_key(request: Request) -> None:
    said = json.dumps({"content": f"your key is {request.key}", "decisions": {"done": True}})
    await request.send(STREAM, event(delta(said, "stop")), DONE)


@mode(4)
async def garbage_with_the_key(request: Request) -> None:
    await request.send(f"HTTP/1.1 200 OK\r\n{request.key}\r\n\r\n".encode())


# Silence and slowness


@mode(4)
async def silent(request: Request) -> None:
    await asyncio.sleep(60)


@mode(4)
async def slow_headers(request: Request) -> None:
    await request.send(b"HTTP/1.1 200 OK\r\n")
    await request.forever(b"X", 0.2)


@mode(4)
async def dribbling(request: Request) -> None:
    await request.send(STREAM)
    await request.forever(b":", 0.2)


@mode(4)
async def dribbling_words(request: Request) -> None:
    await request.send(STREAM)
    await request.forever(event(delta("x")), 0.2)


@mode(4)
async def slow_error(request: Request) -> None:
    await request.send(head("500 X"))
    await request.forever(b"x", 0.2)


# Without end


@mode(4)
async def endless_words(request: Request) -> None:
    await request.send(STREAM)
    await request.forever(event(delta("word " * 2000)))


@mode(4)
async def endless_thoughts(request: Request) -> None:
    await request.send(STREAM)
    await request.forever(event(delta(reasoning_content="hm " * 3000)))


@mode(4)
async def endless_comments(request: Request) -> None:
    await request.send(STREAM)
    await request.forever(b": here\n" * 10_000)


@mode(4)
async def endless_empty_events(request: Request) -> None:
    await request.send(STREAM)
    await request.forever(b"data: {}\n\n" * 5000)


@mode(4)
async def endless_calls(request: Request) -> None:
    await request.send(STREAM)
    for index in range(1_000_000):
        await request.send(event(delta(tool_calls=[call(index=index, id=str(index))])))


@mode(4)
async def huge_body(request: Request) -> None:
    await request.send(head("200 OK", "application/json", f"Content-Length: {2**30}"))
    for _ in range(1024):
        await request.send(b" " * MEBIBYTE)


@mode(4)
async def huge_line(request: Request) -> None:
    await request.send(STREAM, b"data: ")
    for _ in range(1024):
        await request.send(b"x" * MEBIBYTE)


@mode(4)
async def huge_nest_of_lists(request: Request) -> None:
    await request.send(head(), b'{"choices": [' + b"[]," * (MEBIBYTE + MEBIBYTE // 4) + b"{}]}")


@mode(4)
async def huge_error(request: Request) -> None:
    await request.send(head("500 X"))
    for _ in range(1024):
        await request.send(b"x" * MEBIBYTE)


@mode(4)
async def header_flood(request: Request) -> None:
    await request.send(b"HTTP/1.1 200 OK\r\n")
    await request.forever(b"X-A: b\r\n" * 5000)


@mode(4)
async def huge_header(request: Request) -> None:
    await request.send(b"HTTP/1.1 200 OK\r\nX-A: ")
    await request.forever(b"x" * 65536)


@mode(4)
async def flood_of_1xx(request: Request) -> None:
    await request.forever(b"HTTP/1.1 102 P\r\n\r\n" * 1000, 0.01)


# Compression


def squeezed(window: int) -> bytes:
    """About a megabyte that stands for a gigabyte: one block that is repeated. Its checksum is never reached."""
    squeezing = zlib.compressobj(9, zlib.DEFLATED, window)
    start = squeezing.compress(b"") + squeezing.flush(zlib.Z_FULL_FLUSH)
    block = squeezing.compress(b" " * MEBIBYTE) + squeezing.flush(zlib.Z_FULL_FLUSH)
    return start + block * 1024


def bomb(name: str, encoding: str, window: int, status: str = "200 OK", kind: str = "application/json") -> None:
    async def play(request: Request) -> None:
        await request.send(head(status, kind, f"Content-Encoding: {encoding}"), squeezed(window))

    add(name, 1 if status == "200 OK" else 4, play)


bomb("gzip_bomb", "gzip", 31)
bomb("gzip_bomb_as_stream", "GZip", 31, kind="text/event-stream")
bomb("gzip_bomb_as_error", "gzip", 31, "500 X")
bomb("deflate_bomb", "deflate", 15)
bomb("bomb_in_a_bomb", "gzip, gzip, gzip", 31)
bomb("brotli", "br", 31)


# Broken off


@mode(4)
async def closes_at_once(request: Request) -> None:
    pass


@mode(4)
async def half_an_answer(request: Request) -> None:
    await request.send(STREAM, event(delta(GOOD[:20])))


@mode(4)
async def half_an_event(request: Request) -> None:
    await request.send(STREAM, event(delta(GOOD))[:30])


@mode(4)
async def reset_in_the_middle(request: Request) -> None:
    await request.send(STREAM, event(delta(GOOD[:20])))
    linger = struct.pack("ii", 1, 0)
    import socket

    request.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    request.writer.transport.abort()


@mode(4)
async def short_content_length(request: Request) -> None:
    await request.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", json.dumps(delta(GOOD)).encode())


@mode(4)
async def long_content_length(request: Request) -> None:
    await request.send(b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n", json.dumps(delta(GOOD)).encode())


@mode(4)
async def absurd_content_length(request: Request) -> None:
    await request.send(b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 40 + b"\r\n\r\n{}")


@mode(4)
async def broken_chunks(request: Request) -> None:
    await request.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\nhello\r\n0\r\n\r\n")


@mode(4)
async def huge_chunk_size(request: Request) -> None:
    await request.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"F" * 30 + b"\r\n{}")


@mode(4)
async def not_http(request: Request) -> None:
    await request.send(b"SSH-2.0-OpenSSH_9.0\r\n\x00\xff\xfe")


@mode(4)
async def upgrade(request: Request) -> None:
    await request.send(b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n\x00\x01")


@mode(0)
async def garbage_after_a_good_answer(request: Request) -> None:
    body = json.dumps({"choices": [{"message": {"content": GOOD}}], "usage": USAGE}).encode()
    length = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: keep-alive\r\n\r\n".encode()
    await request.send(length, body, b"HTTP/1.1 500 Surprise\r\n\r\n" * 50)


@mode(0)
async def invalid_utf8(request: Request) -> None:
    await request.send(STREAM, event(json.dumps(delta(GOOD, "stop")).encode().replace(b"hello", b"h\xffllo")), DONE)


@mode(0)
async def cookies(request: Request) -> None:
    assert "\r\ncookie:" not in request.head.lower()
    more = [f"Set-Cookie: a{i}={'x' * 50}" for i in range(200)]
    await request.send(head("200 OK", "text/event-stream", *more), event(delta(GOOD, "stop")), DONE)


# The server


@asynccontextmanager
async def hostile_server() -> AsyncIterator[str]:
    """Serve every mode; yields the address, to which `/MODE/v1` is added."""
    talking: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
    port = 0

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        me = asyncio.current_task()
        assert me is not None
        talking[me] = writer
        try:
            received = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            size = received.lower().partition("content-length:")[2].split("\r\n")[0]
            await reader.readexactly(int(size or 0))
            name = received.split(" ")[1].strip("/").split("/")[0]
            await MODES[name][1](Request(writer, received, port))
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client has had enough
        finally:
            writer.close()
            talking.pop(me, None)

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.close()
        left = dict(talking)
        for task, writer in left.items():
            task.cancel()
            writer.transport.abort()
        await asyncio.gather(*left, return_exceptions=True)
