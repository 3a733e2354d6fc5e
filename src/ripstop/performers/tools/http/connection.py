"""One request on one connection, to an address that was checked.

The URL that the library gets has the IP address in it, so that it resolves nothing. The name is in the `Host` header
and in TLS, where the certificate has to be for it. No proxies, no cookies, no redirects, nothing is decompressed.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any

from .request import PreparedRequest

if TYPE_CHECKING:
    import ssl

    import httpx2

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
