"""What `resume` finds to do: the latest run that can be resumed or, with `--all`, every interrupted one at once."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .options import FolderPath, Options, pairs, shared_options, user_name, without_tools
from .signals import STOPPING, interruption, resume_with, stop_requested, undisturbed
from .terminal import keep_working_without_readers, say, say_json
from .words import EXIT, GRACE, WAITING, command_for, exit_code, seen_status, summary, way_command

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ripstop.app.application import App
    from ripstop.engine.engine import View
    from ripstop.engine.worker import Worker
    from ripstop.kernel.run import Run

    from .options import Options

NO_PROJECT = "No project found in this folder"
ENDED_EARLY = ("limit", "stopped", "failed", "restart")
WORST_FIRST = (EXIT["failed"], EXIT["limit"], EXIT["restart"], WAITING, 0)


async def resume_all(options: "Options") -> int:
    """Resume all runs that have work to do. Returns the worst exit code."""
    from ripstop.engine.ports import ALL
    from ripstop.history import shown_status
    from ripstop.text.visible_text import count

    from .screen import ProgressLines
    from .trust import check_or_ask
    from .words import command_for

    interrupted = stop_requested()
    keep_working_without_readers()
    settings = options.settings()
    again = f"{command_for(settings.store)} resume --all"
    async with options.app(settings, create=False, scope=None) as app:
        app.check_roles()
        app.attach(Path.cwd())
        unfinished = await _resumable_here(app, await _unfinished(app))
        for run_id in unfinished:
            await check_or_ask(options, app, run_id)
            app.check_usable((await app.engine.look(run_id)).run, options.model or "", options.base_url or "")
        if options.model or options.base_url:
            for run_id in unfinished:
                await app.use_model(run_id, options.model or "", options.base_url or "")
        resume_with(again)
        stop = app.live.watch(ProgressLines().see)
        if not options.as_json:
            say(f"{count(len(unfinished), 'interrupted run')} to resume.", err=True)
        try:
            async with app.working(ALL) as worker:
                views = await _settled(app, worker, unfinished, interrupted)
        finally:
            stop()
        if interrupted.done():
            with undisturbed():
                say(interruption(again), err=True)
        results = [await summary(app.engine, view) for view in views]
        for result in results:
            result["outcome"] = shown_status(result["outcome"], has_workers=False)  # nothing here works on it any more
        if options.as_json:
            say_json({"runs": results})
    if not options.as_json:
        for result in results:
            because = f"  {result['because']}" if result["because"] else ""
            say((result["run"], "bold"), f"  {result['outcome']}{because}")
    if interrupted.done():
        return 128 + interrupted.result()
    codes = {exit_code(view.status) for view in views}
    return next((code for code in WORST_FIRST if code in codes), 0)


def can_be_resumed(app: "App", run: "Run[Any]") -> bool:
    """Whether a run that has ended can be resumed."""
    return run.verdict is not None or app.engine.style(run).resumable(run.state)


async def work_here(app: "App") -> str:
    """The run of the project in this folder; where there is none, the latest that can be resumed."""
    projects = app.plugins.project_in(Path.cwd())
    if projects is None:
        return await latest_unfinished(app)
    found = await projects.resume(app, Path.cwd())
    for note in found.notes:
        say(note, err=True)
    run = (await app.engine.look(found.run_id)).run
    if run.ended and run.verdict:
        _check_limit(app, run)
    return found.run_id


async def latest_unfinished(app: "App") -> str:
    """Work that was interrupted goes before what waits for a person, and that before what has ended and can be resumed.

    A run that only listens is not interrupted. Raises `UsageError` if there is none, or if it reached a limit.
    """
    from ripstop.engine.ports import RunQuery
    from ripstop.kernel.errors import UsageError

    from .log import all_runs

    tops = await all_runs(app.engine, RunQuery(statuses=("working", "waiting"), parent=""))
    if tops:
        left = await app.engine.left_waiting()
        return max(tops, key=lambda info: (info.status == "working" or info.run_id in left, info.updated)).run_id
    ended = await all_runs(app.engine, RunQuery(statuses=ENDED_EARLY, parent=""))
    known = [info for info in ended if info.style in app.engine.registry.kits]
    for info in sorted(known, key=lambda info: info.updated, reverse=True):
        run = (await app.engine.look(info.run_id)).run
        if can_be_resumed(app, run):
            _check_limit(app, run)
            return run.id
    raise UsageError(f"{NO_PROJECT}. Nothing is unfinished in this journal. `ripstop runs` lists what is there.")


def _check_limit(app: "App", run: "Run[Any]") -> None:
    """Raise `UsageError`, with the command that continues it, if a run has reached a limit."""
    from ripstop.history import way
    from ripstop.kernel.errors import UsageError
    from ripstop.kernel.resuming import limit_of, ways_on

    from .words import command_for

    limit = limit_of(run.verdict) if run.verdict else ""
    if run.verdict and limit:
        command = way_command(run.id, way(ways_on(run.verdict)[0]))
        command = command.replace("ripstop", command_for(app.settings.store), 1)
        raise UsageError(f"{run.id} has reached its limit of {limit}. Raise it to continue:\n{command}")


def tell_missing_tools(app: "App", run: "Run[Any]") -> None:
    """Say which tools of a run's agents this process does not have."""
    tell_missing(app, app.missing_tools(run))


def tell_missing(app: "App", tools: "Iterable[str]") -> None:
    """Say why tools are missing, or how to bring them."""
    reasons = {tool: app.why_missing(tool) for tool in tools}
    for reason in dict.fromkeys(filter(None, reasons.values())):
        say(reason, err=True)
    missing = [tool for tool, reason in reasons.items() if not reason]
    if missing:
        names = ", ".join(map(repr, missing))
        which = "the tool" if len(missing) == 1 else "the tools"
        say(
            f"This process does not have {which} {names}: calls wait for one that has. Bring them with "
            "--tools MODULE, or from a program.",
            err=True,
        )


async def _resumable_here(app: "App", run_ids: list[str]) -> list[str]:
    """The runs that do not wait for a tool which this process does not have; the others are named."""
    from ripstop.kernel.errors import UsageError

    found = []
    for run_id in run_ids:
        run = (await app.engine.look(run_id)).run
        try:
            app.check_tools(run)
        except UsageError as error:
            say(str(error), err=True)
        else:
            found.append(run_id)
    return found


async def _unfinished(app: "App") -> list[str]:
    """The runs with work to do; children are resumed with the run that started them."""
    from ripstop.engine.ports import RunQuery

    from .log import all_runs

    journal = app.engine.journal
    due = await all_runs(app.engine, RunQuery(statuses=("working",)))
    due += [info for name in await journal.left_waiting(app.engine.clock()) if (info := await journal.run(name))]
    return list(dict.fromkeys(info.root for info in sorted(due, key=lambda info: (info.created, info.run_id))))


async def _settled(
    app: "App", worker: "Worker", run_ids: list[str], interrupted: "asyncio.Future[int]"
) -> "list[View]":
    """Work on the runs until all of them are settled, or until a signal."""
    from ripstop.engine.following import until_settled

    if not run_ids:
        return []
    following = asyncio.gather(*(until_settled(app.engine, worker, run_id) for run_id in run_ids))
    waited: list[asyncio.Future[Any]] = [following, interrupted]
    await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
    if following.done():
        return following.result()
    following.cancel()
    say(STOPPING, err=True)
    await worker.stop(GRACE)
    with suppress(asyncio.CancelledError):  # a gathering whose result is not taken complains when it is deleted
        await following
    return [await app.engine.look(run_id) for run_id in run_ids]


# `act`, `cancel` and `fork`: the commands with which people steer.


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
    from ripstop.app.application import App
    from ripstop.engine.following import until_settled
    from ripstop.engine.ports import Tree

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
    from ripstop.app.application import App
    from ripstop.engine.following import until_settled
    from ripstop.engine.ports import Tree

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
    from ripstop.app.fork import fork_run
    from ripstop.app.plugins import installed
    from ripstop.app.stores import open_engine
    from ripstop.definitions.loading import find
    from ripstop.definitions.reader import Environment
    from ripstop.history.timeline import forked_at

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
