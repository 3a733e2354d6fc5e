"""Texts for people that say what to do next, with the step as data, so that each face names it in its own way.

No text below the faces names a command of the shell: its reader may sit before a web page, or write a program. An
`Advice` is a plain `str` without commands for all who know no better; a face that has a name for a step puts it in:

    Advice("The disk is full. Make room, then ", NextStep("resume", "resume", "`{}`"), ".")

is "The disk is full. Make room, then resume." and, on the command line, "… Make room, then `ripstop resume`."
"""

from collections.abc import Callable
from typing import NamedTuple


class NextStep(NamedTuple):
    action: str
    """What to do; a face knows whether it has a name for it."""
    plain: str
    """The words for it where there is no name."""
    named: str = "{}"
    """The words where there is one; `{}` stands for the name."""
    subject: str = ""
    """What it is done to: a run, a server, an address."""


class Advice(str):
    """A text with next steps in it. As a part of any text but another `Advice` it is only its plain words.

    What is recorded, or encoded by msgspec, has to be `str(advice)`.
    """

    parts: tuple[str | NextStep, ...]

    def __new__(cls, *parts: str | NextStep) -> "Advice":
        flat = tuple(one for part in parts for one in (part.parts if isinstance(part, Advice) else (part,)))
        new = super().__new__(cls, "".join(one.plain if isinstance(one, NextStep) else one for one in flat))
        new.parts = flat
        return new

    @property
    def steps(self) -> tuple[NextStep, ...]:
        return tuple(part for part in self.parts if isinstance(part, NextStep))

    def said_with(self, name: Callable[[NextStep], str]) -> str:
        """The text with the names of its steps; `name` returns an empty text for a step that has none."""
        return "".join(_said(part, name) for part in self.parts)


def _said(part: str | NextStep, name: Callable[[NextStep], str]) -> str:
    if not isinstance(part, NextStep):
        return part
    called = name(part)
    return part.named.format(called) if called else part.plain


VERIFY = NextStep("verify", "Verifying the journal shows more", "`{}` shows more")
