"""Names of people and agents, wherever one enters: who does something, and who is to do it.

A name is shown on one line, next to others, and is part of files that other programs read. So it has no characters
that act on a terminal or are not seen; a joiner between letters is ordinary text.
"""

import unicodedata

from .errors import UsageError
from .plain import shown

MAX_NAME = 200
"""Characters of a name; the id of a run can be one."""
_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode's categories of control and format characters, lone surrogates, and separators of lines and paragraphs."""
_JOINERS = "\u200c\u200d"


def name_problem(name: str) -> str:
    """Why this cannot be the name of a person or an agent; empty if it can. An empty name is nobody's, and can."""
    if len(name) > MAX_NAME:
        return f"{shown(name)} is too long for a name: {len(name):,} characters, at most {MAX_NAME}"
    for char in name:
        if unicodedata.category(char) in _UNSEEN and char not in _JOINERS:
            return f"{shown(name)} cannot be a name: U+{ord(char):04X} in it is a character that is not shown"
    return ""


def checked_name(name: str) -> str:
    """The name. Raises `UsageError` if it cannot be one."""
    if problem := name_problem(name):
        raise UsageError(f"{problem}.")
    return name
