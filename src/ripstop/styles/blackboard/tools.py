"""The tools that only the blackboard style calls: they open, check and write a board.

All of them can be repeated: an attempt that was killed leaves files that the next one completes or takes back, and the
value is the same.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from ripstop.engine.performers import Performer, Refused, Request, TryAgain
from ripstop.kernel.events import Resumed
from ripstop.security.files import OURS
from ripstop.tools.commands.runner import SandboxedPrograms
from ripstop.tools.shared_folder import FolderLocks, work_in_turn
from ripstop.tools.style_tools import typed_tool
from ripstop.tools.toolbox import workspace_of

from .board_files import BoardFiles, DefinitionEdited
from .bookkeeping import KEPT
from .calls import (
    CHECK,
    MAX_CLAIMS,
    OPEN,
    WRITE,
    BoardCall,
    CheckBoard,
    CheckedBoard,
    ClaimResult,
    OpenBoard,
    OpenedBoard,
    WriteBoard,
    WrittenBoard,
)
from .contents import BOARDS, copied_board
from .evidence import check_commands, check_files

MAX_REREADS = 5

Found = TypeVar("Found")


class Boards:
    """The boards that runs of this process work on."""

    def __init__(self, runner: SandboxedPrograms | None = None) -> None:
        """`runner`: runs the commands of policies; left out: by the default rules."""
        self._locks = FolderLocks("board", KEPT)
        self._runner = runner or SandboxedPrograms()

    async def open(self, request: Request, wanted: OpenBoard) -> OpenedBoard:
        if not wanted.copy and await _is_resumed(request) and await request.reread(request.run_id):
            raise TryAgain("The definition of the board was mended, so the board is opened as it says now.")
        return await self._work(request, wanted, lambda board: board.open(wanted), create=True)

    async def check(self, request: Request, wanted: CheckBoard) -> CheckedBoard:
        claims, workspace = wanted.evidence, workspace_of(request)
        if len(claims) > MAX_CLAIMS:
            raise Refused(f"{len(claims):,} pieces of evidence are too many; {MAX_CLAIMS:,} are possible.")

        def work(board: BoardFiles) -> tuple[CheckedBoard, dict[int, ClaimResult]]:
            return board.check(wanted.digest, wanted.own), check_files(workspace, claims)

        found, results = await self._work(request, wanted, work)
        boards = (Path(request.settings.folder), _copies(request) / BOARDS)
        results |= await check_commands(self._runner, workspace, boards, claims)
        return replace(found, evidence=tuple(results[position] for position in range(len(claims))))

    async def write(self, request: Request, wanted: WriteBoard) -> WrittenBoard:
        accepted = ""

        def work(board: BoardFiles) -> WrittenBoard:
            done = board.write(request.key, wanted, accepted)
            if wanted.close and not done.edited:
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
        self, request: Request, wanted: BoardCall, work: Callable[[BoardFiles], Found], create: bool = False
    ) -> Found:
        def work_locked(over: frozenset[str]) -> Found:
            root = _root(request, wanted, create)
            board = BoardFiles(root, wanted.plan, wanted.history)
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


def own_tools(runner: SandboxedPrograms | None = None) -> dict[str, Performer]:
    """A performer for each, by the tool's name."""
    boards = Boards(runner)
    return {
        OPEN: typed_tool(OPEN, OpenBoard, boards.open),
        CHECK: typed_tool(CHECK, CheckBoard, boards.check),
        WRITE: typed_tool(WRITE, WriteBoard, boards.write),
    }
