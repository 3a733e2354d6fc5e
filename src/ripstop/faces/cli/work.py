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

from ripstop.text.visible_text import count

from .options import Options, allow_option, shared_options
from .signals import STOPPING, stop_requested
from .terminal import keep_working_without_readers, say, say_json
from .trust import with_consent
from .words import GRACE

if TYPE_CHECKING:
    from ripstop.app.application import App
    from ripstop.app.settings.settings_file import Settings
    from ripstop.engine.worker import Worker
    from ripstop.kernel.run import Run

if TYPE_CHECKING:
    from ripstop.app.application import App
    from ripstop.engine.worker import Worker


# A worker on a whole journal, for the commands that run as a service.


@asynccontextmanager
async def working_on_everything(options: Options, settings: "Settings") -> "AsyncIterator[tuple[App, Worker]]":
    """Work on every run of the journal, apart from those that would use what the user has not allowed."""
    from ripstop.engine.ports import ALL

    async with options.app(settings, scope=None) as app:
        app.check_roles()
        app.attach(Path.cwd())
        await _readmit(app)
        admit = partial(_check_allowed, app)
        async with app.working(ALL, admit, patient=True) as worker:
            yield app, worker


async def _readmit(app: "App") -> None:
    """Try once more what was set aside: this process may know what another did not."""
    from ripstop.engine.ports import RunQuery

    from .log import all_runs

    for info in await all_runs(app.engine, RunQuery(statuses=("set_aside",))):
        await app.engine.journal.set_aside(info.run_id, "")


async def _check_allowed(app: "App", run: "Run[Any]") -> None:
    """Raise `UsageError`, with the command that gives the consent, for what its user has not allowed yet."""
    from ripstop.kernel.errors import UsageError

    from .errors import complaint_about

    try:
        await app.check_allowed(run)
    except UsageError as error:
        raise UsageError(complaint_about(error).error) from error


AGE = re.compile(r"(\d+)([smhdw])")
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
LOOK = 1.0
"""Seconds between two looks at whether the worker has given up, or (with --until-idle) has nothing left to do."""


@click.command(short_help="Work on every run of the journal, until stopped.")
@click.option("--until-idle", is_flag=True, help="Stop when there is nothing to do now; do not wait for timers.")
@allow_option
@shared_options
@click.pass_obj
def work(options: Options, until_idle: bool) -> None:
    """Work on a whole journal: every run and every timer, until Ctrl-C or SIGTERM. Several of these can run at once.

    A run that cannot be read, whose style is not installed, or that would use a folder or an address which you have not
    allowed, is set aside with a warning that says what to do (`ripstop runs`); the others continue. Commands that need
    a tool which this process does not have are left to one that does (`--tools`). The webhooks of the settings
    are told what happens.

    \b
    Examples:
      ripstop work
      ripstop --tools shop.tools work
    """
    sys.exit(with_consent(options, lambda: asyncio.run(_work(options, until_idle))))


async def _work(options: Options, until_idle: bool) -> int:
    interrupted = stop_requested()
    keep_working_without_readers()
    settings = options.settings()
    async with working_on_everything(options, settings) as (app, worker), app.webhooks() as webhooks:
        if not options.as_json:
            say(f"Working on {settings.store}. Ctrl-C stops; nothing is lost.", err=True)
        while not interrupted.done() and not (worker.failure or webhooks.failure):
            await asyncio.wait([interrupted], timeout=LOOK)
            if until_idle and not (worker.busy or webhooks.busy) and await _nothing_due(app, worker):
                break
        if failure := worker.failure or webhooks.failure:
            raise failure
        if interrupted.done():
            say(STOPPING, err=True)
        await worker.stop(GRACE)  # what is shown is how it is without this worker
        counts = await _shown_counts(app)
        if options.as_json:
            say_json({"counts": counts})
        else:
            say(", ".join(f"{number} {status}" for status, number in sorted(counts.items())) or "No runs.")
    return 128 + interrupted.result() if interrupted.done() else 0


async def _shown_counts(app: "App") -> dict[str, int]:
    """How many runs there are of each status, as `ripstop runs` shows it."""
    from ripstop.history import shown_status

    has_workers = await app.engine.has_workers()
    return {shown_status(status, has_workers): n for status, n in (await app.engine.journal.counts()).items()}


async def _nothing_due(app: "App", worker: "Worker") -> bool:
    due = await app.engine.journal.next_due(offers=worker.offers)
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
            await engine.journal.backup(path)
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
        async with open_engine(options.settings()) as engine:
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
    from ripstop.engine.ports import RunQuery
    from ripstop.kernel.events import OUTCOMES

    from .log import all_runs

    if run_id:
        if await engine.journal.run(run_id) is None:
            raise await engine.not_found(run_id)
        return [[run_id, *(info.run_id for info in await engine.descendants(run_id))]]
    before = engine.clock() - age
    ended = await all_runs(engine, RunQuery(statuses=OUTCOMES, parent=""))
    tops = [info.run_id for info in ended if info.updated < before]
    return [[top, *(info.run_id for info in await engine.descendants(top))] for top in tops]
