"""The part between two lines `---` at the beginning of a Markdown file: YAML about the text below it."""

import re

from .problems import Position, Problem, WrongDefinition

_FENCE = re.compile(r"---[ \t]*(?:\r\n|[\r\n]|$)")
_FRONT = re.compile(r"---[ \t]*(?:\r\n|[\r\n])(?s:.*?)^(---[ \t]*)(?:\r\n|[\r\n]|\Z)", re.MULTILINE)


def split_front_matter(text: str, path: str) -> tuple[str, str]:
    """The YAML, with its first line `---` so that positions in it are right, and the text below it.

    Empty if there is none. Raises `WrongDefinition` if it never ends.
    """
    if not _FENCE.match(text):
        return "", text
    front = _FRONT.match(text)
    if front is None:
        hint = "close it with another line ---, or begin the prompt with words"
        raise WrongDefinition([Problem(Position(path), "the line --- opens a part that never ends", hint)])
    return text[: front.start(1)], text[front.end() :]
