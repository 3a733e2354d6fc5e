"""`run_command` as agents call it: a command in the agent's own folder, or in the workspace that all share."""

from typing import Any

import msgspec

from ripstop.performers.tools.files import Files
from ripstop.performers.tools.shared_workspace import SharedWorkspace
from ripstop.performers.tools.toolbox import Tool, tool

from .place import CommandFolders
from .runner import CommandResult, CommandRunner

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
