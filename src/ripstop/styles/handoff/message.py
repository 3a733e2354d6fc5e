"""A message between agents: a header, a body, and perhaps a whole hand-off document.

- `# Message` begins it, but may be missing. `From` and `To` may not. `Type` is one of `TYPES`. Labels are known in
  any case, in bold, and in Chinese (`markdown.py`).
- The body is what follows the header, without the document. An `Answer:` or `Content:` header is its first line.
  Header lines behind the last known one belong to the body, because agents forget the blank line. What the body
  says, without labels and quotations: `spoken`.
- The document is under `## Workflow Document`, its headings one level deeper (its title at any level from
  one to three); another heading of level two ends it. If its sections have their usual level, it continues to the
  end of the message. Without its title it is text, but a message of type `workflow` may not have such a text.
- What is written reads back as the same values: texts without blanks at both ends, header values in one line, a
  document with LF and one line end at its end.
"""

import re
from collections.abc import Sequence

from msgspec import Struct

from .calls import SendCall
from .document import HandoffDocument
from .markdown import (
    ENVELOPE,
    FENCED,
    SECTIONS,
    SPOKEN,
    TIMESTAMP,
    Header,
    Malformed,
    clean,
    either,
    escaped,
    fences,
    first_line,
    heading_label,
    heading_of,
    labelled,
    lines_of,
    one_line,
    title_of,
    unescaped,
)
from .state import COMPLETED, RESULT, HandoffState, legal_from
from .texts import ENGINE

TYPES = ("workflow", "workflow_reply", "normal")

_HEADING = "Workflow Document"
_MESSAGE = re.compile(r"#{1,6}[ \t]++(?:Message|消息|信息)\s*+$", re.IGNORECASE)
_DEEPER = re.compile(r"##++[ \t]")
_BOM = "\ufeff"


class HandoffMessage(Struct, frozen=True, gc=False):
    sender: str
    to: str
    body: str = ""
    time: str = ""
    type: str = "normal"
    title: str = ""
    document: str = ""
    """The text of a hand-off document, as `document.read` takes it; empty if there is none."""
    answers: bool = False
    """A header says that the body is an answer."""


def read_message(text: str) -> HandoffMessage:
    """Raises `Malformed`, and nothing else, whatever the text."""
    lines = lines_of(text.removeprefix(_BOM), "a message")
    start = first_line(lines)
    if start is None:
        raise Malformed(1, "the message is empty")
    headers = _headers(lines, start + 1 if _MESSAGE.match(lines[start]) else start)
    known = _envelope(headers)
    values = {key: header.value for key, header in known.items()}
    for key in ("From", "To"):
        if not values.get(key):
            line = known[key].index if key in known else start
            raise Malformed(
                line + 1,
                f"`{key}:` is missing or empty; a message begins with `# Message`, `From: <agent>`, `To: <agent>`.",
            )
    kind = re.sub(r"[ -]+", "_", values.get("Type", "").lower()) or "normal"
    if kind not in TYPES:
        raise Malformed(
            known["Type"].index + 1, f"{values['Type'][:80]!r} is not a type of message; it is {either(TYPES)}."
        )
    below = max(header.index for header in headers) + 1
    rest, document = _parted(lines[below:])
    if kind == "workflow" and not document and (untitled := _document_heading(lines[below:])) is not None:
        raise Malformed(
            below + untitled + 1, f"there is no document under `## {_HEADING}`; it begins with `### Workflow: <id>`."
        )
    spoken = [header.value for header in headers if header.key in SPOKEN]
    return HandoffMessage(
        sender=values["From"],
        to=values["To"],
        body="\n".join([*spoken, rest]).strip(),
        time=values.get("Time", ""),
        type=kind,
        title=values.get("Title", ""),
        document=document,
        answers=any(header.key == "Answer" for header in headers),
    )


def _headers(lines: Sequence[str], start: int) -> list[Header]:
    """The known headers in the block of labelled lines that begins at `start` or after blank lines there."""
    found: list[Header] = []
    began = False
    for index in range(start, len(lines)):
        label = labelled(lines[index])
        if label is None and (began or lines[index].strip()):
            break
        if label is not None:
            began = True
            name, value = label
            if name in ENVELOPE or name in SPOKEN:
                found.append(Header(name, one_line(value), index))
    return found


def _envelope(headers: Sequence[Header]) -> dict[str, Header]:
    """The headers by name; a duplicate is refused, because it would be unclear which one holds."""
    known: dict[str, Header] = {}
    for header in headers:
        if header.key not in ENVELOPE:
            continue
        if header.key in known and header.key != "Time":
            first = known[header.key].index + 1
            raise Malformed(
                header.index + 1, f"`{header.key}:` is there twice, first in line {first}. Keep one of the two."
            )
        known.setdefault(header.key, header)
    return known


def write_message(message: HandoffMessage) -> str:
    """Raises `Malformed` for a message that could not be read back."""
    values = {
        "From": message.sender,
        "To": message.to,
        "Time": message.time,
        "Type": message.type,
        "Title": message.title,
    }
    header = [f"{key}: {words}" for key, value in values.items() if (words := one_line(value))]
    lines = ["# Message", *header]
    if body := clean(message.body):
        lines += ["", *escaped(body)]
    if message.document.strip():
        lines += ["", f"## {_HEADING}", embedded(message.document)]
    text = "\n".join(lines).rstrip("\n") + "\n"
    read_message(text)
    return text


def embedded(document: str) -> str:
    """The text of a document as it is written in a message."""
    lines = clean(document.removeprefix(_BOM)).split("\n")
    if title_of(lines[0]) is None:
        raise Malformed(1, "a document begins with `# Workflow: <id>`; this text cannot be sent as one.")
    marks = fences(lines)
    deeper = [f"#{line}" if _is_deep(line, mark, 2) else line for line, mark in zip(lines, marks, strict=True)]
    return "\n".join([_titled(lines[0], 3), *deeper[1:]])


def _parted(lines: Sequence[str]) -> tuple[str, str]:
    """The text and the document."""
    marks = fences(lines)
    headings = [n for n, line in enumerate(lines) if line.startswith("##") and marks[n] != FENCED and heading_of(line)]
    begin = next((n for n in headings if heading_of(lines[n]) == _HEADING and _title_below(lines, n)), None)
    if begin is None:
        return unescaped(lines, marks), ""
    title = _title_below(lines, begin)
    below = [n for n in headings if n > title]
    deep = not any(heading_of(lines[n]) in SECTIONS for n in below)
    end = below[0] if deep and below else len(lines)
    lifted = [
        line[1:] if deep and line[0] == "#" and _is_deep(line, mark, 3) else line
        for line, mark in zip(lines[title + 1 : end], marks[title + 1 : end], strict=True)
    ]
    document = clean("".join([_titled(lines[title], 1), *lifted])) + "\n"
    around = [unescaped(lines[:begin], marks[:begin]), unescaped(lines[end:], marks[end:])]
    return "\n\n".join(text for text in around if text), document


def _document_heading(lines: Sequence[str]) -> int | None:
    """Index of the first heading under which a document should be."""
    marks = fences(lines)
    return next((n for n, line in enumerate(lines) if marks[n] != FENCED and heading_of(line) == _HEADING), None)


def _title_below(lines: Sequence[str], heading: int) -> int:
    """Index of the document's title, which is the first line under the heading; 0 if it is another."""
    below = next((n for n in range(heading + 1, len(lines)) if lines[n].strip()), 0)
    return below if title_of(lines[below]) else 0


def _titled(line: str, level: int) -> str:
    return "#" * level + line.lstrip("#")


def _is_deep(line: str, mark: int, level: int) -> bool:
    """Whether it is a heading of this level or a deeper one."""
    return mark != FENCED and line.startswith("#" * level) and _DEEPER.match(line) is not None


# The message to the sender of a document that is finished or refused, of type `workflow_reply`.


_SAID = {
    "en": {True: "{id} is completed.", False: "{id} is terminated."},
    "zh": {True: "{id} 已完成。", False: "{id} 已终止。"},
}


def sending(state: HandoffState) -> SendCall:
    """The message, for the tool that sends it."""
    document = state.document
    # a document that is reopened and finished again has a longer history, and that is worth another message
    stem = f"reply_{len(document.history)}_{document.id}"
    return SendCall(agent=state.reply_to, stem=stem, text=_text(state), folder=state.definition.folder)


def _text(state: HandoffState) -> str:
    document = state.document
    said = _SAID[state.language][document.status == COMPLETED].format(id=document.id)
    body = "\n\n".join(text for text in (said, _outcome(document)) if text)
    return write_message(
        HandoffMessage(
            sender=document.owner,
            to=state.reply_to,
            body=body,
            time=document.updated,
            type="workflow_reply",
            title=document.id,
        )
    )


_REFUSED = {
    "en": "The document {id} that you sent was refused: {reason}.\n\nIt is {status} with {owner}. Legal now: {legal}."
    "\n\nYour text is kept in {kept}. Nothing else was changed.",
    "zh": "你发来的文档 {id} 未被接受：{reason}。\n\n它现在的状态是 {status}，负责人是 {owner}。"
    "现在允许的变化：{legal}。\n\n你的文本保存在 {kept}，其他内容没有改变。",
}


def refusal(state: HandoffState, to: str, reason: str, kept: str, at: str) -> str:
    """The message to the sender of a document that was refused."""
    document = state.document
    body = _REFUSED[state.language].format(
        id=document.id,
        reason=reason.rstrip("."),
        status=document.status,
        owner=document.owner,
        legal=legal_from(document.status),
        kept=kept,
    )
    return write_message(
        HandoffMessage(sender=ENGINE, to=to, body=body, time=at, type="workflow_reply", title=document.id)
    )


def _outcome(document: HandoffDocument) -> str:
    """What came out of it. If nothing did, or it was terminated, the last thing that happened to it."""
    last = document.history[-1] if document.history else None
    happened = f"{last.agent} {last.action}" if last else ""
    result = document.section(RESULT)
    if document.status == COMPLETED:
        return result or happened
    return "\n\n".join(text for text in (result, happened) if text)


# What a message says: its body without labels, and the sender's own words without quotations and signature.
#
# Real agents put what they say under `## Content`, `## Answer` or `**回复：**`, quote the message that they answer, and
# sign. A label is not part of a task, and a courtesy stays one with a quotation below it.


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
