"""The list of the desk: what waits for a person, the oldest first, page by page. No run is read for it.

Questions come first, then the runs that are stuck or set aside; the journal keeps the two in lists of their own.
"""

from collections.abc import Mapping

from msgspec import Struct
from starlette.requests import Request

from ripstop.kernel.desk_kinds import DOUBTED, GUARDED, HALTED, HANDOFF, KINDS, QUESTION, REVIEWED, STUCK
from ripstop.kernel.errors import UsageError
from ripstop.kernel.questions import kind_of
from ripstop.runtime.ports import DeskQuery, Question, RunInfo, RunQuery

from ..rendering import address
from ..site import Site, language_of, query_of
from ..words import word

SIZE = 50
ASKED = (REVIEWED, QUESTION, DOUBTED, GUARDED, HANDOFF)
"""Kinds whose chips are always there, so that they keep their places."""
Chip = tuple[str, str, bool, int | None]


class Row(Struct, frozen=True, kw_only=True):
    """A line of the list."""

    id: str
    """`run/number`, or the id of a run."""
    kind: str
    title: str
    at: int
    about: str
    """What it is about, in a few words."""
    text: str
    source: Question | RunInfo


class DeskList(Struct, frozen=True, kw_only=True):
    kind: str
    after: str
    rows: tuple[Row, ...]
    next: str
    """The cursor of the next page; empty at the end."""
    chips: tuple[Chip, ...]

    def address(self, path: str, **query: str) -> str:
        """An address that keeps the list as it is."""
        return address(path, kind=self.kind, after=self.after, **query)

    def following(self, item: str) -> Row | None:
        """What to do after an item: the next one of the list, else the first."""
        ids = [row.id for row in self.rows]
        at = ids.index(item) if item in ids else -1
        return next((row for row in (*self.rows[at + 1 :], *self.rows[: max(at, 0)]) if row.id != item), None)


async def desk_list(site: Site, request: Request, given: Mapping[str, str] | None = None) -> DeskList:
    """The page of the list that an address asks for, or the fields of a form.

    What is not known is left out: a link to a list never fails.
    """
    given = given or query_of(request, "kind", "after")
    lang = language_of(request)
    kind = given["kind"] if given["kind"] in KINDS else ""
    try:
        rows, following = await _rows(site, kind, given["after"], lang)
        after = given["after"]
    except UsageError:  # not a cursor of this journal
        rows, following = await _rows(site, kind, "", lang)
        after = ""
    chips = await _chips(site, kind, lang)
    return DeskList(kind=kind, after=after, rows=tuple(rows), next=following, chips=chips)


async def _rows(site: Site, kind: str, after: str, lang: str) -> tuple[list[Row], str]:
    journal = site.engine.journal
    if kind in HALTED:
        page = await journal.runs(RunQuery(statuses=(kind,), cursor=after, size=SIZE))
        return [_halted_row(info, lang) for info in page.items], page.next
    questions = await journal.desk(DeskQuery(kind=kind, cursor=after, size=SIZE))
    rows = [_row(one, await journal.run(one.run_id), lang) for one in questions.items]
    if not kind and not questions.next:
        halted = await journal.runs(RunQuery(statuses=HALTED, size=SIZE))
        rows += [_halted_row(info, lang) for info in reversed(halted.items)]
    return rows, questions.next


def _row(question: Question, info: RunInfo | None, lang: str) -> Row:
    ask, kind = question.command, kind_of(question.command)
    gist = info.gist if info else ""
    title, about, text = ask.question, ask.title, gist
    if kind == DOUBTED:
        title = word(lang, "desk.doubt.title")
        text = ask.question.removeprefix("Did this call take effect?").strip()
    elif kind == GUARDED:
        title, about, text = word(lang, "desk.guard.title", guard=ask.title), gist, ask.question
    elif kind == HANDOFF:
        title, about, text = ask.title or question.run_id, word(lang, "desk.conversation"), ask.question
    elif kind == QUESTION and ask.choices:
        text = " / ".join(label or choice for choice, label in ask.choices.items())
    return Row(
        id=f"{question.run_id}/{question.number}",
        kind=kind,
        title=title,
        at=question.at,
        about=about or gist,
        text="" if text == about else text,
        source=question,
    )


def _halted_row(info: RunInfo, lang: str) -> Row:
    is_stuck = info.status == STUCK
    return Row(
        id=info.run_id,
        kind=info.status,
        title=info.gist or info.run_id,
        at=info.updated,
        about=info.style,
        text=word(lang, "desk.stuck.reason") if is_stuck else info.set_aside,
        source=info,
    )


async def _chips(site: Site, chosen: str, lang: str) -> tuple[Chip, ...]:
    halted = await site.engine.journal.counts(RunQuery(statuses=HALTED))
    counts = await site.kinds.now()
    chips: list[Chip] = [(word(lang, "desk.all"), "/desk", not chosen, await site.desk_count())]
    for kind in KINDS:
        count = halted.get(kind, 0) if kind in HALTED else None if counts is None else counts.get(kind, 0)
        if count or kind in ASKED or kind == chosen:
            chips.append((word(lang, f"desk.kind.{kind}"), address("/desk", kind=kind), kind == chosen, count))
    return tuple(chips)
