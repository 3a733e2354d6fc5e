"""JSON as a tree that knows the position of every value: the same tree that YAML becomes.

- Strict JSON: no comments, no comma before a closing bracket, texts and keys in double quotes.
- A duplicate key is an error, not a silent overwrite.
- What cannot be read becomes a `WrongDefinition` that says it in JSON's words; no other exception leaves.
- Depth and number of values are bounded; `read_text` bounds the size.
"""

import json
import re
from bisect import bisect_right
from math import isfinite
from typing import Any, NoReturn

from .problems import Position, Problem, WrongDefinition
from .yaml_tree import MAX_DEPTH, MAX_NODES, TOO_DEEP, Value, YamlEntry

MAX_DIGITS = 40
WORDS = {"true": True, "false": False, "null": None}
_BREAK = re.compile("\r\n|[\n\r]")
_BLANK = re.compile(r"[ \t\n\r]*")
_STRING = re.compile(r'"[^"\\\x00-\x1f]*+(?:\\.[^"\\\x00-\x1f]*+)*+"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$")
LOOK_ALIKES = {
    **dict.fromkeys("“”„‟＂«»‘’'`", '"'),
    **dict.fromkeys("：﹕∶", ":"),
    **dict.fromkeys("，、﹐", ","),
    **dict(zip("｛｝［］【】", "{}[][]", strict=True)),
}
"""What other keyboards and word processors write for JSON's own characters."""
_WORD = re.compile(rf"[^\s\x00-\x1f{{}}\[\]:,\"{''.join(LOOK_ALIKES)}]+")


class JsonValue(Value, frozen=True):
    @property
    def kind(self) -> str:
        if self.value is None:
            return "null"
        return "an object" if isinstance(self.value, dict) else super().kind


def parse_json(text: str, file: str) -> tuple[Value, list[Problem]]:
    """The tree of a JSON document, and what is wrong with it although it could be read. Raises `WrongDefinition`."""
    parser = _Parser(text, file)
    return parser.document(), parser.problems


def plain(value: Value) -> Any:
    """A tree as plain data again."""
    if isinstance(value.value, dict):
        return {key: plain(entry.value) for key, entry in value.value.items()}
    return [plain(item) for item in value.value] if isinstance(value.value, list) else value.value


class _Parser:
    def __init__(self, text: str, file: str) -> None:
        self._text = text
        self._file = file
        self._at = 0
        self._depth = 0
        self._count = 0
        self._lines = [0, *(found.end() for found in _BREAK.finditer(text))]
        self.problems: list[Problem] = []

    def document(self) -> Value:
        if not self._next():
            raise WrongDefinition([Problem(Position(self._file), "the file is empty")])
        value = self._value()
        if self._next():
            self._wrong("something follows the end of the document", "keep one document in a file")
        return value

    def _place(self, index: int) -> Position:
        line = bisect_right(self._lines, index)
        return Position(self._file, line, index - self._lines[line - 1] + 1)

    def _wrong(self, text: str, hint: str = "", index: int | None = None) -> NoReturn:
        index = self._at if index is None else index
        character = self._text[index : index + 1]
        if meant := LOOK_ALIKES.get(character, ""):
            text, hint = f"{character} is not {meant}", f"write {meant}"
        elif character.isspace() or (character and character < " "):
            text, hint = f"U+{ord(character):04X} is not allowed here", "remove it"
        elif self._text.startswith(("//", "/*", "#"), index):
            text, hint = "JSON has no comments", "remove it"
        line = bisect_right(self._lines, index)
        end = _BREAK.search(self._text, index)
        source = self._text[self._lines[line - 1] : end.start() if end else len(self._text)]
        raise WrongDefinition([Problem(self._place(index), text, hint, source=source)])

    def _next(self) -> str:
        """The next character that is not blank, which is not taken; empty at the end."""
        blank = _BLANK.match(self._text, self._at)
        assert blank is not None, "nothing is blank as well"
        self._at = blank.end()
        return self._text[self._at : self._at + 1]

    def _value(self) -> Value:
        self._count += 1
        if self._count > MAX_NODES:
            self._wrong(f"the file has more than {MAX_NODES} values")
        first, start = self._next(), self._at
        if first and first in "{[":
            self._depth += 1
            if self._depth > MAX_DEPTH:
                self._wrong(TOO_DEEP)
            found: Any = self._object(start) if first == "{" else self._list(start)
            self._depth -= 1
            return JsonValue(found, self._place(start))
        return JsonValue(self._string("a text") if first == '"' else self._word(), self._place(start))

    def _object(self, start: int) -> dict[str, YamlEntry]:
        entries: dict[str, YamlEntry] = {}
        self._at += 1
        if self._next() == "}":
            self._at += 1
            return entries
        while True:
            if (first := self._next()) != '"':
                self._unfinished(start, "}")
                self._wrong("a key must be a text in double quotes", "remove the comma before it" * (first == "}"))
            place = self._place(self._at)
            key = self._string("a key")
            if self._next() != ":":
                self._unfinished(start, "}")
                self._wrong(f"a ':' is missing after the key {key[:60]!r}", 'write "key": value')
            self._at += 1
            value = self._value()
            if key in entries:
                text = f"the key {key!r} is already in line {entries[key].key.line}"
                self.problems.append(Problem(place, text, "keep one of them"))
            else:
                entries[key] = YamlEntry(place, value)
            if self._closed(start, "}"):
                return entries

    def _list(self, start: int) -> list[Value]:
        items: list[Value] = []
        self._at += 1
        if self._next() == "]":
            self._at += 1
            return items
        while True:
            if self._next() == "]":
                self._wrong("there is no value before ']'", "remove the comma before it")
            items.append(self._value())
            if self._closed(start, "]"):
                return items

    def _closed(self, start: int, closing: str) -> bool:
        found = self._next()
        if found not in (",", closing) or not found:
            self._unfinished(start, closing)
            self._wrong(f"a ',' or '{closing}' is missing here")
        self._at += 1
        return found == closing

    def _unfinished(self, start: int, closing: str) -> None:
        """Raise if the file has ended. The place is where it begins that is never closed."""
        if self._at >= len(self._text):
            what = "an object" if closing == "}" else "a list"
            self._wrong(f"{what} begins here that is never closed", f"add '{closing}'", start)

    def _string(self, what: str) -> str:
        found = _STRING.match(self._text, self._at)
        if found is None:
            self._wrong(
                f"{what} in double quotes is not closed in its line", 'close it with ", and write \\n for a line'
            )
        try:
            text: str = json.loads(found[0])
        except json.JSONDecodeError as error:
            self._wrong("this escape is not known", "write \\\\ for a backslash", self._at + error.pos)
        if any("\ud800" <= c <= "\udfff" for c in text):
            place = self._place(self._at)
            self.problems.append(Problem(place, "the text holds half of a character (a lone surrogate)"))
            text = ""
        self._at = found.end()
        return text

    def _word(self) -> Any:
        found = _WORD.match(self._text, self._at)
        if found is None:
            if self._at >= len(self._text):
                self._wrong("the file ends where a value should be")
            self._wrong("a value is missing here")
        word = found[0]
        if word in WORDS:
            self._at = found.end()
            return WORDS[word]
        number = _NUMBER.match(word)
        if number is None or len(word) > MAX_DIGITS:
            hint = "write true, false, null, a number, or a text in double quotes"
            self._wrong("this is not a value" if number is None else "the number is too long", hint)
        value = float(word) if number[1] or number[2] else int(word)
        if not isfinite(value):
            self._wrong("the number is too large")
        self._at = found.end()
        return value
