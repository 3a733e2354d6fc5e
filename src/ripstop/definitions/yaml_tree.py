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

from ripstop.files.plain_file import read_plain_file

from .problems import Position, Problem, WrongDefinition
from .yaml_errors import syntax_problem
from .yaml_positions import Span, place_at

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
for _tag, _pattern, _first in (
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("int", r"^[-+]?[0-9]+$", "-+0123456789"),
    ("float", r"^[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?$", "-+.0123456789"),
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
):
    _Loader.add_implicit_resolver(f"{_CORE}{_tag}", re.compile(_pattern), list(_first))


def read_text(path: Path, shown: str, at_most: int = MAX_BYTES) -> str:
    """The text of a file of so many bytes. Raises `WrongDefinition` with the reason if it cannot be read."""
    place = Position(shown)
    try:
        data = read_plain_file(path, at_most)
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
