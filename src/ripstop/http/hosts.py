"""The names under which a server answers.

A page of another site can make a browser send requests here: under a name of its own that resolves to this machine
(DNS rebinding), or from its own origin. The first has a foreign `Host`, the second a foreign `Origin`. So only names
that were listed are answered, compared as they are: no suffixes, no patterns, no trailing dots.
"""

import re
from collections.abc import Iterable

from ripstop.kernel.errors import UsageError
from ripstop.kernel.plain import shown

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_NAME = re.compile(r"(?P<host>[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::(?P<port>[0-9]{1,5}))?")
_SAME_ORIGIN = ("same-origin", "none")
"""Values of `Sec-Fetch-Site` for a request that no page of another origin caused; `none` is the user's own doing."""


class AllowedHosts:
    """The values of `Host` that are answered: the loopback names with the port, and those that were listed."""

    def __init__(self, port: int, names: Iterable[str] = ()) -> None:
        """Args:
        names: With a port, only with that; without one, also with `port`, as behind a proxy and without it.

        Raises `UsageError` for a name that cannot be one.
        """
        self._allowed: set[str] = set()
        for name in LOOPBACK:
            self._add(name, port)
        for name in names:
            host, own_port = _taken_apart(name)
            if own_port:
                self._add(host, own_port)
            else:
                self._allowed.add(host)
                self._add(host, port)

    def _add(self, host: str, port: int) -> None:
        self._allowed.add(f"{host}:{port}")
        if port == 80:  # a client leaves out the port of the scheme
            self._allowed.add(host)

    def answers(self, host: str) -> bool:
        return host.lower() in self._allowed


def _taken_apart(name: str) -> tuple[str, int]:
    """Host and port, 0 without one."""
    bare = f"[{name}]" if name.count(":") > 1 and not name.startswith("[") else name
    found = _NAME.fullmatch(bare.lower())
    port = int(found["port"] or 0) if found else 0
    if found is None or ".." in found["host"] or port > 65_535 or (found["port"] and not port):
        raise UsageError(f"{shown(name)} is not the name of a host. Expected one like bot.example.com or [::1]:8080.")
    return found["host"], port


def is_same_origin(host: str, origin: str | None, fetch_site: str | None) -> bool:
    """Whether a request comes from no page, or from a page of this server; `host` is its checked `Host`.

    Both schemes are taken: behind a proxy with TLS a page has `https`, and this server does not see that. A page with
    the other scheme at the same host and port is not another site; nothing else can listen there.
    """
    if fetch_site is not None and fetch_site not in _SAME_ORIGIN:
        return False
    return origin is None or origin.lower() in (f"http://{host.lower()}", f"https://{host.lower()}")
