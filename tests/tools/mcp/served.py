"""Tools of MCP servers in tests: a server of the SDK in this process, or one of our own in a process."""

import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from mcp.client._memory import InMemoryTransport
from mcp.server.mcpserver import MCPServer

from ripstop.engine.performers import Request
from ripstop.kernel.effects import AskPerson, PersonAnswered
from ripstop.tools.mcp.connection import Connection
from ripstop.tools.mcp.inspection import InspectedStream
from ripstop.tools.mcp.servers import Pins, ServerSpec, ServerTools, ToolListing, list_tools
from tests.tools.tool_requests import tool_request

HARNESS = Path(__file__).parents[2] / "harness"
SHOP = ServerSpec(name="shop", command=("in this process",), timeout=300)


def hostile(mode: str, *more: str, timeout: float = 300) -> ServerSpec:
    return ServerSpec(name="h", command=(sys.executable, str(HARNESS / "hostile_mcp.py"), mode, *more), timeout=timeout)


@contextmanager
def in_process(server: Callable[[], MCPServer], legacy: bool = False) -> Iterator[None]:
    """Let every connection be one to a new server in this process."""

    @asynccontextmanager
    async def transport(connection: Connection) -> AsyncIterator[Any]:
        async with InMemoryTransport(server()) as (read, write):
            yield InspectedStream(read, connection._inspection, connection._ended), write

    with (
        patch.object(Connection, "_transport", transport),
        patch.object(Connection, "mode", "legacy" if legacy else "auto"),
    ):
        yield


@asynccontextmanager
async def trusted(spec: ServerSpec, folder: Path, listed: ToolListing | None = None) -> AsyncIterator[ServerTools]:
    """The tools of a server, all of which the user has agreed to as they are, or as they were `listed`."""
    pins = Pins(folder)
    pins.remember(spec, (listed or await list_tools(spec)).cards.values())
    tools = ServerTools([spec], pins)
    try:
        yield tools
    finally:
        await tools.close()


class Desk:
    """Answers questions, each with the next answer; `None`: nobody has answered yet."""

    def __init__(self, answers: Sequence[PersonAnswered | None] = ()) -> None:
        self._answers = list(answers)
        self.known: dict[str, PersonAnswered] = {}
        self.asked: list[AskPerson] = []

    async def ask(self, key: str, question: AskPerson) -> PersonAnswered | None:
        if key in self.known:
            return self.known[key]
        self.asked.append(question)
        answer = self._answers.pop(0) if self._answers else None
        if answer is not None:
            self.known[key] = answer
        return answer


def call(tool: str, desk: Desk | None = None, settings: Any = None, **arguments: Any) -> Request:
    more = {**({"settings": settings} if settings else {}), **({"ask": desk.ask} if desk else {})}
    return tool_request(arguments, tool=tool, agent="buyer", **more)
