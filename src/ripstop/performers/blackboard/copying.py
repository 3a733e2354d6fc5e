"""The board of a run that another run started: a copy of the plan, the history and the reports.

All is copied under a temporary name and made durable; then the name is changed. Half a copy is never used.
"""

import os
import secrets
import shutil
import stat
from collections.abc import Collection
from pathlib import Path

from ripstop.files.private_files import make_folder
from ripstop.performers.file_errors import in_words
from ripstop.performers.folders import PathMissing, opened
from ripstop.performers.regular_files import CREATING, opened_file
from ripstop.performers.tools.roots import RESERVED
from ripstop.runtime.performers import Refused

from .contents import scan
from .folders import REPORTS

BOARDS = "boards"


def copied_board(source: Path, workspace: Path, run_id: str, wanted: Collection[str], create: bool) -> Path:
    """The folder of the copy; with `create` it is made if there is none.

    Args:
        wanted: Files that are copied besides the reports, if there are any.
    """
    name = run_id.replace("/", "-")
    try:
        with opened(workspace, (BOARDS, name)):
            return workspace / BOARDS / name
    except PathMissing:
        if not create:
            raise
    try:
        make_folder(workspace)
    except OSError as error:
        raise in_words(workspace, error) from error
    if not source.is_dir():
        raise PathMissing(f"There is no folder {str(source)!r}. Put it back, or choose another.")
    unfinished = f"{RESERVED}{secrets.token_hex(8)}"
    with opened(workspace, (BOARDS,), create=True) as boards:
        try:
            with opened(workspace, (BOARDS, unfinished), create=True):
                _copy(source, workspace / BOARDS / unfinished, wanted)
            os.rename(unfinished, name, src_dir_fd=boards, dst_dir_fd=boards)
            os.fsync(boards)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True, dir_fd=boards)  # what went wrong with the copy matters more
            raise
    return workspace / BOARDS / name


def _copy(source: Path, target: Path, wanted: Collection[str]) -> None:
    for path in scan(source):
        if path in wanted or path.startswith(f"{REPORTS}/"):
            *folders, name = path.split("/")
            with (
                opened(source, tuple(folders)) as above,
                opened(target, tuple(folders), create=True) as into,
            ):
                _copy_file(above, into, name, path)


def _copy_file(above: int, into: int, name: str, path: str) -> None:
    try:
        with opened_file(above, name) as (old, status), open(os.open(name, CREATING, 0o666, dir_fd=into), "wb") as new:
            with os.fdopen(old, "rb", closefd=False) as file:
                shutil.copyfileobj(file, new)
            new.flush()
            os.fchmod(new.fileno(), stat.S_IMODE(status.st_mode))
            os.fsync(new.fileno())
    except FileNotFoundError as error:
        raise Refused(f"{path!r} was deleted while the board was copied. Resume to try again.") from error
    os.fsync(into)
