"""What is sent: an endpoint of a definition with the values of one call put in.

- Headers that say how a message is transferred are ours, so those of a definition are left out. `Host` is refused.
- With GET and HEAD the pairs of a body are put into the query.
- A secret goes to the origin that it was agreed for: a request that is redirected elsewhere goes without it.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import msgspec
from msgspec import Struct

from ripstop.kernel.errors import UsageError
from ripstop.performers.http_headers import UNCOMPRESSED
from ripstop.runtime.performers import Refused
from ripstop.security.endpoints import EndpointUrl, parse_endpoint, secret_names

from .templates import TemplateValues, fill_header, fill_json, fill_url, text_of_value

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
