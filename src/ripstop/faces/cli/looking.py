"""`runs`, `show`, `log`, `why` and `verify`: the commands that only look."""

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ripstop.visible_text import visible_line

from .options import Options, shared_options
from .terminal import console_for, say, say_json
from .words import COLOURS, count, first_line, local_time, one_of, shown_path, shown_status

if TYPE_CHECKING:
    from ripstop.kernel.run import Run
    from ripstop.runtime.engine import Engine
    from ripstop.runtime.timeline import TimelineEntry

SHORT = 160
WIDEST_KIND = 24
UNSEEN = ("sent", "messages", "context", "deed", "began")
"""Fields that tell a person nothing; `--json` has them."""


@click.command(short_help="List the runs of the journal.")
@click.option("--status", type=click.Choice([*COLOURS]), metavar="STATUS", help=f"One of: {', '.join(COLOURS)}.")
@click.option("--last", type=click.IntRange(1), metavar="N", help="List only the N runs that changed last.")
@shared_options
@click.pass_obj
def runs(options: Options, status: str | None, last: int | None) -> None:
    """List the runs of the journal, in the order in which they began.

    A run is `interrupted` if it has work to do and no worker is alive in any process: `ripstop resume` goes on with it.

    \b
    Examples:
      ripstop runs --last 20
      ripstop runs --status interrupted --json
    """
    from msgspec.structs import replace

    from ripstop.app import open_engine
    from ripstop.runtime.timeline import iso

    async def look() -> Any:
        async with open_engine(options.settings(), or_empty=True) as engine:
            return await engine.runs(), await engine.has_workers()

    everything, has_workers = asyncio.run(look())
    known = [replace(info, status=shown_status(info.status, has_workers)) for info in everything]
    matching = [info for info in known if status in (None, info.status)]
    kept = set(sorted((info.updated, info.run_id) for info in matching)[-last:]) if last else set()
    infos = [info for info in matching if not last or (info.updated, info.run_id) in kept]
    if options.as_json:
        listed = [
            {
                "run": info.run_id,
                "style": info.style,
                "status": info.status,
                "records": info.length,
                "created": iso(info.created),
                "updated": iso(info.updated),
                "parent": info.parent,
            }
            for info in infos
        ]
        return say_json(listed)
    if not infos:
        if known:
            return say(f"No runs are {status} ({count(len(known), 'run')} in this journal).")
        return say("No runs yet. Start one:  ripstop run WORKFLOW")
    from .tables import show_runs

    show_runs(infos)
    if len(infos) < len(matching):
        say((f"… {len(matching) - len(infos):,} more; leave out --last to list all of them.", "dim"))


async def _meant(engine: "Engine", named: str) -> str:
    """The run with that id, or that of the document in this folder with that id or file. Raises `RunNotFound`."""
    from ripstop.kernel.errors import RunNotFound
    from ripstop.services.handoff.run_names import run_named

    try:
        return (await engine.look(named)).run.id
    except RunNotFound:
        document = run_named(named, Path())
        if not document:
            raise
        try:
            return (await engine.look(document)).run.id
        except RunNotFound:
            raise RunNotFound(named) from None


@click.command(short_help="Show how a run stands.")
@click.argument("named", metavar="RUN")
@shared_options
@click.pass_obj
def show(options: Options, named: str) -> None:
    """Show how a run stands: where it is, whose turn, what it spent, what it waits for.

    RUN may also be the id or the file of a hand-off document in this folder.

    \b
    Example:
      ripstop show haiku-k3f9x
    """
    from ripstop.app import open_engine
    from ripstop.kernel.resuming import AMOUNTS
    from ripstop.kernel.run import fingerprint

    from .paragraphs import print_labelled
    from .summary import summary

    async def look() -> Any:
        async with open_engine(options.settings()) as engine:
            view = await engine.look(await _meant(engine, named))
            result = await summary(engine, view)
            return view, {**result, "outcome": shown_status(view.status, await engine.has_workers())}

    view, result = asyncio.run(look())
    picture = view.picture
    more = {"where": picture.where, "whose_turn": picture.whose_turn, "progress": picture.progress}
    if options.as_json:
        limits = {name: value for name in AMOUNTS if (value := getattr(view.run.limits, name)) is not None}
        pinned = {"records": view.run.length, "definition": view.run.definition, "fingerprint": fingerprint(view.run)}
        return say_json({**result, "limits": limits, **more, **pinned})
    usage = result["usage"]
    lines = [
        ("status", f"{result['outcome']}{'  ' + result['because'] if result['because'] else ''}"),
        ("where", f"{picture.where}{f' ({picture.whose_turn})' if picture.whose_turn else ''}  {picture.progress}"),
        ("path", shown_path(result["path"])),
        ("spent", f"{usage['calls']} calls, {usage['input_tokens']} + {usage['output_tokens']} tokens"),
        ("records", f"{view.run.length}, definition {view.run.definition[:12]}…"),
        ("last", first_line(picture.document, 400)),
    ]
    lines += [("waits", f"{q['question']}  → ripstop answer {q['id']} …") for q in result["waiting"]]
    if view.status == "stuck":
        lines.append(
            ("stuck", f"nothing can move this run any more; `ripstop fork {view.run.id} --at N` goes on from it")
        )
    if result["outcome"] == "interrupted":
        lines.append(("resume", f"ripstop resume {view.run.id}"))
    console = console_for()
    for name, text in lines:
        if text.strip():
            print_labelled(console, f"{name:8}", text, "dim")


@click.command(short_help="Tell what happened, record by record.")
@click.argument("named", metavar="RUN")
@click.option("--follow", is_flag=True, help="Wait for more until the run has ended.")
@shared_options
@click.pass_obj
def log(options: Options, named: str, follow: bool) -> None:
    """Tell what happened, record by record. Long texts are cut.

    RUN may also be the id or the file of a hand-off document in this folder.

    With --json: one object a line (number, at, type, the event's fields), nothing cut: every prompt stands there as
    it was sent. `number` and `at` are the record's; if the event has such fields of its own, they are `of` (the record
    it is about) and `event_at`.

    \b
    Example:
      ripstop log haiku-k3f9x --json | jq 'select(.type == "answered")'
    """
    from ripstop.app import open_engine
    from ripstop.runtime.timeline import plain, timeline

    async def tell() -> None:
        async with open_engine(options.settings()) as engine:
            told, run_id = 0, await _meant(engine, named)
            while True:
                story = await timeline(engine, run_id)
                for one in story[told:]:
                    if options.as_json:
                        say_json(plain(one))
                    else:
                        _tell(one)
                told = len(story)
                sys.stdout.flush()
                if not follow or story[-1].run.ended:
                    return
                await asyncio.sleep(0.5)

    asyncio.run(tell())


def _tell(told: "TimelineEntry") -> None:
    """A record in lines for a person: what it is, then what it holds; all on one line if no person reads it."""
    from ripstop.runtime.timeline import plain

    fields = plain(told)
    kind = fields.pop("type")
    fields.pop("at")
    number = fields.pop("number")
    inner = fields.pop("command", None) or fields.pop("answer", None)
    if inner:
        kind = f"{kind} {inner.pop('type', '')}"
        fields = {**fields, **inner}
    shown = [
        (name, first_line(_text(value), SHORT))
        for name, value in fields.items()
        if name not in UNSEEN and value not in (None, "", [], {}) and (name, value) != ("prompt_is_genuine", True)
    ]
    head = f"{number:>5}  {local_time(told.record.at)}"
    if not sys.stdout.isatty():
        line = f"{head}  {kind:{WIDEST_KIND}}  " + "  ".join(f"{name} {text}" for name, text in shown)
        return say(line.rstrip())
    say(f"{head}  ", (kind, "bold"))
    if shown:
        from .paragraphs import print_indented

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
    """Explain a decision: which conditions were looked at, what they saw, which guard stopped it.

    Without @N: why the run ended, or why it stands where it stands. RUN may also be the id or the file of a hand-off
    document in this folder.

    \b
    Example:
      ripstop why haiku-k3f9x@7
    """
    from ripstop.app import open_engine
    from ripstop.runtime.timeline import explain, last_word, step_of, timeline

    named, _, wanted = where.partition("@")
    if wanted and not wanted.isdigit():
        raise click.UsageError(f"{where!r} is not RUN@N with a record's number N.")

    async def look() -> Any:
        async with open_engine(options.settings()) as engine:
            run_id = await _meant(engine, named)
            story = await timeline(engine, run_id)
            number = int(wanted) if wanted else last_word(story)
            if not 1 <= number <= len(story):
                raise click.UsageError(f"Run {run_id!r} has the records 1 to {len(story)}; there is no {number}.")
            reasons = [(one, explain(engine, story, one)) for one in step_of(story, number)]
            within = {one.record.number for one, _ in reasons}
            last, lines = reasons[-1]
            return [*reasons[:-1], (last, [*lines, *_to_answer(story[-1].run, within if wanted else None)])]

    from .paragraphs import print_indented

    reasons = asyncio.run(look())
    if options.as_json:
        from ripstop.runtime.timeline import plain

        return say_json([{**plain(one), "explanation": lines} for one, lines in reasons])
    for one, lines in reasons:
        _tell(one)
        for line in lines:
            print_indented(console_for(), 9, visible_line(line))


def _to_answer(run: "Run[Any]", within: set[int] | None) -> list[str]:
    """How to answer the questions that are still open: of the whole run, or only those in some records."""
    from ripstop.kernel.effects import AskPerson

    return [
        f"answer    ripstop answer {run.id}/{number} {one_of(opened.command.choices)}"
        for number, opened in run.open.items()
        if isinstance(opened.command, AskPerson) and (within is None or number in within)
    ]


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
    from ripstop.app import open_engine
    from ripstop.kernel.errors import JournalError

    async def look() -> Any:
        async with open_engine(options.settings()) as engine:
            damage = await engine.journal.verify(run_id)
            try:
                return damage, await engine.runs()
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
