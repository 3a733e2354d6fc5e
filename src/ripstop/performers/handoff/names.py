"""Names and texts as they can be stored on disk, in any language."""

import unicodedata
from collections.abc import Iterator
from itertools import count

from ripstop.performers.tools.roots import is_name
from ripstop.runtime.performers import Refused

MAX_SIZE = 1_000_000
"""Bytes of one text."""
MAX_NAME = 220
"""Bytes of a name to which we may still add something; a file system takes 255."""


def is_plain(name: str) -> bool:
    return bool(name.strip()) and not name.startswith(".") and "/" not in name and is_name(name)


def checked(name: str, reserved: tuple[str, ...] = ()) -> str:
    if not is_plain(name) or name in reserved:
        ours = f", and not one of {', '.join(reserved)}" if reserved else ""
        raise Refused(f"{name!r} cannot be used: give a name without folders that is not hidden{ours}.")
    return name


def printable(name: str) -> str:
    """A name of any kind, as it can be shown."""
    return name.encode(errors="backslashreplace").decode().encode("unicode_escape").decode("ascii")


def safe(word: str) -> str:
    """A word of any language as a part of a file name. Marks (M) belong to the letters before them."""
    letters = unicodedata.normalize("NFC", word)[:60]
    fitting = (x if x.isalnum() or x == "-" or unicodedata.category(x)[0] == "M" else "_" for x in letters)
    return cut("".join(fitting), 180) or "untitled"


def cut(name: str, most: int) -> str:
    """Cut to a number of bytes, between two characters."""
    return name.encode()[:most].decode(errors="ignore")


def numbered(start: str, end: str) -> Iterator[str]:
    yield start + end
    yield from (f"{start}_{number}{end}" for number in count(2))


def decoded(name: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Refused(f"{name!r} is not UTF-8 text: byte {error.start} is wrong. Save it as UTF-8.") from error


def encoded(text: str) -> bytes:
    """A text as the bytes of a file. Raises `Refused` if it cannot be encoded."""
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise Refused(f"Character {error.start} of the text cannot be written as UTF-8.") from error
    if len(data) > MAX_SIZE:
        raise Refused(f"The text is too long for a document: {len(data)} bytes, at most {MAX_SIZE}.")
    return data
