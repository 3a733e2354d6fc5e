"""Texts of a person that could not be recorded, or not yet: in `.ripstop/kept`, for their owner alone.

Nothing that a person wrote is lost because somebody else was quicker, an editor failed or the process was killed.
"""

import os
import re
from itertools import count
from pathlib import Path

from .private_files import OURS, PRIVATE_FILE, link_on_the_way, make_folder

KEPT = Path(OURS) / "kept"
LONGEST_NAME = 80
_ODD = re.compile(r"[^\w.-]+")


def keep_text(text: str, name: str) -> Path:
    """Write a text to a new private file, named after what it is about. Raises `OSError`."""
    link = link_on_the_way(KEPT)
    if link:  # a project can ship one
        raise OSError(f"{link} is a symbolic link, and nothing is written behind it")
    make_folder(KEPT)
    plain = _ODD.sub("-", name).strip(".-")[-LONGEST_NAME:] or "text"
    for number in count(1):
        path = KEPT / (f"{plain}.md" if number == 1 else f"{plain}-{number}.md")
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE)
        except FileExistsError:
            continue
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode("utf-8", "replace"))
            file.flush()
            os.fsync(file.fileno())
        return path
    raise AssertionError("there is always a next number")
