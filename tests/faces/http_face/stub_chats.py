"""Conversations without a bot: it says hello at first and to every message, by one tool call. The server is real."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2

from ripstop.app import App
from ripstop.faces.http.application import HttpFace
from ripstop.faces.http.chat_service import ChatEvent, SessionView
from ripstop.faces.http.event_stream import StreamSlots
from ripstop.http.door import Door, DoorBounds
from ripstop.http.hosts import AllowedHosts
from ripstop.http.server import listen, serving
from ripstop.kernel.effects import CallTool, Limits, ToolReturned
from ripstop.kernel.errors import RunAlreadyStarted, RunHasEnded
from ripstop.kernel.events import Answered, Heard, Record
from ripstop.kernel.run import Run
from ripstop.performers.tools.toolbox import tool
from ripstop.plugin_types import Plugin
from ripstop.plugins import BUILT_IN, Plugins
from ripstop.settings.settings_file import Settings
from ripstop.testing import Errands

TOKEN = "t0ken-" + "x" * 40
BOT = Errands(rounds=((CallTool(tool="reply"),),), outcome="", listens=True)
PLUGINS = Plugins([*BUILT_IN, Plugin(name="errands", kits=("ripstop.testing.stub_style:ERRANDS",))])


class StubChats:
    def __init__(self, app: App) -> None:
        self._app = app

    def run_id(self, workflow: str, session: str) -> str:
        return f"chat:{workflow}:{session}"

    async def tell(
        self,
        workflow: str | Path,
        session: str,
        text: str,
        *,
        by: str = "",
        id: str = "",
        variables: Mapping[str, str] | None = None,
    ) -> Run[Any]:
        run_id = self.run_id(str(workflow), session)
        try:
            await self._app.engine.start(run_id, "errands", BOT.content(), "", {}, Limits())
            await self._app.wait(run_id)
        except RunAlreadyStarted:
            view = await self._app.engine.look(run_id)
            if view.run.ended:
                raise RunHasEnded(run_id, view.status) from None
        return await self._app.send(run_id, text, by, id)

    async def look(self, run_id: str) -> SessionView:
        view = await self._app.engine.look(run_id)
        records = await self._app.engine.journal.read(run_id)
        messages = [event.data for record in records for event in self.events_of(record)]
        return SessionView(run_id, run_id.rpartition(":")[2], view.status, tuple(messages))

    def events_of(self, record: Record) -> list[ChatEvent]:
        """A message of the user gives two events, so that a client can be cut between them."""
        id = f"chat/{record.number}"
        match record.event:
            case Heard(text=text, by=by):
                said = ChatEvent(id, "message", {"kind": "user", "text": text, "by": by})
                return [said, ChatEvent(id, "status", {"status": "processing"})]
            case Answered(answer=ToolReturned(value=value)):
                return [ChatEvent(id, "message", {"kind": "bot", "text": value})]
        return []


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
async def chat_server(folder: Path, streams: int = 8, **bounds: Any) -> AsyncIterator[ChatServer]:
    settings = Settings(store=f"sqlite:{folder / 'journal.db'}")
    may_reply = asyncio.Event()
    may_reply.set()

    @tool("pure")
    async def reply() -> str:
        """Answer the user."""
        await may_reply.wait()
        return "hello"

    async with App(settings, tools=[reply], plugins=PLUGINS) as app:
        face = HttpFace(app, StubChats(app), {"shop": Path("shop")}, StreamSlots(streams))
        listener = listen("127.0.0.1", 0)
        port = listener.getsockname()[1]
        door = Door(face.asgi, AllowedHosts(port), TOKEN, DoorBounds(**bounds))
        client = httpx2.AsyncClient(
            base_url=f"http://127.0.0.1:{port}", headers={"authorization": f"Bearer {TOKEN}"}, timeout=20
        )
        async with asyncio.timeout(30), client, serving(door, listener, grace=1):
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
