"""`act`, `cancel`, `fork`, `retry`, and what `resume` finds to do: the latest run, or every interrupted one.

What is checked before a run continues is `App`'s.
"""

import asyncio
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ripstop.faces.next_steps import in_commands

from .options import FolderPath, Options, pairs, shared_options, user_name, without_tools
from .signals import STOPPING, interruption, resume_with, stop_requested, undisturbed
from .terminal import keep_working_without_readers, say, say_json
from .words import EXIT, GRACE, WAITING, command_for, exit_code, seen_status, summary, way_command

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from ripstop.app.application import App
    from ripstop.engine.engine import View
    from ripstop.engine.worker import Worker
    from ripstop.kernel.run import Run

    from .options import Options

NO_PROJECT = "No project found in this folder"
ENDED_EARLY = ("limit", "stopped", "failed", "restart")
HELD = (
    " Runs of a restored journal wait until you have said what became of them:  "
    "ripstop answer --all restored happened|ask|continue|end"
)
REFUSED = 2
"""Exit code where a run that was named, or one of many, could not be retried."""
WORST_FIRST = (EXIT["failed"], EXIT["limit"], EXIT["restart"], WAITING, 0)


async def resume_all(options: "Options") -> int:
    """Resume all runs that have work to do. Returns the worst exit code."""
    from ripstop.text.plurals import count

    from .trust import with_folders

    settings = options.settings()
    async with options.app(settings, create=False, scope=None) as app:
        resume = partial(app.resume_all, model=options.model or "", base_url=options.base_url or "")
        again = f"{command_for(settings.store)} resume --all"
        resume_with(again)
        resumed = await with_folders(options, app, resume)
        for note in resumed.notes:
            say(in_commands(note), err=True)
        if not options.as_json:
            say(f"{count(len(resumed.runs), 'interrupted run')} to resume.", err=True)
        return await _work_on(options, app, [run.id for run in resumed.runs], again)


async def _work_on(options: "Options", app: "App", run_ids: list[str], again: str) -> int:
    """Work on runs until all of them are settled, and say how each of them is. Returns the worst exit code.

    Args:
        again: The command with which this is continued, if a signal interrupts it.
    """
    from ripstop.engine.ports import ALL
    from ripstop.history.runs import shown_status

    from .screen import ProgressLines

    interrupted = stop_requested()
    keep_working_without_readers()
    resume_with(again)
    stop = app.live.watch(ProgressLines().see)
    try:
        async with app.working(ALL, app.admit) as worker:
            views = await _settled(app, worker, run_ids, interrupted)
    finally:
        stop()
    if interrupted.done():
        with undisturbed():
            say(interruption(again), err=True)
    results = [with_needs(await summary(app.engine, view), view) for view in views]
    for result in results:
        result["outcome"] = shown_status(result["outcome"], has_workers=False)  # nothing here works on it any more
    if options.as_json:
        say_json({"runs": results})
    else:
        for result in results:
            because = f"  {result['because']}" if result["because"] else ""
            say((result["run"], "bold"), f"  {result['outcome']}{because}")
        for view in views:
            tell_needs(view)
    if interrupted.done():
        return 128 + interrupted.result()
    codes = {exit_code(view.status) for view in views}
    return next((code for code in WORST_FIRST if code in codes), 0)


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
    from ripstop.app.resume import all_runs
    from ripstop.engine.ports import RunQuery
    from ripstop.kernel.errors import UsageError

    tops = await all_runs(app.engine, RunQuery(statuses=("working", "paused", "waiting"), parent=""))
    if tops:
        left = await app.engine.left_waiting()
        return max(tops, key=lambda info: (info.status != "waiting" or info.run_id in left, info.updated)).run_id
    ended = await all_runs(app.engine, RunQuery(statuses=ENDED_EARLY, parent=""))
    known = [info for info in ended if info.style in app.engine.registry.kits]
    for info in sorted(known, key=lambda info: info.updated, reverse=True):
        run = (await app.engine.look(info.run_id)).run
        if app.can_be_resumed(run):
            _check_limit(app, run)
            return run.id
    raise UsageError(f"{NO_PROJECT}. Nothing is unfinished in this journal. `ripstop runs` lists what is there.")


async def latest_at_limit(app: "App") -> str:
    """The run that reached a limit last, whether it ended by that or asks a person. Raises `UsageError`."""
    from ripstop.app.resume import all_runs
    from ripstop.engine.ports import RunQuery
    from ripstop.kernel.errors import UsageError
    from ripstop.kernel.resuming import limit_of

    tops = await all_runs(app.engine, RunQuery(statuses=("limit", "waiting"), parent=""))
    known = [info for info in tops if info.style in app.engine.registry.kits]
    for info in sorted(known, key=lambda info: info.updated, reverse=True):
        run = (await app.engine.look(info.run_id)).run
        if run.verdict and limit_of(run.verdict):
            return run.id
    raise UsageError("No run of this journal has reached a limit. Name the RUN whose limit is raised.")


def _check_limit(app: "App", run: "Run[Any]") -> None:
    """Raise `UsageError`, with the command that continues it, if a run has reached a limit."""
    from ripstop.history.desk import way_as_json
    from ripstop.kernel.errors import UsageError
    from ripstop.kernel.resuming import limit_of, ways_on

    from .words import command_for

    limit = limit_of(run.verdict) if run.verdict else ""
    if run.verdict and limit:
        command = way_command(run.id, way_as_json(ways_on(run.verdict)[0]))
        command = command.replace("ripstop", command_for(app.settings.store), 1)
        raise UsageError(f"{run.id} has reached its limit of {limit}. Raise it to continue:\n{command}")


def tell_missing_tools(app: "App", run: "Run[Any]") -> None:
    """Say which tools of a run's agents this process does not have."""
    tell_missing(app, app.missing_tools(run))


def tell_missing(app: "App", tools: "Iterable[str]") -> None:
    """Say why tools are missing, or how to bring them."""
    for note in app.about_missing(tools):
        say(in_commands(note), err=True)


def with_needs(result: dict[str, Any], view: "View") -> dict[str, Any]:
    """The summary of a run, with what it waits for that no worker here offers."""
    if not view.needs:
        return result
    found = {**result, "needs": list(view.needs)}
    if any(needs.startswith("tool:") for needs in view.needs):
        found["ways_on"] = [f"ripstop resume {view.run.id} --tools MODULE"]
    return found


def tell_needs(view: "View") -> None:
    for needs in view.needs:
        kind, _, name = needs.partition(":")
        say(f"{view.run.id} waits for a worker that has the {kind} {name!r}.", err=True)


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


# The commands with which people steer


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
            run = await app.act(run_id, name, pairs(fields, "--field"), user_name() if by is None else by)
            if await app.is_own_work(run):
                async with app.working(Tree(run_id)) as worker:
                    await until_settled(app.engine, worker, run_id)
            root = await app.engine.root_of(run_id)
            return await seen_status(app.engine, run_id, (await app.engine.look(run_id)).status), root

    status, root = asyncio.run(tell())
    if options.as_json:
        return say_json({"run": run_id, "status": status})
    resume = f"  Resume it:  ripstop resume {root}" if status == "interrupted" else ""
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
            await app.cancel(run_id, by=user_name())
            async with app.working(Tree(run_id)) as worker:
                return await until_settled(app.engine, worker, run_id)  # some have a last word to say

    view = asyncio.run(tell())
    because = view.run.ended.because if view.run.ended else "a person is asked: ripstop desk"
    if options.as_json:
        return say_json({"run": run_id, "outcome": view.status, "because": because})
    say(f"{run_id}: {view.status}, {because}.")


@click.command(short_help="Make the calls again that a model server refused.")
@click.argument("run_ids", metavar="[RUN]…", nargs=-1)
@click.option("--all", "all_", is_flag=True, help="Every run that is paused.")
@click.option(
    "--failed-since",
    type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"]),
    help="Every run that such a call has ended as failed since then (local time); with --all, besides those.",
)
@shared_options
@click.pass_obj
def retry(options: Options, run_ids: tuple[str, ...], all_: bool, failed_since: "datetime | None") -> None:
    """Make the calls of agents again that their model server refused: a run is paused when that has happened too often,
    or when only you can put it right, such as a key or a quota. Workers try again by themselves where that can help.

    A run keeps its name and its records, and nothing that happened is done again. With --model it continues with
    another model. Of several runs, one that cannot be retried is named and left as it is.

    \b
    Example:
      ripstop retry haiku-k3f9x
      ripstop retry --all
      ripstop retry --failed-since 2026-11-18T09:00
    """
    from ripstop.app.resume import all_runs
    from ripstop.app.resume import failed_since as found_since
    from ripstop.engine.ports import RunQuery

    if not run_ids and not all_ and failed_since is None:
        raise click.UsageError("Name a run, or say --all or --failed-since. `ripstop runs --status paused` lists them.")
    settings = options.settings()

    async def work() -> int:
        async with options.app(settings, create=False, scope=None) as app:
            named = list(run_ids)
            if all_:
                named += [info.root for info in await all_runs(app.engine, RunQuery(statuses=("paused",)))]
            if failed_since is not None:
                named += await found_since(app.engine, round(failed_since.timestamp() * 1_000_000))
            named = list(dict.fromkeys(named))
            if not named:
                return await _nothing_to_retry(options, app, failed_since, all_)
            retried = await _retry_each(options, app, named)
            # a family goes on as a whole, whichever of its runs is named
            roots = list(dict.fromkeys([await app.engine.root_of(one) for one in retried]))
            for root in roots:
                tell_missing_tools(app, (await app.look(root)).run)
            code = await _work_on(options, app, roots, f"{command_for(settings.store)} resume --all")
            return code or (0 if len(retried) == len(named) else REFUSED)

    raise SystemExit(asyncio.run(work()))


async def _nothing_to_retry(options: "Options", app: "App", failed_since: "datetime | None", all_: bool) -> int:
    """Say so; it is what a script wants. Raises `UsageError` if runs are held instead."""
    from ripstop.engine.ports import DeskQuery
    from ripstop.kernel.errors import UsageError
    from ripstop.kernel.run import RESTORED

    since = f"{failed_since:%Y-%m-%d %H:%M:%S}" if failed_since else ""
    paused = "Nothing is paused" if all_ else ""
    failed = f"{'no' if all_ else 'No'} run has failed since {since} through a call that was refused" if since else ""
    hint = "" if all_ else " Runs that are paused:  ripstop retry --all"
    said = f"{', and '.join(filter(None, (paused, failed)))}.{hint}"
    if (await app.engine.desk(DeskQuery(purpose=RESTORED, size=1))).items:
        raise UsageError(said + HELD)
    if options.as_json:
        say_json({"runs": []})
    else:
        say(said)
    return 0


async def _retry_each(options: "Options", app: "App", run_ids: list[str]) -> list[str]:
    """Retry runs; of several, one that cannot be is named and left as it is. Returns the others."""
    from ripstop.kernel.errors import JournalError, RipstopError

    from .trust import with_folders

    retried = list[str]()
    for run_id in run_ids:
        again = partial(app.retry, run_id, model=options.model or "", base_url=options.base_url or "", by=user_name())
        try:
            await with_folders(options, app, again)
        except JournalError:
            raise
        except RipstopError as error:
            if len(run_ids) == 1:
                raise
            say(f"{run_id} is not retried: {error}", err=True)
        else:
            retried.append(run_id)
    return retried


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
    from ripstop.app.application import App
    from ripstop.app.plugins import find
    from ripstop.history.timeline import forked_at

    settings = options.settings()
    found = find(definition, goal="kept from the run") if definition else None

    async def tell() -> Any:
        async with App(without_tools(settings), create=False, scope=None) as app:
            run = await app.fork(run_id, at, workflow=found, workspace=workspace, to_resume=True)
            status = await seen_status(app.engine, run.id, (await app.look(run)).status)
            return run, status, await forked_at(app.engine, run.id)

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
