"""A problem in a definition, with its position: `file:line:column: error: what is wrong; what would be right`.

An error keeps a definition from running. A warning does not: it is what an author would want to know.
"""

import difflib
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from ripstop.kernel.errors import DefinitionError
from ripstop.text.visible_text import visible_line

ERROR, WARNING = "error", "warning"
WIDEST = 160
"""Characters of a source line that are shown, at most."""


class Position(Struct, frozen=True):
    """Where something is in a file. Lines and columns count from 1, columns in characters."""

    file: str
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Problem(Struct, frozen=True):
    """What is wrong or odd in a definition, where, and what to do about it."""

    place: Position
    text: str
    hint: str = ""
    """What would be right, or what to do next; it can be an `Advice`."""
    severity: str = ERROR
    source: str = ""
    """The line of the file, where seeing it helps; then a caret points at the place."""

    def __str__(self) -> str:
        head = f"{self.place}: {self.severity}: {self.text}{f'; {self.hint}' if self.hint else ''}"
        return f"{visible_line(head)}\n{self.excerpt}" if self.source else visible_line(head)

    @property
    def excerpt(self) -> str:
        """The source line with a caret below the place, both as a terminal shows them."""
        from rich.cells import cell_len

        start = max(0, self.place.column - 1 - WIDEST // 2)
        line = self.source[start : start + WIDEST].expandtabs(1)
        before, after = line[: self.place.column - 1 - start], line[self.place.column - 1 - start :]
        shown = visible_line(before)
        return f"    {shown}{visible_line(after)}\n    {' ' * cell_len(shown)}^"

    def as_json(self) -> dict[str, Any]:
        return {
            "file": self.place.file,
            "line": self.place.line,
            "column": self.place.column,
            "severity": self.severity,
            "text": self.text,
            "hint": str(self.hint),
        }


class WrongDefinition(DefinitionError):
    """Everything that is wrong with a definition, at once."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Each problem once (what an alias repeats is one problem); those of one file together and in its order."""
    once = list(dict.fromkeys(problems))
    files = list(dict.fromkeys(problem.place.file for problem in once))
    return sorted(once, key=lambda p: (files.index(p.place.file), p.place.line, p.place.column))


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """The known name that is most like `name`, or nothing if none is alike by `cutoff`. Case does not matter."""
    names = {k.casefold(): k for k in known}
    near = difflib.get_close_matches(name[:80].casefold(), names, n=1, cutoff=cutoff)
    return names[near[0]] if near else ""


def with_stop(sentence: str) -> str:
    """A sentence that ends once: one that ends with a question gets no full stop."""
    return sentence if sentence.endswith(("?", ".")) else f"{sentence}."


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint for a name that is not known."""
    names = list(dict.fromkeys(known))
    near = nearest(name, names)
    if near:
        return f"did you mean {near!r}?"
    return f"known are {', '.join(names)}" if names else ""
