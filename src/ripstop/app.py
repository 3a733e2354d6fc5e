"""Puts the parts together. The only module that knows them all, and where time and ids enter.

    async with App("ripstop.toml", tools=[send_mail]) as app:
        run = await app.start("examples/haiku", input="rain")
        result = await app.wait(run)

An `App` is an open journal with an engine, and a worker on what its `scope` says.
"""

import asyncio
import hashlib
import secrets
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ripstop.checks import arguments
from ripstop.checks.start import check_start, inside, tools_of, workspace_for
from ripstop.checks.trust import Trust
from ripstop.continuing import Continuing, prices_of, run_settings
from ripstop.definitions.loading import Workflow, find, locate, read
from ripstop.definitions.reader import Environment
from ripstop.kernel.effects import AnswerChild, AskAgent, AskPerson, CallTool, Limits, Say, SetTimer, StartRun
from ripstop.kernel.errors import DefinitionError, UsageError
from ripstop.kernel.events import Record
from ripstop.kernel.run import Run
from ripstop.opening import closing, folders_of, make_engine, open_journal
from ripstop.performers.agents.model_files import install_model as install_model
from ripstop.performers.agents.router import Agents
from ripstop.performers.answers import ChildAnswers
from ripstop.performers.children import Children
from ripstop.performers.messages import Deliver, Messages
from ripstop.performers.relocation import Relocated
from ripstop.performers.timers import TimerPerformer
from ripstop.performers.tools.modules import load_tools as load_tools
from ripstop.performers.tools.toolbox import Tool
from ripstop.pinning import Pinned, pin_with_folders
from ripstop.plugins import Plugins, installed
from ripstop.runtime.definitions import digest_of
from ripstop.runtime.engine import Attachment, Engine, View
from ripstop.runtime.following import follow, until_settled
from ripstop.runtime.live import Live, LiveEvent
from ripstop.runtime.performers import Performer, Refused
from ripstop.runtime.ports import ALL, DeskQuery, Question, Scope
from ripstop.runtime.process_clock import ProcessClock, system_time
from ripstop.runtime.rate_limit import RateLimit
from ripstop.runtime.sweeper import Admit
from ripstop.runtime.worker import Worker
from ripstop.settings.default_limits import with_defaults
from ripstop.settings.settings_file import Settings, read_settings
from ripstop.tool_servers import server_tools
from ripstop.tool_sources import make_toolbox
from ripstop.webhooks.service import WebhookService, following

CHECK_INTERVAL = 1.0
"""Seconds between two checks whether the worker has given up."""
ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"


def now() -> int:
    """The system's time, for what is not in a journal."""
    return system_time()


def new_id(name: str, seed: str = "") -> str:
    """A run's id: the workflow's name and five characters that are hard to mix up; with a seed, always the same."""
    if not seed:
        return f"{name}-{''.join(secrets.choice(ALPHABET) for _ in range(5))}"
    digest = hashlib.sha256(f"{name}\0{seed}".encode()).digest()
    return f"{name}-{''.join(ALPHABET[byte % len(ALPHABET)] for byte in digest[:10])}"


class App(Continuing):
    """An open journal: runs are started, followed, answered and worked on through it."""

    settings: Settings
    engine: Engine
    live: Live

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
    ) -> None:
        """Args:
        settings: Settings, or the path of a `ripstop.toml` or its folder; left out: of the current folder.
        tools: Functions that agents may call (`@ripstop.tool`).
        channels: How messages on a channel are delivered, by the channel's name.
        plugins: The styles to know; left out: all that are installed.
        scope: What to work on: `ALL` runs of the journal, one `Tree(run)`, `NOTHING` but what this app starts; `None`
            for no worker at all.
        create: Make the journal if it is missing.

        Raises `UsageError` for an argument that is wrong; `NotTrusted`, which is one, if a project's settings name
        modules of tools that the user has not agreed to.
        """
        self.settings = settings if isinstance(settings, Settings) else read_settings(settings_folder(settings))
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
        self._create = create
        self._clock = clock or ProcessClock()
        self._stack = AsyncExitStack()
        self._worker: Worker | None = None

    # Life

    def __getattr__(self, name: str) -> Any:
        """Say what is missing if an app is used that is not open; other names are not there at all."""
        if name in ("engine", "folders"):
            raise UsageError("This app is not open. Use it inside `async with App(…) as app:`.")
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")

    async def __aenter__(self) -> "App":
        if "engine" in vars(self):
            raise UsageError("This app is open already, or was closed. Make another one.")
        journal = open_journal(self.settings, self._create, codec=self.plugins.registry.codec)
        await self._stack.__aenter__()
        try:
            await self._stack.enter_async_context(closing(journal))
            self.folders = folders_of(journal)
            """Where runs of this journal can put files."""
            self.engine = await make_engine(journal, self.plugins, self._clock, self.live)
            self.engine.reread = self._reread
            if self._scope is not None:
                self._worker = await self._stack.enter_async_context(self.working(self._scope))
        except BaseException as error:
            await self._stack.__aexit__(type(error), error, error.__traceback__)
            raise
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._stack.__aexit__(*error)

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
        settings, engine = self.settings, self.engine
        agents = Agents(
            self.live,
            self.toolbox.specs,
            default_model=settings.models.default,
            base_url=settings.models.base_url or None,
            prices=prices_of(settings),
            roles={"strong": settings.models.strong} if settings.models.strong else {},
            timeout=settings.models.timeout,
            check_address=self.trust.check,
            key_origins=self.trust.key_origins,
        )
        messages = Messages(engine, self._channels)
        performers: dict[type, Performer] = {
            AskAgent: agents,
            CallTool: Relocated(self.toolbox, self.places, self.folders),
            AskPerson: messages,
            Say: messages,
            SetTimer: TimerPerformer(),
            StartRun: Children(engine),
            AnswerChild: ChildAnswers(engine),
        }
        worker = Worker(
            engine,
            performers,
            self._clock,
            settings.concurrency,
            settings.attempts,
            rate_limit=RateLimit(settings.rate_limits),
            scope=scope,
            admit=admit,
            patient=patient,
        )
        before = self._worker
        try:
            await worker.start()
            self._worker = worker
            try:
                yield worker
            finally:
                self._worker = before
                await asyncio.shield(worker.stop())
        finally:
            await agents.close()
            if self.servers and before is None:
                await asyncio.shield(self.servers.close())

    def webhooks(self) -> AbstractAsyncContextManager[WebhookService]:
        """Tell the webhooks of the settings what happens, for as long as this is open. Raises `NotTrusted`."""
        self.trust.check_webhooks()
        return following(self.engine, self.settings, self.trust.endpoints)

    # Runs

    async def start(
        self,
        workflow: Workflow | str | Path,
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
            values: KEY=VALUE pairs, as `ripstop run --set` takes them.
            key: With the same key, workflow and input it is the same run, however often it is started.
            model: For all its agents; empty: as settings and definition say.

        Raises `UsageError` or `DefinitionError`, before anything is started.
        """
        goal, key = arguments.text("input", input), arguments.text("key", key)
        chosen = self.settings.limits if limits is None else arguments.limits(limits)
        named_values = arguments.pairs({} if values is None else values)
        if not isinstance(workflow, Workflow):
            named = arguments.a_path("workflow", workflow)
            workflow = find(self.plugins.readers, str(named), Environment(goal=goal))
        style = self.plugins.registry.kits[workflow.style].style
        definition = self.plugins.registry.load(workflow.style, workflow.content)
        given = style.arguments_from(definition, named_values)
        place = None if workspace is None else arguments.a_path("workspace", workspace)
        named_model = arguments.text("model", model)
        return await self.launch(workflow, new_id(workflow.name, key), goal, given, chosen, place, key, named_model)

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
    ) -> Run[Any]:
        """Start a run of a workflow under this id, with start arguments as its style has them.

        `pinned`: its family, if it was read a moment ago: thousands of sessions start with one definition.

        Raises `UsageError` or `DefinitionError`, before anything is started.
        """
        # a run that is resumed from another folder finds its files again
        style = self.plugins.registry.kits[workflow.style].style
        definition = self.plugins.registry.load(workflow.style, workflow.content)
        folder = workspace_for(style, definition, run_id, workspace)
        settings = replace(self.settings, model_for_all=model) if model else self.settings
        models = check_start(settings, self.trust.check_models, style, definition, workflow, folder)
        chosen = self.settings.limits if limits is None else limits
        if self.settings.default_limits:
            chosen = with_defaults(chosen, style.default_limits)
        chosen = self.with_prices(chosen, models)
        pinned = pinned or pin_with_folders(self.plugins, workflow, self.folders)
        if self.servers and self._worker:
            await self.servers.prepare(tools_of(style, definition))
        self.folders.remember(folder)
        is_shared = style.shares_workspace(definition)
        run = await self.engine.start(
            run_id,
            workflow.style,
            workflow.content,
            input,
            given,
            chosen,
            run_settings(settings, folder, inside(folder, workflow.path) if is_shared else (), is_shared, models),
            guards=self.settings.guards,
            pinned=pinned.content,
            definitions=pinned.definitions,
            key=key,
        )
        if any(one.startswith("openai:") for one in models):
            self.trust.remember_choice()
        return run

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

    async def result(self, run: Run[Any] | str) -> Any:
        """The result that a run ended with, or `None`."""
        return await self.engine.result(_id(run))

    def follow(self, run: Run[Any] | str, after: int = 0) -> AsyncIterator[Record | LiveEvent]:
        """What happens to a run: its records after number `after`, and its live events, until it ends."""
        return follow(self.engine, _id(run), after)

    async def send(
        self,
        run: Run[Any] | str,
        text: str,
        by: str = "",
        id: str = "",
        channel: str = "",
        attachments: Sequence[Attachment] = (),
    ) -> Run[Any]:
        """Send a message to a run. Repeating the same id changes nothing.

        Raises `UsageError` if runs of its style never listen.
        """
        words, name = arguments.text("text", text), arguments.text("by", by)
        where, named = arguments.text("channel", channel), arguments.text("id", id)
        attached = arguments.attachments(attachments)
        style = self.engine.style((await self.engine.look(_id(run))).run)
        if not style.may_listen:
            raise UsageError(f"{_id(run)} does not listen: no run of the style {style.name!r} does.")
        return await self.engine.hear(_id(run), words, name, where, named, attached)

    async def desk(self, query: DeskQuery = DeskQuery()) -> list[Question]:
        """What waits for a person."""
        return (await self.engine.desk(arguments.desk_query(query))).items

    async def answer(self, question: Question | str, words: str = "", by: str = "", **answer: Any) -> Run[Any]:
        """Answer a question: in words, or with `choice=`, `document=` and `fields=`."""
        run_id, number = arguments.question(question)
        said, name = arguments.text("words", words), arguments.text("by", by)
        return await self.engine.answer(run_id, number, said, by=name, **arguments.answer_parts(answer))

    async def cancel(self, run: Run[Any] | str, by: str = "", because: str = "") -> Run[Any]:
        return await self.engine.cancel(_id(run), arguments.text("by", by), arguments.text("because", because))

    async def _reread(self, run_id: str) -> bool:
        """Read the definition of a run again from its folder. Raises `Refused` if it is wrong now."""
        run = (await self.engine.look(run_id)).run
        folders = self.engine.style(run).folders(self.engine.definition(run))
        try:
            found = locate(self.plugins.readers, folders[0]) if folders else None
            if found is None or found.reader.style != run.started.style:
                return False
            workflow = read(found, Environment(goal=run.started.input, any_name=True))
            if digest_of(workflow.content) == run.definition:
                return False
            pinned = pin_with_folders(self.plugins, workflow, self.folders)
            await self.engine.redefine(run_id, workflow.content, pinned.content, pinned.definitions)
        except (UsageError, DefinitionError) as error:
            raise Refused(f"Its definition was changed and is wrong now: {error}", "definition") from error
        return True

    def attach(self, folder: Path) -> None:
        """Work in a folder: files of styles in it that were moved are found again."""
        for service in self.plugins.services:
            service.attach(self, folder)


def _id(run: Run[Any] | str) -> str:
    if not isinstance(run, str | Run):
        raise arguments.wrong("run", "a run, or its id (str)", run)
    return run if isinstance(run, str) else run.id


def settings_folder(named: str | Path | None) -> Path:
    """The folder whose settings apply: the one that is named, or that holds the file that is named."""
    if named is None:
        return Path.cwd()
    path = arguments.a_path("settings", named)
    if path.is_dir():
        return path
    if not path.is_file():
        raise UsageError(f"There is no settings file {str(named)!r}.")
    return path.parent
