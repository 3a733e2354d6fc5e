"""The tool that only this style calls, which files a report in the run's workspace, and one for any agent."""

import os
from pathlib import Path
from typing import Any

from ripstop import Refused, tool
from ripstop.style_api import Answer, Command, Kind, Performer, Request, ToolReturned

from .style import TOOL

CALLS = "calls.log"
"""Every call, one line each, so that a test can tell how often the tool was called."""


class Filing:
    async def perform(self, request: Request) -> Answer | None:
        workspace = Path(request.settings.workspace)
        if not request.settings.workspace:
            raise Refused("There is no workspace to file a report in.", "ours")
        workspace.mkdir(parents=True, exist_ok=True)
        with (workspace / CALLS).open("a", encoding="utf-8") as calls:
            calls.write(f"{request.key}\n")
        content = f"{request.key}\n{request.arguments['text']}\n".encode()
        try:
            file = os.open(workspace / request.arguments["name"], os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:
            return ToolReturned(value="filed already")  # by the attempt before
        os.write(file, content)
        os.close(file)
        return ToolReturned(value="filed")

    def kind(self, command: Command) -> Kind:
        return Kind.KEYED

    def offers(self) -> tuple[str, ...]:
        return (f"tool:{TOOL}",)

    def provider(self, request: Request) -> str:
        return ""

    async def probe(self, request: Request) -> Answer | None:
        return None


def own_tools() -> dict[str, Performer]:
    return {TOOL: Filing()}


@tool("pure")
def weather() -> str:
    """Whether chores can be done outside."""
    return "dry"


def agent_tools() -> list[Any]:
    return [weather]
