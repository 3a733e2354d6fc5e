"""`http_request`: calls an endpoint that a definition names.

- Before anything is sent: the user has agreed to the origin and the secrets, and the addresses of the host are public.
  Every hop of a redirect is checked like the first.
- Everything is bounded: the time of the whole call, what is sent, what is read and what is given on, the redirects.
- 2xx is the result. A 4xx means that it was surely not done. What broke after the request had left, and a 5xx, leave it
  in doubt, unless the call can be repeated: a pure one is tried again, and a keyed one with the same key.
"""

import asyncio
import codecs
import os
import re
import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from ripstop.engine.doubts import describe, done_but_unreadable
from ripstop.engine.performers import InDoubt, Kind, Refused, Request, TryAgain
from ripstop.kernel.effects import Answer, CallTool, Command, ToolReturned
from ripstop.kernel.errors import Unwritable, UsageError
from ripstop.kernel.text_limits import plain, whole_characters
from ripstop.security.addresses import compression, retry_after
from ripstop.security.consent import EndpointConsents
from ripstop.security.endpoints import EndpointUrl, redirected, secret_names
from ripstop.security.redaction import HIDDEN, redacted

from ..style_tools import arguments_of
from .request import (
    READING,
    HttpCall,
    PreparedRequest,
    Resolver,
    addresses_of,
    check_call,
    exchange,
    prepare,
    read_body,
    resolve,
    url_of,
)

if TYPE_CHECKING:
    import httpx2


# What came back, as it is given on: JSON or text, bounded, without the secrets that were sent.


MOST_READ = 2**20
"""Bytes of a body."""
MOST_GIVEN = 20_000
"""Characters that are given on."""
LONGEST_SERVER_ERROR = 500
"""Characters of what a server says about an error."""
MARGIN = 1_000
"""Characters beyond what is given on that are looked at, so that no secret is cut in half before it is found."""
_CHARSET = re.compile(r'charset\s*=\s*"?([\w.:-]+)', re.ASCII)
ENCODINGS = frozenset(
    ("utf-8", "ascii", "iso8859-1", "cp1252", "gbk", "gb2312", "gb18030", "big5", "shift_jis", "euc_jp", "euc_kr")
)
"""Those that web servers use. Others that Python knows are not encodings of text, or take very long."""


def decode_text(data: bytes, content_type: str) -> str:
    named = _CHARSET.search(content_type.lower()[:1_000])
    try:
        encoding = codecs.lookup(named[1]).name if named else "utf-8"
    except LookupError:
        encoding = "utf-8"
    text = data.decode(encoding if encoding in ENCODINGS else "utf-8", "replace")
    return whole_characters(text.removeprefix("\ufeff"))


def body_of(data: bytes, has_more: bool, content_type: str, secrets: tuple[str, ...]) -> Any:
    """The JSON value of a body, or its text if it is not JSON, too long, or too deep."""
    text = decode_text(data, content_type)
    if not has_more and ("json" in content_type.lower() or text.lstrip()[:1] in ("{", "[")):
        try:
            value = plain(msgspec.json.decode(text))
        except (msgspec.DecodeError, Unwritable, RecursionError, ValueError):
            return _bounded(text, has_more, secrets)
        written = msgspec.json.encode(value).decode()
        if len(written) <= MOST_GIVEN:
            # one look at all of it is much quicker than one at each part
            return value if redacted(written, *secrets) == written else _without(value, secrets)
    return _bounded(text, has_more, secrets)


def beginning(data: bytes, content_type: str, secrets: tuple[str, ...]) -> str:
    """What a server says about an error."""
    text = redacted(decode_text(data, content_type)[: LONGEST_SERVER_ERROR + MARGIN].strip(), *secrets)
    return text if len(text) <= LONGEST_SERVER_ERROR else f"{text[:LONGEST_SERVER_ERROR]}…"


def _bounded(text: str, has_more: bool, secrets: tuple[str, ...]) -> str:
    shown = redacted(text[: MOST_GIVEN + MARGIN], *secrets)
    if len(shown) <= MOST_GIVEN and len(text) <= MOST_GIVEN:
        return shown
    size = "more than a mebibyte" if has_more else f"{len(text):,} characters"
    return f"{shown[:MOST_GIVEN]}… (cut here: the answer has {size})"


def _without(value: Any, secrets: tuple[str, ...]) -> Any:
    if isinstance(value, str):
        return redacted(value, *secrets)
    if isinstance(value, dict):
        return {redacted(key, *secrets): _without(one, secrets) for key, one in value.items()}
    if isinstance(value, list):
        return [_without(one, secrets) for one in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value if redacted(str(value), *secrets) == str(value) else HIDDEN
    return value


NAME = "http_request"
MOST_REDIRECTS = 3
MOST_OF_ERROR = 8 * 1024
"""Bytes that are read of what a server says about an error."""
ERROR_SECONDS = 2.0
"""For that, whatever is left of the call's own time."""
LONGEST_PAUSE = 30.0
"""Seconds that a server can have a call wait before it is tried again; a person may be waiting for the answer."""
KEEP_METHOD = (307, 308)
REDIRECTS = (301, 302, 303, *KEEP_METHOD)
PASSING = (408, 425, 429)
"""Statuses below 500 that may be gone next time."""

NO_AUTHORITIES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For connections without TLS: it trusts nobody, and reading the authorities takes time."""


class CallState:
    """How far a call has come, which decides what a break means."""

    def __init__(self) -> None:
        self.left = False
        """The request at hand has left, and nothing has come back."""
        self.acted = False
        """An earlier request of the call may have taken effect, although it was answered with a redirect."""
        self.status = 0
        """A status that says that it was done."""
        self.secrets: tuple[str, ...] = ()
        """What must not be in any text."""

    def leave(self) -> None:
        self.left = True

    def take(self, status: int) -> None:
        """Take note of what a server answered."""
        if 200 <= status < 300:
            self.status = status
        elif status in REDIRECTS and status not in KEEP_METHOD:
            self.acted = True
        if 400 <= status < 500 or status in REDIRECTS:
            self.left = False


class HttpEndpoints:
    """The performer of `http_request`."""

    def __init__(
        self,
        consents: EndpointConsents,
        resolver: Resolver = resolve,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`environment`: where secrets are, if not in the process's own."""
        self._consents = consents
        self._resolver = resolver
        self._environment = os.environ if environment is None else environment
        self._tls: ssl.SSLContext | None = None

    async def perform(self, request: Request) -> Answer | None:
        call = arguments_of(request, HttpCall)
        kind = self.kind(request.command)
        state = CallState()
        try:
            return await self._within_limit(call, request.key if kind is Kind.KEYED else "", state)
        except (Refused, TryAgain) as error:
            said = f"{call.tool}: {redacted(str(error), *state.secrets)}"
            if kind is not Kind.PURE and state.status:
                return ToolReturned({"status": state.status, "body": done_but_unreadable(said)})
            if kind is not Kind.PURE and (state.left or state.acted):
                raise InDoubt(said) from error
            error.args = (said,)
            raise

    def kind(self, command: Command) -> Kind:
        assert isinstance(command, CallTool)
        if command.effect:
            return Kind(command.effect)
        method = str((command.arguments or {}).get("method", "")).upper()
        return Kind.PURE if method in READING else Kind.UNSAFE

    def offers(self) -> tuple[str, ...]:
        return (f"tool:{NAME}",)

    def provider(self, request: Request) -> str:
        return ""

    async def probe(self, request: Request) -> Answer | None:
        return None

    async def _within_limit(self, call: HttpCall, key: str, state: CallState) -> ToolReturned:
        import httpx2

        check_call(call)
        try:
            async with asyncio.timeout(call.timeout):
                return await self._perform(call, key, state)
        except TimeoutError as error:
            raise TryAgain(f"It did not finish within its time limit of {call.timeout:g} s.") from error
        except (httpx2.RequestError, OSError) as error:
            if _is_about_certificate(error):
                raise Refused(f"The connection would not be secure ({error}).") from error
            raise TryAgain(f"The connection broke ({describe(error)}).") from error

    async def _perform(self, call: HttpCall, key: str, state: CallState) -> ToolReturned:
        names = secret_names(call.headers)
        url = url_of(call)
        self._check_consent(url, names)
        secrets = {name: self._secret(name) for name in names}
        state.secrets = tuple(secrets.values())
        request = prepare(call, url, secrets, key)
        for hop in range(MOST_REDIRECTS + 1):
            addresses = await addresses_of(
                request.url, self._resolver, self._consents.allow_private(request.url.origin)
            )
            async with exchange(request, addresses, self._context(request.url.scheme), state.leave) as response:
                state.take(response.status_code)
                location = response.headers.get("location", "")
                if response.status_code not in REDIRECTS or not location:
                    return await _answer(request.url, response, state)
            if hop < MOST_REDIRECTS:
                request = self._redirected(request, response.status_code, location)
        raise Refused(f"{url.origin} redirects more than {MOST_REDIRECTS} times.")

    def _redirected(self, request: PreparedRequest, status: int, location: str) -> PreparedRequest:
        try:
            url = redirected(request.url, location)
        except UsageError as error:
            raise Refused(f"{request.url.origin} answered {status}. {error}") from error
        moved = request.moved(status, url)
        if url.origin != request.url.origin:
            self._check_consent(url)
        return moved

    def _check_consent(self, url: EndpointUrl, secrets: tuple[str, ...] = ()) -> None:
        try:
            missing = self._consents.missing(url.origin, secrets)
        except UsageError as error:
            raise Refused(str(error), "definition") from error
        if missing is None:
            return
        with_secrets = f" to get the secrets {', '.join(secrets)}" if secrets else ""
        raise Refused(
            f"You have not agreed to {url.origin}{with_secrets}, so nothing was sent. Look at it and agree to it.",
            "definition",
        )

    def _secret(self, name: str) -> str:
        value = self._environment.get(name, "").strip()
        if not value:
            raise Refused(f"The environment variable {name} is not set, which a header needs.", "definition")
        if not value.isascii() or not value.isprintable():
            raise Refused(
                f"The value of {name} has a line break or another character that no header has.", "definition"
            )
        return value

    def _context(self, scheme: str) -> ssl.SSLContext:
        if scheme == "http":
            return NO_AUTHORITIES
        if self._tls is None:
            import httpx2

            self._tls = httpx2.create_ssl_context()
        return self._tls


async def _answer(url: EndpointUrl, response: "httpx2.Response", state: CallState) -> ToolReturned:
    """The result of a call. Raises `Refused` or `TryAgain` for a status that is not 2xx."""
    status, kind = response.status_code, response.headers.get("content-type", "")
    if 200 <= status < 300:
        if how := compression(response.headers):
            raise Refused(f"{url.origin} compresses its answer ({how}), although it was asked not to.")
        data, has_more = await read_body(response, MOST_READ)
        return ToolReturned({"status": status, "body": body_of(data, has_more, kind, state.secrets)})
    told = (
        f"{url.origin} answered {status}: {beginning(await _error_body(response), kind, state.secrets) or '(no text)'}"
    )
    if status in PASSING or status >= 500:
        pause = retry_after(response.headers)
        if pause is None or pause <= LONGEST_PAUSE:
            raise TryAgain(told, after=pause)
        told += f" (it asks to wait for {pause:g} s)"
    raise Refused(told)


async def _error_body(response: "httpx2.Response") -> bytes:
    """The beginning of what a server says about an error. The status says enough, so trouble here does not count."""
    import httpx2

    if how := compression(response.headers):
        return f"(its text is compressed with {how})".encode()
    try:
        async with asyncio.timeout(ERROR_SECONDS):
            return (await read_body(response, MOST_OF_ERROR))[0]
    except (TimeoutError, httpx2.RequestError):
        return b"(its text did not come)"


def _is_about_certificate(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False
