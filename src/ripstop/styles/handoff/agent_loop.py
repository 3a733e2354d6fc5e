"""Letting agents work on the documents they own, while `docs watch` runs.

In every round the workflows come first and the inbox second. A round begins when something has changed in the
folder; the slow sweep is only a safety net. A file that cannot be read is read again as soon as it is clear that
it is not being written. Agents work side by side, one document each.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import aclosing
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ripstop.app.application import now
from ripstop.app.settings.settings_file import Settings
from ripstop.app.start import absolute_script, check_model, model_meant
from ripstop.app.trust import Trust
from ripstop.engine.performers import Refused, TryAgain
from ripstop.kernel.errors import RunHasEnded, UsageError
from ripstop.kernel.run import Run

from .definition import Role
from .document_view import DocumentView, FolderWarning
from .events import Assignment, WorkRequested
from .file_events import changes
from .folder import INBOX, WORKFLOWS
from .inbox import Inbox, messages
from .reconcile import settles
from .service import HandoffService
from .state import FINAL, HandoffState, asked_of, owner_asked


class HandledMessage(Struct, frozen=True):
    """A message was handled."""

    agent: str
    file: str
    became: str


def check_role_models(settings: Settings, roles: Collection[Role], where: Mapping[str, str]) -> None:
    """Refuse models of roles that cannot be used now, or whose address the user has not chosen.

    Args:
        where: Where a role's model is named, as the beginning of an error, by the role's name.
    """
    for role in roles:
        check_model(model_meant(role.model, settings), where.get(role.name, ""), settings.models.base_url)
    Trust(settings).check_models(model_meant(role.model, settings) for role in roles)


SHORTLY = 0.2
"""Seconds."""


def _names(changed: set[Path]) -> set[str] | None:
    """The files of documents that have changed; none: look at everything."""
    return {path.name for path in changed if path.parent.name == WORKFLOWS} if changed else None


class NamedModel(Struct, frozen=True):
    """What was named for this watch, and so wins over what a document's journal says."""

    model: str = ""
    base_url: str = ""


class Watch:
    def __init__(
        self,
        documents: HandoffService,
        roles: dict[str, Role],
        tell: Callable[[HandledMessage], None],
        sweep: float = 30.0,
        named: NamedModel = NamedModel(),
    ) -> None:
        self._documents = documents
        self._roles = roles
        self._tell = tell
        self._sweep = sweep
        self._named = named
        self._taken_up: set[str] = set()
        """Runs whose calls that were open use what was named."""
        self._stuck: set[HandledMessage] = set()
        """Messages that cannot be put away; each is reported once."""

    async def for_ever(self) -> None:
        """Until this task is cancelled."""
        async with aclosing(self._changes()) as told:
            async for names in told:
                try:
                    await self._round(names)
                except (Refused, TryAgain) as problem:  # the folder itself; it may come back
                    self._documents.warn(FolderWarning(WORKFLOWS, str(problem)))

    async def once(self) -> None:
        """Until nothing is left that an agent could do. What changes meanwhile is noticed, too."""
        worker = self._documents.app.worker
        async with aclosing(self._changes()) as told:
            upcoming = asyncio.ensure_future(anext(told))
            try:
                while True:
                    idle = asyncio.ensure_future(worker.idle())
                    await asyncio.wait([upcoming, idle], return_when=asyncio.FIRST_COMPLETED)
                    at_rest, changed = idle.done(), upcoming.done()
                    idle.cancel()
                    works = await self._round(None if at_rest else upcoming.result())
                    if changed:
                        upcoming = asyncio.ensure_future(anext(told))
                    if at_rest and not works and not worker.busy:
                        return
                    if at_rest:
                        await asyncio.sleep(SHORTLY)  # another process may be working on it
            finally:
                upcoming.cancel()
                await asyncio.wait([upcoming])

    async def _changes(self) -> AsyncGenerator[set[str] | None, None]:
        """The files of documents to look at, each time there are some; none: all of them."""
        root = self._documents.folder.root
        async with aclosing(changes([root / WORKFLOWS, root / INBOX], self._sweep)) as told:
            upcoming = asyncio.ensure_future(anext(told))
            try:
                while True:
                    await asyncio.wait([upcoming], timeout=self._until_settled())
                    if upcoming.done():
                        names = _names(upcoming.result())
                        upcoming = asyncio.ensure_future(anext(told))
                        yield names
                    else:
                        yield set(self._documents.unsettled)
            finally:
                upcoming.cancel()
                await asyncio.wait([upcoming])

    def _until_settled(self) -> float | None:
        """Seconds until a file that could not be read is to be read again; `None` if there is no such file."""
        due = min(self._documents.unsettled.values(), default=None)
        return None if due is None else max(0.0, (due - now()) / 1_000_000)

    async def _round(self, names: Collection[str] | None) -> bool:
        """Give everybody what they can work on; returns whether anybody works."""
        documents = await self._documents.reconcile(names)
        working = [await self._give(document) for document in documents]
        handled = await self._handle_messages()
        return any(working) or handled or bool(self._documents.unsettled)

    async def _give(self, document: DocumentView) -> bool:
        """Whether an agent works on the document, now that it was asked to."""
        role = self._roles.get(document.content.owner)
        if role is None or document.content.status in FINAL:
            return False
        run = await self._documents.state(document.run)
        others = (opened for number, opened in run.open.items() if number != owner_asked(run.open))
        asked = {asked_of(opened.command) for opened in others}
        try:
            if "agent" in asked:
                await self._take_up(run)
            if asked & {"agent", "person"}:
                return "person" not in asked
            run = await self._with_models(run, role)
            wanted = WorkRequested(agent=role.name, assignment=self._assignment(run, role))
            await self._documents.app.engine.tell_fact(document.run, wanted)
        except RunHasEnded:
            return False
        except UsageError as refused:
            self._documents.warn(FolderWarning(document.file, refused.message))
            return False
        return True

    async def _take_up(self, run: Run[HandoffState]) -> None:
        """Have a call that was open before use what was named for this watch."""
        named = self._named
        if (named.model or named.base_url) and run.id not in self._taken_up:
            self._taken_up.add(run.id)
            await self._documents.app.use_model(run, named.model, named.base_url)

    async def _with_models(self, run: Run[HandoffState], role: Role) -> Run[HandoffState]:
        """Record which model the role asks, and where: whichever process makes the call then asks there.

        Without an address of this process it stays where the document's model was asked before.
        """
        app, recorded = self._documents.app, run.settings
        mine = app.settings.models.base_url
        self._taken_up.add(run.id)
        if recorded.model_for_all and not self._named.model:  # somebody chose it for all roles, with its address
            used, address = recorded.model_for_all, self._named.base_url or recorded.base_url or mine
            settings = replace(recorded, base_url=address)
        else:
            used, address = model_meant(role.model, app.settings), mine or recorded.base_url
            settings = replace(recorded, model=absolute_script(used), model_for_all="", base_url=address)
        app.trust.check_models([used], address, run.id)
        if settings != recorded:
            run = await app.engine.change_settings(run.id, settings)
        app.trust.remember_choice([used], address)
        return run

    def _assignment(self, run: Run[HandoffState], role: Role) -> Assignment | None:
        """How the role works, if the journal of this document does not say so yet."""
        assignment = Assignment(role.prompt, role.model, tuple(self._roles))
        return None if run.state.assignment(role.name) == assignment else assignment

    def strangers(self, documents: Collection[DocumentView]) -> list[DocumentView]:
        """Documents that wait for an owner who is not a role here."""
        return [d for d in documents if d.content.status not in FINAL and d.content.owner not in self._roles]

    async def _handle_messages(self) -> bool:
        handled = False
        try:
            found = await messages(self._documents)
        except (Refused, TryAgain) as problem:
            self._documents.warn(FolderWarning(INBOX, str(problem)))
            return False
        inbox = Inbox(self._documents)
        for received in found:
            if received.agent not in self._roles:
                continue
            if received.message is None and (due := settles(received.mtime)):  # it may still be being written
                self._documents.unsettled[f"{INBOX}/{received.agent}/{received.file}"] = due
                continue
            became, away = await inbox.handle(received)
            message = HandledMessage(received.agent, received.file, became)
            if away or message not in self._stuck:
                self._tell(message)
            if not away:
                self._stuck.add(message)
            handled = handled or away
        return handled
