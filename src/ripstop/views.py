"""What any face may show, as plain data: runs, questions with the text behind them, ways to continue.

Nothing here names a shell command, a key or a button: a face turns a way into one.
"""

from collections.abc import Collection, Iterable
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ripstop.differences import Hunk, difference
from ripstop.kernel.desk_kinds import DOUBTED, GUARDED, HALTED, HANDOFF, QUESTION, REVIEWED, STUCK
from ripstop.kernel.effects import AskPerson, CallTool, Field, PersonAnswered
from ripstop.kernel.errors import RunUnreadable, UnknownRecord
from ripstop.kernel.events import Answered, Asked, Record, Warned
from ripstop.kernel.parts import Line, Talk
from ripstop.kernel.resuming import Way, ways_on
from ripstop.kernel.run import DOUBT, GUARD, Run
from ripstop.kernel.style import Style
from ripstop.runtime.engine import Engine, View
from ripstop.runtime.family_spending import family_spent
from ripstop.runtime.ports import MAX_PAGE, DeskQuery, Question, RunInfo, RunQuery
from ripstop.runtime.timeline import Why, iso, path, plain, timeline, ways_after_end
from ripstop.runtime.words import text_in

MAX_EVIDENCE = 20
"""Records behind a question whose texts are shown."""
MAX_TEXT = 20_000
"""Characters of one of them."""
MAX_CHILDREN = 100
"""Children at work whose calls are looked at."""
_BY_PURPOSE = {GUARD: GUARDED, DOUBT: DOUBTED, HANDOFF: HANDOFF}
"""What a question is by its purpose; another one is a review if a document can be edited, else a question."""


class ShownRecord(Struct, frozen=True):
    """A record behind a question."""

    number: int
    at: str
    text: str


class GivenAnswer(Struct, frozen=True, kw_only=True):
    """What a person answered, and when."""

    to: int
    """The number of the question."""
    number: int
    at: str
    by: str
    choice: str
    text: str
    fields: dict[str, Any]
    edited: bool
    """Whether an edited document came with it."""


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
    talk: list[Line] = []
    """What was said until now, in a conversation that was handed over; then `answers` and `evidence` are empty."""
    ways: list[dict[str, Any]] = []
    """How a run that cannot go on can be continued."""


async def desk_item(engine: Engine, question: Question, with_texts: bool = True) -> DeskItem:
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
    )
    return await _with_texts(engine, question, item) if with_texts else item


def kind_of(ask: AskPerson) -> str:
    """What a question is to a person: one of `desk_kinds.KINDS`."""
    return _BY_PURPOSE.get(ask.purpose) or (REVIEWED if ask.document and ask.edit else QUESTION)


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
        ways=[way(Way("fork"))] if is_stuck else [way(Way("resume"))],
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


async def _with_texts(engine: Engine, question: Question, item: DeskItem) -> DeskItem:
    """The item with the texts behind it; without them if its run cannot be read here."""
    if question.style not in engine.registry.kits:
        return item
    try:
        records = await engine.journal.read(item.run)
        if item.kind == HANDOFF:
            return replace(item, talk=await _talk(engine, item.run))
    except (RunUnreadable, UnknownRecord):
        return item
    earlier = [
        (ask, given) for ask, given in answers_in(records) if ask.purpose == item.purpose and given.to < item.number
    ]
    document, previous = _documents(engine.registry.kits[question.style].style, item.draft, records, earlier)
    numbers = [number for number in item.about if 1 <= number <= len(records)][:MAX_EVIDENCE]
    return replace(
        item,
        document=document,
        previous=previous,
        difference=None if document is None or previous is None else difference(previous, document),
        answers=[given for _, given in earlier],
        evidence=[_evidence(records[number - 1]) for number in numbers],
    )


async def _talk(engine: Engine, run_id: str) -> list[Line]:
    run = (await engine.look(run_id)).run
    return [line for part in engine.style(run).parts(run) if isinstance(part, Talk) for line in part.lines]


def answers_in(records: Iterable[Record]) -> list[tuple[AskPerson, GivenAnswer]]:
    """What people have answered in a run, each with the question."""
    asked: dict[int, AskPerson] = {}
    found = []
    for record in records:
        match record.event:
            case Asked(command=AskPerson() as ask):
                asked[record.number] = ask
            case Answered(to=to, answer=PersonAnswered() as said) if to in asked:
                given = GivenAnswer(
                    to=to,
                    number=record.number,
                    at=iso(record.at),
                    by=said.by,
                    choice=said.choice,
                    text=said.text[:MAX_TEXT],
                    fields=said.fields,
                    edited=said.document is not None,
                )
                found.append((asked[to], given))
    return found


def _evidence(record: Record) -> ShownRecord:
    text = text_in(record)
    if not text and isinstance(record.event, Asked):
        text = msgspec.json.encode(record.event.command).decode()
    return ShownRecord(record.number, iso(record.at), text[:MAX_TEXT])


def _documents(
    style: Style[Any], draft: int, records: list[Record], earlier: list[tuple[AskPerson, GivenAnswer]]
) -> tuple[str | None, str | None]:
    """The document of a question, and the one that the last of the earlier questions was answered with."""
    if not 1 <= draft <= len(records):
        return None, None
    seen = [given.number if given.edited else ask.document for ask, given in earlier if given.edited or ask.document]
    previous = style.document(records[seen[-1] - 1]) if seen else None
    return style.document(records[draft - 1]), previous


class ToolCallLeft(Struct, frozen=True):
    """A call that waits for a process which has its tool."""

    run: str
    number: int
    tool: str


async def tool_calls_left(engine: Engine, run_id: str, known: Collection[str]) -> list[ToolCallLeft]:
    """The calls of a run and its children that no worker holds, of tools that are not among the `known`."""
    found: list[ToolCallLeft] = []
    has_workers = await engine.has_workers()  # the lease of a worker that died lasts for a while
    working = [info.run_id for info in await engine.descendants(run_id) if info.status == "working"]
    for one in (run_id, *working[:MAX_CHILDREN]):
        run = (await engine.look(one)).run
        calls = {n: opened.command.tool for n, opened in run.open.items() if isinstance(opened.command, CallTool)}
        unknown = {n: tool for n, tool in calls.items() if tool not in known and n not in run.doubts.values()}
        held = await engine.journal.held(one) if unknown and has_workers else set()
        found += [ToolCallLeft(one, number, tool) for number, tool in unknown.items() if number not in held]
    return found


def run_row(info: RunInfo) -> dict[str, Any]:
    """A line of the list of runs."""
    return {
        "run": info.run_id,
        "style": info.style,
        "status": info.status,
        "gist": info.gist,
        "records": info.length,
        "created": iso(info.created),
        "updated": iso(info.updated),
        "tokens": info.tokens,
        "money": info.money,
        "parent": info.parent,
        "root": info.root,
        "fork_of": info.fork_of,
        **({"set_aside": info.set_aside} if info.set_aside else {}),
    }


def way(one: Way) -> dict[str, Any]:
    """A way to continue."""
    more = {"raise": one.raises, "at": one.at, "stage": one.stage, "accept_edits": one.accept_edits}
    return {"action": one.action, **{name: value for name, value in more.items() if value}}


def _guard(run: Run[Any]) -> dict[str, Any]:
    """The guard that stopped a run, if one did, with its evidence and how the run can continue."""
    if run.verdict is None:
        return {}
    verdict = run.verdict
    shown = {
        "name": verdict.guard,
        "text": verdict.text,
        "evidence": list(verdict.evidence),
        "progress": verdict.progress or None,
        "ways": [way(one) for one in ways_on(verdict)],
    }
    return {"guard": shown}


async def run_document(engine: Engine, view: View) -> dict[str, Any]:
    """How a run is or has ended."""
    run = view.run
    story = await timeline(engine, run.id)
    spent = await family_spent(engine, run)
    usage = spent.usage
    ways = ways_after_end(engine, story)
    info = await engine.journal.run(run.id)
    questions = (await engine.desk(DeskQuery(root=info.root if info else run.id, size=1000))).items
    answers = [
        {"question": ask.question, **msgspec.to_builtins(given)}
        for ask, given in answers_in(one.record for one in story)
    ]
    mine = [one for one in questions if one.run_id == run.id or one.run_id.startswith(f"{run.id}.")]
    return {
        "run": run.id,
        "style": run.started.style,
        "outcome": view.status,
        "because": run.ended.because if run.ended else "",
        "turns": engine.style(run).turns(run),
        "path": path(engine, story),
        "usage": {
            "calls": spent.calls,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "money": usage.money,
        },
        "waiting": [waiting(one) for one in mine],
        "warnings": [one.record.event.text for one in story if isinstance(one.record.event, Warned)],
        **({"result": await engine.result(run.id)} if run.ended and run.ended.result else {}),
        **({"answers": answers} if answers else {}),
        **_guard(run),
        **({"ways": [way(one) for one in ways]} if ways else {}),
    }


def waiting(question: Question) -> dict[str, Any]:
    """A question that a run waits for, in short."""
    ask = question.command
    return {
        "id": f"{question.run_id}/{question.number}",
        "question": ask.question,
        "choices": list(ask.choices),
        **({"title": ask.title} if ask.title else {}),
        **({"other": ask.other} if ask.other else {}),
    }


def why_document(reasons: Iterable[tuple[Any, Why]]) -> list[dict[str, Any]]:
    """Why the records of a step came to be."""
    return [
        {
            **plain(entry),
            "reasons": msgspec.to_builtins(why.reasons),
            "evidence": [{"text": one.text, "records": list(one.numbers)} for one in why.evidence],
            "ways": [way(one) for one in why.ways],
            **({"child": msgspec.to_builtins(why.child)} if why.child else {}),
        }
        for entry, why in reasons
    ]
