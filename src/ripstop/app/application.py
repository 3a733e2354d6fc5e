"""Puts the parts together. The only module that knows them all, and where time enters.

    async with App("ripstop.toml", tools=[send_mail]) as app:
        run = await app.start("examples/haiku", input="rain")
        result = await app.wait(run)

An `App` is an open journal with an engine, and a worker on what its `scope` says. It is the one door: whatever makes a
run begin or continue is checked in here, once and in one order, so that no face has to. What its user has not allowed
is a `NotTrusted` or an `UntrustedFolder`; a face asks, records the consent, and calls again.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Never

from ripstop.app.settings.settings_file import Settings, read_settings
from ripstop.definitions.loading import Workflow, find
from ripstop.definitions.reader import Environment
from ripstop.engine.clock import ProcessClock, system_time
from ripstop.engine.engine import Attachment, Engine, View
from ripstop.engine.following import follow, until_settled
from ripstop.engine.live import Live, LiveEvent
from ripstop.engine.messages import Deliver, Messages
from ripstop.engine.ports import ALL, DeskQuery, Page, Question, RunInfo, RunQuery, Scope
from ripstop.engine.sweeper import Admit
from ripstop.engine.worker import Worker
from ripstop.history.runs import shown_runs
from ripstop.kernel.effects import Limits
from ripstop.kernel.errors import RunAlreadyStarted, UsageError
from ripstop.kernel.events import Record
from ripstop.kernel.run import Run
from ripstop.models.accounting import with_prices
from ripstop.models.model_files import install_model as install_model
from ripstop.security.consent import TrustedFolders
from ripstop.tools.snapshots.run_files import FileChanges
from ripstop.tools.toolbox import Tool
from ripstop.tools.toolbox import load_tools as load_tools

from . import arguments
from .fork import fork_run, fork_with_key
from .plugins import Plugins, installed
from .resume import (
    ResumedRun,
    ResumedRuns,
    about_missing,
    change_model,
    change_workspace,
    check_allowed,
    check_family,
    check_family_usable,
    check_here,
    check_there,
    check_usable,
    put_back,
    reread,
    resume_run,
    resume_runs,
    retry_calls,
    uses_known_folders,
    wants_own_work,
)
from .start import (
    CheckedStart,
    Pinned,
    check_launch,
    check_start,
    prices_of,
    remember_documents,
    tools_of,
)
from .stores import OpenedJournal, closing, folders_of, noting, open_journal, trusted_engine
from .toolbox import make_toolbox, server_tools
from .trust import Trust
from .workers import make_agents, make_worker

if TYPE_CHECKING:
    from ripstop.app.webhooks.service import WebhookService

CHECK_INTERVAL = 1.0
"""Seconds between two checks whether the worker has given up."""
NOT_OPEN = "This app is not open. Use it inside `async with App(…) as app:`."


def now() -> int:
    """The system's time, for what is not in a journal."""
    return system_time()


class App:
    """An open journal: runs are started, followed, answered, resumed and worked on through it."""

    def __init__(
        self,
        settings: Settings | str | Path | None = None,
        *,
        tools: Iterable[Tool] = (),
        channels: Mapping[str, Deliver] | None = None,
        plugins: Plugins | None = None,
        scope: Scope | None = ALL,
        create: bool = True,
        clock: ProcessClock | None = None,
        look_only: bool = False,
    ) -> None:
        """Args:
        settings: Settings, or the path of a `ripstop.toml` or its folder; left out: of the current folder.
        tools: Functions that agents may call (`@ripstop.tool`).
        channels: How messages on a channel are delivered, by the channel's name.
        plugins: The styles to know; left out: all that are installed.
        scope: What to work on: `ALL` runs of the journal, one `Tree(run)`, `NOTHING` but what this app starts or moves,
            each run with its family; `None` for no worker at all.
        create: Make the journal if it is missing.
        look_only: Nothing is to be changed, so a journal that the user has not agreed to can be looked at.

        Raises `UsageError` for an argument that is wrong; `NotTrusted`, which is one, if a project's settings name
        modules of tools that the user has not agreed to. On a journal that the user has neither made nor agreed to,
        opening the app with a scope and every method that changes something raise `ForeignJournal`, a `NotTrusted`.
        """
        self.settings = (
            settings if isinstance(settings, Settings) else read_settings(arguments.settings_folder(settings))
        )
        if plugins is not None and not isinstance(plugins, Plugins):
            raise arguments.wrong("plugins", "ripstop.Plugins([…])", plugins)
        self.plugins = plugins or installed()
        self.live = Live()
        self.places: dict[str, Path] = {}
        """Folders of documents that this process works in, by what the ids of their runs begin with."""
        self.trust = Trust(self.settings)
        """The addresses that may get prompts and keys."""
        self.servers = server_tools(self.settings, self.trust)
        """The tools of MCP servers; none if the settings name no server."""
        self.toolbox = make_toolbox(self.settings, self.plugins, self.trust, arguments.tools(tools), self.servers)
        """The tools that this process has: of styles, of the settings' modules and servers, and those it was given."""
        self._channels = arguments.channels(channels)
        self._scope = arguments.scope(scope)
        self._create = arguments.flag("create", create)
        self._look_only = arguments.flag("look_only", look_only)
        self._clock = clock or ProcessClock()
        self._stack = AsyncExitStack()
        self._was_opened = False
        self._engine: Engine | None = None
        self._folders: TrustedFolders | None = None
        self._worker: Worker | None = None
        self._opened: OpenedJournal | None = None
        self._forking = asyncio.Lock()

    # Life

    @property
    def engine(self) -> Engine:
        """What records facts and decides on them. Raises `UsageError` if the app is not open."""
        if self._engine is None:
            raise UsageError(NOT_OPEN)
        return self._engine

    @property
    def folders(self) -> TrustedFolders:
        """Where runs of this journal can put files. Raises `UsageError` if the app is not open."""
        if self._folders is None:
            raise UsageError(NOT_OPEN)
        return self._folders

    @folders.setter
    def folders(self, folders: TrustedFolders) -> None:
        self._folders = folders

    async def __aenter__(self) -> "App":
        if self._was_opened:
            raise UsageError("This app is open already, or was closed. Make another one.")
        journal = open_journal(self.settings, self._create, codec=self.plugins.registry.codec)
        self._was_opened = True
        await self._stack.__aenter__()
        try:
            await self._stack.enter_async_context(closing(journal))
            self._folders = folders_of(journal)
            self._opened = await trusted_engine(
                journal, self.settings, self.plugins, self._clock, self.live, to_act=not self._look_only
            )
            self._stack.push_async_callback(self._opened.end)
            if self._scope is not None:
                self.check_journal()
            self._engine = self._opened.engine
            self._engine.reread = partial(reread, self)
            if self._scope is not None:
                self._worker = await self._stack.enter_async_context(self.working(self._scope))
        except BaseException as error:
            await self.__aexit__(type(error), error, error.__traceback__)
            raise
        return self

    async def __aexit__(self, *error: Any) -> None:
        try:
            await self._stack.__aexit__(*error)
        finally:
            self._engine = self._folders = None

    def check_journal(self) -> None:
        """Raise `ForeignJournal` unless the user has made the journal, or agreed to it."""
        if self._opened and self._opened.refusal:
            raise self._opened.refusal

    @property
    def worker(self) -> Worker:
        """The worker of this process. Raises `UsageError` if it has none."""
        if self._worker is not None:
            return self._worker
        assert self.engine  # raises, if the app is not open
        raise UsageError("This app has no worker: it was opened with scope=None.")

    @asynccontextmanager
    async def working(self, scope: Scope, admit: Admit | None = None, patient: bool = False) -> AsyncIterator[Worker]:
        """Work on what the scope says. What `admit` refuses is set aside; a full disk ends it, unless `patient`."""
        self.check_journal()
        agents, messages = make_agents(self), Messages(self.engine, self._channels)
        note = self._opened.try_to_note if self._opened else None
        worker = make_worker(self, agents, messages, scope, admit, patient, note)
        before = self._worker
        try:
            await worker.start()
            self._worker = worker
            try:
                async with noting(self._opened):
                    yield worker
            finally:
                self._worker = before
                await asyncio.shield(worker.stop())
        finally:
            await agents.close()
            if self.servers and before is None:
                await asyncio.shield(self.servers.close())

    @asynccontextmanager
    async def serving(self, admit: Admit | None = None) -> AsyncIterator[Worker]:
        """Work on every run of the journal, as a service does: what its user has not allowed is set aside.

        Args:
            admit: As `working` takes it; left out: `App.admit`.
        """
        self.check_journal()
        check_here(self)
        async with self.working(ALL, admit or self.admit, patient=True) as worker:
            yield worker

    def webhooks(self) -> "AbstractAsyncContextManager[WebhookService]":
        """Tell the webhooks of the settings what happens, for as long as this is open. Raises `NotTrusted`."""
        self.check_journal()
        self.trust.check_webhooks()
        from ripstop.app.webhooks.service import following

        return following(self.engine, self.settings, self.trust.endpoints)

    # Starting and following

    async def start(
        self,
        workflow: Workflow | CheckedStart | str | Path,
        input: str = "",
        *,
        workspace: str | Path | None = None,
        values: Mapping[str, str] | None = None,
        limits: Limits | None = None,
        key: str = "",
        model: str = "",
    ) -> Run[Any]:
        """Start a run of a workflow: a file, a folder, or a name found in `workflows/`.

        Args:
            workflow: A `CheckedStart` is started as it was checked; it has all that the other arguments say, but input.
            values: KEY=VALUE pairs, as `ripstop run --set` takes them.
            key: With the same key, workflow and input it is the same run, however often it is started.
            model: For all its agents; empty: as settings and definition say.

        Raises `NotTrusted`, `UsageError` or `DefinitionError`, before anything is started.
        """
        goal, engine = arguments.text("input", input), self.engine
        if isinstance(workflow, CheckedStart):
            if key or model or (workspace, values, limits) != (None, None, None):
                raise UsageError("A CheckedStart has its workspace, values, limits, key and model. Leave them out.")
            return await self._begin(engine, workflow, goal)
        if not isinstance(workflow, Workflow):
            named = arguments.a_path("workflow", workflow)
            workflow = find(self.plugins.readers, str(named), Environment(goal=goal))
        checked = check_start(
            self.settings,
            self.plugins,
            self.trust,
            workflow,
            workspace=workspace,
            values=values,
            limits=limits,
            key=key,
            model=model,
        )
        return await self._begin(engine, checked, goal)

    async def launch(
        self,
        workflow: Workflow,
        run_id: str,
        input: str = "",
        given: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
        workspace: Path | None = None,
        key: str = "",
        model: str = "",
        pinned: Pinned | None = None,
        definition: Any = None,
        settings: Settings | None = None,
    ) -> Run[Any]:
        """Start a run of a workflow under this id, with start arguments as its style has them.

        `pinned` and `definition`: its family and its own definition, if they were read a moment ago: thousands of
        sessions start with one definition. `settings`: to be used instead of the app's own (`with_models_of`).

        Raises `UsageError` or `DefinitionError`, before anything is started.
        """
        checked = check_launch(
            settings or self.settings,
            self.plugins,
            Trust(settings) if settings else self.trust,
            workflow,
            run_id,
            workspace=workspace,
            limits=limits,
            key=key,
            model=model,
            given=given,
            definition=definition,
            pinned=pinned,
        )
        return await self._begin(self.engine, checked, input)

    async def _begin(self, engine: Engine, checked: CheckedStart, goal: str) -> Run[Any]:
        self.check_journal()
        if self.servers and self._worker:
            await self.servers.prepare(tools_of(checked.style, checked.definition))
        remember_documents(checked.pinned, self.folders)
        self.folders.remember(checked.workspace)
        run = await engine.start(
            checked.run_id,
            checked.workflow.style,
            checked.workflow.content,
            goal,
            checked.arguments,
            checked.limits,
            checked.settings,
            guards=checked.guards,
            pinned=checked.pinned.content,
            definitions=checked.pinned.definitions,
            key=checked.key,
            decoded=checked.definition,
        )
        self.trust.remember_choice(checked.models, checked.settings.base_url)
        self._include(run.id)
        return run

    def _include(self, run_id: str) -> None:
        """Have the worker of this process, if there is one, work on the run's family, whatever its scope."""
        if self._worker is not None:
            self._worker.include(run_id)

    async def wait(self, run: Run[Any] | str) -> View:
        """The run, once it is settled: it has ended, or waits for a person or a timer.

        `view.status` says which; `view.run.ended` has the outcome and the reason, `result` the result.
        """
        return await until_settled(self.engine, self.worker, _id(run))

    async def work(self) -> None:
        """Work on what the scope says until this is cancelled. Raises what stops the worker."""
        worker, never = self.worker, asyncio.Event()
        while not worker.failure:
            with suppress(TimeoutError):
                async with asyncio.timeout(CHECK_INTERVAL):
                    await never.wait()
        raise worker.failure

    async def look(self, run: Run[Any] | str) -> View:
        """The run as it is now, without waiting. Raises `RunNotFound`."""
        return await self.engine.look(_id(run))

    async def runs(self, query: RunQuery = RunQuery()) -> Page[RunInfo]:
        """A page of the runs in the journal, the newest first; `page.next` is the cursor of the next page.

        Statuses are those that people see: a run that has work to do, but no worker in any process, is `interrupted`.

        Raises `UsageError` for a query that cannot be.
        """
        return await shown_runs(self.engine, arguments.run_query(query))

    async def result(self, run: Run[Any] | str) -> Any:
        """The result that a run ended with, or `None`."""
        return await self.engine.result(_id(run))

    async def file_changes(self, run: Run[Any] | str) -> FileChanges:
        """Which files that were there before a run it removed or changed."""
        from .run_files import file_changes

        return await file_changes(self.engine, _id(run))

    async def undo_files(self, run: Run[Any] | str, paths: Sequence[str]) -> dict[str, str]:
        """Bring files back as they were before a run; what is there now is kept beside them, under the names returned.

        Raises `UsageError` while the run is worked on, and `Refused` for a file that cannot be brought back.
        """
        from .run_files import undo_files

        return await undo_files(self.engine, _id(run), paths)

    def follow(self, run: Run[Any] | str, after: int = 0) -> AsyncIterator[Record | LiveEvent]:
        """What happens to a run: its records after number `after`, and its live events, until it ends."""
        return follow(self.engine, _id(run), arguments.whole("after", after))

    async def send(
        self,
        run: Run[Any] | str,
        text: str,
        by: str = "",
        id: str = "",
        channel: str = "",
        attachments: Sequence[Attachment] = (),
    ) -> Run[Any]:
        """Send a message to a run. Repeating it with its id changes nothing.

        Raises `MessageIdUsed` if the id is that of another message, and `UsageError` if runs of its style never listen.
        """
        words, name = arguments.text("text", text), arguments.text("by", by)
        where, named = arguments.text("channel", channel), arguments.text("id", id)
        attached = arguments.attachments(attachments)
        style = self.engine.style((await self.engine.look(_id(run))).run)
        if not style.may_listen:
            raise UsageError(f"{_id(run)} does not listen: no run of the style {style.name!r} does.")
        return await self.engine.hear(_id(run), words, name, where, named, attached)

    async def desk(self, query: DeskQuery = DeskQuery()) -> list[Question]:
        """What waits for a person. Raises `UsageError` for a query that cannot be."""
        return (await self.engine.desk(arguments.desk_query(query))).items

    async def answer(
        self,
        question: Question | str,
        words: str = "",
        by: str = "",
        *,
        choice: str = "",
        document: str | None = None,
        fields: Mapping[str, Any] | None = None,
        **other: Never,
    ) -> Run[Any]:
        """Answer a question: in words, or with what its choices, its document and its fields allow.

        Raises `AlreadyAnswered`, or `UsageError` for an answer that the question does not take.
        """
        self.check_journal()
        run_id, number = arguments.question(question)
        said, name = arguments.text("words", words), arguments.text("by", by)
        for unknown in other:
            raise UsageError(f"An answer has no {unknown!r}; it has words, by, choice, document and fields.")
        return await self.engine.answer(
            run_id,
            number,
            said,
            choice=arguments.text("choice", choice),
            document=None if document is None else arguments.text("document", document),
            fields=arguments.fields(fields),
            by=name,
        )

    # Steering: what changes the course of a run. Whatever makes it continue here is checked first.

    async def cancel(self, run: Run[Any] | str, by: str = "", because: str = "") -> Run[Any]:
        """End a run and its children at once."""
        self.check_journal()
        return await self.engine.cancel(_id(run), arguments.text("by", by), arguments.text("because", because))

    async def act(
        self,
        run: Run[Any] | str,
        action: str,
        fields: Mapping[str, Any] | None = None,
        by: str = "",
        *,
        seen: int | None = None,
    ) -> Run[Any]:
        """Do what a run's style lets people do with it now, such as handing a document on.

        Args:
            fields: What the action needs to know, by the names that its style gives.
            by: Who does it; empty: a person without a name, who cannot do what only one person may.
            seen: The length of the run when the person saw it. If it has changed since, nothing is done.

        Raises `UsageError`, which says what is possible now.
        """
        self.check_journal()
        name, who, given = arguments.text("action", action), arguments.text("by", by), arguments.fields(fields)
        known = None if seen is None else arguments.whole("seen", seen)
        return await self.engine.act(_id(run), name, given, who, known)

    async def fork(
        self,
        run: Run[Any] | str,
        at: int | None = None,
        *,
        workflow: Workflow | str | Path | None = None,
        workspace: str | Path | None = None,
        key: str = "",
        to_resume: bool = False,
    ) -> Run[Any]:
        """Start a new run from a record of another one, which stays as it is.

        The fork has its own folder, which begins as a copy of the old run's files as they are now; a `workspace` that
        has files in it is used as it is. Workers may begin at once, so what it would use is checked as `resume` does.

        Args:
            at: The number of the last record to keep; left out: the last one. Of a run that failed through its agent,
                the last question to the agent.
            workflow: Continue with this one instead of the definition that the run was started with.
            key: With the same key, run, record and workflow it is the same fork, however often this is called. Without
                `at` the record is the one that the first call chose.
            to_resume: No worker is there to begin; `resume`, perhaps with another model, checks what it would use.

        Raises `NotTrusted`, `UntrustedFolder`, `UsageError` or `DefinitionError`, before anything is copied; a key that
        was used for something else is a `RunAlreadyStarted`.
        """
        run_id, named = _id(run), arguments.text("key", key)
        place = None if workspace is None else arguments.a_path("workspace", workspace)
        last = None if at is None else arguments.whole("at", at, 1)
        arguments.flag("to_resume", to_resume)
        self.check_journal()
        async with self._forking:  # two calls with one key must not copy the same files at once
            old = (await self.engine.look(run_id)).run
            if workflow is not None and not isinstance(workflow, Workflow):
                path = arguments.a_path("workflow", workflow)
                workflow = find(self.plugins.readers, str(path), Environment(goal=old.started.input or run_id))
            if named and (made := await fork_with_key(self.engine, run_id, last, workflow, named)):
                return made
            if not to_resume:
                await self.admit(old)
                check_usable(self, old)
            try:
                return await fork_run(self.engine, self.plugins, run_id, last, workflow, place, named, self.folders)
            except RunAlreadyStarted:  # another process was asked the same, or something else, with this key
                made = await fork_with_key(self.engine, run_id, last, workflow, named) if named else None
                if made is None:
                    raise
                return made

    async def resume(
        self,
        run: Run[Any] | str,
        *,
        raises: Mapping[str, float] | None = None,
        accept_edits: bool = False,
        workspace: str | Path | None = None,
        model: str = "",
        base_url: str = "",
        by: str = "",
    ) -> ResumedRun:
        """Resume a run that was interrupted, saved, stopped by a guard, or set aside.

        Args:
            raises: By how much to raise limits, such as `{"turns": 5}`. Even an empty one is an answer where a guard
                asks a person whether the run may continue; left out, that question stays open.
            accept_edits: Files whose changes stopped the run are right as they are.
            workspace: Where it and its children put their files from now on.
            model: For all its agents from now on, in open calls, too.
            base_url: The address of that model's server.

        Raises:
            UntrustedFolder, NotTrusted: It would use a folder or an address that its user has not allowed.
            RunHasEnded: Limits are raised, but it has ended for good. Without `raises`, `ended_before` says so.
            UsageError: It would stop again at once, or needs a model or a tool that this process does not have.
            RunDamaged, DefinitionError: It is not what was written, or its pinned definition is wrong.
        """
        run_id, who = _id(run), arguments.text("by", by)
        raised = None if raises is None else arguments.amounts(raises)
        place = None if workspace is None else arguments.a_path("workspace", workspace)
        spec, address = arguments.text("model", model), arguments.text("base_url", base_url)
        arguments.flag("accept_edits", accept_edits)
        self.check_journal()
        check_here(self, spec)
        if place is not None:
            await self.use_workspace(run_id, place)
        resumed = await resume_run(self, run_id, raised, accept_edits, spec, address, who)
        self._include(await self.engine.root_of(run_id))
        return resumed

    async def retry(self, run: Run[Any] | str, *, model: str = "", base_url: str = "", by: str = "") -> Run[Any]:
        """Make the refused calls of a run and of its children again now; of a run that failed through such a call, that
        one. It keeps its id and its records, and nothing that happened is done again.

        Args:
            model: For all its agents from now on; likewise `base_url`.

        Raises `RunHasEnded` if it ended otherwise, and what `resume` raises.
        """
        run_id, who = _id(run), arguments.text("by", by)
        spec, address = arguments.text("model", model), arguments.text("base_url", base_url)
        self.check_journal()
        check_here(self, spec)
        root = await self.engine.root_of(run_id)
        await check_family(self, root)
        await check_family_usable(self, run_id, spec, address)
        await check_there(self, run_id)
        await change_model(self, run_id, spec, address)
        await put_back(self, root)
        self._include(root)
        return await retry_calls(self, run_id, who)

    async def resume_all(self, *, model: str = "", base_url: str = "") -> ResumedRuns:
        """Prepare every run that has work to do for the worker of this process; nothing changes before all are checked.

        A run that waits for a tool which this process does not have is left to one that has. Raises as `resume` does.
        """
        spec, address = arguments.text("model", model), arguments.text("base_url", base_url)
        self.check_journal()
        check_here(self, spec)
        return await resume_runs(self, spec, address)

    async def take_up(self, run: Run[Any] | str, *, model: str = "", base_url: str = "") -> None:
        """Prepare a run that another process began, and that this one is about to work on. One that has ended stays so.

        Unlike `resume` it does not mind calls of tools that this process does not have: they wait. Raises as it does.
        """
        run_id = _id(run)
        self.check_journal()
        check_here(self)
        await check_family(self, run_id)
        found = (await self.engine.look(run_id)).run
        if not found.ended:
            await self.use_model(found, model, base_url)
        await put_back(self, run_id)
        self._include(run_id)

    async def use_model(self, run: Run[Any] | str, model: str, base_url: str = "") -> None:
        """Have all agents of a run and of its children use another model from now on, in open calls, too.

        Raises `NotTrusted` or `UsageError` if it cannot be used here.
        """
        run_id = _id(run)
        await check_family_usable(self, run_id, model, base_url)
        await change_model(self, run_id, model, base_url)

    async def use_workspace(self, run: Run[Any] | str, workspace: Path) -> None:
        """Have a run and its children put their files there from now on: its user has named the folder."""
        self.check_journal()
        await change_workspace(self, _id(run), workspace)

    def attach(self, folder: Path) -> None:
        """Work in a folder: files of styles in it that were moved are found again."""
        for service in self.plugins.services:
            service.attach(self, folder)

    # What can be said of a run before it continues

    def can_be_resumed(self, run: Run[Any]) -> bool:
        """Whether a run that has ended can be resumed."""
        return run.verdict is not None or self.engine.style(run).ending(run.state).is_resumable

    async def admit(self, run: Run[Any]) -> None:
        """Raise `UntrustedFolder` or `NotTrusted` if a run would use a folder or an address that its user has neither
        chosen nor agreed to, and `UsageError` if its folder is gone. A worker (`working`) sets such runs aside."""
        await check_allowed(self, run)
        await check_there(self, run.id)

    async def is_own_work(self, run: Run[Any]) -> bool:
        """Whether all that a run wants to have done now is what its style does itself, such as writing its file.

        False if nothing is to be done, or if its files are in a folder that the user has not named.
        """
        return wants_own_work(run) and await uses_known_folders(self, run)

    def missing_tools(self, run: Run[Any]) -> list[str]:
        """The tools that a run's definition gives its agents and that this process does not have."""
        used = tools_of(self.engine.style(run), self.engine.definition(run))
        return [tool for tool in used if not self.toolbox.has(tool)]

    def why_missing(self, tool: str) -> str:
        """Why agents cannot call the tool of an MCP server; empty for other tools, and if there is nothing to say."""
        return self.servers.why_missing(tool) if self.servers else ""

    def about_missing(self, tools: Iterable[str]) -> tuple[str, ...]:
        """Why tools are missing, or how to bring them."""
        return about_missing({tool: self.why_missing(tool) for tool in tools})

    def with_prices(self, limits: Limits, models: Iterable[str]) -> Limits:
        """Limits for a run of these models. Raises `UsageError` if money is limited and one of them has no price."""
        return with_prices(limits, models, prices_of(self.settings))


def _id(run: Run[Any] | str) -> str:
    if not isinstance(run, str | Run):
        raise arguments.wrong("run", "a run, or its id (str)", run)
    return run if isinstance(run, str) else run.id
