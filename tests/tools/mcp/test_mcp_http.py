"""Servers over HTTP: only the origin that was agreed to, at an address that was checked, and within bounds."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx2
import pytest
from mcp.server.mcpserver import MCPServer

from ripstop.kernel.effects import ToolReturned
from ripstop.tools.mcp import transports as http
from ripstop.tools.mcp.servers import NotConnected, ServerSpec, list_tools
from ripstop.tools.mcp.transports import CheckedTransport
from tests.harness.mcp_servers import shop
from tests.tools.mcp.served import call, trusted

LOCAL = "http://127.0.0.1:8000/mcp"


class Replies(httpx2.AsyncBaseTransport):
    """Keeps what it was sent, and replies with what a test says."""

    def __init__(self, body: bytes = b"{}", **headers: str) -> None:
        self.seen: list[httpx2.Request] = []
        self._body = body
        self._headers = {name.replace("_", "-"): value for name, value in headers.items()}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.seen.append(request)
        return httpx2.Response(200, headers=self._headers, content=self._body)


def sent(url: str, to: str = "", inner: Replies | None = None, **spec: Any) -> tuple[httpx2.Response, Replies]:
    inner = inner or Replies()
    server = ServerSpec(name="s", url=url, **spec)

    async def story() -> httpx2.Response:
        async with httpx2.AsyncClient(transport=CheckedTransport(server, inner), trust_env=False) as client:
            return await client.post(to or url, json={})

    return asyncio.run(story()), inner


async def resolved(host: str) -> list[str]:
    return {"mcp.example": ["93.184.216.34"], "inside.example": ["93.184.216.34", "10.0.0.7"]}[host]


@pytest.fixture(autouse=True)
def names() -> Any:
    with patch.object(http, "resolve", resolved):
        yield


def test_the_address_that_was_checked_is_the_one_that_is_connected_to() -> None:
    _, inner = sent("https://mcp.example/mcp")
    (request,) = inner.seen
    assert str(request.url) == "https://93.184.216.34/mcp"
    assert request.headers["host"] == "mcp.example" and request.extensions["sni_hostname"] == "mcp.example"


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1/mcp", "http://169.254.169.254/", "http://[::1]:80/", "https://inside.example/mcp"]
)
def test_a_private_address_is_for_servers_that_the_user_named(url: str) -> None:
    inner = Replies()
    with pytest.raises(httpx2.ConnectError, match="not a public address"):
        sent(url, inner=inner, project="/cloned")
    assert not inner.seen
    _, inner = sent(url, allow_private=True)
    assert len(inner.seen) == 1


def test_no_other_origin_is_reached() -> None:
    inner = Replies()
    for other in ("https://evil.example/mcp", "http://mcp.example/mcp", "https://mcp.example:8443/mcp"):
        with pytest.raises(httpx2.ConnectError, match="not the server that the settings name"):
            sent("https://mcp.example/mcp", to=other, inner=inner)
    assert not inner.seen


def test_what_a_response_has_too_much_of_is_not_read() -> None:
    with pytest.raises(httpx2.RemoteProtocolError, match="it sent more than 4,000,000 bytes"):
        sent("https://mcp.example/mcp", inner=Replies(b"x" * 4_000_001))
    with pytest.raises(httpx2.RemoteProtocolError, match=r"it compresses its reply \(gzip\)"):
        sent("https://mcp.example/mcp", inner=Replies(b"", content_encoding="gzip"))


@asynccontextmanager
async def over_http(server: MCPServer) -> AsyncIterator[None]:
    """Serve without a socket, below our own transport."""
    app = server.streamable_http_app(json_response=True, stateless_http=True)
    made = CheckedTransport.__init__

    def below(self: CheckedTransport, spec: ServerSpec) -> None:
        made(self, spec, httpx2.ASGITransport(app))

    with patch.object(CheckedTransport, "__init__", below):
        async with server.session_manager.run():
            yield


def test_tools_of_a_server_over_http_can_be_called(tmp_path: Path) -> None:
    spec = ServerSpec(name="shop", url=LOCAL, timeout=300, allow_private=True)

    async def story() -> None:
        async with over_http(shop(tmp_path / "done")):
            async with trusted(spec, tmp_path) as tools:
                answer = await tools.perform(call("shop__price_of", article="ink"))
                assert answer == ToolReturned(value="30")

    asyncio.run(story())


def test_a_server_that_cannot_be_reached_is_said() -> None:
    spec = ServerSpec(name="shop", url="http://127.0.0.1:1/mcp", timeout=300, project="/cloned")
    with pytest.raises(NotConnected, match=r"'shop' cannot be used: 127\.0\.0\.1 is at 127\.0\.0\.1"):
        asyncio.run(list_tools(spec))
