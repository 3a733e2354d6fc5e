"""What is sent: an endpoint of a definition with the values of one call put in.

- Headers that say how a message is transferred are ours, so those of a definition are left out. `Host` is refused.
- With GET and HEAD the pairs of a body are put into the query.
- A secret goes to the origin that it was agreed for: a request that is redirected elsewhere goes without it.
"""

import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlencode

import msgspec
from msgspec import Struct

from ripstop.engine.performers import Refused, TryAgain, start_thread
from ripstop.kernel.errors import UsageError
from ripstop.security.addresses import UNCOMPRESSED, is_public, looks_like_a_number
from ripstop.security.endpoints import EndpointUrl, parse_endpoint, secret_names

from .templates import TemplateValues, fill_header, fill_json, fill_url, text_of_value

if TYPE_CHECKING:
    import ssl

    import httpx2


# From a host to the IP addresses that are connected to. What is checked here is used: nothing resolves it again.


MOST_ADDRESSES = 4
"""Addresses of one host that are tried."""

Resolver = Callable[[str], Awaitable[Sequence[str]]]
"""The IP addresses of a host. Raises `OSError`."""


async def resolve(host: str) -> list[str]:
    found = await start_thread(socket.getaddrinfo, host=host, port=None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


async def addresses_of(url: EndpointUrl, resolver: Resolver, allow_private: bool) -> list[str]:
    """The addresses to connect to. Raises `Refused` if one is not public, and `TryAgain` if none can be found now."""
    if ":" in url.host or looks_like_a_number(url.host):
        found: Sequence[str] = (url.host,)
    else:
        try:
            found = await resolver(url.host)
        except (OSError, UnicodeError) as error:
            reason = f"The name {url.host} cannot be resolved ({error})."
            if isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN:
                raise TryAgain(reason) from error
            raise Refused(reason) from error
    private = [address for address in found if not is_public(address)]
    if private and not allow_private:
        raise Refused(
            f"{url.host} is at {private[0]}, which is not a public address, so nothing is sent there. If it is meant, "
            f"allow it yourself: --allow {url.origin}, or `allow` under [http] in your own settings file.",
            "definition",
        )
    usable = [address for address in found if "%" not in address]  # one with a zone is not for a URL
    if not usable:
        raise Refused(f"The name {url.host} has no address.")
    return usable[:MOST_ADDRESSES]


METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
READING = ("GET", "HEAD")
LONGEST_CALL = 600.0
"""Seconds."""
MOST_SENT = 2**20
"""Bytes of a body."""
LONGEST_HEADER = 8_000
KEY_HEADER = "Idempotency-Key"
OURS = frozenset(
    {
        *("accept-encoding", "connection", "content-length", "expect", "keep-alive"),
        *("te", "trailer", "transfer-encoding", "upgrade"),
    }
)
CREDENTIALS = frozenset(("authorization", "cookie"))
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t -~]*")


class HttpCall(Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of `http_request`. URL, headers and body are templates."""

    tool: str
    url: str
    method: str = "GET"
    headers: dict[str, str] = {}
    body: Any = None
    params: dict[str, Any] = {}
    variables: dict[str, Any] = {}
    timeout: float = 30.0

    @property
    def values(self) -> TemplateValues:
        return TemplateValues(self.params, self.variables)


class PreparedRequest(NamedTuple):
    method: str
    url: EndpointUrl
    headers: dict[str, str]
    content: bytes = b""
    confidential: frozenset[str] = frozenset()
    """Headers that only this origin gets, in lower case."""

    def moved(self, status: int, url: EndpointUrl) -> "PreparedRequest":
        """The request that follows a redirect."""
        headers, confidential = self.headers, self.confidential
        if url.origin != self.url.origin:
            headers = {name: one for name, one in headers.items() if name.lower() not in confidential}
            confidential = frozenset()
        if (status == 303 and self.method != "HEAD") or (status in (301, 302) and self.method == "POST"):
            headers = {name: one for name, one in headers.items() if not name.lower().startswith("content-")}
            return PreparedRequest("GET", url, headers, b"", confidential)
        return PreparedRequest(self.method, url, headers, self.content, confidential)


def check_call(call: HttpCall) -> None:
    """Raises `Refused`."""
    if call.method.upper() not in METHODS:
        raise Refused(f"There is no method {call.method[:40]!r}; there are: {', '.join(METHODS)}.", "definition")
    if not 0 < call.timeout <= LONGEST_CALL:
        raise Refused(
            f"The time limit must be above 0 and at most {LONGEST_CALL:g} s, not {call.timeout!r}.", "definition"
        )
    for name in call.headers:
        if not _TOKEN.fullmatch(name) or name.lower() == "host" or name.lower().startswith("proxy-"):
            raise Refused(f"A definition cannot set the header {name[:80]!r}.", "definition")


def url_of(call: HttpCall) -> EndpointUrl:
    """Where a call goes. Raises `Refused`."""
    filled = fill_url(call.url, call.values)
    if call.method.upper() in READING and (pairs := _query_pairs(fill_json(call.body, call.values))):
        filled += f"{'&' if '?' in filled else '?'}{urlencode(pairs, quote_via=quote)}"
    try:
        return parse_endpoint(filled)
    except UsageError as error:
        raise Refused(str(error), "definition") from error


def prepare(call: HttpCall, url: EndpointUrl, secrets: Mapping[str, str], key: str = "") -> PreparedRequest:
    """The first request of a call; `key`: its idempotency key. Raises `Refused`."""
    headers = {"Accept": "application/json, */*;q=0.8", "User-Agent": "ripstop", **UNCOMPRESSED}
    own = {name: fill_header(one, call.values, secrets) for name, one in call.headers.items()}
    for name, value in own.items():
        if not _VALUE.fullmatch(value) or len(value) > LONGEST_HEADER:  # never quoted: it can hold a secret
            raise Refused(
                f"The header {name} would have a line break or another character that no header has, or more than "
                f"{LONGEST_HEADER} characters.",
                "agent",
            )
        if name.lower() not in OURS:
            headers = {known: one for known, one in headers.items() if known.lower() != name.lower()}
            headers[name] = value.strip()
    if key:
        headers = {name: one for name, one in headers.items() if name.lower() != KEY_HEADER.lower()}
        headers[KEY_HEADER] = quote(key, safe="/:")
    content = b"" if call.method.upper() in READING else _content(call, headers)
    with_secrets = {name.lower() for name, template in call.headers.items() if secret_names({name: template})}
    return PreparedRequest(call.method.upper(), url, headers, content, CREDENTIALS | with_secrets)


def _query_pairs(body: Any) -> list[tuple[str, str]]:
    if body is None or body == {}:
        return []
    if not isinstance(body, dict):
        raise Refused("A request with GET has no body, so it has to be an object: its pairs go into the query.",
                      "definition")  # fmt: skip
    return [(name, text_of_value(value)) for name, value in body.items() if value is not None]


def _content(call: HttpCall, headers: dict[str, str]) -> bytes:
    """The body; a header that says what it is is added if there is none."""
    body = fill_json(call.body, call.values)
    if body is None:
        return b""
    kind = next((value.lower() for name, value in headers.items() if name.lower() == "content-type"), "")
    if isinstance(body, dict) and "x-www-form-urlencoded" in kind:
        content = urlencode(_query_pairs(body), quote_via=quote).encode()
    elif isinstance(body, str) and kind and "json" not in kind:
        content = body.encode("utf-8", "replace")
    else:
        content = msgspec.json.encode(body)
        if not kind:
            headers["Content-Type"] = "application/json"
    if len(content) > MOST_SENT:
        raise Refused(f"The body would have {len(content):,} bytes; at most {MOST_SENT:,} are sent.", "agent")
    return content


# One request on one connection, to an address that was checked.
#
# The URL that the library gets has the IP address in it, so that it resolves nothing. The name is in the `Host` header
# and in TLS, where the certificate has to be for it. No proxies, no cookies, no redirects, nothing is decompressed.


CONNECT_SECONDS = 10.0
"""For one address, before the next one is tried."""
_LEAVES = "http11.send_request_headers.started"


@asynccontextmanager
async def exchange(
    request: PreparedRequest, addresses: Sequence[str], tls: "ssl.SSLContext", on_leaving: Callable[[], None]
) -> "AsyncIterator[httpx2.Response]":
    """Send a request and give the response, whose body is not read yet.

    Args:
        addresses: Where to connect to; the next one is tried only while nothing has left.
        on_leaving: Called right before the first byte of the request leaves.

    Raises `httpx2.RequestError`.
    """
    import httpx2

    async with httpx2.AsyncHTTPTransport(verify=tls, trust_env=False) as transport:
        for address in addresses:
            try:
                response = await transport.handle_async_request(_made(request, address, on_leaving))
                break
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                if address == addresses[-1]:
                    raise
        try:
            yield response
        finally:
            await response.aclose()


def _made(request: PreparedRequest, address: str, on_leaving: Callable[[], None]) -> "httpx2.Request":
    import httpx2

    async def trace(event: str, _: dict[str, Any]) -> None:
        if event == _LEAVES:
            on_leaving()

    url = request.url
    return httpx2.Request(
        request.method,
        f"{url.scheme}://{f'[{address}]' if ':' in address else address}:{url.port}/",
        headers={"Host": url.authority, **request.headers},
        content=request.content or None,
        extensions={
            "sni_hostname": url.host,
            "target": url.target.encode("ascii"),
            "timeout": {"connect": CONNECT_SECONDS},
            "trace": trace,
        },
    )


async def read_body(response: "httpx2.Response", most: int) -> tuple[bytes, bool]:
    """The beginning of a body, and whether there is more of it."""
    body = bytearray()
    async with aclosing(response.aiter_raw()) as pieces:
        async for piece in pieces:
            body += piece
            if len(body) > most:
                return bytes(body[:most]), True
    return bytes(body), False
