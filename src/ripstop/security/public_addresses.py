"""Which IP addresses are on the public internet, and which address a host that looks like a number means.

- What is not known to be public is not public: a network that is left out here is refused, not reached.
- An IPv6 address that carries an IPv4 address (mapped, compatible, 6to4, Teredo, NAT64, ISATAP) is not public, whatever
  it carries: who reads it decides where it leads.
"""

import ipaddress
import re
from urllib.parse import urlsplit

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
