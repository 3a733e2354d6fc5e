"""Text from outside, made safe for a terminal: what would act or hide is written out, as `\\x1b` or `\\u202e`.

Written out are
- control characters (C0, DEL, C1) and the line and paragraph separator: they move the cursor, ring, retitle, overwrite;
- the marks that change the direction of text: they show it in another order than it has;
- every character that Unicode wants ignored when it is shown, so that no text hides in another. Exceptions, because
  ordinary text has them: a joiner or non-joiner (emoji, Persian) and a variation selector (emoji, Han, Mongolian),
  each unless it follows another one, or a letter of a script that has none, behind which it could hide a bit or a byte,
  or nothing at all;
- lone surrogates (bytes of a file name that are not text) and the two noncharacters that no encoding of XML allows.

Everything is one pass over the text. What is shown is shown the same again, wherever it is put; a text that is cut in
the middle of an emoji shows the joiner.
"""

import re
from collections.abc import Iterator

_ACTING = "\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029"
_DIRECTION = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_IGNORED = (
    "\xad\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
)
_NO_TEXT = "\ud800-\udfff\ufffe\uffff"
_JOINERS = "\u200c\u200d"
_SELECTORS = "\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"
_PLAIN_TEXT = f"{_ACTING}{_DIRECTION}{_IGNORED}{_NO_TEXT}"
_IN_TEXT = re.compile(f"[{_PLAIN_TEXT}]|[{_JOINERS}{_SELECTORS}]+")
_IN_LINE = re.compile(f"[\t\n{_PLAIN_TEXT}]|[{_JOINERS}{_SELECTORS}]+")
_NEVER = re.compile(f"[{_PLAIN_TEXT}]")
_KEPT = re.compile(
    "|".join(
        (
            f"[\u0600-\U0010ffff](?<![{_JOINERS}])[{_JOINERS}]",
            f"[#*0-9©®\u1000-\u109f\u1800-\U0010ffff](?<![{_JOINERS}{_SELECTORS}])[\ufe0e\ufe0f]",
            f"[\u1000-\u109f\u1800-\U0010ffff](?<![{_JOINERS}{_SELECTORS}])[\ufe00-\ufe0d\u180b-\u180d\u180f]",
            f"[\u2e80-\U0010ffff](?<![{_JOINERS}{_SELECTORS}])[\U000e0100-\U000e01ef]",
        )
    )
)
"""A character with a joiner, or with a selector, that belongs to its script."""


def visible(text: str) -> str:
    """Make what acts or hides visible. Newlines and tabs are kept; a line that ends in CR LF ends in LF."""
    return _IN_TEXT.sub(_written_out, text.replace("\r\n", "\n"))


def visible_line(text: str) -> str:
    """Make what acts or hides visible, newlines and tabs included: the result is one line."""
    return _IN_LINE.sub(_written_out, text)


def visible_json(document: str) -> str:
    """Replace the same characters in a JSON document by JSON's own escapes: it is read back as the same value."""
    return _IN_TEXT.sub(lambda found: "".join(map(_json_escape, _decided(found))), document)


def without_hidden(text: str) -> str:
    """Take out the same characters; for words that a model is to read, where an escape would be a word of its own."""
    return _IN_TEXT.sub(lambda found: "".join(char for char, is_kept in _decided(found) if is_kept), text)


def pieces(text: str) -> Iterator[tuple[str, bool]]:
    """The text as `visible` shows it, in pieces, each with whether it would act or hide."""
    plain, at = text.replace("\r\n", "\n"), 0
    for found in _IN_TEXT.finditer(plain):
        yield plain[at : found.start()], False
        for char, is_kept in _decided(found):
            yield (char, False) if is_kept else (_ESCAPES[char], True)
        at = found.end()
    yield plain[at:], False


def _decided(found: re.Match[str]) -> Iterator[tuple[str, bool]]:
    """Each character of a match, and whether it is ordinary text where it is."""
    before = found.string[found.start() - 1 : found.start()]
    if before and _NEVER.match(before):
        before = "-"  # it is written out
    for char in found[0]:
        is_kept = _KEPT.match(before + char) is not None
        yield char, is_kept
        before = char if is_kept else "-"


class _Escapes(dict[str, str]):
    """How each character is written out, once it has been met."""

    def __missing__(self, char: str) -> str:
        code = ord(char)
        self[char] = f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
        return self[char]


_ESCAPES = _Escapes({"\t": "\\t", "\n": "\\n", "\r": "\\r"})


def _written_out(found: re.Match[str]) -> str:
    return "".join(char if is_kept else _ESCAPES[char] for char, is_kept in _decided(found))


def _json_escape(decided: tuple[str, bool]) -> str:
    char, is_kept = decided
    if is_kept:
        return char
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
