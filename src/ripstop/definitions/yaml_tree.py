"""YAML as a tree that knows the position of every value.

- Booleans are those of YAML 1.2: `true` and `false`; `yes`, `no`, `on` and `off` are text.
- A duplicate key is an error, not a silent overwrite. `<<: *anchor` merges, as many files rely on it.
- Aliases work, but a file may not unfold to more than `MAX_NODES` values (an alias bomb), nor contain itself.
- What PyYAML cannot read becomes a `WrongDefinition` that says it in plain words; no other exception leaves.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct
from msgspec.structs import fields

from ripstop.security.files import read_plain_file

from .problems import Position, Problem, WrongDefinition

# From a character of a text back to where its author wrote it.
#
# YAML changes a text while reading it: lines are folded, indentation goes, escapes are replaced. But what is
# not blank stays, in order. So the n-th character that is not blank in the text is the n-th one in the file,
# if an escape (`\"`, `''`, `\u4e2d`) counts as the character that it encodes.


BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
"""What YAML takes for the end of a line."""
_DOUBLE = re.compile(r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[\s\S])|[\s\S]")
_SINGLE = re.compile(r"''|[\s\S]")
_PLAIN = re.compile(r"[\s\S]")


class Span(Struct, frozen=True):
    """A scalar as it is written: `text[start:end]`, in one of YAML's styles (`|`, `>`, `'`, `"`, or none)."""

    text: str
    start: int
    end: int
    style: str

    def inside(self, value: str, offset: int, file: str) -> tuple[Position, str]:
        """Position in the file of the character `offset` of the value, and the text of its line."""
        offset = min(offset, len(value))
        wanted = sum(1 for c in value[:offset] if not c.isspace())
        on_text = offset < len(value) and not value[offset].isspace()
        index = self._index(wanted, on_text)
        return place_at(self.text, index, file), line_at(self.text, index)

    def _index(self, wanted: int, on_text: bool) -> int:
        """Where the character after `wanted` others begins; for a blank, where the one before it ends."""
        seen, after = 0, self._first()
        for start, end, blank in self._units():
            if blank:
                continue
            if seen == wanted and on_text:
                return start
            if seen == wanted:
                break
            seen, after = seen + 1, end
        return after

    def _first(self) -> int:
        if self.style in ("|", ">"):
            newline = BREAK.search(self.text, self.start, self.end)
            return newline.end() if newline else self.end
        return self.start + 1 if self.style in ("'", '"') else self.start

    def _units(self) -> Iterator[tuple[int, int, bool]]:
        """(start, end, whether it is blank) of every character, escapes as one."""
        last = self.end - 1 if self.style in ("'", '"') else self.end
        pattern = {"'": _SINGLE, '"': _DOUBLE}.get(self.style, _PLAIN)
        for unit in pattern.finditer(self.text, self._first(), last):
            yield unit.start(), unit.end(), _meaning(unit[0], self.style).isspace()


def _meaning(unit: str, style: str) -> str:
    """The character that a unit encodes. A line continuation (`\\` at the end) counts as blank."""
    if style != '"' or unit[0] != "\\":
        return unit[0]
    if unit[1] in "xuU" and len(unit) > 2:
        return chr(int(unit[2:], 16))
    return str(yaml.scanner.Scanner.ESCAPE_REPLACEMENTS.get(unit[1], unit[1]))


def place_at(text: str, index: int, file: str) -> Position:
    """The line and column of a character of a file."""
    line, start = 1, 0
    for line_break in BREAK.finditer(text, 0, index):
        line, start = line + 1, line_break.end()
    return Position(file, line, index - start + 1)


def line_at(text: str, index: int) -> str:
    start = max((b.end() for b in BREAK.finditer(text, 0, index)), default=0)
    end = BREAK.search(text, index)
    return text[start : end.start() if end else len(text)]


# Characters that look like YAML's own and are not, as other keyboards and word processors write them.
#
# Only asked when a file is not YAML. YAML takes such a character for part of a text and complains later, often on the
# next line, so the line of the complaint and a few before it are searched, the nearest first.


MAX_SEARCHED = 1000
"""Characters of a line that are searched: the patterns take time that grows with the square of its length."""
LINES_BACK = 3
"""Lines with text on them, before the one that YAML complains about."""
_SPACE = r"[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]"
_NAMES = {"\u00a0": "a non-breaking space", "\u3000": "a full-width space"}
_KEY = r"""["']?[A-Za-z_][\w-]{0,60}["']?"""
_ITEM = r"[ ]*(?:-[ ]+)*"
_COLON = r"[：﹕∶︰꞉]"
_CURLY_DOUBLE, _CURLY_SINGLE = r"[“”„‟＂«»]", r"[‘’‚‛＇]"
_QUOTED = re.compile(r""""(?:[^"\\]|\\.)*"|'[^']*'""")
_BEFORE = (
    # a pattern whose group is the character, what it is not, what would be right
    (re.compile(rf"[ ]*({_SPACE})\s*\S"), "a space", "indent with spaces"),
    (re.compile(rf"{_ITEM}{_KEY}\s*({_COLON})"), "`:`", "write `key: value`"),
    (re.compile(rf"{_ITEM}{_KEY}:[ ]*({_SPACE})"), "a space", "write `key: value`"),
    (re.compile(rf"[ ]*([–—－‐−﹣])\s*{_KEY}\s*(?::|{_COLON})"), "`-`", "begin an item with `- `"),
)
_HERE = (
    (re.compile(rf"{_ITEM}{_KEY}:\s+({_CURLY_DOUBLE})"), '`"`', "use straight quotes"),
    (re.compile(rf"{_ITEM}{_KEY}:\s+({_CURLY_SINGLE})"), "`'`", "use straight quotes"),
    (re.compile(r"[^#]*[{\[][^}\]]*?([，、﹐])"), "`,`", "separate entries with `, `"),
    (re.compile(rf"[^#]*[{{\[,]\s*{_KEY}\s*({_COLON})"), "`:`", "write `key: value`"),
    (re.compile(rf"(?:{_ITEM}|[ ]*{_KEY}:\s+)([｛﹛])"), "`{`", "begin a mapping with `{`"),
    (re.compile(rf"(?:{_ITEM}|[ ]*{_KEY}:\s+)([［【])"), "`[`", "begin a list with `[`"),
    (re.compile(r"[^#]*\{[^}]*([｝﹜])"), "`}`", "end a mapping with `}`"),
    (re.compile(r"[^#]*\[[^\]]*([］】])"), "`]`", "end a list with `]`"),
)
"""Looked for only on the line of the complaint, because elsewhere they can be part of a text."""
_UNCLOSED = (
    (re.compile(rf'{_ITEM}{_KEY}:\s+"[^"]*({_CURLY_DOUBLE})\s*$'), '`"`', "close the quotes with a straight one"),
    (re.compile(rf"{_ITEM}{_KEY}:\s+'[^']*({_CURLY_SINGLE})\s*$"), "`'`", "close the quotes with a straight one"),
)
"""Looked for on every line before the complaint: quotes that are not closed swallow lines."""


def look_alike(text: str, index: int, file: str) -> Problem | None:
    """The character that is to blame for a complaint about `text[index]`, if there is one."""
    lines = list(_lines_back(text, index))
    found = _first(lines[:1], _HERE) or _first(lines[: LINES_BACK + 1], _BEFORE) or _first(lines, _UNCLOSED)
    if found is None:
        return None
    at, line, meant, hint = found
    character = text[at]
    shown = f"`{character}`"
    if character.isspace():
        shown = f"{_NAMES.get(character, 'this white space')} (U+{ord(character):04X})"
    return Problem(place_at(text, at, file), f"{shown} is not {meant}", hint, source=line)


def _lines_back(text: str, index: int) -> Iterator[tuple[int, str]]:
    """The lines with text, each with where it begins: that of a character, and those before it."""
    end = BREAK.search(text, index)
    starts = [0, *(one.end() for one in BREAK.finditer(text, 0, index))]
    until = end.start() if end else len(text)
    for start in reversed(starts):
        line = BREAK.split(text[start:until], maxsplit=1)[0]
        until = start
        if line.strip():
            yield start, line


def _first(
    lines: list[tuple[int, str]], patterns: tuple[tuple[re.Pattern[str], str, str], ...]
) -> tuple[int, str, str, str] | None:
    for start, line in lines:
        for pattern, meant, hint in patterns:
            searched = line[:MAX_SEARCHED] if patterns is _UNCLOSED else _QUOTED.sub(_blotted, line[:MAX_SEARCHED])
            if found := pattern.match(searched):
                return start + found.start(1), line, meant, hint
    return None


def _blotted(quoted: re.Match[str]) -> str:
    """A text in quotes without what is in it: that is not YAML's."""
    return quoted[0][0] + "x" * (len(quoted[0]) - 2) + quoted[0][-1]


# What PyYAML says when it cannot read a file, in words that an author can use.


_PLAIN_WORDS = (
    # (in PyYAML's words, what is wrong, what would be right)
    ("character '\\t'", "there is a tab here", "indent with spaces"),
    ("mapping values are not allowed", "a ':' does not fit here", "put a text that holds ': ' in quotes"),
    ("could not find expected ':'", "a ':' is missing after a key", "write `key: value`"),
    ("while scanning a quoted scalar", "the text in quotes is never closed", "close the quotes"),
    # YAML 1.2 allows it there; PyYAML, which reads 1.1, does not
    ("but got '?'", "within '{' or '[' a text that holds '?' needs quotes", "put the text in quotes"),
    ("but found '?'", "within '{' or '[' a text that holds '?' needs quotes", "put the text in quotes"),
    ("expected <block end>", "this does not fit the lines before it", "look at the indentation and at the quotes"),
    ("expected ',' or ']'", "a list that begins with '[' is never closed", "add ',' or ']'"),
    ("expected ',' or '}'", "a mapping that begins with '{' is never closed", "add ',' or '}'"),
    ("expected a single document", "a second document begins here", "keep one document in a file"),
    (
        "expected '<document start>'",
        "this is not one YAML document: another begins here",
        "keep one document in a file",
    ),
    ("found undefined alias", "there is no anchor of this name", "define it with & before it is used"),
    ("found duplicate anchor", "this anchor is defined twice", "give each anchor its own name"),
    ("character '@'", "a text cannot begin with '@'", "put it in quotes"),
    ("character '`'", "a text cannot begin with '`'", "put it in quotes"),
    ("character '%'", "a text cannot begin with '%'", "put it in quotes"),
    ("unknown escape character", "this escape is not known", "in double quotes write \\\\ for a backslash"),
)
_SCRIPT = ".jsonl"
_SCRIPT_HINT = "a script of replies is not a workflow: it is given with --model script:PATH"
_WIDE_ESCAPE = re.compile(r"\\U([0-9A-Fa-f]{8})")
_AT_ITS_BEGINNING = ("while scanning a quoted scalar",)
"""Mistakes that are shown where the thing begins, not where the file ran out."""


def syntax_problem(error: Exception, text: str, file: str) -> Problem:
    """Anything that PyYAML raises, with its place."""
    if isinstance(error, yaml.reader.ReaderError):
        index = min(error.position, len(text))
        character = f"U+{ord(text[index]):04X}" if index < len(text) else "character"
        return Problem(place_at(text, index, file), f"{character} is not allowed in a YAML file", "remove it")
    if not isinstance(error, yaml.MarkedYAMLError):
        return _too_large(text, file)
    said = " ".join(part for part in (error.context, error.problem) if part) or "this is no YAML"
    mark = error.problem_mark or error.context_mark
    if error.context in _AT_ITS_BEGINNING and "end of stream" in (error.problem or ""):
        mark = error.context_mark
    if mark is None:
        return Problem(Position(file), said)
    index = min(mark.index, len(text))
    if "character '\\t'" not in said and (blamed := look_alike(text, index, file)):
        return blamed
    place, source = Position(file, mark.line + 1, mark.column + 1), line_at(text, index)
    for theirs, ours, hint in _PLAIN_WORDS:
        if theirs in said and (theirs not in _AT_ITS_BEGINNING or "end of stream" in said):
            is_script = "<document start>" in theirs and file.endswith(_SCRIPT)
            return Problem(place, ours, _SCRIPT_HINT if is_script else hint, source=source)
    return Problem(place, said, source=source)


def _too_large(text: str, file: str) -> Problem:
    """PyYAML turns an escape or the version into a number without looking, and says nothing of the place."""
    for escape in _WIDE_ESCAPE.finditer(text):
        if int(escape[1], 16) > 0x10FFFF:
            return Problem(place_at(text, escape.start(), file), f"there is no character {escape[0]}")
    return Problem(Position(file), "a number in the %YAML line is too large", "leave the line out")


MAX_BYTES = 500_000
MAX_NODES = 20_000
MAX_DEPTH = 40
TOO_DEEP = f"nested more than {MAX_DEPTH} deep"
_CORE = "tag:yaml.org,2002:"


class Value(Struct, frozen=True):
    """A scalar, a list of values, or a mapping of names to entries; and its place."""

    value: Any
    place: Position
    span: Span | None = None
    """For a scalar: how it is written in the file."""

    @property
    def kind(self) -> str:
        names = {str: "text", bool: "true or false", int: "a whole number", float: "a number", list: "a list"}
        return "a mapping" if isinstance(self.value, dict) else names.get(type(self.value), "nothing")

    def inside(self, offset: int) -> tuple[Position, str]:
        """Position in the file of the character `offset` of a text, and the text of its line."""
        assert self.span is not None, "only scalars have an inside"
        return self.span.inside(str(self.value), offset, self.place.file)


class YamlEntry(Struct, frozen=True):
    """A value under a key, and the key's own place."""

    key: Position
    value: Value


class _Loader(yaml.SafeLoader):
    """Only the scalars of YAML 1.2's core schema, and not too deep: PyYAML itself would run out of stack."""

    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]  # the stubs leave it out
            raise yaml.composer.ComposerError(None, None, TOO_DEEP, mark)
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def fetch_flow_collection_start(self, token: Any) -> None:
        # the scanner runs ahead of the composer, and slowly so where brackets are deep
        if self.flow_level >= MAX_DEPTH:
            raise yaml.scanner.ScannerError(None, None, TOO_DEEP, self.get_mark())
        super().fetch_flow_collection_start(token)


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _initials in (
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("int", r"^[-+]?[0-9]+$", "-+0123456789"),
    ("float", r"^[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?$", "-+.0123456789"),
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
):
    _Loader.add_implicit_resolver(f"{_CORE}{_tag}", re.compile(_pattern), list(_initials))


def read_text(path: Path, shown: str, at_most: int = MAX_BYTES, one_name: bool = False) -> str:
    """The text of a file of so many bytes. Raises `WrongDefinition` with the reason if it cannot be read."""
    place = Position(shown)
    try:
        data = read_plain_file(path, at_most, one_name)
    except FileNotFoundError:
        raise WrongDefinition([Problem(place, "there is no such file")]) from None
    except OSError as error:
        raise WrongDefinition([Problem(place, f"the file cannot be read: {error.strerror}")]) from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        readable = data[: error.start].decode("utf-8-sig", errors="replace")
        place = place_at(readable, len(readable), shown)
        raise WrongDefinition([Problem(place, "this is not UTF-8 text", "save the file as UTF-8")]) from error


def parse(text: str, file: str) -> tuple[Value, list[Problem]]:
    """The tree of a YAML document, and what is wrong with it although it could be read."""
    try:
        node = yaml.compose(text, Loader=_Loader)
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise WrongDefinition([syntax_problem(error, text, file)]) from error
    if node is None:
        raise WrongDefinition([Problem(Position(file), "the file is empty")])
    builder = _Builder(text, file)
    return builder.value(node), builder.problems


class _Builder:
    def __init__(self, text: str, file: str) -> None:
        self._text = text
        self._file = file
        self._count = 0
        self._open: list[yaml.Node] = []
        self._built: dict[yaml.Node, tuple[Value, int]] = {}
        """What an alias names is built once; its size counts every time."""
        self.problems: list[Problem] = []

    def _place(self, node: yaml.Node) -> Position:
        return Position(self._file, node.start_mark.line + 1, node.start_mark.column + 1)

    def _grow(self, node: yaml.Node, by: int) -> None:
        self._count += by
        if self._count > MAX_NODES:
            text = f"the file unfolds to more than {MAX_NODES} values"
            raise WrongDefinition([Problem(self._place(node), text, "use fewer aliases")])

    def value(self, node: yaml.Node) -> Value:
        if node in self._built:
            value, size = self._built[node]
            self._grow(self._open[-1], size)  # YAML keeps no position for an alias, only for its parent
            return value
        before = self._count
        self._grow(node, 1)
        if any(node is outer for outer in self._open):
            problem = Problem(self._place(node), "this contains itself", "an alias must not name its own parent")
            raise WrongDefinition([problem])
        if len(self._open) >= MAX_DEPTH:
            raise WrongDefinition([Problem(self._place(node), TOO_DEEP)])
        self._open.append(node)
        value = self._fresh(node)
        self._open.pop()
        self._built[node] = value, self._count - before
        return value

    def _fresh(self, node: yaml.Node) -> Value:
        place = self._place(node)
        if isinstance(node, yaml.MappingNode):
            self._known_tag(node, "map")
            return Value(dict(self._entries(node)), place)
        if isinstance(node, yaml.SequenceNode):
            self._known_tag(node, "seq")
            return Value([self.value(item) for item in node.value], place)
        assert isinstance(node, yaml.ScalarNode), node
        span = Span(self._text, node.start_mark.index, node.end_mark.index, node.style or "")
        return Value(self._scalar(node), place, span)

    def _known_tag(self, node: yaml.Node, wanted: str) -> None:
        if node.tag != f"{_CORE}{wanted}":
            self._unknown_tag(node)

    def _unknown_tag(self, node: yaml.Node) -> None:
        self.problems.append(Problem(self._place(node), f"the tag {node.tag!r} is not known here", "leave it out"))

    def _entries(self, node: yaml.MappingNode) -> Iterator[tuple[str, YamlEntry]]:
        seen: dict[str, Position] = {}
        merged: list[tuple[str, YamlEntry]] = []
        for key_node, value_node in node.value:
            place = self._place(key_node)
            if not isinstance(key_node, yaml.ScalarNode):
                self.problems.append(Problem(place, "a key must be text"))
                continue
            key = str(key_node.value)
            if key in seen:
                text = f"the key {key!r} is already in line {seen[key].line}"
                self.problems.append(Problem(place, text, "keep one of them"))
                continue
            seen[key] = place
            if key == "<<" and key_node.style is None:
                merged += self._merged(value_node)
            else:
                yield key, YamlEntry(place, self.value(value_node))
        for key, entry in merged:
            if key not in seen:
                seen[key] = entry.key
                yield key, entry

    def _merged(self, node: yaml.Node) -> list[tuple[str, YamlEntry]]:
        value = self.value(node)
        found: list[tuple[str, YamlEntry]] = []
        for part in value.value if isinstance(value.value, list) else [value]:
            if isinstance(part.value, dict):
                found += part.value.items()
            else:
                self.problems.append(Problem(part.place, f"only mappings can be merged, but this is {part.kind}"))
        return found

    def _scalar(self, node: yaml.Node) -> Any:
        text = str(node.value)
        try:
            match node.tag.removeprefix(_CORE):
                case "bool" if text.lower() in ("true", "false"):
                    return text.lower() == "true"
                case "int":
                    return int(text) if len(text) < 40 else text
                case "float":
                    return float(text)
                case "null" if text.lower() in ("", "~", "null"):
                    return None
                case "str":
                    return self._writable(node, text)
        except ValueError:
            pass  # `!!int seven`: the tag does not fit, which is said below
        self._unknown_tag(node)
        return text

    def _writable(self, node: yaml.Node, text: str) -> str:
        """Escapes can come as the two halves of one character; a lone half is not text."""
        if text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text):
            return text
        try:
            return text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            self.problems.append(Problem(self._place(node), "the text holds half of a character (a lone surrogate)"))
            return ""


# Plain data as a tree, as if it had been read from a file: for definitions that come from a journal.


def tree_of(thing: Any, place: Position) -> Value:
    """Every value is at the same place."""
    if isinstance(thing, dict):
        return Value({str(key): YamlEntry(place, tree_of(one, place)) for key, one in thing.items()}, place)
    if isinstance(thing, (list, tuple)):
        return Value([tree_of(one, place) for one in thing], place)
    text = str(thing)
    return Value(thing, place, Span(text, 0, len(text), ""))


def set_fields(thing: Struct, always: tuple[str, ...] = ()) -> dict[str, Any]:
    """What differs from its default, and what is `always` written."""
    values = {field.name: (getattr(thing, field.name), field.default) for field in fields(thing)}
    return {name: value for name, (value, default) in values.items() if name in always or value != default}
