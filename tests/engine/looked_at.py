"""A journal with runs of every style and every kind of record, for tests of what is looked at."""

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ripstop.app.plugins import BUILT_IN, Plugins
from ripstop.engine.engine import Engine
from ripstop.engine.ports import RunQuery
from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.kernel.effects import Answer
from ripstop.kernel.events import Answered
from ripstop.kernel.registry import Registry
from ripstop.kernel.run import Run
from ripstop.testing import ERRANDS, Errands, FakeClock
from tests.old_journals.make import Story
from tests.toy_style import PLUGIN

PLUGINS = Plugins([*BUILT_IN, PLUGIN])
PLUGINS.__dict__["kits"] = (*PLUGINS.kits, ERRANDS)
PLUGINS.__dict__["registry"] = Registry(PLUGINS.kits)


def in_a_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run a test that is a coroutine."""

    @functools.wraps(test)
    def run(**fixtures: Any) -> None:
        async def story() -> None:
            await test(**fixtures)

        asyncio.run(story())

    return run


class TickingClock(FakeClock):
    """A second passes whenever it is read."""

    def __call__(self) -> int:
        self.pass_by(1)
        return super().__call__()


@asynccontextmanager
async def an_engine(folder: Path, registry: Registry = PLUGINS.registry) -> AsyncIterator[Engine]:
    journal = SqliteJournal(folder / "journal.db", registry.codec)
    try:
        yield Engine(journal, registry, TickingClock())
    finally:
        await journal.close()


async def every_run(engine: Engine) -> list[str]:
    """Make runs of all kinds; returns their ids."""
    story = Story(engine)
    await story.errands()
    await story.warned()
    await story.samples(PLUGINS)
    return [info.run_id for info in (await engine.runs(RunQuery(size=1000))).items]


async def errands(engine: Engine, run_id: str, *rounds: tuple[Any, ...], **more: Any) -> Run[Any]:
    return await engine.start(run_id, "errands", Errands(rounds=rounds).content(), **more)


async def answer(engine: Engine, run_id: str, given: Answer, to: int | None = None, **more: Any) -> Run[Any]:
    """Answer a command of a run, the oldest open one if none is named."""
    run = (await engine.look(run_id)).run
    run, _ = await engine.tell(run_id, Answered(to=min(run.open) if to is None else to, answer=given, **more))
    return run
