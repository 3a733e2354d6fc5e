"""The file tools as agents call them: `Files` of the run's workspace and the agent that calls.

The workspace is the run's setting `workspace`, or `.ripstop/workspaces/<run>` below the current folder. A write may be
repeated after a crash, because it changes nothing the second time; an edit is asked whether it happened.
"""

from functools import lru_cache
from pathlib import Path
from typing import Any

from ripstop.kernel.effects import Answer, CallTool, Command
from ripstop.runtime.performers import Kind, Request

from .commands.allow_list import as_list
from .commands.runner import CommandRunner
from .commands.tool import NAME as COMMAND
from .commands.tool import command_tool
from .context import workspace_of
from .files import Files
from .shared_workspace import SharedWorkspace
from .spec import ToolSpec
from .toolbox import Tool, Toolbox, tool

READING = ("read_file", "list_files", "search_files")
WRITING = ("write_file", "edit_file")


class FileTools:
    """The tools that every process has: those for files, and `run_command`."""

    names: tuple[str, ...] = (*READING, *WRITING, COMMAND)

    def __init__(self, runner: CommandRunner | None = None) -> None:
        """`runner`: runs commands; left out: by the default rules."""
        self._runner = runner or CommandRunner()
        # says what the tools are like; it is never used to carry one out
        self._pattern = Toolbox(_tools(Files(Path(), "agent"), self._runner))

    def handles(self, name: str) -> bool:
        return name in self.names

    def specs(self, names: tuple[str, ...]) -> list[ToolSpec]:
        return self._pattern.specs(names)

    def kind(self, command: Command) -> Kind:
        return self._pattern.kind(command)

    async def perform(self, request: Request) -> Answer | None:
        assert isinstance(request.command, CallTool)
        if request.command.tool == COMMAND and (problem := as_list(request.arguments.get("command"))):
            raise problem
        return await self._toolbox(request).perform(request)

    async def probe(self, request: Request) -> Answer | None:
        return await self._toolbox(request).probe(request)

    def _toolbox(self, request: Request) -> Toolbox:
        assert isinstance(request.command, CallTool)
        settings = request.settings
        shared = SharedWorkspace(workspace_of(request), settings.read_only) if settings.shared_workspace else None
        return _toolbox_of(workspace_of(request), request.command.agent, shared, self._runner)


@lru_cache(maxsize=256)
def _toolbox_of(workspace: Path, agent: str, shared: SharedWorkspace | None, runner: CommandRunner) -> Toolbox:
    return Toolbox(_tools(Files(workspace, agent, shared), runner))


def _tools(files: Files, runner: CommandRunner) -> list[Tool]:
    @tool("pure")
    def read_file(path: str) -> str:
        """Read a text file: one of yours, or a shared one (collab/…, unless all of you work in one folder)."""
        return files.read(path)

    @tool("pure")
    def write_file(path: str, content: str) -> dict[str, Any]:
        """Create a text file or replace all of it. For others: collab/…, unless you all work in one folder."""
        return files.write(path, content)

    @tool("probeable", probe=files.was_edited)
    def edit_file(path: str, search: str, replace: str) -> dict[str, Any]:
        """Replace a piece of a file. `search` must stand in it exactly once; empty makes a new file."""
        return files.edit(path, search, replace)

    @tool("pure")
    def list_files(path: str = ".") -> dict[str, Any]:
        """List files and folders, with all below them; without a path, yours and the shared ones."""
        return files.list(path)

    @tool("pure")
    def search_files(text: str, path: str = ".") -> dict[str, Any]:
        """Find the lines that contain a text, letter by letter, in a file or in all files of a folder."""
        return files.search(text, path)

    return [read_file, write_file, edit_file, list_files, search_files, command_tool(files, runner)]
