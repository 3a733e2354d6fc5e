"""Runs as any face may show them: a line of the list, how one is or has ended, why something was decided."""

from collections.abc import Collection, Iterable
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ripstop.engine.engine import Engine, View
from ripstop.engine.ports import MAX_PAGE, Page, Question, RunInfo, RunQuery
from ripstop.kernel.effects import CallTool, StartRun
from ripstop.kernel.errors import RunNotFound
from ripstop.kernel.events import Warned
from ripstop.kernel.outbox import child_id
from ripstop.kernel.questions import kind_of
from ripstop.kernel.resuming import ways_on
from ripstop.kernel.run import Run, Spent

from .answers import answers_in
from .desk import way_as_json
from .outages import Outage, outage_behind, question_now
from .timeline import Why, iso, path, record_as_json, timeline, ways_after_end
from .waits import questions_of, waits_for

# What a run and the runs below it have spent so far.
#
# A parent counts what a child spent when the child reports, so that it is counted once. Whoever looks at a parent that
# waits wants to know it now: it is read from the children that have not reported, never per step.


async def family_spent(engine: Engine, run: Run[Any], above: frozenset[str] = frozenset()) -> Spent:
    """What the run will have spent if the children that have not reported spend nothing more. Turns are its own.

    Args:
        above: Runs that are being counted already: named runs can wait for each other.
    """
    spent, above = run.spent, above | {run.id}
    commands = {number: opened.command for number, opened in run.open.items()} | run.late
    for number, command in commands.items():
        if not isinstance(command, StartRun):
            continue
        try:
            child = (await engine.look(child_id(run.id, number, command))).run
        except RunNotFound:  # it has not started yet
            continue
        if child.payer != f"{run.id}/{number}" or child.id in above:
            continue
        below = await family_spent(engine, child, above)
        usage = spent.usage.plus(below.usage.minus(child.paid.usage))
        runs = spent.runs + below.runs - child.paid.runs + 1
        spent = replace(spent, calls=spent.calls + below.calls - child.paid.calls, usage=usage, runs=runs)
    return spent


MAX_CHILDREN = 100
"""Children at work whose calls are looked at."""


def shown_status(status: str, has_workers: bool, left_waiting: bool = False) -> str:
    """The status of a run as people see it: one that would be at work, but has no worker, was interrupted.

    `left_waiting`: it waits for nothing but a worker.
    """
    is_due = status == "working" or (status == "waiting" and left_waiting)
    return "interrupted" if is_due and not has_workers else status


MOST_PAGES = 20
"""Pages of the journal that are looked through for one page, where what is shown differs from what is stored."""


async def shown_runs(engine: Engine, query: RunQuery) -> Page[RunInfo]:
    """A page of runs with their statuses as people see them, which are also those that the query names."""
    has_workers, left = await engine.has_workers(), await engine.left_waiting()
    stored = set(query.statuses)
    if "interrupted" in stored:
        stored |= {"working"} if has_workers else {"working", "waiting"}
    looked = replace(query, statuses=tuple(sorted(stored)))
    for _ in range(MOST_PAGES):
        page = await engine.runs(looked)
        shown = [replace(one, status=shown_status(one.status, has_workers, one.run_id in left)) for one in page.items]
        wanted = [one for one in shown if not query.statuses or one.status in query.statuses]
        if wanted or not page.next:
            break
        looked = replace(looked, cursor=page.next)
    return Page(wanted, page.next)


async def shown_counts(engine: Engine, query: RunQuery) -> dict[str, int]:
    """How many runs have each status as people see it. Of those that wait, the newest `MAX_PAGE` are looked at."""
    has_workers, left = await engine.has_workers(), await engine.left_waiting()
    found: dict[str, int] = {}
    for status, count in (await engine.journal.counts(query)).items():
        shown = shown_status(status, has_workers)
        found[shown] = found.get(shown, 0) + count
    if left and "waiting" in found:
        page = await engine.runs(replace(query, statuses=("waiting",), size=MAX_PAGE))
        interrupted = sum(info.run_id in left for info in page.items)
        found["waiting"] -= interrupted
        found["interrupted"] = found.get("interrupted", 0) + interrupted
    return found


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


def run_row(info: RunInfo, outages: Collection[Outage] = (), awaited: Collection[str] = ()) -> dict[str, Any]:
    """A line of the list of runs.

    Args:
        outages: What has paused it.
        awaited: What it waits for, though it is at work.
    """
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
        **({"outages": msgspec.to_builtins(list(outages))} if outages else {}),
        **({"waits_for": list(awaited)} if awaited else {}),
    }


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
        "ways": [way_as_json(one) for one in ways_on(verdict)],
    }
    return {"guard": shown}


async def run_document(engine: Engine, view: View) -> dict[str, Any]:
    """How a run is or has ended."""
    run = view.run
    entries = await timeline(engine, run.id)
    spent = await family_spent(engine, run)
    usage = spent.usage
    ways = ways_after_end(engine, entries)
    answers = [
        {"question": ask.question, **msgspec.to_builtins(given)}
        for ask, given in answers_in(one.record for one in entries)
    ]
    awaited = await waits_for(engine, view)
    return {
        "run": run.id,
        "style": run.started.style,
        "outcome": view.status,
        "because": run.ended.because if run.ended else "",
        "turns": engine.style(run).view.turns(run),
        "path": path(engine, entries),
        "usage": {
            "calls": spent.calls,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "money": usage.money,
        },
        "waiting": [question_row(one, await outage_behind(engine, one)) for one in await questions_of(engine, run.id)],
        **({"waits_for": list(awaited)} if awaited else {}),
        "warnings": [one.record.event.text for one in entries if isinstance(one.record.event, Warned)],
        **({"result": await engine.result(run.id)} if run.ended and run.ended.result else {}),
        **({"answers": answers} if answers else {}),
        **_guard(run),
        **({"ways": [way_as_json(one) for one in ways]} if ways else {}),
    }


def question_row(question: Question, outage: Outage | None = None) -> dict[str, Any]:
    """A question that a run waits for, in short."""
    ask = question_now(question, outage).command
    return {
        "id": f"{question.run_id}/{question.number}",
        "kind": kind_of(ask),
        "question": ask.question,
        "choices": list(ask.choices),
        **({"title": ask.title} if ask.title else {}),
        **({"other": ask.other} if ask.other else {}),
        **({"arguments": ask.arguments} if ask.arguments is not None else {}),
        **({"outage": msgspec.to_builtins(outage)} if outage is not None else {}),
    }


def why_document(reasons: Iterable[tuple[Any, Why]]) -> list[dict[str, Any]]:
    """Why the records of a step came to be."""
    return [
        {
            **record_as_json(entry),
            "reasons": msgspec.to_builtins(why.reasons),
            "evidence": [{"text": str(one.text), "records": list(one.numbers)} for one in why.evidence],
            "ways": [way_as_json(one) for one in why.ways],
            **({"child": msgspec.to_builtins(why.child)} if why.child else {}),
        }
        for entry, why in reasons
    ]
