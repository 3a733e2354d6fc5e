"""Any server that speaks OpenAI's chat completions: tools, JSON schema, streaming.

- The key comes from the environment, is read for every call, and never appears in an error.
- Too many requests, timeouts, a broken connection and the server's own faults may pass: `TryAgain`.
  What the server refuses for good is `Refused`, with the server's words and what to do next.
"""

import os
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import msgspec

from ripstop.kernel.effects import AgentReplied, AskAgent
from ripstop.kernel.prompt import Prompt
from ripstop.performers.tools.spec import ToolSpecs, no_tools
from ripstop.runtime.live import Live, Token
from ripstop.runtime.ports import Refused, Request, TryAgain

from .chat_format import Reply, messages_of, tools_of

if TYPE_CHECKING:
    import httpx2

OPENAI = "https://api.openai.com/v1"
CONNECT_SECONDS = 10.0
READ_SECONDS = 120.0
"""Without a sign of life from the server; a long reply that keeps coming may take longer."""
LONGEST_COMPLAINT = 500
PASSING = (408, 409, 425)
"""Statuses below 500 that may be gone next time, besides 429."""


class OpenAICompatibleAgent:
    def __init__(
        self,
        model: str,
        base_url: str = OPENAI,
        live: Live | None = None,
        *,
        tools: ToolSpecs = no_tools,
        timeout: float = READ_SECONDS,
        key_name: str = "OPENAI_API_KEY",
    ) -> None:
        self._model = model
        self._base_url = base_url.rstrip("/")
        self._live = live
        self._tools = tools
        self._timeout = timeout
        self._key_name = key_name
        self._client: httpx2.AsyncClient | None = None

    async def perform(self, request: Request) -> AgentReplied:
        import httpx2

        assert isinstance(request.command, AskAgent), request
        assert request.prompt is not None, request
        body = self._body(request.prompt, request.command)
        try:
            return (await self._stream(request, body)).answer()
        except httpx2.TimeoutException as error:
            raise TryAgain(f"{self._base_url} did not answer in time ({type(error).__name__}).") from error
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol) as error:
            raise Refused(
                f"{self._base_url!r} is no address of a server ({error}). Give one like http://127.0.0.1:8080/v1.",
                fault="definition",
            ) from error
        except httpx2.TransportError as error:
            raise TryAgain(f"{self._base_url} cannot be reached ({type(error).__name__}: {error}).") from error

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

    async def _stream(self, request: Request, body: dict[str, Any]) -> Reply:
        key = os.environ.get(self._key_name, "")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        reply = Reply()
        url = f"{self._base_url}/chat/completions"
        async with self._connection().sse(url, method="POST", json=body, headers=headers) as source:
            response = source.response
            if response.status_code != 200:
                raise self._complaint(response.status_code, response.headers, await response.aread(), key)
            if "text/event-stream" not in response.headers.get("content-type", ""):
                self._take(request, reply, _decode(await response.aread()), key)
                return reply
            async for event in source:
                if event.data == "[DONE]":
                    return reply
                self._take(request, reply, _decode(event.data.encode()), key)
        if not reply.finish:
            raise TryAgain(f"{self._base_url} broke off in the middle of its reply.")
        return reply

    def _take(self, request: Request, reply: Reply, chunk: dict[str, Any], key: str) -> None:
        if chunk.get("error"):
            code = chunk["error"].get("code") if isinstance(chunk["error"], dict) else None
            raise self._complaint(code if isinstance(code, int) else 500, {}, msgspec.json.encode(chunk), key)
        new = reply.add(chunk)
        if new and self._live and self._live.watched:
            self._live.show(Token(request.run_id, request.number, new))

    def _connection(self) -> "httpx2.AsyncClient":
        if self._client is None:
            import httpx2

            self._client = httpx2.AsyncClient(timeout=httpx2.Timeout(self._timeout, connect=CONNECT_SECONDS))
        return self._client

    def _complaint(self, status: int, headers: Mapping[str, str], body: bytes, key: str) -> TryAgain | Refused:
        said = _message(body)
        if key:
            said = said.replace(key, "…")
        told = f"{self._base_url} answered {status}: {said[:LONGEST_COMPLAINT]}"
        if status == 429:
            return TryAgain(told, after=_retry_after(headers), provider_wide=True)
        if status >= 500 or status in PASSING:
            return TryAgain(told, after=_retry_after(headers))
        match status:
            case 401 | 403:
                state = "is set, but not accepted" if key else "is not set"
                return Refused(f"{told}. The environment variable {self._key_name} {state}.", fault="definition")
            case 404:
                return Refused(
                    f"{told}. Check the model's name ({self._model!r}) and the base URL; it usually ends in /v1.",
                    fault="definition",
                )
        return Refused(f"{told}. Check what the model {self._model!r} supports.", fault="agent")


def _decode(data: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TryAgain(f"The server sent something that is not a JSON object ({error}).") from error


def _message(body: bytes) -> str:
    """The server's own words, wherever it puts them."""
    text = body.decode("utf-8", "replace")
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text.strip() or "(no text)"
    error = found.get("error", found) if isinstance(found, dict) else found
    if isinstance(error, dict):
        return str(error.get("message") or error.get("detail") or error)
    return str(error)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from a header that gives seconds or a date; `None` if it says neither.

    A date is compared with the server's own, so that a clock that is wrong on either side does no harm.
    """
    value = headers.get("retry-after", "")
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        wait = parsedate_to_datetime(value) - parsedate_to_datetime(headers.get("date", ""))
    except (ValueError, TypeError):
        return None
    return max(0.0, wait.total_seconds())
