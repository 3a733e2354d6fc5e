"""`runs`, `show`, `log`, `why` and `verify`: the commands that only look."""

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import asdict, replace

from ripstop.kernel.desk_kinds import HANDOFF
from ripstop.kernel.statuses import STATUSES
from ripstop.text.plurals import count
from ripstop.text.visible_text import visible_line

from .options import Options, resolve_run, shared_options
from .terminal import console_for, say, say_json
from .words import (
    action_words,
    answer_command,
    answer_words,
    choices_line,
    first_line,
    handoff_commands,
    local_time,
    outage_commands,
    outage_words,
    refused_calls,
    shown_path,
    spent_words,
    way_command,
)

if TYPE_CHECKING:
    from ripstop.engine.engine import Engine, View
    from ripstop.engine.ports import DeskQuery, Question
    from ripstop.history.runs import ToolCallLeft
    from ripstop.history.timeline import TimelineEntry, Why
    from ripstop.kernel.run import Run
    from ripstop.kernel.style import Reason


# Lists that come page by page, whole.


PAGE = 1000


async def all_questions(engine: "Engine", query: "DeskQuery") -> "list[Question]":
    """Every question that a query asks for, the oldest first."""
    found, query = [], replace(query, size=PAGE)
    while True:
        page = await engine.desk(query)
        found += page.items
        if not page.next:
            return found
        query = replace(query, cursor=page.next)


# Why a record came to be, in lines for a person.


def why_lines(run_id: str, why: "Why") -> list[str]:
    from ripstop.history.desk import way_as_json

    lines = []
    if why.verdict:
        verdict = why.verdict
        lines.append(f"guard     {verdict.guard}: limit {verdict.limit:g}, found {verdict.value:g}")
    lines += [f"evidence  {one.text}: record {', '.join(map(str, one.numbers))}" for one in why.evidence]
    if why.verdict and why.verdict.progress:
        lines.append(f"progress  the last is record {why.verdict.progress}")
    taken = False
    if why.child:
        how = f"ended as {why.child.outcome}: {why.child.because}" if why.child.outcome else "was started"
        lines.append(f"child     {why.child.run} {how}  → ripstop why {why.child.run}")
    for reason in why.reasons:
        lines += reason_lines(reason, after_taken=taken and not reason.is_check)
        taken = taken or reason.taken
    return [*lines, *(f"next      {way_command(run_id, way_as_json(one))}" for one in why.ways)]


def reason_lines(reason: "Reason", after_taken: bool = False) -> list[str]:
    """A reason: whether it held, whether it was acted on, and the parts of a condition below it."""
    mark = "" if reason.holds is None else "✓ " if reason.holds else "✗ "
    note = ""
    if reason.holds is not None and reason.taken:
        note = "  (taken)"
    elif reason.holds is not None and after_taken:
        note = "  (holds too, but comes later)" if reason.holds else "  (not needed)"
    source = f"  {reason.source}" if reason.source else ""
    return [f"{mark}{reason.text}{note}{source}", *(f"    {part}" for part in reason.tree)]


SHORT = 160
WIDEST_KIND = 24
ANSWERS_SHOWN = 5
"""Answers of people that are shown of a run, the last ones; `--json` has all of them."""
UNSEEN = ("sent", "messages", "context", "digest", "began", "took", "first_token", "format")
"""Fields that tell a person nothing; `--json` has them."""


@click.command(short_help="List the runs of the journal.")
@click.option("--status", type=click.Choice(STATUSES), metavar="STATUS", help=f"One of: {', '.join(STATUSES)}.")
@click.option("--style", metavar="STYLE", help="Only runs of this style.")
@click.option("--match", default="", metavar="TEXT", help="Only runs with this text in their id or gist.")
@click.option("--last", type=click.IntRange(1), metavar="N", help="List only the N runs that changed last.")
@shared_options
@click.pass_obj
def runs(options: Options, status: str | None, style: str | None, match: str, last: int | None) -> None:
    """List the runs of the journal, in the order in which they began.

    A run is `interrupted` if it has work to do and no worker is alive in any process: `ripstop resume` resumes it. One
    that is `set_aside` cannot be worked on here, and is left alone: its reason is shown.

    \b
    Examples:
      ripstop runs --last 20
      ripstop runs --status interrupted --json
    """
    from msgspec.structs import replace

    from ripstop.app.resume import all_runs
    from ripstop.app.stores import open_engine
    from ripstop.engine.ports import RunQuery
    from ripstop.history.outages import outages_of
    from ripstop.history.runs import run_row, shown_status
    from ripstop.history.waits import held_back_in

    async def look() -> Any:
        async with open_engine(options.settings(), or_empty=True) as engine:
            query = RunQuery(styles=(style,) if style else (), text=match)
            everything, has_workers = await all_runs(engine, query), await engine.has_workers()
            left = await engine.left_waiting()
            known = [
                replace(info, status=shown_status(info.status, has_workers, info.run_id in left))
                for info in reversed(everything)
            ]
            matching = [info for info in known if status in (None, info.status)]
            kept = set(sorted((info.updated, info.run_id) for info in matching)[-last:]) if last else set()
            infos = [info for info in matching if not last or (info.updated, info.run_id) in kept]
            held = await held_back_in(engine, infos)
            return known, matching, infos, await outages_of(engine, infos), held

    known, matching, infos, paused, held = asyncio.run(look())
    if options.as_json:
        return say_json([run_row(one, paused.get(one.run_id, ()), held.get(one.run_id, ())) for one in infos])
    if not infos:
        if match or style:
            return say("No runs match. `ripstop runs` lists all of this journal.")
        if known and status:
            return say(f"No runs are {status} ({count(len(known), 'run')} in this journal).")
        return say("No runs yet. Start one:  ripstop run WORKFLOW")
    from .blocks import show_runs

    show_runs(infos)
    for info in infos:
        if info.set_aside:
            say(f"{info.run_id} is set aside: {info.set_aside}")
    for run_id, awaited in held.items():
        say(f"{run_id} waits for {' and '.join(awaited)}")
    for outage in [outage for found in paused.values() for outage in found]:
        so_far = outage_words(asdict(outage))
        say(f"{outage.run} is paused by {outage.by or 'its model'}, {so_far}: {first_line(outage.reason, 200)}")
        say((f"  ripstop retry {outage.root}", "dim"))
    if len(infos) < len(matching):
        say((f"… {len(matching) - len(infos):,} more; leave out --last to list all of them.", "dim"))


@click.command(short_help="Show the state of a run.")
@click.argument("named", metavar="RUN")
@shared_options
@click.pass_obj
def show(options: Options, named: str) -> None:
    """Show the state of a run: where it is, whose turn, what it spent, what it waits for.

    RUN may also be the id or the file of a hand-off document in this folder.

    \b
    Example:
      ripstop show haiku-k3f9x
    """
    import msgspec

    from ripstop.app.run_files import file_changes
    from ripstop.app.stores import open_engine
    from ripstop.kernel.limits import AMOUNTS
    from ripstop.kernel.run import fingerprint

    from .blocks import print_labelled, show_parts
    from .words import seen_status, summary

    async def look() -> Any:
        async with open_engine(options.settings()) as engine:
            view = await engine.look(await resolve_run(engine, named))
            result = await summary(engine, view)
            style = engine.style(view.run)
            outcome = await seen_status(engine, view.run.id, view.status)
            missing = await _missing_tools(options, engine, view.run.id)
            files = msgspec.to_builtins(await file_changes(engine, view.run.id))
            return (
                view,
                {**result, "outcome": outcome, "files": files},
                style.view.parts(view.run),
                style.people.actions(view.run),
                missing,
            )

    view, result, parts, actions, missing = asyncio.run(look())
    picture = view.picture
    more = {"where": picture.where, "whose_turn": picture.whose_turn, "progress": picture.progress}
    if options.as_json:
        limits = {name: value for name in AMOUNTS if (value := getattr(view.run.limits, name)) is not None}
        pinned = {"records": view.run.length, "definition": view.run.definition, "fingerprint": fingerprint(view.run)}
        shown = {"parts": msgspec.to_builtins(parts), "actions": msgspec.to_builtins(actions)}
        needs = {"needs": [f"tool:{one.tool}" for one in missing]} if missing else {}
        return say_json({**result, **needs, "limits": limits, **more, **pinned, **shown})
    console = console_for()
    for name, text in _state_lines(view, result, missing):
        if text.strip():
            print_labelled(console, f"{name:8}", text, "dim")
    show_parts(console, parts)
    for action in actions:
        typed = f"ripstop act {view.run.id} {action_words(action)}"
        print_labelled(console, "can     ", f"{action.label}  → {typed}", "dim")


FILES_SHOWN = 10


def _file_lines(run_id: str, files: dict[str, Any]) -> list[str]:
    """What the run did to files that were there before it."""
    changes = files["changes"]
    shown = [f"{one['what']} {one['path']}" for one in changes[:FILES_SHOWN]]
    more = [f"and {len(changes) - FILES_SHOWN:,} more"] if len(changes) > FILES_SHOWN else []
    way = [f"of yours; bring them back  → ripstop undo-files {run_id}"] if changes else []
    return [*filter(None, [files["problem"]]), *shown, *more, *way]


def _state_lines(view: "View", result: dict[str, Any], missing: "list[ToolCallLeft]") -> list[tuple[str, str]]:
    """The state of a run, as labels and texts; an empty text is not shown."""
    from ripstop.history.waits import held_back

    picture = view.picture
    usage = result["usage"]
    lines = [
        ("status", f"{result['outcome']}{'  ' + result['because'] if result['because'] else ''}"),
        ("where", f"{picture.where}{f' ({picture.whose_turn})' if picture.whose_turn else ''}  {picture.progress}"),
        ("path", shown_path(result["path"])),
        ("spent", spent_words(usage, refused_calls(view.run))),
        ("records", f"{view.run.length}, definition {view.run.definition[:12]}…"),
        ("last", first_line(picture.document, 400)),
    ]
    lines += [("files", text) for text in _file_lines(view.run.id, result["files"])]
    lines += [("answer", _answer_words(given)) for given in result.get("answers", [])[-ANSWERS_SHOWN:]]
    lines += [("waits", _waits(question)) for question in result["waiting"]]
    held = held_back(view.run)
    lines += [("waits", f"for {one}") for one in result.get("waits_for", ()) if one in held]
    if view.run.waiting:  # a child that it also waits for has lines of its own
        lines += [("waits", f"for {one}") for one in result.get("waits_for", ()) if "budget" in one]
    if view.status == "stuck":
        lines.append(
            ("stuck", f"nothing can move this run any more; `ripstop fork {view.run.id} --at N` continues from it")
        )
    lines += [("waits", _bring(view.run.id, one)) for one in missing]
    if result["outcome"] == "interrupted" and not missing:
        lines.append(("resume", f"ripstop resume {view.run.id}"))
    return lines


def _waits(question: dict[str, Any]) -> str:
    if outage := question.get("outage"):
        known = outage_words(outage)
        return f"{question['question']}  ({known})  → {outage_commands(question['id'], outage['root'])}"
    if question["kind"] == HANDOFF:
        return f"{question['question']}  → {handoff_commands(question['id'])}"
    return f"{question['question']}  → ripstop {answer_command(question['id'], question['choices'])}"


def _answer_words(given: dict[str, Any]) -> str:
    """Who answered which question, and what."""
    said = answer_words(given["choice"], given["text"], given["fields"])
    return f"{local_time(given['at'])}  {given['by'] or 'somebody'}: {said}  ({first_line(given['question'], 60)})"


@click.command(short_help="Show what happened, record by record.")
@click.argument("named", metavar="RUN")
@click.option("--follow", is_flag=True, help="Wait for more until the run has ended.")
@click.option("--family", is_flag=True, help="Also the runs that it started, and theirs, in order of time.")
@shared_options
@click.pass_obj
def log(options: Options, named: str, follow: bool, family: bool) -> None:
    """Show what happened, record by record. Long texts are cut.

    RUN may also be the id or the file of a hand-off document in this folder.

    With --json: one object a line (number, at, type, the event's fields), nothing cut: every prompt is there as
    it was sent. `number` and `at` are the record's; if the event has such fields of its own, they are `of` (the record
    it is about) and `event_at`. With --family `of_run` is the run that the record belongs to.

    \b
    Examples:
      ripstop log haiku-k3f9x --json | jq 'select(.type == "answered")'
      ripstop log office-k3f9x --family
    """
    from ripstop.app.stores import open_engine
    from ripstop.history.timeline import family_timeline, record_as_json, timeline

    async def tell() -> None:
        async with open_engine(options.settings()) as engine:
            told: set[tuple[str, int]] = set()
            run_id = await resolve_run(engine, named)
            while True:
                entries = await (family_timeline if family else timeline)(engine, run_id)
                for one in entries:
                    if (one.run.id, one.record.number) in told:
                        continue
                    told.add((one.run.id, one.record.number))
                    if options.as_json:
                        say_json({**({"of_run": one.run.id} if family else {}), **record_as_json(one)})
                    else:
                        _tell(one, one.run.id if family else "")
                sys.stdout.flush()
                if not follow or (await engine.look(run_id)).run.is_settled:
                    return
                await asyncio.sleep(0.5)

    asyncio.run(tell())


def _tell(told: "TimelineEntry", of_run: str = "") -> None:
    """A record in lines for a person: what it is, then what it holds; all on one line if no person reads it.

    Args:
        of_run: The run that it belongs to, where records of several runs are shown.
    """
    from ripstop.history.timeline import record_as_json
    from ripstop.kernel.events import CallRefused

    fields = record_as_json(told)
    kind = fields.pop("type")
    fields.pop("at")
    if fields.get("again") and isinstance(told.record.event, CallRefused):
        fields["again"] = local_time(fields["again"])
    number = fields.pop("number")
    for name in ("command", "answer"):
        inner = fields.get(name)
        if isinstance(inner, dict):  # an event of a style may have a number under the same name
            del fields[name]
            kind = f"{kind} {inner.pop('type', '')}"
            fields = {**fields, **inner}
    shown = [
        (name, first_line(_text(value), SHORT))
        for name, value in fields.items()
        if name not in UNSEEN and value not in (None, "", [], {}) and (name, value) != ("prompt_is_genuine", True)
    ]
    head = f"{f'{of_run}/' if of_run else ''}{number:>5}  {local_time(told.record.at)}"
    if not sys.stdout.isatty():
        line = f"{head}  {kind:{WIDEST_KIND}}  " + "  ".join(f"{name} {text}" for name, text in shown)
        return say(line.rstrip())
    say(f"{head}  ", (kind, "bold"))
    if shown:
        from .blocks import print_indented

        parts = [part for name, text in shown for part in ("  ", (name, "dim"), f" {text}")]
        print_indented(console_for(), 7, *parts[1:])
    return None


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.15g}"  # 3, not 3.0
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@click.command(short_help="Explain a decision, a stop or an end.")
@click.argument("where", metavar="RUN[@N]")
@shared_options
@click.pass_obj
def why(options: Options, where: str) -> None:
    """Explain a decision: which conditions were checked, the values they saw, which guard stopped it.

    Without @N: why the run ended, with the checks that this rests on, or why it is where it is. RUN may also be the id
    or the file of a hand-off document in this folder.

    \b
    Example:
      ripstop why haiku-k3f9x@7
    """
    from ripstop.app.stores import open_engine
    from ripstop.history.timeline import explain, grounds, last_word, step_of, timeline

    named, at, wanted = where.partition("@")
    if at and not (wanted.isascii() and wanted.isdigit()):
        raise click.UsageError(f"{where!r} is not RUN@N with a record's number N.")

    async def look() -> Any:
        async with open_engine(options.settings()) as engine:
            run_id = await resolve_run(engine, named)
            entries = await timeline(engine, run_id)
            number = int(wanted) if wanted else last_word(entries)
            if not 1 <= number <= len(entries):
                raise click.UsageError(f"Run {run_id!r} has the records 1 to {len(entries)}; there is no {number}.")
            step = step_of(entries, number)
            rests_on = None if wanted else grounds(engine, entries)
            explained = step if rests_on is None or rests_on in step else [rests_on, *step]
            reasons = [(one, explain(engine, entries, one)) for one in explained]
            within = {one.record.number for one, _ in reasons}
            missing = [] if wanted else await _missing_tools(options, engine, run_id)
            return reasons, _to_answer(entries[-1].run, within if wanted else None), missing

    from .blocks import print_indented

    reasons, answers, missing = asyncio.run(look())
    explained = [(one, why_lines(one.run.id, found)) for one, found in reasons]
    explained[-1][1].extend(answers)
    explained[-1][1].extend(f"waits     {_bring(one.run.id, left)}" for one, _ in reasons[-1:] for left in missing)
    if options.as_json:
        from ripstop.history.runs import why_document

        documents = why_document(reasons)
        return say_json([{**one, "explanation": lines} for one, (_, lines) in zip(documents, explained, strict=True)])
    for one, lines in explained:
        _tell(one)
        for line in lines:
            print_indented(console_for(), 9, visible_line(line))
    return None


async def _missing_tools(options: Options, engine: "Engine", run_id: str) -> "list[ToolCallLeft]":
    """Calls that wait for a tool which a process must bring. No module is imported and no server started for it."""
    from ripstop.app.plugins import installed
    from ripstop.app.start import environment
    from ripstop.app.toolbox import pinned_tools
    from ripstop.history.runs import tool_calls_left

    plugins = installed()
    for_agents = environment(tools=list(plugins.agent_tools())).tools or ()
    known = {*for_agents, *plugins.own_tools(), *pinned_tools(options.settings())}
    return await tool_calls_left(engine, run_id, known)


def _bring(run_id: str, left: "ToolCallLeft") -> str:
    return (
        f"for the tool {left.tool!r} ({left.run}/{left.number}), which a process has to bring  "
        f"→ ripstop resume {run_id} --tools MODULE"
    )


def _to_answer(run: "Run[Any]", within: set[int] | None) -> list[str]:
    """How to answer the questions that are still open: of the whole run, or only those in some records."""
    from ripstop.kernel.effects import AskPerson

    lines = []
    for number, opened in run.open.items():
        if isinstance(opened.command, AskPerson) and (within is None or number in within):
            choices = opened.command.choices
            lines.append(f"answer    ripstop {answer_command(f'{run.id}/{number}', choices)}")
            lines += [f"          {line}" for line in choices_line(choices)]
    return lines


@click.command(short_help="Check that the journal is what was written.")
@click.argument("run_id", metavar="[RUN]", required=False)
@shared_options
@click.pass_obj
def verify(options: Options, run_id: str | None) -> None:
    """Check that no record was changed, dropped, swapped, inserted or cut off.

    \b
    Exit codes: 0 sound, 1 damaged, 2 there is no journal (or no such run).
    Example:
      ripstop verify && echo "the journal is what was written"
    """
    from ripstop.app.resume import all_runs
    from ripstop.app.stores import open_engine
    from ripstop.engine.ports import RunQuery
    from ripstop.kernel.errors import JournalError

    async def look() -> Any:
        async with open_engine(options.settings()) as engine:
            damage = await engine.journal.verify(run_id)
            try:
                return damage, await all_runs(engine, RunQuery())
            except JournalError:
                if not damage:
                    raise
                return damage, []  # the list of runs is part of what is damaged

    damage, infos = asyncio.run(look())
    if run_id and (infos or not damage) and run_id not in {info.run_id for info in infos}:
        raise click.UsageError(f"There is no run {run_id!r}. `ripstop runs` lists the runs of this journal.")
    checked = [info for info in infos if run_id in (None, info.run_id)]
    if options.as_json:
        found = [{"run": d.run_id, "number": d.number, "damage": d.text} for d in damage]
        say_json({"sound": not damage, "runs": len(checked), "damage": found})
    elif damage:
        for one in damage:
            say(f"{one.run_id or 'journal'}{f'@{one.number}' if one.number else ''}: {one.text}")
        say("This journal is not what was written. Restore it from a backup.", err=True)
    else:
        records = sum(info.length for info in checked)
        say(f"Sound: {count(len(checked), 'run')}, {count(records, 'record')}.")
    sys.exit(1 if damage else 0)
