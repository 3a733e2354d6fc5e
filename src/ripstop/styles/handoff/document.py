"""A hand-off document: one task, its owner, its status and its history, in Markdown.

- A `HandoffDocument` is the text, line by line as it was found, and what the lines say. `write(read(text)) == text`
  holds for every text that `read` accepts; how text is divided, and escaped when we write it: `markdown.py`.
- Reading is tolerant where nothing is lost by it. It refuses only what leaves open whose turn it is: no title or
  id, no valid status, no owner, a duplicate header, a count that is not a number.
- A foreign document may contradict itself; `oddities` says where. They are never fatal.
- A change touches only its own lines. It is made in the text, and the text is read again, so there is one place
  that says what a document means. Texts lose blanks at both ends; names and actions are put into one line.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct

from ripstop.kernel.errors import UsageError

from .markdown import (
    FENCED,
    LEGAL,
    LOOSE,
    SECTIONS,
    STATUSES,
    TIMESTAMP,
    Bullet,
    Header,
    Malformed,
    Section,
    agent_word,
    appended_records,
    bullet_of,
    bullets_in,
    clean,
    conditions_in,
    count_of,
    either,
    escaped,
    fences,
    first_line,
    guarded,
    header_of,
    header_values,
    is_header,
    lines_of,
    one_line,
    owner_of,
    sections_of,
    status_of,
    title_of,
    unescaped,
    with_value,
)
from .texts import REOPENED

__all__ = [
    "HEADERS",
    "LEGAL",
    "SECTIONS",
    "STATUSES",
    "Bullet",
    "DocumentFlaw",
    "HandoffDocument",
    "Malformed",
    "agent_word",
    "interactions",
    "line_of",
    "oddities",
    "read",
    "write",
]

HEADERS = ("Status", "Current_Owner", "Previous_Owner", "Created_At", "Updated_At", "Interaction_Count")
"""The known ones, in their order."""

_INTERACTIONS = {("pending", "in_progress"), ("in_progress", "pending"), ("in_progress", "completed")}
"""An acceptance, a hand-over, a completion."""

_BOM = "\ufeff"


class HandoffDocument(Struct, frozen=True, gc=False):
    bom: bool
    lines: tuple[str, ...]
    """As found, with their ends."""
    headers: tuple[Header, ...]
    sections: tuple[Section, ...]

    id: str
    status: str
    owner: str
    previous: str
    created: str
    updated: str
    count: int | None
    """None if the header does not say; see `interactions`."""
    task: str
    history: tuple[Bullet, ...]
    next_action: str
    conditions: tuple[str, ...]
    appended: int = 0
    """How many records of `history`, the last ones, are at the end of the text instead of in its section."""

    def section(self, name: str) -> str:
        """The text of any section, known or not; empty if there is none."""
        found = self._find(name)
        lines = self.lines[: self._end()]
        return unescaped(*_body(lines, fences(self.lines), found)) if found else ""

    # Changes; each gives a new document

    def gathered(self) -> "HandoffDocument":
        """The document with every record in the section for history."""
        if not self.appended:
            return self
        document = read(_BOM * self.bom + "".join(self.lines[: self._end()]))
        return document._with_records([bullet.raw for bullet in self.history[-self.appended :]])

    def with_headers(self, values: Mapping[str, str]) -> "HandoffDocument":
        """Several headers at once; those that are there already are changed in one go."""
        lines, newline = list(self.lines), self._newline()
        for header in self.headers:
            if header.key in values:
                lines[header.index] = with_value(lines[header.index], one_line(values[header.key]), newline)
        document = read(_BOM * self.bom + "".join(lines))
        for key in values.keys() - {header.key for header in self.headers}:
            document = document.with_header(key, values[key])
        return document

    def with_header(self, key: str, value: str) -> "HandoffDocument":
        """Raises `Malformed` for a value that such a header cannot have."""
        newline, value = self._newline(), one_line(value)
        for header in self.headers:
            if header.key == key:
                line = with_value(self.lines[header.index], value, newline)
                return self._changed(header.index, header.index + 1, [line])
        line = f"{key}: {value}".rstrip()
        if not is_header(line, key):
            raise UsageError(
                f"{key!r} cannot be the key of a header: it is up to four words of letters, digits, _ or -."
            )
        before = HEADERS[: HEADERS.index(key)] if key in HEADERS else [header.key for header in self.headers]
        at = max(header.index for header in self.headers if header.key in before) + 1
        return self._changed(at, at, [line + newline])

    def with_bullet(self, at: str, agent: str, action: str, before: str, after: str) -> "HandoffDocument":
        """One more record, after the last one."""
        if not TIMESTAMP.fullmatch(at):
            raise UsageError(f"{at!r} is not a time for a history record; write YYYY-MM-DD HH:MM:SS.")
        if before not in STATUSES or after not in STATUSES:
            raise UsageError(f"{before!r}→{after!r} is not a status change; a status is {either(STATUSES)}.")
        words = [at, agent_word(agent), one_line(action), f"{before}→{after}"]
        return self.gathered()._with_records(["- " + " ".join(word for word in words if word)])

    def with_task(self, text: str) -> "HandoffDocument":
        return self.with_section("Task", text)

    def with_next_action(self, text: str) -> "HandoffDocument":
        return self.with_section("Next_Action", text)

    def with_conditions(self, conditions: Sequence[str]) -> "HandoffDocument":
        lines = [guarded(f"- {words}") for condition in conditions if (words := one_line(condition))]
        return self.gathered()._filled("Termination_Conditions", lines)

    def with_section(self, name: str, text: str) -> "HandoffDocument":
        """Another text for a section; an unknown one that is missing is added at the end."""
        name = one_line(name)
        if not name:
            raise UsageError("A section needs a name.")
        document = self.gathered()
        found = document._find(name)
        above = document.lines[: found.start if found else document._place(name)]
        return document._filled(name, escaped(clean(text), fences_before=LOOSE in fences(above)))

    # How

    def _find(self, name: str) -> Section | None:
        return next((section for section in reversed(self.sections) if section.name == name), None)

    def _with_records(self, records: list[str]) -> "HandoffDocument":
        found = self._find("History")
        if found is None:
            return self._created("History", records)
        place, newline = self._behind_last_bullet(found), self._newline()
        return self._changed(place, place, [record + newline for record in records])

    def _end(self) -> int:
        """The index behind the last line that is not an appended record."""
        return self.history[-self.appended].line - 1 if self.appended else len(self.lines)

    def _newline(self) -> str:
        """The end that most lines have."""
        crlf = sum(line.endswith("\r\n") for line in self.lines)
        return "\r\n" if 2 * crlf > len(self.lines) else "\n"

    def _changed(self, start: int, end: int, new: list[str]) -> "HandoffDocument":
        above = list(self.lines[:start])
        if new and above and not above[-1].endswith("\n"):
            above[-1] += self._newline()
        return read(_BOM * self.bom + "".join([*above, *new, *self.lines[end:]]))

    def _filled(self, name: str, content: list[str]) -> "HandoffDocument":
        """Only what is not blank at either end of the body is replaced."""
        found = self._find(name)
        if found is None:
            return self._created(name, content)
        start, end = found.start + 1, found.end
        while end > start and not self.lines[end - 1].strip():
            end -= 1
        while start < end and not self.lines[start].strip():
            start += 1
        newline = self._newline()
        return self._changed(start, end, [line + newline for line in content])

    def _created(self, name: str, content: list[str]) -> "HandoffDocument":
        at = self._place(name)
        above = [""] if self.lines[at - 1].strip() else []
        below = [""] if at < len(self.lines) else []
        newline = self._newline()
        return self._changed(at, at, [line + newline for line in (*above, f"## {name}", *content, *below)])

    def _place(self, name: str) -> int:
        """Where a missing section belongs: behind the one that comes before it, else before the one that follows."""
        if name not in SECTIONS:
            return len(self.lines)
        order = SECTIONS.index(name)
        for earlier in reversed(SECTIONS[:order]):
            if found := self._find(earlier):
                return found.end
        for later in SECTIONS[order + 1 :]:
            if found := self._find(later):
                return found.start
        return self.sections[0].start if self.sections else len(self.lines)

    def _behind_last_bullet(self, history: Section) -> int:
        """What is indented below a bullet, or fenced, belongs to it."""
        marks = fences(self.lines)
        end = history.end
        while end > history.start + 1 and not self.lines[end - 1].strip():
            end -= 1
        if not self.history:
            return end
        at = self.history[-1].line
        while at < end and (marks[at] == FENCED or (self.lines[at][0] in " \t" and self.lines[at].strip())):
            at += 1
        return at


# Reading and writing


def read(text: str) -> HandoffDocument:
    """Raises `Malformed`, and nothing else, whatever the text."""
    bom = text.startswith(_BOM)
    lines = lines_of(text[1:] if bom else text, "a document")
    title = first_line(lines)
    if title is None:
        raise Malformed(1, "the document is empty; it begins with `# Workflow: <id>`.")
    level, name = title_of(lines[title]) or (0, "")
    if level != 1:
        raise Malformed(title + 1, "a document begins with the line `# Workflow: <id>`, and this is another one.")
    if not name:
        raise Malformed(title + 1, "the id is missing; write `# Workflow: <id>`.")
    headers, end = header_of(lines, title + 1)
    known = header_values(headers, HEADERS)
    status, owner = status_of(known, title + 1), owner_of(known, title + 1)
    count = count_of(known)
    marks = fences(lines)
    sections = sections_of(lines, marks, end)
    appended = appended_records(lines, marks, sections)
    own = lines[: appended[0]] if appended else lines
    texts = {s.name: unescaped(*_body(own, marks, s)) for s in sections if s.name in SECTIONS and s.name != "History"}
    history = [*bullets_in(lines, marks, next((s for s in sections if s.name == "History"), None))]
    history += [bullet_of(lines[index], index + 1) for index in appended]
    values = {key: header.value for key, header in known.items()}
    return HandoffDocument(
        bom=bom,
        lines=tuple(lines),
        headers=headers,
        sections=sections,
        id=name,
        status=status,
        owner=owner,
        previous=values.get("Previous_Owner", ""),
        created=values.get("Created_At", ""),
        updated=values.get("Updated_At", ""),
        count=count,
        task=texts.get("Task", ""),
        history=tuple(history),
        next_action=texts.get("Next_Action", ""),
        conditions=conditions_in(texts.get("Termination_Conditions", "")),
        appended=len(appended),
    )


def write(document: HandoffDocument) -> str:
    return _BOM * document.bom + "".join(document.lines)


def _body(lines: Sequence[str], marks: bytearray, section: Section) -> tuple[Sequence[str], bytearray]:
    body = lines[section.start + 1 : section.end]
    return body, marks[section.start + 1 : section.start + 1 + len(body)]


# What a document amounts to


def interactions(document: HandoffDocument) -> int:
    """How often an agent has accepted, handed over or completed."""
    if document.count is not None:
        return document.count
    return sum((bullet.before, bullet.after) in _INTERACTIONS for bullet in document.history)


def line_of(document: HandoffDocument, what: str) -> int:
    """The line of a header or of a section's heading, from 1; the title's if it is missing."""
    for header in document.headers:
        if header.key == what:
            return header.index + 1
    for section in reversed(document.sections):
        if section.name == what:
            return section.start + 1
    return (first_line(document.lines) or 0) + 1


class DocumentFlaw(Struct, frozen=True, gc=False):
    """Something in a document that should not be, but does no harm to reading it."""

    line: int
    text: str


def oddities(document: HandoffDocument) -> tuple[DocumentFlaw, ...]:
    found = [*_odd_headers(document), *_odd_sections(document), *_odd_history(document), *_odd_end(document)]
    return tuple(sorted(found, key=lambda oddity: oddity.line))


def _odd_headers(document: HandoffDocument) -> Iterator[DocumentFlaw]:
    for header in document.headers:
        if header.key not in HEADERS:
            yield DocumentFlaw(header.index + 1, f"the header {header.key!r} is unknown; it is kept as it is")


def _odd_sections(document: HandoffDocument) -> Iterator[DocumentFlaw]:
    present = [section.name for section in document.sections if section.name in SECTIONS]
    for name in SECTIONS:
        if name not in present:
            yield DocumentFlaw(line_of(document, name), f"the section `## {name}` is missing")
    for one, following in pairwise(present):
        if SECTIONS.index(one) > SECTIONS.index(following):
            yield DocumentFlaw(line_of(document, following), f"`## {following}` should be before `## {one}`")


def _odd_history(document: HandoffDocument) -> Iterator[DocumentFlaw]:
    status = ""
    for bullet in document.history:
        before, after = bullet.before, bullet.after
        if not bullet.agent:
            yield DocumentFlaw(bullet.line, "this record is not `- YYYY-MM-DD HH:MM:SS <agent> <action> <old→new>`")
        if not after:
            continue
        if status and before != status:
            yield DocumentFlaw(
                bullet.line, f"the change begins at {before!r}, but the one before it ended at {status!r}"
            )
        if after not in LEGAL.get(before, ()) and bullet.action not in REOPENED:
            legal = "; ".join(f"{old}→{'|'.join(new)}" for old, new in LEGAL.items() if new)
            yield DocumentFlaw(bullet.line, f"{before}→{after} is not a legal change (legal: {legal})")
        status = after


def _odd_end(document: HandoffDocument) -> Iterator[DocumentFlaw]:
    """Where the header and the last change disagree."""
    last = next((bullet for bullet in reversed(document.history) if bullet.after), None)
    if last is None:
        return
    if last.after != document.status:
        text = f"the status is {document.status!r}, but the last record in line {last.line} ended at {last.after!r}"
        yield DocumentFlaw(line_of(document, "Status"), text)
    elif (last.before, last.after) == ("pending", "in_progress") and last.agent != agent_word(document.owner):
        yield DocumentFlaw(last.line, f"{last.agent!r} recorded the acceptance, but the owner is {document.owner!r}")
