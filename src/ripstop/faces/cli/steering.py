"""`desk`, `answer`, `cancel` and `fork`: the commands with which people steer."""

import asyncio
import getpass
from pathlib import Path
from typing import Any

import click

from .options import Options, shared_options
from .terminal import console_for, say, say_json
from .words import command_for, local_time, one_of, shown_status


def _me() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""


@click.command()
@shared_options
@click.pass_obj
def desk(options: Options) -> None:
    """List everything that waits for a person, over all runs.

    \b
    Example:
      ripstop desk
    """
    from ripstop.app import open_engine
    from ripstop.runtime.timeline import iso

    from .paragraphs import print_indented

    async def look() -> Any:
        async with open_engine(options.settings(), or_empty=True) as engine:
            return await engine.desk()

    questions = asyncio.run(look())
    if options.as_json:
        listed = [
            {
                "id": f"{q.run_id}/{q.number}",
                "asked": iso(q.at),
                "question": q.command.question,
                "choices": list(q.command.choices),
                "about": list(q.command.about),
            }
            for q in questions
        ]
        return say_json(listed)
    if not questions:
        return say("Nothing waits for you.")
    console = console_for()
    for q in questions:
        say((f"{q.run_id}/{q.number}", "bold"), f"  {local_time(q.at)}")
        print_indented(console, 2, q.command.question)
        say((f"  ripstop answer {q.run_id}/{q.number} {one_of(q.command.choices)}", "dim"))
        say()


@click.command(short_help="Answer a question of the desk.")
@click.argument("question", metavar="ID")
@click.argument("choice")
@click.argument("text", required=False, default="")
@click.option("--file", "file", type=click.Path(path_type=Path), help="Take the text from a file.")
@shared_options
@click.pass_obj
def answer(options: Options, question: str, choice: str, text: str, file: Path | None) -> None:
    """Answer a question of the desk. If no worker is alive, `ripstop resume` then resumes the run.

    \b
    Example:
      ripstop answer deploy-k3f9x/12 happened "release 4 is live"
    """
    from ripstop.app import open_engine

    run_id, slash, number = question.rpartition("/")
    if not slash or not number.isdigit():
        raise click.UsageError(f"{question!r} is not RUN/NUMBER, as `ripstop desk` shows it.")
    if file:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise click.UsageError(f"{file} cannot be read: {error}") from error

    async def tell() -> Any:
        async with open_engine(options.settings()) as engine:
            await engine.answer(run_id, int(number), choice, text, by=_me())
            return (await engine.look(run_id)).status, await engine.has_workers()

    status = shown_status(*asyncio.run(tell()))
    if options.as_json:
        return say_json({"run": run_id, "status": status})
    resume = f"  Resume it:  ripstop resume {run_id}" if status == "interrupted" else ""
    return say(f"Answered. {run_id} is {status}.{resume}")


@click.command()
@click.argument("run_id", metavar="RUN")
@shared_options
@click.pass_obj
def cancel(options: Options, run_id: str) -> None:
    """End a run at once. What it was doing is stopped; what it did stays in the journal.

    \b
    Example:
      ripstop cancel haiku-k3f9x
    """
    from ripstop.app import open_app
    from ripstop.runtime.following import until_settled
    from ripstop.services.handoff.service import know_this_place

    async def tell() -> Any:
        async with open_app(options.settings(), create=False) as app:
            app.worker.only = ""
            know_this_place(app, Path.cwd())
            await app.engine.cancel(run_id, by=_me())
            return await until_settled(app.engine, app.worker, run_id)  # some have a last word to say

    view = asyncio.run(tell())
    because = view.run.ended.because if view.run.ended else "a person is asked: ripstop desk"
    if options.as_json:
        return say_json({"run": run_id, "outcome": view.status, "because": because})
    say(f"{run_id}: {view.status}, {because}.")


@click.command(short_help="Start a new run from any record of another.")
@click.argument("run_id", metavar="RUN")
@click.option("--at", "at", type=click.IntRange(1), metavar="N", help="The last record to keep. Default: the last one.")
@click.option("--definition", metavar="PATH", help="Go on with this workflow instead of the pinned one.")
@click.option("--workspace", type=click.Path(path_type=Path), metavar="DIR", help="Where its agents put their files.")
@shared_options
@click.pass_obj
def fork(options: Options, run_id: str, at: int | None, definition: str | None, workspace: Path | None) -> None:
    """Start a new run from any record of another; the old run stays as it is. `ripstop resume` then works on it.

    At a fact (an answer, say) what was decided on it is decided anew; elsewhere the open question is
    asked anew. At an open tool call the agent's whole turn is taken again: it is asked as at the beginning of the
    turn, and tools that it called in this turn may be called again. `ripstop log RUN` shows the numbers. Without
    --at it is the last record; of a run that failed through its agent it is the last question to the agent, so that
    the call is made again.

    The fork has a folder of its own, .ripstop/workspaces/FORK or --workspace DIR, which begins as a copy of the
    old run's files as they are now. A DIR that has files in it is used as it is; so the old run's own folder is
    worked on only if you name it.

    \b
    Example:
      ripstop fork haiku-k3f9x --at 7 --definition examples/haiku
    """
    from ripstop.app import fork as fork_run
    from ripstop.app import open_engine
    from ripstop.definitions.loading import find
    from ripstop.runtime.timeline import forked_at

    settings = options.settings()
    found = find(definition, goal="kept from the run") if definition else None

    async def tell() -> Any:
        async with open_engine(settings) as engine:
            run = await fork_run(engine, run_id, at, found.content if found else None, workspace)
            status = shown_status((await engine.look(run.id)).status, await engine.has_workers())
            return run, status, await forked_at(engine, run.id)

    run, status, number = asyncio.run(tell())
    folder = run.settings.get("workspace")
    if options.as_json:
        told = {"run": run.id, "from": run_id, "records": run.length, "status": status, "workspace": folder}
        return say_json(told)
    say(f"Forked {run_id} at record {number} as {run.id}{f' ({status})' if run.ended else ''}.")
    if folder:
        say(f"Files:  {folder}")
    if not run.ended:
        say(f"Start it:  {command_for(settings.store)} resume {run.id}")
    return None
