"""What any face may show, as plain data: runs, questions with the text behind them, ways to continue.

Nothing here names a shell command, a key or a button: a face turns a way into one.
"""

from collections.abc import Collection, Iterable
from typing import Any

import msgspec
from msgspec import Struct

from ripstop.kernel.effects import AskPerson, CallTool, Field, PersonAnswered
from ripstop.kernel.events import Answered, Asked, Record, Warned
from ripstop.kernel.resuming import Way, ways_on
from ripstop.kernel.run import DOUBT, GUARD, Run
from ripstop.runtime.engine import Engine, View
from ripstop.runtime.family_spending import family_spent
from ripstop.runtime.ports import DeskQuery, Question, RunInfo
from ripstop.runtime.timeline import Why, iso, path, plain, timeline, ways_after_end
from ripstop.runtime.words import text_in

MAX_EVIDENCE = 20
"""Records behind a question whose texts are shown."""
MAX_TEXT = 20_000
"""Characters of one of them."""
MAX_CHILDREN = 100
"""Children at work whose calls are looked at."""
KINDS = {GUARD: "guard", DOUBT: "doubt"}


class ShownRecord(Struct, frozen=True):
    """A record behind a question."""

    number: int
    at: str
    text: str


class DeskItem(Struct, frozen=True, kw_only=True):
    """A question with all that a person needs to decide."""

    id: str
    run: str
    number: int
    asked: str
    kind: str
    """`guard`, `doubt`, or `question` for one of the style's own."""
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
    document: str | None = None
    """The document to review, as it is now."""
    previous: str | None = None
    """The document as it was when the last question of the same purpose was answered, to compare it with."""
    evidence: list[ShownRecord] = []


async def desk_item(engine: Engine, question: Question, with_texts: bool = True) -> DeskItem:
    ask, run_id = question.command, question.run_id
    family = [f"{info.run_id} ({info.style})" for info in await engine.family_line(run_id)]
    document = previous = None
    evidence: list[ShownRecord] = []
    if with_texts:
        records = await engine.journal.read(run_id)
        document, previous = _documents(engine, question, records)
        numbers = [number for number in ask.about if 1 <= number <= len(records)][:MAX_EVIDENCE]
        evidence = [_evidence(records[number - 1]) for number in numbers]
    return DeskItem(
        id=f"{run_id}/{question.number}",
        run=run_id,
        number=question.number,
        asked=iso(question.at),
        kind=KINDS.get(ask.purpose, "question"),
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
        family=family,
        document=document,
        previous=previous,
        evidence=evidence,
    )


def _evidence(record: Record) -> ShownRecord:
    text = text_in(record)
    if not text and isinstance(record.event, Asked):
        text = msgspec.json.encode(record.event.command).decode()
    return ShownRecord(record.number, iso(record.at), text[:MAX_TEXT])


def _documents(engine: Engine, question: Question, records: list[Record]) -> tuple[str | None, str | None]:
    """The document of a question, and the one that the last question of the same purpose was answered with."""
    ask, style = question.command, engine.registry.kits[question.style].style
    if not ask.document:
        return None, None
    asked = {
        record.number: record.event.command
        for record in records
        if record.number < question.number
        and isinstance(record.event, Asked)
        and isinstance(record.event.command, AskPerson)
        and record.event.command.purpose == ask.purpose
    }
    previous = None
    for number, earlier in asked.items():
        answers = (r for r in records if isinstance(r.event, Answered) and r.event.to == number)
        answer = next(answers, None)
        edited = isinstance(answer.event, Answered) and answer.event.answer if answer else None
        if answer and isinstance(edited, PersonAnswered) and edited.document is not None:
            previous = style.document(answer)
        elif earlier.document:
            previous = style.document(records[earlier.document - 1])
    return style.document(records[ask.document - 1]), previous


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
    more = {"raise": one.raises, "at": one.at, "stage": one.stage}
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
