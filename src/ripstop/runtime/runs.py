"""The runs of a journal, folded in memory: everything that happens to one comes through `tell`.

- A run that was used recently stays folded; only what is new is read. What is kept is bounded (`remember`), and parked
  runs live on disk only.
- Appending is optimistic: the loser of a race reads what is new and decides again.
- A refusal is final only if the run was read just now: what is in memory may be older than the journal.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from ripstop.kernel.effects import RunFinished
from ripstop.kernel.errors import Conflict, RunDamaged, RunForgotten, RunNotFound, UnknownStyle, UsageError
from ripstop.kernel.events import Answered, Fact, Heard, Record, Started
from ripstop.kernel.folding import apply, replay
from ripstop.kernel.outbox import plan
from ripstop.kernel.registry import Registry
from ripstop.kernel.run import Contents, Open, Run, status
from ripstop.kernel.step import Step, advance
from ripstop.kernel.style import Picture, Style, StyleKit

from .definitions import CheckDefinition, Definitions, Pins
from .entries import after_append, entry_of
from .failpoints import failpoint
from .jobs import Dispatcher, Job
from .lists import RunLists
from .live import Live
from .ports import Clock, Journal
from .run_cache import CachedRun, RunCache
from .soundness import check_run, reading

MOST_VAIN_CONFLICTS = 10
"""Appends of one fact that fail although there is nothing new to read: the journal does not hold the run any more."""


class View(Struct, frozen=True):
    """A run as it is now."""

    run: Run[Any]
    status: str
    picture: Picture
    needs: tuple[str, ...] = ()
    """What it waits for that no worker here offers: `tool:NAME`. Only known to `until_settled`."""


class Runs(RunLists):
    def __init__(
        self,
        journal: Journal,
        registry: Registry,
        clock: Clock,
        live: Live | None = None,
        remember: int = 1024,
        check_definition: CheckDefinition | None = None,
        follow: Callable[[int], None] | None = None,
    ) -> None:
        """Args:
        follow: Told the time of what another process has written, so that the clock is never behind it.
        """
        self.journal = journal
        self.registry = registry
        self.clock = clock
        self.live = live or Live()
        self.dispatcher: Dispatcher | None = None
        self.reread: Callable[[str], Awaitable[bool]] = _has_no_files
        """Reads the definition of a run again from its files (see `Request.reread`)."""
        self._follow = follow
        self._definitions = Definitions(registry.load, check_definition)
        self._cache = RunCache(remember)
        self._under_way: set[asyncio.Task[Run[Any]]] = set()

    # Moving a run

    async def tell(
        self,
        run_id: str,
        fact: Fact,
        fence: tuple[int, int] | None = None,
        blobs: Mapping[str, bytes] | None = None,
    ) -> tuple[Run[Any], list[Job]]:
        """Record a fact and all it leads to. Returns the run and what this process is to do now.

        Safe to repeat: a fact that changes nothing any more is not recorded. Raises `RunForgotten`, `RunDamaged`, and
        the `UsageError` of a fact that the run does not take.
        """
        cell = self._cache.use(run_id)
        if cell.taken:
            await cell.wait()
        cell.taken = True  # as `async with cell` would, which costs two coroutines more with every step
        try:
            fresh = cell.run is None
            if not cell.checked and type(fact) is not Started:
                await self._check(run_id, cell)
            elif fresh:
                await self._catch_up(run_id, cell)
            if cell.run is None and not isinstance(fact, Started):
                self._cache.drop(run_id)
                raise RunNotFound(run_id)
            style = cell.style or self._style(run_id, Record(1, 0, fact))
            contents = self._definitions.bare
            is_answer = type(fact) is Answered and type(fact.answer) is not RunFinished
            if not is_answer and type(fact) is not Heard:  # nearly every fact names no content
                contents, used = await self._definitions.for_fact(self.journal, fact, style.name)
                blobs = {**used, **(blobs or {})} if used else blobs
            kit = self.registry.kits[style.name]
            vain = 0
            while True:
                before = cell.run
                step = self._advanced(style, contents, before, run_id, fact, fresh)
                if step is not None:
                    changes = plan(before, step.run, step.records)
                    entry, jobs = entry_of(run_id, kit, before, step, changes, self.dispatcher, blobs, fence)
                    failpoint("engine.before_append")
                    try:
                        await self.journal.append(entry)
                    except Conflict:
                        pass
                    else:
                        failpoint("engine.after_append")
                        run = step.run
                        cell.style, cell.run, cell.checked = style, run, True
                        break
                elif fresh:
                    assert before is not None
                    return before, []
                await self._catch_up(run_id, cell)
                fresh, vain = True, self._counted(vain, run_id, is_new=cell.run is not before)
        finally:
            cell.give_back()
        after_append(self.live, self.dispatcher, style, step, changes)
        return run, jobs

    # Looking at runs

    async def is_over(self, run_id: str) -> bool:
        """Whether a run has ended; false if there is no such run."""
        try:
            return (await self.look(run_id)).run.ended is not None
        except RunNotFound:
            return False

    async def look(self, run_id: str) -> View:
        """The run as it is in the journal now. Raises `RunNotFound`, or `RunForgotten`, which is one."""
        cell = self._cache.use(run_id)
        async with cell:
            await self._catch_up(run_id, cell)
            run, style = cell.run, cell.style
        if run is None or style is None:
            self._cache.drop(run_id)
            raise RunNotFound(run_id)
        with reading(run_id):
            return View(run, status(run, style.listens(run.state)), style.picture(run))

    async def not_found(self, run_id: str) -> RunNotFound:
        """The error for a run without records: it was forgotten, or never began."""
        tombstone = await self.journal.tombstone(run_id)
        return RunForgotten(run_id, tombstone.at) if tombstone else RunNotFound(run_id)

    async def check(self, run_id: str) -> None:
        """Raise `RunDamaged` or `DefinitionError` unless this process can act on the run."""
        cell = self._cache.use(run_id)
        async with cell:
            await (self._catch_up if cell.checked else self._check)(run_id, cell)

    async def opened(self, run_id: str, number: int, superseded: bool = False) -> Open | None:
        """A command of a run that is to be performed now, if it is still open. Raises `RunDamaged`.

        Args:
            superseded: It is no longer needed, and its cost is still to be reported.
        """
        cell = self._cache.use(run_id)
        if not cell.checked or cell.run is None or superseded or number not in cell.run.open:
            await self.check(run_id)
        run = cell.run
        if run is None:
            return None
        if superseded and number in run.late:
            return Open(run.late[number], run.state, 0)
        return run.open.get(number)

    async def take_in(self, run_id: str, records: list[Record]) -> None:
        """Fold records that came along with a claimed command, so that they need not be read."""
        cell = self._cache.use(run_id)
        async with cell:
            have = cell.run.length if cell.run else 0
            await self._fold(run_id, cell, [record for record in records if record.number > have])

    def known(self, run_id: str) -> Run[Any] | None:
        """The run as this process knows it, if it does."""
        cell = self._cache.get(run_id)
        return cell.run if cell else None

    async def current(self, run_id: str) -> Run[Any]:
        """The run as this process knows it; read only if it does not, or knows that it has ended.

        Others can have resumed or forgotten it then, and a decision for good must not be made from an old reading.
        """
        run = self.known(run_id)
        return run if run and not run.ended else (await self.look(run_id)).run

    async def history(self, run_id: str) -> list[tuple[Record, Run[Any]]]:
        """Every record of a run with the run as it was right after it."""
        records = await self.journal.read(run_id)
        if not records:
            raise await self.not_found(run_id)
        return list(await self.folded(run_id, records))

    async def folded(
        self, run_id: str, records: Sequence[Record], run: Run[Any] | None = None
    ) -> Iterator[tuple[Record, Run[Any]]]:
        """Records of a run, each with the run as it was right after it, folded one by one as they are asked for.

        Args:
            run: The run right before the first of them; `None`: they begin with its first record.
        """
        style = self.style(run) if run else self._style(run_id, records[0])
        contents = await self._definitions.contents(self.journal, records, style.name)
        return _folded(style, contents, run_id, run, records)

    async def pins(self, run: Run[Any]) -> Pins:
        """The workflows that a run and its descendants can start, by the definition that names them."""
        return await self._definitions.pins(self.journal, run.pinned) if run.pinned else {}

    async def result(self, run_id: str) -> Any:
        """The result that a run ended with, or `None`."""
        ended = (await self.look(run_id)).run.ended
        return msgspec.json.decode(await self.journal.blob(ended.result)) if ended and ended.result else None

    def kit(self, run: Run[Any]) -> StyleKit:
        return self.registry.kits[run.started.style]

    def style(self, run: Run[Any]) -> Style[Any]:
        return self.registry.kits[run.started.style].style

    def definition(self, run: Run[Any]) -> Any:
        return self._definitions.known[run.definition]

    # Inside

    def _advanced(
        self, style: Style[Any], contents: Contents, run: Run[Any] | None, run_id: str, fact: Fact, fresh: bool
    ) -> Step[Any] | None:
        """The step that a fact leads to; `None` if it changes nothing, or if a run that may be old does not take it."""
        try:
            return advance(style, contents, run, run_id, fact, self.clock())
        except UsageError:
            if fresh:
                raise
            return None

    def _counted(self, vain: int, run_id: str, is_new: bool) -> int:
        """How many times in a row there was nothing new to read. Raises `RunDamaged` if that is too often."""
        if vain >= MOST_VAIN_CONFLICTS and not is_new:
            raise RunDamaged(run_id, "the journal takes no step after the last one that can be read")
        return 0 if is_new else vain + 1

    async def _tell_and_dispatch(self, run_id: str, fact: Fact, blobs: Mapping[str, bytes] | None = None) -> Run[Any]:
        async def tell() -> Run[Any]:
            run, jobs = await self.tell(run_id, fact, blobs=blobs)
            self._dispatch(jobs)
            return run

        return await self._see_through(tell())

    async def _see_through(self, moving: Coroutine[Any, Any, Run[Any]]) -> Run[Any]:
        """Finish the step even if its caller is cancelled: its commands can already be this process's to perform."""
        task = asyncio.ensure_future(moving)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return await asyncio.shield(task)

    def _dispatch(self, jobs: list[Job]) -> None:
        if jobs and self.dispatcher:
            self.dispatcher.dispatch(jobs)

    def _style(self, run_id: str, first: Record) -> Style[Any]:
        started = first.event
        name = started.style if isinstance(started, Started) else ""
        try:
            return self.registry.kits[name].style
        except KeyError:
            raise self._unknown_style(run_id, name) from None

    def _unknown_style(self, run_id: str, style: str) -> UnknownStyle:
        return UnknownStyle(run_id, style, ", ".join(sorted(self.registry.kits)))

    async def _catch_up(self, run_id: str, cell: CachedRun) -> None:
        records = await self.journal.read(run_id, after=cell.run.length if cell.run else 0)
        if not records and isinstance(gone := await self.not_found(run_id), RunForgotten):
            cell.style, cell.run, cell.checked = None, None, False
            self._cache.drop(run_id)
            raise gone
        await self._fold(run_id, cell, records)

    async def _fold(self, run_id: str, cell: CachedRun, records: list[Record]) -> None:
        if not records:
            return
        style = cell.style or self._style(run_id, records[0])
        contents = await self._definitions.contents(self.journal, records, style.name)
        with reading(run_id):
            cell.style, cell.run = style, replay(style, contents, run_id, records, cell.run)
        if self._follow:
            self._follow(records[-1].at)

    async def _check(self, run_id: str, cell: CachedRun) -> None:
        info = await self.journal.run(run_id)
        if info and info.style not in self.registry.kits:  # before its records are called damaged
            raise self._unknown_style(run_id, info.style)
        await check_run(self.journal, run_id)
        await self._catch_up(run_id, cell)
        if cell.run:
            self._definitions.check(cell.run.started.style, cell.run.definition)
        cell.checked = cell.run is not None


def _folded(
    style: Style[Any], contents: Contents, run_id: str, run: Run[Any] | None, records: Iterable[Record]
) -> Iterator[tuple[Record, Run[Any]]]:
    with reading(run_id):
        for record in records:
            run = apply(style, contents, run_id, run, record)
            yield record, run


async def _has_no_files(_run_id: str) -> bool:
    """For an engine that is not told where definitions come from."""
    return False
