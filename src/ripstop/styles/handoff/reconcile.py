"""Reconciling a folder: every file is read and compared with the journal.

- An unknown document is taken in. An edited one is read back, and its file is restored if the edit is refused.
- A file that is not a document is set aside, unless it was the file of one: then it is restored. The same goes for
  a file whose id was changed. Its name shows whose file it was, and for a finished document also its content:
  a name that is no longer needed may be taken by another document.
- A document that is under way and whose file is gone gets it back; one whose file was renamed is found under its
  new name. A copy is reported, and left alone. If the whole folder is gone, or the file of a finished document, that
  is reported; `restore` writes it back.
- A document whose run is held, because its journal was restored, is left as it is, and its file too.
- One bad file does not stop the others: what is wrong with it is reported.
"""

import asyncio
from collections.abc import Collection
from contextlib import suppress
from typing import Protocol

from msgspec.structs import replace

from ripstop.app.application import App, now
from ripstop.engine.performers import Refused, TryAgain
from ripstop.kernel.advice import Advice, NextStep
from ripstop.kernel.errors import RunHasEnded, RunNotFound
from ripstop.kernel.restoring import is_held
from ripstop.kernel.run import Run

from .document import HandoffDocument, Malformed, read, write
from .document_view import DocumentView, FolderWarning, Verdict
from .edits import is_of
from .events import FileMissing, FileRenamed, PublishRequested
from .files import FoundFile, Missing
from .folder import WORKFLOWS, Folder
from .folder_runs import FolderRuns
from .publisher import PublishedVersion, edited, key_of, note_ours, notes_of, put_back, rescue, restore, sha_of
from .state import FINAL, WRITES, HandoffState, asked_of

SETTLED = 2_000_000
"""Microseconds after which a file that cannot be read is not just being written."""


def settles(mtime: int) -> int:
    """When a file that was changed then is surely not being written any more; 0 if that is so by now."""
    return mtime + SETTLED if abs(now() - mtime) < SETTLED else 0


class Documents(Protocol):
    """Whose documents these are (`service.HandoffService`)."""

    app: App
    folder: Folder
    runs: FolderRuns
    unsettled: dict[str, int]

    def warn(self, warning: FolderWarning) -> None: ...

    async def run_of(self, document: str) -> str: ...

    def document(self, run: Run[HandoffState]) -> DocumentView: ...

    async def state(self, run_id: str) -> Run[HandoffState]: ...

    async def adopt(self, name: str, text: str, document: HandoffDocument) -> DocumentView: ...

    async def offer(self, run: Run[HandoffState], text: str, base: int | None = None) -> Verdict: ...

    async def written(self, run_id: str) -> Run[HandoffState]: ...

    def is_old(self, run: Run[HandoffState], days: float) -> bool: ...


class Reconciliation:
    """One look at everything."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._folder = documents.folder
        self._found: dict[str, DocumentView] = {}
        self._files: set[str] = set()
        """The files that there are. A finished document whose name another one has taken is not missed."""
        self._active: set[str] = set()
        """Runs that are under way."""
        self._ended: set[str] = set()
        self._put_back_runs: set[str] = set()
        """Runs whose file was gone and is there again."""
        self._notes: dict[str, PublishedVersion] = {}
        """What we have noted about the documents, by key; only if we look at all of them."""
        self._runs_by_file: dict[str, list[str]] | None = None
        """Looked up when first needed."""
        self.unread: list[DocumentView] = []
        """Documents whose files cannot be read and may still be being written, as they were before."""

    async def of(self, names: Collection[str] | None) -> list[DocumentView]:
        ended = await self._documents.runs.list()
        self._active = {run_id for run_id, is_over in ended.items() if not is_over}
        self._ended = {run_id for run_id, is_over in ended.items() if is_over}
        if not await asyncio.to_thread(self._folder.is_there):
            await self._warn_about_missing(self._active | self._ended)
            return []
        await self._rescue()
        if names is None:
            self._notes = await notes_of(self._folder)
        for name in [*self._documents.unsettled] if names is None else names:
            self._documents.unsettled.pop(name, None)
        for file in await asyncio.to_thread(self._folder.documents, names):
            self._files.add(file.name)
            try:
                self._note(file.name, await self._take_in(file))
            except (Refused, TryAgain) as problem:
                self._warn(file.name, str(problem))
        for run_id in sorted(self._active - self._found.keys()) if names is None else ():
            try:
                await self._seek(run_id)
            except (Refused, TryAgain) as problem:
                document = self._found[run_id] = self._documents.document(await self._documents.state(run_id))
                self._warn(document.file, str(problem))
        if names is None:
            noted = {run_id for run_id in self._ended if key_of(run_id) in self._notes}
            await self._warn_about_missing(noted - self._found.keys())
        refused = await asyncio.to_thread(self._folder.refused)
        return [replace(one, refused=tuple(refused.get(one.file, ()))) for one in self._found.values()]

    async def restore(self, keep_days: float) -> list[DocumentView]:
        """Write back what is in the journal and not in the folder."""
        await self.of(None)
        back = [document for document in self._found.values() if document.run in self._put_back_runs]
        for run_id in sorted((self._active | self._ended) - self._found.keys()):
            run = await self._documents.state(run_id)
            if self._documents.is_old(run, keep_days) or self._is_cleaned(run_id):
                continue
            if await self._still_there(run):
                self._warn(run.state.file, f"{run.state.document.id} cannot be written back: another file has its name")
                continue
            document = await self._put_back(run)
            if document:
                back.append(document)
        return back

    def _is_cleaned(self, run_id: str) -> bool:
        note = self._notes.get(key_of(run_id))
        return note is not None and note.cleaned

    async def _warn_about_missing(self, runs: Collection[str]) -> None:
        """Say how many documents the journal has whose files are not here."""
        days, missing = self._documents.app.settings.docs.keep_days, 0
        for run_id in runs:
            if not self._is_cleaned(run_id):
                run = await self._documents.state(run_id)
                missing += run.state.file not in self._files and not self._documents.is_old(run, days)
        if missing:
            what = "1 document that is" if missing == 1 else f"{missing} documents that are"
            restore = NextStep("restore_documents", "", ": {}")
            self._warn(WORKFLOWS, Advice(f"the journal has {what} not in this folder", restore))

    def _warn(self, file: str, text: str) -> None:
        self._documents.warn(FolderWarning(file, text))

    def _note(self, file: str, document: DocumentView | None) -> None:
        if document is None:
            return
        if document.file != file:
            self._warn(file, f"it is a copy of {document.file!r}; give it another id, or delete it")
        self._found.setdefault(document.run, document)

    async def _rescue(self) -> None:
        """Keep what was saved at the moment the process that wrote the file was killed."""
        keys = await asyncio.to_thread(self._folder.replacing)
        for run_id in [run_id for run_id in self._active | self._ended if key_of(run_id) in keys] if keys else ():
            run = await self._documents.state(run_id)
            file = run.state.file
            try:
                kept = await rescue(self._folder, key_of(run_id), run.marks, file)
            except (Refused, TryAgain) as problem:
                self._warn(file, str(problem))
                continue
            if kept:
                self._warn(file, f"it was edited when a process was killed that wrote it; that edit is in {kept}")

    async def _take_in(self, found: FoundFile) -> DocumentView | None:
        """A document from its file, which is taken in if it is new and read back if it was edited."""
        try:
            if found.text is None:
                raise Malformed(1, found.problem)
            document = read(found.text)
        except Malformed as problem:
            return await self._unreadable(found, problem)
        try:
            run = await self._documents.state(await self._documents.run_of(document.id))
        except RunNotFound:
            owner = await self._owner(found.name, document)
            if owner is not None:  # its id was changed, which is an edit like any other
                return await self._read_back(owner)
            try:
                return await self._documents.adopt(found.name, found.text, document)
            except Malformed as problem:
                return await self._unreadable(found, problem)
        if found.name == run.state.file:
            note = self._notes.get(key_of(run.id))
            if note is not None and note.is_of(run.marks) and note.sha == sha_of(found.text):
                return await self._unwritten(run)
            return await self._read_back(run)
        owner = await self._owner(found.name, document)
        return await (self._read_back(owner) if owner else self._renamed(run, found.name))

    async def _owner(self, file: str, document: HandoffDocument | None) -> Run[HandoffState] | None:
        """The run that the file belongs to; `document`: what it holds, if it can be read."""
        if self._runs_by_file is None:
            self._runs_by_file = await self._files_of_runs()
        owners = self._runs_by_file.get(file, ())
        for run_id in sorted(owners, key=lambda run_id: run_id in self._ended):
            run = await self._documents.state(run_id)
            ours = run_id in self._active or document is None or is_of(document, run.state.document)
            if run.state.file == file and ours:
                return run
        return None

    async def _files_of_runs(self) -> dict[str, list[str]]:
        """By file: the runs whose document was last written there. One that was never written is asked itself."""
        notes = self._notes or await notes_of(self._folder)
        found: dict[str, list[str]] = {}
        for run_id in self._active | self._ended:
            note = notes.get(key_of(run_id))
            if note is not None:
                found.setdefault(note.file, []).append(run_id)
            elif run_id in self._active:
                found.setdefault((await self._documents.state(run_id)).state.file, []).append(run_id)
        return found

    async def _read_back(self, run: Run[HandoffState]) -> DocumentView | None:
        file = run.state.file
        try:
            change = await edited(self._folder, key_of(run.id), run.marks, file)
        except Missing:
            return None
        if change is None:
            return await self._unwritten(run)
        text, base = change
        if is_held(run):
            ahead = "its file is ahead of the journal, which was restored from a copy, or was edited since"
            self._warn(file, f"{ahead}; it is read back once it is answered what became of {run.id}")
            return self._documents.document(run)
        if run.ended and text == write(run.state.document):  # the note of it was lost
            await note_ours(self._folder, key_of(run.id), run.marks, file, text)
            return self._documents.document(run)
        if run.ended or run.state.document.status in FINAL:
            ours = write(run.state.document)
            kept = await restore(self._folder, key_of(run.id), run.marks, file, text, ours, "final")
            if kept:
                reason = f"{run.state.document.id} is {run.state.document.status}, which is final"
                self._warn(file, f"{reason}; the file was put right, and what was written is in {kept}")
            return self._documents.document(run)
        try:
            verdict = await self._documents.offer(run, text, base)
        except RunHasEnded:  # it was ended since we looked
            return await self._read_back(await self._documents.state(run.id))
        if verdict.refusal:
            kept = f"what was written is kept next to it ({file}.refused-…)"
            self._warn(file, f"{verdict.refusal.rstrip('.')}; the file was put right, {kept}")
        for note in verdict.notes:
            self._warn(file, f"the edit was taken over; {note}")
        return verdict.document

    async def _unwritten(self, run: Run[HandoffState]) -> DocumentView:
        """Handle a file without an edit. If it could not be written the last time, try again now."""
        if run.state.unwritten and not run.ended:
            with suppress(RunHasEnded):  # it was ended since we looked
                await self._documents.app.engine.tell_fact(run.id, PublishRequested())
        if _has_open_writes(run) or run.state.unwritten:
            run = await self._documents.written(run.id)
        return self._documents.document(run)

    async def _renamed(self, run: Run[HandoffState], file: str) -> DocumentView | None:
        """The same document under another name: a copy, or its file was renamed."""
        if await self._still_there(run):
            return self._documents.document(run)
        if run.ended:
            return replace(self._documents.document(run), file=file)
        try:
            await self._documents.app.engine.tell_fact(run.id, FileRenamed(file=file))
        except RunHasEnded:  # it was ended since we looked
            return await self._renamed(await self._documents.state(run.id), file)
        return await self._read_back(await self._documents.written(run.id))

    async def _still_there(self, run: Run[HandoffState]) -> bool:
        return await asyncio.to_thread(self._folder.read, run.state.file) is not None

    async def _unreadable(self, found: FoundFile, problem: Malformed) -> DocumentView | None:
        """A file that is not a document: put right if it was one, set aside if not."""
        words = str(problem).rstrip(".")
        if not found.mtime:  # its name cannot even be used
            self._warn(found.name, f"{words}.")
            return None
        if due := settles(found.mtime):
            self._documents.unsettled[found.name] = due
            self._warn(found.name, f"{words}.")
            if unsettled := await self._owner(found.name, None):
                self.unread.append(replace(self._documents.document(unsettled), unread=words))
            return None  # it may still be being written
        owner = await self._owner(found.name, None)
        if owner is not None and found.text is not None:
            return await self._read_back(owner)
        try:
            place = await asyncio.to_thread(self._folder.set_aside, found.name, str(problem))
        except Missing:
            return None  # another process was quicker
        document = await self._put_back(owner) if owner else None
        again = ", and the document is there again" if document else ""
        self._warn(found.name, f"{words}; it was set aside as {place}{again}")
        return document

    async def _seek(self, run_id: str) -> None:
        """A document is under way, and we have not come across its file."""
        run = await self._documents.state(run_id)
        if _has_open_writes(run):  # it has not been written yet, if it is new
            run = await self._documents.written(run_id)
        if run.state.file not in self._files:  # another process, or another run, may have written it since we looked
            for file in await asyncio.to_thread(self._folder.documents, [run.state.file]):
                self._files.add(file.name)
                self._note(file.name, await self._take_in(file))
        if run_id in self._found or run.ended or run.state.document.status in FINAL or await self._still_there(run):
            return
        if is_held(run):
            self._found[run_id] = self._documents.document(run)
            self._warn(run.state.file, f"it is gone; it is written once it is answered what became of {run_id}")
            return
        document = await self._put_back(run)
        if document:
            self._found[run_id] = document
            self._put_back_runs.add(run_id)
            end = NextStep("terminate_document", "to end it, terminate it", "to end it: {}", document.id)
            self._warn(document.file, Advice("it was gone and is there again; ", end))

    async def _put_back(self, run: Run[HandoffState]) -> DocumentView | None:
        """Write the missing file of a document again. `None` if another process has changed something meanwhile."""
        if run.ended:
            back = await put_back(self._folder, key_of(run.id), run.marks, run.state.file, write(run.state.document))
            return self._documents.document(run) if back else None
        try:
            await self._documents.app.engine.tell_fact(run.id, FileMissing())
        except RunHasEnded:
            return None
        return self._documents.document(await self._documents.written(run.id))


def _has_open_writes(run: Run[HandoffState]) -> bool:
    """Whether a file is still to be written, or a reply to be sent."""
    return any(asked_of(opened.command) in WRITES for opened in run.open.values())
