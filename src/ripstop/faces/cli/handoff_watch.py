"""What a person sees while agents work on documents: one line for every change."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ripstop.kernel.effects import AgentReplied, AskAgent, AskPerson
from ripstop.kernel.events import Answered, Asked, GuardTripped, Warned
from ripstop.runtime.live import Appended, Began, LiveEvent, Retrying

from .output import keep_working_without_readers
from .signals import STOPPING, interruption, stop_requested, undisturbed
from .summary import EXIT, GRACE, WAITING
from .terminal import say, say_json

if TYPE_CHECKING:
    from ripstop.services.handoff.agent_loop import Mail
    from ripstop.services.handoff.roles import Role
    from ripstop.services.handoff.service import HandoffService
    from ripstop.services.handoff.view import Document, Trouble
    from ripstop.settings.settings_file import Settings

    from .options import Options

INTERRUPTED = 128
STOPPED = EXIT["stopped"]
LIMITED = {
    "calls": "call limit of {:g}",
    "tokens": "token limit of {:g}",
    "money": "cost limit of {:g}",
    "seconds": "time limit of {:g} s",
}


class Lines:
    """Prints what happens; with `--json` to stderr, because stdout is for the document at the end."""

    def __init__(self) -> None:
        self.prefix = ""
        """What the ids of the runs begin with that are of interest."""
        self._troubles: set[Trouble] = set()
        self._shown: dict[str, tuple[str, str]] = {}
        self.stopped = False
        """A guard has stopped something."""

    def see(self, sight: LiveEvent) -> None:
        if not sight.run_id.startswith(self.prefix):
            return
        name = sight.run_id.removeprefix(self.prefix)
        match sight:
            case Began(command=AskAgent(agent=agent)):
                self._say(name, f"{agent} is at work")
            case Retrying(reason=reason, seconds=wait):
                self._say(name, f"again in {wait:.1f} s: {reason}", "yellow")
            case Appended(records=records, picture=picture):
                for record in records:
                    self._tell(name, record.event)
                standing = (picture.where, picture.whose_turn)
                if self._shown.get(name) != standing:
                    self._shown[name] = standing
                    whose = f", {picture.whose_turn}'s" if picture.whose_turn else ""
                    self._say(name, f"{picture.where}{whose} ({picture.progress})", "green")

    def _tell(self, name: str, event: object) -> None:
        match event:
            case Warned(text=text):
                self._say(name, f"warning: {text}", "yellow")
            case GuardTripped(guard=guard, text=text):
                self.stopped = True
                self._say(name, f"guard {guard}: {text}", "yellow")
            case Asked(command=AskPerson(question=question)):
                self._say(name, f"a person is asked: {question}   → ripstop desk", "magenta")

    def stranger(self, name: str, owner: str) -> None:
        self._say(name, f"waits for {owner}, who is no role here", "yellow")

    def trouble(self, trouble: "Trouble") -> None:
        if trouble not in self._troubles:  # it is found again in every round
            self._troubles.add(trouble)
            self._say(trouble.file, trouble.text, "yellow")

    def mail(self, mail: "Mail") -> None:
        self._say(f"inbox {mail.agent}", f"{mail.file}: {mail.became}")

    def _say(self, name: str, text: str, colour: str = "") -> None:
        say((name, "bold"), "  ", (text, colour), err=True)


class _Spending:
    """What the agents of one folder have spent since the command began, and when that is all they may spend."""

    def __init__(self, limits: dict[str, float]) -> None:
        self.prefix = ""
        self.reached: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Says which limit was reached."""
        self._limits = limits
        self._spent = {"calls": 0.0, "tokens": 0.0, "money": 0.0}
        if "seconds" in limits:
            asyncio.get_running_loop().call_later(limits["seconds"], self._reach, "seconds")

    def see(self, sight: LiveEvent) -> None:
        if not isinstance(sight, Appended) or not sight.run_id.startswith(self.prefix):
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
    from ripstop.app import open_app
    from ripstop.services.handoff.agent_loop import Watch
    from ripstop.services.handoff.service import open_documents

    settings = options.settings()
    roles = _roles(options, settings, folder, only)
    async with open_app(settings) as app:
        app.worker.only = ""
        app.trust.check_models(role.model for role in roles.values())
        lines = Lines()
        documents = await open_documents(app, folder, lines.trouble)
        if not await _is_missing(documents):
            await documents.identify()
        spending = _Spending(limits)
        lines.prefix = spending.prefix = f"{documents.prefix}."
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
    for document in watch.strangers(stock):
        lines.stranger(document.id, document.paper.owner)
    return _result(options, stock, lines.stopped)


async def _is_missing(documents: "HandoffService") -> bool:
    """Whether the journal has documents of a folder that is not there."""
    return not await asyncio.to_thread(documents.folder.is_there) and bool(await documents.ids())


def _roles(options: "Options", settings: "Settings", folder: Path, only: tuple[str, ...]) -> "dict[str, Role]":
    """The roles that are to be played, each with a model that can be used."""
    from ripstop.app import absolute_script
    from ripstop.checks.start import check_model
    from ripstop.services.handoff.roles import read_roles

    # a model that is named for this call is meant for all roles
    models = {} if options.model else settings.docs.models
    roles = read_roles(folder, models, absolute_script(settings.models.default))
    unknown = [name for name in only if name not in roles]
    if unknown or not roles:
        wanted = f"There is no role {unknown[0]!r}" if unknown else "There are no roles"
        file = folder / "roles" / f"{unknown[0] if unknown else 'NAME'}.md"
        have = f" There are: {', '.join(roles)}." if roles else ""
        raise click.UsageError(f"{wanted}: write {file}.{have}")
    chosen = {name: role for name, role in roles.items() if not only or name in only}
    for role in chosen.values():
        check_model(role.model, base_url=settings.models.base_url)
    return chosen


def _result(options: "Options", stock: "list[Document]", stopped: bool) -> int:
    """Show how the documents stand; returns the exit code that says so."""
    from ripstop.services.handoff.view import plain

    from .tables import show_documents

    if options.as_json:
        say_json({"documents": [plain(document) for document in stock]})
    elif stock:
        show_documents(stock)
    if any(document.questions for document in stock):
        say("A person is asked: ripstop desk", err=True)
        return WAITING
    return STOPPED if stopped else 0
