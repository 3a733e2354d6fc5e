"""A board in a folder, a run that works on it, and a person with an editor."""

import asyncio
from pathlib import Path
from typing import Any

from ripstop.engine.performers import Performer
from ripstop.kernel.effects import CallTool, ToolReturned
from ripstop.kernel.events import RunSettings
from ripstop.styles.blackboard.calls import CHECK, OPEN, WRITE
from ripstop.styles.blackboard.history import ITERATION, TAIL
from ripstop.styles.blackboard.tools import own_tools
from tests.tools.tool_requests import request_for

PLAN, HISTORY = "memory/dev_plan.md", "memory/project_history.md"
REPORT = "reports/report_writer.md"
READING = {"iteration_pattern": ITERATION, "tail": TAIL}
USUAL: dict[str, dict[str, Any]] = {
    OPEN: {**READING, "reports": [REPORT], "blocker_prefix": "Blockers:"},
    CHECK: {"own": "", "evidence": []},
    WRITE: {"plan_text": None, "append": "", "reports": {}, "definition_files": [], "close": False, **READING},
}
"""What a call has besides the board and its digest, where a test does not say otherwise."""


class BoardDesk:
    def __init__(self, folder: Path, run_id: str = "r", tools: dict[str, Performer] | None = None) -> None:
        self.folder = folder
        self.run_id = run_id
        self.tools = tools or own_tools()
        self.number = 0
        self.digest = ""

    @classmethod
    def fresh(cls, folder: Path, plan: str = "- T1 TODO\n") -> "BoardDesk":
        """A board on which nobody has worked yet."""
        desk = cls(folder)
        desk.edit(PLAN, plan)
        return desk

    @classmethod
    def after(cls, killed: "BoardDesk") -> "BoardDesk":
        """Another process of the same run, with the command that was not answered."""
        killed.tools = own_tools()
        return killed

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    def edit(self, path: str, text: str | bytes) -> None:
        """As a person or an agent does it."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)

    def text(self, path: str) -> str:
        return (self.folder / path).read_text()

    def files(self) -> dict[str, bytes]:
        """Everything on the board."""
        found = (path for top in ("memory", "reports") for path in (self.folder / top).rglob("*") if path.is_file())
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in found}

    def call(self, tool: str, again: bool = False, of: dict[str, Any] | None = None, **given: Any) -> dict[str, Any]:
        """Perform a command; with `again`, one more attempt at the last one."""
        self.number += not again
        board = {"folder": str(self.folder), "copy": False, "plan": PLAN, "history": HISTORY}
        arguments = {**board, **USUAL[tool], **given}
        settings = RunSettings(folder=str(self.folder), workspace=str(self.workspace))
        command = CallTool(tool=tool)
        request = request_for(command, self.run_id, self.number, settings=settings, arguments=arguments, **(of or {}))
        answer = asyncio.run(self._perform(request))
        assert isinstance(answer, ToolReturned)
        return dict(answer.value)

    async def _perform(self, request: Any) -> Any:
        return await self.tools[request.command.tool].perform(request)

    def open(self, **arguments: Any) -> dict[str, Any]:
        found = self.call(OPEN, **arguments)
        self.digest = found["digest"]
        return found

    def check(self, own: str = "", **arguments: Any) -> dict[str, Any]:
        found = self.call(CHECK, digest=self.digest, own=own, **arguments)
        self.digest = found["digest"] or self.digest
        return found

    def write(self, **arguments: Any) -> dict[str, Any]:
        done = self.call(WRITE, **{"digest": self.digest, **arguments})
        self.digest = done["digest"]
        return done
