"""What PyYAML says when it cannot read a file, in words that an author can use."""

import re

import yaml

from .look_alikes import look_alike
from .problems import Position, Problem
from .yaml_positions import line_at, place_at

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
