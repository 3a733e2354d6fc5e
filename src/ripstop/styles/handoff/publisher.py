"""Performs what a document's run asks for: to write the document into its file, and to notify its sender.

Publishing never overwrites an edit.

- A document is a view of a run: each text is the view at a record, named by its number. Next to the documents we note
  the version that we have published there last: the number, the sha of our text, and what it was written over.
- Only a text that we wrote, or one that the caller names (`over`), is overwritten. Anything else is an edit: it stays,
  and is handed back with the number of the version that was in the file before it.
- The note is written first, the file second. A process that dies in between leaves a note that knows both texts, so
  the next publication (of the same number, or a higher one) can overwrite either. The text before ours is known by its
  stamp as well: putting exactly that text back is an edit like any other.
- An edit that was saved at the moment a process was killed is found before anything else is written, kept
  next to the document, and reported.
- A note that was written after a backup was made, and before that was restored, is of a branch that the journal has
  lost (`mark`). It counts for nothing: what that branch wrote is an edit, so that it is read back or kept.
- Everything happens under the document's lock. Editors do not take locks; see `Folder.replace`.

A reply goes into an agent's inbox, once. The name of the message follows from the run and from what it is about. So an
attempt that is repeated, because it is unknown how the first one ended, finds the message: unread, handled or set
aside. Only a recipient that deletes a message before we have noted that it was sent can get it again, under the same
name.
"""

import asyncio
from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ripstop.engine.failpoints import failpoint
from ripstop.engine.performers import Performer, Refused, Request
from ripstop.kernel.restoring import mark_at, marks_in
from ripstop.kernel.run import Marks
from ripstop.tools.style_tools import OwnTool, typed_tool

from .calls import PUBLISH, SEND, PublishCall, PublishedDocument, SendCall, SentReply
from .files import do_locked, encoded
from .folder import Folder

FolderFor: TypeAlias = Callable[[Request], Folder]
"""Where a run's document is."""
MAX_STEM, KEY_IN_STEM = 40, 8
"""Characters of what a message is about, and of its run's key, in the name of its file."""


def own_tools() -> dict[str, Performer]:
    """The performers of the tools that only this style calls, by the tool's name."""
    return {PUBLISH: publishing_tool(folder_of), SEND: sending_tool(folder_of)}


def publishing_tool(folder_for: FolderFor) -> OwnTool:
    async def publish(request: Request, call: PublishCall) -> PublishedDocument:
        folder, key = folder_for(request), key_of(request.run_id)
        marks = marks_in(await request.history()) if request.mark else ()
        return await do_locked(folder.lock(key), lambda: _clear_and_publish(folder, key, marks, call))

    return typed_tool(PUBLISH, PublishCall, publish)


def sending_tool(folder_for: FolderFor) -> OwnTool:
    async def send(request: Request, call: SendCall) -> SentReply:
        folder, key = folder_for(request), key_of(request.run_id)
        stem = f"{call.stem[:MAX_STEM]}_{key[:KEY_IN_STEM]}"
        await do_locked(folder.lock(key), lambda: folder.send(call.agent, stem, call.text))
        return SentReply(call.agent)

    return typed_tool(SEND, SendCall, send)


def folder_of(request: Request) -> Folder:
    """The folder of a run's document, as its settings name it (`app.relocation` says where it is now)."""
    if not request.settings.folder:
        raise Refused("The run has no folder of documents, so its document cannot be written.", "definition")
    return _folder(request.settings.folder)


@lru_cache(maxsize=64)
def _folder(path: str) -> Folder:
    return Folder(Path(path))


class PublishedVersion(Struct, frozen=True):
    """What we noted when we last wrote a document: the version that an edit of its file is an edit of."""

    number: int = 0
    sha: str = ""
    before: str = ""
    """The sha of the file before; empty if there was no file …"""
    stamp: str = ""
    """… and the stamp of that file, which is another if the same text is saved again."""
    file: str = ""
    cleaned: bool = False
    """The file was deleted by `docs clean`, so it is not missing."""
    mark: str = ""
    """The mark that was in force at the version (`mark_at`)."""

    def is_of(self, marks: Marks) -> bool:
        """Whether the version is one of a run with these marks, and not of a branch that its journal has lost."""
        return self.mark == mark_at(marks, self.number)

    def wrote(self, sha: str, stamp: str) -> bool:
        """Whether we wrote a text: it is this version's, or the one that this was to be written over."""
        return sha == self.sha or (sha == self.before and stamp == self.stamp)


NOTHING = PublishedVersion()
"""What is noted of a document that was never written."""


def key_of(run_id: str) -> str:
    """How a run's document is called in our bookkeeping: fit for file names, whatever the run is called."""
    return sha256(run_id.encode()).hexdigest()[:16]


def sha_of(text: str) -> str:
    """The hash of a text as the bytes of a file."""
    return sha256(encoded(text)).hexdigest()


async def edited(folder: Folder, key: str, marks: Marks, file: str) -> tuple[str, int] | None:
    """An edited text of a document, and the number of the record whose view was edited."""

    def look() -> tuple[str, int] | None:
        last, (text, stamp) = _last(folder, key, marks), folder.look(file)
        return None if text is None or last.wrote(sha_of(text), stamp) else (text, last.number)

    return await do_locked(folder.lock(key), look)


async def rescue(folder: Folder, key: str, marks: Marks, file: str) -> str:
    """Keep an edit that was saved while the process that wrote the file was killed; returns where, or an empty text."""
    return await do_locked(folder.lock(key), lambda: _rescue(folder, key, marks, file))


async def notes_of(folder: Folder) -> dict[str, PublishedVersion]:
    """What we have noted about every document, by key."""
    return {key: _read(note) for key, note in (await asyncio.to_thread(folder.notes)).items()}


async def note_ours(folder: Folder, key: str, marks: Marks, file: str, text: str, cleaned: bool = False) -> None:
    """Note that the text in a file is the last view of a document that has nothing more to say."""

    def note() -> None:
        last = _last(folder, key, marks)
        _note(
            folder,
            key,
            replace(NOTHING, number=last.number, mark=last.mark, sha=sha_of(text), file=file, cleaned=cleaned),
        )

    await do_locked(folder.lock(key), note)


async def put_back(folder: Folder, key: str, marks: Marks, file: str, text: str) -> bool:
    """Write the file of a document that has nothing more to say, if there is none. Returns whether it was written."""

    def write() -> bool:
        last = _last(folder, key, marks)
        _note(folder, key, replace(NOTHING, number=last.number, mark=last.mark, sha=sha_of(text), file=file))
        return folder.replace(file, text, over="")

    return await do_locked(folder.lock(key), write)


async def restore(folder: Folder, key: str, marks: Marks, file: str, found: str, text: str, tag: str) -> str:
    """Restore the file of a finished document, and keep what was found in it next to it; returns where.

    Nothing is done, and nothing returned, if the file no longer holds that text.
    """

    def put_right() -> str:
        text_now, stamp = folder.look(file)
        if text_now != found:
            return ""
        kept, last = folder.keep_beside(file, found, tag), _last(folder, key, marks)
        _note(folder, key, PublishedVersion(last.number, sha_of(text), sha_of(found), stamp, file, mark=last.mark))
        if folder.replace(file, text, over=sha_of(found), key=key):
            return kept
        _note(folder, key, last)
        return ""

    return await do_locked(folder.lock(key), put_right)


def _clear_and_publish(folder: Folder, key: str, marks: Marks, wanted: PublishCall) -> PublishedDocument:
    kept = _rescue(folder, key, marks, wanted.file)
    done = _publish(folder, key, marks, wanted)
    return replace(done, kept=kept) if kept else done


def _rescue(folder: Folder, key: str, marks: Marks, file: str) -> str:
    last = _last(folder, key, marks)
    return folder.rescue(key, file, ours=(last.sha, last.before))


def _publish(folder: Folder, key: str, marks: Marks, wanted: PublishCall) -> PublishedDocument:
    sha, last = sha_of(wanted.text), _last(folder, key, marks)
    if last.number > wanted.number:
        return PublishedDocument(file=wanted.file, done="newer")
    found, stamp = folder.look(wanted.file)
    before = "" if found is None else sha_of(found)
    if last.number == wanted.number and before == sha:
        return PublishedDocument(file=wanted.file, done="newer")
    if found is not None and before not in (wanted.over, sha) and not last.wrote(before, stamp):
        return PublishedDocument(file=wanted.file, done="edited", found=found, base=last.number)
    if found is not None and wanted.keep and before == wanted.over != sha:
        folder.keep_beside(wanted.file, found, wanted.keep)
        failpoint("documents.after_keep")
    mark = mark_at(marks, wanted.number)
    _note(folder, key, PublishedVersion(wanted.number, sha, before, stamp, wanted.file, mark=mark))
    failpoint("documents.after_note")
    if before != sha and not folder.replace(wanted.file, wanted.text, before, key):
        # an editor has saved in the meantime, with our text of before in front of it: as if we had not begun
        _note(folder, key, last)
        return _publish(folder, key, marks, wanted)
    return PublishedDocument(file=wanted.file, done="written")


def _last(folder: Folder, key: str, marks: Marks) -> PublishedVersion:
    found = _read(folder.note(key))
    return found if found.is_of(marks) else NOTHING


def _read(note: bytes) -> PublishedVersion:
    """No version, if the note is missing or damaged: then every text there counts as an edit."""
    try:
        return msgspec.json.decode(note, type=PublishedVersion)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return NOTHING


def _note(folder: Folder, key: str, version: PublishedVersion) -> None:
    folder.take_note(key, msgspec.json.encode(version))
