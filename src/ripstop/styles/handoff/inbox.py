"""The inbox: messages between agents, and what becomes of them.

- A message with a document brings it into the folder, or is read as an edit of the one that is there.
- A message about a document is delivered to its run. Only a transition changes a document, so a message alone never
  does, unless it ends it: with the end marker, or with nothing but a courtesy.
- Any other message that asks for something becomes a new document, so that all work is guarded alike. A
  courtesy, an answer and a message with the end marker ask for nothing: they are put away, and nothing is started.
- The sender of a message that brought a document, or became one, gets a message when the document is finished, and
  the sender of a document that is refused gets one with the reason. The refused text is kept next to the file.
- A handled message goes to `processed/`; an empty or malformed one is set aside, with the reason next to it.

One process at a time handles the messages of an inbox. What a message leads to has an id that follows from the
message, so one that is handled twice does nothing twice.
"""

import asyncio
import hashlib
import re

from msgspec import Struct

from ripstop.app.application import now
from ripstop.engine.performers import Refused, TryAgain
from ripstop.kernel import progress
from ripstop.kernel.effects import Guards
from ripstop.kernel.errors import RunHasEnded
from ripstop.kernel.questions import name_problem
from ripstop.text.courtesy import courteous

from .definition import Policy
from .document import Malformed, read
from .document_view import DocumentView
from .files import FoundFile, Missing, do_locked, locked
from .markdown import as_id
from .message import HandoffMessage, Spoken, read_message, refusal, spoken, without_names
from .publisher import key_of
from .service import HandoffService
from .state import FINAL
from .style import HandoffStyle
from .texts import ENGINE, timestamp


class InboxMessage(Struct, frozen=True):
    """A message in an inbox. It can be read, or there is a problem with it."""

    agent: str
    file: str
    message: HandoffMessage | None
    problem: str = ""
    mtime: int = 0
    """When it was written, in microseconds."""


async def messages(documents: HandoffService, agent: str = "") -> list[InboxMessage]:
    """What lies in the inboxes, or in one; oldest first."""
    folder = documents.folder
    agents = [agent] if agent else sorted(await asyncio.to_thread(folder.agents))
    found = [(name, one) for name in agents for one in await asyncio.to_thread(folder.messages, name)]
    found.sort(key=lambda pair: (pair[1].mtime, pair[1].name))
    return [_received(name, one) for name, one in found]


def _received(agent: str, found: FoundFile) -> InboxMessage:
    if found.text is None:
        return InboxMessage(agent, found.name, None, found.problem, found.mtime)
    try:
        message = read_message(found.text)
        if problem := name_problem(message.sender):
            raise Malformed(1, f"From: {problem}.")
        return InboxMessage(agent, found.name, message)
    except Malformed as problem:
        return InboxMessage(agent, found.name, None, str(problem), found.mtime)


def plain_message(received: InboxMessage) -> dict[str, str]:
    """A message as `--json` prints it."""
    message = received.message or HandoffMessage(sender="", to=received.agent, type="")
    return {
        "agent": received.agent,
        "file": received.file,
        "from": message.sender,
        "to": message.to,
        "time": message.time,
        "type": message.type,
        "body": message.body,
        "document": message.document,
        "problem": received.problem,
    }


class Inbox:
    """Handles messages one after the other. What it knows of the documents is read once, not for every message."""

    def __init__(self, documents: HandoffService) -> None:
        self._documents = documents
        self._ids: set[str] | None = None
        """Of the documents that the journal knows; looked up when first needed."""

    async def handle(self, received: InboxMessage) -> tuple[str, bool]:
        """Do what a message asks for, and put it away.

        Returns what became of it, in words, and whether it is away.
        """
        folder = self._documents.folder
        try:
            lock = await asyncio.to_thread(folder.lock, key_of(f"inbox {received.agent}"))
            async with locked(lock):
                if not await asyncio.to_thread(folder.has_message, received.agent, received.file):
                    raise Missing("")
                return await self._handled(received), True
        except Missing:
            return received.problem or "another process has handled it", False
        except (Refused, TryAgain) as problem:
            return f"it stays where it is: {problem}", False

    async def _handled(self, received: InboxMessage) -> str:
        folder, reason = self._documents.folder, received.problem
        if received.message is not None:
            try:
                became = await self._become(received, received.message)
            except Malformed as problem:
                reason = f"the document in it: {problem}"
            else:
                await asyncio.to_thread(folder.processed, received.agent, received.file)
                return became
        place = await asyncio.to_thread(folder.set_message_aside, received.agent, received.file, reason)
        return f"set aside: {reason} ({place})"

    async def _become(self, received: InboxMessage, message: HandoffMessage) -> str:
        said = spoken(message)
        if message.sender == ENGINE:
            return "a notice from ripstop: filed"
        if message.document:
            return await self._with_document(received, message, said)
        about = await self._about(message, said)
        if about is not None:
            return await self._told(about, received, message)
        if message.type == "workflow":
            raise Malformed(
                1, "there is none: put it under `## Workflow Document`, or give the id of one here as the Title"
            )
        if message.type != "normal":
            return "it does not name one document of this folder"
        if nothing_new := self._asks_for_nothing(message, said):
            return nothing_new
        digest = _digest(received, message)
        named = f"message_{digest}"
        if await self._documents.known(named):
            return f"document {named} exists already"
        text = self._documents.task(named, message.sender, received.agent, said.text)
        document = await self._documents.take(text, f"message-{digest}", message.sender)
        self._learn(document)
        return f"document {document.id} for {received.agent}"

    def _asks_for_nothing(self, message: HandoffMessage, said: Spoken) -> str:
        """Why a message starts nothing; empty if it asks for something."""
        guards = self._guards()
        if progress.has_end_marker(said.own, guards):
            return f"it ends with {guards.end_marker}: filed, nothing is started"
        words = without_names(said.own, message)
        if not words.strip() or courteous(words, guards) or courteous(said.own, guards):
            return "nothing but a courtesy: ignored"
        return "an answer to nothing that is open here: filed, nothing is started" if said.answers else ""

    def _guards(self) -> Guards:
        return HandoffStyle().guards(Policy(guards=self._documents.rules.guards), self._documents.app.settings.guards)

    def _learn(self, document: DocumentView) -> None:
        if self._ids is not None:
            self._ids.add(document.id)

    async def _with_document(self, received: InboxMessage, message: HandoffMessage, said: Spoken) -> str:
        documents, sent = self._documents, read(message.document)
        known = await documents.known(sent.id)
        if known is None:
            # the sender of a finished document knows that it is finished
            sender = message.sender if sent.status not in FINAL else ""
            document = await documents.take(message.document, f"inbox-{_digest(received, message)}", sender)
            self._learn(document)
            return await self._ended(document, received, message, said) or _standing("document", document)
        if known.content.status in FINAL:
            return f"ignored: {known.id} is {known.content.status}"
        try:
            run = await documents.state(known.run)
            verdict = await documents.offer(run, message.document, sender=message.sender)
        except RunHasEnded:
            return f"ignored: {known.id} has ended"
        if verdict.refusal:
            return await self._refused(received, message, verdict.document, verdict.refusal)
        notes = "".join(f"; {note}" for note in verdict.notes)
        ended = await self._ended(verdict.document, received, message, said)
        return (ended or f"taken over into {verdict.document.id}") + notes

    async def _ended(
        self, document: DocumentView, received: InboxMessage, message: HandoffMessage, said: Spoken
    ) -> str:
        """End a document that came with the end marker in the words above it."""
        if document.content.status in FINAL or not progress.has_end_marker(said.own, self._guards()):
            return ""
        return await self._told(document, received, message)

    async def _refused(
        self, received: InboxMessage, message: HandoffMessage, document: DocumentView, reason: str
    ) -> str:
        """Keep a refused document beside the one that it was meant for, and tell its sender why."""
        folder, digest = self._documents.folder, _digest(received, message)
        kept = await asyncio.to_thread(folder.keep_beside, document.file, message.document, f"message-{digest}")
        told = f"refused: {reason.rstrip('.')}; its text is kept in {kept}"
        if not self._documents.app.settings.docs.replies:
            return told
        run = await self._documents.state(document.run)
        text = refusal(run.state, message.sender, reason, kept, timestamp(now(), run.state.offset))
        stem = f"refused_{digest}_{document.id}"[:60]
        try:
            lock = await asyncio.to_thread(folder.lock, key_of(document.run))
            await do_locked(lock, lambda: folder.send(message.sender, stem, text))
        except (Refused, TryAgain) as problem:
            return f"{told}; {message.sender!r} cannot be notified: {problem}"
        return f"{told}, and {message.sender} was notified"

    async def _about(self, message: HandoffMessage, said: Spoken) -> DocumentView | None:
        """The document that a message is about: the one whose id is its title, or is a word in a reply's text."""
        title = as_id(message.title)
        known = await self._documents.known(title) if title else None
        if known is not None:
            return known
        if message.type != "workflow_reply" and not said.answers:
            return None
        if self._ids is None:
            self._ids = await self._documents.ids()
        text = f"{message.title}\n{message.body}"
        named = [name for name in self._ids if name in text and _as_word(name, text)]
        return await self._documents.known(named[0]) if len(named) == 1 else None

    async def _told(self, about: DocumentView, received: InboxMessage, message: HandoffMessage) -> str:
        if about.content.status in FINAL:
            return f"ignored: {about.id} is {about.content.status}"
        said = spoken(message)
        words = said.own or said.text
        try:
            # a process that dies before the message is put away leaves it to be handled again, and heard once
            heard = f"inbox:{received.agent}:{_digest(received, message)}"
            await self._documents.app.engine.hear(about.run, words, by=message.sender, channel="inbox", id=heard)
        except RunHasEnded:
            return f"ignored: {about.id} has ended"
        run = await self._documents.written(about.run)
        return f"delivered to {about.id}, which is {run.state.document.status}"


def _as_word(name: str, text: str) -> bool:
    return re.search(rf"(?<![\w-])(?<!\w\.){re.escape(name)}(?![\w-]|\.\w)", text) is not None


def _standing(what: str, document: DocumentView) -> str:
    return f"{what} {document.id}, {document.content.status} with {document.content.owner}"


def _digest(received: InboxMessage, message: HandoffMessage) -> str:
    parts = (received.file, message.sender, message.to, message.time, message.body)
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()[:10]
