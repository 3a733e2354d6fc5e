"""Reading JSON out of agents' text. Nothing is ever evaluated.

Three modes: `strict` (the whole text is the object), `last` (the last complete object in the text
that has the wanted key) and `fenced` (the last fenced block is the object). All know strings and
escapes, leave `<think…>` blocks out, and tolerate `//` comments and trailing commas outside strings,
because the prompts that agents see are written in that style.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

_THINKING = re.compile(r"<(think[\w-]*)>.*?</\1>|\A\s*<think[\w-]*>.*\Z", re.DOTALL | re.IGNORECASE)
"""Closed thoughts anywhere; one that is never closed only where the text begins with it. Elsewhere it may
stand in a file that the reply delivers, and must not swallow what follows."""
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n]*\n(.*?)^[ \t]*\1[ \t]*$", re.DOTALL | re.MULTILINE)
_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|,(?=\s*(?://[^\n]*\n\s*)*[}\]])')
MAX_CANDIDATES = 2000
"""Opening braces that are tried, from the end; text with more of them holds no reply of ours."""


class NoReply(Exception):
    """There is no such object in the text; says what is wrong, for whoever has to mend it."""


def without_thinking(text: str) -> str:
    return _THINKING.sub("", text) if "<think" in text.lower() else text


def strict(text: str) -> dict[str, Any]:
    return _object(without_thinking(text).strip())


def fenced(text: str) -> dict[str, Any]:
    blocks = _FENCE.findall(without_thinking(text))
    if not blocks:
        raise NoReply("there is no fenced block")
    return _object(blocks[-1][1].strip())


def last(text: str, key: str) -> tuple[dict[str, Any], str]:
    """The last object that has `key`, and the text without it."""
    whole = _whole(text)
    return (whole, "") if whole is not None and key in whole else _last_of_several(text, key)


def _last_of_several(text: str, key: str) -> tuple[dict[str, Any], str]:
    clean = without_thinking(text)
    nearest = ""
    for start in _openings(clean):
        found = _complete(clean, start)
        if found is None:
            continue
        value, end = found
        if key in value:
            return value, _around(clean, start, end)
        if not nearest:
            nearest = ", ".join(repr(name) for name in list(value)[:8]) or "nothing"
    if nearest:
        raise NoReply(f"the last JSON object has {nearest}, but no {key!r}")
    raise NoReply("there is no complete JSON object in it" if "{" in clean else "there is no JSON object in it")


def _whole(text: str) -> dict[str, Any] | None:
    """The usual case of a model that is held to a schema: the text is the object."""
    if not text or text[0] != "{" or text[-1] != "}":
        return None
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _openings(text: str) -> Iterator[int]:
    """Where an object may begin, the outermost of the last ones first: from the end backwards."""
    position, tried = len(text), 0
    while tried < MAX_CANDIDATES:
        position = text.rfind("{", 0, position)
        if position < 0:
            return
        tried += 1
        yield position


_decoder = json.JSONDecoder()


def _complete(text: str, start: int) -> tuple[dict[str, Any], int] | None:
    try:
        value, end = _decoder.raw_decode(text, start)
    except (ValueError, RecursionError):  # ValueError: no JSON, or a number with thousands of digits
        return _tolerant(text, start)
    return (_printable(value, text), end) if isinstance(value, dict) else None


def _tolerant(text: str, start: int) -> tuple[dict[str, Any], int] | None:
    """Once more, without comments and trailing commas; only where there are any."""
    end = _closing(text, start)
    if end is None:
        return None
    part = text[start:end]
    plain = _STRING_OR_COMMENT.sub(lambda match: match[0] if match[0][0] == '"' else "", part)
    if plain == part:
        return None
    try:
        value = json.loads(plain)
    except (ValueError, RecursionError):
        return None
    return (_printable(value, part), end) if isinstance(value, dict) else None


_HALF = re.compile(r"[\ud800-\udfff]")


def _printable(value: Any, source: str) -> Any:
    """Half a character (`\\ud800` alone) can be written in JSON, but can never be shown or stored."""
    if "\\ud" not in source and "\\uD" not in source:
        return value
    if isinstance(value, str):
        return _HALF.sub("\ufffd", value)
    if isinstance(value, list):
        return [_printable(item, source) for item in value]
    if isinstance(value, dict):
        return {_HALF.sub("\ufffd", key): _printable(item, source) for key, item in value.items()}
    return value


_BRACES = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|[{}]')


def _closing(text: str, start: int) -> int | None:
    depth = 0
    for match in _BRACES.finditer(text, start):
        if match[0] == "{":
            depth += 1
        elif match[0] == "}":
            depth -= 1
            if depth == 0:
                return match.end()
    return None


def _object(text: str) -> dict[str, Any]:
    found = _complete(text, 0) if text.startswith("{") else None
    if found is None or text[found[1] :].strip():
        raise NoReply("it is not one JSON object and nothing else")
    return found[0]


def _around(text: str, start: int, end: int) -> str:
    """The text without the object, and without the fence that held only it."""
    before, after = text[:start].rstrip(), text[end:].lstrip()
    if re.search(r"(?m)^[ \t]*`{3,}\w*\s*\Z", before) and after.startswith("```"):
        before, after = before[: before.rfind("```")].rstrip("`").rstrip(), after.lstrip("`")
    return (before + "\n" + after).strip()


Decided = tuple[str, dict[str, Any]]

_latest: list[tuple[str | None, Decided]] = [(None, ("", {}))]
"""The text that was read last, and what was found in it."""


def decided(text: str) -> Decided:
    """What an agent said and decided. Raises `NoReply`.

    A step asks twice about the same text, once to decide and once to fold. So the latest answer is kept, and found by
    the text being the same object: a cache by its content would have to hash every reply from end to end.
    """
    known, answer = _latest[0]
    if known is text:
        return answer
    found, rest = _whole(text), ""  # not `last`: a call less, in every turn
    if found is None or "decisions" not in found:
        found, rest = _last_of_several(text, "decisions")
    decisions = found["decisions"]
    if not isinstance(decisions, dict):
        raise NoReply(f'"decisions" is {_kind(decisions)}; it must be an object such as {{"approved": true}}')
    content = found.get("content", rest)
    answer = (content if isinstance(content, str) else msgspec.json.encode(content).decode()), decisions
    _latest[0] = (text, answer)
    return answer


def _kind(value: Any) -> str:
    return {list: "a list", str: "a text", bool: "a boolean", type(None): "null"}.get(type(value), "a number")
