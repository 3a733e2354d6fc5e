"""The documents of a folder: taking stock of them, making new ones, moving them on, cleaning up.

- The journal holds what is true of a document; its file is a view of that, and a door. So before anything is done
  with a document its file is looked at: an unknown one is taken in, an edited one is read back.
- The id of a document's run follows from the folder's id and the document's, so every process finds the same run.
- Files are found by what stands in them. Their names mean nothing.
"""

import asyncio
import hashlib
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
from ripstop.kernel.errors import RunAlreadyStarted, RunHasEnded, RunNotFound, UsageError
from ripstop.kernel.run import Run
from ripstop.performers.documents.folder import Folder, Found, Missing
from ripstop.performers.documents.placing import settings_in
from ripstop.performers.documents.publisher import edited, key_of, restore, sha_of
from ripstop.runtime.live import Appended, Sight
from ripstop.styles.handoff.drafts import draft
from ripstop.styles.handoff.paper import Malformed, Paper, oddities, read, write
from ripstop.styles.handoff.policy import Policy
from ripstop.styles.handoff.rules import FINAL, TERMINATED
from ripstop.styles.handoff.standing import Standing, asked_of
from ripstop.styles.handoff.words import timestamp

from .document import Document, Trouble

LOOK = 1.0
"""Seconds between two looks at a run that somebody else may be working on."""
SETTLED = 2_000_000
"""Microseconds after which a file that cannot be read is not just being written."""
_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_UNSAFE = re.compile(r"[^\w-]+")


class Documents:
    def __init__(self, app: App, root: Path, tell: Callable[[Trouble], None]) -> None:
        self.app = app
        self.folder = Folder(root.resolve())
        self._tell = tell
        self._prefix = ""

    @property
    def prefix(self) -> str:
        """What the ids of all runs of this folder begin with."""
        if not self._prefix:
            self._prefix = f"docs-{self.folder.id}"
            self.app.places[self._prefix] = self.folder.root
        return self._prefix

    def run_of(self, document: str) -> str:
        safe = _UNSAFE.sub("_", document)[:80]
        if safe != document:
            safe += "-" + hashlib.sha256(document.encode()).hexdigest()[:6]
        return f"{self.prefix}.{safe}"

    # Looking

    async def take_stock(self, names: Collection[str] | None = None) -> list[Document]:
        """Look at every file, or at some: take in what is new, read back what was edited, set aside what cannot be
        read, put back what is gone."""
        documents: dict[str, Document] = {}
        active = await self._active_runs()
        for found in await asyncio.to_thread(self.folder.documents):
            if names is not None and found.name not in names:
                continue
            try:
                document = await self._take_in(found)
            except Malformed as problem:
                await self._unreadable(found, problem, active)
                continue
            if document is None:
                continue
            if document.run in documents:
                text = f"{found.name!r} and {documents[document.run].file!r} are both {document.id!r}; change one id"
                self._tell(Trouble(found.name, text))
                continue
            documents[document.run] = document
            active.pop(document.run, None)
        for run_id in active if names is None else ():
            await self._put_back(run_id, documents)
        return list(documents.values())

    async def find(self, named: str) -> Document:
        """The document with an id, or in a file. Raises `UsageError`."""
        documents = await self.take_stock()
        for document in documents:
            if named in (document.id, document.file, document.run):
                return document
        known = sorted(document.id for document in documents)
        hint = did_you_mean(named, known) if known else "there are no documents here yet"
        raise UsageError(f"There is no document {named!r} in {self.folder.root}; {hint}.")

    async def state(self, run_id: str) -> Run[Standing]:
        return (await self.app.engine.look(run_id)).run

    # Changing

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
        at, language = _local_time(), self._language(task + owner)
        limit = max_interactions or self.app.settings.docs.max_interactions
        if named and await self._exists(named):
            raise UsageError(f"There is a document {named!r} already. Choose another --id, or leave it out.")

        def text(stem: str) -> str:
            # a name that nobody else has makes an id that nobody else has
            document = named or stem.removeprefix("workflow_")
            return write(draft(document, creator, owner, task, at, next_action, conditions, language, limit))

        name = await asyncio.to_thread(self.folder.create, kind, _stamp(at), text)
        written = text(name.removesuffix(".md"))
        return await self._adopt(name, written, read(written), language, limit)

    async def known(self, document: str) -> Document | None:
        """A document by its id, if there is one."""
        try:
            run = await self.state(self.run_of(document))
        except RunNotFound:
            return None
        return self._document(run.id, run.state)

    async def take(self, text: str, kind: str) -> Document:
        """Take in a document that somebody sent. Raises `Malformed`."""
        paper = read(text)
        name = await asyncio.to_thread(self.folder.create, kind, _stamp(_local_time()), text)
        return await self._adopt(name, text, paper, self._language(text))

    async def offer(self, document: Document, text: str) -> tuple[Document, str]:
        """Offer another text for a document, as if its file had been edited; returns why it was refused, if it was."""
        before = await self.state(document.run)
        return await self._offered(before, text, before.state.views[-1][0] if before.state.views else 0)

    async def _offered(self, before: Run[Standing], text: str, base: int) -> tuple[Document, str]:
        told: Run[Standing] = await self.app.engine.order(before.id, "edit", {"found": text, "base": base})
        # as it stood right after the edit: later, others may have been refused something, or have moved it on
        refusal = told.state.refusal if told.state.keep else None
        run = await self.written(before.id)
        reason = f"line {refusal.line}: {refusal.reason}" if refusal else ""
        return self._document(run.id, run.state), reason

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
        return self._document(document.run, (await self.written(document.run)).state)

    async def written(self, run_id: str) -> Run[Standing]:
        """Wait until the document's file holds what the journal says."""
        turned = asyncio.Event()

        def watch(sight: Sight) -> None:
            if isinstance(sight, Appended) and sight.run_id == run_id:
                turned.set()

        stop = self.app.live.watch(watch)
        try:
            while True:
                turned.clear()
                if self.app.worker.failure:
                    raise self.app.worker.failure
                run = await self.state(run_id)
                if not any(asked_of(opened.command) == "publish" for opened in run.open.values()):
                    return run
                try:
                    async with asyncio.timeout(LOOK):
                        await turned.wait()
                except TimeoutError:
                    self.app.worker.wake()
        finally:
            stop()

    async def clean(self, days: float, dry_run: bool) -> list[Document]:
        """Delete the files of documents that were terminated so long ago. The journal keeps them."""
        oldest = timestamp(now() - int(days * 86_400_000_000), _utc_offset())
        old = [
            document
            for document in await self.take_stock()
            if document.paper.status == TERMINATED and document.paper.updated < oldest
        ]
        for document in old if not dry_run else ():
            await asyncio.to_thread(self.folder.remove, document.file, sha_of(write(document.paper)))
        return old

    # Inside

    async def _active_runs(self) -> dict[str, str]:
        infos = await self.app.engine.runs()
        open_ = ("working", "waiting", "listening", "stuck")
        mine = f"{self.prefix}."
        return {i.run_id: i.status for i in infos if i.status in open_ and i.run_id.startswith(mine)}

    async def _take_in(self, found: Found) -> Document | None:
        """A document from its file, which is taken in if it is new and read back if it was edited."""
        if found.text is None:
            raise Malformed(1, found.problem)
        paper = read(found.text)
        run_id = self.run_of(paper.id)
        try:
            run = await self.state(run_id)
        except RunNotFound:
            return await self._adopt(found.name, found.text, paper, self._language(found.text))
        return await self._read_back(run, found.name)

    async def _read_back(self, run: Run[Standing], file: str) -> Document | None:
        if file != run.state.file:
            return await self._renamed(run, file)
        try:
            change = await edited(self.folder, key_of(run.id), file)
        except Missing:
            return None
        if change is not None:
            text, base = change
            if run.ended or run.state.paper.status in FINAL:
                kept = await restore(self.folder, key_of(run.id), file, text, write(run.state.paper), "final")
                reason = f"{run.state.paper.id} is {run.state.paper.status}, which is final"
                if kept:
                    self._tell(Trouble(file, f"{reason}; the file was put right, and what was written is in {kept}"))
            else:
                try:
                    document, reason = await self._offered(run, text, base)
                except RunHasEnded:  # somebody has ended it since we looked
                    return await self._read_back(await self.state(run.id), file)
                if reason:
                    self._tell(Trouble(file, f"{reason}; the file was put right, what was written is kept beside it"))
                return document
        return self._document(run.id, run.state)

    async def _renamed(self, run: Run[Standing], file: str) -> Document | None:
        """The same document under another name: a copy, or its file was renamed."""
        original = await asyncio.to_thread(self.folder.read, run.state.file)
        if original is not None or run.ended:
            return replace(self._document(run.id, run.state), file=file)
        try:
            await self.app.engine.order(run.id, "renamed", {"file": file})
        except RunHasEnded:  # somebody has ended it since we looked
            return await self._renamed(await self.state(run.id), file)
        run = await self.written(run.id)
        return await self._read_back(run, file)

    async def _adopt(
        self, name: str, text: str, paper: Paper, language: str, max_interactions: int | None = None
    ) -> Document:
        """Begin the run of a document that stands in its file."""
        docs, root = self.app.settings.docs, self.folder.root
        policy = Policy(
            max_interactions=max_interactions or docs.max_interactions, attempts=docs.attempts, language=language
        )
        settings: dict[str, Any] = {
            **settings_in(root),
            "file": name,
            "utc_offset": _utc_offset(),
            "model": self.app.settings.models.default,
        }
        run_id = self.run_of(paper.id)
        # a document may wait for days, so the time limit of runs is not for it
        limits = replace(self.app.settings.limits, seconds=None, turns=None)
        content = msgspec.json.encode(policy, order="deterministic")
        guards = self.app.settings.guards
        with suppress(RunAlreadyStarted):  # another process has taken it in at the same moment
            await self.app.engine.start(run_id, "handoff", content, text, limits, settings, guards=guards)
        return self._document(run_id, (await self.written(run_id)).state)

    def _document(self, run_id: str, state: Standing) -> Document:
        odd = tuple(f"line {one.line}: {one.text}" for one in oddities(state.paper))
        return Document(state.paper.id, run_id, state.file, state.paper, odd)

    async def _unreadable(self, found: Found, problem: Malformed, active: dict[str, str]) -> None:
        """A file that is no document: put right if it was one of ours, set aside if not."""
        if now() - found.mtime < SETTLED:
            return self._tell(Trouble(found.name, str(problem)))  # somebody may still be writing it
        for run_id in active:
            run = await self.state(run_id)
            if run.state.file == found.name and found.text is not None:
                await self._read_back(run, found.name)
                del active[run_id]
                return None
        try:
            place = await asyncio.to_thread(self.folder.set_aside, found.name, str(problem))
        except Missing:
            return None  # somebody was quicker
        return self._tell(Trouble(found.name, f"{str(problem).rstrip('.')}; it was set aside as {place}"))

    async def _put_back(self, run_id: str, documents: dict[str, Document]) -> None:
        """A document is under way and its file is gone."""
        run = await self.state(run_id)
        if run.state.paper.status in FINAL or await asyncio.to_thread(self.folder.read, run.state.file) is not None:
            return
        try:
            await self.app.engine.order(run_id, "missing", {})
        except RunHasEnded:
            return  # somebody has ended it since we looked
        run = await self.written(run_id)
        documents[run_id] = self._document(run_id, run.state)
        text = f"the file of {run.state.paper.id!r} was gone and is there again; to end it: ripstop docs terminate"
        self._tell(Trouble(run.state.file, text))

    async def _exists(self, document: str) -> bool:
        try:
            await self.state(self.run_of(document))
        except RunNotFound:
            found = await asyncio.to_thread(self.folder.documents)
            return any(_id_of(one) == document for one in found)
        return True

    def _language(self, text: str) -> str:
        return self.app.settings.docs.language or ("zh" if _CHINESE.search(text) else "en")


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
