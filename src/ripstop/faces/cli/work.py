"""`work`, `backup` and `forget`: a worker as a service, and care of the journal."""

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ripstop.text.plurals import count

from .options import Options, allow_option, shared_options
from .signals import STOPPING, stop_requested
from .terminal import keep_working_without_readers, say, say_json
from .trust import with_consent
from .words import first_line

if TYPE_CHECKING:
    from ripstop.app.application import App
    from ripstop.app.settings.settings_file import Settings
    from ripstop.engine.live import LiveEvent
    from ripstop.engine.worker import Worker
    from ripstop.kernel.run import Run


# A worker on a whole journal, for the commands that run as a service.


@asynccontextmanager
async def working_on_everything(options: Options, settings: "Settings") -> "AsyncIterator[tuple[App, Worker]]":
    """Work on every run of the journal, apart from those that would use what the user has not allowed."""
    async with options.app(settings, scope=None) as app, app.serving(partial(_admit, app)) as worker:
        yield app, worker


async def _admit(app: "App", run: "Run[Any]") -> None:
    """Raise `UsageError`, with the command that gives the consent, for what its user has not allowed yet."""
    from ripstop.kernel.errors import UsageError

    from .errors import error_report

    try:
        await app.admit(run)
    except UsageError as error:
        raise UsageError(error_report(error).error) from error


DRAIN = 30.0
"""Seconds that calls under way get to finish when a service is stopped, unless it is told otherwise."""


def drain_option(command: Any) -> Any:
    """Add `--drain`, for a command that runs as a service."""
    return click.option(
        "--drain",
        type=click.FloatRange(0, 86_400),
        default=DRAIN,
        show_default=True,
        metavar="SECONDS",
        help="When stopped, let calls under way finish for so long, and begin none.",
    )(command)


def say_stopping(worker: "Worker | None", drain: float) -> None:
    """Say that the command stops, and what it still waits for."""
    waits = worker is not None and worker.busy and drain > 0
    more = f" Calls under way get {drain:g} s to finish; a second signal ends at once." if waits else ""
    say(f"{STOPPING}{more}", err=True)


def say_troubles(event: "LiveEvent") -> None:
    """Say that a run has ended otherwise than completed, or is paused."""
    from ripstop.engine.live import Appended
    from ripstop.kernel.events import CallRefused, Ended

    for record in event.records if isinstance(event, Appended) else ():
        ended = record.event
        if isinstance(ended, Ended) and ended.outcome != "completed":
            say((event.run_id, "bold"), f"  {ended.outcome}: {first_line(ended.because, MAX_REASON)}", err=True)
        elif isinstance(ended, CallRefused) and ended.pauses:
            say((event.run_id, "bold"), f"  paused: {first_line(ended.reason, MAX_REASON)}", err=True)


MAX_REASON = 300
AGE = re.compile(r"(\d+)([smhdw])")
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
POLL_INTERVAL = 1.0
"""Seconds between two looks at whether the worker has given up, or (with --until-idle) has nothing left to do."""


@click.command(short_help="Work on every run of the journal, until stopped.")
@click.option("--until-idle", is_flag=True, help="Stop when there is nothing to do now; do not wait for timers.")
@drain_option
@allow_option
@shared_options
@click.pass_obj
def work(options: Options, until_idle: bool, drain: float) -> None:
    """Work on a whole journal: every run and every timer, until Ctrl-C or SIGTERM. Several of these can run at once.

    A run that cannot be read, whose style is not installed, or that would use a folder or an address which you have not
    allowed, is set aside with a warning that says what to do (`ripstop runs`); the others continue. Commands that need
    a tool which this process does not have are left to one that does (`--tools`). The webhooks of the settings
    are told what happens. Runs that fail or are paused are named; `-v` shows what the worker does.

    The first signal lets calls under way finish (--drain), so that stopping a worker leaves no call in doubt; a second
    one ends the process at once.

    \b
    Examples:
      ripstop work
      ripstop --tools shop.tools work
    """
    sys.exit(with_consent(options, lambda: asyncio.run(_work(options, until_idle, drain))))


async def _work(options: Options, until_idle: bool, drain: float) -> int:
    interrupted = stop_requested()
    keep_working_without_readers()
    settings = options.settings()
    async with working_on_everything(options, settings) as (app, worker), app.webhooks() as webhooks:
        app.live.watch(say_troubles)
        if not options.as_json:
            say(f"Working on {settings.store}. Ctrl-C stops; nothing is lost.", err=True)
        while not interrupted.done() and not (worker.failure or webhooks.failure):
            await asyncio.wait([interrupted], timeout=POLL_INTERVAL)
            if until_idle and not (worker.busy or webhooks.busy) and await _nothing_due(app, worker):
                break
        if failure := worker.failure or webhooks.failure:
            raise failure
        if interrupted.done():
            say_stopping(worker, drain)
        await worker.stop(drain)  # what is shown is how it is without this worker
        counts = await _shown_counts(app)
        if options.as_json:
            say_json({"counts": counts})
        else:
            say(", ".join(f"{number} {status}" for status, number in sorted(counts.items())) or "No runs.")
    return 128 + interrupted.result() if interrupted.done() else 0


async def _shown_counts(app: "App") -> dict[str, int]:
    """How many runs there are of each status, as `ripstop runs` shows it."""
    from ripstop.history.runs import shown_status

    has_workers = await app.engine.has_workers()
    return {shown_status(status, has_workers): n for status, n in (await app.engine.journal.counts()).items()}


async def _nothing_due(app: "App", worker: "Worker") -> bool:
    due = await worker.next_due()
    return due is None or due > app.engine.clock()


@click.command(short_help="Copy the journal while others work on it.")
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@shared_options
@click.pass_obj
def backup(options: Options, path: Path) -> None:
    """Copy the journal as it is at one moment, while others work on it. FILE must not exist yet.

    \b
    Example:
      ripstop backup journal-2026-11-16.db
    """
    from ripstop.app.stores import open_engine

    async def copy() -> int:
        async with open_engine(options.settings()) as engine:
            await engine.journal.backup(path, engine.clock())
            return sum((await engine.journal.counts()).values())

    runs = asyncio.run(copy())
    if options.as_json:
        return say_json({"file": str(path), "runs": runs})
    return say(f"{path} holds {count(runs, 'run')}. Check it:  ripstop --store sqlite:{path} verify")


@click.command(short_help="Remove runs that have ended.")
@click.argument("run_id", metavar="[RUN]", required=False)
@click.option("--older", metavar="AGE", help="All runs that ended longer ago than this: 30d, 12h, 2w.")
@click.option("--dry-run", is_flag=True, help="Only list what would be removed.")
@shared_options
@click.pass_obj
def forget(options: Options, run_id: str | None, older: str | None, dry_run: bool) -> None:
    """Remove runs that have ended, with all their children. A tombstone stays, so that `verify` finds nothing missing.

    A run stays if a fork shares its records, if another run waits for it, or if a message of it is still to be
    delivered. Files in workspaces are not touched.

    \b
    Examples:
      ripstop forget haiku-k3f9x
      ripstop forget --older 30d
    """
    from ripstop.app.stores import open_engine
    from ripstop.kernel.errors import UsageError

    if bool(run_id) == bool(older):
        raise click.UsageError("Name one RUN, or say --older AGE.")
    age = _age(older) if older else 0

    async def remove() -> tuple[list[str], dict[str, str]]:
        async with open_engine(options.settings(), to_act=not dry_run) as engine:
            families = await _families(engine, run_id, age)
            gone: list[str] = []
            kept: dict[str, str] = {}
            for family in families:
                try:
                    await engine.journal.forget(family, engine.clock(), dry_run)
                    gone += family
                except UsageError as error:
                    if run_id:
                        raise
                    kept[family[0]] = str(error)
            return gone, kept

    gone, kept = asyncio.run(remove())
    if options.as_json:
        return say_json({"forgotten": gone, "kept": kept, "dry_run": dry_run})
    for name, reason in kept.items():
        say(f"{name} stays: {reason}", err=True)
    for name in gone if dry_run else ():
        say(name)
    return say(f"{'Would forget' if dry_run else 'Forgot'} {count(len(gone), 'run')}.")


def _age(text: str) -> int:
    """Microseconds."""
    match = AGE.fullmatch(text.strip())
    if match is None:
        raise click.UsageError(f"--older {text!r} is not an age. Write a number and a unit: 30d, 12h, 90m, 2w.")
    return int(match[1]) * SECONDS[match[2]] * 1_000_000


async def _families(engine: Any, run_id: str | None, age: int) -> list[list[str]]:
    """The runs to remove, each with its descendants behind it."""
    from ripstop.app.resume import all_runs
    from ripstop.engine.ports import RunQuery
    from ripstop.kernel.events import OUTCOMES

    if run_id:
        if await engine.journal.run(run_id) is None:
            raise await engine.not_found(run_id)
        return [[run_id, *(info.run_id for info in await engine.descendants(run_id))]]
    before = engine.clock() - age
    ended = await all_runs(engine, RunQuery(statuses=OUTCOMES, parent=""))
    tops = [info.run_id for info in ended if info.updated < before]
    return [[top, *(info.run_id for info in await engine.descendants(top))] for top in tops]
