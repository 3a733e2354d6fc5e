"""The documents of a folder: finding them, making new ones, moving them on, cleaning up.

- The journal holds what is true of a document; its file is a view of that, and a door. So before anything is done
  with documents their files are looked at (`stock.py`).
- The id of a document's run follows from the folder's id and the document's (`run_names.py`), so every process finds
  the same run.
- Files are found by what stands in them. Their names mean nothing.
"""

import asyncio
import re
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from ripstop.app import App, now
from ripstop.definitions.problems import did_you_mean
from ripstop.kernel.effects import AskPerson
from ripstop.kernel.errors import RunAlreadyStarted, RunHasEnded, RunNotFound, UsageError
from ripstop.kernel.run import Run
from ripstop.performers.documents.files import Found
from ripstop.performers.documents.folder import OURS, WORKFLOWS, Folder
from ripstop.performers.documents.names import safe
from ripstop.performers.documents.placing import settings_in
from ripstop.performers.documents.publisher import sha_of
from ripstop.runtime.live import Appended, Sight
from ripstop.styles.handoff.drafts import draft
from ripstop.styles.handoff.language import language_of
from ripstop.styles.handoff.paper import Malformed, Paper, oddities, read, write
from ripstop.styles.handoff.policy import Policy
from ripstop.styles.handoff.rules import TERMINATED
from ripstop.styles.handoff.sections import TIMESTAMP, as_id
from ripstop.styles.handoff.standing import OWED, Standing, asked_of
from ripstop.styles.handoff.words import timestamp

from .document import Document, Trouble, Verdict
from .run_names import prefix_of, run_of
from .stock import Stocktaking

_CODED = re.compile("-[0-9a-f]{6}$")
STALE = 3.0
"""Seconds after which a file that somebody else is to write is written by us: that one may be dead."""


class Documents:
    def __init__(self, app: App, root: Path, tell: Callable[[Trouble], None]) -> None:
        self.app = app
        self.folder = Folder(root.resolve())
        self._tell = tell
        self.prefix = prefix_of(self.folder)
        """What the ids of all runs of this folder begin with."""
        app.places[self.prefix] = self.folder.root
        self.unsettled: dict[str, int] = {}
        """Documents and messages that cannot be read and may still be being written, and when to look at them again."""

    def tell(self, trouble: Trouble) -> None:
        self._tell(trouble)

    def run_of(self, document: str) -> str:
        return run_of(self.prefix, document)

    # Looking

    async def take_stock(self, names: Collection[str] | None = None) -> list[Document]:
        """Every document, or those in some files, as they stand after all edits were read back."""
        return await Stocktaking(self).of(names)

    async def find(self, named: str) -> Document:
        """The document with an id, or in a file. Raises `UsageError`."""
        documents = await self.take_stock()
        for document in documents:
            if as_id(named) == document.id or named == document.run or Path(named).name == document.file:
                return document
        known = sorted(document.id for document in documents)
        hint = did_you_mean(named, known) or "there are no documents here yet"
        stop = "" if hint.endswith("?") else "."
        raise UsageError(f"There is no document {named!r} in {self.folder.root}; {hint}{stop}")

    async def state(self, run_id: str) -> Run[Standing]:
        return (await self.app.engine.look(run_id)).run

    async def known(self, document: str) -> Document | None:
        """A document by its id, if there is one."""
        try:
            return self.document(await self.state(self.run_of(document)))
        except RunNotFound:
            return None

    def document(self, run: Run[Standing]) -> Document:
        state = run.state
        odd = tuple(f"line {one.line}: {one.text}" for one in oddities(state.paper))
        questions = [o.command.question for o in run.open.values() if isinstance(o.command, AskPerson)]
        return Document(state.paper.id, run.id, state.file, state.paper, odd, tuple(questions))

    # Making

    async def new(
        self,
        task: str,
        owner: str,
        creator: str,
        kind: str = "task",
        named: str = "",
        next_action: str = "",
        conditions: tuple[str, ...] = (),
        max_interactions: int | None = None,
    ) -> Document:
        """Make a document and its file. The file comes first, whole and under a name of its own; so if this process
        dies before the run is begun, whoever looks next takes the document in."""
        at, language, named = _local_time(), self._language(task), as_id(named)
        limit = max_interactions or self.app.settings.docs.max_interactions
        if named and await self._exists(named):
            raise _taken(named)

        def text(stem: str) -> str:
            # a name that nobody else has makes an id that nobody else has
            document = named or stem.removeprefix("workflow_")
            return write(draft(document, creator, owner, task, at, next_action, conditions, language, limit))

        name = await asyncio.to_thread(self.folder.create, kind, _stamp(at), text)
        written = text(name.removesuffix(".md"))
        document = await self.adopt(name, written, read(written), limit)
        if document.file != name:  # somebody else has made one with this id in the meantime
            await asyncio.to_thread(self.folder.remove, name, sha_of(written))
            raise _taken(document.id)
        return document

    def task(self, document: str, creator: str, owner: str, task: str) -> str:
        """The text of a document that somebody asks for in a message."""
        limit = self.app.settings.docs.max_interactions
        return write(draft(document, creator, owner, task, _local_time(), language=self._language(task), limit=limit))

    async def take(self, text: str, kind: str, sender: str) -> Document:
        """Take in a document that somebody sent. Raises `Malformed`.

        The run comes first and the file is written from it, under a name that nobody else has if `kind` is one that
        nobody else has. So it is known from the beginning who is to get a reply.
        """
        name = f"workflow_{safe(kind)}_{_stamp(_local_time())}.md"
        return await self.adopt(name, text, read(text), sender=sender)

    async def adopt(
        self, name: str, text: str, paper: Paper, max_interactions: int | None = None, sender: str = ""
    ) -> Document:
        """Begin the run of a document; `sender`: who sent it in."""
        docs, root = self.app.settings.docs, self.folder.root
        most = max_interactions or docs.max_interactions
        policy = Policy(
            max_interactions=most, attempts=docs.attempts, language=self._language(paper.task, paper.next_action)
        )
        settings: dict[str, Any] = {
            **settings_in(root),
            "file": name,
            "utc_offset": _utc_offset(),
            "model": self.app.settings.models.default,
        }
        if sender and docs.replies:
            settings["reply_to"] = sender
        run_id = self.run_of(paper.id)
        # a document may wait for days, so the time limit of runs is not for it
        limits = replace(self.app.settings.limits, seconds=None, turns=None)
        limits = self.app.with_prices(limits, (self.app.settings.models.default, *docs.models.values()))
        content = msgspec.json.encode(policy, order="deterministic")
        guards = self.app.settings.guards
        with suppress(RunAlreadyStarted):  # another process has taken it in at the same moment
            await self.app.engine.start(run_id, "handoff", content, text, limits, settings, guards=guards)
        return self.document(await self.written(run_id))

    # Changing

    async def act(self, document: Document, action: str, by: str = "", **given: str) -> Document:
        """Have a transition made. Raises `UsageError` if it is refused; a guard may terminate the document instead."""
        arguments = {name: text for name, text in given.items() if text}
        try:
            told: Run[Standing] = await self.app.engine.order(document.run, action, arguments, by)
        except RunHasEnded:
            raise UsageError(f"{document.id} is {document.paper.status}, which is final.") from None
        # as it stood right after the order: later, others may have been refused something, or have moved it on
        if told.state.refusal and told.state.refused_at == told.length:
            raise UsageError(f"{document.id}: {told.state.refusal.reason}.")
        return self.document(await self.written(document.run))

    async def offer(self, run: Run[Standing], text: str, base: int | None = None, sender: str = "") -> Verdict:
        """Offer another text for a document, as if its file had been edited.

        Args:
            base: The number of the view that was edited; `None` for the last one.
            sender: Who sent the text in a message; empty if it was in the file.
        """
        if base is None:
            base = run.state.views[-1][0] if run.state.views else 0
        offered = {"found": text, "base": base, **({"sender": sender} if sender else {})}
        told: Run[Standing] = await self.app.engine.order(run.id, "edit", offered)
        # as it stood right after the edit: later, others may have been refused something, or have moved it on
        refusal = told.state.refusal if told.state.keep else None
        reason = f"line {refusal.line}: {refusal.reason}" if refusal else ""
        notes = () if told.state.repeated else told.state.notes
        return Verdict(self.document(await self.written(run.id)), reason, notes)

    async def ids(self) -> set[str]:
        """The ids of all documents of this folder that the journal knows."""
        mine, found = f"{self.prefix}.", set()
        for info in await self.app.engine.runs():
            if info.run_id.startswith(mine):
                document = info.run_id.removeprefix(mine)
                # the name of a run differs from the id where the id has signs that names cannot have
                ambiguous = _CODED.search(document) is not None
                found.add((await self.state(info.run_id)).state.paper.id if ambiguous else document)
        return found

    async def written(self, run_id: str) -> Run[Standing]:
        """Wait until the document's file holds what the journal says, or a person is asked why it cannot.

        If the document is finished, wait until whoever is to be told so has been told, too.
        """
        turned = asyncio.Event()

        def watch(sight: Sight) -> None:
            if isinstance(sight, Appended) and sight.run_id == run_id:
                turned.set()

        stop = self.app.live.watch(watch)
        waited_for: set[int] = set()
        try:
            while True:
                turned.clear()
                if self.app.worker.failure:
                    raise self.app.worker.failure
                run = await self.state(run_id)
                writing = {number for number, opened in run.open.items() if asked_of(opened.command) in OWED}
                if not writing:
                    return run
                if writing == waited_for:  # nobody has done anything about it for long
                    with suppress(RunHasEnded):  # or somebody has, just now
                        await self.app.engine.order(run_id, "publish", {})
                    waited_for = set()
                    continue
                waited_for = writing
                with suppress(TimeoutError):
                    async with asyncio.timeout(STALE):
                        await turned.wait()
                        waited_for = set()
        finally:
            stop()

    async def clean(self, days: float, dry_run: bool) -> list[Document]:
        """Delete the files of documents that were terminated so long ago. The journal keeps them."""
        before = now() - int(days * 86_400_000_000)
        oldest = timestamp(before, _utc_offset())
        old = []
        for document in await self.take_stock():
            updated = document.paper.updated
            if document.paper.status != TERMINATED:
                continue
            if updated < oldest if TIMESTAMP.fullmatch(updated) else (await self.state(document.run)).began < before:
                old.append(document)
        for document in old if not dry_run else ():
            await asyncio.to_thread(self.folder.remove, document.file, sha_of(write(document.paper)))
        return old

    # Inside

    async def _exists(self, document: str) -> bool:
        try:
            await self.state(self.run_of(document))
        except RunNotFound:
            found = await asyncio.to_thread(self.folder.documents)
            return any(_id_of(one) == document for one in found)
        return True

    def _language(self, *texts: str) -> str:
        return self.app.settings.docs.language or language_of(*texts)


def know_this_place(app: App, root: Path) -> None:
    """If there are documents in a folder, their runs find their files here, wherever they were begun."""
    if (root / WORKFLOWS / OURS).is_dir():
        app.places[prefix_of(Folder(root.resolve()))] = root.resolve()


def _taken(document: str) -> UsageError:
    return UsageError(f"There is a document {document!r} already. Choose another --id, or leave it out.")


def _id_of(found: Found) -> str:
    try:
        return read(found.text).id if found.text is not None else ""
    except Malformed:
        return ""


def _stamp(at: str) -> str:
    """A document's time as file names have it."""
    return at.replace("-", "").replace(":", "").replace(" ", "_")


def _utc_offset() -> int:
    return time.localtime().tm_gmtoff


def _local_time() -> str:
    return timestamp(now(), _utc_offset())
