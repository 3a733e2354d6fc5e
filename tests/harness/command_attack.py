"""One attack by a command, and what must come of it. The texts of attacks are filled in by `command_attacks.World`."""

import re
from typing import Any, NamedTuple


class Attack(NamedTuple):
    kind: str
    command: Any
    files: dict[str, str] = {}
    """Written into the project before."""
    folder: str = "."
    works: str = ""
    """Harmless: what it has to print, with exit code 0."""
    seconds: float = 10.0
    refused: bool = False
    """Whether it must not even be started."""
    stopped: bool = False
    """Whether it has to be stopped before its end."""


def python(code: str) -> list[str]:
    # in two pieces, because a traceback can quote the line
    said = re.sub(r"(?<!b)'ESCAPED'", "'ESC' 'APED'", code)
    return ["python3", "-c", f"import os, shutil, sys\n{said}"]
