"""Sessions that another process has ended, resumed or forgotten while a server has them in memory."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from ripstop.app.application import App
from ripstop.app.settings.settings_file import Settings
from tests.styles.conversation.http.served_bot import ChatServer, chat_server

RUN = "chat:shop:ann"


@asynccontextmanager
async def another_process(folder: Path) -> AsyncIterator[App]:
    async with App(Settings(store=f"sqlite:{folder / 'journal.db'}"), scope=None) as app:
        yield app


async def spoken(server: ChatServer) -> None:
    """A session that has answered, and that the server has in memory."""
    assert (await server.say("hi", "m1", params={"wait": 10})).status_code == 200


def test_a_session_that_was_forgotten_is_refused_with_409(tmp_path: Path) -> None:
    async def story() -> None:
        async with chat_server(tmp_path) as server, another_process(tmp_path) as other:
            await spoken(server)
            await other.engine.cancel(RUN)
            await other.engine.journal.forget([RUN], other.engine.clock())
            for refused in (
                await server.client.get("/conversations/shop/ann"),
                await server.client.get("/conversations/shop/ann/events"),
                await server.say("hello?", "m2"),
                await server.say("hi", "m1"),
            ):
                assert refused.status_code == 409
                assert refused.json()["error"] == "This session was forgotten, and cannot begin again."
            assert (await server.say("hi", "m1", session="bob")).status_code == 202

    asyncio.run(story())


def test_a_session_that_was_resumed_elsewhere_takes_messages_at_once(tmp_path: Path) -> None:
    async def story() -> None:
        async with chat_server(tmp_path) as server, another_process(tmp_path) as other:
            await spoken(server)
            await other.engine.cancel(RUN)
            assert (await server.say("hello?", "m2")).status_code == 409
            known = server.app.engine.known(RUN)
            assert known and known.ended
            await other.engine.resume(RUN)
            assert (await server.say("hello?", "m3")).status_code == 202

    asyncio.run(story())
