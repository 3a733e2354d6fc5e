"""Server-sent events, as far as chat servers use them: the data of each event, from bytes as they arrive.

- Lines end with LF, CR or CRLF; the text is UTF-8, and what is not becomes U+FFFD.
- Comments and fields other than `data` are skipped.
- What is kept while an event is incomplete is bounded: `TooLong` beyond `limit` bytes.
"""

_BOM = b"\xef\xbb\xbf"


class TooLong(Exception):
    """Raised for an event that is larger than the limit."""


class EventStream:
    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._begun = False
        self._after_cr = False
        self._line = bytearray()
        """The line that is not complete yet."""
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The data of every event that is complete now."""
        if self._after_cr and data[:1] == b"\n":
            data = data[1:]
            self._after_cr = False
        if not data:
            return []
        self._after_cr = data[-1:] == b"\r"
        *lines, rest = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        found: list[bytes] = []
        if lines and self._line:
            lines[0] = bytes(self._line) + lines[0]
            self._line.clear()
        for line in lines:
            self._take(line, found)
        self._line += rest
        if self._size + len(self._line) > self._limit:
            raise TooLong
        return found

    def end(self) -> list[bytes]:
        """What is left when the stream ends without the empty line that closes its last event."""
        found: list[bytes] = []
        self._take(bytes(self._line), found)
        self._take(b"", found)
        self._line.clear()
        return found

    def _take(self, line: bytes, found: list[bytes]) -> None:
        if not self._begun:
            line = line.removeprefix(_BOM)
            self._begun = True
        if not line:
            if self._data:
                found.append(b"\n".join(self._data))
            self._data, self._size = [], 0
            return
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
            self._size += len(line) + 1
            if self._size > self._limit:
                raise TooLong
