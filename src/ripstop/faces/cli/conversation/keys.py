"""What is typed, as keys: characters, names of special keys, and whole texts that are pasted.

A terminal sends bytes in pieces of any size: a character, or the sequence of one key, can be cut anywhere. What is not
understood is dropped, so that no sequence gets into a text.
"""

import codecs
import re
from typing import NamedTuple

PASTE_BEGINS, PASTE_ENDS = "\x1b[200~", "\x1b[201~"
LONGEST_PASTE = 100_000
LONGEST_SEQUENCE = 32
NAMES = {
    "\x01": "home",
    "\x02": "left",
    "\x04": "end of input",
    "\x05": "end",
    "\x06": "right",
    "\x08": "backspace",
    "\n": "enter",
    "\x0b": "cut to end",
    "\x0c": "redraw",
    "\r": "enter",
    "\x0e": "down",
    "\x10": "up",
    "\x15": "cut to start",
    "\x17": "cut word",
    "\x7f": "backspace",
    "\x1b\r": "newline",
    "\x1b\n": "newline",
    "\x1bb": "word left",
    "\x1bf": "word right",
    "\x1b\x7f": "cut word",
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1b[C": "right",
    "\x1b[D": "left",
    "\x1b[H": "home",
    "\x1b[F": "end",
    "\x1bOA": "up",
    "\x1bOB": "down",
    "\x1bOC": "right",
    "\x1bOD": "left",
    "\x1bOH": "home",
    "\x1bOF": "end",
    "\x1b[1~": "home",
    "\x1b[3~": "delete",
    "\x1b[4~": "end",
    "\x1b[7~": "home",
    "\x1b[8~": "end",
    "\x1b[1;5C": "word right",
    "\x1b[1;5D": "word left",
    "\x1b[1;3C": "word right",
    "\x1b[1;3D": "word left",
}
_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;?<=>]*[ -/]*[@-~]|O.|[^\[O])", re.DOTALL)


class Key(NamedTuple):
    name: str = ""
    """A special key; empty: `text` was typed or pasted."""
    text: str = ""


class KeyReader:
    """Makes keys of the bytes of a terminal."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("ignore").decode
        self._rest = ""
        self._pasted: str | None = None

    def read(self, piece: bytes) -> list[Key]:
        self._rest += self._decode(piece)
        keys: list[Key] = []
        while self._rest:
            key = self._paste() if self._pasted is not None else self._key()
            if key is None:
                break
            if key.name or key.text:
                keys.append(key)
        return keys

    def _paste(self) -> Key | None:
        assert self._pasted is not None
        text, ends, rest = self._rest.partition(PASTE_ENDS)
        if not ends:
            kept = next((n for n in range(len(PASTE_ENDS) - 1, 0, -1) if text.endswith(PASTE_ENDS[:n])), 0)
            text, rest = text[: len(text) - kept], text[len(text) - kept :]
        self._pasted, self._rest = (self._pasted + text)[:LONGEST_PASTE], rest
        if not ends:
            return None
        pasted, self._pasted = self._pasted, None
        return Key(text=pasted.replace("\r\n", "\n").replace("\r", "\n"))

    def _key(self) -> Key | None:
        first = self._rest[0]
        if first != "\x1b":
            self._rest = self._rest[1:]
            return Key(NAMES.get(first, "")) if first < " " or first == "\x7f" else Key(text=first)
        found = _SEQUENCE.match(self._rest)
        if found is None:
            if len(self._rest) > LONGEST_SEQUENCE:
                self._rest = ""
            return None
        self._rest = self._rest[found.end() :]
        if found[0] == PASTE_BEGINS:
            self._pasted = ""
            return Key()
        return Key(NAMES.get(found[0], ""))
