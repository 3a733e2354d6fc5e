"""How many requests a client may send: a token bucket for each."""

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable

MOST_CLIENTS = 10_000
"""Buckets that are kept; beyond that, the client that was quiet for longest begins again with a full one."""


class RequestRate:
    def __init__(self, per_second: float, burst: float, now: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._burst = burst
        self._now = now
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """What is left for each client, and when that was so."""

    def take(self, client: str) -> float:
        """Count a request: 0 if it may pass, else the seconds until one may."""
        now = self._now()
        left, then = self._buckets.pop(client, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._per_second)
        passes = left >= 1
        self._buckets[client] = (left - 1 if passes else left, now)
        if len(self._buckets) > MOST_CLIENTS:
            self._buckets.popitem(last=False)
        return 0.0 if passes else (1 - left) / self._per_second


def client_of(address: str) -> str:
    """The client behind an address: all addresses of an IPv6 network of 64 bits are one."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if found.version == 4:
        return address
    return str(ipaddress.ip_network((found.packed[:8] + bytes(8), 64)))
