"""Writes the documents that runs publish, and never overwrites an edit.

- A document is a view of a run: each text is the view at a record, named by its number. Next to the documents we note
  what we have `seen` there last: the number, the sha of our text, and what it was written over.
- Only a text that is ours, or one that the caller names (`over`), is overwritten. Anything else is an edit: it stays,
  and is handed back with the number of the record that the editor had before them.
- The note is written first, the file second. A process that dies in between leaves a note that knows both texts, so
  the next publication (of the same number, or a higher one) can overwrite either. The text before ours is known by its
  stamp as well: putting exactly that text back is an edit like any other.
- An edit that was saved at the moment a process was killed is found before anything else is written, kept
  next to the document, and reported.
- Everything happens under the document's lock. Editors do not take locks; see `Folder.replace`.
"""

import asyncio
from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ripstop.engine.failpoints import failpoint
from ripstop.engine.performers import Kind, Performer, Refused, Request
from ripstop.kernel.effects import Answer, CallTool, Command, ToolReturned

from .files import do_locked, encoded
from .folder import Folder

TOOL = "publish_document"


class Publication(Struct, frozen=True):
    """The arguments of the tool."""

    number: int
    """Of the record that the text shows."""
    file: str
    text: str
    over: str = ""
    """The sha of a text that may be overwritten although it is not ours …"""
    keep: str = ""
    """… and is kept beside under this tag; empty if it need not be kept."""
    folder: str = ""
    """The folder that the definition names. The run's settings come first (`relocation.py`)."""


class Seen(Struct, frozen=True):
    """What we noted when we last wrote a document."""

    number: int = 0
    sha: str = ""
    before: str = ""
    """The sha of the file before; empty if there was no file …"""
    stamp: str = ""
    """… and the stamp of that file, which is another if the same text is saved again."""
    file: str = ""
    cleaned: bool = False
    """The file was deleted by `docs clean`, so it is not missing."""

    def is_ours(self, sha: str, stamp: str) -> bool:
        """Whether a text is the one that we wrote, or the one that it was to be written over."""
        return sha == self.sha or (sha == self.before and stamp == self.stamp)


def key_of(run_id: str) -> str:
    """How a run's document is called in our bookkeeping: fit for file names, whatever the run is called."""
    return sha256(run_id.encode()).hexdigest()[:16]


def sha_of(text: str) -> str:
    """The hash of a text as the bytes of a file."""
    return sha256(encoded(text)).hexdigest()


class Publisher:
    """The performer of `CallTool(tool="publish_document")`."""

    def __init__(self, folder_for: Callable[[Request], Folder]) -> None:
        self._folder_for = folder_for

    async def perform(self, request: Request) -> Answer | None:
        command = request.command
        assert isinstance(command, CallTool)
        if command.tool != TOOL:
            raise Refused(f"There is no tool {command.tool!r} here; there is: {TOOL}.", "ours")
        try:
            wanted = msgspec.convert(dict(request.arguments), Publication)
        except msgspec.ValidationError as error:
            raise Refused(f"{TOOL} was called wrongly: {error}.", "ours") from error
        folder, key = self._folder_for(request), key_of(request.run_id)
        return ToolReturned(value=await do_locked(folder.lock(key), lambda: _clear_and_publish(folder, key, wanted)))

    def kind(self, command: Command) -> Kind:
        return Kind.PURE

    def offers(self) -> tuple[str, ...]:
        return (f"tool:{TOOL}",)

    def provider(self, request: Request) -> str:
        return ""

    async def probe(self, request: Request) -> Answer | None:
        return None


async def edited(folder: Folder, key: str, file: str) -> tuple[str, int] | None:
    """An edited text of a document, and the number of the record whose view was edited."""

    def look() -> tuple[str, int] | None:
        seen, (text, stamp) = _seen(folder, key), folder.look(file)
        return None if text is None or seen.is_ours(sha_of(text), stamp) else (text, seen.number)

    return await do_locked(folder.lock(key), look)


async def rescue(folder: Folder, key: str, file: str) -> str:
    """Keep an edit that was saved while the process that wrote the file was killed; returns where, or an empty text."""
    return await do_locked(folder.lock(key), lambda: _rescue(folder, key, file))


async def notes_of(folder: Folder) -> dict[str, Seen]:
    """What we have noted about every document, by key."""
    return {key: _read(note) for key, note in (await asyncio.to_thread(folder.notes)).items()}


async def note_ours(folder: Folder, key: str, file: str, text: str, cleaned: bool = False) -> None:
    """Note that the text in a file is the last view of a document that has nothing more to say."""

    def note() -> None:
        _note(folder, key, Seen(_seen(folder, key).number, sha_of(text), file=file, cleaned=cleaned))

    await do_locked(folder.lock(key), note)


async def put_back(folder: Folder, key: str, file: str, text: str) -> bool:
    """Write the file of a document that has nothing more to say, if there is none. Returns whether it was written."""

    def write() -> bool:
        seen = _seen(folder, key)
        _note(folder, key, Seen(seen.number, sha_of(text), file=file))
        return folder.replace(file, text, over="")

    return await do_locked(folder.lock(key), write)


async def restore(folder: Folder, key: str, file: str, found: str, text: str, tag: str) -> str:
    """Restore the file of a finished document, and keep what was found in it next to it; returns where.

    Nothing is done, and nothing returned, if the file no longer holds that text.
    """

    def put_right() -> str:
        text_now, stamp = folder.look(file)
        if text_now != found:
            return ""
        kept, seen = folder.keep_beside(file, found, tag), _seen(folder, key)
        _note(folder, key, Seen(seen.number, sha_of(text), sha_of(found), stamp, file))
        if folder.replace(file, text, over=sha_of(found), key=key):
            return kept
        _note(folder, key, seen)
        return ""

    return await do_locked(folder.lock(key), put_right)


def _clear_and_publish(folder: Folder, key: str, wanted: Publication) -> dict[str, Any]:
    kept = _rescue(folder, key, wanted.file)
    done = _publish(folder, key, wanted)
    return {**done, "kept": kept} if kept else done


def _rescue(folder: Folder, key: str, file: str) -> str:
    seen = _seen(folder, key)
    return folder.rescue(key, file, ours=(seen.sha, seen.before))


def _publish(folder: Folder, key: str, wanted: Publication) -> dict[str, Any]:
    sha, seen = sha_of(wanted.text), _seen(folder, key)
    if seen.number > wanted.number:
        return {"file": wanted.file, "done": "newer"}
    found, stamp = folder.look(wanted.file)
    before = "" if found is None else sha_of(found)
    if seen.number == wanted.number and before == sha:
        return {"file": wanted.file, "done": "newer"}
    if found is not None and before not in (wanted.over, sha) and not seen.is_ours(before, stamp):
        return {"file": wanted.file, "done": "edited", "found": found, "base": seen.number}
    if found is not None and wanted.keep and before == wanted.over != sha:
        folder.keep_beside(wanted.file, found, wanted.keep)
        failpoint("documents.after_keep")
    _note(folder, key, Seen(wanted.number, sha, before, stamp, wanted.file))
    failpoint("documents.after_note")
    if before != sha and not folder.replace(wanted.file, wanted.text, before, key):
        # an editor has saved in the meantime, with our text of before in front of it: as if we had not begun
        _note(folder, key, seen)
        return _publish(folder, key, wanted)
    return {"file": wanted.file, "done": "written"}


def _seen(folder: Folder, key: str) -> Seen:
    return _read(folder.note(key))


def _read(note: bytes) -> Seen:
    """Nothing seen, if the note is missing or damaged: then every text there counts as an edit."""
    try:
        return msgspec.json.decode(note, type=Seen)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Seen()


def _note(folder: Folder, key: str, seen: Seen) -> None:
    folder.take_note(key, msgspec.json.encode(seen))


# The folder of a run's document, as its settings name it (`performers.relocation` says where it is now).


def folder_of(request: Request) -> Folder:
    if not request.settings.folder:
        raise Refused("The run has no folder of documents, so its document cannot be written.", "definition")
    return _folder(request.settings.folder)


@lru_cache(maxsize=64)
def _folder(path: str) -> Folder:
    return Folder(Path(path))


# Sends a message for a run into an agent's inbox, once.
#
# The name of the message follows from the run and from what it is about. So an attempt that is repeated, because it is
# unknown how the first one ended, finds the message: unread, handled or set aside. Only a recipient that deletes a
# message before we have noted that it was sent can get it again, under the same name.


SENDER_TOOL = "send_reply"


class OutgoingMessage(Struct, frozen=True):
    """The arguments of the tool."""

    agent: str
    stem: str
    """What it is about; the same for the same message, and for no other of this run."""
    text: str
    folder: str = ""
    """The folder that the definition names. The run's settings come first (`relocation.py`)."""


class Sender:
    """The performer of `CallTool(tool="send_reply")`."""

    def __init__(self, folder_for: Callable[[Request], Folder]) -> None:
        self._folder_for = folder_for

    async def perform(self, request: Request) -> Answer | None:
        command = request.command
        assert isinstance(command, CallTool)
        try:
            letter = msgspec.convert(dict(request.arguments), OutgoingMessage)
        except msgspec.ValidationError as error:
            raise Refused(f"{SENDER_TOOL} was called wrongly: {error}.", "ours") from error
        folder, key = self._folder_for(request), key_of(request.run_id)
        stem = f"{letter.stem[:40]}_{key[:8]}"
        await do_locked(folder.lock(key), lambda: folder.send(letter.agent, stem, letter.text))
        return ToolReturned(value={"to": letter.agent})

    def kind(self, command: Command) -> Kind:
        return Kind.PURE

    def offers(self) -> tuple[str, ...]:
        return (f"tool:{SENDER_TOOL}",)

    def provider(self, request: Request) -> str:
        return ""

    async def probe(self, request: Request) -> Answer | None:
        return None


# The tools that only the hand-off style calls.


PUBLISH = TOOL
SEND = SENDER_TOOL


def own_tools() -> dict[str, Performer]:
    """A performer for each, by the tool's name."""
    return {PUBLISH: Publisher(folder_of), SEND: Sender(folder_of)}
