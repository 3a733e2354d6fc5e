"""Folders opened one from the other, below a root that a user chose. Paths are relative, and no link is followed.

The root itself may be behind a link. Below it, nothing that is swapped while we walk can lead out.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ripstop.runtime.performers import Refused

from .file_errors import in_words
from .tools.roots import MAX_PARTS, MAX_PATH, enter, is_name


class PathMissing(Refused):
    """There is no such folder or file."""


@contextmanager
def opened(root: Path, parts: tuple[str, ...], create: bool = False) -> Iterator[int]:
    """A descriptor of a folder below the root. Raises `PathMissing`, `Refused` and `TryAgain`, never `OSError`."""
    for part in parts:
        if part in ("", ".", "..") or "/" in part or "\0" in part:
            raise Refused(
                f"{'/'.join(parts)[:MAX_PATH]!r} cannot be used as a path: {part[:MAX_PATH]!r} in it is not a name."
            )
    place = root.joinpath(*parts)
    try:
        current = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise PathMissing(f"There is no folder {str(root)!r}. Put it back, or choose another.") from error
    except OSError as error:
        raise in_words(root, error) from error
    try:
        for part in parts:
            try:
                deeper = enter(current, part, create)
            except FileNotFoundError as error:
                raise PathMissing(f"There is no folder {str(place)!r}. Put it back, or choose another.") from error
            except Refused as refusal:
                raise Refused(f"{str(place)!r} cannot be used: {refusal} Move away what is there.") from refusal
            os.close(current)
            current = deeper
        yield current
    except OSError as error:
        raise in_words(place, error) from error
    finally:
        os.close(current)


def parts_of(path: str) -> tuple[str, ...]:
    """The names in a relative path. Raises `Refused`."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    is_wrong = ".." in parts or not all(map(is_name, parts)) or path.startswith("/")
    if not parts or is_wrong or len(parts) > MAX_PARTS or len(path) > MAX_PATH:
        raise Refused(f"{path[:MAX_PATH]!r} cannot be used as a path; give one that stays below its folder.")
    return tuple(parts)
