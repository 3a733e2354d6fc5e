"""Prompts with variables: `{{name}}` and `{% if last_agent_name == "x" %}…{% else %}…{% endif %}`.

Rendered in one pass: text that a variable brings in is never looked at again, so nothing that an agent says, or
that a value of the run holds, can expand. Anything else in `{% %}`, and every unknown variable, is an error
when the template is read, never text that silently reaches an agent.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TypeVar

from msgspec import Struct

T = TypeVar("T")

NONE: Mapping[str, str] = {}
MAX_DEPTH = 32
SPEAKER = "last_agent_name"
"""The variable that a choice looks at."""

_OPENING = re.compile(r"(?=(\{\{|\{%))")
_CLOSING = {"{{": "}}", "{%": "%}"}
_IF = re.compile(r"""if\s+last_agent_name\s*==\s*(?:"([^"]*)"|'([^']*)')""")


class TemplateError(Exception):
    """A template that cannot be read. `offset` counts characters from the template's beginning."""

    def __init__(self, text: str, offset: int) -> None:
        super().__init__(text)
        self.offset = offset


class Variable(Struct, frozen=True):
    name: str


class Conditional(Struct, frozen=True):
    agent: str
    then: "tuple[Piece, ...]"
    otherwise: "tuple[Piece, ...]"


class _Tag(Struct, frozen=True):
    start: int
    end: int
    is_variable: bool
    text: str


def _tags(source: str) -> Iterator[_Tag]:
    """Every tag, in one pass: what is never closed is looked for only once, so no text takes long."""
    at, unclosed = 0, set[str]()
    for opening in _OPENING.finditer(source):
        kind = opening[1]
        if opening.start() < at or kind in unclosed:
            continue
        end = source.find(_CLOSING[kind], opening.start() + 2)
        if end < 0:
            unclosed.add(kind)
            continue
        inside = source[opening.start() + 2 : end]
        at = end + 2
        if kind == "{%":
            inside = inside.removeprefix("-").removesuffix("-")
        yield _Tag(opening.start(), at, kind == "{{", inside.strip())


Piece = str | Variable | Conditional


def parse(source: str, variables: frozenset[str] | None = None) -> tuple[Piece, ...]:
    """Read a template. `variables` are the names that it may use; `None` for one that was checked before."""
    reader = _TemplateReader(source, variables)
    pieces, stop = reader.until()
    if stop:
        raise TemplateError(f"{{% {stop} %}} has no {{% if %}} before it", reader.stopped_at)
    return pieces


def render(
    pieces: tuple[Piece, ...], values: Mapping[str, Callable[[T], str]], of: T, given: Mapping[str, str] = NONE
) -> str:
    """The text, with the `values` `of` something: each is worked out only where the template uses it.

    Names that have no such value are looked up in `given`.
    """
    texts: list[str] = []
    for piece in pieces:
        if type(piece) is str:
            texts.append(piece)
        elif type(piece) is Variable:
            value = values.get(piece.name)
            texts.append(value(of) if value else given[piece.name])
        elif type(piece) is Conditional:
            holds = values[SPEAKER](of) == piece.agent
            texts.append(render(piece.then if holds else piece.otherwise, values, of, given))
    return "".join(texts)


def variables(source: str) -> set[str]:
    """The names of all variables that a template uses, in choices too."""
    return {tag.text for tag in _tags(source) if tag.is_variable}


def speakers(source: str) -> Iterator[tuple[int, str]]:
    """Every choice of a template: where it begins, and the agent that it asks for."""
    for tag in _tags(source):
        wanted = None if tag.is_variable else _IF.fullmatch(tag.text)
        if wanted:
            yield tag.start, _agent(wanted)


def _agent(wanted: re.Match[str]) -> str:
    return wanted[1] if wanted[1] is not None else wanted[2]


class _TemplateReader:
    def __init__(self, source: str, variables: Collection[str] | None) -> None:
        self._source = source
        self._variables = variables
        self._tags = _tags(source)
        self._depth = 0
        self._at = 0
        self.stopped_at = 0

    def until(self) -> tuple[tuple[Piece, ...], str]:
        """Pieces up to an `else` or `endif`, or to the end; and which of them it was."""
        pieces: list[Piece] = []
        for tag in self._tags:
            if tag.start > self._at:
                pieces.append(self._source[self._at : tag.start])
            self._at = tag.end
            if tag.is_variable:
                pieces.append(self._variable(tag))
            elif tag.text in ("else", "endif"):
                self.stopped_at = tag.start
                return tuple(pieces), tag.text
            else:
                pieces.append(self._choice(tag))
        if self._at < len(self._source):
            pieces.append(self._source[self._at :])
            self._at = len(self._source)
        return tuple(pieces), ""

    def _variable(self, tag: _Tag) -> Variable:
        name = tag.text
        if self._variables is not None and name not in self._variables:
            known = ", ".join(sorted(self._variables))
            raise TemplateError(f"there is no variable {name[:60]!r}; known are {known}", tag.start)
        return Variable(name)

    def _choice(self, tag: _Tag) -> Conditional:
        wanted = _IF.fullmatch(tag.text)
        if wanted is None:
            raise TemplateError(
                f"{{% {tag.text[:60]} %}} is not supported; only "
                '{% if last_agent_name == "…" %} … {% else %} … {% endif %} is',
                tag.start,
            )
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise TemplateError(f"{{% if %}} is nested more than {MAX_DEPTH} deep", tag.start)
        otherwise: tuple[Piece, ...] = ()
        then, stop = self.until()
        if stop == "else":
            otherwise, stop = self.until()
        if stop != "endif":
            raise TemplateError("this {% if %} has no {% endif %}", tag.start)
        self._depth -= 1
        return Conditional(_agent(wanted), then, otherwise)
