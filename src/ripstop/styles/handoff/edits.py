"""An edit of a document's file, read back as transitions.

- It is compared with the view that it was made in (`base`), not with what the document has become since. So an
  editor that was opened before the last hand-over undoes nothing when it saves. That view is the one that was in the
  file, unless the text says that it was made in an older one: its editor did not read the file again.
- What may be changed by hand: the status (legally), the owner (with a hand-over or an assignment), the task, the
  next action, the end conditions, new history lines, sections and headers of one's own.
- Headers that the engine keeps (times, count, previous owner) are put right, with a note: many agents were told to
  write them. The id and the history so far cannot be changed. Such an edit is refused as a whole, with the line
  that is wrong, because half of it would be a third version without an author.
- New history lines count even if the header was left as it was: an agent can append a line and do nothing else.
- A document that came in a message is its sender's own text. Where its history is not legal (`pending→completed`),
  it is taken at its word if the legal transitions that lead to the same end can be made, and the lines are flagged.
- Where both sides changed the same thing differently, the edit is refused; its text is kept next to the file. One that
  keeps what was changed and adds to it is not different (`keeps_changes`): an editor can save again what it has saved.
- A line at the end that begins as a history line does, but has no `old→new`, is refused: it would become a part of
  whatever section is the last.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from ripstop.kernel.questions import name_problem

from .document import (
    HEADERS,
    Bullet,
    HandoffDocument,
    Malformed,
    agent_word,
    interactions,
    line_of,
    oddities,
    read,
    write,
)
from .markdown import FENCED, TIMESTAMP, fences, is_record
from .state import COMPLETED, FINAL, IN_PROGRESS, PENDING, RULES, TERMINATED, action_for, legal_from

# Whether a text has grown from another one: an editor saves again without having read what was written in between.
#
# The view that an edit was made in is known, but not who made it. So a second save from the same buffer is recognised
# by what it says: it keeps all that the first one changed. Then it contradicts nothing, no matter who made it.
#
# - Every word of the text as it is now is still there, in the same order; a word can have become longer.
# - Nothing that was taken out is back: neither the whole text of the view, nor two words that were next to each other
#   in it and are not now.
#
# Texts come from outside, so the work is linear in their length.


_WORD = re.compile(r"[A-Za-z0-9_]+|\S")


def keeps_changes(view: str, now: str, mine: str) -> bool:
    """Whether `mine`, made in `view`, keeps everything that has changed between `view` and `now`."""
    before, current, words = _WORD.findall(view), _WORD.findall(now), _WORD.findall(mine)
    if not _in_order(current, words, longer=True):
        return False
    if _in_order(before, current, longer=False):
        return True  # nothing was taken out
    if _in_order(before, words, longer=False):
        return False
    taken_out = {*pairwise(before)} - {*pairwise(current)}
    return taken_out.isdisjoint(pairwise(words))


def _in_order(part: list[str], whole: list[str], longer: bool) -> bool:
    """Whether all words of `part` are in `whole` in their order; `longer`: one may be the beginning of another."""
    rest = iter(whole)
    return all(any(word == one or (longer and word.startswith(one)) for word in rest) for one in part)


_COUNT = HEADERS[-1]
_STAMPED = re.compile(rf"[-*+][ \t]++{TIMESTAMP.pattern}")
TEXTS = {"task": "Task", "next_action": "Next_Action", "conditions": "Termination_Conditions"}
"""Fields that anybody may edit → their section."""
HISTORY_LINE = "a history line is `- YYYY-MM-DD HH:MM:SS agent action old→new`"


class Refusal(Exception):
    """The edit cannot be merged."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line
        self.reason = reason


class Move(Struct, frozen=True):
    """A transition that the edit makes."""

    action: str
    by: str
    before: str
    after: str
    to: str = ""
    written: bool = False
    """It is already in the history."""


class DocumentEdit(Struct, frozen=True):
    moves: tuple[Move, ...]
    text: str
    """The document with the edit in it, the transitions left out; empty if that is the text as found."""
    notes: tuple[str, ...] = ()
    """What was put right in it, and what is odd about it."""


def read_edit(
    text: str, views: Sequence[HandoffDocument], sender: str = "", base: HandoffDocument | None = None
) -> DocumentEdit:
    """What an edit means, made in one of the last views of the document. Raises `Refusal`.

    Args:
        views: The last views, oldest first; the last one is the document as it is now.
        sender: Who sent the text in a message; empty if it was found in the document's file.
        base: The view that was in the file before the edit, one of `views`; `None` if that is not known.
    """
    current = views[-1]
    edited, notes = _readable(text, current)
    if edited.id != current.id:
        raise Refusal(1, f"the id is {current.id!r} and cannot be changed; this says {edited.id!r}")
    base = _base(edited, views, base)
    _no_loose_records(edited, base)
    if edited.owner != base.owner and (problem := name_problem(edited.owner)):
        raise Refusal(line_of(edited, "Current_Owner"), problem)
    try:
        moves = tuple(_moves(edited, base))
    except Refusal:
        moves = _foreign_moves(edited, base, sender) if sender else ()
        if not moves:
            raise
    if base is not current and _already_made(edited, base, current, moves):
        moves = ()
    notes = (*notes, *_kept_by_engine(edited, base, moves), *(_flagged(edited, base) if sender else ()))
    if base is current:
        return DocumentEdit(moves, "" if write(edited) == text else write(edited), notes)
    _no_conflict(edited, base, current, moves)
    return DocumentEdit(moves, _joined(edited, base, current), notes)


def _no_loose_records(edited: HandoffDocument, base: HandoffDocument) -> None:
    """Refuse a new line at the end that begins with a bullet and a time, but has no status change."""
    if not edited.sections or edited.sections[-1].name in ("Task", "History"):
        return
    known, marks = {line.strip() for line in base.lines}, fences(edited.lines)
    for index in range(len(edited.lines) - 1, edited.sections[-1].start, -1):
        line = edited.lines[index]
        if marks[index] == FENCED or not (_STAMPED.match(line) or not line.strip()):
            return
        if line.strip() and not is_record(line) and line.strip() not in known:
            raise Refusal(index + 1, f"{HISTORY_LINE}; an end condition does not begin with a time")


def _already_made(
    edited: HandoffDocument, base: HandoffDocument, current: HandoffDocument, moves: Sequence[Move]
) -> bool:
    """Whether the document is where the moves lead: its editor has saved once more, and has not seen the history."""
    return (
        bool(moves)
        and not any(move.written for move in moves)
        and (edited.status, edited.owner) == (current.status, current.owner)
        and [(one.before, one.after) for one in current.history[len(base.history) :]][: len(moves)]
        == [(move.before, move.after) for move in moves]
    )


def _readable(text: str, current: HandoffDocument) -> tuple[HandoffDocument, tuple[str, ...]]:
    """The edited document. A count that is not a number is put right, because the engine counts."""
    try:
        return read(text), ()
    except Malformed as problem:
        lines = text.split("\n")
        if not lines[problem.line - 1].lstrip().startswith(_COUNT):
            raise Refusal(problem.line, problem.reason) from problem
        lines[problem.line - 1] = f"{_COUNT}: {interactions(current)}"
        try:
            return read("\n".join(lines)), (f"line {problem.line}: {_COUNT} was not a number; the engine keeps it",)
        except Malformed:
            raise Refusal(problem.line, problem.reason) from problem


def is_of(edited: HandoffDocument, document: HandoffDocument) -> bool:
    """Whether a text with another id is this document all the same: as old as it is, and with its whole history."""
    same_task = bool(document.history) or edited.task == document.task
    return edited.created == document.created and _continues(edited, document) and same_task


def _base(edited: HandoffDocument, views: Sequence[HandoffDocument], known: HandoffDocument | None) -> HandoffDocument:
    """The view that was edited: the one whose history it continues, and whose time it still has.

    What was in the file before an edit is the view that its editor had opened, unless they opened it earlier and did
    not read it again. So the `known` view is taken if the text can have been made in it. Otherwise, of several that
    fit, the oldest: what has changed since then is then never taken for an undoing.
    """
    fitting = [view for view in views if _continues(edited, view)]
    if not fitting:
        _say_what_history_lacks(edited, views[-1])
    longest = max(len(view.history) for view in fitting)
    fitting = [view for view in fitting if len(view.history) == longest]
    same_time = [view for view in fitting if view.updated == edited.updated]
    if any(view is known for view in same_time or fitting):
        assert known is not None
        return known
    return same_time[0] if same_time else fitting[-1]


def _continues(edited: HandoffDocument, view: HandoffDocument) -> bool:
    return _raws(edited.history)[: len(view.history)] == _raws(view.history)


def _raws(bullets: Sequence[Bullet]) -> list[str]:
    return [bullet.raw.strip() for bullet in bullets]


def _say_what_history_lacks(edited: HandoffDocument, current: HandoffDocument) -> None:
    for mine, theirs in zip(edited.history, current.history, strict=False):
        if mine.raw.strip() != theirs.raw.strip():
            raise Refusal(mine.line, f"the history can only be added to; this line was {theirs.raw.strip()!r}")
    lost = current.history[len(edited.history)].raw.strip()
    raise Refusal(line_of(edited, "History"), f"the history can only be added to; {lost!r} is missing")


def _kept_by_engine(edited: HandoffDocument, base: HandoffDocument, moves: Sequence[Move]) -> Iterator[str]:
    """Notes on headers that the engine keeps, where they are neither as they were nor as the engine sets them."""
    count = interactions(base) + sum(RULES[move.action].counts for move in moves)
    owners = (base.previous, base.owner, edited.owner)
    if edited.created != base.created:
        yield f"line {line_of(edited, 'Created_At')}: Created_At never changes; put back to {base.created!r}"
    if edited.previous not in owners:
        line = line_of(edited, "Previous_Owner")
        yield f"line {line}: Previous_Owner is kept by the engine; {edited.previous!r} did not hand it over"
    if edited.count is not None and edited.count not in (interactions(base), count):
        yield f"line {line_of(edited, _COUNT)}: {_COUNT} is kept by the engine; it is {count}, not {edited.count}"


def _moves(edited: HandoffDocument, base: HandoffDocument) -> Iterator[Move]:
    new = edited.history[len(base.history) :]
    owner, status = base.owner, base.status
    for place, bullet in enumerate(new):
        if not bullet.after:
            raise Refusal(bullet.line, HISTORY_LINE)
        last = place == len(new) - 1
        if bullet.before == bullet.after and not (last and edited.owner != owner):
            if bullet.before != status:
                raise Refusal(bullet.line, f"the status was {status!r} then, not {bullet.before!r}")
            continue  # a remark
        to = edited.owner if last and edited.owner != owner else ""
        yield _move(bullet.line, bullet.agent, status, bullet.before, bullet.after, owner, to, written=True)
        status, owner = bullet.after, to or owner
    header_changed = (edited.status, edited.owner) != (base.status, base.owner)
    if header_changed and (edited.status, edited.owner) != (status, owner):
        line = line_of(edited, "Status" if edited.status != status else "Current_Owner")
        to = edited.owner if edited.owner != owner else ""
        yield _move(line, agent_word(owner), status, status, edited.status, owner, to, written=False)


def _move(line: int, by: str, status: str, before: str, after: str, owner: str, to: str, written: bool) -> Move:
    if before != status:
        raise Refusal(line, f"the status was {status!r} then, not {before!r}")
    if to and before == after != "pending":
        raise Refusal(line, f"the owner changes with a hand-over: set `Status: pending` as well as the owner {to!r}")
    action = action_for(before, after, bool(to))
    if not action:
        raise Refusal(line, f"{before}→{after} is not legal; legal are: {legal_from(before)}")
    rule = RULES[action]
    if to and not rule.names_owner:
        raise Refusal(line, f"the owner changes with a hand-over (in_progress→pending) only, not with {before}→{after}")
    if rule.names_owner and not to:
        raise Refusal(line, f"{before}→{after} hands the document over; say to whom in Current_Owner")
    if rule.by_owner and by != agent_word(owner):
        raise Refusal(line, f"{by!r} may not {action} it, because it belongs to {owner!r}")
    return Move(action, owner if by == agent_word(owner) else by, before, after, to, written)


# A document in a message

_WAYS: dict[tuple[str, bool], dict[str, tuple[str, ...]]] = {
    (PENDING, False): {IN_PROGRESS: ("accept",), COMPLETED: ("accept", "complete")},
    (PENDING, True): {
        PENDING: ("assign",),
        IN_PROGRESS: ("assign", "accept"),
        COMPLETED: ("assign", "accept", "complete"),
    },
    (IN_PROGRESS, False): {COMPLETED: ("complete",)},
    (IN_PROGRESS, True): {
        PENDING: ("pass",),
        IN_PROGRESS: ("pass", "accept"),
        COMPLETED: ("pass", "accept", "complete"),
    },
}
"""By status and whether there is another owner: the transitions that lead to a status, whatever the history says."""


def _foreign_moves(edited: HandoffDocument, base: HandoffDocument, sender: str) -> tuple[Move, ...]:
    """The legal transitions to where somebody else's history has led; none if there are none that the sender can make.

    The sender, or an agent that a new history line names, must be the owner: a message must not take a document away.
    """
    moved = edited.owner != base.owner
    if base.status in FINAL:
        return ()
    ways = {**_WAYS.get((base.status, moved), {}), TERMINATED: ("terminate",)}
    agents = {agent_word(sender), *(bullet.agent for bullet in edited.history[len(base.history) :])}
    actions = ways.get(edited.status, ())
    if any(RULES[action].by_owner for action in actions) and not agents & {
        agent_word(base.owner),
        agent_word(edited.owner),
    }:
        return ()
    moves, status, owner = [], base.status, base.owner
    for action in actions:
        to = edited.owner if RULES[action].names_owner else ""
        moves.append(Move(action, owner, status, RULES[action].after, to, written=True))
        status, owner = RULES[action].after, to or owner
    return tuple(moves)


def _flagged(edited: HandoffDocument, base: HandoffDocument) -> Iterator[str]:
    """What is odd about the history lines that are new."""
    new = {bullet.line for bullet in edited.history[len(base.history) :]}
    for odd in oddities(edited):
        if odd.line in new:
            yield f"line {odd.line}: {odd.text}"


def _no_conflict(
    edited: HandoffDocument, base: HandoffDocument, current: HandoffDocument, moves: Sequence[Move]
) -> None:
    if moves and (current.status, current.owner) != (base.status, base.owner):
        line = line_of(edited, "Status")
        raise Refusal(line, f"the document has moved on meanwhile: it is {current.status} with {current.owner!r} now")
    for field, section in TEXTS.items():
        mine, was, now = (getattr(document, field) for document in (edited, base, current))
        if mine != was and now not in (was, mine) and not keeps_changes(_as_text(was), _as_text(now), _as_text(mine)):
            raise Refusal(line_of(edited, section), f"{section} was changed meanwhile, to {_shown(now)}")
    if _rest(edited, len(base.history)) != _rest(base, len(base.history)) and not _rest_keeps_changes(
        edited, base, current
    ):
        reason = "the document has moved on meanwhile; make the change in it as it is now"
        raise Refusal(line_of(edited, "Status"), reason)


def _rest_keeps_changes(edited: HandoffDocument, base: HandoffDocument, current: HandoffDocument) -> bool:
    """Whether what is nobody's field can be taken from the edit: nothing else was written into the document."""
    bullets = len(base.history)
    if _raws(base.history) != _raws(current.history):
        return False
    was, now, mine = (_rest(document, bullets) for document in (base, current, edited))
    return now in (was, mine) or keeps_changes(was, now, mine)


def _as_text(value: str | Sequence[str]) -> str:
    return value if isinstance(value, str) else "\n".join(value)


def _shown(value: str | Sequence[str]) -> str:
    text = value if isinstance(value, str) else "; ".join(value)
    return repr(text if len(text) <= 80 else text[:79] + "…")


def _rest(document: HandoffDocument, bullets: int) -> str:
    """All that is nobody's field: the document with its fields made the same, its new history lines left out."""
    new = {bullet.line for bullet in document.history[bullets:]}
    lines = [line for number, line in enumerate(document.lines, 1) if number not in new]
    bare = read("".join(lines)).with_task("").with_next_action("").with_conditions(())
    for key, value in (("Status", "pending"), ("Current_Owner", "x"), ("Interaction_Count", "0")):
        bare = bare.with_header(key, value)
    for key in ("Previous_Owner", "Updated_At"):
        bare = bare.with_header(key, "")
    return "\n".join(line.strip() for line in write(bare).splitlines() if line.strip())


def _joined(edited: HandoffDocument, base: HandoffDocument, current: HandoffDocument) -> str:
    """What the document has become, with the edit's own changes in it."""
    if _rest(edited, len(base.history)) != _rest(base, len(base.history)):
        return write(_with_texts(edited, base, current))
    document = current
    if edited.task != base.task:
        document = document.with_task(edited.task)
    if edited.next_action != base.next_action:
        document = document.with_next_action(edited.next_action)
    if edited.conditions != base.conditions:
        document = document.with_conditions(edited.conditions)
    # the same edit may be found twice, by two processes or because its editor saved again
    there = {_said_in(bullet) for bullet in current.history[len(base.history) :]}
    for bullet in edited.history[len(base.history) :]:
        if bullet.after and _said_in(bullet) not in there:
            document = document.with_bullet(bullet.at, bullet.agent, bullet.action, bullet.before, bullet.after)
    return write(document)


def _with_texts(edited: HandoffDocument, base: HandoffDocument, current: HandoffDocument) -> HandoffDocument:
    """The edited document, with what the texts that it left alone have become."""
    document = edited
    if edited.task == base.task:
        document = document.with_task(current.task)
    if edited.next_action == base.next_action:
        document = document.with_next_action(current.next_action)
    if edited.conditions == base.conditions:
        document = document.with_conditions(current.conditions)
    return document


def _said_in(bullet: Bullet) -> tuple[str, ...]:
    """A record without its line number."""
    return bullet.at, bullet.agent, bullet.action, bullet.before, bullet.after
