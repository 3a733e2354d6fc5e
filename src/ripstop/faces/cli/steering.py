"""`act`, `cancel` and `fork`: the commands with which people steer."""

import asyncio
from pathlib import Path
from typing import Any

import click

from .options import FolderPath, Options, pairs, shared_options, without_tools
from .summary import seen_status
from .terminal import say, say_json
from .user_name import user_name
from .words import command_for


@click.command(short_help="Perform an action that a run's style offers.")
@click.argument("run_id", metavar="RUN")
@click.argument("name", metavar="ACTION")
@click.option("--field", "fields", multiple=True, metavar="NAME=VALUE", help="A field of the action; can be repeated.")
@click.option("--as", "by", metavar="NAME", help="Who does it. Default: your user name.")
@shared_options
@click.pass_obj
def act(options: Options, run_id: str, name: str, fields: tuple[str, ...], by: str | None) -> None:
    """Do what a run's style lets people do with it now; `ripstop show RUN` lists the actions, and says in whose name
    they are done where only one may do them.

    The file of a hand-off document is written at once, unless an agent has to work on it or its folder is not one that
    you have named: then `ripstop resume` writes it.

    \b
    Example:
      ripstop act report-k3f9x pass --as writer --field to=reviewer
    """
    from ripstop.app import App
    from ripstop.runtime.following import until_settled
    from ripstop.runtime.ports import Tree

    async def tell() -> Any:
        async with App(without_tools(options.settings()), create=False, scope=None) as app:
            app.attach(Path.cwd())
            run = await app.engine.act(run_id, name, pairs(fields, "--field"), user_name() if by is None else by)
            if await app.is_own_work(run):
                async with app.working(Tree(run_id)) as worker:
                    await until_settled(app.engine, worker, run_id)
            return await seen_status(app.engine, run_id, (await app.engine.look(run_id)).status)

    status = asyncio.run(tell())
    if options.as_json:
        return say_json({"run": run_id, "status": status})
    resume = f"  Resume it:  ripstop resume {run_id}" if status == "interrupted" else ""
    return say(f"Done. {run_id} is {status}.{resume}")


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
    from ripstop.app import App
    from ripstop.runtime.following import until_settled
    from ripstop.runtime.ports import Tree

    async def tell() -> Any:
        async with App(without_tools(options.settings()), create=False, scope=None) as app:
            app.attach(Path.cwd())
            await app.engine.cancel(run_id, by=user_name())
            async with app.working(Tree(run_id)) as worker:
                return await until_settled(app.engine, worker, run_id)  # some have a last word to say

    view = asyncio.run(tell())
    because = view.run.ended.because if view.run.ended else "a person is asked: ripstop desk"
    if options.as_json:
        return say_json({"run": run_id, "outcome": view.status, "because": because})
    say(f"{run_id}: {view.status}, {because}.")


@click.command(short_help="Start a new run from any record of another.")
@click.argument("run_id", metavar="RUN")
@click.option("--at", "at", type=click.IntRange(1), metavar="N", help="The last record to keep. Default: the last one.")
@click.option("--definition", metavar="PATH", help="Continue with this workflow instead of the pinned one.")
@click.option("--workspace", type=FolderPath(), metavar="DIR", help="Where its agents put their files.")
@shared_options
@click.pass_obj
def fork(options: Options, run_id: str, at: int | None, definition: str | None, workspace: Path | None) -> None:
    """Start a new run from any record of another; the old run stays as it is. `ripstop resume` then works on it.

    At a fact (an answer, say) what was decided on it is decided again; elsewhere the open question is
    asked again. At an open tool call the agent's whole turn is taken again: it is asked as at the beginning of the
    turn, and tools that it called in this turn may be called again. `ripstop log RUN` shows the numbers. Without
    --at it is the last record; of a run that failed through its agent it is the last question to the agent, so that
    the call is made again.

    The fork has its own folder, .ripstop/workspaces/FORK or --workspace DIR, which begins as a copy of the
    old run's files as they are now. A DIR that has files in it is used as it is; so the old run's own folder is
    worked on only if you name it.

    \b
    Example:
      ripstop fork haiku-k3f9x --at 7 --definition examples/haiku
    """
    from ripstop.definitions.loading import find
    from ripstop.definitions.reader import Environment
    from ripstop.forked_run import fork_run
    from ripstop.opening import open_engine
    from ripstop.plugins import installed
    from ripstop.runtime.timeline import forked_at

    settings, plugins = options.settings(), installed()
    goal = Environment(goal="kept from the run")
    found = find(plugins.readers, definition, goal) if definition else None

    async def tell() -> Any:
        async with open_engine(settings) as engine:
            run = await fork_run(engine, plugins, run_id, at, found, workspace)
            status = await seen_status(engine, run.id, (await engine.look(run.id)).status)
            return run, status, await forked_at(engine, run.id)

    run, status, number = asyncio.run(tell())
    folder = run.settings.workspace or None
    if options.as_json:
        told = {"run": run.id, "from": run_id, "records": run.length, "status": status, "workspace": folder}
        return say_json(told)
    say(f"Forked {run_id} at record {number} as {run.id}{f' ({status})' if run.ended else ''}.")
    if folder:
        say(f"Files:  {folder}")
    if not run.ended:
        say(f"Start it:  {command_for(settings.store)} resume {run.id}")
    return None
