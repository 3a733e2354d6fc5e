"""A server's list of tools, read leniently: what is wrong with one tool leaves out that tool, and is said."""

from collections.abc import Mapping, Sequence
from typing import Any

from .card import SEPARATOR, ToolCard, Unusable, clean, read_card

MOST_PAGES = 20
MOST_TOOLS = 200
MOST_NOTES = 50


class ToolListing:
    def __init__(self, server: str) -> None:
        self._server = server
        self.cards: dict[str, ToolCard] = {}
        """By the name that the server uses."""
        self.notes: list[str] = []
        """What was left out, and why."""

    @property
    def is_full(self) -> bool:
        return len(self.cards) >= MOST_TOOLS

    def take(self, tools: Sequence[Any]) -> list[ToolCard]:
        """Read a page. Returns the tools of it that can be used."""
        taken = []
        for raw in tools:
            if self.is_full:
                self.note(f"it has more than {MOST_TOOLS} tools; the others are left out")
                break
            if card := self._read(raw):
                self.cards[card.tool] = card
                taken.append(card)
        return taken

    def note(self, text: str) -> None:
        if len(self.notes) < MOST_NOTES and text not in self.notes:
            self.notes.append(text)

    def _read(self, raw: Any) -> ToolCard | None:
        if not isinstance(raw, Mapping):
            self.note("an entry of its list is not a tool")
            return None
        shown = clean(str(raw.get("name")), 80)
        try:
            card = read_card(self._server, raw)
        except Unusable as error:
            self.note(f"{shown}: left out, because {error}")
            return None
        except RecursionError:
            self.note(f"{shown}: left out, because it is nested too deeply")
            return None
        if card.tool in self.cards or any(card.name == other.name for other in self.cards.values()):
            self.note(f"{shown}: listed twice; the first is used")
            return None
        return card


def server_of(name: str) -> str:
    """The server that a tool's name names; empty if it is not the name of a server's tool."""
    server, separator, _ = name.partition(SEPARATOR)
    return server if separator else ""
