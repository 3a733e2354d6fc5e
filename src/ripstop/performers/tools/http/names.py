"""From a host to the IP addresses that are connected to. What is checked here is used: nothing resolves it again."""

import socket
from collections.abc import Awaitable, Callable, Sequence

from ripstop.performers.own_thread import start_thread
from ripstop.runtime.performers import Refused, TryAgain
from ripstop.security.endpoints import EndpointUrl
from ripstop.security.public_addresses import is_public, looks_like_a_number

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
