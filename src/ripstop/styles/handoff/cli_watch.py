"""What a person sees while agents work on documents: one line for every change."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ripstop.engine.live import Appended, LiveEvent
from ripstop.faces.cli.blocks import ROOMY, print_table, table_width
from ripstop.faces.cli.options import without_tools
from ripstop.faces.cli.screen import ProgressLines
from ripstop.faces.cli.signals import STOPPING, interruption, stop_requested, undisturbed
from ripstop.faces.cli.terminal import keep_working_without_readers, say, say_json
from ripstop.faces.cli.words import EXIT, GRACE, WAITING, first_line
from ripstop.kernel.effects import AgentReplied
from ripstop.kernel.events import Answered

from .document_view import DocumentView

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripstop.app.application import App
    from ripstop.app.settings.settings_file import Settings
    from ripstop.faces.cli.options import Options

    from .agent_loop import Mail
    from .document_view import DocumentView, Trouble
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
        paper = one.paper
        status = (paper.status, STATUS_COLOURS[paper.status])
        since = (paper.updated,) if roomy else ()
        task = f"(as before the last edit, which cannot be read) {paper.task}" if one.unread else paper.task
        rows.append((one.id, status, paper.owner, *since, first_line(task, 110 if one.unread else 60)))
    print_table(headings, rows, width)


INTERRUPTED = 128
STOPPED = EXIT["stopped"]
LIMITED = {
    "calls": "call limit of {:g}",
    "tokens": "token limit of {:g}",
    "money": "cost limit of {:g}",
    "seconds": "time limit of {:g} s",
}


class DocumentLines(ProgressLines):
    """Prints what happens to the documents of a folder; what other runs do is not shown."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: FolderRuns | None = None
        """The runs of the folder, as soon as they are known."""
        self._troubles: set[Trouble] = set()

    def name(self, run_id: str) -> str:
        if self.runs is None or not self.runs.holds(run_id):
            return ""
        return run_id.removeprefix(f"{self.runs.prefix}.")

    def stranger(self, name: str, owner: str) -> None:
        self.line(name, f"waits for {owner}, who is not a role here", "yellow")

    def trouble(self, trouble: "Trouble") -> None:
        if trouble not in self._troubles:  # it is found again in every round
            self._troubles.add(trouble)
            self.line(trouble.file, trouble.text, "yellow")

    def mail(self, mail: "Mail") -> None:
        self.line(f"inbox {mail.agent}", f"{mail.file}: {mail.became}")


class _Spending:
    """What the agents of one folder have spent since the command began, and when that is all they may spend."""

    def __init__(self, limits: dict[str, float], runs: "FolderRuns") -> None:
        self._runs = runs
        self.reached: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Says which limit was reached."""
        self._limits = limits
        self._spent = {"calls": 0.0, "tokens": 0.0, "money": 0.0}
        if "seconds" in limits:
            asyncio.get_running_loop().call_later(limits["seconds"], self._reach, "seconds")

    def see(self, sight: LiveEvent) -> None:
        if not isinstance(sight, Appended) or not self._runs.holds(sight.run_id):
            return
        for record in sight.records:
            if isinstance(record.event, Answered) and isinstance(record.event.answer, AgentReplied):
                usage = record.event.answer.usage
                for name, amount in (("calls", 1), ("tokens", usage.tokens), ("money", usage.money)):
                    self._spent[name] += amount
        for name, spent in self._spent.items():
            if name in self._limits and spent >= self._limits[name]:
                self._reach(name)

    def _reach(self, name: str) -> None:
        if not self.reached.done():
            self.reached.set_result(f"The {LIMITED[name].format(self._limits[name])} for this watch is reached.")


async def watch_documents(
    options: "Options", folder: Path, once: bool, only: tuple[str, ...], limits: dict[str, float]
) -> int:
    from ripstop.app.application import App
    from ripstop.app.start import model_meant
    from ripstop.engine.ports import Prefixed

    from .agent_loop import Watch
    from .reader import read_rules, role_files
    from .service import unknown_owners

    settings = options.settings()
    rules = read_rules(folder)
    roles = _roles(options, settings, folder, rules, only)
    async with App(without_tools(settings), scope=None) as app:  # what the worker works on follows from the folder's id
        prefix = (await _identified(app, folder, rules, lambda _: None)).prefix
    async with options.app(settings, scope=Prefixed(prefix)) as app:
        app.trust.check_models(model_meant(role.model, settings) for role in roles.values())
        lines = DocumentLines()
        documents = await _identified(app, folder, rules, lines.trouble)
        spending = _Spending(limits, documents.runs)
        lines.runs = documents.runs
        stops = (app.live.watch(lines.see), app.live.watch(spending.see))
        watch = Watch(documents, roles, lines.mail)
        interrupted = stop_requested()
        keep_working_without_readers()
        if not once:
            say(f"Watching {folder} for {', '.join(roles)}. Ctrl-C stops; nothing is lost.", err=True)
        working = asyncio.ensure_future(watch.once() if once else watch.for_ever())
        waited: list[asyncio.Future[Any]] = [working, interrupted, spending.reached]
        try:
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                working.cancel()
                if interrupted.done():
                    say(STOPPING, err=True)
                await app.worker.stop(GRACE if not spending.reached.done() else 0)
                if spending.reached.done():
                    say(spending.reached.result(), err=True)
                    return STOPPED
                with undisturbed():
                    say(interruption(), err=True)
                return INTERRUPTED + interrupted.result()
            working.result()
            stock = await documents.take_stock()
        finally:
            for stop in stops:
                stop()
    unknown = {trouble.file: trouble for trouble in unknown_owners(stock, [path.stem for path in role_files(folder)])}
    for document in watch.strangers(stock):
        if document.file in unknown:
            lines.trouble(unknown[document.file])
        else:
            lines.stranger(document.id, document.paper.owner)
    return _result(options, stock, lines.stopped)


async def _identified(
    app: "App", folder: Path, rules: "FolderRules", tell: "Callable[[Trouble], None]"
) -> "HandoffService":
    """The documents of a folder, which gets an id if it is there."""
    from .service import open_documents

    documents = await open_documents(app, folder, tell, rules)
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
    from ripstop.app.application import absolute_script
    from ripstop.app.start import check_model, model_meant

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
        from_file = role.name in rules.models and not options.model
        where = f"{folder / FILE}: the model of {role.name!r}: " if from_file else ""
        check_model(model_meant(role.model, settings), where, settings.models.base_url)
    return chosen


def _result(options: "Options", stock: "list[DocumentView]", stopped: bool) -> int:
    """Show the state of the documents; returns the exit code for it."""
    from .document_view import plain

    pass  # merged

    if options.as_json:
        say_json({"documents": [plain(document) for document in stock]})
    elif stock:
        show_documents(stock)
    if any(document.questions for document in stock):
        say("A person is asked: ripstop desk", err=True)
        return WAITING
    return STOPPED if stopped else 0
