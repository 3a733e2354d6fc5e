"""The file tools as agents call them: `Files` of the run's workspace and the agent that calls.

The workspace is the run's setting `workspace`, or `.ripstop/workspaces/<run>` below the current folder. A write may be
repeated after a crash, because it changes nothing the second time; an edit is asked whether it happened. Before the
first call of a run that can change files, a snapshot is taken of those that are there (`snapshots/`).
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from ripstop.engine.performers import Kind, Refused, Request, ToolSpec, TryAgain
from ripstop.kernel.effects import Answer, CallTool, Command, ToolReturned
from ripstop.kernel.events import Answered
from ripstop.tools.commands.allow_list import as_list
from ripstop.tools.commands.mounts import CommandFolders
from ripstop.tools.commands.runner import CommandResult, SandboxedPrograms

from .files import PAGE_LINES, Files
from .snapshots.listing import Stamps
from .snapshots.run_files import BegunChange, RunFiles
from .toolbox import Tool, Toolbox, tool, workspace_of
from .workspace import SharedWorkspace

logger = logging.getLogger(__name__)

# `run_command` as agents call it: a command in the agent's own folder, or in the workspace that all share.


COMMAND = "run_command"


def command_tool(files: Files, runner: SandboxedPrograms) -> Tool:
    """The tool for the agent whose files these are."""

    @tool("unsafe")
    async def run_command(command: list[str], folder: str = ".", seconds: float | None = None) -> dict[str, Any]:
        """Run a program, without a shell: command is a list, such as ["python3", "-m", "pytest", "-q"]. It has no
        network and can write only your folder. Returns its exit code, what it printed, and which files it changed."""
        return shown(await runner.run(command, folders_of(files, folder), seconds))

    return run_command


def folders_of(files: Files, folder: str = ".") -> CommandFolders:
    """Where a command of an agent works. Raises `Refused`."""
    workspace, writable, begin = files.command_folders(folder)
    shared = SharedWorkspace(writable[0], files.shared.read_only) if files.shared else None
    return CommandFolders(workspace=workspace, folder=begin, writable=writable, shared=shared)


def shown(result: CommandResult) -> dict[str, Any]:
    """A result as an agent is told it; what is empty is left out."""
    found: dict[str, Any] = msgspec.structs.asdict(result)
    return {name: value for name, value in found.items() if value not in ("", ()) or name == "output"}


READING = ("read_file", "list_files", "search_files")
WRITING = ("write_file", "edit_file")
CHANGED = "changed_files"
"""In what `run_command` returns: files that are others after it; null if it is not known, left out if none is."""
MOST_CHANGED = 20
"""Of them that are named."""
NO_PLACE = "This user has no folder for what ripstop keeps: neither HOME nor XDG_STATE_HOME is set."
MAX_REASON = 500
"""Characters of why files were not kept."""
MOST_HISTORIES = 64
"""Runs whose files are known in a process at a time."""


class FileTools:
    """The tools that every process has: those for files, and `run_command`."""

    names: tuple[str, ...] = (*READING, *WRITING, COMMAND)

    def __init__(self, runner: SandboxedPrograms | None = None) -> None:
        """`runner`: runs commands; left out: by the default rules."""
        self._runner = runner or SandboxedPrograms()
        self._histories: dict[tuple[str, Path], RunFiles] = {}
        """Of runs that have changed files here, by run and workspace."""
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
        toolbox = self._toolbox(request)
        if request.command.tool in READING:
            return await toolbox.perform(request)
        async with self._noted(request) as noting:
            answer = await toolbox.perform(request)
        if request.command.tool == COMMAND:
            answer = _with_changes(answer, noting.changed)
        if noting.unkept and isinstance(answer, ToolReturned):
            answer = msgspec.structs.replace(answer, unkept=noting.unkept)
        return answer

    async def probe(self, request: Request) -> Answer | None:
        return await self._toolbox(request).probe(request)

    def _toolbox(self, request: Request) -> Toolbox:
        assert isinstance(request.command, CallTool)
        return _toolbox_of(workspace_of(request), request.command.agent, _shared(request), self._runner)

    @asynccontextmanager
    async def _noted(self, request: Request) -> "AsyncIterator[_NotedCall]":
        """Have a snapshot of the user's files before a call changes them, and note what it left.

        Without a place for snapshots the call is made all the same. What it did is not known then; `unkept` says why.
        """
        assert isinstance(request.command, CallTool)
        files = Files(workspace_of(request), request.command.agent, _shared(request))
        noting = _NotedCall(await self._history(request), files, request.command.tool == COMMAND)
        try:
            await asyncio.to_thread(noting.begin)
        except (Refused, TryAgain, OSError) as error:
            logger.warning("Cannot take a snapshot for %s: %s", request.run_id, error)
            noting.unkept = _reason(error)
            yield noting
            return
        try:
            yield noting
        finally:
            await asyncio.shield(asyncio.to_thread(noting.end, request.arguments.get("path")))

    async def _history(self, request: Request) -> RunFiles:
        key = request.run_id, workspace_of(request)
        if key not in self._histories:
            found = await run_files(request)
            while len(self._histories) >= MOST_HISTORIES:
                del self._histories[next(iter(self._histories))]
            self._histories[key] = found
        return self._histories[key]


def _reason(error: Exception) -> str:
    said = f"{error.filename}: {error.strerror}." if isinstance(error, OSError) and error.filename else str(error)
    return said[:MAX_REASON]


async def run_files(request: Request) -> RunFiles:
    """What the run of a request did to files that were there before it."""
    records = await request.history()
    answers = (one.event.answer for one in records if isinstance(one.event, Answered))
    unkept = next((one.unkept for one in answers if isinstance(one, ToolReturned) and one.unkept), "")
    return RunFiles(workspace_of(request), request.run_id, records[0].at if records else 0, unkept=unkept)


class _NotedCall:
    """One call that can change files, with what was there before it."""

    def __init__(self, history: RunFiles, files: Files, is_command: bool) -> None:
        self._history = history
        self._files = files
        self._is_command = is_command
        self._begun: BegunChange | None = None
        self._before: Stamps | None = None
        self.changed: list[str] | None = None
        """Files that are others since, whoever wrote them. None: it is not known."""
        self.unkept = ""
        """Why there is no snapshot; empty: there is one, or it says so itself."""

    def begin(self) -> None:
        self._begun = self._history.begin(self._files.roots)
        self._before = self._history.stamps(self._files.roots) if self._is_command else None
        self.unkept = "" if self._begun else NO_PLACE

    def end(self, path: object) -> None:
        """`path`: the argument of the call, if it has one."""
        try:
            self.changed = self._changed() if self._is_command else self._written(path)
            if self._begun is not None:
                self._history.note(self._begun, self.changed or ())
        except (Refused, TryAgain, OSError) as error:
            logger.warning("Cannot note what a call changed: %s", error)

    def _written(self, path: object) -> list[str]:
        try:
            return [self._files.below_workspace(path)] if isinstance(path, str) else []
        except Refused:
            return []  # the call was refused as well

    def _changed(self) -> list[str] | None:
        before, after = self._before, self._history.stamps(self._files.roots)
        if before is None or after is None:
            return None
        return sorted(path for path in (before | after) if before.get(path) != after.get(path))


def _with_changes(answer: Answer | None, changed: list[str] | None) -> Answer | None:
    """What a command returned, with the files that are others after it; nothing is added if none is."""
    if changed == [] or not isinstance(answer, ToolReturned):
        return answer
    more = [f"… and {len(changed) - MOST_CHANGED:,} more"] if changed and len(changed) > MOST_CHANGED else []
    named = None if changed is None else [*changed[:MOST_CHANGED], *more]
    return ToolReturned(value={**answer.value, CHANGED: named})


def _shared(request: Request) -> SharedWorkspace | None:
    settings = request.settings
    return SharedWorkspace(workspace_of(request), settings.read_only) if settings.shared_workspace else None


@lru_cache(maxsize=256)
def _toolbox_of(workspace: Path, agent: str, shared: SharedWorkspace | None, runner: SandboxedPrograms) -> Toolbox:
    return Toolbox(_tools(Files(workspace, agent, shared), runner))


def _tools(files: Files, runner: SandboxedPrograms) -> list[Tool]:
    @tool("pure")
    def read_file(path: str, offset: int = 1, lines: int = PAGE_LINES) -> str:
        """Read a text file: one of yours, or a shared one (collab/…, unless all of you work in one folder). A long file
        comes in pages: `offset` is the first line of the page, `lines` how many you want at most."""
        return files.read(path, offset, lines)

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
