"""The JSON object that a reply ends with: its author's last word, and not an example, a quotation or a part of another.

- It is on lines of its own: what words lead into in the same line, or what is quoted, is an example.
- It is the reply's end: what a closing fence, blanks or a courtesy ("Thanks!") add says nothing.
- No object has a key twice, since readers disagree on which one counts.
- No other object of the reply says otherwise under the same key.
- Objects in files that the reply delivers say nothing: a reply that ends with such a file has not said its last word.

For deciding only: what a run has gone by is read with `reply`, which takes what there is.
"""

import re
from typing import Any

from ripstop.text.courtesy import is_courtesy

from . import reply
from .reply import NoReply
from .reply_files import Edit, Unclear, deliveries

MAX_OTHERS = 10
"""Other objects that are compared."""
_BEGINS_LINE = re.compile(r"\s*(?:(?:`{3,}|~{3,})\s*\w*|[`~]*)\s*")
"""What may be before an object in its line: nothing but what a fence begins with."""
_FENCES = "`~ \t\r\n"
DECISIONS = "decisions"


def final_decisions(text: str) -> reply.Decided:
    """What an agent said and decided (`reply.decided`), if it is its last word. Raises `NoReply`."""
    found = reply.decided(text)
    source, rest = (text, "") if reply.is_whole(text) else check_end(text, DECISIONS)[1:]
    if _may_repeat(source, found[1]) and (why := reply.repeated_key(source)):
        raise NoReply(f"the JSON object cannot be used: {why}")
    if f'"{DECISIONS}"' in rest:
        _compare(text, rest, found[1])
    return found


def _may_repeat(source: str, decisions: dict[str, Any]) -> bool:
    """Whether a key can be in the object twice. It is asked in every turn: to read the object again would cost more."""
    if "\\u" in source or source.count('"content"') > 1 or source.count('"decisions"') > 1:
        return True
    for name in decisions:  # noqa: SIM110  (a generator costs more than what it looks for)
        if source.count(f'"{name}"') > 1:
            return True
    return False


def check_end(text: str, key: str) -> tuple[dict[str, Any], str, str]:
    """The last object that has `key`, its source, and the text without it. Raises `NoReply` if it is not the end."""
    found, source, rest = reply.last_part(text, key)
    before, _, behind = reply.without_thinking(text).rpartition(source)
    if not _BEGINS_LINE.fullmatch(before, before.rfind("\n") + 1):
        raise NoReply("something is before it in its line, and it has to be on lines of its own")
    behind = behind.strip(_FENCES)
    if behind and not is_courtesy(behind):
        raise NoReply("something follows it, or is around it, and the reply has to end with it")
    files = _files_in(text)
    if files and reply.without_thinking(text).count(source) <= sum(content.count(source) for content in files):
        raise NoReply(f"the last JSON object with {key!r} is in a file that the reply delivers, so it decides nothing")
    return found, source, rest


def _files_in(text: str) -> list[str]:
    delivered = (one for one in deliveries(text) if not isinstance(one, Unclear))
    return [one.replace if isinstance(one, Edit) else one.content for one in delivered]


def _compare(text: str, rest: str, decisions: dict[str, Any]) -> None:
    files = _files_in(text)
    for _ in range(MAX_OTHERS):
        try:
            other, source, rest = reply.last_part(rest, DECISIONS)
        except NoReply:
            return
        said = other[DECISIONS]
        if not isinstance(said, dict) or any(source in content for content in files):
            continue
        for name in said:
            if name in decisions and said[name] != decisions[name]:
                raise NoReply(f"there are two JSON objects with {DECISIONS!r}, and they differ in {name[:60]!r}")
    raise NoReply(f"there are more than {MAX_OTHERS} JSON objects with {DECISIONS!r}")
