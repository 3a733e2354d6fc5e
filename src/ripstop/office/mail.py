"""The inbox: messages between agents, and what becomes of them.

- A message with a document brings it into the folder, or is read as an edit of the one that is there.
- A message about a document is told to it. Only a transition changes a document, so a message alone never does,
  unless it ends it: with the end marker, or with nothing but a courtesy.
- Any other message that asks for something becomes a document of its own, so that all work is guarded alike.
- Whoever sent a message that brought a document, or became one, gets a message when the document is finished.
- A handled message goes to `processed/`; an empty or malformed one is set aside, with the reason beside it.

What a message leads to has an id that follows from the message, so one that is handled twice does nothing twice.
"""

import asyncio
import hashlib
import re

from msgspec import Struct

from ripstop.kernel.courtesy import is_courtesy
from ripstop.kernel.errors import RunHasEnded
from ripstop.performers.documents.files import Found, Missing
from ripstop.runtime.ports import Refused, TryAgain
from ripstop.styles.handoff.message import Message, read_message
from ripstop.styles.handoff.paper import Malformed, read
from ripstop.styles.handoff.rules import FINAL
from ripstop.styles.handoff.sections import as_id

from .document import Document
from .documents import Documents


class Letter(Struct, frozen=True):
    """A message in an inbox. It can be read, or there is a problem with it."""

    agent: str
    file: str
    message: Message | None
    problem: str = ""
    mtime: int = 0
    """When it was written, in microseconds."""


async def letters(documents: Documents, agent: str = "") -> list[Letter]:
    """What lies in the inboxes, or in one; oldest first."""
    folder = documents.folder
    agents = [agent] if agent else sorted(await asyncio.to_thread(folder.agents))
    found = [(name, one) for name in agents for one in await asyncio.to_thread(folder.messages, name)]
    found.sort(key=lambda pair: (pair[1].mtime, pair[1].name))
    return [_letter(name, one) for name, one in found]


def _letter(agent: str, found: Found) -> Letter:
    if found.text is None:
        return Letter(agent, found.name, None, found.problem, found.mtime)
    try:
        return Letter(agent, found.name, read_message(found.text))
    except Malformed as problem:
        return Letter(agent, found.name, None, str(problem), found.mtime)


def plain_letter(letter: Letter) -> dict[str, str]:
    """A message as `--json` prints it."""
    message = letter.message or Message(sender="", to=letter.agent, type="")
    return {
        "agent": letter.agent,
        "file": letter.file,
        "from": message.sender,
        "to": message.to,
        "time": message.time,
        "type": message.type,
        "body": message.body,
        "document": message.document,
        "problem": letter.problem,
    }


async def handle(documents: Documents, letter: Letter) -> tuple[str, bool]:
    """Do what a message asks for, and put it away. Returns what became of it, in words, and whether it is away."""
    folder = documents.folder
    try:
        if letter.message is None:
            place = await asyncio.to_thread(folder.set_message_aside, letter.agent, letter.file, letter.problem)
            return f"set aside: {letter.problem} ({place})", True
        try:
            became = await _become(documents, letter, letter.message)
        except Malformed as problem:
            reason = f"the document in it: {problem}"
            place = await asyncio.to_thread(folder.set_message_aside, letter.agent, letter.file, reason)
            return f"set aside: {reason} ({place})", True
        await asyncio.to_thread(folder.processed, letter.agent, letter.file)
    except Missing:
        return letter.problem or "somebody else has handled it", False
    except (Refused, TryAgain) as problem:
        return f"it stays where it is: {problem}", False
    return became, True


async def _become(documents: Documents, letter: Letter, message: Message) -> str:
    if message.document:
        return await _with_document(documents, letter, message)
    about = await _about(documents, message)
    if about is not None:
        return await _told(documents, about, message)
    if message.type == "workflow":
        raise Malformed(1, "there is none: it stands under `## Workflow Document`, or the Title is the id of one here")
    if message.type != "normal":
        return "it names no document of this folder, or several"
    if is_courtesy(message.body) or not message.body.strip():
        return "nothing but a courtesy: ignored"
    digest = _digest(letter, message)
    named = f"message_{digest}"
    if await documents.known(named):
        return f"document {named} exists already"
    text = documents.task(named, message.sender, letter.agent, message.body)
    document = await documents.take(text, f"message-{digest}", message.sender)
    return f"document {document.id} for {letter.agent}"


def _digest(letter: Letter, message: Message) -> str:
    parts = (letter.file, message.sender, message.to, message.time, message.body)
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()[:10]


async def _with_document(documents: Documents, letter: Letter, message: Message) -> str:
    paper = read(message.document)
    known = await documents.known(paper.id)
    if known is None:
        document = await documents.take(message.document, f"inbox-{_digest(letter, message)}", message.sender)
        return f"document {document.id}, {document.paper.status} with {document.paper.owner}"
    if known.paper.status in FINAL:
        return f"ignored: {known.id} is {known.paper.status}"
    try:
        document, refusal = await documents.offer(await documents.state(known.run), message.document)
    except RunHasEnded:
        return f"ignored: {known.id} has ended"
    return f"refused: {refusal}" if refusal else f"taken over into {document.id}"


async def _about(documents: Documents, message: Message) -> Document | None:
    """The document that a message is about: the one whose id is its title, or stands as a word in a reply's text."""
    known = {document.id: document for document in await documents.take_stock()}
    title = as_id(message.title)
    if title in known:
        return known[title]
    if message.type != "workflow_reply":
        return None
    named = [name for name in known if re.search(rf"(?<![\w-])(?<!\w\.){re.escape(name)}(?![\w-]|\.\w)", message.body)]
    return known[named[0]] if len(named) == 1 else None


async def _told(documents: Documents, about: Document, message: Message) -> str:
    if about.paper.status in FINAL:
        return f"ignored: {about.id} is {about.paper.status}"
    try:
        await documents.app.engine.hear(about.run, message.body, by=message.sender)
    except RunHasEnded:
        return f"ignored: {about.id} has ended"
    run = await documents.written(about.run)
    return f"told to {about.id}, which is {run.state.paper.status}"
