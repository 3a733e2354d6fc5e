"""Addresses of model servers: what one can look like, and the origin that a key is bound to.

The grammar is narrow on purpose. Where two parsers can disagree about which host an address names (`\\`, `@`, a
fragment), a check of the origin would check another host than the one that gets the key. So such an address is
refused, and never quoted: the part that is refused can be a password or a token.
"""

import ipaddress
import re
from typing import NamedTuple

from ripstop.kernel.errors import UsageError

LONGEST = 2_000
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
    if len(text) > LONGEST:
        raise UsageError(f"{where} has {len(text)} characters; at most {LONGEST} are possible.")
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
