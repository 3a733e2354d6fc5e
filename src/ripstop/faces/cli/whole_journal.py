"""A worker on a whole journal, for the commands that run as a service."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .options import Options

if TYPE_CHECKING:
    from ripstop.app import App
    from ripstop.kernel.run import Run
    from ripstop.runtime.worker import Worker
    from ripstop.settings.settings_file import Settings


@asynccontextmanager
async def working_on_everything(options: Options, settings: "Settings") -> "AsyncIterator[tuple[App, Worker]]":
    """Work on every run of the journal, apart from those that would use what the user has not allowed."""
    from ripstop.runtime.ports import ALL

    async with options.app(settings, scope=None) as app:
        app.check_roles()
        app.attach(Path.cwd())
        await _readmit(app)
        admit = partial(_check_allowed, app)
        async with app.working(ALL, admit, patient=True) as worker:
            yield app, worker


async def _readmit(app: "App") -> None:
    """Try once more what was set aside: this process may know what another did not."""
    from ripstop.runtime.ports import RunQuery

    from .pages import all_runs

    for info in await all_runs(app.engine, RunQuery(statuses=("set_aside",))):
        await app.engine.journal.set_aside(info.run_id, "")


async def _check_allowed(app: "App", run: "Run[Any]") -> None:
    """Raise `UsageError`, with the command that gives the consent, for what its user has not allowed yet."""
    from ripstop.kernel.errors import UsageError

    from .complaints import complaint_about

    try:
        await app.check_allowed(run)
    except UsageError as error:
        raise UsageError(complaint_about(error).error) from error
