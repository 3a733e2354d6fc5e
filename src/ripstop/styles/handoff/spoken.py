"""What a message says: its body without labels, and the sender's own words without quotations and signature.

Real agents put what they say under `## Content`, `## Answer` or `**回复：**`, quote the message that they answer, and
sign. A label is not part of a task, and a courtesy stays one with a quotation below it.
"""

import re

from msgspec import Struct

from .fenced_code import FENCED, fences
from .labels import SPOKEN, heading_label, labelled
from .markdown import TIMESTAMP
from .message import HandoffMessage

_CUT = re.compile(
    r"[-_=*]{2,}[ \t]*(?:original message|forwarded message|原始邮件|原始消息|原消息|转发邮件).*"
    r"|on\b.{0,120}\bwrote[:：]?|在?.{0,80}写道[:：]?|--[ \t]?|[-—_]{3,}",
    re.IGNORECASE,
)
"""What begins a quotation or a signature, as a whole line."""
_SIGNED = re.compile(r"(?:[-–]{2}|[—–]{1,2})[ \t]*\S.{0,40}")
_LONGEST_SIGNATURE = 6
"""Lines."""


class Spoken(Struct, frozen=True):
    text: str
    """The body without its labels."""
    own: str
    """The text without quotations and signature."""
    answers: bool
    """It is labelled as an answer."""


def spoken(message: HandoffMessage) -> Spoken:
    kept, own, answers, quoted = [], [], message.answers, False
    lines = message.body.split("\n")
    marks, first = fences(lines), True
    for written, mark in zip(lines, marks, strict=True):
        line = written
        label = heading_label(line) if mark != FENCED else None
        if label is None and first and mark != FENCED and (found := labelled(line)) and found[0] in SPOKEN:
            label = found
        first = first and not line.strip()
        if label:
            name, line = label
            quoted = name == "Quoted"
            answers = answers or name == "Answer"
        kept.append(line)
        if not quoted and not line.lstrip().startswith(">"):
            own.append(line)
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()
    return Spoken(text, _unsigned(own, message), answers)


def _unsigned(lines: list[str], message: HandoffMessage) -> str:
    """The lines without what was quoted below them, and without a signature."""
    cut = next((n for n, line in enumerate(lines) if _CUT.fullmatch(line.strip()) and _ends(lines, n)), len(lines))
    own = [line.rstrip() for line in lines[:cut]]
    names = {name.casefold() for name in (message.sender, message.to) if name}
    while own and _is_signature(own[-1].strip(), names, alone=sum(map(bool, own)) == 1):
        own.pop()
    return "\n".join(own).strip()


def _ends(lines: list[str], cut: int) -> bool:
    """A bare rule of dashes is a signature only if little follows it; a quotation may be long."""
    if not set(lines[cut].strip()) <= set("-—_ "):
        return True
    return any(line.strip() for line in lines[:cut]) and len(lines) - cut - 1 <= _LONGEST_SIGNATURE


def _is_signature(line: str, names: set[str], alone: bool) -> bool:
    if not line or TIMESTAMP.fullmatch(line):
        return not alone
    bare = line.strip("-—–~*_ \t,，.。").casefold()
    return not alone and (bare in names or _SIGNED.fullmatch(line) is not None)


def without_names(words: str, message: HandoffMessage) -> str:
    """The words without the names of sender and recipient: "Thanks, Bob" is as polite as "Thanks"."""
    for name in (message.sender, message.to):
        if name and len(name) <= 60:
            words = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)" if name.isascii() else re.escape(name), " ", words)
    return words
