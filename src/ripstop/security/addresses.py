"""Addresses of model servers: what one can look like, and the origin that a key is bound to.

The grammar is narrow on purpose. Where two parsers can disagree about which host an address names (`\\`, `@`, a
fragment), a check of the origin would check another host than the one that gets the key. So such an address is
refused, and never quoted: the part that is refused can be a password or a token.
"""

import ipaddress
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import NamedTuple
from urllib.parse import urlsplit

from ripstop.kernel.errors import UsageError

# Headers that every HTTP client of ours sends or reads.


LONGEST_WAIT = 600.0
"""Seconds that a `Retry-After` can have us wait."""
UNCOMPRESSED = {"Accept-Encoding": "identity"}


def compression(headers: Mapping[str, str]) -> str:
    """How a response is compressed; empty if it is not."""
    found = headers.get("content-encoding", "").strip().lower()
    return "" if found == "identity" else found[:40]


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, at most `LONGEST_WAIT`, from a header that gives seconds or a date; `None` if it says neither.

    A date is compared with the server's own, so that a clock that is wrong on either side does no harm.
    """
    value = headers.get("retry-after", "")[:100]
    try:
        seconds = float(value)
    except ValueError:
        try:
            wait = parsedate_to_datetime(value) - parsedate_to_datetime(headers.get("date", "")[:100])
        except (ValueError, TypeError, OverflowError, IndexError):
            return None
        seconds = wait.total_seconds()
    if not isfinite(seconds):
        return None
    return min(max(0.0, seconds), LONGEST_WAIT)


MAX_ADDRESS = 2_000
EXAMPLE = "http://127.0.0.1:8080/v1"
_ADDRESS = re.compile(
    r"(?P<scheme>https?)://"
    r"(?P<host>[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?|\[[0-9a-f:.]+\])"
    r"(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<path>/[A-Za-z0-9._~!$&'()*+,;=:%/-]*)?"
)
_PORTS = {"http": 80, "https": 443}


class Address(NamedTuple):
    """The base URL of a server, taken apart."""

    origin: str
    """Scheme, host and port, in lower case and without the scheme's own port: `https://api.example.com`."""
    path: str
    is_loopback: bool

    @property
    def url(self) -> str:
        return f"{self.origin}{self.path}"

    @property
    def is_clear_text(self) -> bool:
        """Whether others on the way can read what is sent."""
        return self.origin.startswith("http:") and not self.is_loopback


def parse_address(text: str, where: str = "The base URL") -> Address:
    """Take a base URL apart. Raises `UsageError`, which says `where` it is and never quotes it."""
    if "@" in text:
        raise UsageError(f"{where} has a user name or password in it. Keys belong in the environment (OPENAI_API_KEY).")
    if "?" in text or "#" in text:
        raise UsageError(
            f"{where} has a query or fragment in it. Leave it out; keys belong in the environment (OPENAI_API_KEY)."
        )
    if len(text) > MAX_ADDRESS:
        raise UsageError(f"{where} has {len(text)} characters; at most {MAX_ADDRESS} are possible.")
    scheme, separator, rest = text.partition("://")
    host, slash, path = rest.partition("/")
    found = _ADDRESS.fullmatch(f"{scheme.lower()}{separator}{host.lower()}{slash}{path}")
    port = int(found["port"] or _PORTS[found["scheme"]]) if found else 0
    if not found or not text.isascii() or not 0 < port < 65_536 or not _is_host(found["host"]):
        raise UsageError(f"{where} is not the address of a server. Expected one like {EXAMPLE}, in ASCII.")
    origin = f"{found['scheme']}://{found['host']}"
    if port != _PORTS[found["scheme"]]:
        origin += f":{port}"
    return Address(origin, (found["path"] or "").rstrip("/"), _is_loopback(found["host"]))


def _is_host(host: str) -> bool:
    if not host.startswith("["):
        return ".." not in host
    try:
        ipaddress.IPv6Address(host[1:-1])
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    """Only forms that every resolver reads alike; `127.1` or a name of one's own is a host like any other."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


# Which IP addresses are on the public internet, and which address a host that looks like a number means.
#
# - What is not known to be public is not public: a network that is left out here is refused, not reached.
# - An IPv6 address that carries an IPv4 address (mapped, compatible, 6to4, Teredo, NAT64, ISATAP) is not public,
#   whatever it carries: who reads it decides where it leads.


NOT_PUBLIC_4 = tuple(
    ipaddress.IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this host
        "10.0.0.0/8",
        "100.64.0.0/10",  # shared by the customers of a provider (CGNAT); some clouds have their metadata here
        "127.0.0.0/8",
        "168.63.129.16/32",  # the host of a virtual machine, in one cloud
        "169.254.0.0/16",  # link-local; the metadata of most clouds
        "172.16.0.0/12",
        "192.0.0.0/24",  # protocols
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",  # relays of 6to4
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)
PUBLIC_6 = ipaddress.IPv6Network("2000::/3")
NOT_PUBLIC_6 = tuple(
    ipaddress.IPv6Network(network)
    for network in (
        "2001::/23",  # protocols: Teredo, ORCHID, benchmarks
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4
        "2620:4f:8000::/48",
        "3fff::/20",  # documentation
    )
)
_ISATAP = re.compile(r"(?:0000|0200):5efe:[0-9a-f]{4}:[0-9a-f]{4}$")
_NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+", re.IGNORECASE)
MOST_PARTS = 4


def is_public(address: str) -> bool:
    """Whether an IP address is on the public internet; false for what is not an address, or has a zone."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv4Address):
        return not any(found in network for network in NOT_PUBLIC_4)
    if found.scope_id or found not in PUBLIC_6 or _ISATAP.search(found.exploded):
        return False
    return not any(found in network for network in NOT_PUBLIC_6)


def names_private_address(origin: str) -> bool:
    """Whether the host of an origin is a private address itself; what a name leads to is not looked up."""
    host = urlsplit(origin).hostname or ""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    return not is_public(host)


def looks_like_a_number(host: str) -> bool:
    """Whether some parsers read a host as an IPv4 address: its last part is a number, also in hex."""
    return _NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2]) is not None


def meant_by_number(host: str) -> str:
    """The IPv4 address that C libraries read in a host, such as `0x7f.1`; empty if they read none."""
    parts = host.rstrip(".").split(".")
    if len(parts) > MOST_PARTS or not all(map(_NUMBER.fullmatch, parts)):
        return ""
    try:
        numbers = [_number(part) for part in parts]
    except ValueError:  # 08, or a number of very many digits
        return ""
    *first, last = numbers
    room = 8 * (MOST_PARTS - len(first))
    if any(number > 255 for number in first) or last >= 1 << room:
        return ""
    value = last
    for at, number in enumerate(first):
        value |= number << (24 - 8 * at)
    return str(ipaddress.IPv4Address(value))


def _number(text: str) -> int:
    if text[:2].lower() == "0x":
        return int(text[2:] or "0", 16)
    return int(text, 8) if text.startswith("0") else int(text)
