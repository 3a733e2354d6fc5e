"""What waits for a person, with all that is needed to decide."""

import asyncio
from collections import Counter
from collections.abc import Collection
from itertools import pairwise
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ripstop.engine.engine import Engine
from ripstop.engine.ports import MAX_PAGE, DeskQuery, Question, RunInfo, RunQuery, text_in
from ripstop.kernel.desk_kinds import DOUBTED, HALTED, HANDOFF, STUCK
from ripstop.kernel.effects import AskAgent, AskPerson, CallTool, Field
from ripstop.kernel.errors import RunUnreadable, UnknownRecord
from ripstop.kernel.events import Asked, Record
from ripstop.kernel.parts import Line, Talk
from ripstop.kernel.questions import kind_of
from ripstop.kernel.resuming import Way
from ripstop.kernel.run import Run
from ripstop.kernel.style import arguments_for
from ripstop.text.differences import Hunk, difference

from .answers import MAX_TEXT, GivenAnswer, QuestionLog, given_answers
from .outages import Outage, outage_behind, question_now
from .timeline import iso

# How many questions of each kind wait for a person.


KEPT_SECONDS = 2.0
"""For which a count is kept, unless the number of questions changes: every question has to be read for it."""


class KindCounts:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._counted: tuple[float, int, dict[str, int]] | None = None

    async def now(self) -> dict[str, int] | None:
        """The number of open questions of each kind; `None` if there are more than one page can have."""
        journal, now = self._engine.journal, asyncio.get_running_loop().time()
        total = await journal.desk_count()
        if total > MAX_PAGE:
            return None
        if self._counted is None or self._counted[1] != total or now - self._counted[0] > KEPT_SECONDS:
            page = await journal.desk(DeskQuery(size=MAX_PAGE))
            self._counted = now, total, dict(Counter(kind_of(question.command) for question in page.items))
        return self._counted[2]


# How a run can be continued, as data that a face turns into a command or a button.


def handed_over(run: Run[Any]) -> int:
    """The open question with which a person has a conversation; 0 if none has it."""
    questions = (number for number, opened in run.open.items() if getattr(opened.command, "purpose", "") == HANDOFF)
    return next(questions, 0)


def way_as_json(one: Way) -> dict[str, Any]:
    """A way to continue."""
    more = {"raise": one.raises, "at": one.at, "stage": one.stage, "accept_edits": one.accept_edits}
    return {"action": one.action, **{name: value for name, value in more.items() if value}}


MAX_EVIDENCE = 20
"""Records behind a question whose texts are shown."""
READ_GAP = 500
"""Records between two that are read one by one rather than with all between them."""


class ShownRecord(Struct, frozen=True):
    """A record behind a question."""

    number: int
    at: str
    text: str


class DeskItem(Struct, frozen=True, kw_only=True):
    """What waits for a person, with all that is needed to decide: a question, or a run that cannot go on."""

    id: str
    """`run/number`; of a run that cannot go on, its id."""
    run: str
    number: int
    """The number of the question; 0 for a run that cannot go on."""
    asked: str
    """When; for a run that cannot go on, when it changed last."""
    kind: str
    """One of `desk_kinds.KINDS`."""
    purpose: str
    title: str
    to: str
    question: str
    choices: dict[str, str]
    """Choice → label."""
    other: str
    empty: str
    edit: str
    fields: dict[str, Field]
    about: list[int]
    family: list[str]
    """The run that asks, the one that started it, and so on up to the top, each as `run (style)`."""
    draft: int = 0
    """The record that holds the document to review; 0 for none. An answer is about this draft and no other."""
    document: str | None = None
    """The document to review, as it is now."""
    previous: str | None = None
    """The document as it was when the last question of the same purpose was answered, to compare it with."""
    difference: list[Hunk] | None = None
    """What has changed from `previous` to `document`; `None` without a previous one."""
    answers: list[GivenAnswer] = []
    """The answers to earlier questions of the same purpose, the oldest first."""
    evidence: list[ShownRecord] = []
    arguments: dict[str, Any] | None = None
    """Of the tool call that an answer allows, whole; `None`: it allows none."""
    talk: list[Line] = []
    """What was said until now, in a conversation that was handed over; then `answers` and `evidence` are empty."""
    ways: list[dict[str, Any]] = []
    """How a run that cannot go on can be continued."""
    outage: Outage | None = None
    """The call that a model server refuses, as it is now."""


async def desk_item(
    engine: Engine, question: Question, with_texts: bool = True, log: QuestionLog | None = None
) -> DeskItem:
    """A question as any face may show it.

    Args:
        log: Where earlier answers are looked up; left out: they are read for this item alone.
    """
    outage = await outage_behind(engine, question)
    question = question_now(question, outage)
    ask, run_id = question.command, question.run_id
    item = DeskItem(
        id=f"{run_id}/{question.number}",
        run=run_id,
        number=question.number,
        asked=iso(question.at),
        kind=kind_of(ask),
        purpose=ask.purpose,
        title=ask.title,
        to=ask.to,
        question=ask.question,
        choices={choice: label or choice for choice, label in ask.choices.items()},
        other=ask.other,
        empty=ask.empty,
        edit=ask.edit,
        fields=ask.fields,
        about=list(ask.about),
        family=await _family(engine, run_id),
        draft=ask.document,
        arguments=ask.arguments,
        outage=outage,
    )
    return await _with_texts(engine, question, item, log or QuestionLog(engine)) if with_texts else item


def halted_item(info: RunInfo, family: list[str]) -> DeskItem:
    """A run that waits for a person without a question."""
    is_stuck = info.status == STUCK
    reason = "Nothing can move this run any more." if is_stuck else f"Workers leave this run alone: {info.set_aside}"
    return DeskItem(
        id=info.run_id,
        run=info.run_id,
        number=0,
        asked=iso(info.updated),
        kind=info.status,
        purpose="",
        title=info.gist,
        to="",
        question=reason,
        choices={},
        other="",
        empty="",
        edit="",
        fields={},
        about=[],
        family=family,
        ways=[way_as_json(Way("fork"))] if is_stuck else [way_as_json(Way("resume"))],
    )


async def halted_runs(engine: Engine, root: str = "") -> list[DeskItem]:
    """The runs that are stuck or set aside, the oldest first; with `root`, only of this run's family."""
    query, found = RunQuery(statuses=HALTED, root=root, size=MAX_PAGE), []
    while True:
        page = await engine.runs(query)
        found += [halted_item(info, await _family(engine, info.run_id)) for info in page.items]
        if not page.next:
            return found[::-1]
        query = replace(query, cursor=page.next)


async def _family(engine: Engine, run_id: str) -> list[str]:
    return [f"{info.run_id} ({info.style})" for info in await engine.family_line(run_id)]


async def _with_texts(engine: Engine, question: Question, item: DeskItem, log: QuestionLog) -> DeskItem:
    """The item with the texts behind it; without them if its run cannot be read here."""
    if question.style not in engine.registry.kits:
        return item
    try:
        if item.kind == HANDOFF:
            return replace(item, talk=await _talk(engine, item.run))
        if item.kind == DOUBTED and item.arguments is None:  # asked by 0.2, or too long to be allowed
            item = replace(item, arguments=await _arguments_in_doubt(engine, item))
        given = given_answers(await log.of(item.run))
        earlier = [(ask, one) for ask, one in given if ask.purpose == item.purpose and one.to < item.number]
        before = _draft_answered_last(earlier) if item.draft else 0
        about = [number for number in item.about if number >= 1][:MAX_EVIDENCE]
        records = await records_at(engine, item.run, {item.draft, before, *about})
    except (RunUnreadable, UnknownRecord):
        return item
    style = engine.registry.kits[question.style].style
    document = style.view.document(records[item.draft]) if item.draft in records else None
    previous = style.view.document(records[before]) if document is not None and before in records else None
    return replace(
        item,
        document=document,
        previous=previous,
        difference=None if document is None or previous is None else difference(previous, document),
        answers=[one for _, one in earlier],
        evidence=[_evidence(records[number]) for number in about if number in records],
    )


async def _arguments_in_doubt(engine: Engine, item: DeskItem) -> dict[str, Any] | None:
    run = (await engine.look(item.run)).run
    opened = run.open.get(run.doubts.get(item.number, 0))
    if opened is None or not isinstance(opened.command, CallTool):
        return None
    return arguments_for(engine.style(run), opened.state, opened.command)


def _draft_answered_last(earlier: list[tuple[AskPerson, GivenAnswer]]) -> int:
    """The record of the draft that the last of the earlier questions was answered with; 0 if none had one."""
    seen = [given.number if given.edited else ask.document for ask, given in earlier if given.edited or ask.document]
    return seen[-1] if seen else 0


async def records_at(engine: Engine, run_id: str, numbers: Collection[int]) -> dict[int, Record]:
    """Some records of a run by their numbers, those that exist. Those that are near one another are read together."""
    found: dict[int, Record] = {}
    wanted = sorted(number for number in numbers if number > 0)
    while wanted:
        near = next((at for at, (one, other) in enumerate(pairwise(wanted), 1) if other - one > READ_GAP), len(wanted))
        group, wanted = set(wanted[:near]), wanted[near:]
        read = await engine.journal.read(run_id, after=min(group) - 1, before=max(group) + 1)
        found |= {record.number: record for record in read if record.number in group}
    return found


async def _talk(engine: Engine, run_id: str) -> list[Line]:
    run = (await engine.look(run_id)).run
    return [line for part in engine.style(run).view.parts(run) if isinstance(part, Talk) for line in part.lines]


def _evidence(record: Record) -> ShownRecord:
    text = text_in(record)
    if not text and isinstance(record.event, Asked) and isinstance(record.event.command, AskAgent):
        text = f"asked {record.event.command.agent}"
    elif not text and isinstance(record.event, Asked):
        text = msgspec.json.encode(record.event.command).decode()
    return ShownRecord(record.number, iso(record.at), text[:MAX_TEXT])
