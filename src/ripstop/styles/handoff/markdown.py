"""How the text of a hand-off document or message falls into lines, header, sections and bullets.

- A line ends with LF or CRLF. Lines keep their ends, so joining them gives the text back.
- A header is a block of `Key: value` lines (the colon may be full-width). It ends at the first blank line after
  one of them, or at the first line that is none.
- A section begins with `## Name` at the very beginning of a line. In fenced code it is text. A fence that is
  never closed is not a fence.
- The known sections may be named in the text of others. Where a known heading occurs more than once, `Task` is
  the first; of the others it is the last one before the section that should follow, and for
  `History` one with nothing but bullets is preferred. All the rest are text of the section around them.
- A history record at the very end of the text belongs to the history, whatever section it is in: that is where
  `echo … >> FILE` puts it. It must have a status change, because an end condition can begin with a time.
- Text that we write never makes a heading, an open fence or a history record: outside fenced code, such a line gets
  a backslash before its mark (`\\## x`), and so does a line that has backslashes there already. Reading takes one
  off again.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from msgspec import Struct

from ripstop.kernel.errors import RipstopError
from ripstop.text.markdown import fence_of

# Which lines of a text are fenced code. A fence that is never closed is not a fence, and one counts in any column.


TEXT, FENCED, LOOSE = 0, 1, 2
"""What a line is: ordinary text, part of fenced code (its fences included), a fence that is never closed."""


def is_fence(line: str) -> bool:
    return fence_of(line) is not None


def fences(lines: Sequence[str]) -> bytearray:
    """What each line is. One pass from each side, so that any text is read in linear time."""
    marks = bytearray(len(lines))
    found = [
        (number, fence)
        for number, line in enumerate(lines)
        if ("```" in line or "~~~" in line) and (fence := fence_of(line))
    ]
    longest = {"`": 0, "~": 0}
    ahead = []  # for each fence, how long the longest one is that could close it
    for _, fence in reversed(found):
        ahead.append(longest[fence.kind])
        if not fence.info:
            longest[fence.kind] = max(longest[fence.kind], fence.length)
    start, opening = 0, None
    for (number, fence), most in zip(found, reversed(ahead), strict=True):
        if opening is None:
            if most >= fence.length:
                start, opening = number, fence
            else:
                marks[number] = LOOSE
        elif fence.closes(opening):
            marks[start : number + 1] = bytes([FENCED]) * (number + 1 - start)
            opening = None
    return marks


# The labels that agents put before the parts of a message: `From:`, `**To:**`, `发件人：`, `## Answer`.
#
# Only data and how a line is matched with it. A label is known in any case, with full-width colons, in bold, and as an
# item of a list. Headers have one name here, whatever they were called in the text.


_NAMES = {
    "From": "from, sender, 发件人, 发送者, 发送人, 发信人, 来自",
    "To": "to, recipient, receiver, 收件人, 接收者, 接收人, 收信人, 发给",
    "Time": "time, date, sent, sent at, timestamp, 时间, 日期, 发送时间",
    "Type": "type, message type, 类型, 消息类型",
    "Title": "title, subject, 标题, 主题",
    "Answer": "answer, reply, response, 回答, 答案, 回复, 答复, 回复内容, 回答内容",
    "Content": "content, message, body, text, 内容, 消息, 正文, 消息内容, 信息",
    "Request": "question, task, request, 问题, 任务, 请求",
    "Quoted": "original message, previous message, quoted message, in reply to, forwarded message, 原消息, 原始消息, "
    "原始邮件, 引用, 上一条消息, 回复的消息",
}
LABELS = {word.strip(): name for name, words in _NAMES.items() for word in words.split(",")}
"""Label as it is written, in lower case → its name."""
ENVELOPE = ("From", "To", "Time", "Type", "Title")
SPOKEN = ("Answer", "Content")
"""What is said begins with one of these."""

_WORDS = r"[^\W\d][\w-]*+(?: [\w-]++){0,3}"
_LABELLED = re.compile(rf"[ \t]*+(?:[-*+][ \t]++)?(\*\*|__)?[ \t]*+({_WORDS})[ \t]*+(\*\*|__)?[ \t]*+[:：]")
_ANY_HEADING = re.compile(r"#{1,6}[ \t]++(.*)")
_BOLD_LINE = re.compile(rf"(?:\*\*|__)[ \t]*+({_WORDS})[ \t]*+[:：]?[ \t]*+(?:\*\*|__)[ \t]*+[:：]?[ \t]*+")


def labelled(line: str) -> tuple[str, str] | None:
    """The name of the label that a line begins with (as it is written if it is not a known one), and what follows."""
    match = _LABELLED.match(line)
    if match is None:
        return None
    value, bold, closed = line[match.end() :].strip(), match[1], match[3]
    if bold and not closed:
        if value.startswith(bold):  # `**From:** Bob`
            value = value.removeprefix(bold).lstrip()
        elif value.endswith(bold):  # `**From: Bob**`
            value = value.removesuffix(bold).rstrip()
    return LABELS.get(match[2].lower(), match[2]), value


def heading_label(line: str) -> tuple[str, str] | None:
    """The name of the known label that is a heading or a bold line, and what follows it in the line."""
    heading = _ANY_HEADING.match(line)
    words, rest = (heading[1], "") if heading else ("", "")
    if not heading and (bold := _BOLD_LINE.match(line)):
        words, rest = bold[1], line[bold.end() :].strip()
    name = LABELS.get(words.strip(" \t*_:：#\r\n").lower(), "")
    return (name, rest) if name and name not in ENVELOPE else None


STATUSES = ("pending", "in_progress", "completed", "terminated")
LEGAL = {
    "pending": ("pending", "in_progress", "terminated"),
    "in_progress": ("pending", "completed", "terminated"),
    "completed": (),
    "terminated": (),
}
"""Where each status may lead. `pending→pending` is the creation or an assignment."""
SECTIONS = ("Task", "History", "Next_Action", "Termination_Conditions")
"""The known ones, in their order."""
TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}")

_TITLE = re.compile(r"(#{1,3}+)[ \t]++Workflow[ \t]*+[:：]")
_HEADER = re.compile(r"[ \t]*+([^\W\d][\w-]*+(?: [\w-]++){0,3})[ \t]*+[:：]")
_SECTION_HEADING = re.compile(r"##[ \t]++(.*)", re.DOTALL)
_GUARDED = re.compile(rf"(?:[ \t]*+(?=\\*+(?:```|~~~))|(?=\\*+#)|(?=\\*+[-*+][ \t]++{TIMESTAMP.pattern}))(\\*+)")
_BULLET = re.compile(r"[-*+](?:[ \t]++|\r?$)")
_EVENT = re.compile(rf"[-*+][ \t]++({TIMESTAMP.pattern})[ \t]++(\S++)(.*)", re.DOTALL)
_STATUS_WORD = re.compile(r"[A-Za-z_]+")


class Malformed(RipstopError):
    """The text is not a hand-off document. Says where, what is wrong and what would be right."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line = line
        self.reason = reason


# Lines


def lines_of(text: str, what: str) -> list[str]:
    """The lines with their ends; refuses what no text file holds."""
    *whole, rest = text.split("\n")
    lines = [line + "\n" for line in whole]
    if rest:
        lines.append(rest)
    if "\0" in text:
        number = next(n for n, line in enumerate(lines, 1) if "\0" in line)
        raise Malformed(number, f"there is a NUL byte; {what} is plain text in UTF-8. Remove the byte.")
    return lines


def first_line(lines: Sequence[str]) -> int | None:
    """Index of the first line that is not blank."""
    return next((n for n, line in enumerate(lines) if line.strip()), None)


def one_line(text: str) -> str:
    """The text in one line."""
    parts = (part.strip() for part in re.split(r"[\r\n]", without_nul(text)))
    return " ".join(part for part in parts if part)


def as_id(text: str) -> str:
    """The id that a text means: in one line, with tabs as spaces."""
    return one_line(text).replace("\t", " ").strip()


def clean(text: str) -> str:
    """The text as a section keeps it: LF, no blanks or blank lines at either end, U+FFFD for NUL."""
    return without_nul(text).replace("\r\n", "\n").replace("\r", "\n").strip()


def without_nul(text: str) -> str:
    return text.replace("\0", "\ufffd")


# The header


class Header(Struct, frozen=True, gc=False):
    key: str
    value: str
    index: int
    """Of its line, from 0."""


def header_of(lines: Sequence[str], start: int) -> tuple[tuple[Header, ...], int]:
    """The header block that begins at `start` or after blank lines there, and the index behind it."""
    found: list[Header] = []
    at = start
    while at < len(lines):
        line = lines[at]
        if match := _HEADER.match(line):
            value = line[match.end() :].strip()
            found.append(Header(match[1], one_line(value) if "\r" in value else value, at))
        elif found or line.strip():
            break
        at += 1
    return tuple(found), at


def header_values(headers: Iterable[Header], known: Iterable[str]) -> dict[str, Header]:
    """The known headers by key; a duplicate is refused, because it would be unclear which one holds."""
    values: dict[str, Header] = {}
    for header in headers:
        if header.key not in known:
            continue
        if header.key in values:
            first = values[header.key].index + 1
            raise Malformed(
                header.index + 1, f"`{header.key}:` is there twice, first in line {first}. Keep one of the two."
            )
        values[header.key] = header
    return values


def with_value(line: str, value: str, newline: str) -> str:
    """The header line with another value; indentation, colon and the blanks after it stay."""
    match = _HEADER.match(line)
    assert match is not None, "only lines that were read as headers are changed"
    rest = line[match.end() :]
    gap = rest[: len(rest) - len(rest.lstrip())] if rest.strip() else " "
    end = newline if not line.endswith("\n") else "\r\n" if line.endswith("\r\n") else "\n"
    return (line[: match.end()] + gap + value).rstrip() + end


def is_header(line: str, key: str) -> bool:
    match = _HEADER.match(line)
    return match is not None and match[1] == key


def title_of(line: str) -> tuple[int, str] | None:
    """The level of the heading `Workflow: <id>` and the id, which may be empty; `None` if the line is not a title."""
    match = _TITLE.match(line)
    return (len(match[1]), as_id(line[match.end() :])) if match else None


def status_of(known: dict[str, Header], title: int) -> str:
    header = known.get("Status")
    if header is None:
        raise Malformed(title, _missing("Status", f"`Status:` and {either(STATUSES)}"))
    if header.value not in STATUSES:
        raise Malformed(header.index + 1, f"{header.value[:80]!r} is not a status; it is {either(STATUSES)}.")
    return header.value


def owner_of(known: dict[str, Header], title: int) -> str:
    header = known.get("Current_Owner")
    if header is None:
        raise Malformed(title, _missing("Current_Owner", "`Current_Owner: <agent>`"))
    if not header.value:
        raise Malformed(header.index + 1, "`Current_Owner:` names nobody; write the agent whose turn it is.")
    return header.value


def count_of(known: dict[str, Header]) -> int | None:
    header = known.get("Interaction_Count")
    if header is None:
        return None
    if not (header.value.isascii() and header.value.isdigit() and len(header.value) <= 9):
        raise Malformed(
            header.index + 1,
            f"{header.value[:80]!r} is not an interaction count; write a whole number from 0, or leave the line out.",
        )
    return int(header.value)


def _missing(key: str, right: str) -> str:
    return (
        f"the header has no `{key}:`. Write {right} into the lines under the title; "
        "the header ends at the first blank line, and at the first line that is not `Key: value`."
    )


def either(values: Sequence[str]) -> str:
    return ", ".join(f"`{value}`" for value in values[:-1]) + f" or `{values[-1]}`"


# Text in a section


def escaped(text: str, fences_before: bool = False) -> list[str]:
    """The lines to write for a clean text. `fences_before`: there is an open fence above, which ours would close."""
    if not text:
        return []
    lines = text.split("\n")
    marks = bytearray(len(lines)) if fences_before else fences(lines)
    return [line if mark == FENCED else guarded(line) for line, mark in zip(lines, marks, strict=True)]


def guarded(line: str) -> str:
    match = _GUARDED.match(line)
    if match is None or not (match[1] or heading_of(line) or is_fence(line) or is_record(line)):
        return line
    return line[: match.start(1)] + "\\" + line[match.start(1) :]


def unescaped(lines: Sequence[str], marks: Sequence[int]) -> str:
    """The text of the lines without its escapes."""
    text = "".join(lines)
    if "\\" not in text:
        return clean(text)
    return clean("".join(line if mark == FENCED else _unguarded(line) for line, mark in zip(lines, marks, strict=True)))


def _unguarded(line: str) -> str:
    match = _GUARDED.match(line) if "\\" in line else None
    return line[: match.start(1)] + line[match.start(1) + 1 :] if match and match[1] else line


# Sections


class Section(Struct, frozen=True, gc=False):
    """`start` is the index of its heading, `end` the one behind its last line."""

    name: str
    start: int
    end: int


def heading_of(line: str) -> str:
    """The name in a heading; empty if the line is none."""
    match = _SECTION_HEADING.match(line)
    return match[1].strip() if match else ""


def sections_of(lines: Sequence[str], marks: Sequence[int], start: int) -> tuple[Section, ...]:
    headings = [
        (n, name)
        for n in range(start, len(lines))
        if lines[n].startswith("##") and marks[n] != FENCED and (name := heading_of(lines[n]))
    ]
    chosen = _chosen(lines, marks, headings)
    real = [(n, name) for n, name in headings if name not in SECTIONS or chosen[name] == n]
    return tuple(Section(name, n, end) for (n, name), (end, _) in pairwise([*real, (len(lines), "")]))


def _chosen(lines: Sequence[str], marks: Sequence[int], headings: list[tuple[int, str]]) -> dict[str, int]:
    """Which heading of each known name is the real one."""
    candidates: dict[str, list[int]] = {}
    follows: dict[int, int] = {}
    for (number, name), (following, _) in pairwise([*headings, (len(lines), "")]):
        if name in SECTIONS:
            candidates.setdefault(name, []).append(number)
            follows[number] = following
    chosen: dict[str, int] = {}
    limit = len(lines)
    for name in reversed(SECTIONS):
        numbers = candidates.get(name, [])
        if name == "Task":
            best = numbers[:1]
        elif name == "History" and len(numbers) > 1:
            ranked = ((n < limit, _only_bullets(lines, marks, n + 1, follows[n]), n) for n in numbers)
            best = [max(ranked)[2]]
        else:
            best = [max((n < limit, n) for n in numbers)[1]] if numbers else []
        if best:
            chosen[name] = limit = best[0]
    return chosen


def _only_bullets(lines: Sequence[str], marks: Sequence[int], start: int, end: int) -> bool:
    """Whether there are only bullets, what belongs to them (indented), and blank lines."""
    return all(
        marks[n] == FENCED or not lines[n].strip() or lines[n][0] in " \t" or is_bullet(lines[n])
        for n in range(start, end)
    )


# Bullets


class Bullet(Struct, frozen=True, gc=False):
    """A record of History. One that does not follow the form has only `line` and `raw`."""

    line: int
    raw: str
    at: str = ""
    agent: str = ""
    action: str = ""
    before: str = ""
    after: str = ""


def is_bullet(line: str) -> bool:
    return _BULLET.match(line) is not None


def bullet_text(line: str) -> str:
    """The text after the bullet's mark, or the whole line if there is none."""
    match = _BULLET.match(line)
    return (line[match.end() :] if match else line).strip()


def bullet_of(line: str, number: int) -> Bullet:
    raw = line.rstrip("\r\n")
    return Bullet(number, raw, *_event(raw))


@lru_cache(maxsize=4096)
def _event(raw: str) -> tuple[str, ...]:
    """The parts of a record. Every change of a document reads its whole history again, so they are remembered."""
    match = _EVENT.match(raw)
    return (match[1], match[2], *_change(match[3].strip())) if match else ()


def _change(rest: str) -> tuple[str, str, str]:
    """The action, and the status change that ends it; a change has a status on one side at least."""
    arrow = max(rest.rfind("→"), rest.rfind("->"))
    if arrow < 0:
        return rest, "", ""
    after = rest[arrow + (1 if rest[arrow] == "→" else 2) :].strip()
    head = rest[:arrow].rstrip()
    begin = len(head)
    while begin and (head[begin - 1] == "_" or (head[begin - 1].isascii() and head[begin - 1].isalpha())):
        begin -= 1
    before = head[begin:]
    if not before or not _STATUS_WORD.fullmatch(after) or not {before, after} & {*STATUSES}:
        return rest, "", ""
    return head[:begin].rstrip(), before, after


def bullets_in(lines: Sequence[str], marks: bytearray, history: Section | None) -> Iterator[Bullet]:
    for index in range(history.start + 1, history.end) if history else ():
        if marks[index] != FENCED and is_bullet(lines[index]):
            yield bullet_of(lines[index], index + 1)


def is_record(line: str) -> bool:
    """Whether the line is a history record with a status change."""
    return line[:1] in ("-", "*", "+") and bool(bullet_of(line, 0).after)


def appended_records(lines: Sequence[str], marks: Sequence[int], sections: Sequence[Section]) -> list[int]:
    """Indexes of the history records that end the text, if its last section is neither the history nor the task."""
    if not sections or sections[-1].name in ("Task", "History"):
        return []
    found = []
    for index in range(len(lines) - 1, sections[-1].start, -1):
        if marks[index] == FENCED or not (is_record(lines[index]) or not lines[index].strip()):
            break
        if lines[index].strip():
            found.append(index)
    return found[::-1]


def conditions_in(text: str) -> tuple[str, ...]:
    return tuple(condition for line in text.split("\n") if (condition := bullet_text(line)))


def agent_word(name: str) -> str:
    """An agent's name as it is written in History, where a space would end it."""
    return "_".join(one_line(name).split()) or "_"
