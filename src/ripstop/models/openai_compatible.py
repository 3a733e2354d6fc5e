"""Any server that speaks OpenAI's chat completions: tools, JSON schema, streaming.

- What it says is typed in `chat_reply`, and bounded below; a call takes `timeout` seconds at most.
- Redirects are not followed, and cookies are not kept.
- The key comes from the environment, is read for every call, goes only to the origins that may have it, and never
  appears in an error.
- Too many requests, timeouts, a broken connection and the server's own faults may pass: `TryAgain`.
  What the server refuses for good is `Refused`, with the server's words and what to do next. A prompt that is too long
  for the model is `PromptTooLong`.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from ripstop.engine.live import Live, Token
from ripstop.engine.performers import (
    PromptTooLong,
    Refused,
    Request,
    ToolSpecs,
    TryAgain,
    Unavailable,
    no_tools,
    with_floor,
)
from ripstop.kernel.effects import AgentReplied, AskAgent
from ripstop.kernel.errors import UsageError
from ripstop.kernel.prompt import Prompt
from ripstop.kernel.text_limits import whole_characters
from ripstop.security.addresses import UNCOMPRESSED, compression, parse_address, retry_after
from ripstop.security.redaction import redacted

from .accounts import says_no_quota, says_wrong_key
from .api_key import KEY_NAME, OPENAI, ApiKey
from .chat_format import messages_of, tools_of
from .chat_reply import CALL_SECONDS, Reply, decoded
from .passing_errors import is_page, says_busy
from .windows import says_too_long

if TYPE_CHECKING:
    import httpx2


# Server-sent events, as far as chat servers use them: the data of each event, from bytes as they arrive.
#
# - Lines end with LF, CR or CRLF; the text is UTF-8, and what is not becomes U+FFFD.
# - Comments and fields other than `data` are skipped.
# - What is kept while an event is incomplete is bounded: `TooLong` beyond `limit` bytes.


_BOM = b"\xef\xbb\xbf"


class TooLong(Exception):
    """Raised for an event that is larger than the limit."""


class EventStream:
    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._begun = False
        self._after_cr = False
        self._line = bytearray()
        """The line that is not complete yet."""
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The data of every event that is complete now."""
        if self._after_cr and data[:1] == b"\n":
            data = data[1:]
            self._after_cr = False
        if not data:
            return []
        self._after_cr = data[-1:] == b"\r"
        *lines, rest = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        found: list[bytes] = []
        if lines and self._line:
            lines[0] = bytes(self._line) + lines[0]
            self._line.clear()
        for line in lines:
            self._take(line, found)
        self._line += rest
        if self._size + len(self._line) > self._limit:
            raise TooLong
        return found

    def end(self) -> list[bytes]:
        """What is left when the stream ends without the empty line that closes its last event."""
        found: list[bytes] = []
        self._take(bytes(self._line), found)
        self._take(b"", found)
        self._line.clear()
        return found

    def _take(self, line: bytes, found: list[bytes]) -> None:
        if not self._begun:
            line = line.removeprefix(_BOM)
            self._begun = True
        if not line:
            if self._data:
                found.append(b"\n".join(self._data))
            self._data, self._size = [], 0
            return
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
            self._size += len(line) + 1
            if self._size > self._limit:
                raise TooLong


# Reads what a model server sends, within bounds: bytes, the size of one JSON document, the number of events.
#
# Nothing here decompresses. We ask for no compression, so a compressed response is refused: one megabyte of it
# can expand to a gigabyte.


MEBIBYTE = 2**20
MOST_BYTES = 64 * MEBIBYTE
"""Bytes of one streamed reply, with all that is around its words."""
LARGEST_DOCUMENT = 4 * MEBIBYTE
"""Bytes of one JSON document: an event of a stream, or a whole reply that is not streamed."""
MOST_EVENTS = 500_000
LONGEST_ERROR = 8 * 1024
"""Bytes that are read of what a server says about an error."""


async def error_body(response: "httpx2.Response") -> bytes:
    """The beginning of what a server says about an error."""
    how = compression(response.headers)
    if how:
        return f"(its text is compressed with {how})".encode()
    body = bytearray()
    async with aclosing(response.aiter_raw()) as pieces:
        async for piece in pieces:
            body += piece
            if len(body) >= LONGEST_ERROR:
                break
    return bytes(body[:LONGEST_ERROR])


async def documents(response: "httpx2.Response", streamed: bool) -> AsyncGenerator[bytes]:
    """The JSON documents of a response: its events, or its body if it is not a stream of events."""
    how = compression(response.headers)
    if how:
        raise Refused(
            f"The server compresses its reply ({how}), although it was asked not to. Turn compression off there.",
            fault="definition",
        )
    stream, total, events, body = EventStream(LARGEST_DOCUMENT), 0, 0, bytearray()
    most = MOST_BYTES if streamed else LARGEST_DOCUMENT
    async with aclosing(response.aiter_raw()) as pieces:
        async for piece in pieces:
            total += len(piece)
            if not streamed:
                body += piece
            if total > most:
                raise _too_large(most)
            for data in _events(stream, piece) if streamed else ():
                events += 1
                if events > MOST_EVENTS:
                    raise TryAgain(f"The server sent more than {MOST_EVENTS:,} pieces in one reply.")
                yield data
    if streamed:
        for data in stream.end():
            yield data
    else:
        yield bytes(body)


def _events(stream: EventStream, piece: bytes) -> list[bytes]:
    try:
        return stream.feed(piece)
    except TooLong:
        raise _too_large(LARGEST_DOCUMENT) from None


def _too_large(limit: int) -> TryAgain:
    return TryAgain(f"The server sent more than {limit // MEBIBYTE} MiB in one reply, which is all that is read.")


CONNECT_SECONDS = 10.0
READ_SECONDS = 120.0
"""Without a sign of life from the server."""
LONGEST_SERVER_ERROR = 500
HEADERS = {
    "Accept": "text/event-stream",
    "Cache-Control": "no-store",
    "Content-Type": "application/json",
    **UNCOMPRESSED,
}
NAMED = {
    "authentication_error": 401,
    "insufficient_quota": 429,
    "invalid_api_key": 401,
    "invalid_request_error": 400,
    "model_not_found": 404,
    "not_found_error": 404,
    "overloaded_error": 529,
    "permission_error": 403,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
}
"""The statuses of errors by name: they come within a reply, or with a status that says less."""
PASSING = (408, 409, 425)
"""Statuses below 500 that may be gone next time, besides 429."""
SAYS_LITTLE = (400, 422)
"""Statuses that some servers give to every error: what its name means counts."""


class OpenAICompatibleAgent:
    def __init__(
        self,
        model: str,
        base_url: str = OPENAI,
        live: Live | None = None,
        *,
        tools: ToolSpecs = no_tools,
        timeout: float = CALL_SECONDS,
        key_name: str = KEY_NAME,
        key_origins: frozenset[str] | None = None,
    ) -> None:
        """`key_origins`: the origins that may get the key; `None` for that of `base_url`, which the caller chose."""
        self._model = model
        self._base_url = base_url.rstrip("/")
        self._live = live
        self._tools = tools
        self._timeout = timeout
        try:
            self._address = parse_address(base_url)
        except UsageError as error:
            raise Refused(str(error), fault="definition") from error
        self._key_name = key_name
        self._api_key = ApiKey(key_name, frozenset({self._address.origin}) if key_origins is None else key_origins)
        self._client: httpx2.AsyncClient | None = None

    async def perform(self, request: Request) -> AgentReplied:
        import httpx2

        assert isinstance(request.command, AskAgent), request
        assert request.prompt is not None, request
        body = self._body(request.prompt, request.command)
        try:
            async with asyncio.timeout(self._timeout):
                return await self._stream(request, body)
        except TimeoutError:
            raise TryAgain(
                f"{self._base_url} did not finish its reply in time: a call has {self._timeout:g} s "
                "(`timeout` under [models] in ripstop.toml)."
            ) from None
        except httpx2.TimeoutException as error:
            raise TryAgain(f"{self._base_url} did not answer in time ({type(error).__name__}).") from error
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol) as error:
            raise Refused(
                f"{self._base_url!r} is not a server's address ({error}). Give one like http://127.0.0.1:8080/v1.",
                fault="definition",
            ) from error
        except httpx2.RequestError as error:
            said = redacted(str(error), self._key())[:LONGEST_SERVER_ERROR]
            raise TryAgain(f"{self._base_url} cannot be reached ({type(error).__name__}: {said}).") from error

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    def _body(self, prompt: Prompt, command: AskAgent) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._model,
            "messages": messages_of(prompt),
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if prompt.tools:
            body["tools"] = tools_of(self._tools(prompt.tools))
        elif prompt.schema is not None:
            body["response_format"] = {"type": "json_schema", "json_schema": {"name": "reply", "schema": prompt.schema}}
        if command.max_tokens is not None:
            # OpenAI's own newer models refuse the old name; everybody else knows only that one
            name = "max_completion_tokens" if self._base_url == OPENAI else "max_tokens"
            body[name] = command.max_tokens
        return body

    async def _stream(self, request: Request, body: dict[str, Any]) -> AgentReplied:
        key = self._key()
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        try:
            reply = await self._exchange(request, body, headers, key)
            answer = reply.answer()
            sent = len(msgspec.json.encode((body["messages"], body.get("tools"))))
            return replace(answer, usage=with_floor(answer.usage, sent, reply.received))
        except (TryAgain, Refused) as error:
            # what a server says can end up in a journal, and it has seen the key
            error.args = (redacted(str(error), key),)
            raise

    def _key(self) -> str:
        return self._api_key.value_for(self._address)

    async def _exchange(self, request: Request, body: dict[str, Any], headers: dict[str, str], key: str) -> Reply:
        reply = Reply(key)
        url = f"{self._base_url}/chat/completions"
        connection = self._connection()
        content = msgspec.json.encode(body)

        async def trace(event: str, _: object) -> None:
            if event.endswith("send_request_body.complete"):
                request.progress.left()

        async with connection.stream(
            "POST", url, content=content, headers={**HEADERS, **headers}, extensions={"trace": trace}
        ) as response:
            request.progress.left()
            if not 200 <= response.status_code < 300:  # 204 is a reply with nothing in it, like an empty 200
                raise self._server_error(response.status_code, response.headers, await error_body(response), key)
            request.progress.receive(0)
            streamed = "text/event-stream" in response.headers.get("content-type", "").lower()
            async with aclosing(documents(response, streamed)) as found:
                async for document in found:
                    if document.strip() == b"[DONE]":
                        return self._finished(reply)
                    self._take(request, reply, decoded(document), key)
        if streamed and not reply.finish:
            raise TryAgain(f"{self._base_url} broke off in the middle of its reply.")
        return self._finished(reply)

    def _finished(self, reply: Reply) -> Reply:
        if not reply.started:
            raise TryAgain(f"{self._base_url} sent a reply with nothing in it (it has no `choices`).")
        return reply

    def _take(self, request: Request, reply: Reply, chunk: object, key: str) -> None:
        if isinstance(chunk, dict) and chunk.get("error"):
            body = _written(chunk["error"]).encode()
            raise self._server_error(_status_of(chunk["error"]), {}, body, key, within="200 with an error")
        before = reply.received
        try:
            new = reply.add(chunk)
        finally:
            request.progress.receive(reply.received - before)
            request.progress.report(reply.usage)
        if new and self._live and self._live.watched:
            self._live.show(Token(request.run_id, request.number, new, request.attempt))

    def _connection(self) -> "httpx2.AsyncClient":
        if self._client is None:
            import httpx2

            silence = min(READ_SECONDS, self._timeout)
            self._client = httpx2.AsyncClient(
                timeout=httpx2.Timeout(silence, connect=min(CONNECT_SECONDS, silence)),
                follow_redirects=False,
                # an explicit transport takes no proxy from the environment: what is for loopback stays on this machine
                transport=httpx2.AsyncHTTPTransport() if self._address.is_loopback else None,
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            )
        return self._client

    def _server_error(
        self, status: int, headers: Mapping[str, str], body: bytes, key: str, within: str = ""
    ) -> TryAgain | Refused:
        """What an error means. `within`: what the server answered, if the error came within a reply."""
        said = redacted(_message(body), key)[:LONGEST_SERVER_ERROR]  # in this order, so that no part of the key is left
        told = f"{self._base_url} answered {within or status}: {said}"
        if 300 <= status < 400:
            where = headers.get("location", "")
            where = f" to {where[:LONGEST_SERVER_ERROR]}" if where else ""
            return Unavailable(
                f"{self._base_url} answered {status}, a redirect{where}. Redirects are not followed, because the key "
                "would follow. Give the address itself as the base URL.",
                fault="definition",
            )
        words = body.decode("utf-8", "replace")
        if says_too_long(status, words):
            return PromptTooLong(f"{told}.")
        if says_no_quota(status, words):
            return Unavailable(f"{told}. The account has used up what it may spend.", fault="definition")
        if says_wrong_key(status, words):
            status = 401
        elif status in SAYS_LITTLE:
            status = _status_named(body) or status
        if status == 429:
            return TryAgain(told, after=retry_after(headers), provider_wide=True)
        if status >= 500 or status in PASSING or says_busy(status, said):
            return TryAgain(told, after=retry_after(headers))
        match status:
            case 401 | 403:
                state = "is set, but not accepted" if key else "is not set"
                return Unavailable(f"{told}. The environment variable {self._key_name} {state}.", fault="definition")
            case 404:
                return Unavailable(
                    f"{told}. Check the model's name ({self._model!r}) and the base URL; it usually ends in /v1.",
                    fault="definition",
                )
        if is_page(body):
            return Unavailable(
                f"{told}. That is a web page, not a model server's answer. Check the base URL: is it http or https?",
                fault="definition",
            )
        return Refused(f"{told}. Check what the model {self._model!r} supports.", fault="agent")


def _status_named(body: bytes) -> int:
    """The status that the name of an error stands for; 0: it has none that is known."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return 0
    error = found.get("error") if isinstance(found, dict) else None
    names = (error.get("code"), error.get("status"), error.get("type")) if isinstance(error, dict) else ()
    return next((NAMED[one] for one in names if isinstance(one, str) and NAMED.get(one, 400) != 400), 0)


def _status_of(error: object) -> int:
    """The status that an error within a reply stands for: its own number, or that of its name; else the server's."""
    if not isinstance(error, dict):
        return 500
    for said in (error.get("code"), error.get("status"), error.get("type")):
        code = int(said) if isinstance(said, str) and said.isascii() and said.isdigit() and len(said) == 3 else said
        if isinstance(code, int) and 400 <= code < 600:
            return code
        if isinstance(said, str) and said in NAMED:
            return NAMED[said]
    return 500


def _message(body: bytes) -> str:
    """The server's own words, wherever it puts them."""
    text = body.decode("utf-8", "replace")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text.strip() or "(no text)"
    error = found.get("error", found) if isinstance(found, dict) else found
    if isinstance(error, dict):
        error = error.get("message") or error.get("detail") or error
    return whole_characters(error if isinstance(error, str) else _written(error))


def _written(error: object) -> str:
    try:
        return json.dumps(error)
    except RecursionError:
        return "(its error is nested too deeply to be shown)"
