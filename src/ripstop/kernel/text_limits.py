"""Free-form values in a journal: the arguments of a tool call, what a tool returned, and what people say.

- `plain` makes a value what it will be when it is read back, so that a run in memory and a replayed one are the same.
- `is_plain` is a cheap check whether a value is like that already.
- `shown` is for messages about a value.
- `is_message` says what can be said in a conversation.
- No value is nested deeper than `DEEPEST`: reading it back must not depend on how deep the reader's stack is.
"""

import math
import re
from typing import Any

import msgspec

from .errors import Unwritable

DEEPEST = 100
"""Levels of lists and dictionaries in one value."""
LONGEST_SHOWN = 80
LONGEST_MESSAGE = 20_000
"""Characters of what is said in a conversation at once."""
_HALF = re.compile(r"[\ud800-\udfff]")


def whole_characters(text: str) -> str:
    """The text with every lone surrogate, which UTF-8 has no form for, replaced by U+FFFD."""
    return text if text.isascii() else _HALF.sub("\ufffd", text)


def is_message(text: str) -> bool:
    """Whether a text can be said in a conversation: it is neither blank nor too long."""
    return len(text) <= LONGEST_MESSAGE and bool(text.strip())


def shown(value: object) -> str:
    """A value from outside as a message shows it: short, whatever it is."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of very many digits, or lists too deep
        return f"this {type(value).__name__}"
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def is_plain(value: Any, depth: int = 0) -> bool:
    """Whether a value is read back as it is, apart from lone surrogates, which no encoder writes."""
    kind = type(value)
    if kind is str or kind is bool or kind is int or value is None:
        return True
    if kind is float:
        return math.isfinite(value)
    if depth >= DEEPEST:
        return False
    if kind is dict:
        return all(type(key) is str and is_plain(item, depth + 1) for key, item in value.items())
    return kind is list and all(is_plain(item, depth + 1) for item in value)


def plain(value: Any) -> Any:
    """The value as JSON holds it: tuples and sets become lists, NaN becomes null, dates and bytes become text.

    Raises `Unwritable` if JSON has no form for it, or if it is too deep.
    """
    try:
        return _plain(msgspec.to_builtins(value, str_keys=True), 0)
    except (TypeError, ValueError, OverflowError) as error:
        raise Unwritable(f"JSON has no form for it: {error}.") from error
    except RecursionError:
        raise Unwritable(f"It is nested more than {DEEPEST} levels deep.") from None


def _plain(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return whole_characters(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int) and not isinstance(value, bool):
        str(value)  # raises ValueError for more digits than Python, and so a reader, converts
        return value
    if isinstance(value, dict | list | tuple | set | frozenset):
        if depth >= DEEPEST:
            raise Unwritable(f"It is nested more than {DEEPEST} levels deep.")
        if isinstance(value, dict):
            return {whole_characters(str(key)): _plain(item, depth + 1) for key, item in value.items()}
        return [_plain(item, depth + 1) for item in value]
    return value
