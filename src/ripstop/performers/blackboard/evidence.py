"""What a report claims, checked in the run's workspace. A claim that cannot be checked does not hold; nothing raises.

- `file`: it exists, and has the hash that is named.
- `number`: the first number on a line that begins with a prefix (without one: in the file) is within its bounds. The
  full-width colon and the ASCII one are the same.
- `quote`: the words occur in the file; line breaks and other white space between them do not matter.
"""

import errno
import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from ripstop.performers.regular_files import opened_file, read_file
from ripstop.runtime.performers import Refused, TryAgain

from .contents import MAX_BYTES, MAX_TEXT
from .folders import PathMissing, opened, parts_of

_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")
_CHUNK = 1 << 20
MAX_SEARCHED = 200
"""Characters of a line in which a number is looked for."""


class EvidenceCheck(Struct, frozen=True):
    evidence: Literal["file", "number", "quote"]
    path: str
    sha256: str = ""
    prefix: str = ""
    at_least: float | None = None
    at_most: float | None = None
    text: str = ""


class _DoesNotHold(Exception):
    """With what is shown instead."""


def shown(workspace: Path, claim: EvidenceCheck) -> dict[str, Any]:
    """Whether a claim holds, and what there is to see."""
    try:
        parts = parts_of(claim.path)
        with opened(workspace, parts[:-1]) as above:
            return {"holds": True, "shown": _CHECKS[claim.evidence](above, parts[-1], claim)}
    except PathMissing:
        return {"holds": False, "shown": f"there is no file {claim.path!r}"}
    except _DoesNotHold as found:
        return {"holds": False, "shown": str(found)}
    except (Refused, TryAgain) as trouble:
        return {"holds": False, "shown": str(trouble)}


def _file(above: int, name: str, claim: EvidenceCheck) -> str:
    whole, length = hashlib.sha256(), 0
    with _readable(claim.path), opened_file(above, name) as (descriptor, _):
        while piece := os.read(descriptor, _CHUNK):
            whole.update(piece)
            length += len(piece)
            if length > MAX_BYTES:
                raise _DoesNotHold(f"{claim.path!r} is too large: more than {MAX_BYTES:,} bytes")
    found = f"{length:,} bytes, sha256 {whole.hexdigest()[:12]}…"
    if claim.sha256 and claim.sha256.strip().lower() != whole.hexdigest():
        raise _DoesNotHold(f"{found}, not {claim.sha256.strip()[:12]}…")
    return found


def _number(above: int, name: str, claim: EvidenceCheck) -> str:
    wanted = _one_colon(claim.prefix.strip())
    for position, line in enumerate(_text(above, name, claim).splitlines(), 1):
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
    raise _DoesNotHold(f"{claim.path!r} has no number{f' after {claim.prefix!r}' if wanted else ''}")


def _quote(above: int, name: str, claim: EvidenceCheck) -> str:
    text = _text(above, name, claim)
    words = claim.text.split()
    if not words:
        raise _DoesNotHold("the quote is empty")
    joined, lines = _joined(text)
    at = joined.find(" ".join(words))
    if at < 0:
        raise _DoesNotHold(f"{claim.path!r} does not have these words")
    return f"line {lines[joined.count(' ', 0, at)]}"


def _joined(text: str) -> tuple[str, list[int]]:
    """A text with one space between two words, and the line that each word is on."""
    words: list[str] = []
    lines: list[int] = []
    for number, line in enumerate(text.splitlines(), 1):
        found = line.split()
        words += found
        lines += [number] * len(found)
    return " ".join(words), lines


def _text(above: int, name: str, claim: EvidenceCheck) -> str:
    with _readable(claim.path):
        data, _ = read_file(above, name, MAX_TEXT)
    if len(data) > MAX_TEXT:
        raise _DoesNotHold(f"{claim.path!r} is too large: more than {MAX_TEXT:,} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise _DoesNotHold(f"{claim.path!r} is not UTF-8 text: byte {error.start} is wrong") from error


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
