"""Opens an `App` on the demonstration's journal.

- Its tools, and a style of its own, are brought along; other plug-ins of the user are not in this world.
- Consents are kept in the world's own folder: looking at a demonstration changes nothing among the user's.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

from ripstop.app import App
from ripstop.files.private_files import OURS
from ripstop.plugins import BUILT_IN, Plugins
from ripstop.runtime.ports import ALL
from ripstop.runtime.process_clock import ProcessClock
from ripstop.security.consent import Consents
from ripstop.security.trusted_folders import TrustedFolders

from .demo_world import DemoWorld
from .import_style import IMPORTS
from .tools import TOOLS

CONSENTS = "consents"


@asynccontextmanager
async def open_app(
    world: DemoWorld, clock: ProcessClock | None = None, works: bool = True, consents: Path | None = None
) -> AsyncIterator[App]:
    """Open the app, with a worker on every run unless `works` is false.

    `consents`: where they are kept, if not in the world's own folder.
    """
    app = App(world.settings, tools=TOOLS, plugins=_plugins(), scope=None, clock=clock)
    async with app:
        kept = Consents(consents or world.folder / OURS / CONSENTS)
        app.folders = TrustedFolders(world.journal, world.folder, kept)
        app.attach(world.folder)
        if not works:
            yield app
            return
        async with app.working(ALL, admit=app.check_allowed):
            yield app


@cache
def _plugins() -> Plugins:
    """The same for all scenes: putting it together for each would take longer than most scenes."""
    return Plugins((*BUILT_IN, IMPORTS))
