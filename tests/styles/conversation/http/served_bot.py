"""A bot that answers every message with a flow: one tool call, and no model. Server, journal and worker are real."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2

from ripstop.app.application import App
from ripstop.app.settings.settings_file import Settings
from ripstop.faces.http.door import WRONG_TOKENS, AllowedHosts, Door, DoorBounds, TokenAdmission
from ripstop.faces.http.event_stream import StreamSlots
from ripstop.faces.http.server import bind, serving
from ripstop.styles.conversation.chats import Chats
from ripstop.styles.conversation.http.application import HttpFace
from ripstop.tools.toolbox import tool

TOKEN = "t0ken-" + "x" * 40
BOT = """
name: Shop
sop: Say hello.
tools:
  - { name: reply, description: Say hello }
flows:
  - { id: hello, type: keyword, match_type: regex, patterns: ["."], tool: reply }
"""


def write_bot(folder: Path, name: str = "shop") -> Path:
    """A bot that answers every message with the tool `reply`."""
    (folder / name).mkdir()
    (folder / name / "bot.yaml").write_text(BOT, encoding="utf-8")
    return folder / name


class ChatServer(NamedTuple):
    app: App
    face: HttpFace
    client: httpx2.AsyncClient
    port: int
    may_reply: asyncio.Event
    """The bot waits for it."""

    async def say(self, text: str, id: str, session: str = "ann", **more: Any) -> httpx2.Response:
        path = f"/conversations/shop/{session}/messages"
        return await self.client.post(path, json={"text": text, "id": id}, **more)


@asynccontextmanager
async def chat_server(
    folder: Path,
    streams: int = 8,
    seconds: float = 30,
    has_tool: bool = True,
    reply_fails: bool = False,
    wrong_tokens: int = WRONG_TOKENS,
    **bounds: Any,
) -> AsyncIterator[ChatServer]:
    bot = write_bot(folder)
    settings = Settings(store=f"sqlite:{folder / 'journal.db'}")
    may_reply = asyncio.Event()
    may_reply.set()

    @tool("pure")
    async def reply() -> str:
        """Answer the user."""
        await may_reply.wait()
        if reply_fails:
            raise ValueError("no such thing")
        return "hello"

    async with App(settings, tools=[reply] if has_tool else []) as app:
        face = HttpFace(app, Chats(app), {"shop": bot}, StreamSlots(streams))
        listener = bind("127.0.0.1", 0)
        port = listener.getsockname()[1]
        admission = TokenAdmission(TOKEN, wrong_tokens=wrong_tokens)
        door = Door(face.asgi, AllowedHosts(port), admission, DoorBounds(**bounds))
        client = httpx2.AsyncClient(
            base_url=f"http://127.0.0.1:{port}", headers={"authorization": f"Bearer {TOKEN}"}, timeout=20
        )
        async with asyncio.timeout(seconds), client, serving(door, listener, grace=1):
            try:
                yield ChatServer(app, face, client, port, may_reply)
            finally:
                may_reply.set()
                face.stopping.set()


class SseClient:
    """Reads server-sent events as a browser does."""

    def __init__(self, lines: AsyncIterator[str]) -> None:
        self._lines = lines
        self.last_id = ""
        self.comments = 0

    async def next(self) -> tuple[str, Any]:
        """The next event: its name and data."""
        kind, data = "message", ""
        async for line in self._lines:
            name, _, value = line.partition(": ")
            if line.startswith(":"):
                self.comments += 1
            elif name == "event":
                kind = value
            elif name == "id":
                self.last_id = value
            elif name == "data":
                data = value
            elif not line and data:
                return kind, json.loads(data)
        return "", None


@asynccontextmanager
async def events(server: ChatServer, last_id: str = "", session: str = "ann") -> AsyncIterator[SseClient]:
    headers = {"last-event-id": last_id} if last_id else {}
    path = f"/conversations/shop/{session}/events"
    async with server.client.stream("GET", path, headers=headers) as response:
        assert response.status_code == 200, await response.aread()
        yield SseClient(response.aiter_lines())
