"""What a tool can learn about its own call."""

from pathlib import Path

from msgspec import Struct

from ripstop.files.private_files import OURS
from ripstop.kernel.effects import CallTool
from ripstop.runtime.performers import Request


class ToolContext(Struct, frozen=True, kw_only=True):
    """A tool gets it as the parameter that has this type, under any name; agents neither see nor set it."""

    run: str
    """The run's id."""
    agent: str
    """The agent that calls; empty for a call of the workflow itself."""
    workspace: Path
    """The run's folder of files; it does not exist before something is written there."""
    key: str
    """The idempotency key: the same for every attempt at this call, and for nothing else."""
    attempt: int
    """Counted from 1."""


def context_of(request: Request) -> ToolContext:
    assert isinstance(request.command, CallTool)
    return ToolContext(
        run=request.run_id,
        agent=request.command.agent,
        workspace=workspace_of(request),
        key=request.key,
        attempt=request.attempt,
    )


def workspace_of(request: Request) -> Path:
    """The run's setting `workspace`, or a folder of its own below the current one."""
    chosen = request.settings.workspace
    # a run is named after its workflow, whose name may have a slash
    return Path(chosen) if chosen else Path.cwd() / OURS / "workspaces" / request.run_id.replace("/", "-")
