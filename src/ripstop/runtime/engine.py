"""The one door to a run: everything that happens to it comes through `tell`.

- A run that was used recently stays folded in memory; only what is new is read.
- Appending is optimistic: whoever comes second reads what is new and decides again.
- Parked runs live on disk only; what is kept in memory is bounded (`remember`).
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ripstop.kernel.effects import AskPerson, Limits, PersonAnswered, SetTimer
from ripstop.kernel.errors import Conflict, RunAlreadyStarted, RunNotFound, UsageError
from ripstop.kernel.events import (
    CANCEL,
    FACTS,
    RESUME,
    USE,
    Answered,
    Asked,
    Ended,
    Fact,
    Forked,
    Heard,
    Ordered,
    Record,
    Repeated,
    Started,
    Withdrawn,
)
from ripstop.kernel.outbox import AT_ONCE
from ripstop.kernel.run import WAITS_FOR, Open, Run, apply, replay, status
from ripstop.kernel.step import Picture, Style, advance, decide_again

from .definitions import CheckDefinition, Definitions, LoadDefinition
from .failpoints import failpoint
from .forking import decides_nothing, last_shared, still_open
from .jobs import Dispatcher, Job
from .live import Appended, Live
from .ports import Clock, Entry, Journal, Question, RunInfo
from .run_cache import CachedRun, RunCache
from .soundness import check_run, reading


class View(Struct, frozen=True):
    """A run as it stands now."""

    run: Run[Any]
    status: str
    picture: Picture


class Engine:
    def __init__(
        self,
        journal: Journal,
        styles: Mapping[str, Style[Any]],
        load_definition: LoadDefinition,
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
        self.live = live or Live()
        self.dispatcher: Dispatcher | None = None
        self._styles = styles
        self._clock = clock
        self._follow = follow
        self._definitions = Definitions(load_definition, check_definition)
        self._cells = RunCache(remember)
        self._under_way: set[asyncio.Task[Run[Any]]] = set()

    # Moving a run

    async def start(
        self,
        run_id: str,
        style: str,
        definition: bytes,
        input: str = "",
        limits: Limits = Limits(),
        settings: Mapping[str, Any] | None = None,
        parent: tuple[str, int] | None = None,
        depth: int = 0,
        guards: Mapping[str, Any] | None = None,
    ) -> Run[Any]:
        """Begin a run. Its definition is pinned by its content."""
        digest = self._definitions.pin(style, definition)
        started = Started(
            style=style,
            definition=digest,
            input=input,
            limits=limits,
            settings=dict(settings or {}),
            parent=parent,
            depth=depth,
            guards=dict(guards or {}),
        )
        return await self._tell_and_dispatch(run_id, started, {digest: definition})

    async def hear(self, run_id: str, text: str, by: str = "") -> Run[Any]:
        return await self._tell_and_dispatch(run_id, Heard(text=text, by=by))

    async def order(self, run_id: str, order: str, arguments: Mapping[str, Any], by: str = "") -> Run[Any]:
        """Give a run an order that its style knows."""
        return await self._tell_and_dispatch(run_id, Ordered(order=order, arguments=dict(arguments), by=by))

    async def cancel(self, run_id: str, by: str = "") -> Run[Any]:
        return await self.order(run_id, CANCEL, {}, by)

    async def resume(self, run_id: str, raises: Mapping[str, float] | None = None, by: str = "") -> Run[Any]:
        """Go on with a run that was saved or that a guard stopped, with limits raised by so much.

        Raises `RunHasEnded` if it ended otherwise, and `UsageError` if it would stop again at once.
        """
        return await self.order(run_id, RESUME, {"raise": dict(raises)} if raises else {}, by)

    async def use(self, run_id: str, settings: Mapping[str, Any]) -> Run[Any]:
        """Change settings of a run, for what it has open and for all that comes."""
        return await self.order(run_id, USE, settings)

    async def answer(self, run_id: str, number: int, choice: str, text: str = "", by: str = "") -> Run[Any]:
        """A person answers a question of the desk."""
        view = await self.look(run_id)
        opened = view.run.open.get(number)
        if opened is None or not isinstance(opened.command, AskPerson):
            raise UsageError(f"{run_id}/{number} waits for nobody (any more). `ripstop desk` lists what does.")
        choices = opened.command.choices
        if choices and choice not in choices:
            raise UsageError(f"{choice!r} is no answer to {run_id}/{number}; choose from {', '.join(choices)}.")
        said = PersonAnswered(choice=choice, text=text, by=by)
        return await self._tell_and_dispatch(run_id, Answered(to=number, answer=said))

    async def fork(
        self,
        run_id: str,
        at: int | None,
        new_id: str,
        definition: bytes | None = None,
        limits: Limits | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Run[Any]:
        """Go on from a record of a run, under a new id, with the old or a new definition, limits and settings.

        At a fact: what was decided on it is decided anew. Anywhere else: at the end of that step,
        and what was open there is asked anew. Without `at`: see `forking`.
        """
        await check_run(self.journal, run_id)
        records = await self.journal.read(run_id)
        if not records:
            raise RunNotFound(run_id)
        cut = last_shared(run_id, records, at, redefined=definition is not None)
        style = self._style(records[0].event)
        if style.unforkable:
            raise UsageError(style.unforkable)
        await self._definitions.know(self.journal, records[:cut], style.name)
        digest = None if definition is None else self._definitions.pin(style.name, definition)
        blobs = {digest: definition} if digest and definition is not None else {}
        forked = Forked(run=run_id, at=cut, definition=digest, limits=limits, settings=dict(settings or {}))
        fact = records[cut - 1]
        now = self._clock()
        if isinstance(fact.event, FACTS) and not decides_nothing(fact.event):
            before = replay(style, self._definitions.known, run_id, records[: cut - 1])
            new, run = decide_again(style, self._definitions.known, before, fact, forked, new_id, now)
            inherited = still_open(records[:cut], run)
        else:
            shared = replay(style, self._definitions.known, run_id, records[:cut])
            new, run = advance(style, self._definitions.known, shared, new_id, forked, now)
            inherited = []

        async def append() -> Run[Any]:
            cell = self._cells.use(new_id)
            async with cell:
                entry, jobs = self._entry(new_id, style, new, run, blobs, None, (run_id, cut))
                entry = replace(entry, inherited=inherited)
                try:
                    await self.journal.append(entry)
                except Conflict as error:
                    raise RunAlreadyStarted(new_id) from error
                cell.style, cell.run, cell.checked = style, run, True
            self._after_append(style, run, new)
            if inherited and self.dispatcher:
                self.dispatcher.wake()
            self._dispatch(jobs)
            return run

        return await self._see_through(append())

    async def tell(
        self,
        run_id: str,
        fact: Fact,
        fence: tuple[int, int] | None = None,
        blobs: Mapping[str, bytes] | None = None,
    ) -> tuple[Run[Any], list[Job]]:
        """Record a fact and all it leads to. Returns the run and what this process is to do now.

        Safe to repeat: a fact that has nothing to say any more changes nothing.
        """
        cell = self._cells.use(run_id)
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
                self._cells.drop(run_id)
                raise RunNotFound(run_id)
            while True:
                style = cell.style or self._style(fact)
                records, run = advance(style, self._definitions.known, cell.run, run_id, fact, self._clock())
                if records:
                    entry, jobs = self._entry(run_id, style, records, run, blobs or {}, fence, None)
                    failpoint("engine.before_append")
                    try:
                        await self.journal.append(entry)
                    except Conflict:
                        pass
                    else:
                        failpoint("engine.after_append")
                        cell.style, cell.run, cell.checked = style, run, True
                        break
                elif fresh:
                    return run, []
                await self._catch_up(run_id, cell)
                fresh = True
        finally:
            cell.give_back()
        self._after_append(style, run, records)
        return run, jobs

    # Looking at runs

    async def look(self, run_id: str) -> View:
        """The run as it stands in the journal now."""
        cell = self._cells.use(run_id)
        async with cell:
            await self._catch_up(run_id, cell)
            run, style = cell.run, cell.style
        if run is None or style is None:
            self._cells.drop(run_id)
            raise RunNotFound(run_id)
        with reading(run_id):
            return View(run, status(run, style.listens(run.state)), style.picture(run))

    async def check(self, run_id: str) -> None:
        """Raise `RunDamaged` or `DefinitionError` unless this process can act on the run."""
        cell = self._cells.use(run_id)
        async with cell:
            await (self._catch_up if cell.checked else self._check)(run_id, cell)

    async def opened(self, run_id: str, number: int) -> Open | None:
        """A command of a run that is to be performed now, if it is still open. Raises `RunDamaged`."""
        cell = self._cells.use(run_id)
        if not cell.checked or cell.run is None or number not in cell.run.open:
            await self.check(run_id)
        return cell.run.open.get(number) if cell.run else None

    def known(self, run_id: str) -> Run[Any] | None:
        """The run as this process knows it, if it does."""
        cell = self._cells.get(run_id)
        return cell.run if cell else None

    async def standing(self, run_id: str) -> Run[Any]:
        """The run as this process knows it; read only if it does not."""
        return self.known(run_id) or (await self.look(run_id)).run

    async def history(self, run_id: str) -> list[tuple[Record, Run[Any]]]:
        """Every record of a run with the run as it stood right after it."""
        records = await self.journal.read(run_id)
        if not records:
            raise RunNotFound(run_id)
        style = self._style(records[0].event)
        await self._definitions.know(self.journal, records, style.name)
        run: Run[Any] | None = None
        told: list[tuple[Record, Run[Any]]] = []
        with reading(run_id):
            for record in records:
                run = apply(style, self._definitions.known, run_id, run, record)
                told.append((record, run))
        return told

    async def runs(self) -> list[RunInfo]:
        return await self.journal.runs()

    async def has_workers(self) -> bool:
        """Whether a worker of any process is enrolled in the journal. Without one, a run that is at work is not."""
        return await self.journal.has_workers(self._clock())

    async def desk(self) -> list[Question]:
        """Everything that waits for a person, over all runs."""
        return await self.journal.desk()

    def style(self, run: Run[Any]) -> Style[Any]:
        return self._styles[run.started.style]

    def definition(self, run: Run[Any]) -> Any:
        return self._definitions.known[run.definition]

    # Inside

    async def _tell_and_dispatch(self, run_id: str, fact: Fact, blobs: Mapping[str, bytes] | None = None) -> Run[Any]:
        async def tell() -> Run[Any]:
            run, jobs = await self.tell(run_id, fact, blobs=blobs)
            self._dispatch(jobs)
            return run

        return await self._see_through(tell())

    async def _see_through(self, moving: Coroutine[Any, Any, Run[Any]]) -> Run[Any]:
        """To the end, even if whoever waits for it is cancelled: what is on disk may be this process's to do."""
        task = asyncio.ensure_future(moving)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return await asyncio.shield(task)

    def _dispatch(self, jobs: list[Job]) -> None:
        if jobs and self.dispatcher:
            self.dispatcher.dispatch(jobs)

    def _style(self, fact: object) -> Style[Any]:
        name = fact.style if isinstance(fact, Started) else ""
        try:
            return self._styles[name]
        except KeyError:
            raise UsageError(f"There is no style {name!r}; known are {', '.join(sorted(self._styles))}.") from None

    async def _catch_up(self, run_id: str, cell: CachedRun) -> None:
        records = await self.journal.read(run_id, after=cell.run.length if cell.run else 0)
        if not records:
            return
        style = cell.style or self._style(records[0].event)
        await self._definitions.know(self.journal, records, style.name)
        with reading(run_id):
            cell.style, cell.run = style, replay(style, self._definitions.known, run_id, records, cell.run)
        if self._follow:
            self._follow(records[-1].at)

    async def _check(self, run_id: str, cell: CachedRun) -> None:
        await check_run(self.journal, run_id)
        await self._catch_up(run_id, cell)
        if cell.run:
            self._definitions.check(cell.run.definition)
        cell.checked = cell.run is not None

    def _entry(
        self,
        run_id: str,
        style: Style[Any],
        records: list[Record],
        run: Run[Any],
        blobs: Mapping[str, bytes],
        fence: tuple[int, int] | None,
        fork: tuple[str, int] | None,
    ) -> tuple[Entry, list[Job]]:
        """What to append, and which of the commands it opens this process takes."""
        jobs: list[Job] = []
        begun: tuple[int, ...] = ()
        dispatcher = self.dispatcher
        if dispatcher and not run.ended:
            for record in records:
                if type(record.event) is Asked and record.number in run.open:
                    opened = run.open[record.number]
                    if WAITS_FOR[type(opened.command)] in AT_ONCE:
                        repeatable = dispatcher.kind(opened.command).repeatable
                        if repeatable:
                            begun += (record.number,)
                        jobs.append(Job(run_id, record.number, opened, dispatcher.holder, begun=repeatable))
        entry = Entry(
            run_id=run_id,
            records=records,
            status=status(run, style.listens(run.state)),
            blobs=blobs,
            fork=fork,
            holder=dispatcher.holder if jobs and dispatcher else None,
            begun=begun,
            fence=fence,
        )
        return entry, jobs

    def _after_append(self, style: Style[Any], run: Run[Any], records: list[Record]) -> None:
        run_id = run.id
        if self.live.watched:
            self.live.show(Appended(run_id, tuple(records), style.picture(run)))
        if self.dispatcher is None:
            return
        for record in records:
            event = record.event
            if type(event) is Asked:
                if type(event.command) is SetTimer:
                    self.dispatcher.wake_by(event.command.after)
            elif type(event) is Withdrawn:
                self.dispatcher.withdraw(run_id, [event.number])
            elif type(event) is Ended:
                self.dispatcher.withdraw(run_id, None)
                self.dispatcher.wake()
            elif type(event) is Repeated:
                self.dispatcher.wake()
