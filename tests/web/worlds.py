"""Worlds of one test: a journal in a folder, written by the test itself, and the server that shows it.

The journal is written and read in the process of the test, with an engine of its own and no worker, also while the
server works on it: processes share a journal.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ripstop.app.application import App
from ripstop.app.plugins import Plugins
from ripstop.app.run_sync import in_loop
from ripstop.styles.pipeline.project_runs import ProjectFlow
from tests.faces.web.desk_browser import PLUGINS, Desk
from tests.web import served_world
from tests.web.desk_server import DeskServer

T = TypeVar("T")
ROOT = Path(__file__).parents[2]
WORKED, IDLE, DEMO = served_world.WORKED, served_world.IDLE, served_world.DEMO


class World:
    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()

    def tell(self, story: Callable[[Desk], Awaitable[T]]) -> T:
        """Do something with the journal, in this process and without a worker."""

        async def main() -> T:
            settings = served_world.settings_of(self.folder)
            async with App(settings, plugins=Plugins(PLUGINS), scope=None) as app:
                return await story(Desk(app))

        return in_loop(main)

    def work(self, story: Callable[[App], Awaitable[T]]) -> T:
        """Do something with the journal, with a worker in this process."""

        async def main() -> T:
            settings = served_world.settings_of(self.folder)
            async with App(settings, tools=served_world.TOOLS, plugins=Plugins(PLUGINS)) as app:
                return await story(app)

        return in_loop(main)

    def script(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """What the agents of all runs say."""
        text = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
        (self.folder / served_world.SCRIPT).write_bytes(text)

    def answers(self, run: str) -> list[Any]:
        """What people have answered in a run."""
        return self.tell(lambda desk: desk.answers(run))

    def events(self, run: str, *kinds: type) -> list[Any]:
        """The events of a run, or those of some kinds."""

        async def read(desk: Desk) -> list[Any]:
            return [record.event for record in await desk.engine.journal.read(run)]

        return [event for event in self.tell(read) if not kinds or isinstance(event, kinds)]

    @property
    def deployed(self) -> int:
        """How often `deploy` was called."""
        file = self.folder / served_world.DEPLOYED
        return len(file.read_text(encoding="utf-8").splitlines()) if file.exists() else 0

    def serve(
        self, *arguments: str, kind: str = WORKED, by: str = "ann", port: int = 0, failpoint: str = ""
    ) -> DeskServer:
        """Start the server. `failpoint`: where it is killed."""
        around = {served_world.KIND: kind, "PYTHONPATH": str(ROOT), "RIPSTOP_FAILPOINT": failpoint}
        given = ("--as", by, *arguments)
        return DeskServer(self.folder, *given, port=port, environment=around, module="tests.web.served_world")

    @contextmanager
    def served(self, *arguments: str, **options: Any) -> Iterator[DeskServer]:
        """The server, for as long as this is open."""
        server = self.serve(*arguments, **options)
        try:
            yield server
        finally:
            server.stop()


async def start_project(app: App, run_id: str, folder: Path, script: Path, idea: str = "a to-do list") -> None:
    """Start a delivery project, and wait until a person is asked."""
    flow = ProjectFlow(app.plugins).workflow
    folder.mkdir(parents=True)
    given = app.plugins.registry.kits[flow.style].style.arguments_from(
        app.plugins.registry.load(flow.style, flow.content), {"mode": "new"}
    )
    await app.launch(flow, run_id, idea, given, workspace=folder, model=f"script:{script}")
    await app.wait(run_id)
