"""What a person sees while agents work on documents: one line for every change."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
from msgspec.structs import replace

from ripstop.engine.live import Appended, LiveEvent
from ripstop.faces.cli.blocks import ROOMY, print_table, table_width
from ripstop.faces.cli.options import without_tools
from ripstop.faces.cli.screen import ProgressLines
from ripstop.faces.cli.signals import interruption, stop_requested, undisturbed
from ripstop.faces.cli.terminal import keep_working_without_readers, say, say_json
from ripstop.faces.cli.words import EXIT, WAITING, first_line, outage_words
from ripstop.faces.cli.work import say_stopping
from ripstop.faces.next_steps import in_commands
from ripstop.kernel.budget import amount
from ripstop.kernel.effects import AgentReplied
from ripstop.kernel.events import Answered
from ripstop.kernel.limits import BY_RANK, Limit
from ripstop.kernel.run import Spent

from .document_view import DocumentView

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripstop.app.application import App
    from ripstop.app.settings.settings_file import Settings
    from ripstop.faces.cli.options import Options

    from .agent_loop import HandledMessage
    from .document_view import DocumentView, FolderWarning
    from .folder_runs import FolderRuns
    from .reader import FolderRules, Role
    from .service import HandoffService


# Documents, as people see a list of them.


STATUS_COLOURS = {"pending": "cyan", "in_progress": "magenta", "completed": "green", "terminated": "yellow"}


def show_documents(documents: list[DocumentView]) -> None:
    width = table_width()
    roomy = width >= ROOMY
    headings = ("document", "status", "owner", *(("since",) if roomy else ()), "task")
    rows = []
    for one in documents:
        content = one.content
        paused = " (paused)" if one.outage else ""
        status = (f"{content.status}{paused}", STATUS_COLOURS[content.status])
        since = (content.updated,) if roomy else ()
        task = f"(as before the last edit, which cannot be read) {content.task}" if one.unread else content.task
        rows.append((one.id, status, content.owner, *since, first_line(task, 110 if one.unread else 60)))
    print_table(headings, rows, width)


def say_outages(documents: list[DocumentView]) -> None:
    """Say of each paused document who refuses its call, whether it is made again by itself, and how to make it now."""
    for document in documents:
        if outage := document.outage:
            known = outage_words(msgspec.structs.asdict(outage))
            say((f"{document.id} is paused: {first_line(outage.reason, LONGEST_REASON)}", "yellow"), err=True)
            say(f"  {known}  → ripstop retry {outage.root}", err=True)


LONGEST_REASON = 200
INTERRUPTED = 128
STOPPED = EXIT["stopped"]


class DocumentLines(ProgressLines):
    """Prints what happens to the documents of a folder; what other runs do is not shown."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: FolderRuns | None = None
        """The runs of the folder, as soon as they are known."""
        self._warnings: set[FolderWarning] = set()

    def name(self, run_id: str) -> str:
        if self.runs is None or not self.runs.holds(run_id):
            return ""
        return run_id.removeprefix(f"{self.runs.prefix}.")

    def stranger(self, name: str, owner: str) -> None:
        self.line(name, f"waits for {owner}, who is not a role here", "yellow")

    def warning(self, warning: "FolderWarning") -> None:
        if warning not in self._warnings:  # it is found again in every round
            self._warnings.add(warning)
            self.line(warning.file, in_commands(warning.text), "yellow")

    def handled(self, message: "HandledMessage") -> None:
        self.line(f"inbox {message.agent}", f"{message.file}: {message.became}")


class WatchBudget:
    """What the agents of one folder have spent since the command began, and when that is all they may spend."""

    def __init__(self, limits: dict[str, float], holds: "Callable[[str], bool]") -> None:
        self._holds = holds
        """Whether a run is of the folder."""
        self.reached: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Says which limit was reached."""
        self._limits = limits
        self._spent = Spent()
        for limit in self._limited(is_time=True):
            asyncio.get_running_loop().call_later(limits[limit.name], self._reach, limit)

    def see(self, event: LiveEvent) -> None:
        if not isinstance(event, Appended) or not self._holds(event.run_id):
            return
        for record in event.records:
            if isinstance(record.event, Answered) and isinstance(record.event.answer, AgentReplied):
                usage = self._spent.usage.plus(record.event.answer.usage)
                self._spent = replace(self._spent, calls=self._spent.calls + 1, usage=usage)
        for limit in self._limited(is_time=False):
            if amount(self._spent, limit.name) >= self._limits[limit.name]:
                self._reach(limit)

    def _limited(self, is_time: bool) -> list[Limit]:
        return [limit for limit in BY_RANK if limit.name in self._limits and (limit.unit == "s") == is_time]

    def _reach(self, limit: Limit) -> None:
        if not self.reached.done():
            most = f"{self._limits[limit.name]:g}{' s' if limit.unit == 's' else ''}"
            self.reached.set_result(f"The {limit.noun} limit of {most} for this watch is reached.")


async def watch_documents(
    options: "Options", folder: Path, once: bool, only: tuple[str, ...], limits: dict[str, float], drain: float
) -> int:
    from ripstop.app.application import App
    from ripstop.engine.ports import Prefixed

    from .agent_loop import NamedModel, Watch
    from .reader import read_rules, role_files
    from .service import unknown_owners

    settings = options.settings()
    rules = read_rules(folder)
    roles = _roles(options, settings, folder, rules, only)
    async with App(without_tools(settings), scope=None) as app:  # what the worker works on follows from the folder's id
        prefix = (await _identified(app, folder, rules, lambda _: None)).prefix
    async with options.app(settings, scope=Prefixed(prefix)) as app:
        lines = DocumentLines()
        documents = await _identified(app, folder, rules, lines.warning)
        spending = WatchBudget(limits, documents.runs.holds)
        lines.runs = documents.runs
        stops = (app.live.watch(lines.see), app.live.watch(spending.see))
        named = NamedModel(options.model or "", options.base_url or "")
        watch = Watch(documents, roles, lines.handled, named=named)
        interrupted = stop_requested()
        keep_working_without_readers()
        if not once:
            say(f"Watching {folder} for {', '.join(roles)}. Ctrl-C stops; nothing is lost.", err=True)
        working = asyncio.ensure_future(watch.once() if once else watch.for_ever())
        waited: list[asyncio.Future[Any]] = [working, interrupted, spending.reached]
        try:
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                if interrupted.done():
                    say_stopping(app.worker, drain)
                await _cancel(working)
                await app.worker.stop(drain if not spending.reached.done() else 0)
                if spending.reached.done():
                    say(spending.reached.result(), err=True)
                    return STOPPED
                with undisturbed():
                    say(interruption(), err=True)
                return INTERRUPTED + interrupted.result()
            working.result()
            listed = await documents.reconcile()
        finally:
            await _cancel(working)
            for stop in stops:
                stop()
    unknown = {warning.file: warning for warning in unknown_owners(listed, [path.stem for path in role_files(folder)])}
    for document in watch.strangers(listed):
        if document.file in unknown:
            lines.warning(unknown[document.file])
        else:
            lines.stranger(document.id, document.content.owner)
    return _result(options, listed, lines.stopped)


async def _cancel(working: "asyncio.Future[None]") -> None:
    """Cancel once, and wait: another cancellation would close a generator that is still running."""
    if not working.done():
        working.cancel()
        await asyncio.wait([working])


async def _identified(
    app: "App", folder: Path, rules: "FolderRules", warn: "Callable[[FolderWarning], None]"
) -> "HandoffService":
    """The documents of a folder, which gets an id if it is there."""
    from .service import open_documents

    documents = await open_documents(app, folder, warn, rules)
    if not await _is_missing(documents):
        await documents.identify()
    return documents


async def _is_missing(documents: "HandoffService") -> bool:
    """Whether the journal has documents of a folder that is not there."""
    return not await asyncio.to_thread(documents.folder.is_there) and bool(await documents.ids())


def _roles(
    options: "Options", settings: "Settings", folder: Path, rules: "FolderRules", only: tuple[str, ...]
) -> "dict[str, Role]":
    """The roles that are to be played, each with a model that can be used."""
    from ripstop.app.start import absolute_script

    from .agent_loop import check_role_models
    from .reader import FILE, read_roles
    from .service import in_force

    # a model that is named for this call is meant for all roles
    models = {} if options.model else in_force(settings.docs, rules).models
    roles = read_roles(folder, models, "[docs.models]", absolute_script(settings.models.default))
    unknown = [name for name in only if name not in roles]
    if unknown or not roles:
        wanted = f"There is no role {unknown[0]!r}" if unknown else "There are no roles"
        file = folder / "roles" / f"{unknown[0] if unknown else 'NAME'}.md"
        have = f" There are: {', '.join(roles)}." if roles else ""
        raise click.UsageError(f"{wanted}: write {file}.{have}")
    chosen = {name: role for name, role in roles.items() if not only or name in only}
    for role in chosen.values():
        if role.workflow:
            ways = f"Run the folder (`ripstop run {folder}`), or name the other roles."
            raise click.UsageError(f"{role.name!r} is a workflow, which `docs watch` does not start. {ways}")
    from_file = () if options.model else rules.models
    where = {name: f"{folder / FILE}: the model of {name!r}: " for name in chosen if name in from_file}
    check_role_models(settings, chosen.values(), where)
    return chosen


def _result(options: "Options", documents: "list[DocumentView]", stopped: bool) -> int:
    """Show the state of the documents; returns the exit code for it."""
    from .document_view import plain

    if options.as_json:
        say_json({"documents": [plain(document) for document in documents]})
    elif documents:
        show_documents(documents)
    say_outages(documents)
    if any(document.questions for document in documents):
        say("A person is asked: ripstop desk", err=True)
    if any(document.questions or document.outage for document in documents):
        return WAITING
    return STOPPED if stopped else 0
