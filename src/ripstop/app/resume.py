"""What is checked, and what can be changed, before a run continues in this process.

A journal can come from somebody else, and from another machine: so what it names is not used before its user has
allowed it, and not if it cannot work here. The order of the checks is `App.resume`'s.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from ripstop.definitions.loading import locate, read
from ripstop.definitions.reader import Environment
from ripstop.engine.engine import Engine
from ripstop.engine.performers import Refused
from ripstop.engine.pinned_definitions import digest_of
from ripstop.engine.ports import MAX_PAGE, RunInfo, RunQuery
from ripstop.engine.soundness import UNUSABLE
from ripstop.kernel.advice import Advice
from ripstop.kernel.effects import CallTool
from ripstop.kernel.errors import DefinitionError, UntrustedFolder, UsageError
from ripstop.kernel.events import OUTCOMES
from ripstop.kernel.run import Run, waits_for

from .relocation import untrusted_folder
from .start import (
    absolute_script,
    check_model,
    check_models,
    check_roles,
    check_spec,
    check_workspace,
    is_local,
    models_of,
    pin_with_folders,
    with_models_of,
)

if TYPE_CHECKING:
    from .application import App


class ResumedRun(Struct, frozen=True):
    """A run that was to be resumed, after the checks that are made before it continues."""

    run: Run[Any]
    notes: tuple[str, ...] = ()
    """What its user should know about it, such as tools that this process does not have."""
    ended_before: bool = False
    """It has ended and cannot be resumed; nothing was changed."""


class ResumedRuns(Struct, frozen=True):
    runs: tuple[Run[Any], ...]
    notes: tuple[str, ...] = ()
    """Why other runs were left alone."""


# Which runs continue together


async def family_of(engine: Engine, run_id: str) -> list[str]:
    """A run, and its descendants that have not ended."""
    children = await engine.descendants(run_id)
    return [run_id, *(info.run_id for info in children if info.status not in OUTCOMES)]


async def unfinished(engine: Engine) -> list[str]:
    """The runs with work to do, the oldest first; children are resumed with the run that started them."""
    due = await all_runs(engine, RunQuery(statuses=("working", "paused")))
    left = [await engine.journal.run(name) for name in await engine.journal.left_waiting(engine.clock())]
    due += [info for info in left if info]
    return list(dict.fromkeys(info.root for info in sorted(due, key=lambda info: (info.created, info.run_id))))


async def resume_run(
    app: "App", run_id: str, raises: Mapping[str, float] | None, accept_edits: bool, model: str, base_url: str, by: str
) -> ResumedRun:
    """Resume a run, in the one order in which everything is checked; `App.resume` says what is raised."""
    root = await app.engine.root_of(run_id)
    await check_family(app, root)
    await app.engine.check(run_id)
    found = (await app.engine.look(run_id)).run
    goes_on = not found.ended or app.can_be_resumed(found)
    notes: tuple[str, ...] = ()
    if goes_on:
        check_tools(app, found)
        lost = await check_there(app, root)
        notes = (*app.about_missing(app.missing_tools(found)), *lost)
        await check_family_usable(app, run_id, model, base_url)
        await change_model(app, run_id, model, base_url)
    await put_back(app, root)
    if raises is not None or (found.ended and goes_on):
        found = await app.engine.resume(run_id, raises, by, accept_edits)
    elif not found.ended:
        found = await retry_calls(app, run_id, by)
    else:
        found = (await app.engine.look(run_id)).run
    return ResumedRun(found, notes, ended_before=not goes_on)


async def resume_runs(app: "App", model: str, base_url: str) -> ResumedRuns:
    """Prepare every run that has work to do; nothing changes before all are checked."""
    found, notes = list[Run[Any]](), list[str]()
    for run_id in await unfinished(app.engine):
        run = (await app.engine.look(run_id)).run
        try:
            check_tools(app, run)
            notes += await check_there(app, run_id)
        except UsageError as error:
            notes.append(error.message)
        else:
            found.append(run)
    for run in found:
        await check_family(app, run.id)
        await check_family_usable(app, run.id, model, base_url)
    for run in found:
        await change_model(app, run.id, model, base_url)
        await put_back(app, run.id)
        await retry_calls(app, run.id, "")
    return ResumedRuns(tuple(found), tuple(notes))


async def retry_calls(app: "App", run_id: str, by: str) -> Run[Any]:
    """Make the refused calls of a run and of its children again, or the one with which it ended."""
    found = (await app.engine.look(run_id)).run
    if found.ended and found.started.parent:
        info = await app.engine.journal.run(run_id)
        raise UsageError(
            f"{run_id} cannot be retried: {found.started.parent[0]}, which started it, has taken its failure. "
            f"Fork {info.root if info else found.started.parent[0]} instead."
        )
    for one in await family_of(app.engine, run_id):
        if one != run_id and (await app.engine.look(one)).run.refused:
            await app.engine.retry(one, by)
    return await app.engine.retry(run_id, by)


async def failed_since(engine: Engine, since: int) -> list[str]:
    """The runs that a refused call has ended since then, the oldest first. They can be retried, but for children whose
    family has failed with them: of those a retry says why not."""
    found = list[str]()
    failed = await all_runs(engine, RunQuery(statuses=("failed",), since=since))
    names = {info.run_id for info in failed}
    for info in reversed(failed):
        if info.parent and info.root not in names:
            continue  # its parent went on in spite of it
        with suppress(*UNUSABLE):  # one that cannot be read here does not keep the others from being found
            if (await engine.look(info.run_id)).run.failed_call:
                found.append(info.run_id)
    return found


async def all_runs(engine: Engine, query: RunQuery) -> list[RunInfo]:
    """Every run that a query asks for, the newest first."""
    found, query = list[RunInfo](), replace(query, size=MAX_PAGE)
    while True:
        page = await engine.runs(query)
        found += page.items
        if not page.next:
            return found
        query = replace(query, cursor=page.next)


# What is refused


def check_here(app: "App", model: str = "") -> None:
    """Refuse a model that cannot exist, given now or named for a role; find files that were moved here."""
    if model:
        check_spec(model)
    check_roles(app.settings)
    app.attach(Path.cwd())


async def check_family(app: "App", run_id: str) -> None:
    """Refuse a run if it, or a child that has not ended, cannot be worked on here.

    Raises:
        RunDamaged: One of them is not what was written.
        DefinitionError: Its pinned definition is wrong.
        UntrustedFolder: It would put files where the user has not allowed it.
    """
    await app.engine.check(run_id)
    for one in await family_of(app.engine, run_id):
        await app.engine.check(one)
        run = (await app.engine.look(one)).run
        if not run.ended or app.can_be_resumed(run):
            await check_folders(app, run)


async def check_folders(app: "App", run: Run[Any]) -> None:
    """Refuse folders that the journal names and the user has not. Raises `UntrustedFolder`."""
    if run.id.partition(".")[0] in app.places:
        return  # documents that were moved here
    folder = untrusted_folder(run.settings, app.folders)
    if folder:
        raise UntrustedFolder(run.id, folder)
    for named in await document_folders(app.engine, run):
        folder = Path(run.settings.where(named))
        if not app.folders.cover_documents(folder):
            raise UntrustedFolder(run.id, folder, is_workspace=False)


async def check_there(app: "App", run_id: str) -> tuple[str, ...]:
    """Refuse a family whose folder is gone; returns what to say of its files that are."""
    from .run_files import check_files

    return () if run_id in app.places else await check_files(app.engine, run_id)


async def document_folders(engine: Engine, run: Run[Any]) -> list[str]:
    """The folders that the definitions of a run and of what it can start name for documents."""
    registry = engine.registry
    found = [*engine.uses(run).folders]
    for pin in {pin for workflows in (await engine.pins(run)).values() for pin in workflows.values()}:
        if pin.style in registry.kits:
            definition = registry.load(pin.style, await engine.journal.blob(pin.definition))
            found += registry.kits[pin.style].style.uses(definition).folders
    return found


async def check_allowed(app: "App", run: Run[Any]) -> None:
    """Refuse folders and an address that the user has neither chosen nor agreed to."""
    await check_folders(app, run)
    style, definition = app.engine.style(run), app.engine.definition(run)
    models = models_of(style, definition, with_models_of(app.settings, run))
    app.trust.check_models(models, run.settings.base_url, run.id)


def check_tools(app: "App", run: Run[Any]) -> None:
    """Refuse a run with an open call that this process cannot perform: it waits for one that can."""
    offers = app.toolbox.offers()
    for number, opened in run.open.items():
        command = opened.command
        if isinstance(command, CallTool) and f"tool:{command.tool}" not in offers:
            ways = "Resume it with the program that brings the tool, or name its module: --tools MODULE."
            waits = f"{run.id} waits for the tool {command.tool!r} ({run.id}/{number})"
            why = app.why_missing(command.tool) or ways
            raise UsageError(Advice(f"{waits}, which this process does not have. ", why))


def check_usable(app: "App", run: Run[Any], model: str = "", base_url: str = "") -> None:
    """Refuse models and an address that a run would use now, no matter who recorded them.

    Raises `NotTrusted` for an address that the user has not chosen, and `UsageError` for a model that cannot be used
    here: it is not installed, or its file, its script or its key is missing.

    `model` and `base_url` are what the caller is about to give it, for all agents.
    """
    used = with_models_of(app.settings, run, model, base_url)
    style, definition = app.engine.style(run), app.engine.definition(run)
    app.trust.check_models(models_of(style, definition, used), base_url or run.settings.base_url, run.id)
    check_models(style, definition, used, run.id)


async def check_family_usable(app: "App", run_id: str, model: str = "", base_url: str = "") -> None:
    """Refuse what a run and its children that have not ended would use now, as `check_usable` does."""
    for one in await family_of(app.engine, run_id):
        check_usable(app, (await app.engine.look(one)).run, model, base_url)


# What is only said


def about_missing(reasons: Mapping[str, str]) -> tuple[str, ...]:
    """What to say of tools that a process does not have: why, or how to bring those without a reason."""
    notes = list(dict.fromkeys(filter(None, reasons.values())))
    missing = [repr(tool) for tool, reason in reasons.items() if not reason]
    if missing:
        which = "the tool" if len(missing) == 1 else "the tools"
        notes.append(
            f"This process does not have {which} {', '.join(missing)}: calls wait for one that has. Bring them with "
            "--tools MODULE, or from a program."
        )
    return tuple(notes)


def wants_own_work(run: Run[Any]) -> bool:
    """Whether a run has work for a worker, and all of it is what its style does itself."""
    wanted = [opened.command for opened in run.open.values() if waits_for(opened.command) == "worker"]
    return bool(wanted) and all(isinstance(command, CallTool) and not command.agent for command in wanted)


async def uses_known_folders(app: "App", run: Run[Any]) -> bool:
    try:
        await check_folders(app, run)
    except UntrustedFolder:
        return False
    return True


# What can be changed


async def change_workspace(app: "App", run_id: str, workspace: Path) -> None:
    """Have a run and its children put their files there from now on."""
    folder = workspace.resolve()  # noqa: ASYNC240
    check_workspace(folder)
    await app.engine.check(run_id)
    app.folders.remember(folder)
    for one in await family_of(app.engine, run_id):
        settings = (await app.engine.look(one)).run.settings
        if settings.workspace and Path(settings.workspace) != folder:
            await app.engine.change_settings(one, replace(settings, workspace=str(folder)))


async def change_model(app: "App", run_id: str, model: str, base_url: str) -> None:
    """Have all agents of a run and of its children use another model or address; nothing if neither is given.

    A model that is named alone is asked where the run was begun; if its journal does not say where that was, at the
    address of this process, which is recorded with it.
    """
    if not model and not base_url:
        return
    if model:
        recorded = (await app.engine.look(run_id)).run.settings.base_url
        check_model(model, base_url=base_url or recorded or app.settings.models.base_url)
    for one in await family_of(app.engine, run_id):
        run = (await app.engine.look(one)).run
        if model:
            app.with_prices(run.limits, (model,))
        settings = run.settings
        if model and not _uses_only(app, run, absolute_script(model)):
            settings = replace(settings, model_for_all=absolute_script(model), small_model=is_local(model))
        address = base_url or settings.base_url or app.settings.models.base_url
        settings = replace(settings, base_url=address)
        if settings != run.settings:
            run = await app.engine.change_settings(one, settings)
        app.trust.remember_choice(_models_in_use(app, run), settings.base_url)


def _uses_only(app: "App", run: Run[Any], model: str) -> bool:
    """Whether all agents of a run use this model already; one that has a model of its own may not."""
    return {*_models_in_use(app, run)} == {model}


def _models_in_use(app: "App", run: Run[Any]) -> list[str]:
    return models_of(app.engine.style(run), app.engine.definition(run), with_models_of(app.settings, run))


async def put_back(app: "App", run_id: str) -> None:
    """Have workers work again on a run and its children: whatever was wrong with them is not any more."""
    for one in await family_of(app.engine, run_id):
        await app.engine.put_back(one)


async def reread(app: "App", run_id: str) -> bool:
    """Read the definition of a run again from its folder. Raises `Refused` if it is wrong now."""
    run = (await app.engine.look(run_id)).run
    folders = app.engine.uses(run).folders
    try:
        found = locate(app.plugins.readers, folders[0]) if folders else None
        if found is None or found.reader.style != run.started.style:
            return False
        workflow = read(found, Environment(goal=run.started.input, any_name=True))
        if digest_of(workflow.content) == run.definition:
            return False
        pinned = pin_with_folders(app.plugins, workflow, app.folders)
        await app.engine.redefine(run_id, workflow.content, pinned.content, pinned.definitions)
    except (UsageError, DefinitionError) as error:
        raise Refused(f"Its definition was changed and is wrong now: {error}", "definition") from error
    return True
