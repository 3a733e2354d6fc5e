"""Tools that the user has agreed to, as they were then: one file per user, `tool_pins.json`.

The whole card is kept, so that what agents may call is known without starting a server, and a change can be shown.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec

from ripstop.files.user_folders import state_folder
from ripstop.kernel.errors import UsageError
from ripstop.security.user_file import UserFile

from .card import ToolCard
from .server import ServerSpec

FILE = "tool_pins.json"


class _Pinned(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    project: str
    started: str
    """The server's address, or its command with NUL between its parts."""
    cards: tuple[ToolCard, ...]
    pins: tuple[str, ...]

    @property
    def identity(self) -> tuple[str, str, str]:
        return self.name, self.project, self.started


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: Literal[1] = 1
    servers: tuple[_Pinned, ...] = ()


class Pins:
    def __init__(self, folder: Path | None = None) -> None:
        """`folder`: where the file is, if not in the user's own state folder."""
        where = folder or state_folder()
        self._file = UserFile(where / FILE, "ripstop tools trust SERVER") if where else None

    def cards(self, server: ServerSpec) -> dict[str, ToolCard]:
        """The tools of a server that the user has agreed to, by the server's name for them.

        Raises `UsageError` if the file cannot be trusted. A pin by what an earlier version declared counts no more.
        """
        known = next((one for one in self._servers() if one.identity == server.identity), None)
        pairs = zip(known.cards, known.pins, strict=False) if known else ()
        return {card.tool: card for card, pin in pairs if card.pin == pin}

    def remember(self, server: ServerSpec, cards: Iterable[ToolCard]) -> None:
        """Let these be the tools of a server that the user agrees to. Raises `UsageError`."""
        if self._file is None:
            raise UsageError("Tools that you agree to are remembered in your home, but HOME is not set.")
        agreed = tuple(cards)
        pinned = _Pinned(*server.identity, agreed, tuple(card.pin for card in agreed))
        try:
            with self._file.locked():
                others = [one for one in self._servers() if one.identity != server.identity]
                self._file.write(_File(servers=(*others, pinned)))
        except OSError as error:
            raise UsageError(f"{self._file.path} cannot be written: {error.strerror}.") from error

    def _servers(self) -> tuple[_Pinned, ...]:
        found = self._file.read(_File) if self._file else None
        return found.servers if found else ()
