"""The runs of a journal, folded in memory: everything that happens to one is a fact that comes through `tell`.

- What a fact leads to is done by the worker of this process, if there is one. Once begun, it is done to its end, even
  if the caller goes away.
- A run that was used recently stays folded; only what is new is read. What is kept is bounded (`remember`), and
  parked runs live on disk only.
- Appending is optimistic: the loser of a race reads what is new and decides again.
- A refusal is final only if the run was read just now: what is in memory may be older than the journal.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ripstop.kernel.effects import AskPerson, Content, Limits, RunFinished
from ripstop.kernel.errors import (
    Conflict,
    OutcomeUnknown,
    RunAlreadyStarted,
    RunDamaged,
    RunForgotten,
    RunNotFound,
    UnknownStyle,
    UsageError,
)
from ripstop.kernel.events import (
    FORMAT,
    Answered,
    CancelRequested,
    Fact,
    Heard,
    Record,
    Redefined,
    ResumeRequested,
    RetryRequested,
    RunSettings,
    SettingsChanged,
    Started,
)
from ripstop.kernel.folding import apply, replay
from ripstop.kernel.outbox import plan
from ripstop.kernel.questions import checked_name, read_answer
from ripstop.kernel.registry import Registry
from ripstop.kernel.restoring import may_repeat_what_followed
from ripstop.kernel.run import Contents, Open, Run, status
from ripstop.kernel.step import Step, advance
from ripstop.kernel.style import Picture, Style, StyleKit, Uses

from .entries import Dispatcher, Job, after_append, entry_of
from .failpoints import failpoint
from .forking import ForkChanges, fork_run, last_shared
from .live import Live
from .people import action_fact, already_answered, check_heard
from .pinned_definitions import CheckDefinition, Definitions, Pins, digest_of
from .ports import MAX_PAGE, Clock, DeskQuery, Entry, Journal, Page, Question, RunInfo, RunQuery
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


NO_SETTINGS = RunSettings()


class Attachment(Struct, frozen=True):
    """Content that comes with a message."""

    body: bytes
    name: str = ""
    media_type: str = ""


class Engine:
    """Starts, reads and steers the runs of a journal. It performs nothing; a worker does."""

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
        self._uses: dict[tuple[str, str], Uses] = {}
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
        cached = self._cache.use(run_id)
        if cached.taken:
            await cached.wait()
        cached.taken = True  # as `async with cached` would, which costs two coroutines more with every step
        try:
            fresh = cached.run is None
            if not cached.checked and type(fact) is not Started:
                await self._check(run_id, cached)
            elif fresh:
                await self._catch_up(run_id, cached)
            if cached.run is None and not isinstance(fact, Started):
                self._cache.drop(run_id)
                raise RunNotFound(run_id)
            style = cached.style or self._style(run_id, Record(1, 0, fact))
            contents = self._definitions.bare
            is_answer = type(fact) is Answered and type(fact.answer) is not RunFinished
            if not is_answer and type(fact) is not Heard:  # nearly every fact names no content
                contents, used = await self._definitions.for_fact(self.journal, fact, style.name)
                blobs = {**used, **(blobs or {})} if used else blobs
            kit, vain = self.registry.loaded[style.name], 0
            while True:
                before = cached.run
                step = self._advanced(style, contents, before, run_id, fact, fresh)
                if step is not None:
                    changes = plan(before, step.run, step.records)
                    entry, jobs = entry_of(run_id, kit, before, step, changes, self.dispatcher, blobs, fence)
                    failpoint("engine.before_append")
                    if await self._append(entry):
                        failpoint("engine.after_append")
                        run = step.run
                        cached.style, cached.run, cached.checked = style, run, True
                        break
                elif fresh:
                    assert before is not None
                    return before, []
                await self._catch_up(run_id, cached)
                fresh, vain = True, self._counted(vain, run_id, is_new=cached.run is not before)
        finally:
            cached.give_back()
        after_append(self.live, self.dispatcher, cached, step, changes)
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
        cached = self._cache.use(run_id)
        async with cached:
            await self._catch_up(run_id, cached)
            run, style = cached.run, cached.style
        if run is None or style is None:
            self._cache.drop(run_id)
            raise RunNotFound(run_id)
        with reading(run_id):
            return View(run, status(run, style.listens(run.state)), cached.picture())

    async def not_found(self, run_id: str) -> RunNotFound:
        """The error for a run without records: it was forgotten, or never began."""
        tombstone = await self.journal.tombstone(run_id)
        return RunForgotten(run_id, tombstone.at) if tombstone else RunNotFound(run_id)

    async def check(self, run_id: str) -> None:
        """Raise `RunDamaged` or `DefinitionError` unless this process can act on the run."""
        cached = self._cache.use(run_id)
        async with cached:
            await (self._catch_up if cached.checked else self._check)(run_id, cached)

    async def opened(self, run_id: str, number: int, superseded: bool = False) -> Open | None:
        """A command of a run that is to be performed now, if it is still open. Raises `RunDamaged`.

        Args:
            superseded: It is no longer needed, and its cost is still to be reported.
        """
        cached = self._cache.use(run_id)
        if not cached.checked or cached.run is None or superseded or number not in cached.run.open:
            await self.check(run_id)
        run = cached.run
        if run is None:
            return None
        if superseded and number in run.late:
            return Open(run.late[number], run.state, 0)
        return run.open.get(number)

    async def take_in(self, run_id: str, records: list[Record]) -> None:
        """Fold records that came along with a claimed command, so that they need not be read."""
        cached = self._cache.use(run_id)
        async with cached:
            have = cached.run.length if cached.run else 0
            await self._fold(run_id, cached, [record for record in records if record.number > have])

    def known(self, run_id: str) -> Run[Any] | None:
        """The run as this process knows it, if it does."""
        cached = self._cache.get(run_id)
        return cached.run if cached else None

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
        return self.registry.loaded[run.started.style]

    def style(self, run: Run[Any]) -> Style[Any]:
        return self.registry.loaded[run.started.style].style

    def definition(self, run: Run[Any]) -> Any:
        return self._definitions.known[run.definition]

    def uses(self, run: Run[Any]) -> Uses:
        """What a run depends on, as its style says of its definition."""
        key = run.started.style, run.definition
        if key not in self._uses:  # two styles may read one definition
            self._uses[key] = self.style(run).uses(self.definition(run))
        return self._uses[key]

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

    async def _append(self, entry: Entry) -> bool:
        """Whether the step was appended; it was not if another process has appended one."""
        try:
            await self.journal.append(entry)
        except Conflict:
            return False
        except OutcomeUnknown:
            return await self._find_out(entry)
        return True

    async def _find_out(self, entry: Entry) -> bool:
        """Whether a step was appended of which the store could not say it; false if another writer was faster.

        If that cannot be known, this process's worker gives up: it may hold commands that nobody has told it of.
        """
        from .unknown_outcomes import was_appended

        worker = self.dispatcher
        try:
            waits = worker.waits_now if worker else lambda: False
            return await was_appended(self.journal, self.registry.codec, entry, waits)
        except OutcomeUnknown as error:
            if worker and entry.taken:
                worker.give_up(error)
            raise

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

    async def _catch_up(self, run_id: str, cached: CachedRun) -> None:
        records = await self.journal.read(run_id, after=cached.run.length if cached.run else 0)
        if not records and isinstance(gone := await self.not_found(run_id), RunForgotten):
            cached.style, cached.run, cached.checked = None, None, False
            self._cache.drop(run_id)
            raise gone
        await self._fold(run_id, cached, records)

    async def _fold(self, run_id: str, cached: CachedRun, records: list[Record]) -> None:
        if not records:
            return
        style = cached.style or self._style(run_id, records[0])
        contents = await self._definitions.contents(self.journal, records, style.name)
        with reading(run_id):
            cached.style, cached.run = style, replay(style, contents, run_id, records, cached.run)
        if self._follow:
            self._follow(records[-1].at)

    async def _check(self, run_id: str, cached: CachedRun) -> None:
        info = await self.journal.run(run_id)
        if info and info.style not in self.registry.kits:  # before its records are called damaged
            raise self._unknown_style(run_id, info.style)
        await check_run(self.journal, run_id)
        await self._catch_up(run_id, cached)
        if cached.run:
            self._definitions.check(cached.run.started.style, cached.run.definition)
        cached.checked = cached.run is not None

    # Lists, as the journal keeps them: nothing is folded for them

    async def runs(self, query: RunQuery = RunQuery()) -> Page[RunInfo]:
        return await self.journal.runs(query)

    async def family_line(self, run_id: str) -> list[RunInfo]:
        """A run, the one that started it, and so on up to the top."""
        found: list[RunInfo] = []
        at: str | None = run_id
        while at and all(info.run_id != at for info in found):
            info = await self.journal.run(at)
            if info is None:
                break
            found.append(info)
            at = info.parent
        return found

    async def descendants(self, run_id: str) -> list[RunInfo]:
        """The children of a run that belong to it, and theirs; the oldest first."""
        found: list[RunInfo] = []
        info = await self.journal.run(run_id)
        query = RunQuery(root=info.root if info else run_id, size=1000)
        while True:
            page = await self.journal.runs(query)
            found += [one for one in page.items if one.run_id.startswith(f"{run_id}.")]
            if not page.next:
                return found[::-1]
            query = replace(query, cursor=page.next)

    async def has_workers(self, besides: int = 0) -> bool:
        """Whether a worker of any process is at work on the journal. Without one, a run that is at work is not.

        `besides`: one that is left out, because it is about to stop.
        """
        return any(alive and worker != besides for worker, alive in await self.journal.workers(self.clock()))

    async def left_waiting(self) -> set[str]:
        """The runs that wait, but only for a worker to go on, themselves or in a child; none while one is alive."""
        if await self.has_workers():
            return set()
        found = await self.journal.left_waiting(self.clock())
        above = [info.parent for name in found if (info := await self.journal.run(name))]
        query = RunQuery(statuses=("working",), size=MAX_PAGE)
        while True:
            page = await self.journal.runs(query)
            above += [info.parent for info in page.items]
            if not page.next:
                break
            query = replace(query, cursor=page.next)
        while above:
            name = above.pop()
            info = await self.journal.run(name) if name and name not in found else None
            if info and info.status == "waiting":
                found.add(info.run_id)
                above.append(info.parent)
        return found

    async def root_of(self, run_id: str) -> str:
        """The run that a run's family began with; the run itself if no other has started it."""
        info = await self.journal.run(run_id)
        return info.root if info else run_id

    async def desk(self, query: DeskQuery = DeskQuery()) -> Page[Question]:
        """What waits for a person, over all runs."""
        return await self.journal.desk(query)

    # Steering

    async def start(
        self,
        run_id: str,
        style: str,
        definition: bytes,
        input: str = "",
        arguments: Mapping[str, Any] | None = None,
        limits: Limits = Limits(),
        settings: RunSettings = NO_SETTINGS,
        guards: Mapping[str, Any] | None = None,
        pinned: bytes = b"",
        definitions: Mapping[str, bytes] | None = None,
        parent: tuple[str, int] | None = None,
        surface: tuple[str, int] | None = None,
        depth: int = 0,
        key: str = "",
        decoded: Any = None,
        in_doubt: bool = False,
    ) -> Run[Any]:
        """Begin a run. Its definition is pinned by its content.

        With a `key`: if the run exists with the same key, definition, input and arguments, it is that run. Raises
        `RunAlreadyStarted` for any other that exists.

        Args:
            pinned: What it and its descendants can start, as JSON: `{definition: {workflow: Pin}}`.
            definitions: The content of what `pinned` names, by hash, unless the journal has it already.
            decoded: The definition as its style decodes it, if that was done before.
            in_doubt: A run of a restored journal starts it, and may have done so before.
        """
        if style not in self.registry.kits:
            raise UsageError(f"There is no style {style!r}; known are {', '.join(sorted(self.registry.kits))}.")
        digest = self._definitions.pin(style, definition, decoded)
        blobs = await self._definitions.family(self.journal, definition, pinned, definitions or {})
        started = Started(
            style=style,
            definition=digest,
            format=FORMAT,
            input=input,
            arguments=dict(arguments or {}),
            limits=limits,
            settings=settings,
            guards=dict(guards or {}),
            pinned=digest_of(pinned) if pinned else "",
            parent=parent,
            surface=surface,
            depth=depth,
            key=key,
            mark=(await self.journal.identity()).mark,
            in_doubt=in_doubt,
        )
        try:
            return await self._tell_and_dispatch(run_id, started, blobs)
        except RunAlreadyStarted:
            run = (await self.look(run_id)).run
            if key and _is_same_start(run.started, started):
                return run
            raise RunAlreadyStarted(run_id, key) from None

    async def hear(
        self,
        run_id: str,
        text: str,
        by: str = "",
        channel: str = "",
        id: str = "",
        attachments: Sequence[Attachment] = (),
    ) -> Run[Any]:
        """Send a message to a run. Repeating it with its id changes nothing.

        Raises `MessageIdUsed` if the id is that of another message.
        """
        blobs = {digest_of(one.body): one.body for one in attachments}
        contents = tuple(Content(digest_of(one.body), one.name, one.media_type) for one in attachments)
        heard = Heard(text=text, by=checked_name(by), channel=channel, id=id, attachments=contents)
        run = await self._tell_and_dispatch(run_id, heard, blobs)
        await check_heard(self.journal, run, heard)
        return run

    async def tell_fact(self, run_id: str, fact: Fact, blobs: Mapping[str, bytes] | None = None) -> Run[Any]:
        """Append a fact, such as one of a style's own, with its decisions, and start the commands they ask for."""
        return await self._tell_and_dispatch(run_id, fact, blobs)

    async def act(
        self, run_id: str, name: str, fields: Mapping[str, Any], by: str = "", seen: int | None = None
    ) -> Run[Any]:
        """Do what a style lets people do with a run now (`Style.actions`).

        Args:
            seen: The length of the run when it was shown. If it has changed since, `UsageError` says so.
        """
        run = (await self.look(run_id)).run
        return await self._tell_and_dispatch(
            run_id, action_fact(self.style(run), run, name, fields, checked_name(by), seen)
        )

    async def cancel(self, run_id: str, by: str = "", because: str = "") -> Run[Any]:
        return await self._tell_and_dispatch(run_id, CancelRequested(by=checked_name(by), because=because))

    async def resume(
        self, run_id: str, raises: Mapping[str, float] | None = None, by: str = "", accept_edits: bool = False
    ) -> Run[Any]:
        """Resume a run that was saved or that a guard stopped, with limits raised by these amounts.

        `accept_edits`: files that changed in a way that stopped it are right as they are.

        Raises `RunHasEnded` if it ended otherwise, and `UsageError` if it would stop again at once.
        """
        requested = ResumeRequested(raises=dict(raises or {}), by=checked_name(by), accept_edits=accept_edits)
        return await self._tell_and_dispatch(run_id, requested)

    async def retry(self, run_id: str, by: str = "") -> Run[Any]:
        """Make the refused calls of a run again now, or the one that ended it. Raises `RunHasEnded` if none did."""
        return await self._tell_and_dispatch(run_id, RetryRequested(by=checked_name(by)))

    async def change_settings(self, run_id: str, settings: RunSettings, by: str = "") -> Run[Any]:
        """Change settings of a run, for its open commands and all later ones."""
        return await self._tell_and_dispatch(run_id, SettingsChanged(settings=settings, by=checked_name(by)))

    async def redefine(
        self, run_id: str, definition: bytes, pinned: bytes = b"", definitions: Mapping[str, bytes] | None = None
    ) -> Run[Any]:
        """Continue a run with a new definition, in place. `pinned` and `definitions` are as for `start`."""
        run = (await self.look(run_id)).run
        digest = self._definitions.pin(run.started.style, definition)
        blobs = await self._definitions.family(self.journal, definition, pinned, definitions or {})
        redefined = Redefined(definition=digest, pinned=digest_of(pinned) if pinned else "")
        return await self._tell_and_dispatch(run_id, redefined, blobs)

    async def answer(
        self,
        run_id: str,
        number: int,
        words: str = "",
        *,
        choice: str = "",
        document: str | None = None,
        fields: Mapping[str, Any] | None = None,
        by: str = "",
    ) -> Run[Any]:
        """Answer a question on the desk for a person. Raises `AlreadyAnswered` or `UsageError`."""
        before = (await self.look(run_id)).run
        opened = before.open.get(number)
        if opened is None or not isinstance(opened.command, AskPerson):
            raise already_answered(before, number, await self.journal.read(run_id))
        if objection := self.style(before).people.objection(before, number, checked_name(by)):
            raise UsageError(objection)
        said = read_answer(opened.command, words, choice=choice, document=document, fields=fields, by=by)
        run = await self._tell_and_dispatch(run_id, Answered(to=number, answer=said))
        recorded = (record.event for record in await self.journal.read(run_id, after=before.length))
        if not any(isinstance(event, Answered) and (event.to, event.answer) == (number, said) for event in recorded):
            raise already_answered(run, number, await self.journal.read(run_id))  # a moment ago
        return run

    async def put_back(self, run_id: str) -> None:
        """Have workers work again on a run that one of them has set aside."""
        await self.journal.set_aside(run_id, "")
        if self.dispatcher:
            self.dispatcher.wake()

    async def fork(
        self,
        run_id: str,
        at: int | None,
        new_id: str,
        definition: bytes | None = None,
        limits: Limits | None = None,
        settings: RunSettings | None = None,
        pinned: bytes | None = None,
        definitions: Mapping[str, bytes] | None = None,
        workspace: str = "",
    ) -> Run[Any]:
        """Continue from a record of a run, under a new id, with the old or a new definition, limits and settings.

        At a fact: what was decided on it is decided again. Anywhere else: at the end of that step,
        and what was open there is asked again. Without `at`: see `forking`.
        """
        await check_run(self.journal, run_id)
        records = await self.journal.read(run_id)
        if not records:
            raise await self.not_found(run_id)
        del records[last_shared(run_id, records, at, redefined=definition is not None) :]
        style = self._style(run_id, records[0])
        if style.unforkable:
            raise UsageError(style.unforkable)
        contents = await self._definitions.contents(self.journal, records, style.name)
        digest = "" if definition is None else self._definitions.pin(style.name, definition)
        pins = None if pinned is None else digest_of(pinned) if pinned else ""
        mark = (await self.journal.identity()).mark
        in_doubt = may_repeat_what_followed((await self.look(run_id)).run, records[-1].number)
        wanted = ForkChanges(digest, pins, limits, settings, workspace, mark, in_doubt)
        fork = fork_run(style, contents, run_id, records, new_id, wanted, self.clock())
        step, used = fork.step, fork.step.run
        if definition is None:
            definition = await self.journal.blob(used.definition)
        if pinned is None:
            pinned = await self.journal.blob(used.pinned) if used.pinned else b""
        blobs = await self._definitions.family(self.journal, definition, pinned, definitions or {})

        async def append() -> Run[Any]:
            cached = self._cache.use(new_id)
            async with cached:
                shared = run_id, fork.shared.length
                kit = self.kit(used)
                entry, jobs = entry_of(new_id, kit, None, step, fork.changes, self.dispatcher, blobs, fork=shared)
                if not await self._append(entry):
                    raise await self._why_not_forked(run_id, new_id)
                cached.style, cached.run, cached.checked = style, used, True
            after_append(self.live, self.dispatcher, cached, step, fork.changes)
            if self.dispatcher and fork.asks_again:
                self.dispatcher.wake()
            self._dispatch(jobs)
            return used

        return await self._see_through(append())

    async def _why_not_forked(self, run_id: str, new_id: str) -> RunForgotten | RunAlreadyStarted:
        for one in (run_id, new_id):
            if isinstance(gone := await self.not_found(one), RunForgotten):
                return gone
        return RunAlreadyStarted(new_id)


def _is_same_start(one: Started, other: Started) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in ("key", "definition", "input", "arguments"))


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
