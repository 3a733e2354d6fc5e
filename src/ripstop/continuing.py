"""What is checked and changed before a run continues: its folders, models, addresses and tools."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ripstop.checks.start import check_model, check_models, check_roles, check_workspace, is_local, models_of, tools_of
from ripstop.checks.trust import Trust
from ripstop.kernel.effects import CallTool, Limits
from ripstop.kernel.errors import UntrustedFolder, UsageError
from ripstop.kernel.events import OUTCOMES, RunSettings
from ripstop.kernel.run import Run, waits_for
from ripstop.performers.agents.accounting import Prices, with_prices
from ripstop.performers.agents.script_file import script_path
from ripstop.performers.relocation import untrusted_folder
from ripstop.performers.tools.mcp.servers import ServerTools
from ripstop.performers.tools.toolbox import Toolbox
from ripstop.runtime.engine import Engine
from ripstop.security.trusted_folders import TrustedFolders
from ripstop.settings.settings_file import Settings


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
