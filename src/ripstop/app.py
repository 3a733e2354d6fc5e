"""Puts the parts together. The only module that knows them all, and where time and ids enter."""

import asyncio
import os
import secrets
import shutil
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ripstop.checks.start import (
    check_model,
    check_models,
    check_roles,
    check_start,
    check_workspace,
    is_local,
    models_of,
    own_workspace,
    tools_of,
    without_links,
)
from ripstop.checks.trust import Trust
from ripstop.definitions.loading import Workflow, find, load
from ripstop.definitions.pinned import check_pinned
from ripstop.files.private_files import OURS
from ripstop.journals.memory import MemoryJournal
from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.kernel.codec import Codec
from ripstop.kernel.effects import AskAgent, CallTool, Limits, Say, SetTimer, StartRun
from ripstop.kernel.errors import JournalError, JournalNotFound, UntrustedFolder, UsageError
from ripstop.kernel.events import OUTCOMES
from ripstop.kernel.run import Run
from ripstop.kernel.step import Style
from ripstop.performers.agents.accounting import Prices, with_prices
from ripstop.performers.agents.model_files import install_model as install_model
from ripstop.performers.agents.router import FOR_ALL, Agents
from ripstop.performers.agents.script_file import script_path
from ripstop.performers.children import Children
from ripstop.performers.handoff.folder import Folder
from ripstop.performers.handoff.publisher import Publisher
from ripstop.performers.handoff.relocation import Relocated, untrusted_folder
from ripstop.performers.handoff.sender import Sender
from ripstop.performers.messages import MessageDelivery
from ripstop.performers.timers import Timers
from ripstop.performers.tools.file_tools import FileTools
from ripstop.performers.tools.toolbox import Tool, Toolbox
from ripstop.performers.tools.workspace_copy import copy_workspace
from ripstop.runtime.engine import Engine
from ripstop.runtime.live import Live
from ripstop.runtime.ports import Journal, Performer, Request, RunInfo
from ripstop.runtime.process_clock import ProcessClock, system_time
from ripstop.runtime.rate_limit import RateLimit
from ripstop.runtime.worker import Worker
from ripstop.security.trusted_folders import TrustedFolders, trusted_folders
from ripstop.settings.default_limits import with_defaults
from ripstop.settings.settings_file import DEFAULT_STORE, Settings, store_path
from ripstop.styles.graph.events import GRAPH_EVENTS
from ripstop.styles.graph.position import SHORT
from ripstop.styles.graph.style import GraphStyle
from ripstop.styles.handoff.events import HANDOFF_EVENTS
from ripstop.styles.handoff.state import PUBLISH, SEND
from ripstop.styles.handoff.style import HandoffStyle

STYLES: dict[str, Style[Any]] = {"graph": GraphStyle(), "handoff": HandoffStyle()}
CODEC = Codec(tuple(dict.fromkeys((*GRAPH_EVENTS, *HANDOFF_EVENTS))))
ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"


def now() -> int:
    """The system's time, for what is not in a journal."""
    return system_time()


async def _never_behind(clock: ProcessClock, journal: Journal) -> ProcessClock:
    with suppress(JournalError):  # a damaged journal can be looked at; what reads it says what is wrong
        clock.follow(await journal.latest())
    return clock


def new_id(name: str) -> str:
    """A run's id: the workflow's name and five characters that are hard to mix up."""
    return f"{name}-{''.join(secrets.choice(ALPHABET) for _ in range(5))}"


class App(Struct, frozen=True):
    """An open journal with an engine and a worker on it."""

    settings: Settings
    engine: Engine
    worker: Worker
    live: Live
    loudspeaker: MessageDelivery
    places: dict[str, Path]
    """Folders of documents that this process works in, by what the ids of their runs begin with."""
    trust: Trust
    """The addresses that may get prompts and keys."""
    folders: TrustedFolders
    """Where runs of this journal can put files."""
    toolbox: Toolbox
    """The tools that this process has."""

    async def start(
        self,
        workflow: Workflow,
        input: str = "",
        workspace: Path | None = None,
        values: dict[str, str] | None = None,
        limits: Limits | None = None,
    ) -> Run[Any]:
        """Start a run of a workflow."""
        model = self.settings.models.default
        run_id = new_id(workflow.name)
        # a run that is resumed from another folder finds its files again
        folder = (workspace or own_workspace(run_id)).resolve()
        models = check_start(self.settings, self.trust.check_models, workflow, folder, values or {})
        for_all = self.settings.model_for_all
        chosen = limits or self.settings.limits
        if self.settings.default_limits:
            chosen = with_defaults(chosen, workflow.style)
        chosen = self.with_prices(chosen, models)
        self.folders.remember(folder)
        settings: dict[str, Any] = {"model": absolute_script(model), "workspace": str(folder)}
        if for_all:
            settings[FOR_ALL] = absolute_script(for_all)
        if self.settings.models.base_url:
            settings["base_url"] = self.settings.models.base_url
        if values:
            settings["values"] = values
        if all(map(is_local, models)):
            settings["guide"] = SHORT
        run = await self.engine.start(
            run_id, workflow.style, workflow.content, input, chosen, settings, guards=self.settings.guards
        )
        if any(one.startswith("openai:") for one in models):
            self.trust.remember_choice()
        return run

    def with_prices(self, limits: Limits, models: Iterable[str]) -> Limits:
        """Limits for a run of these models. Raises `UsageError` if money is limited and one of them has no price."""
        return with_prices(limits, models, _prices(self.settings))

    def check_roles(self) -> None:
        """Refuse models that the settings name for roles, used or not, if they cannot exist."""
        check_roles(self.settings)

    async def check_resumable(self, run_id: str) -> None:
        """Raise unless a run, and all its children that have not ended, can be worked on here.

        Raises:
            RunDamaged: One of them is not what was written.
            DefinitionError: Its pinned definition is wrong.
            UntrustedFolder: It would put files where the user has not allowed it.
        """
        await self.engine.check(run_id)
        runs = await self.engine.runs()
        for one in (run_id, *_children(run_id, runs)):
            await self.engine.check(one)
            run = (await self.engine.look(one)).run
            if run.id.partition(".")[0] in self.places:
                continue  # documents that were moved here
            folder = untrusted_folder(run.settings, self.folders)
            goes_on = not run.ended or run.verdict is not None or self.engine.style(run).resumable(run.state)
            if folder and goes_on:
                raise UntrustedFolder(one, folder)

    async def use_workspace(self, run_id: str, workspace: Path) -> None:
        """Have a run and its children put their files there from now on: its user has named the folder."""
        folder = workspace.resolve()
        check_workspace(folder)
        await self.engine.check(run_id)
        self.folders.remember(folder)
        for one in (run_id, *_children(run_id, await self.engine.runs())):
            run = (await self.engine.look(one)).run
            if "workspace" in run.settings and Path(str(run.settings["workspace"])) != folder:
                await self.engine.use(one, {"workspace": str(folder)})

    def missing_tools(self, run: Run[Any]) -> list[str]:
        """The tools that a run's definition gives its agents and that this process does not have."""
        return [tool for tool in tools_of(self.engine.definition(run)) if not self.toolbox.has(tool)]

    def check_tools(self, run: Run[Any]) -> None:
        """Raise `UsageError` if a call is open that this process cannot carry out: it waits for one that can."""
        for number, opened in run.open.items():
            command = opened.command
            if isinstance(command, CallTool) and not self.toolbox.takes(command):
                raise UsageError(
                    f"{run.id} waits for the tool {command.tool!r} ({run.id}/{number}), which this process does not "
                    "have. Resume it with the program that brings the tool."
                )

    def check_usable(self, run: Run[Any], model: str = "", base_url: str = "") -> None:
        """Check the models and the address that a run would use now, whoever recorded them.

        Raises `NotTrusted` for an address that the user has not chosen, and `UsageError` for a model that cannot be
        used here: it is not installed, or its file, its script or its key is missing.

        `model` and `base_url` are what the caller is about to give it, for all agents.
        """
        recorded = {name: str(run.settings.get(name) or "") for name in ("model", FOR_ALL, "base_url")}
        default = recorded["model"] or self.settings.models.default
        used = replace(
            self.settings,
            model_for_all=model or recorded[FOR_ALL],
            models=replace(
                self.settings.models,
                default=default,
                base_url=base_url or recorded["base_url"] or self.settings.models.base_url,
            ),
        )
        definition = self.engine.definition(run)
        models = models_of(definition, used)
        self.trust.check_models(models, base_url or recorded["base_url"], run.id)
        check_models(definition, used, run.id)

    async def _check_model_for(self, run_id: str, model: str, base_url: str) -> None:
        recorded = (await self.engine.look(run_id)).run.settings.get("base_url")
        if model:
            check_model(model, base_url=base_url or str(recorded or "") or self.settings.models.base_url)

    async def use_model(self, run_id: str, model: str, base_url: str) -> None:
        """Have all agents of a run and of its children use another model from now on, in open calls, too."""
        await self._check_model_for(run_id, model, base_url)
        chosen = {FOR_ALL: absolute_script(model), "base_url": base_url}
        settings = {name: value for name, value in chosen.items() if value}
        children = [info.run_id for info in await self.engine.runs() if info.run_id.startswith(f"{run_id}.")]
        for one in (run_id, *children):
            run = (await self.engine.look(one)).run
            if model:
                self.with_prices(run.limits, (model,))
            used = {**run.settings, FOR_ALL: run.settings.get(FOR_ALL) or run.settings.get("model")}
            if (one == run_id or not run.ended) and not settings.items() <= used.items():
                guide = {"guide": SHORT if is_local(model) else ""} if model else {}
                differs = guide and guide["guide"] != run.settings.get("guide", "")
                await self.engine.use(one, settings | guide if differs else settings)


async def fork(
    engine: Engine,
    run_id: str,
    at: int | None = None,
    definition: bytes | None = None,
    workspace: Path | None = None,
) -> Run[Any]:
    """Go on from a record of a run under a new id and in a folder of its own, so that the old run stays as it is.

    The folder begins as a copy of the old run's files as they are now; one that has files in it is used as it is.
    """
    name = new_id(run_id.rpartition("-")[0] or run_id)
    run = (await engine.look(run_id)).run
    if engine.style(run).unforkable:  # said before anything is copied
        raise UsageError(engine.style(run).unforkable)
    settings: dict[str, Any] = {}
    if at is None:  # what it was told to use since it began is kept, even if it was told after the record we go back to
        began_with = run.started.settings
        settings = {key: value for key, value in run.settings.items() if began_with.get(key) != value}
    if not run.settings.get("workspace"):
        if workspace:
            raise UsageError(f"{run_id!r} has no workspace, so its fork cannot be given one.")
        return await engine.fork(run_id, at, name, definition, settings=settings)
    old, new = Path(run.settings["workspace"]), (workspace or own_workspace(name)).resolve()
    check_workspace(new)
    folders = _folders_of(engine.journal)
    copied = old.is_dir() and not (new.is_dir() and any(new.iterdir()))
    if copied and not folders.cover(old):
        raise UntrustedFolder(run_id, old)
    folders.remember(new)
    if copied:
        try:
            await asyncio.to_thread(copy_workspace, old, new)
        except OSError as error:
            way = "--workspace DIR names a folder that is used as it is, if it has files in it."
            raise UsageError(f"The files of {run_id!r} in {old} cannot be copied to {new}: {error}. {way}") from error
    try:
        return await engine.fork(run_id, at, name, definition, settings={**settings, "workspace": str(new)})
    except UsageError:
        if copied:
            await asyncio.to_thread(shutil.rmtree, new)
        raise


def _children(run_id: str, runs: Iterable[RunInfo]) -> list[str]:
    """The children of a run that have not ended, and theirs."""
    return [info.run_id for info in runs if info.run_id.startswith(f"{run_id}.") and info.status not in OUTCOMES]


def _folders_of(journal: Journal) -> TrustedFolders:
    return trusted_folders(journal.path if isinstance(journal, SqliteJournal) else Path(OURS) / "in-memory")


def _prices(settings: Settings) -> Prices:
    return {name: (price.input, price.output) for name, price in settings.prices.items()}


def absolute_script(model: str) -> str:
    """A script is found again when the run is resumed from another folder."""
    kind, _, path = model.partition(":")
    return f"{kind}:{os.path.realpath(script_path(path))}" if kind == "script" and path else model


def _child_definition(named: str, goal: str) -> tuple[str, bytes]:
    workflow = find(named, goal)
    return workflow.style, workflow.content


def _folder_of(request: Request) -> Folder:
    """Where the document of a run stands."""
    return _folder(request.settings["folder"])


@lru_cache(maxsize=64)
def _folder(path: str) -> Folder:
    return Folder(Path(path))


def open_journal(settings: Settings, create: bool, or_empty: bool = False) -> Journal:
    """Open the journal that the settings name. Without `create` nothing is made.

    Args:
        settings: Name the journal.
        create: Make the journal if it is missing.
        or_empty: Return an empty journal if the default one is missing: a list of what is there is then empty.

    Raises:
        JournalNotFound: It is missing, and neither `create` nor `or_empty` applies. With `or_empty`: it is not the
            default, so somebody named it, perhaps wrongly.
    """
    path = store_path(settings.store)
    if settings.store == DEFAULT_STORE:
        without_links(path, "--store sqlite:PATH")
    try:
        return SqliteJournal(path, CODEC, create)
    except JournalNotFound:
        if not or_empty or settings.store != DEFAULT_STORE:
            raise
        return MemoryJournal(CODEC)


@asynccontextmanager
async def _closing(journal: Journal) -> AsyncIterator[None]:
    """Close the journal at the end. What fails because the file was tampered with is said to be the file's fault."""
    try:
        yield
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, AssertionError) as error:
        damage = await journal.verify()
        if not damage:
            raise  # a bug in ripstop
        where = f"{damage[0].run_id or 'journal'}@{damage[0].number}"
        raise JournalError(
            f"The journal is not what was written ({where}: {damage[0].text}), and cannot be used as it is "
            f"({type(error).__name__}). `ripstop verify` tells more; restore it from a backup."
        ) from error
    finally:
        await journal.close()


@asynccontextmanager
async def open_engine(
    settings: Settings, clock: ProcessClock | None = None, or_empty: bool = False
) -> AsyncIterator[Engine]:
    """Look at and steer the runs of a journal; a worker performs what they ask for. Looking never makes a journal.

    Raises `JournalNotFound`; see `open_journal` for `or_empty`.
    """
    journal = open_journal(settings, create=False, or_empty=or_empty)
    async with _closing(journal):
        clock = await _never_behind(clock or ProcessClock(), journal)
        yield Engine(journal, STYLES, load, clock, check_definition=check_pinned, follow=clock.follow)


@asynccontextmanager
async def open_app(
    settings: Settings, tools: Iterable[Tool] = (), create: bool = True, clock: ProcessClock | None = None
) -> AsyncIterator[App]:
    """Work on a journal: run what is open in it, too."""
    live, loudspeaker, places, trust = Live(), MessageDelivery(), dict[str, Path](), Trust(settings)
    toolbox = Toolbox(tools, files=FileTools(), own={PUBLISH: Publisher(_folder_of), SEND: Sender(_folder_of)})
    journal = open_journal(settings, create)
    clock = await _never_behind(clock or ProcessClock(), journal)
    engine = Engine(journal, STYLES, load, clock, live, check_definition=check_pinned, follow=clock.follow)
    agents = Agents(
        live,
        toolbox.specs,
        default_model=settings.models.default,
        base_url=settings.models.base_url or None,
        prices=_prices(settings),
        roles={"strong": settings.models.strong} if settings.models.strong else {},
        timeout=settings.models.timeout,
        check_address=trust.check,
        key_origins=trust.key_origins,
    )
    performers: dict[type, Performer] = {
        AskAgent: agents,
        CallTool: Relocated(toolbox, places, _folders_of(journal)),
        Say: loudspeaker,
        SetTimer: Timers(),
        StartRun: Children(engine, _child_definition),
    }
    worker = Worker(
        engine,
        performers,
        clock,
        settings.concurrency,
        settings.attempts,
        pace=RateLimit(settings.pace),
        takes=toolbox.takes,
    )
    async with _closing(journal):
        try:
            await worker.start()
            try:
                yield App(settings, engine, worker, live, loudspeaker, places, trust, _folders_of(journal), toolbox)
            finally:
                await asyncio.shield(worker.stop())
        finally:
            await agents.close()
