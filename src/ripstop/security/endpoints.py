"""The URLs that tools call: what one can look like, where it leads, and which secrets its headers name.

The grammar of the host is that of `addresses`, and narrower still: a number is an address in its usual form or refused,
because parsers read `0x7f.1`, `2130706433` and `0177.0.0.1` differently. What was checked is what is connected to.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urljoin

from ripstop.kernel.errors import UsageError

from .addresses import Address, looks_like_a_number, meant_by_number, parse_address

LONGEST_URL = 8_000
EXAMPLE = "https://api.example.com/orders?id={id}"
_PARTS = re.compile(r"(?P<base>[A-Za-z]+://[^/?#]*)(?P<rest>.*)", re.DOTALL)
_TARGET = re.compile(r"(?:/(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*)?"
                     r"(?:\?(?:[A-Za-z0-9._~!$&'()*+,;=:@/?\[\]|-]|%[0-9A-Fa-f]{2})*)?")  # fmt: skip
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_SECRET = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_PORTS = {"http": 80, "https": 443}


class EndpointUrl(NamedTuple):
    """The URL of a request, taken apart."""

    address: Address
    scheme: str
    host: str
    """A name in ASCII, or an IP address without brackets."""
    port: int
    target: str
    """Path and query, as they are sent."""

    @property
    def origin(self) -> str:
        return self.address.origin

    @property
    def authority(self) -> str:
        """What the `Host` header says."""
        return self.origin.partition("://")[2]

    @property
    def url(self) -> str:
        return f"{self.origin}{self.target}"


def split_url(text: str, where: str = "The URL") -> tuple[str, str]:
    """Scheme and host, and the rest of a URL or of a template of one. Raises `UsageError`."""
    found = _PARTS.fullmatch(text)
    if found is None:
        raise UsageError(f"{where} does not begin with http:// or https:// and a host. Expected one like {EXAMPLE}.")
    return found["base"], found["rest"]


def parse_origin(base: str, where: str = "The URL") -> Address:
    """The address that scheme, host and port of a URL name. Raises `UsageError`, which never quotes a password."""
    if "@" in base:
        raise UsageError(f"{where} has a user name or password in it. Name a secret in a header instead: ${{NAME}}.")
    address = parse_address(base, where)
    host = _host_of(address)
    if ":" not in host and looks_like_a_number(host) and meant_by_number(host) != host:
        meant = meant_by_number(host)
        hint = f"which some programs read as {meant}; write that" if meant else "which is not an IP address"
        raise UsageError(f"{where} names the host {host!r}, {hint}.")
    return address


def parse_endpoint(text: str, where: str = "The URL") -> EndpointUrl:
    """Take the URL of a request apart. Raises `UsageError`, which says `where` it is and never quotes a password."""
    if len(text) > LONGEST_URL:
        raise UsageError(f"{where} has {len(text)} characters; at most {LONGEST_URL} are possible.")
    base, rest = split_url(text, where)
    address = parse_origin(base, where)
    if "#" in rest:
        raise UsageError(f"{where} has a fragment (`#`), which no server gets. Leave it out.")
    if not _TARGET.fullmatch(rest):
        raise UsageError(f"{where} has characters after its host that no URL has. Percent-encode them.")
    scheme, _, authority = address.origin.partition("://")
    _, colon, port = authority.removeprefix(f"[{_host_of(address)}]").rpartition(":")
    return EndpointUrl(
        address,
        scheme,
        _host_of(address),
        int(port) if colon else _PORTS[scheme],
        rest if rest.startswith("/") else f"/{rest}",
    )


def redirected(url: EndpointUrl, location: str) -> EndpointUrl:
    """Where a `Location` header leads. Raises `UsageError`."""
    meant = location.partition("#")[0].strip()
    if len(meant) > LONGEST_URL or not meant.isprintable():
        raise UsageError("The redirect leads to something that is not a URL.")
    if _SCHEME.match(meant):  # a whole URL; `urljoin` would read `http:/x` and `http:///x` as paths
        return parse_endpoint(meant, "The redirect")
    try:
        return parse_endpoint(urljoin(url.url, meant), "The redirect")
    except ValueError as error:  # brackets without an address
        raise UsageError("The redirect leads to something that is not a URL.") from error


def secret_names(headers: Mapping[str, str]) -> tuple[str, ...]:
    """The environment variables that header templates name as `${NAME}`, sorted."""
    return tuple(sorted({name for value in headers.values() for name in _SECRET.findall(value)}))


def _host_of(address: Address) -> str:
    authority = address.origin.partition("://")[2]
    if authority.startswith("["):
        return authority[1:].partition("]")[0]
    return authority.partition(":")[0]
