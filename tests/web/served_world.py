"""`ripstop web` as a test wants it: the real command, server, door and worker, with styles and tools of tests.

    python -m tests.web.served_world --json web --port 0 …

`RIPSTOP_TEST_WORLD` says what is served: the journal in the current folder, with a worker (`worked`) or without one
(`idle`); or the demonstration (`demo`), kept in a folder of this one, so that it is still there after a kill.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ripstop.__main__ import main
from ripstop.app.application import App
from ripstop.app.plugins import Plugins
from ripstop.app.settings.settings_file import Models, Settings
from ripstop.engine.ports import ALL
from ripstop.faces import serve_web as web
from ripstop.faces.demo import demo_app
from ripstop.tools.toolbox import tool
from tests.faces.web.desk_browser import PLUGINS

KIND = "RIPSTOP_TEST_WORLD"
WORKED, IDLE, DEMO = "worked", "idle", "demo"
SCRIPT = "script.jsonl"
"""What agents say, in the folder of the journal."""
DEPLOYED = "deployed"
"""The file with a line for every time that `deploy` was called."""

HOLD = "hold"
"""The file for as long as which `reply` takes its time."""


@tool("unsafe")
def deploy(release: int = 0) -> str:
    """Put a release into service."""
    with Path(DEPLOYED).open("a", encoding="utf-8") as file:
        file.write(f"{release}\n")
    return f"release {release} is in service"


@tool("pure")
async def reply() -> str:
    """Answer the user of a bot."""
    while Path(HOLD).exists():
        await asyncio.sleep(0.05)
    return "hello"


TOOLS = (deploy, reply)


def settings_of(folder: Path) -> Settings:
    return Settings(store=f"sqlite:{folder / 'journal.db'}", models=Models(f"script:{folder / SCRIPT}"))


@asynccontextmanager
async def opened(options: Any, wanted: Any) -> AsyncIterator[Any]:
    """Takes the place of what the command opens."""
    folder, kind = Path.cwd(), os.environ[KIND]
    if kind == DEMO:
        async with demo_app(folder / DEMO) as (app, world):
            os.chdir(world.folder)
            yield web._Opened(app, app.worker)
        return
    async with App(settings_of(folder), tools=TOOLS, plugins=Plugins(PLUGINS), scope=None) as app:
        if kind == IDLE:
            yield web._Opened(app, None)
            return
        app.attach(folder)
        async with app.working(ALL) as worker:
            yield web._Opened(app, worker)


if __name__ == "__main__":
    setattr(web, "_opened", opened)  # noqa: B010
    main()
