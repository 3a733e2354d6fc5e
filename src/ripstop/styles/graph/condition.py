"""Conditions on transitions: `approved AND NOT (score < 7)`.

- Binding, tightest first: comparison, NOT, AND, OR. Keywords in any case; names as agents write them.
- No coercion: `1 == "1"` is false, and so is `true == 1`. Only numbers are ordered with numbers, texts with texts.
- A name without a value is false in a boolean place, and every comparison with it is false. What is neither true nor
  false has no meaning there (`flags` finds it); so that evaluating never fails, it is taken as Python does.
- AND and OR stop as soon as the answer is known.
- Reading fails only with `ConditionError`, which knows the column. Evaluating never fails.
"""

import operator
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from msgspec import Struct

MAX_DEPTH = 64
MAX_LENGTH = 4000
MAX_JOINED = 300
"""So many AND and OR; each is a level of the tree, and evaluating walks down the tree."""


class ConditionError(Exception):
    """A condition that cannot be read. `column` counts characters from 0."""

    def __init__(self, text: str, column: int) -> None:
        super().__init__(text)
        self.column = column


class _Missing:
    """The value of a name that has none."""

    def __repr__(self) -> str:
        return "missing"

    def __bool__(self) -> bool:
        return False


MISSING = _Missing()


# The tree


class Expression(Struct, frozen=True):
    column: int


class Literal(Expression, frozen=True):
    value: Any


class Name(Expression, frozen=True):
    name: str


class Not(Expression, frozen=True):
    operand: Expression


class And(Expression, frozen=True):
    left: Expression
    right: Expression


class Or(Expression, frozen=True):
    left: Expression
    right: Expression


class Compare(Expression, frozen=True):
    operator: str
    left: Expression
    right: Expression


COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}

# Reading

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>-?\d+(?:\.\d+)?(?![\w.]))
      | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<operator>==|!=|>=|<=|>|<)
      | (?P<bracket>[()])
      | (?P<word>[^\W\d]\w*)
      | (?P<end>$)
    )""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_HINTS = {"=": "==", "&&": "AND", "&": "AND", "||": "OR", "|": "OR", "!": "NOT", "<>": "!=", "=>": ">=", "=<": "<="}


class _Token(Struct, frozen=True):
    kind: str
    text: str
    column: int


@lru_cache(maxsize=4096)
def parse(source: str) -> Expression:
    """Read a condition. Empty and `always` hold; `never` does not."""
    if len(source) > MAX_LENGTH:
        raise ConditionError(f"the condition has {len(source)} characters; at most {MAX_LENGTH} are read", 0)
    plain = source.strip()
    if plain in ("", "always"):
        return Literal(0, True)
    if plain == "never":
        return Literal(0, False)
    return _Parser(_tokens(source)).whole()


def _tokens(source: str) -> list[_Token]:
    tokens: list[_Token] = []
    position = 0
    while True:
        match = _TOKEN.match(source, position)
        if match is None or match.lastgroup is None:
            raise _odd_character(source, position)
        kind, text = match.lastgroup, match[match.lastgroup]
        column = match.start(kind)
        if kind == "word" and text.upper() in ("AND", "OR", "NOT", "TRUE", "FALSE"):
            kind, text = "keyword", text.upper()
        tokens.append(_Token(kind, text, column))
        if kind == "end":
            return tokens
        position = match.end()


def _odd_character(source: str, position: int) -> ConditionError:
    rest = source[position:]
    column = position + len(rest) - len(rest.lstrip())
    rest = rest.lstrip()
    if rest[0] in "\"'":
        return ConditionError(f"the text that begins with {rest[0]} is never closed", column)
    for wrong, right in sorted(_HINTS.items(), key=lambda hint: -len(hint[0])):
        if rest.startswith(wrong):
            return ConditionError(f"{wrong!r} is not an operator here; write {right}", column)
    return ConditionError(f"{rest[0]!r} does not belong in a condition", column)


class _Parser:
    """A Pratt parser: each operator has a strength, and an operand goes to the stronger side."""

    _STRENGTH = {"OR": 1, "AND": 2}
    _NOT, _COMPARISON = 3, 4

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self._joined = 0

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self) -> _Token:
        token = self._next
        self._at += 1
        return token

    def whole(self) -> Expression:
        node = self._expression(0)
        if self._next.kind != "end":
            raise self._unexpected("AND, OR, a comparison or the end")
        return node

    def _expression(self, strength: int) -> Expression:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ConditionError(f"nested more than {MAX_DEPTH} deep", self._next.column)
        left = self._operand()
        while True:
            token = self._next
            binds = self._COMPARISON if token.kind == "operator" else self._STRENGTH.get(token.text, 0)
            if token.kind not in ("operator", "keyword") or binds <= strength:
                break
            self._take()
            right = self._expression(binds)
            if token.kind == "operator":
                left = self._compare(token, left, right)
            else:
                self._joined += 1
                if self._joined > MAX_JOINED:
                    raise ConditionError(f"more than {MAX_JOINED} parts are joined", token.column)
                left = (And if token.text == "AND" else Or)(token.column, left, right)
        self._depth -= 1
        return left

    def _compare(self, token: _Token, left: Expression, right: Expression) -> Expression:
        if self._next.kind == "operator":
            raise ConditionError("comparisons cannot be chained; join two with AND", self._next.column)
        return Compare(token.column, token.text, left, right)

    def _operand(self) -> Expression:
        token = self._take()
        match token.kind, token.text:
            case "number", text:
                return Literal(token.column, float(text) if "." in text else int(text))
            case "string", text:
                return Literal(token.column, _ESCAPE.sub(r"\1", text[1:-1]))
            case "keyword", "TRUE" | "FALSE":
                return Literal(token.column, token.text == "TRUE")
            case "keyword", "NOT":
                return Not(token.column, self._expression(self._NOT))
            case "word", name:
                return Name(token.column, name)
            case "bracket", "(":
                inside = self._expression(0)
                if self._next.text != ")" or self._next.kind != "bracket":
                    raise self._unexpected(f"')' for the '(' at column {token.column + 1}")
                self._take()
                return inside
        self._at -= 1
        raise self._unexpected("a name, a value, NOT or '('")

    def _unexpected(self, wanted: str) -> ConditionError:
        token = self._next
        found = "the condition ends" if token.kind == "end" else f"found {token.text!r}"
        return ConditionError(f"{found}, but {wanted} is needed", token.column)


# Evaluating


class Trace(Struct, frozen=True):
    """A node with the value it had, for `why`. Parts that were not needed have no trace."""

    node: Expression
    value: Any
    parts: "tuple[Trace, ...]" = ()


def evaluate(node: Expression, lookup: Callable[[str], Any]) -> Any:
    """The value of a condition. `lookup` returns `MISSING` for a name it does not know."""
    # not `isinstance`: a class of msgspec makes it slow where the answer is no, and no node has subclasses
    if type(node) is Name:
        return lookup(node.name)
    if type(node) is Compare:
        return compare(node.operator, evaluate(node.left, lookup), evaluate(node.right, lookup))
    if type(node) is Not:
        return not evaluate(node.operand, lookup)
    if type(node) is And:
        return bool(evaluate(node.left, lookup)) and bool(evaluate(node.right, lookup))
    if type(node) is Or:
        return bool(evaluate(node.left, lookup)) or bool(evaluate(node.right, lookup))
    assert isinstance(node, Literal)
    return node.value


def trace(node: Expression, lookup: Callable[[str], Any]) -> Trace:
    """Like `evaluate`, and keeps what every part was."""
    match node:
        case Compare(left=left, right=right):
            parts = (trace(left, lookup), trace(right, lookup))
            return Trace(node, compare(node.operator, parts[0].value, parts[1].value), parts)
        case Not(operand=operand):
            part = trace(operand, lookup)
            return Trace(node, not part.value, (part,))
        case And(left=left, right=right) | Or(left=left, right=right):
            first = trace(left, lookup)
            if bool(first.value) is isinstance(node, Or):
                return Trace(node, bool(first.value), (first,))
            second = trace(right, lookup)
            return Trace(node, bool(second.value), (first, second))
    return Trace(node, evaluate(node, lookup))


def compare(symbol: str, left: Any, right: Any) -> bool:
    if not comparable(left, right):
        return symbol == "!=" and left is not MISSING and right is not MISSING
    if symbol not in ("==", "!=") and not isinstance(left, int | float | str):
        return False
    if isinstance(left, bool) and symbol not in ("==", "!="):
        return False
    return bool(COMPARISONS[symbol](left, right))


def comparable(left: Any, right: Any) -> bool:
    """Whether two values are there and of one kind. A boolean is not a number."""
    if isinstance(left, bool) or isinstance(right, bool):
        return isinstance(left, bool) and isinstance(right, bool)
    if isinstance(left, int | float):
        return isinstance(right, int | float)
    return type(left) is type(right) and left is not MISSING


def flags(traced: Trace) -> list[Trace]:
    """The names in boolean places, compared with nothing, that a condition needed; with the values that they had."""
    if isinstance(traced.node, Name):
        return [traced]
    parts = [part for part in traced.parts if not (isinstance(traced.node, Compare) and isinstance(part.node, Name))]
    return [flag for part in parts for flag in flags(part)]


def names(node: Expression) -> list[Name]:
    """Every name in a condition, from left to right."""
    match node:
        case Name():
            return [node]
        case Not(operand=operand):
            return names(operand)
        case And(left=left, right=right) | Or(left=left, right=right) | Compare(left=left, right=right):
            return names(left) + names(right)
    return []


def uncompared(node: Expression) -> list[Name]:
    """Every name in a boolean place of a condition, compared with nothing."""
    match node:
        case Name():
            return [node]
        case Not(operand=operand):
            return uncompared(operand)
        case And(left=left, right=right) | Or(left=left, right=right):
            return uncompared(left) + uncompared(right)
        case Compare(left=left, right=right):
            return [name for side in (left, right) if not isinstance(side, Name) for name in uncompared(side)]
    return []


def comparisons(node: Expression) -> list[Compare]:
    """Every comparison in a condition, from left to right; those in brackets inside another one after it."""
    match node:
        case Not(operand=operand):
            return comparisons(operand)
        case Compare(left=left, right=right):
            return [node, *comparisons(left), *comparisons(right)]
        case And(left=left, right=right) | Or(left=left, right=right):
            return comparisons(left) + comparisons(right)
    return []
