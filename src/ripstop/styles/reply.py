"""Reading JSON out of agents' text. Nothing is ever evaluated.

Three modes: `strict` (the whole text is the object), `last` (the last complete object in the text
that has the wanted key) and `fenced` (the last fenced block that is closed is the object). All know strings and
escapes, leave out what was only thought, and tolerate `//` comments and trailing commas outside strings,
because the prompts that agents see are written in that style. `why_not_json` is for those who want JSON to the letter.

A reply may be long, broken or hostile, so reading takes time in proportion to its length: no text is scanned
twice for the same thing (`_Objects`), and what is parsed in vain is bounded (`MOST_PARSED`).
"""

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate
from typing import Any

import msgspec

from ripstop.text.markdown import blocks, fence_of, split_lines

# How models mark what they only think. `partial_reply` reads the same tags in a reply that is still coming.


AT_BEGINNING = (
    ("<reasoning>", "</reasoning>"),
    ("<thought>", "</thought>"),
    ("<thoughts>", "</thoughts>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
)
"""Tags that a reply may also have as its own words, so that they count only at its beginning."""
THINK_NAME = r"think[\w-]*"
"""Of tags that count anywhere, such as `<think>` and `<thinking>`; they are closed by one of the same name."""
IN_CHANNELS = re.compile(r"\s*+(?:<\|start\|>assistant\s*+)?<\|channel\|>")
CHANNEL_BEGINS = r"<\|channel\|>\s*+(?P<name>\w*+)[^<]*+(?:<\|constrain\|>[^<]*+)?<\|message\|>"
CHANNEL_ENDS = r"<\|(?:end|return|call|start|channel)\|>"
"""How models with channels write, where their server sends it as it is: what is said is in the `FINAL_CHANNEL`."""
FINAL_CHANNEL = "final"
_THOUGHT = re.compile(rf"</?{THINK_NAME}>", re.IGNORECASE)
_TAG = re.compile(
    rf"(?P<begins>^[ \t]*+)?(?P<tag><(?P<closes>/?)(?P<name>{THINK_NAME})>)(?P<ends>[ \t\r]*+$)?",
    re.IGNORECASE | re.MULTILINE,
)
_OTHER_THOUGHT = re.compile(
    rf"\s*+(?:{'|'.join(f'{re.escape(opening)}.*?{re.escape(closing)}' for opening, closing in AT_BEGINNING)})",
    re.IGNORECASE | re.DOTALL,
)
_TAG_BEGINS = re.compile(r"<|\[[Tt]|◁")
"""How every tag of a thought begins."""
_CHANNEL = re.compile(rf"{CHANNEL_BEGINS}(?P<words>.*?)(?={CHANNEL_ENDS}|\Z)", re.DOTALL)
_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*+"?|//[^\n]*|,(?=\s*(?://[^\n]*\n\s*)*[}\]])')
"""An unclosed string also counts as one: what holds it is not JSON, with or without its comments."""
MAX_CANDIDATES = 2000
"""Opening braces that are tried, from the end; text with more of them is not a reply in our format."""
_decode = json.JSONDecoder(parse_constant=lambda _: None).decode
"""NaN and Infinity, which are not JSON but which Python reads, become null: they could not be written again."""
MOST_PARSED = 40
"""How many times its own length of a text is parsed, at most, in search of the object."""


class NoReply(Exception):
    """There is no such object in the text; says what is wrong, for the agent that has to correct it."""


def without_thinking(text: str) -> str:
    """Leave out what an agent has only thought.

    - Closed thoughts, anywhere.
    - All before a closing tag that nothing has opened: many servers write the opening one themselves, and do not send
      it. It has to begin or end its line, and in a block of code it is part of a file.
    - All behind an opening tag that begins a line, or the text, and is never closed. In a block of code, or within a
      line, it must not swallow what follows.
    - In a reply of channels (`<|channel|>analysis<|message|>…`), all but the final one.
    """
    if "<" not in text and "[" not in text and "◁" not in text:
        return text  # one of these begins every mark of a thought, and most texts have none
    if IN_CHANNELS.match(text):
        text = "".join(one["words"] for one in _CHANNEL.finditer(text) if one["name"] == FINAL_CHANNEL)
    kept, at = list[str](), 0
    for start, end in _thoughts(text):
        if start:
            kept.append(text[at:start])
        else:
            kept.clear()
        at = end
    return "".join([*kept, text[at:]]) if at else text


def _thoughts(text: str) -> Iterator[tuple[int, int]]:
    """Where each thought begins and ends: at 0 also if it began before the text."""
    other = _OTHER_THOUGHT.match(text)
    if other:
        yield 0, other.end()
    if not _THOUGHT.search(text):
        return
    tags, code, at = list(_TAG.finditer(text)), _Code(text), 0
    beginning = len(text) - len(text.lstrip())
    closings = _closings(tags)
    for tag in tags:
        start, end = tag.span("tag")
        if start < at:
            continue
        if tag["closes"]:
            is_line = tag["begins"] is not None or tag["ends"] is not None
            if is_line and not code.holds(start, closed=True):
                at = end
                yield 0, at
            continue
        ahead = closings.get(tag["name"].lower(), [])
        while ahead and ahead[-1].start() < end:
            ahead.pop()
        if ahead:
            at = ahead[-1].end("tag")
            yield start, at
        elif start == beginning:
            yield 0, len(text)
            return
        elif tag["begins"] is not None and not code.holds(start):
            yield start, len(text)
            return


def _closings(tags: list[re.Match[str]]) -> dict[str, list[re.Match[str]]]:
    """The closing tags by name, the last one first."""
    found: dict[str, list[re.Match[str]]] = {}
    for tag in reversed(tags):
        if tag["closes"]:
            found.setdefault(tag["name"].lower(), []).append(tag)
    return found


class _Code:
    """Which places of a text are in fenced blocks; found out when it is first asked."""

    def __init__(self, text: str) -> None:
        self._text = text

    def holds(self, place: int, closed: bool = False) -> bool:
        """`closed`: only in a block that has an end."""
        at = bisect_right(self._starts, place) - 1
        return at >= 0 and place < self._spans[at][1] and (self._spans[at][2] or not closed)

    @cached_property
    def _starts(self) -> list[int]:
        return [start for start, _, _ in self._spans]

    @cached_property
    def _spans(self) -> list[tuple[int, int, bool]]:
        lines = self._text.split("\n")
        begins = list(accumulate((len(line) + 1 for line in lines), initial=0))
        return [(begins[one.start], begins[one.end], one.is_closed) for one in blocks(lines, any_indent=True)]


PLAIN = ("", "markdown", "md", "text", "txt")
"""What a fence around a whole text may be marked with. With any other mark, what is in it is code."""


def meant(text: str) -> str:
    """What an agent means by words that others are to read: no thoughts, and no fence around all of them."""
    text = without_thinking(text)
    return _unfenced(text) if text.lstrip()[:1] in ("`", "~") else text


def _unfenced(text: str) -> str:
    lines = split_lines(text.strip())
    found = list(blocks(lines))
    if len(found) != 1 or not found[0].is_closed or len(found[0].inside(lines)) != len(lines) - 2:
        return text  # a bare fence inside may be the end of the first: then it is not clear what is around what
    fence = fence_of(lines[0])
    return "\n".join(lines[1:-1]) if fence is not None and fence.info.lower() in PLAIN else text


def strict(text: str) -> dict[str, Any]:
    return _object(without_thinking(text).strip())


def why_not_json(text: str) -> str:
    """Why a text that `strict` reads is not JSON to the letter; empty if it is, or cannot be read at all."""
    clean = without_thinking(text).strip()
    try:
        json.loads(clean, object_pairs_hook=_each_once, parse_constant=_no_constant)
    except NoReply as error:
        return str(error)
    except (ValueError, RecursionError):
        return "" if _read(clean) is None else "it has a comment, or a comma before a closing bracket"
    return ""


def repeated_key(source: str) -> str:
    """Says which key an object has twice, also in one with comments or trailing commas; empty if none."""
    for part in (source, _plain(source)):
        try:
            json.loads(part, object_pairs_hook=_each_once)
        except NoReply as error:
            return str(error)
        except (ValueError, RecursionError):
            continue
        break
    return ""


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise NoReply(f"the key {name[:60]!r} is in it twice")
        found[name] = value
    return found


def _no_constant(name: str) -> None:
    raise NoReply(f"{name} is no number")


def fenced(text: str) -> dict[str, Any]:
    lines = split_lines(without_thinking(text))
    closed = [block for block in blocks(lines, any_indent=True) if block.is_closed]
    if not closed:
        raise NoReply("there is no fenced block")
    return _object("\n".join(closed[-1].inside(lines)).strip())


def last(text: str, key: str) -> tuple[dict[str, Any], str]:
    """The last object that has `key`, and the text without it."""
    found = whole(text)
    return (found, "") if found is not None and key in found else _last_of_several(text, key)


def last_part(text: str, key: str) -> tuple[dict[str, Any], str, str]:
    """The last object that has `key`, as it is and as it is written, and the text without it."""
    found, clean, start, end = _last_object(text, key)
    return found, clean[start:end], _around(clean, start, end)


def _last_of_several(text: str, key: str) -> tuple[dict[str, Any], str]:
    found, clean, start, end = _last_object(text, key)
    return found, _around(clean, start, end)


def _last_object(text: str, key: str) -> tuple[dict[str, Any], str, int, int]:
    """The object, and where it is in the text without thoughts."""
    clean = without_thinking(text)
    objects = _Objects(clean, key)
    nearest, left = "", MOST_PARSED * len(clean)
    found: tuple[dict[str, Any], int, int] | None = None
    for start in _openings(clean):
        end, may_have_key = objects.look(start)
        if end is None or ((nearest or found) and not may_have_key) or (found and end < found[2]):
            continue
        left -= end - start
        if left < 0:
            break
        value = _read(clean[start:end])
        if value is None:
            continue
        if key in value:
            found = (value, start, end)  # unless another object that has the key is around it
        nearest = nearest or ", ".join(repr(name) for name in list(value)[:8]) or "nothing"
    if found:
        return found[0], clean, found[1], found[2]
    if nearest:
        raise NoReply(f"the last JSON object has {nearest}, but no {key!r}")
    if not clean.strip():
        raise NoReply("the reply has only thoughts" if text.strip() else "the reply is empty")
    raise NoReply("there is no complete JSON object in it" if "{" in clean else "there is no JSON object in it")


def whole(text: str) -> dict[str, Any] | None:
    """The usual case of a model that is held to a schema: the text is the object."""
    if not text or text[0] != "{" or text[-1] != "}":
        return None
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    return _fit_to_show(value, text) if _TAG_BEGINS.search(text) else value


def _openings(text: str) -> Iterator[int]:
    """Where an object may begin, the outermost of the last ones first: from the end backwards."""
    position, tried = len(text), 0
    while tried < MAX_CANDIDATES:
        position = text.rfind("{", 0, position)
        if position < 0:
            return
        tried += 1
        yield position


class _Objects:
    """Where the objects in a text end. `look` is to be asked from the end of the text backwards.

    What follows a place depends on nothing before it, so it is found out once for every place between two tokens
    (strings, comments, braces); an object is passed over by where it ends, which is known already.
    """

    _MARK = re.compile(r'["{}]|//')
    _STRING = re.compile(r'"(?:[^"\\\n]|\\.)*+')

    def __init__(self, text: str, key: str = "") -> None:
        self._text = text
        self._key = f'"{key}"'
        self._known: dict[int, tuple[int | None, bool]] = {}
        """Place → where the object that it is in ends, and whether a string ahead, at that depth, may be the key."""
        self._unclosed = range(0)
        """A quote here opens no string: none of those after an unclosed one in its line does."""

    def look(self, start: int) -> tuple[int | None, bool]:
        at, passed = start + 1, []
        while at not in self._known:
            token = self._token(at)
            if token is None:
                self._known[at] = (None, False)
                break
            begin, end = token
            char = self._text[begin]
            if char == "}":
                self._known[at] = (end, False)
                break
            passed.append((at, char == '"' and self._may_be_key(begin, end)))
            if char == "{":
                inner = self._known[end][0]
                if inner is None:
                    self._known[at] = (None, False)
                    break
                end = inner
            at = end
        closing, keyed = self._known[at]
        for place, is_key in reversed(passed):
            keyed = keyed or is_key
            self._known[place] = (closing, keyed)
        return self._known[start + 1]

    def first(self) -> int | None:
        """Where the object ends that the text begins with."""
        at = depth = 0
        while token := self._token(at):
            begin, at = token
            depth += {"{": 1, "}": -1}.get(self._text[begin], 0)
            if depth == 0:
                return at
        return None

    def _may_be_key(self, begin: int, end: int) -> bool:
        return self._text.startswith(self._key, begin) or "\\" in self._text[begin:end]

    def _token(self, at: int) -> tuple[int, int] | None:
        """The next string, comment or brace; a quote that opens no string is one of its own."""
        mark = self._MARK.search(self._text, at)
        if mark is None:
            return None
        begin, end = mark.span()
        if mark[0] == "//":
            newline = self._text.find("\n", end)
            end = newline if newline >= 0 else len(self._text)
        elif mark[0] == '"' and begin not in self._unclosed:
            string = self._STRING.match(self._text, begin)
            assert string is not None
            if self._text[string.end() : string.end() + 1] == '"':
                end = string.end() + 1
            else:
                self._unclosed = range(begin, string.end())
        return begin, end


def _read(part: str) -> dict[str, Any] | None:
    """An object, as JSON or almost."""
    try:
        value = _decode(part)
    except (ValueError, RecursionError):  # ValueError: no JSON, or a number with thousands of digits
        value = _tolerant(part)
    return _fit_to_show(value, part) if isinstance(value, dict) else None


def _fit_to_show(value: dict[str, Any], source: str) -> dict[str, Any] | None:
    try:
        shown: dict[str, Any] = _printable(value, source)
        return _spoken(shown) if _TAG_BEGINS.search(source) else shown
    except RecursionError:  # deeper than it could be written again
        return None


def _tolerant(part: str) -> Any:
    """Once more, without comments and trailing commas; only where there are any."""
    plain = _plain(part)
    if plain == part:
        return None
    try:
        return _decode(plain)
    except (ValueError, RecursionError):
        return None


def _plain(part: str) -> str:
    return _STRING_OR_COMMENT.sub(lambda match: match[0] if match[0][0] == '"' else "", part)


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


def _spoken(value: Any) -> Any:
    """Without the thoughts in its texts, which are as public as the reply itself."""
    if isinstance(value, str):
        return without_thinking(value)
    if isinstance(value, list):
        return [_spoken(item) for item in value]
    if isinstance(value, dict):
        return {key: _spoken(item) for key, item in value.items()}
    return value


def _object(text: str) -> dict[str, Any]:
    alone = text.startswith("{") and _Objects(text).first() == len(text)
    found = _read(text) if alone else None
    if found is None:
        raise NoReply("it is not one JSON object and nothing else")
    return found


def _around(text: str, start: int, end: int) -> str:
    """The text without the object, and without the fence that held only it."""
    before, after = text[:start].rstrip(), text[end:].lstrip()
    head, _, line = before.rpartition("\n")
    opening = fence_of(line)
    if opening and after.startswith(opening.mark):  # models write on behind it, so more than a closing fence counts
        before, after = head.rstrip(), after.lstrip(opening.kind)
    return (before + "\n" + after).strip()


Decided = tuple[str, dict[str, Any]]

_latest: list[tuple[str | None, Decided, bool]] = [(None, ("", {}), False)]
"""The text that was read last, what was found in it, and whether the text is the object."""


def decided(text: str) -> Decided:
    """What an agent said and decided. Raises `NoReply`.

    A step asks twice about the same text, once to decide and once to fold. So the latest answer is kept, and found by
    the text being the same object: a cache by its content would have to hash every reply from end to end.
    """
    known, answer, _ = _latest[0]
    if known is text:
        return answer
    found, rest = whole(text), ""  # not `last`: a call less, in every turn
    is_object = found is not None and "decisions" in found
    if found is None or not is_object:
        found, rest = _last_of_several(text, "decisions")
    decisions = found["decisions"]
    if not isinstance(decisions, dict):
        raise NoReply(f'"decisions" is {_kind(decisions)}; it must be an object such as {{"approved": true}}')
    content = found.get("content")
    answer = meant(content if type(content) is str else _as_text(content, rest)), decisions
    _latest[0] = (text, answer, is_object)
    return answer


def is_whole(text: str) -> bool:
    """Whether the text is the object with the decisions, and nothing else. Raises `NoReply` as `decided` does."""
    decided(text)
    return _latest[0][2]


def _as_text(content: Any, rest: str) -> str:
    """The words of a `content` that is not text: those in a list, one below the other; else the JSON that it is.

    Null and empty values hold no words, so they count as absent: then the `rest` of the reply is what was said.
    """
    if isinstance(content, list):
        content = [item for item in content if item not in (None, "")]
        parts = [item.get("text") if isinstance(item, dict) else item for item in content]
        texts = [part for part in parts if isinstance(part, str)]
        if len(texts) == len(parts):
            return "\n".join(texts) or rest
    if content is None or content == {}:
        return rest
    return msgspec.json.encode(content).decode()


def _kind(value: Any) -> str:
    return {list: "a list", str: "a text", bool: "a boolean", type(None): "null"}.get(type(value), "a number")
