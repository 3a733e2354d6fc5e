"""What a report claims, checked in the run's workspace. A claim that cannot be checked does not hold; nothing raises.

- `file`: it exists, and has the hash that is named.
- `number`: the first number on a line that begins with a prefix (without one: in the file) is within its bounds. The
  full-width colon and the ASCII one are the same.
- `quote`: the words occur in the file; line breaks and other white space between them do not matter.

A file is read once, however many claims are about it, and forgotten before the next one.
"""

import errno
import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from ripstop.engine.performers import Refused, TryAgain
from ripstop.security.files import make_folder
from ripstop.tools.commands.mounts import CommandFolders
from ripstop.tools.commands.runner import CommandResult, CommandRunner
from ripstop.tools.shared_folder import PathMissing, opened, opened_file, parts_of, read_file
from ripstop.tools.workspace import SharedWorkspace

from .contents import MAX_BYTES, MAX_TEXT

_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")
_CHUNK = 1 << 20
MAX_SEARCHED = 200
"""Characters of a line in which a number is looked for."""


class EvidenceCheck(Struct, frozen=True):
    evidence: Literal["file", "number", "quote", "command"]
    path: str = ""
    sha256: str = ""
    prefix: str = ""
    at_least: float | None = None
    at_most: float | None = None
    text: str = ""
    command: tuple[str, ...] = ()
    exit_code: int = 0


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


def shown(workspace: Path, claims: Sequence[EvidenceCheck]) -> list[dict[str, Any]]:
    """Whether each claim about files holds, and what there is to see; empty for those about commands."""
    found: list[dict[str, Any]] = [{} for _ in claims]
    by_file: dict[tuple[str, ...], list[int]] = {}
    for position, claim in enumerate(claims):
        if claim.evidence == "command":
            continue  # `command_evidence.py`
        try:
            by_file.setdefault(parts_of(claim.path), []).append(position)
        except Refused as refusal:
            found[position] = _not_held(str(refusal))
    for parts, positions in by_file.items():
        answers = _shown_of_file(workspace, parts, [claims[position] for position in positions])
        for position, answer in zip(positions, answers, strict=True):
            found[position] = answer
    return found


def _shown_of_file(workspace: Path, parts: tuple[str, ...], claims: list[EvidenceCheck]) -> list[dict[str, Any]]:
    try:
        with opened(workspace, parts[:-1]) as above:
            file = _Looked(above, parts)
            return [_shown(file, claim) for claim in claims]
    except PathMissing:
        return [_not_held(f"there is no file {'/'.join(parts)!r}")] * len(claims)
    except (Refused, TryAgain) as trouble:
        return [_not_held(str(trouble))] * len(claims)


def _shown(file: _Looked, claim: EvidenceCheck) -> dict[str, Any]:
    try:
        return {"holds": True, "shown": _CHECKS[claim.evidence](file, claim)}
    except (_DoesNotHold, Refused) as found:
        return _not_held(str(found))


def _not_held(why: str) -> dict[str, Any]:
    return {"holds": False, "shown": why}


def _file(file: _Looked, claim: EvidenceCheck) -> str:
    length, sha = file.length_and_hash
    found = f"{length:,} bytes, sha256 {sha[:12]}…"
    if claim.sha256 and claim.sha256.strip().lower() != sha:
        raise _DoesNotHold(f"{found}, not {claim.sha256.strip()[:12]}…")
    return found


def _number(file: _Looked, claim: EvidenceCheck) -> str:
    wanted = _one_colon(claim.prefix.strip())
    for position, line in enumerate(file.lines, 1):
        bare = line.lstrip()
        if _one_colon(bare[: len(wanted)]) != wanted:
            continue
        found = _NUMBER.search(bare[len(wanted) :][:MAX_SEARCHED])
        if found is None:
            continue
        number = float(found[0])
        told = f"{number:g} (line {position})"
        if claim.at_least is not None and number < claim.at_least:
            raise _DoesNotHold(f"{told}, which is less than {claim.at_least:g}")
        if claim.at_most is not None and number > claim.at_most:
            raise _DoesNotHold(f"{told}, which is more than {claim.at_most:g}")
        return told
    raise _DoesNotHold(f"{file.path!r} has no number{f' after {claim.prefix!r}' if wanted else ''}")


def _quote(file: _Looked, claim: EvidenceCheck) -> str:
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


def _one_colon(text: str) -> str:
    return text.replace("：", ":")


_CHECKS = {"file": _file, "number": _number, "quote": _quote}


# Evidence by a command: it is run in the run's workspace, and has to end with the exit code that the policy names.
#
# It is run as commands of agents are: no shell, the same list of programs, the same sandbox. It can write the workspace,
# but neither the board nor what a project is run by. A command that cannot be run does not hold; nothing raises.


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
    return {"holds": result.exit_code == claim.exit_code, "shown": _command_evidence_shown(result)}


def _folders(workspace: Path, boards: Sequence[Path]) -> CommandFolders:
    make_folder(workspace)
    real = Path(os.path.realpath(workspace))
    shared = SharedWorkspace(real, tuple(os.path.realpath(board) for board in boards))
    return CommandFolders(folder=real, writable=(real,), shared=shared)


def _command_evidence_shown(result: CommandResult) -> str:
    ended = f"exit code {result.exit_code}" if not result.stopped else f"stopped: {result.stopped}"
    lines = [line.strip() for line in result.output.splitlines() if line.strip()]
    last = " | ".join(lines[-LAST_LINES:])
    return f"{ended}: {last[-MAX_SHOWN:]}" if last else ended
