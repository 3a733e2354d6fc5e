"""The file tools as agents call them: `Files` of the run's workspace and the agent that calls.

The workspace is the run's setting `workspace`, or `.ripstop/workspaces/<run>` below the current folder. A write may be
repeated after a crash, because it changes nothing the second time; an edit is asked whether it happened.
"""

from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from ripstop.engine.performers import Kind, Request, ToolSpec
from ripstop.kernel.effects import Answer, CallTool, Command
from ripstop.tools.commands.allow_list import as_list
from ripstop.tools.commands.mounts import CommandFolders
from ripstop.tools.commands.runner import CommandResult, CommandRunner

from .files import Files
from .toolbox import Tool, Toolbox, tool, workspace_of
from .workspace import SharedWorkspace

# `run_command` as agents call it: a command in the agent's own folder, or in the workspace that all share.


NAME = "run_command"


def command_tool(files: Files, runner: CommandRunner) -> Tool:
    """The tool for the agent whose files these are."""

    @tool("unsafe")
    async def run_command(command: list[str], folder: str = ".", seconds: float | None = None) -> dict[str, Any]:
        """Run a program, without a shell: command is a list, such as ["python3", "-m", "pytest", "-q"]. It has no
        network and can write only your folder. Returns its exit code and what it printed."""
        return shown(await runner.run(command, folders_of(files, folder), seconds))

    return run_command


def folders_of(files: Files, folder: str = ".") -> CommandFolders:
    """Where a command of an agent works. Raises `Refused`."""
    writable, begin = files.command_folders(folder)
    shared = SharedWorkspace(writable[0], files.shared.read_only) if files.shared else None
    return CommandFolders(folder=begin, writable=writable, shared=shared)


def shown(result: CommandResult) -> dict[str, Any]:
    """A result as an agent is told it; what is empty is left out."""
    found: dict[str, Any] = msgspec.structs.asdict(result)
    return {name: value for name, value in found.items() if value not in ("", ()) or name == "output"}


COMMAND = NAME

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
