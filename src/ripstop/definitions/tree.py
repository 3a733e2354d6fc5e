"""YAML as a tree that knows where everything stands.

- Booleans are those of YAML 1.2: `true` and `false`; `yes`, `no`, `on` and `off` are text.
- A key that stands twice is a mistake, not a silent overwrite.
- Aliases work, but a file may not unfold to more than `MAX_NODES` values (an alias bomb).
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct

from .problems import Place, Problem, WrongDefinition

MAX_BYTES = 2_000_000
MAX_NODES = 50_000
MAX_DEPTH = 60


class Value(Struct, frozen=True):
    """A scalar, a list of values, or a mapping of names to entries; and its place."""

    value: Any
    place: Place
    block: int = 0
    """For block text (`|`, `>`): by how many columns its lines are indented."""

    @property
    def kind(self) -> str:
        names = {str: "text", bool: "true or false", int: "a whole number", float: "a number", list: "a list"}
        return "a mapping" if isinstance(self.value, dict) else names.get(type(self.value), "nothing")


class Entry(Struct, frozen=True):
    """A value under a key, and the key's own place."""

    key: Place
    value: Value


class _Loader(yaml.SafeLoader):
    """Only the scalars of YAML 1.2's core schema."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("int", r"^[-+]?[0-9]+$", "-+0123456789"),
    ("float", r"^[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?$", "-+.0123456789"),
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), list(_first))


def read_text(path: Path, shown: str) -> str:
    """The text of a file, or a `WrongDefinition` that says what stands in the way."""
    place = Place(shown)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise WrongDefinition([Problem(place, "there is no such file")]) from None
    except OSError as error:
        raise WrongDefinition([Problem(place, f"the file cannot be read: {error.strerror}")]) from error
    if len(data) > MAX_BYTES:
        raise WrongDefinition([Problem(place, f"the file has {len(data)} bytes; at most {MAX_BYTES} are read")])
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        raise WrongDefinition(
            [Problem(Place(shown, line, column), "this is not UTF-8 text", "save the file as UTF-8")]
        ) from error


def parse(text: str, file: str) -> Value:
    """The tree of a YAML document."""
    try:
        node = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        raise WrongDefinition([_syntax_problem(error, file)]) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise WrongDefinition([Problem(Place(file), f"this is no YAML: {str(error).splitlines()[0]}")]) from error
    if node is None:
        raise WrongDefinition([Problem(Place(file), "the file is empty")])
    builder = _Builder(file)
    value = builder.value(node, 0)
    if builder.problems:
        raise WrongDefinition(builder.problems)
    return value


def _syntax_problem(error: yaml.MarkedYAMLError, file: str) -> Problem:
    mark = error.problem_mark or error.context_mark
    place = Place(file, mark.line + 1, mark.column + 1) if mark else Place(file)
    text = " ".join(part for part in (error.context, error.problem) if part) or "this is no YAML"
    return Problem(place, text, error.note or "")


class _Builder:
    def __init__(self, file: str) -> None:
        self._file = file
        self._count = 0
        self.problems: list[Problem] = []

    def _place(self, node: yaml.Node) -> Place:
        return Place(self._file, node.start_mark.line + 1, node.start_mark.column + 1)

    def value(self, node: yaml.Node, depth: int) -> Value:
        self._count += 1
        place = self._place(node)
        if self._count > MAX_NODES:
            raise WrongDefinition([Problem(place, f"the file unfolds to more than {MAX_NODES} values")])
        if depth > MAX_DEPTH:
            raise WrongDefinition([Problem(place, f"nested more than {MAX_DEPTH} deep, or inside itself")])
        if isinstance(node, yaml.MappingNode):
            return Value(dict(self._entries(node, depth)), place)
        if isinstance(node, yaml.SequenceNode):
            return Value([self.value(item, depth + 1) for item in node.value], place)
        return Value(self._scalar(node), place, _indentation(node))

    def _entries(self, node: yaml.MappingNode, depth: int) -> Iterator[tuple[str, Entry]]:
        seen: dict[str, Place] = {}
        for key_node, value_node in node.value:
            place = self._place(key_node)
            if not isinstance(key_node, yaml.ScalarNode):
                self.problems.append(Problem(place, "a key must be text"))
                continue
            key = str(key_node.value)
            if key in seen:
                self.problems.append(Problem(place, f"the key {key!r} stands in line {seen[key].line} already"))
                continue
            seen[key] = place
            yield key, Entry(place, self.value(value_node, depth + 1))

    def _scalar(self, node: yaml.Node) -> Any:
        text = str(node.value)
        match node.tag.rpartition(":")[2]:
            case "bool":
                return text.lower() == "true"
            case "int":
                return int(text) if len(text) < 40 else text
            case "float":
                return float(text)
            case "null":
                return None
            case "str":
                return text
        self.problems.append(Problem(self._place(node), f"the tag {node.tag!r} is not known here"))
        return text


def _indentation(node: yaml.Node) -> int:
    """The columns before the lines of a block text, to find places inside it."""
    if getattr(node, "style", None) not in ("|", ">"):
        return 0
    buffer = node.start_mark.buffer
    if buffer is None:
        return 0
    following = buffer[node.start_mark.pointer :].split("\n")[1:]
    line = next((line for line in following if line.strip(" \0")), "")
    return len(line) - len(line.lstrip(" "))


def place_inside(value: Value, offset: int) -> Place:
    """Where the character `offset` of a text stands in its file (to the line, for folded text)."""
    before = str(value.value)[:offset]
    line = before.count("\n")
    column = len(before) - (before.rfind("\n") + 1)
    if value.block:
        return Place(value.place.file, value.place.line + 1 + line, value.block + column + 1)
    return Place(value.place.file, value.place.line + line, value.place.column + 1 + column if not line else column + 1)
