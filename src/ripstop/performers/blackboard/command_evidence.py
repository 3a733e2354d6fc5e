"""Evidence by a command: it is run in the run's workspace, and has to end with the exit code that the policy names.

It is run as commands of agents are: no shell, the same list of programs, the same sandbox. It can write the workspace,
but neither the board nor what a project is run by. A command that cannot be run does not hold; nothing raises.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ripstop.files.private_files import make_folder
from ripstop.performers.tools.commands.place import CommandFolders
from ripstop.performers.tools.commands.runner import CommandResult, CommandRunner
from ripstop.performers.tools.shared_workspace import SharedWorkspace
from ripstop.runtime.performers import Refused

from .evidence import EvidenceCheck

LAST_LINES, MAX_SHOWN = 5, 500
"""Of what the command printed, in lines and characters."""


async def with_commands(
    runner: CommandRunner,
    workspace: Path,
    boards: Sequence[Path],
    claims: Sequence[EvidenceCheck],
    found: Sequence[dict[str, Any]],
) -> list[dict[str, Any]]:
    """What was found, with what comes of the commands. `boards`: folders that they must not write."""
    return [
        await _run(runner, workspace, boards, claim) if claim.evidence == "command" else one
        for claim, one in zip(claims, found, strict=True)
    ]


async def _run(runner: CommandRunner, workspace: Path, boards: Sequence[Path], claim: EvidenceCheck) -> dict[str, Any]:
    try:
        result = await runner.run(list(claim.command), _folders(workspace, boards))
    except (Refused, OSError) as error:
        return {"holds": False, "shown": f"the command was not run: {error}"}
    return {"holds": result.exit_code == claim.exit_code, "shown": _shown(result)}


def _folders(workspace: Path, boards: Sequence[Path]) -> CommandFolders:
    make_folder(workspace)
    real = Path(os.path.realpath(workspace))
    shared = SharedWorkspace(real, tuple(os.path.realpath(board) for board in boards))
    return CommandFolders(folder=real, writable=(real,), shared=shared)


def _shown(result: CommandResult) -> str:
    ended = f"exit code {result.exit_code}" if not result.stopped else f"stopped: {result.stopped}"
    lines = [line.strip() for line in result.output.splitlines() if line.strip()]
    last = " | ".join(lines[-LAST_LINES:])
    return f"{ended}: {last[-MAX_SHOWN:]}" if last else ended
