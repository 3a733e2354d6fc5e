"""What a command prints, as far as an agent is told: its beginning and its end, and how much is missing between."""

import re

HEAD, TAIL = 12_000, 12_000
"""Bytes that are kept of the beginning and of the end."""
MOST = 64 * 1024 * 1024
"""Bytes; a command that prints more is stopped."""

_CREDENTIALS = re.compile(r"(://)[^\s/@:]*:[^\s/@]+@")


class BoundedOutput:
    """Takes any number of bytes, and keeps a bounded number of them."""

    def __init__(self) -> None:
        self.total = 0
        self._head = bytearray()
        self._tail = bytearray()

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = HEAD - len(self._head)
        self._head += data[:room]
        self._tail += data[max(room, 0) :]
        if len(self._tail) > 2 * TAIL:  # cut now and then, not with every piece
            del self._tail[:-TAIL]

    @property
    def is_too_much(self) -> bool:
        return self.total > MOST

    def text(self) -> str:
        """What is kept; passwords in addresses (`https://user:password@…`) are left out."""
        tail = bytes(self._tail[-TAIL:])
        missing = self.total - len(self._head) - len(tail)
        cut = f"\n[… {missing} bytes left out …]\n" if missing else ""
        parts = bytes(self._head).decode(errors="replace") + cut + tail.decode(errors="replace")
        if not missing:
            parts = (bytes(self._head) + tail).decode(errors="replace")
        return _CREDENTIALS.sub(r"\1…@", parts)
