"""The documents of a folder: finding them, making new ones, moving them on, cleaning up.

- The journal holds what is true of a document; its file is a view of that, and a door. So before anything is done
  with documents their files are read (`reconcile.py`).
- The id of a document's run follows from the folder's id and the document's (`folder_runs.py`), so every process finds
  the same run. A document that another workflow started is found in its run (`folder_runs.py`).
- Files are found by what is in them. Their names mean nothing.
"""

import asyncio
import re
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec.structs import replace

from ripstop.app.application import App, now
from ripstop.app.relocation import in_folder
from ripstop.app.settings.default_limits import with_defaults
from ripstop.app.settings.settings_file import Docs
from ripstop.app.start import absolute_script
from ripstop.definitions.problems import did_you_mean, nearest, with_stop
from ripstop.engine.live import Appended, LiveEvent
from ripstop.history.outages import outages
from ripstop.kernel.effects import AskPerson
from ripstop.kernel.errors import RunAlreadyStarted, RunHasEnded, RunNotFound, UsageError
from ripstop.kernel.events import RunSettings
from ripstop.kernel.questions import checked_name
from ripstop.kernel.restoring import is_held
from ripstop.kernel.run import OUTAGE, Run

from .definition import Policy
from .document import HandoffDocument, Malformed, oddities, read, write
from .document_view import DocumentView, FolderWarning, Verdict
from .events import AgentsChanged, EditFound, PublishRequested
from .files import FoundFile, safe
from .folder import OURS, WORKFLOWS, Folder, drawn_id
from .folder_runs import FolderRuns, identity_of, prefix_for, run_of
from .markdown import TIMESTAMP, as_id
from .publisher import key_of, note_ours, sha_of
from .reader import FolderRules, read_rules, role_files
from .reconcile import Reconciliation
from .state import FINAL, OWNED, TERMINATED, WRITES, HandoffState, asked_of, check_names, draft
from .style import HandoffStyle
from .texts import language_of, timestamp
from .transitions import HandoffArguments, fact_of

if TYPE_CHECKING:
    from ripstop.app.application import App


# The time as documents and their files say it: local, to the second.


def utc_offset() -> int:
    return time.localtime().tm_gmtoff


def local_time() -> str:
    return timestamp(now(), utc_offset())


def stamp(at: str) -> str:
    """A document's time as file names have it."""
    return at.replace("-", "").replace(":", "").replace(" ", "_")


# Documents that wait for an owner who may not exist, because an agent or a slip has named them.


def unknown_owners(documents: Collection[DocumentView], roles: Collection[str]) -> list[FolderWarning]:
    """What to say of documents whose owner is neither a role of the folder nor in the history of any document.

    A person may give a task to another person who has done nothing here yet, so that alone is not worth a word: either
    a role has named the owner, or the name is nearly that of a role.
    """
    known = {*roles, *(entry.agent for document in documents for entry in document.content.history)}
    found = []
    for document in documents:
        content = document.content
        near = nearest(content.owner, roles)
        if content.status in FINAL or content.owner in known or not (near or content.previous in roles):
            continue
        hint = f"; did you mean {near!r}?" if near else ""
        text = f"{document.id} waits for {content.owner!r}, who is not a role here and has not worked on anything{hint}"
        found.append(FolderWarning(document.file, text))
    return found


# The rules that count for the documents of a folder: its `handoff.yaml`, and the settings where that says nothing.


def in_force(docs: Docs, rules: FolderRules) -> Docs:
    """The settings of documents in a folder with these rules."""
    return replace(
        docs,
        max_interactions=rules.max_interactions or docs.max_interactions,
        attempts=rules.attempts or docs.attempts,
        language=rules.language or docs.language,
        models={**docs.models, **rules.models},
    )


def first_owner(folder: Path, rules: FolderRules) -> str:
    """Who gets a document for which no owner is named. Raises `UsageError` if nobody works in the folder."""
    roles = [path.stem for path in role_files(folder)]
    if not roles:
        raise UsageError(f"The document has no owner, and there are no roles in {folder}. Name one: --to NAME.")
    return rules.first or roles[0]


_CODED = re.compile("-[0-9a-f]{6}$")
STALE = 3.0
"""Seconds after which this process writes a file that another process should have written: that one may be dead."""


async def open_documents(
    app: App, root: Path, warn: Callable[[FolderWarning], None], rules: FolderRules | None = None
) -> "HandoffService":
    """The documents of a folder. To look at a folder creates nothing in it; an id that it has lost is put back.

    `rules`: those of the folder, if they were read already. Raises `WrongDefinition` if they cannot be.
    """
    folder = _folder_at(root)
    identity = await identity_of(app.engine, folder)
    documents = HandoffService(app, root, warn, identity.id or drawn_id(), rules)
    if identity.lost and folder.is_there():
        await documents.identify()
        lost = f"{OURS}/ was gone; the journal knows this folder, so its documents are the same ones as before"
        warn(FolderWarning(WORKFLOWS, lost))
    return documents


class HandoffService:
    def __init__(
        self,
        app: App,
        root: Path,
        warn: Callable[[FolderWarning], None],
        folder_id: str = "",
        rules: FolderRules | None = None,
    ) -> None:
        """`folder_id`: the one that the folder gets when something is written into it; empty: it gets one now."""
        self.app = app
        self.folder = _folder_at(root)
        self.rules = read_rules(root) if rules is None else rules
        self._docs = in_force(app.settings.docs, self.rules)
        self._warn = warn
        self._id = folder_id or self.folder.id
        self._identified = not folder_id
        self.runs = FolderRuns(app.engine, self.folder.root, self.prefix)
        app.places[self.prefix] = self.folder.root
        self.unsettled: dict[str, int] = {}
        """Documents and messages that cannot be read and may still be being written, and when to look at them again."""

    @property
    def prefix(self) -> str:
        """What the ids of all runs begin with that are named after this folder."""
        return prefix_for(self._id)

    async def identify(self) -> None:
        """Write the folder's id, before anything else is written there. Another process may have been quicker."""
        if not self._identified:
            self._id = await asyncio.to_thread(self.folder.identify, self._id)
            self._identified = True
            self.runs.prefix = self.prefix
            self.app.places[self.prefix] = self.folder.root
        if not self.app.folders.cover_documents(self.folder.root):
            # its user works here with this journal, so other workflows can hand documents to this folder
            self.app.folders.remember(self.folder.root)

    def warn(self, warning: FolderWarning) -> None:
        self._warn(warning)

    async def run_of(self, document: str) -> str:
        """The run of a document; the id that it would have if there is none."""
        return await self.runs.find(document)

    # Looking

    async def reconcile(self, names: Collection[str] | None = None, with_unread: bool = False) -> list[DocumentView]:
        """Every document, or those in some files, as they are after all edits were read back.

        A file that cannot be read may still be being written. Its document is left out, so that nothing is done with
        it meanwhile; `with_unread` lists it as it was before.
        """
        reconciliation = Reconciliation(self)
        found = [await self._as_now(document) for document in await reconciliation.of(names)]
        return found + (reconciliation.unread if with_unread else [])

    async def _as_now(self, document: DocumentView) -> DocumentView:
        document = await self._with_agents(document)
        run = await self.state(document.run)
        if not run.refused:
            return document
        engine = self.app.engine
        others = await engine.has_workers(besides=self.app.worker.worker_id)  # this process only looks
        paused = outages(run, await engine.root_of(run.id), others)
        return replace(document, outage=next(iter(paused), None))

    async def _with_agents(self, document: DocumentView) -> DocumentView:
        """Tell the document's run who works as an agent here, if it knows otherwise: its owner may be a person."""
        run = await self.state(document.run)
        if run.ended or run.state.definition.roles or run.state.definition.agents == self._agents:
            return document
        try:
            told: Run[HandoffState] = await self.app.engine.tell_fact(run.id, AgentsChanged(agents=self._agents))
        except RunHasEnded:
            return document
        return replace(self.document(told), refused=document.refused)

    @property
    def _agents(self) -> tuple[str, ...]:
        return tuple(path.stem for path in role_files(self.folder.root))

    async def find(self, named: str) -> DocumentView:
        """The document with an id, or in a file. Raises `UsageError`."""
        file = Path(named).name
        run = named if self.runs.holds(named) else await self.run_of(as_id(named))
        with suppress(RunNotFound):
            file = (await self.state(run)).state.file
        documents = await self.reconcile({file})
        for looked_at_all in (False, True):
            for document in documents:
                if as_id(named) == document.id or named == document.run or Path(named).name == document.file:
                    if document.unread:
                        raise UsageError(
                            f"{document.file} cannot be read now: {document.unread}. Save it again, or wait."
                        )
                    return document
            if not looked_at_all:  # its file may be gone, renamed, or new
                documents = await self.reconcile(with_unread=True)
        known = sorted(document.id for document in documents)
        hint = did_you_mean(named, known) or "there are no documents here yet"
        raise UsageError(with_stop(f"There is no document {named!r} in {self.folder.root}; {hint}"))

    async def state(self, run_id: str) -> Run[HandoffState]:
        return (await self.app.engine.look(run_id)).run

    async def known(self, document: str) -> DocumentView | None:
        """A document by its id, if there is one."""
        try:
            return self.document(await self.state(await self.run_of(document)))
        except RunNotFound:
            return None

    def document(self, run: Run[HandoffState]) -> DocumentView:
        state = run.state
        odd = tuple(f"line {one.line}: {one.text}" for one in oddities(state.document))
        asked = [opened.command for opened in run.open.values() if isinstance(opened.command, AskPerson)]
        elsewhere = (OWNED, OUTAGE)  # its owner is listed anyway, and so is an outage
        questions = [command.question for command in asked if command.purpose not in elsewhere]
        return DocumentView(state.document.id, run.id, state.file, state.document, odd, tuple(questions))

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
    ) -> DocumentView:
        """Make a document and its file; without an owner it is for the folder's first role.

        The file comes first, whole and under its own name; so if this process dies before the run is begun, the next
        process to read the folder takes the document in.
        """
        owner = checked_name(owner or first_owner(self.folder.root, self.rules))
        creator = checked_name(creator)
        at, language, named = local_time(), self._language(task), as_id(named)
        limit = max_interactions or self._docs.max_interactions
        await self.identify()
        if named and await self._exists(named):
            raise _taken(named)

        def text(stem: str) -> str:
            # a unique name makes a unique id
            document = named or stem.removeprefix("workflow_")
            return write(draft(document, creator, owner, task, at, next_action, conditions, language, limit))

        name = await asyncio.to_thread(self.folder.create, kind, stamp(at), text)
        written = text(name.removesuffix(".md"))
        document = await self.adopt(name, written, read(written), limit)
        if document.file != name:  # another process has made one with this id in the meantime
            await asyncio.to_thread(self.folder.remove, name, sha_of(written))
            raise _taken(document.id)
        return document

    def task(self, document: str, creator: str, owner: str, task: str) -> str:
        """The text of a document that a message asks for."""
        limit = self._docs.max_interactions
        return write(draft(document, creator, owner, task, local_time(), language=self._language(task), limit=limit))

    async def take(self, text: str, kind: str, sender: str) -> DocumentView:
        """Take in a document that came in a message. Raises `Malformed`.

        The run comes first and the file is written from it, under a unique name if `kind` is unique. So it is known
        from the beginning who is to get a reply.
        """
        name = f"workflow_{safe(kind)}_{stamp(local_time())}.md"
        return await self.adopt(name, text, read(text), sender=sender)

    async def adopt(
        self, name: str, text: str, document: HandoffDocument, max_interactions: int | None = None, sender: str = ""
    ) -> DocumentView:
        """Begin the run of a document; `sender`: who sent it in. Raises `Malformed` for names that cannot be."""
        check_names(document)
        await self.identify()
        docs, root = self._docs, self.folder.root
        policy = Policy(
            max_interactions=max_interactions or docs.max_interactions,
            attempts=docs.attempts,
            language=self._language(document.task, document.next_action),
            guards=self.rules.guards,
            agents=self._agents,
        )
        arguments = HandoffArguments(
            is_document=True, file=name, utc_offset=utc_offset(), reply_to=sender if docs.replies else ""
        )
        models = self.app.settings.models
        settings = in_folder(RunSettings(model=absolute_script(models.default), base_url=models.base_url), root)
        run_id = run_of(self.prefix, document.id)
        # a document may wait for days, so the time limit of runs is not for it
        limits = replace(self.app.settings.limits, seconds=None, turns=None)
        if self.app.settings.default_limits:
            limits = with_defaults(limits, HandoffStyle.default_limits)
        limits = self.app.with_prices(limits, (models.default, *docs.models.values()))
        content = msgspec.json.encode(policy, order="deterministic")
        guards = self.app.settings.guards
        with suppress(RunAlreadyStarted):  # another process has taken it in at the same moment
            await self.app.engine.start(
                run_id,
                "handoff",
                content,
                input=text,
                arguments=msgspec.to_builtins(arguments),
                limits=limits,
                settings=settings,
                guards=guards,
            )
        return self.document(await self.written(run_id))

    # Changing

    async def act(self, document: DocumentView, action: str, by: str, **given: str) -> DocumentView:
        """Have a transition made. Raises `UsageError` if it is refused; a guard may terminate the document instead."""
        fields = {name: text for name, text in given.items() if text}
        wanted = fact_of(await self.state(document.run), action, fields, by)
        try:
            told: Run[HandoffState] = await self.app.engine.tell_fact(document.run, wanted)
        except RunHasEnded:
            raise UsageError(f"{document.id} is {document.content.status}, which is final.") from None
        # as it was right after the request: later, others may have been refused something, or have moved it on
        if told.state.refusal and told.state.refused_at == told.length:
            raise UsageError(f"{document.id}: {told.state.refusal.reason}.")
        return self.document(await self.written(document.run))

    async def offer(self, run: Run[HandoffState], text: str, base: int | None = None, sender: str = "") -> Verdict:
        """Offer another text for a document, as if its file had been edited.

        Args:
            base: The number of the view that was edited; `None` for the last one.
            sender: Who sent the text in a message; empty if it was in the file.
        """
        if base is None:
            base = run.state.views[-1][0] if run.state.views else 0
        found = EditFound(text=text, base=base, sender=sender)
        told: Run[HandoffState] = await self.app.engine.tell_fact(run.id, found)
        # as it was right after the edit: later, others may have been refused something, or have moved it on
        refusal = told.state.refused_edit if told.state.keep else None
        reason = f"line {refusal.line}: {refusal.reason}" if refusal else ""
        notes = () if told.state.repeated else told.state.notes
        return Verdict(self.document(await self.written(run.id)), reason, notes)

    async def ids(self) -> set[str]:
        """The ids of all documents of this folder that the journal knows."""
        mine, found = f"{self.prefix}.", set(await self.runs.documents())
        for run_id in await self.runs.list():
            if run_id.startswith(mine):
                document = run_id.removeprefix(mine)
                # the name of a run differs from the id where the id has signs that names cannot have
                ambiguous = _CODED.search(document) is not None
                found.add((await self.state(run_id)).state.document.id if ambiguous else document)
        return found

    async def written(self, run_id: str) -> Run[HandoffState]:
        """Wait until the document's file holds what the journal says, or a person is asked why it cannot.

        If the document is finished, also wait until its sender has been notified. Nothing is waited for while a person
        is asked what became of a run that was restored.
        """
        turned = asyncio.Event()

        def watch(event: LiveEvent) -> None:
            if isinstance(event, Appended) and event.run_id == run_id:
                turned.set()

        stop = self.app.live.watch(watch)
        waited_for: set[int] = set()
        try:
            while True:
                turned.clear()
                if self.app.worker.failure:
                    raise self.app.worker.failure
                run = await self.state(run_id)
                writing = {number for number, opened in run.open.items() if asked_of(opened.command) in WRITES}
                if not writing or is_held(run):
                    return run
                if writing == waited_for:  # nothing was done about it for long
                    with suppress(RunHasEnded):  # it may have ended just now
                        await self.app.engine.tell_fact(run_id, PublishRequested())
                    waited_for = set()
                    continue
                waited_for = writing
                with suppress(TimeoutError):
                    async with asyncio.timeout(STALE):
                        await turned.wait()
                        waited_for = set()
        finally:
            stop()

    async def clean(self, days: float, dry_run: bool) -> list[DocumentView]:
        """Delete the files of documents that were terminated so long ago. The journal keeps them."""
        old = [d for d in await self.reconcile() if self.is_old(await self.state(d.run), days)]
        for document in old if not dry_run else ():
            text = write(document.content)
            if await asyncio.to_thread(self.folder.remove, document.file, sha_of(text)):
                marks = (await self.state(document.run)).marks
                await note_ours(self.folder, key_of(document.run), marks, document.file, text, cleaned=True)
        return old

    async def clean_refused(self, days: float, dry_run: bool) -> list[str]:
        """Delete refused texts that were kept so long ago. The journal keeps them."""
        old = await asyncio.to_thread(self.folder.old_refused, now() / 1_000_000 - days * 86_400)
        if old and not dry_run:
            await asyncio.to_thread(self.folder.forget_refused, old)
        return old

    def is_old(self, run: Run[HandoffState], days: float) -> bool:
        """Whether a document was terminated so long ago."""
        document, before = run.state.document, now() - int(days * 86_400_000_000)
        if document.status != TERMINATED:
            return False
        if TIMESTAMP.fullmatch(document.updated):
            return document.updated < timestamp(before, utc_offset())
        return run.began < before

    async def restore(self) -> list[DocumentView]:
        """Write the files of documents back that the journal has and the folder has not.

        Left out are terminated documents that `clean` has deleted, or would delete.
        """
        await self.identify()
        return await Reconciliation(self).restore(self.app.settings.docs.keep_days)

    # Inside

    async def _exists(self, document: str) -> bool:
        try:
            await self.state(await self.run_of(document))
        except RunNotFound:
            found = await asyncio.to_thread(self.folder.documents)
            return any(_id_of(one) == document for one in found)
        return True

    def _language(self, *texts: str) -> Literal["en", "zh"]:
        return self._docs.language or language_of(*texts)


def _folder_at(root: Path) -> Folder:
    return Folder(root.resolve())


def _taken(document: str) -> UsageError:
    return UsageError(f"There is a document {document!r} already. Choose another --id, or leave it out.")


def _id_of(found: FoundFile) -> str:
    try:
        return read(found.text).id if found.text is not None else ""
    except Malformed:
        return ""
