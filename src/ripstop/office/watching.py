"""Letting agents work on the documents they own, for as long as somebody watches.

In every round the workflows come first and the inbox second. A round begins when something has changed in the
folder; the slow sweep is only a safety net. Agents work side by side, one document each.
"""

import asyncio
from collections.abc import Callable, Collection

from msgspec import Struct

from ripstop.kernel.errors import RunHasEnded
from ripstop.kernel.run import Run
from ripstop.performers.documents.folder import INBOX, WORKFLOWS
from ripstop.performers.documents.watching import changes
from ripstop.styles.handoff.rules import FINAL
from ripstop.styles.handoff.standing import Brief, Standing, asked_of

from .document import Document
from .documents import Documents
from .mail import handle, letters
from .roles import Role


class Mail(Struct, frozen=True):
    """A message was handled."""

    agent: str
    file: str
    became: str


class Watch:
    def __init__(
        self, documents: Documents, roles: dict[str, Role], tell: Callable[[Mail], None], sweep: float = 30.0
    ) -> None:
        self._documents = documents
        self._roles = roles
        self._tell = tell
        self._sweep = sweep

    async def for_ever(self) -> None:
        """Until this task is cancelled."""
        root = self._documents.folder.root
        self._documents.app.worker.only = self._documents.prefix
        async for changed in changes([root / WORKFLOWS, root / INBOX], self._sweep):
            names = {path.name for path in changed if path.parent.name == WORKFLOWS}
            await self._round(names if changed else None)

    async def once(self) -> None:
        """Until nothing is left that an agent of ours could do."""
        self._documents.app.worker.only = self._documents.prefix
        self._documents.app.worker.wake()
        while await self._round(None):
            await self._next_change()

    async def _next_change(self) -> None:
        """Agents report to the journal, and every change of a document leads to its file being written."""
        worker = self._documents.app.worker
        await worker.idle()

    async def _round(self, names: Collection[str] | None) -> bool:
        """Give everybody what they can work on; returns whether anybody works."""
        documents = await self._documents.take_stock(names)
        working = [await self._give(document) for document in documents]
        handled = await self._open_mail()
        return any(working) or handled

    async def _give(self, document: Document) -> bool:
        """Whether an agent of ours works on the document, now that it was asked to."""
        role = self._roles.get(document.paper.owner)
        if role is None or document.paper.status in FINAL:
            return False
        run = await self._documents.state(document.run)
        asked = {asked_of(opened.command) for opened in run.open.values()}
        if "person" in asked:
            return False
        if "agent" in asked:
            return True
        try:
            await self._documents.app.engine.order(document.run, "work", self._brief(run, role), role.name)
        except RunHasEnded:
            return False
        return True

    def _brief(self, run: Run[Standing], role: Role) -> dict[str, object]:
        """How the role works, if the journal of this document does not say so yet."""
        team = tuple(self._roles)
        if run.state.briefs.get(role.name) == Brief(role.prompt, role.model, team):
            return {}
        return {"brief": role.prompt, "model": role.model, "team": team}

    async def _open_mail(self) -> bool:
        handled = False
        for letter in await letters(self._documents):
            if letter.agent in self._roles:
                became = await handle(self._documents, letter)
                self._tell(Mail(letter.agent, letter.file, became))
                handled = True
            await asyncio.sleep(0)
        return handled
