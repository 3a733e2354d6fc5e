"""The tools that only the blackboard style calls: they open, check and write a board.

All of them can be repeated: an attempt that was killed leaves files that the next one completes or takes back, and the
value is the same.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct

from ripstop.engine.performers import Performer, Refused, Request, TryAgain
from ripstop.kernel.events import Resumed
from ripstop.security.files import OURS
from ripstop.tools.commands.runner import CommandRunner
from ripstop.tools.shared_folder import FolderLocks, work_in_turn
from ripstop.tools.style_tools import OwnTool, arguments_of
from ripstop.tools.toolbox import workspace_of

from .board_files import ITERATION, TAIL, BoardFiles, DefinitionEdited, Wanted
from .bookkeeping import KEPT
from .contents import BOARDS, copied_board
from .evidence import EvidenceCheck, shown, with_commands

OPEN, CHECK, WRITE = "board_open", "board_check", "board_write"
MAX_EVIDENCE = 1_000
MAX_REREADS = 5


class BoardCall(Struct, frozen=True, kw_only=True):
    """What all three have in common, and all that is needed to open a board."""

    folder: str = ""
    """The run's settings come first (`performers.relocation`)."""
    copy: bool = False
    """The run works on a copy in its workspace, which is made when it opens the board."""
    plan: str
    history: str
    iteration_pattern: str = ITERATION
    """With one group, for a line of the history that begins an iteration."""
    tail: int = TAIL
    """Characters of the history that are returned."""


class CheckCall(BoardCall, frozen=True, kw_only=True):
    digest: str
    own: str = ""
    evidence: tuple[EvidenceCheck, ...] = ()


class WriteCall(BoardCall, frozen=True, kw_only=True):
    digest: str
    plan_text: str | None = None
    append: str = ""
    reports: dict[str, str] = {}
    definition_files: tuple[str, ...] = ()
    close: bool = False


class Boards:
    """The boards that runs of this process work on."""

    def __init__(self, runner: CommandRunner | None = None) -> None:
        """`runner`: runs the commands of policies; left out: by the default rules."""
        self._locks = FolderLocks("board", KEPT)
        self._runner = runner or CommandRunner()

    async def open(self, request: Request) -> dict[str, Any]:
        wanted = arguments_of(request, BoardCall)
        if not wanted.copy and await _is_resumed(request) and await request.reread(request.run_id):
            raise TryAgain("The definition of the board was mended, so the board is opened as it says now.")
        return await self._work(request, wanted, lambda board: board.open(), create=True)

    async def check(self, request: Request) -> dict[str, Any]:
        wanted = arguments_of(request, CheckCall)
        if len(wanted.evidence) > MAX_EVIDENCE:
            raise Refused(f"{len(wanted.evidence):,} pieces of evidence are too many; {MAX_EVIDENCE:,} are possible.")

        def work(board: BoardFiles) -> dict[str, Any]:
            found, workspace = board.check(wanted.digest, wanted.own), workspace_of(request)
            return {**found, "evidence": shown(workspace, wanted.evidence)}

        found = await self._work(request, wanted, work)
        workspace, board = workspace_of(request), Path(request.settings.folder)
        found["evidence"] = await with_commands(
            self._runner, workspace, (board, _copies(request) / BOARDS), wanted.evidence, found["evidence"]
        )
        return found

    async def write(self, request: Request) -> dict[str, Any]:
        wanted = arguments_of(request, WriteCall)
        content = Wanted(wanted.digest, wanted.plan_text, wanted.append, wanted.reports, wanted.definition_files)
        accepted = ""

        def work(board: BoardFiles) -> dict[str, Any]:
            done = board.write(request.key, content, accepted)
            if wanted.close and not done["edited"]:
                self._locks.release(board.root)
            return done

        for _ in range(MAX_REREADS):
            try:
                return await self._work(request, wanted, work)
            except DefinitionEdited as edited:
                await request.reread(request.run_id)
                accepted = edited.digest
        raise TryAgain("The definition of the board is being edited all the time.")

    async def _work(
        self, request: Request, wanted: BoardCall, work: Callable[[BoardFiles], dict[str, Any]], create: bool = False
    ) -> dict[str, Any]:
        def work_locked(over: frozenset[str]) -> dict[str, Any]:
            root = _root(request, wanted, create)
            board = BoardFiles(root, wanted.plan, wanted.history, wanted.iteration_pattern, wanted.tail)
            board.prepare()
            with self._locks.working(root, request.run_id, over):
                return work(board)

        return await work_in_turn(request, work_locked)


async def _is_resumed(request: Request) -> bool:
    """Whether the run stopped before it could open the board: its user may have mended the definition since."""
    return any(isinstance(record.event, Resumed) for record in await request.history())


def _copies(request: Request) -> Path:
    """Where copies of boards are. A project that agents share is the user's own, so there they are out of sight."""
    workspace = workspace_of(request)
    return workspace / OURS if request.settings.shared_workspace else workspace


def _root(request: Request, wanted: BoardCall, create: bool) -> Path:
    """The folder of the board, or of the run's own copy of it."""
    folder = Path(request.settings.folder)
    if not request.settings.folder or not folder.is_absolute():
        raise Refused("The run has no folder of a board, so nothing can be written there.", "definition")
    if not wanted.copy:
        return folder
    return copied_board(folder, _copies(request), request.run_id, (wanted.plan, wanted.history), create)


def own_tools(runner: CommandRunner | None = None) -> dict[str, Performer]:
    """A performer for each, by the tool's name."""
    boards = Boards(runner)
    calls = {OPEN: boards.open, CHECK: boards.check, WRITE: boards.write}
    return {name: OwnTool(name, call) for name, call in calls.items()}
