"""Turns a JSON Schema into a grammar (GBNF) that a llama.cpp model is held to while it writes.

- What the grammar lets through is compact JSON that satisfies the schema; it may let through less
  than the schema does (all required properties are written and no others, or all where none is required; lists and
  numbers are kept short).
- It always ends: no rule repeats without bound, and strings are cut so that the whole reply has at
  most `room` tokens. A token is at least one byte long, so bytes are counted.
- A keyword that cannot be promised is refused by name, never ignored.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from ripstop.kernel.errors import DefinitionError

LONGEST_LIST = 5
LONGEST_STRING = 2000
LONGEST_NUMBER = 20
MOST_NUMBERS = 200
"""The most values of a bounded number that are listed one by one."""
DEEPEST = 12
MOST_PARTS = 1000
"""Of a schema with all its references written out: each may name the next one twice."""
BYTES_A_CHARACTER = 3
"""At most, in UTF-8, because characters beyond U+FFFF are not let through: small models get stuck in emoji."""

NOTES = {"title", "description", "default", "examples", "$schema", "$id", "$comment", "$defs", "definitions", "format"}
"""Keywords that say nothing about whether a value is valid."""
KEYWORDS = {
    "string": {"minLength", "maxLength"},
    "integer": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
    "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
    "boolean": set[str](),
    "null": set[str](),
    "array": {"items", "minItems", "maxItems"},
    "object": {"properties", "required", "additionalProperties"},
}

PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "array": (list, tuple),
    "object": (dict,),
}

CHARACTER = r"""[^"\\\x00-\x1F\x7F\U00010000-\U0010FFFF] | "\\" ["\\nt]"""
SMALL_NUMBER = '("0" | [1-9] [0-9]{0,7})'


# The schema, as far as the grammar needs it


class Text(Struct, frozen=True):
    least: int
    most: int


class Pattern(Struct, frozen=True):
    """A piece of grammar that needs nothing else, and the bytes it may take."""

    gbnf: str
    size: int


class Choice(Struct, frozen=True):
    options: tuple["Node", ...]


class List(Struct, frozen=True):
    item: "Node"
    least: int
    most: int


class Object(Struct, frozen=True):
    fields: tuple[tuple[str, "Node"], ...]


Node = Text | Pattern | Choice | List | Object


def grammar(schema: Mapping[str, Any], room: int, bytes_a_character: int = BYTES_A_CHARACTER) -> str:
    """The grammar of replies of at most `room` tokens.

    With fewer bytes a character than the most there are, the promise holds for ordinary text only.
    """
    root = _SchemaReader(schema).node(schema, "$", 0)
    if _size(root, 0, bytes_a_character) > room:
        raise DefinitionError(
            f"A reply with this schema needs up to {_size(root, 0, bytes_a_character)} tokens even with its texts "
            f"left empty, and only {room} are allowed. Ask for fewer fields, or allow more tokens."
        )
    low, high = 0, LONGEST_STRING
    while low < high:
        middle = (low + high + 1) // 2
        if _size(root, middle, bytes_a_character) <= room:
            low = middle
        else:
            high = middle - 1
    return f"root ::= {_write(root, low)}\ncharacter ::= {CHARACTER}\n"


def _longest(text: Text, cap: int) -> int:
    return max(text.least, min(text.most, cap))


def _size(node: Node, cap: int, per_character: int) -> int:
    """The most bytes that a value can take if strings are cut at `cap` characters."""
    match node:
        case Text():
            return 2 + _longest(node, cap) * per_character
        case Pattern(size=size):
            return size
        case Choice(options=options):
            return max(_size(option, cap, per_character) for option in options)
        case List(item=item, most=most):
            return 2 + most * (1 + _size(item, cap, per_character))
        case Object(fields=fields):
            return 2 + sum(len(_key(name)) + 1 + _size(value, cap, per_character) for name, value in fields)


def _write(node: Node, cap: int) -> str:
    match node:
        case Text():
            return f'"\\"" character{{{node.least},{_longest(node, cap)}}} "\\""'
        case Pattern(gbnf=gbnf):
            return gbnf
        case Choice(options=options):
            return f"({' | '.join(_write(option, cap) for option in options)})"
        case List():
            return _write_list(node, cap)
        case Object(fields=fields):
            parts = [f"{_literal(_key(name).decode())} {_write(value, cap)}" for name, value in fields]
            return " ".join(['"{"', ' "," '.join(parts), '"}"'])


def _write_list(node: List, cap: int) -> str:
    if node.most == 0:
        return '"[]"'
    item = _write(node.item, cap)
    more = f'("," {item}){{{max(node.least - 1, 0)},{node.most - 1}}}' if node.most > 1 else ""
    items = f"{item} {more}"
    return f'"[" {items} "]"' if node.least else f'"[" ({items})? "]"'


def _key(name: str) -> bytes:
    return f"{json.dumps(name, ensure_ascii=False)}:".encode()


def _literal(text: str) -> str:
    """Text as a GBNF literal; whatever is not plain ASCII is written by its number."""
    written = ("\\" + c if c in '"\\' else c if " " <= c <= "~" else f"\\U{ord(c):08X}" for c in text)
    return f'"{"".join(written)}"'


def _value(value: Any) -> Pattern:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return Pattern(_literal(text), len(text.encode()))


# Reading a schema


class _SchemaReader:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._parts = 0

    def node(self, schema: Any, path: str, depth: int) -> Node:
        if schema is True:
            schema = {}
        if not isinstance(schema, Mapping):
            raise _wrong(path, f"{schema!r} is not a schema")
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise _wrong(path, f"the schema has more than {MOST_PARTS} parts")
        if depth > DEEPEST:
            raise _wrong(path, f"the schema is more than {DEEPEST} levels deep, or refers to itself")
        if "$ref" in schema:
            _only(schema, {"$ref"}, path)
            return self.node(self._referred(schema["$ref"], path), path, depth + 1)
        if "const" in schema or "enum" in schema:
            return _listed(schema, path)
        if "anyOf" in schema:
            _only(schema, {"anyOf"}, path)
            options = enumerate(schema["anyOf"])
            return Choice(tuple(self.node(option, f"{path}.anyOf[{i}]", depth + 1) for i, option in options))
        return self._typed(schema, path, depth)

    def _typed(self, schema: Mapping[str, Any], path: str, depth: int) -> Node:
        kind = schema.get("type", _guess(schema))
        if isinstance(kind, list):
            own = [{**_for_type(schema, one), "type": one} for one in kind]
            return Choice(tuple(self.node(one, path, depth + 1) for one in own))
        if kind not in KEYWORDS:
            raise _wrong(path, f"type {kind!r} is unknown; known are {', '.join(KEYWORDS)}")
        _only(schema, KEYWORDS[kind] | {"type"}, path)
        match kind:
            case "object":
                return self._object(schema, path, depth)
            case "array":
                return self._list(schema, path, depth)
            case "string":
                least = schema.get("minLength", 0)
                _in_order(least, schema.get("maxLength", least), path)
                return Text(least, min(schema.get("maxLength", LONGEST_STRING), max(LONGEST_STRING, least)))
            case "boolean":
                return Pattern('("true" | "false")', 5)
            case "null":
                return _value(None)
        return _number(schema, path)

    def _object(self, schema: Mapping[str, Any], path: str, depth: int) -> Object:
        properties = schema.get("properties", {})
        required = schema.get("required", ())
        for name in required:
            if name not in properties:
                raise _wrong(path, f"{name!r} is required but not among the properties")
        fields = [(name, self.node(one, f"{path}.{name}", depth + 1)) for name, one in properties.items()]
        return Object(tuple((name, node) for name, node in fields if not required or name in required))

    def _list(self, schema: Mapping[str, Any], path: str, depth: int) -> List:
        least = schema.get("minItems", 0)
        _in_order(least, schema.get("maxItems", least), path)
        most = min(schema.get("maxItems", LONGEST_LIST), max(LONGEST_LIST, least))
        return List(self.node(schema.get("items", True), f"{path}[]", depth + 1), least, most)

    def _referred(self, reference: Any, path: str) -> Any:
        found: Any = self._root
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise _wrong(path, f"`$ref` {reference!r} does not point into the schema itself (`#/$defs/…`)")
        for part in reference.lstrip("#").strip("/").split("/"):
            if part:
                found = found.get(part) if isinstance(found, Mapping) else None
        if found is None:
            raise _wrong(path, f"`$ref` {reference!r} points to nothing")
        return found


def _listed(schema: Mapping[str, Any], path: str) -> Choice:
    """`const` or `enum`: the listed values that are of the type asked for, if one is."""
    _only(schema, {"const", "type"} if "const" in schema else {"enum", "type"}, path)
    kinds = schema.get("type", list(KEYWORDS))
    kinds = kinds if isinstance(kinds, list) else [kinds]
    values = [schema["const"]] if "const" in schema else schema["enum"]
    allowed = [value for value in values if any(_is_a(kind, value) for kind in kinds)]
    if not allowed:
        raise _wrong(path, "`enum` is empty, or none of its values (or of `const`) has the type asked for")
    return Choice(tuple(_value(value) for value in allowed))


def _is_a(kind: str, value: Any) -> bool:
    if kind in ("integer", "number") and isinstance(value, bool):
        return False
    return isinstance(value, PYTHON_TYPES.get(kind, ()))


def _in_order(least: int, most: int, path: str) -> None:
    if least > most:
        raise _wrong(path, f"at least {least} and at most {most} cannot both be")


def _guess(schema: Mapping[str, Any]) -> str:
    """A schema without a type allows any value; the one its keywords speak of, or else a string, is one."""
    return next((kind for kind, keywords in KEYWORDS.items() if keywords & schema.keys()), "string")


def _for_type(schema: Mapping[str, Any], kind: str) -> dict[str, Any]:
    others = set().union(*KEYWORDS.values()) - KEYWORDS.get(kind, set())
    return {key: value for key, value in schema.items() if key not in others}


def _only(schema: Mapping[str, Any], known: set[str], path: str) -> None:
    for key in schema:
        if key not in known and key not in NOTES:
            raise _wrong(path, f"the local model cannot be held to `{key}`; it knows {', '.join(sorted(known))}")


def _number(schema: Mapping[str, Any], path: str) -> Node:
    """Unbounded numbers are written freely; bounded ones are chosen from a list of allowed values."""
    whole = schema["type"] == "integer" if "type" in schema else True
    low = max(
        schema.get("minimum", -math.inf),
        math.floor(schema.get("exclusiveMinimum", -math.inf) + 1) if "exclusiveMinimum" in schema else -math.inf,
    )
    high = min(
        schema.get("maximum", math.inf),
        math.ceil(schema.get("exclusiveMaximum", math.inf) - 1) if "exclusiveMaximum" in schema else math.inf,
    )
    if (low, high) == (-math.inf, math.inf):
        fraction = "" if whole else ' ("." [0-9]{1,6})?'
        return Pattern(f'"-"? {SMALL_NUMBER}{fraction}', LONGEST_NUMBER)
    if high == math.inf and low in (0, 1):
        return Pattern(SMALL_NUMBER if low == 0 else "[1-9] [0-9]{0,7}", LONGEST_NUMBER)
    values = _between(low, high, whole)
    if not values:
        raise _wrong(path, f"no number that the local model can write lies between {low} and {high}")
    return Choice(tuple(_value(value) for value in values))


def _between(low: float, high: float, whole: bool) -> list[int] | list[float]:
    first = math.ceil(low) if low > -math.inf else math.floor(high) - MOST_NUMBERS
    last = math.floor(high) if high < math.inf else first + MOST_NUMBERS
    if not whole and -math.inf < low < high < math.inf and last - first < 10:
        steps = (round(low + (high - low) * step / 20, 6) for step in range(21))
        return [value for value in steps if low <= value <= high]
    return list(range(first, last + 1, max(1, (last - first) // MOST_NUMBERS)))


def _wrong(path: str, problem: str) -> DefinitionError:
    return DefinitionError(f"The reply's schema, at {path}: {problem}.")
