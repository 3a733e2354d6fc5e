"""No request reaches a private address that the user has not allowed, however it is written and whoever leads there."""

import asyncio
import socket
from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from ripstop.engine.performers import Refused, TryAgain
from tests.tools.http.endpoint_server import Seen, called, endpoints, head, serving
from tests.tools.http.private_spellings import PRIVATE_4, PRIVATE_6, spelled_urls

VARIABLES = {"host": "127.0.0.1", "one": "1"}
PUBLIC = "93.184.215.14"


async def private(_: str) -> list[str]:
    return ["127.0.0.1"]


async def refusal(performer: Any, url: str, **call: Any) -> str:
    """What is said about a call that is not made; empty if it was made."""
    try:
        await called(performer, url, variables=VARIABLES, **call)
    except Refused as refused:
        return str(refused)
    except TryAgain as again:
        return f"tried: {again}"
    return ""


def test_no_spelling_of_a_private_address_is_connected_to() -> None:
    async def story() -> None:
        async with serving(_never, everywhere=True) as server:
            urls = spelled_urls(server.port)
            assert len(urls) >= 300
            performer = endpoints(resolver=private)
            said = {url: await refusal(performer, url, params=VARIABLES) for url in urls}
            assert [url for url, text in said.items() if not text or "tried" in text] == []
            assert (server.connections, server.seen) == (0, [])

    asyncio.run(story())


async def _never(seen: Seen) -> None:
    raise AssertionError(f"{seen.target} was reached")


def test_no_redirect_leads_to_a_private_address() -> None:
    async def story() -> None:
        async def answer(seen: Seen) -> None:
            if seen.target.startswith("/go"):
                where = locations[int(seen.target.partition("?")[2])]
                await seen.send(head("302 X", "text/plain", "Content-Length: 0", f"Location: {where}"))
                return
            reached.append(seen.target)

        async with serving(answer, everywhere=True) as server:
            # what a header cannot hold is not a spelling that a server can send
            locations = [url for url in spelled_urls(server.port) if url.isascii() and url.isprintable()]
            assert len(locations) >= 250
            performer = endpoints(server.origin, resolver=private)
            for at, where in enumerate(locations):
                assert await refusal(performer, f"{server.origin}/go?{at}"), where
            assert reached == []
            assert server.connections == len(locations)

    reached: list[str] = []
    asyncio.run(story())


@pytest.mark.parametrize("address", [*PRIVATE_4, *PRIVATE_6])
def test_a_name_that_has_a_private_address_among_its_addresses_is_refused(address: str) -> None:
    async def resolver(_: str) -> list[str]:
        return [PUBLIC, address]

    said = asyncio.run(refusal(endpoints(resolver=resolver), "http://shop.example/hit"))
    assert "not a public address" in said and "--allow http://shop.example" in said


def test_the_address_that_was_checked_is_the_one_that_is_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names whose address changes after the first look, as in DNS rebinding."""
    connected: list[str] = []
    asked: list[str] = []

    async def connect(remote_host: str, remote_port: int, **_: Any) -> Any:
        connected.append(remote_host)
        raise OSError("there is no internet in this test")

    def look_up(host: str, *_: Any, **__: Any) -> Any:
        raise AssertionError(f"{host} was resolved again")

    async def changing(name: str) -> Sequence[str]:
        asked.append(name)
        return [PUBLIC] if asked.count(name) == 1 else ["127.0.0.1"]

    monkeypatch.setattr(anyio, "connect_tcp", connect)
    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    names = [f"{n}.rebind.example" for n in range(20)]
    performer = endpoints(resolver=changing)
    for name in names:
        assert "tried" in asyncio.run(refusal(performer, f"https://{name}/hit"))
    assert connected == [PUBLIC] * len(names)
    assert asked == names
    assert "not a public address" in asyncio.run(refusal(performer, f"https://{names[0]}/hit"))


def test_an_origin_that_the_user_named_can_be_private_and_no_other_port_of_it() -> None:
    async def story() -> None:
        async def answer(seen: Seen) -> None:
            await seen.send(head("200 OK", "text/plain", "Content-Length: 2"), b"hi")

        async with serving(answer) as server, serving(answer) as other:
            performer = endpoints(f"http://127.0.0.1:{server.port}")
            assert await called(performer, f"http://127.0.0.1:{server.port}/x") == {"status": 200, "body": "hi"}
            assert "not a public address" in await refusal(performer, f"http://127.0.0.1:{other.port}/x")
            assert "not a public address" in await refusal(performer, f"http://localhost:{server.port}/x")
            assert other.connections == 0

    asyncio.run(story())
