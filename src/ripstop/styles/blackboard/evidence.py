"""What a report claims, checked in the run's workspace. A claim that cannot be checked does not hold; nothing raises.

- `file`: it exists, is not empty, and has the hash that is named.
- `number`: the number, as gates read it, behind a prefix (without one: alone on its line) is within its bounds. Several
  that differ contradict one another.
- `quote`: the words occur in the file; line breaks and other white space between them do not matter.
- `command`: run in the workspace, it ends with the exit code that the policy names. It is run as commands of agents
  are: no shell, the same list of programs, the same sandbox. It can write the workspace, but neither the board nor what
  a project is run by. A command that cannot be run does not hold.

A file is read once, however many claims are about it, and forgotten before the next one.
"""

import errno
import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from ripstop.engine.performers import Refused, TryAgain
from ripstop.security.files import make_folder
from ripstop.tools.commands.mounts import CommandFolders
from ripstop.tools.commands.runner import CommandResult, SandboxedPrograms
from ripstop.tools.shared_folder import PathMissing, opened, opened_file, parts_of, read_file
from ripstop.tools.workspace import SharedWorkspace

from ..checks import command_ends, file_exists, number_in, number_reaches
from ..key_lines import key_lines
from .calls import AnyFileClaim, ClaimResult, CommandClaim, EvidenceClaim, FileClaim, NumberClaim, QuoteClaim
from .contents import MAX_BYTES, MAX_TEXT

_CHUNK = 1 << 20
LAST_LINES, MAX_SHOWN = 5, 500
"""Of what a command printed, in lines and characters."""


class _DoesNotHold(Exception):
    """With what is shown instead."""


class _Looked:
    """A file, each view of which is made once. Raises `_DoesNotHold` and `Refused`."""

    def __init__(self, above: int, parts: tuple[str, ...]) -> None:
        self._above = above
        self._name = parts[-1]
        self.path = "/".join(parts)

    @cached_property
    def length_and_hash(self) -> tuple[int, str]:
        whole, length = hashlib.sha256(), 0
        with _readable(self.path), opened_file(self._above, self._name) as (descriptor, status):
            _check_size(self.path, status.st_size, MAX_BYTES)
            while piece := os.read(descriptor, _CHUNK):
                whole.update(piece)
                length += len(piece)
                _check_size(self.path, length, MAX_BYTES)
        return length, whole.hexdigest()

    @cached_property
    def lines(self) -> list[str]:
        with _readable(self.path):
            data, _ = read_file(self._above, self._name, MAX_TEXT)
        _check_size(self.path, len(data), MAX_TEXT)
        try:
            return data.decode().splitlines()
        except UnicodeDecodeError as error:
            raise _DoesNotHold(f"{self.path!r} is not UTF-8 text: byte {error.start} is wrong") from error

    @cached_property
    def joined(self) -> tuple[str, list[int]]:
        """The text with one space between two words, and the line that each word is on."""
        words: list[str] = []
        places: list[int] = []
        for number, line in enumerate(self.lines, 1):
            found = line.split()
            words += found
            places += [number] * len(found)
        return " ".join(words), places


# Claims about files


def check_files(workspace: Path, claims: Sequence[EvidenceClaim]) -> dict[int, ClaimResult]:
    """What comes of each claim about a file, by its position."""
    found: dict[int, ClaimResult] = {}
    by_file: dict[tuple[str, ...], list[tuple[int, AnyFileClaim]]] = {}
    for position, claim in enumerate(claims):
        if isinstance(claim, CommandClaim):
            continue
        try:
            by_file.setdefault(parts_of(claim.path), []).append((position, claim))
        except Refused as refusal:
            found[position] = ClaimResult(False, str(refusal))
    for parts, placed in by_file.items():
        results = _results_of_file(workspace, parts, [claim for _, claim in placed])
        found |= {position: result for (position, _), result in zip(placed, results, strict=True)}
    return found


def _results_of_file(workspace: Path, parts: tuple[str, ...], claims: list[AnyFileClaim]) -> list[ClaimResult]:
    try:
        with opened(workspace, parts[:-1]) as above:
            file = _Looked(above, parts)
            return [_result(file, claim) for claim in claims]
    except PathMissing:
        return [ClaimResult(False, f"there is no file {'/'.join(parts)!r}")] * len(claims)
    except (Refused, TryAgain) as trouble:
        return [ClaimResult(False, str(trouble))] * len(claims)


def _result(file: _Looked, claim: AnyFileClaim) -> ClaimResult:
    try:
        match claim:
            case FileClaim():
                return ClaimResult(True, _file(file, claim))
            case NumberClaim():
                return ClaimResult(True, _number(file, claim))
            case QuoteClaim():
                return ClaimResult(True, _quote(file, claim))
    except (_DoesNotHold, Refused) as found:
        return ClaimResult(False, str(found))


def _file(file: _Looked, claim: FileClaim) -> str:
    length, sha = file.length_and_hash
    there = file_exists(file.path, length)
    if not there.holds and not claim.sha256:
        raise _DoesNotHold(there.shown)
    found = f"{there.shown}, sha256 {sha[:12]}…"
    if claim.sha256 and claim.sha256.strip().lower() != sha:
        raise _DoesNotHold(f"{found}, not {claim.sha256.strip()[:12]}…")
    return found


def _number(file: _Looked, claim: NumberClaim) -> str:
    found: dict[float, int] = {}
    for line in key_lines(file.lines, claim.prefix):
        if (stated := number_in(line.value)) is not None:
            found.setdefault(stated, line.number)
    if not found:
        where = f"after {claim.prefix!r}" if claim.prefix.strip() else "on a line of its own"
        raise _DoesNotHold(f"{file.path!r} has no number {where}")
    (number, position), *others = found.items()
    if others:
        both = " and ".join(f"{one:g} (line {at})" for one, at in ((number, position), others[0]))
        raise _DoesNotHold(f"{file.path!r} contradicts itself: {both}")
    check = number_reaches(claim.prefix, number, claim.at_least, claim.at_most)
    told = check.shown.replace(f"{number:g}", f"{number:g} (line {position})", 1)
    if not check.holds:
        raise _DoesNotHold(told)
    return told


def _quote(file: _Looked, claim: QuoteClaim) -> str:
    joined, places = file.joined
    words = claim.text.split()
    if not words:
        raise _DoesNotHold("the quote is empty")
    at = joined.find(" ".join(words))
    if at < 0:
        raise _DoesNotHold(f"{file.path!r} does not have these words")
    return f"line {places[joined.count(' ', 0, at)]}"


def _check_size(path: str, length: int, most: int) -> None:
    if length > most:
        raise _DoesNotHold(f"{path!r} is too large: more than {most:,} bytes")


@contextmanager
def _readable(path: str) -> Iterator[None]:
    """What the system says about the file itself, not about its folder."""
    try:
        yield
    except FileNotFoundError as error:
        raise _DoesNotHold(f"there is no file {path!r}") from error
    except OSError as error:
        is_link = error.errno == errno.ELOOP
        why = "it is a symbolic link, and links are not followed" if is_link else os.strerror(error.errno or 0)
        raise _DoesNotHold(f"{path!r} cannot be read: {why}") from error


# Claims about commands


async def check_commands(
    runner: SandboxedPrograms, workspace: Path, boards: Sequence[Path], claims: Sequence[EvidenceClaim]
) -> dict[int, ClaimResult]:
    """What comes of each claim about a command, by its position. `boards`: folders that commands must not write."""
    return {
        position: await _run(runner, workspace, boards, claim)
        for position, claim in enumerate(claims)
        if isinstance(claim, CommandClaim)
    }


async def _run(runner: SandboxedPrograms, workspace: Path, boards: Sequence[Path], claim: CommandClaim) -> ClaimResult:
    try:
        result = await runner.run(list(claim.command), _folders(workspace, boards))
    except (Refused, OSError) as error:
        return ClaimResult(False, f"the command was not run: {error}")
    ended = None if result.stopped else result.exit_code
    check = command_ends(claim.command, claim.exit_code, ended, _more(result))
    return ClaimResult(check.holds is True, check.shown)


def _folders(workspace: Path, boards: Sequence[Path]) -> CommandFolders:
    make_folder(workspace)
    real = Path(os.path.realpath(workspace))
    shared = SharedWorkspace(real, tuple(os.path.realpath(board) for board in boards))
    return CommandFolders(workspace=real, folder=real, writable=(real,), shared=shared)


def _more(result: CommandResult) -> str:
    """Why a command was stopped, and what it printed last."""
    lines = [line.strip() for line in result.output.splitlines() if line.strip()]
    last = " | ".join(lines[-LAST_LINES:])[-MAX_SHOWN:]
    return ": ".join(filter(None, (f"stopped: {result.stopped}" if result.stopped else "", last)))
