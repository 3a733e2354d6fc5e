"""A mistake in a definition, with its place: `file:line:column: what is wrong; what would be right`."""

import difflib
from collections.abc import Iterable

from msgspec import Struct

from ripstop.kernel.errors import DefinitionError


class Place(Struct, frozen=True):
    """Where something stands. Lines and columns count from 1."""

    file: str
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Problem(Struct, frozen=True):
    place: Place
    text: str
    hint: str = ""
    """What would be right, or what to do next."""

    def __str__(self) -> str:
        return f"{self.place}: {self.text}{f'; {self.hint}' if self.hint else ''}"


class WrongDefinition(DefinitionError):
    """Everything that is wrong with a definition, at once."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint for a name that is not known."""
    names = [str(k) for k in known]
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"known are {', '.join(names)}" if names else ""
