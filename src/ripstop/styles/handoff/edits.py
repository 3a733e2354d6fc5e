"""An edit that somebody made in a document's file, read back as transitions.

- It is compared with the view that it was made in (`base`), not with what the document has become since. So an
  editor that was opened before the last hand-over undoes nothing when it saves.
- What may be changed by hand: the status (legally), the owner (with a hand-over or an assignment), the task, the
  next action, the end conditions, new history lines, sections and headers of one's own.
- What the engine keeps (id, times, count, the history so far) may not. Such an edit is refused as a whole, with
  the line that is wrong, because half of it would be a third version that nobody wrote.
- Where both sides changed the same thing differently, the edit is refused; its text is kept beside the file.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from .paper import Bullet, Malformed, Paper, agent_word, interactions, line_of, read, write
from .rules import RULES, action_for, legal_from

TEXTS = {"task": "Task", "next_action": "Next_Action", "conditions": "Termination_Conditions"}
"""Fields that anybody may edit → the section they stand in."""


class Refusal(Exception):
    """The edit cannot be taken over."""

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
    """It stands in the history already."""


class Edit(Struct, frozen=True):
    moves: tuple[Move, ...]
    text: str
    """The document with the edit in it, the transitions left out; empty if that is the text as found."""


def read_edit(text: str, views: Sequence[Paper]) -> Edit:
    """What an edit means, made in one of the last views of the document. Raises `Refusal`."""
    current = views[-1]
    try:
        edited = read(text)
    except Malformed as problem:
        raise Refusal(problem.line, problem.reason) from problem
    if edited.id != current.id:
        raise Refusal(1, f"the id is {current.id!r} and cannot be changed; this says {edited.id!r}")
    base = _base(edited, views)
    _untouched(edited, base)
    moves = tuple(_moves(edited, base))
    if base is current:
        return Edit(moves, "")
    _no_conflict(edited, base, current, moves)
    return Edit(moves, _joined(edited, base, current))


def is_of(edited: Paper, paper: Paper) -> bool:
    """Whether a text with another id is this document all the same: as old as it is, and with its whole history."""
    same_task = bool(paper.history) or edited.task == paper.task
    return edited.created == paper.created and _continues(edited, paper) and same_task


def _base(edited: Paper, views: Sequence[Paper]) -> Paper:
    """The view that was edited: the one whose history it continues, and whose time it still has.

    Of several that fit, the oldest: what has changed since then is then never taken for an undoing.
    """
    fitting = [view for view in views if _continues(edited, view)]
    if not fitting:
        _say_what_history_lacks(edited, views[-1])
    longest = max(len(view.history) for view in fitting)
    fitting = [view for view in fitting if len(view.history) == longest]
    same_time = [view for view in fitting if view.updated == edited.updated]
    return same_time[0] if same_time else fitting[-1]


def _continues(edited: Paper, view: Paper) -> bool:
    return _raws(edited.history)[: len(view.history)] == _raws(view.history)


def _raws(bullets: Sequence[Bullet]) -> list[str]:
    return [bullet.raw.strip() for bullet in bullets]


def _say_what_history_lacks(edited: Paper, current: Paper) -> None:
    for mine, theirs in zip(edited.history, current.history, strict=False):
        if mine.raw.strip() != theirs.raw.strip():
            raise Refusal(mine.line, f"the history can only be added to; this line was {theirs.raw.strip()!r}")
    lost = current.history[len(edited.history)].raw.strip()
    raise Refusal(line_of(edited, "History"), f"the history can only be added to; {lost!r} is missing")


def _untouched(edited: Paper, base: Paper) -> None:
    """What the engine keeps is as it was, or as the engine would set it."""
    if edited.created != base.created:
        raise Refusal(line_of(edited, "Created_At"), f"Created_At never changes; it was {base.created!r}")
    if edited.previous not in (base.previous, base.owner):
        line = line_of(edited, "Previous_Owner")
        raise Refusal(line, f"Previous_Owner can only become the owner before, {base.owner!r}")
    added = len(edited.history) - len(base.history)
    if edited.count is not None and not 0 <= edited.count - interactions(base) <= max(added, 1):
        line = line_of(edited, "Interaction_Count")
        raise Refusal(line, f"Interaction_Count is kept by the engine; it was {interactions(base)}")


def _moves(edited: Paper, base: Paper) -> Iterator[Move]:
    new = edited.history[len(base.history) :]
    owner, status = base.owner, base.status
    for place, bullet in enumerate(new):
        if not bullet.after:
            raise Refusal(bullet.line, "a history line is `- YYYY-MM-DD HH:MM:SS agent action old→new`")
        last = place == len(new) - 1
        if bullet.before == bullet.after and not (last and edited.owner != owner):
            if bullet.before != status:
                raise Refusal(bullet.line, f"the status was {status!r} then, not {bullet.before!r}")
            continue  # a remark
        to = edited.owner if last and edited.owner != owner else ""
        yield _move(bullet.line, bullet.agent, status, bullet.before, bullet.after, owner, to, written=True)
        status, owner = bullet.after, to or owner
    if edited.status != status or edited.owner != owner:
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


def _no_conflict(edited: Paper, base: Paper, current: Paper, moves: Sequence[Move]) -> None:
    if moves and (current.status, current.owner) != (base.status, base.owner):
        line = line_of(edited, "Status")
        raise Refusal(line, f"the document has moved on meanwhile: it is {current.status} with {current.owner!r} now")
    for field, section in TEXTS.items():
        mine, was, now = (getattr(paper, field) for paper in (edited, base, current))
        if mine != was and now not in (was, mine):
            raise Refusal(line_of(edited, section), f"{section} was changed meanwhile, to {_shown(now)}")
    if _rest(edited, len(base.history)) != _rest(base, len(base.history)):
        reason = "the document has moved on meanwhile; make the change in it as it is now"
        raise Refusal(line_of(edited, "Status"), reason)


def _shown(value: str | Sequence[str]) -> str:
    text = value if isinstance(value, str) else "; ".join(value)
    return repr(text if len(text) <= 80 else text[:79] + "…")


def _rest(paper: Paper, bullets: int) -> str:
    """All that is nobody's field: the document with its fields made the same, its new history lines left out."""
    new = {bullet.line for bullet in paper.history[bullets:]}
    lines = [line for number, line in enumerate(paper.lines, 1) if number not in new]
    bare = read("".join(lines)).with_task("").with_next_action("").with_conditions(())
    for key, value in (("Status", "pending"), ("Current_Owner", "x"), ("Interaction_Count", "0")):
        bare = bare.with_header(key, value)
    for key in ("Previous_Owner", "Updated_At"):
        bare = bare.with_header(key, "")
    return "\n".join(line.strip() for line in write(bare).splitlines() if line.strip())


def _joined(edited: Paper, base: Paper, current: Paper) -> str:
    """What the document has become, with the edit's own changes in it."""
    paper = current
    if edited.task != base.task:
        paper = paper.with_task(edited.task)
    if edited.next_action != base.next_action:
        paper = paper.with_next_action(edited.next_action)
    if edited.conditions != base.conditions:
        paper = paper.with_conditions(edited.conditions)
    # the same edit may be found twice, by two processes or because its editor saved again
    there = {_said_in(bullet) for bullet in current.history[len(base.history) :]}
    for bullet in edited.history[len(base.history) :]:
        if bullet.after and _said_in(bullet) not in there:
            paper = paper.with_bullet(bullet.at, bullet.agent, bullet.action, bullet.before, bullet.after)
    return write(paper)


def _said_in(bullet: Bullet) -> tuple[str, ...]:
    """A record without the line it stands in."""
    return bullet.at, bullet.agent, bullet.action, bullet.before, bullet.after
