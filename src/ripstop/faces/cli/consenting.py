"""Asking for what a journal wants and its user has not allowed yet."""

from pathlib import Path
from typing import TYPE_CHECKING

from .terminal import can_ask, confirm, say

if TYPE_CHECKING:
    from ripstop.app import App

    from .options import Options


async def check_or_ask(options: "Options", app: "App", run_id: str) -> None:
    """Raise unless a run can be worked on here. On a terminal, ask the user about a folder that the journal names."""
    from ripstop.kernel.errors import UntrustedFolder

    while True:
        try:
            return await app.check_resumable(run_id)
        except UntrustedFolder as error:
            if options.as_json or not can_ask():
                raise
            run = (await app.engine.look(run_id)).run
            agents = app.engine.style(run).agents(app.engine.definition(run))
            say(f"This journal may come from somebody else. The run {run_id} would use", err=True)
            say(f"  files in  {error.folder}", err=True)
            say(f"  model     {run.settings.model}  {run.settings.base_url}", err=True)
            for agent in agents:
                say(f"  agent     {agent.name}: {', '.join(agent.tools) or 'no tools'}", err=True)
            if not confirm("Let it use these files?"):
                raise
            app.folders.remember(Path(str(error.folder)))
