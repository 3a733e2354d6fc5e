r"""The words of a reply that is still coming, without the JSON around them.

Agents answer in prose, or with an object such as `{"content": "…", "decisions": {…}}`. People who watch see the prose
before the object, and the text of "content", or of another field, as it grows, decoded; the rest of the object and the
fence around it are left out, and in both what is only thought. A thought whose opening tag a server does not send is
known when it is over: then its words have been shown.

Everything is one pass: each piece is read once, and only what cannot be decided yet is held back (half an escape,
`<thi`, an opening brace), so that a reply costs time in proportion to its length. Of fences only backticks are held
back, anywhere in a line: many replies end with a tilde, which would then never be shown.
"""

import re
from functools import cache

import msgspec

from .reply import AT_BEGINNING, CHANNEL_BEGINS, CHANNEL_ENDS, FINAL_CHANNEL, IN_CHANNELS, THINK_NAME

_PROSE = re.compile(r"(?:[^{`<]++|<(?=[^tT]))++")
_RUN = re.compile(r'[^"\\]+')
_SKIPPED = re.compile(r'[^"{}\[\],:\\]+')
_FENCE = re.compile(r"`{3,}[ \t]*\w*\s*")
_CLOSING_FENCE = re.compile(r"\s*`*")
_OPENING = re.compile(r"\{\s*")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([^u]))", re.DOTALL)
_HALF_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_decode_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_text = msgspec.json.Decoder(str).decode
LONGEST_VALUE = 40
"""Characters that are kept of a field beside the words for people."""
LONGEST_HELD = 200
"""Characters that are held back at most; then they are words."""
_BLANKS = 100
"""Characters before the first tag that are held back with it."""
_OPENING_TAG = re.compile(
    rf"\s{{0,{_BLANKS}}}+(?:{'|'.join(f'({re.escape(opening)})' for opening, _ in AT_BEGINNING)})", re.IGNORECASE
)
_CLOSINGS = tuple(re.compile(re.escape(closing), re.IGNORECASE) for _, closing in AT_BEGINNING)
_HALF_CLOSING = tuple(closing[0] for _, closing in AT_BEGINNING)
_THINK = re.compile(rf"<{THINK_NAME}>", re.IGNORECASE)
_HALF_THINK = re.compile(r"<(t(h(i(n(k[\w-]*)?)?)?)?)?", re.IGNORECASE)
_PLAIN = re.compile(r"(?:[^<]++|<(?=[^tT]))++")
_CHANNEL_BEGINS, _CHANNEL_ENDS = re.compile(CHANNEL_BEGINS), re.compile(CHANNEL_ENDS)
_ROLE, _CHANNEL = "<|start|>assistant", "<|channel|>"


def _may_become(text: str, tag: str) -> bool:
    """Whether a text is the beginning of a tag, and not yet the tag."""
    return len(text) < len(tag) and tag.casefold().startswith(text.casefold())


class _FinalChannel:
    """Of a reply in channels the final one; of any other all of it."""

    def __init__(self) -> None:
        self._held = ""
        self._is_in_channels: bool | None = None
        self._name: str | None = None
        """The channel that it is in."""

    def add(self, piece: str) -> str:
        if self._is_in_channels is False:
            return piece
        text, self._held = self._held + piece, ""
        if self._is_in_channels is None:
            if IN_CHANNELS.match(text) is None:
                blanks = len(text) - len(text.lstrip())
                if blanks <= _BLANKS and self._may_be(text[blanks:]):
                    self._held = text
                    return ""
                self._is_in_channels = False
                return text
            self._is_in_channels = True
        return self._words(text)

    def _may_be(self, text: str) -> bool:
        after = text.removeprefix(_ROLE).lstrip() if text.startswith(_ROLE) else text
        return _may_become(after, _CHANNEL) or _may_become(text, _ROLE)

    def end(self) -> str:
        held, self._held = self._held, ""
        return held if not self._is_in_channels or self._name == FINAL_CHANNEL else ""

    def _words(self, text: str) -> str:
        words, at = list[str](), 0
        while True:
            pattern = _CHANNEL_BEGINS if self._name is None else _CHANNEL_ENDS
            found = pattern.search(text, at)
            end = found.start() if found else self._sure(text, at)
            if self._name == FINAL_CHANNEL:
                words.append(text[at:end])
            if found is None:
                self._held = text[end:]
                return "".join(words)
            is_head = self._name is None
            self._name, at = (found["name"], found.end()) if is_head else (None, found.start())

    def _sure(self, text: str, at: int) -> int:
        """Up to where a text holds no part of a mark that is still coming."""
        mark = text.rfind(_CHANNEL, at) if self._name is None else -1
        half = mark if mark >= 0 else text.rfind("<", at)
        return half if half >= 0 and len(text) - half < LONGEST_HELD else len(text)


class UnfinishedText:
    """Takes a text piece by piece and gives the words that are new, without what is only thought."""

    def __init__(self) -> None:
        self._channel = _FinalChannel()
        self._held = ""
        self._step = self._beginning
        self._closing, self._half_closing = _THINK, "<"
        """How the thought ends that it is in."""

    def add(self, piece: str) -> str:
        """The words for people in this piece; empty while it has none."""
        return self._take(self._channel.add(piece))

    def end(self) -> str:
        """The words that were held back for a tag that has not come; the text is over."""
        said = self._take(self._channel.end())
        held, self._held = self._held, ""
        return said if self._step == self._thought else said + held

    def _take(self, piece: str) -> str:
        text, self._held, said = self._held + piece, "", list[str]()
        at = 0
        while at < len(text):
            step = self._step
            end = self._advance(text, at, said)
            if end == at and step == self._step:  # cannot be decided before more has come
                self._held = text[at:]
                break
            at = end
        return "".join(said)

    def _advance(self, text: str, at: int, said: list[str]) -> int:
        return self._step(text, at, said)

    def _beginning(self, text: str, at: int, said: list[str]) -> int:
        opening = _OPENING_TAG.match(text, at)
        if opening:
            index = opening.lastindex or 1
            return self._think(opening.end(), _CLOSINGS[index - 1], _HALF_CLOSING[index - 1])
        begun = text[at:].lstrip()
        blanks = len(text) - at - len(begun)
        if blanks <= _BLANKS and any(_may_become(begun, opening) for opening, _ in AT_BEGINNING):
            return at
        self._step = self._prose
        return at

    def _prose(self, text: str, at: int, said: list[str]) -> int:
        plain = _PLAIN.match(text, at)
        if plain:
            said.append(plain[0])
            return plain.end()
        return self._tag(text, at, said)

    def _tag(self, text: str, at: int, said: list[str]) -> int:
        """What begins with `<`: a thought, or words."""
        whole = _THINK.match(text, at)
        if whole:
            return self._think(whole.end(), re.compile(re.escape(f"</{whole[0][1:]}"), re.IGNORECASE), "<")
        half = _HALF_THINK.match(text, at)
        if half and half.end() == len(text) and len(text) - at < LONGEST_HELD:
            return at
        said.append(text[at])
        return at + 1

    def _think(self, end: int, closing: "re.Pattern[str]", half: str) -> int:
        self._closing, self._half_closing, self._step = closing, half, self._thought
        return end

    def _thought(self, text: str, at: int, said: list[str]) -> int:
        end = self._closing.search(text, at)
        if end is None:
            half = text.rfind(self._half_closing, at)
            return len(text) if half < 0 or len(text) - half >= LONGEST_HELD else half
        self._step = self._prose
        return end.end()


class UnfinishedReply(UnfinishedText):
    """Takes a reply piece by piece and gives the words that are new."""

    def __init__(self, key: str = "content", beside: tuple[str, ...] = ()) -> None:
        """
        Args:
            key: The field of the object whose text is for people.
            beside: Fields that say what is done with that text. With these, the text of the first object is all that
                is for people: no prose around it, and no other object.
        """
        super().__init__()
        self.fields: dict[str, str] = {}
        """Those beside it that are written: a text, or another value as JSON; of a list or an object how it begins."""
        self._beside = beside
        self._shown = key
        self._usual = _usual(key)
        self._named = f'"{key}"'
        self._words = UnfinishedText()
        """The text for people, decoded, without the thoughts in it."""
        self._is_new = True
        self._depth = 0
        self._key = ""
        self._is_value = False
        self._value = ""
        """What is written of a field beside it."""
        self._half = ""
        """The first half of a character beyond U+FFFF."""

    def add(self, piece: str) -> str:
        """The words for people in this piece; empty while it has none."""
        if self._is_new:
            self._is_new = False
            words = self._whole(piece)
            if words is not None:
                self._step = self._after
                return words
        return super().add(piece)

    def _advance(self, text: str, at: int, said: list[str]) -> int:
        return self._step(text, at, said if self._step == self._content or not self._beside else [])

    def _whole(self, text: str) -> str | None:
        """The words of a reply that is nothing but one object, as most are; `None` for any other.

        Read at once, because every reply of a long run is read for its outline.
        """
        if not (text.startswith('{"') and text.endswith("}")) or text.count(self._named) != 1:
            return None
        try:
            found = _decode_object(text)
            self.fields = {name: _plain(found[name]) for name in self._beside if name in found}
            value = bytes(found.get(self._shown, b""))
            return self._words.add(_decode_text(value)) + self._words.end() if value.startswith(b'"') else ""
        except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
            return None

    def _prose(self, text: str, at: int, said: list[str]) -> int:
        plain = _PROSE.match(text, at)
        if plain:
            said.append(plain[0])
            return plain.end()
        if text[at] == "<":
            return self._tag(text, at, said)
        return self._open(text, at, said) if text[at] == "{" else self._fence(text, at, said)

    def _fence(self, text: str, at: int, said: list[str]) -> int:
        found, rest = _FENCE.match(text, at), len(text) - at
        if found and found.end() == len(text) and rest < LONGEST_HELD:
            return at
        if rest < 3 and text.count("`", at) == rest:
            return at
        if found is None:
            said.append(text[at])
            return at + 1
        if not text.startswith("{", found.end()):  # a fence of anything but an object is prose, whole
            said.append(found[0])
        return found.end()

    def _open(self, text: str, at: int, said: list[str]) -> int:
        """An object of the reply format begins with a key; any other brace is prose."""
        usual = self._usual.match(text, at)
        if usual:
            self._depth, self._is_value, self._key, self._half = 1, True, self._shown, ""
            self._step, self._words = self._content, UnfinishedText()
            return usual.end()
        opening = _OPENING.match(text, at)
        assert opening is not None
        if opening.end() == len(text):
            if len(text) - at < LONGEST_HELD:
                return at
        elif text[opening.end()] == '"':
            self._depth, self._is_value, self._key = 1, False, ""
            self._step = self._object
            return at + 1
        said.append("{")
        return at + 1

    def _object(self, text: str, at: int, said: list[str]) -> int:
        """Between the strings of an object."""
        is_beside = self._is_value and self._depth == 1 and self._key in self._beside
        skipped = _SKIPPED.match(text, at)
        if skipped:
            if is_beside:
                self._value = (self._value + skipped[0].lstrip())[:LONGEST_VALUE]
            return skipped.end()
        char = text[at]
        if is_beside and char != '"':
            self.fields.setdefault(self._key, (self._value if char in ",}" else char).strip())
        if char == '"':
            self._half = self._value = ""
            is_content = self._is_value and self._depth == 1 and self._key == self._shown
            if is_content:
                self._words = UnfinishedText()
            self._step = self._content if is_content else self._text if is_beside else self._string
            if self._depth == 1 and not self._is_value:
                self._key = ""
                self._step = self._name
        elif char in "{[":
            self._depth += 1
        elif char in "}]":
            self._depth -= 1
            if not self._depth:
                self._step = self._ignored if self._beside else self._after
        elif self._depth == 1:
            self._is_value, self._value = char == ":", ""
        return at + 1

    def _name(self, text: str, at: int, said: list[str]) -> int:
        """A key of the outermost object."""
        parts: list[str] = []
        end = self._decode(text, at, parts)
        self._key = (self._key + "".join(parts))[:20]
        return end

    def _text(self, text: str, at: int, said: list[str]) -> int:
        """A field beside the words for people."""
        parts: list[str] = []
        end = self._decode(text, at, parts)
        self._value = (self._value + "".join(parts))[:LONGEST_VALUE]
        if self._step == self._object:
            self.fields.setdefault(self._key, self._value)
        return end

    def _ignored(self, text: str, at: int, said: list[str]) -> int:
        return len(text)

    def _string(self, text: str, at: int, said: list[str]) -> int:
        return self._decode(text, at, [])

    def _content(self, text: str, at: int, said: list[str]) -> int:
        words: list[str] = []
        end = self._decode(text, at, words)
        said.append(self._words.add("".join(words)))
        if self._step == self._object:
            said.append(self._words.end())
        return end

    def _decode(self, text: str, at: int, into: list[str]) -> int:
        run = _RUN.match(text, at)
        if run or text[at] == '"':
            self._give_up_half(into)
        if run:
            into.append(run[0])
            return run.end()
        if text[at] == '"':
            self._step = self._object
            return at + 1
        escape = _ESCAPE.match(text, at)
        if escape is None:
            half = _HALF_ESCAPE.match(text, at)
            if half and half.end() == len(text):
                return at
            into.append("\ufffd")
            return at + 2
        self._decode_escape(escape, into)
        return escape.end()

    def _decode_escape(self, escape: "re.Match[str]", into: list[str]) -> None:
        if escape[1] is None:
            self._give_up_half(into)
            into.append(_ESCAPED.get(escape[2], escape[2]))
            return
        char = chr(int(escape[1], 16))
        if self._half and "\udc00" <= char <= "\udfff":
            into.append((self._half + char).encode("utf-16", "surrogatepass").decode("utf-16"))
            self._half = ""
            return
        self._give_up_half(into)
        if "\ud800" <= char <= "\udbff":
            self._half = char
        else:
            into.append("\ufffd" if "\udc00" <= char <= "\udfff" else char)

    def _give_up_half(self, into: list[str]) -> None:
        if self._half:
            into.append("\ufffd")
            self._half = ""

    def _after(self, text: str, at: int, said: list[str]) -> int:
        """Right after an object: its closing fence is left out."""
        fence = _CLOSING_FENCE.match(text, at)
        assert fence is not None
        if fence.end() == len(text) and len(text) - at < LONGEST_HELD:
            return at
        self._step = self._prose
        return fence.end() if "```" in fence[0] else at


@cache
def _usual(key: str) -> "re.Pattern[str]":
    """How an object usually begins, up to the text for people: read at once, because every reply of a run is read."""
    return re.compile(rf'\{{\s*"{re.escape(key)}"\s*:\s*"')


def _plain(value: msgspec.Raw) -> str:
    """A text, or another value as it is written."""
    written = bytes(value)
    text = _decode_text(written) if written.startswith(b'"') else written.decode()
    return text[:LONGEST_VALUE]


def words(so_far: str) -> str:
    """The words for people in a reply as far as it has come."""
    return UnfinishedReply().add(so_far)
