"""Puts the parts together. The only module that knows them all, and where time and ids enter.

    async with App("ripstop.toml", tools=[send_mail]) as app:
        run = await app.start("examples/haiku", input="rain")
        result = await app.wait(run)

An `App` is an open journal with an engine, and a worker on what its `scope` says.
"""

import asyncio
import hashlib
import os
import secrets
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ripstop.app.settings.default_limits import with_defaults
from ripstop.app.settings.settings_file import Settings, read_settings
from ripstop.app.webhooks.service import WebhookService, following
from ripstop.definitions.loading import Workflow, find, locate, read
from ripstop.definitions.reader import Environment
from ripstop.engine.children import ChildAnswers, Children
from ripstop.engine.clock import ProcessClock, system_time
from ripstop.engine.engine import Attachment, Engine, View
from ripstop.engine.following import follow, until_settled
from ripstop.engine.live import Live, LiveEvent
from ripstop.engine.messages import Deliver, Messages
from ripstop.engine.performers import Performer, Refused, TimerPerformer
from ripstop.engine.pinned_definitions import digest_of
from ripstop.engine.ports import ALL, DeskQuery, Question, Scope
from ripstop.engine.rate_limit import RateLimit
from ripstop.engine.sweeper import Admit
from ripstop.engine.worker import Worker
from ripstop.kernel.effects import AnswerChild, AskAgent, AskPerson, CallTool, Limits, Say, SetTimer, StartRun
from ripstop.kernel.errors import DefinitionError, UntrustedFolder, UsageError
from ripstop.kernel.events import OUTCOMES, Record, RunSettings
from ripstop.kernel.run import Run, waits_for
from ripstop.models.accounting import Prices, with_prices
from ripstop.models.model_files import install_model as install_model
from ripstop.models.router import Agents
from ripstop.models.scripted import script_path
from ripstop.security.consent import TrustedFolders
from ripstop.tools.mcp.servers import ServerTools
from ripstop.tools.toolbox import Tool, Toolbox
from ripstop.tools.toolbox import load_tools as load_tools

from . import arguments
from .plugins import Plugins, installed
from .relocation import Relocated, untrusted_folder
from .start import (
    Pinned,
    check_model,
    check_models,
    check_roles,
    check_start,
    check_workspace,
    inside,
    is_local,
    models_of,
    pin_with_folders,
    tools_of,
    workspace_for,
)
from .stores import closing, folders_of, make_engine, open_journal
from .toolbox import make_toolbox, server_tools
from .trust import Trust

# What is checked and changed before a run continues: its folders, models, addresses and tools.


class Continuing:
    """The half of an `App` that is about runs which another process began."""

    settings: Settings
    engine: Engine
    trust: Trust
    folders: TrustedFolders
    toolbox: Toolbox
    servers: ServerTools | None
    places: dict[str, Path]

    def with_prices(self, limits: Limits, models: Iterable[str]) -> Limits:
        """Limits for a run of these models. Raises `UsageError` if money is limited and one of them has no price."""
        return with_prices(limits, models, prices_of(self.settings))

    def check_roles(self) -> None:
        """Refuse models that the settings name for roles, used or not, if they cannot exist."""
        check_roles(self.settings)

    async def _family(self, run_id: str) -> list[str]:
        """A run, and its descendants that have not ended."""
        children = await self.engine.descendants(run_id)
        return [run_id, *(info.run_id for info in children if info.status not in OUTCOMES)]

    async def check_resumable(self, run_id: str) -> None:
        """Raise unless a run, and all its children that have not ended, can be worked on here.

        Raises:
            RunDamaged: One of them is not what was written.
            DefinitionError: Its pinned definition is wrong.
            UntrustedFolder: It would put files where the user has not allowed it.
        """
        await self.engine.check(run_id)
        for one in await self._family(run_id):
            await self.engine.check(one)
            run = (await self.engine.look(one)).run
            if not run.ended or run.verdict is not None or self.engine.style(run).resumable(run.state):
                await self._check_folders(run)
        for one in await self._family(run_id):
            await self.engine.journal.set_aside(one, "")  # whatever was wrong with it is not any more

    async def _check_folders(self, run: Run[Any]) -> None:
        if run.id.partition(".")[0] in self.places:
            return  # documents that were moved here
        folder = untrusted_folder(run.settings, self.folders)
        if folder:
            raise UntrustedFolder(run.id, folder)
        for named in await self._document_folders(run):
            if not self.folders.cover_documents(Path(named)):
                raise UntrustedFolder(run.id, Path(named), is_workspace=False)

    async def _document_folders(self, run: Run[Any]) -> list[str]:
        """The folders that the definitions of a run and of what it can start name for documents."""
        registry, journal = self.engine.registry, self.engine.journal
        found = [*self.engine.style(run).folders(self.engine.definition(run))]
        for pin in {pin for workflows in (await self.engine.pins(run)).values() for pin in workflows.values()}:
            if pin.style in registry.kits:
                definition = registry.load(pin.style, await journal.blob(pin.definition))
                found += registry.kits[pin.style].style.folders(definition)
        return found

    async def check_allowed(self, run: Run[Any]) -> None:
        """Raise `UntrustedFolder` or `NotTrusted` if a run would use a folder or an address that its user has neither
        chosen nor agreed to."""
        await self._check_folders(run)
        style, definition = self.engine.style(run), self.engine.definition(run)
        self.trust.check_models(models_of(style, definition, self._used(run)), run.settings.base_url, run.id)

    async def use_workspace(self, run_id: str, workspace: Path) -> None:
        """Have a run and its children put their files there from now on: its user has named the folder."""
        folder = workspace.resolve()
        check_workspace(folder)
        await self.engine.check(run_id)
        self.folders.remember(folder)
        for one in await self._family(run_id):
            settings = (await self.engine.look(one)).run.settings
            if settings.workspace and Path(settings.workspace) != folder:
                await self.engine.change_settings(one, replace(settings, workspace=str(folder)))

    async def is_own_work(self, run: Run[Any]) -> bool:
        """Whether all that a run wants to have done now is what its style does itself, such as writing its file.

        False if nothing is to be done, or if its files are in a folder that the user has not named.
        """
        wanted = [opened.command for opened in run.open.values() if waits_for(opened.command) == "worker"]
        if not wanted or not all(isinstance(command, CallTool) and not command.agent for command in wanted):
            return False
        try:
            await self._check_folders(run)
        except UntrustedFolder:
            return False
        return True

    def missing_tools(self, run: Run[Any]) -> list[str]:
        """The tools that a run's definition gives its agents and that this process does not have."""
        used = tools_of(self.engine.style(run), self.engine.definition(run))
        return [tool for tool in used if not self.toolbox.has(tool)]

    def why_missing(self, tool: str) -> str:
        """Why agents cannot call the tool of an MCP server; empty for other tools, and if there is nothing to say."""
        return self.servers.why_missing(tool) if self.servers else ""

    def check_tools(self, run: Run[Any]) -> None:
        """Raise `UsageError` if a call is open that this process cannot perform: it waits for one that can."""
        offers = self.toolbox.offers()
        for number, opened in run.open.items():
            command = opened.command
            if isinstance(command, CallTool) and f"tool:{command.tool}" not in offers:
                why = self.why_missing(command.tool)
                ways = "Resume it with the program that brings the tool, or name its module: --tools MODULE."
                raise UsageError(
                    f"{run.id} waits for the tool {command.tool!r} ({run.id}/{number}), which this process does not "
                    f"have. {why or ways}"
                )

    def check_usable(self, run: Run[Any], model: str = "", base_url: str = "") -> None:
        """Check the models and the address that a run would use now, no matter who recorded them.

        Raises `NotTrusted` for an address that the user has not chosen, and `UsageError` for a model that cannot be
        used here: it is not installed, or its file, its script or its key is missing.

        `model` and `base_url` are what the caller is about to give it, for all agents.
        """
        used = self._used(run, model, base_url)
        style, definition = self.engine.style(run), self.engine.definition(run)
        models = models_of(style, definition, used)
        self.trust.check_models(models, base_url or run.settings.base_url, run.id)
        check_models(style, definition, used, run.id)

    def _used(self, run: Run[Any], model: str = "", base_url: str = "") -> Settings:
        """The settings with which a run would continue."""
        recorded = run.settings
        return replace(
            self.settings,
            model_for_all=model or recorded.model_for_all,
            models=replace(
                self.settings.models,
                default=recorded.model or self.settings.models.default,
                base_url=base_url or recorded.base_url or self.settings.models.base_url,
            ),
        )

    async def use_model(self, run_id: str, model: str, base_url: str) -> None:
        """Have all agents of a run and of its children use another model from now on, in open calls, too."""
        recorded = (await self.engine.look(run_id)).run.settings.base_url
        if model:
            check_model(model, base_url=base_url or recorded or self.settings.models.base_url)
        for one in await self._family(run_id):
            run = (await self.engine.look(one)).run
            if model:
                self.with_prices(run.limits, (model,))
            settings = run.settings
            if model and (settings.model_for_all or settings.model) != absolute_script(model):
                small = is_local(model)
                settings = replace(settings, model_for_all=absolute_script(model), small_model=small)
            if base_url:
                settings = replace(settings, base_url=base_url)
            if settings != run.settings:
                await self.engine.change_settings(one, settings)


def prices_of(settings: Settings) -> Prices:
    return {name: (price.input, price.output) for name, price in settings.prices.items()}


def absolute_script(model: str) -> str:
    """A script is found again when the run is resumed from another folder."""
    kind, _, path = model.partition(":")
    return f"{kind}:{os.path.realpath(script_path(path))}" if kind == "script" and path else model


def run_settings(
    settings: Settings, workspace: Path, read_only: tuple[str, ...], is_shared: bool, models: list[str]
) -> RunSettings:
    return RunSettings(
        model=absolute_script(settings.models.default),
        model_for_all=absolute_script(settings.model_for_all),
        base_url=settings.models.base_url,
        workspace=str(workspace),
        shared_workspace=is_shared,
        read_only=read_only,
        small_model=all(map(is_local, models)),
    )


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
