"""What callers can do with runs: start them, send them messages, answer their questions, fork them.

Each of these is a fact that `Runs.tell` records; what it leads to is done by the worker of this process, if there is
one. Once begun, it is done to its end, even if the caller goes away.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from ripstop.kernel.effects import AskPerson, Content, Limits
from ripstop.kernel.errors import Conflict, RunAlreadyStarted, RunForgotten, UsageError
from ripstop.kernel.events import (
    FORMAT,
    Answered,
    CancelRequested,
    Fact,
    Heard,
    Redefined,
    ResumeRequested,
    RunSettings,
    SettingsChanged,
    Started,
)
from ripstop.kernel.person_names import checked_name
from ripstop.kernel.questions import read_answer
from ripstop.kernel.run import Run

from .actions import action_fact
from .answered import already_answered
from .definitions import digest_of
from .entries import after_append, entry_of
from .forking import last_shared
from .forks import ForkChanges, fork_run
from .runs import Runs, View
from .soundness import check_run

__all__ = ["NO_SETTINGS", "Attachment", "Engine", "View"]

NO_SETTINGS = RunSettings()


class Attachment(Struct, frozen=True):
    """Content that comes with a message."""

    body: bytes
    name: str = ""
    media_type: str = ""


class Engine(Runs):
    async def start(
        self,
        run_id: str,
        style: str,
        definition: bytes,
        input: str = "",
        arguments: Mapping[str, Any] | None = None,
        limits: Limits = Limits(),
        settings: RunSettings = NO_SETTINGS,
        guards: Mapping[str, Any] | None = None,
        pinned: bytes = b"",
        definitions: Mapping[str, bytes] | None = None,
        parent: tuple[str, int] | None = None,
        surface: tuple[str, int] | None = None,
        depth: int = 0,
        key: str = "",
    ) -> Run[Any]:
        """Begin a run. Its definition is pinned by its content.

        With a `key`: if the run exists with the same key, definition, input and arguments, it is that run. Raises
        `RunAlreadyStarted` for any other that exists.

        Args:
            pinned: What it and its descendants can start, as JSON: `{definition: {workflow: Pin}}`.
            definitions: The content of what `pinned` names, by hash, unless the journal has it already.
        """
        if style not in self.registry.kits:
            raise UsageError(f"There is no style {style!r}; known are {', '.join(sorted(self.registry.kits))}.")
        digest = self._definitions.pin(style, definition)
        blobs = await self._definitions.family(self.journal, definition, pinned, definitions or {})
        started = Started(
            style=style,
            definition=digest,
            format=FORMAT,
            input=input,
            arguments=dict(arguments or {}),
            limits=limits,
            settings=settings,
            guards=dict(guards or {}),
            pinned=digest_of(pinned) if pinned else "",
            parent=parent,
            surface=surface,
            depth=depth,
            key=key,
        )
        try:
            return await self._tell_and_dispatch(run_id, started, blobs)
        except RunAlreadyStarted:
            run = (await self.look(run_id)).run
            same = (run.started.definition, run.started.input, run.started.arguments) == (
                digest,
                input,
                started.arguments,
            )
            if key and run.started.key == key and same:
                return run
            raise

    async def hear(
        self,
        run_id: str,
        text: str,
        by: str = "",
        channel: str = "",
        id: str = "",
        attachments: Sequence[Attachment] = (),
    ) -> Run[Any]:
        """Send a message to a run. Repeating the same id changes nothing."""
        blobs = {digest_of(one.body): one.body for one in attachments}
        contents = tuple(Content(digest_of(one.body), one.name, one.media_type) for one in attachments)
        heard = Heard(text=text, by=checked_name(by), channel=channel, id=id, attachments=contents)
        return await self._tell_and_dispatch(run_id, heard, blobs)

    async def tell_fact(self, run_id: str, fact: Fact, blobs: Mapping[str, bytes] | None = None) -> Run[Any]:
        """Append a fact, such as one of a style's own, with its decisions, and start the commands they ask for."""
        return await self._tell_and_dispatch(run_id, fact, blobs)

    async def act(
        self, run_id: str, name: str, fields: Mapping[str, Any], by: str = "", seen: int | None = None
    ) -> Run[Any]:
        """Do what a style lets people do with a run now (`Style.actions`).

        Args:
            seen: The length of the run when it was shown. If it has changed since, `UsageError` says so.
        """
        run = (await self.look(run_id)).run
        return await self._tell_and_dispatch(
            run_id, action_fact(self.style(run), run, name, fields, checked_name(by), seen)
        )

    async def cancel(self, run_id: str, by: str = "", because: str = "") -> Run[Any]:
        return await self._tell_and_dispatch(run_id, CancelRequested(by=checked_name(by), because=because))

    async def resume(
        self, run_id: str, raises: Mapping[str, float] | None = None, by: str = "", accept_edits: bool = False
    ) -> Run[Any]:
        """Resume a run that was saved or that a guard stopped, with limits raised by these amounts.

        `accept_edits`: files that changed in a way that stopped it are right as they are.

        Raises `RunHasEnded` if it ended otherwise, and `UsageError` if it would stop again at once.
        """
        requested = ResumeRequested(raises=dict(raises or {}), by=checked_name(by), accept_edits=accept_edits)
        return await self._tell_and_dispatch(run_id, requested)

    async def change_settings(self, run_id: str, settings: RunSettings, by: str = "") -> Run[Any]:
        """Change settings of a run, for its open commands and all later ones."""
        return await self._tell_and_dispatch(run_id, SettingsChanged(settings=settings, by=checked_name(by)))

    async def redefine(
        self, run_id: str, definition: bytes, pinned: bytes = b"", definitions: Mapping[str, bytes] | None = None
    ) -> Run[Any]:
        """Continue a run with a new definition, in place. `pinned` and `definitions` are as for `start`."""
        run = (await self.look(run_id)).run
        digest = self._definitions.pin(run.started.style, definition)
        blobs = await self._definitions.family(self.journal, definition, pinned, definitions or {})
        redefined = Redefined(definition=digest, pinned=digest_of(pinned) if pinned else "")
        return await self._tell_and_dispatch(run_id, redefined, blobs)

    async def answer(
        self,
        run_id: str,
        number: int,
        words: str = "",
        *,
        choice: str = "",
        document: str | None = None,
        fields: Mapping[str, Any] | None = None,
        by: str = "",
    ) -> Run[Any]:
        """Answer a question on the desk for a person. Raises `AlreadyAnswered` or `UsageError`."""
        before = (await self.look(run_id)).run
        opened = before.open.get(number)
        if opened is None or not isinstance(opened.command, AskPerson):
            raise already_answered(run_id, number, await self.journal.read(run_id))
        if objection := self.style(before).objection(before, number, checked_name(by)):
            raise UsageError(objection)
        said = read_answer(opened.command, words, choice=choice, document=document, fields=fields, by=by)
        run = await self._tell_and_dispatch(run_id, Answered(to=number, answer=said))
        recorded = (record.event for record in await self.journal.read(run_id, after=before.length))
        if not any(isinstance(event, Answered) and (event.to, event.answer) == (number, said) for event in recorded):
            raise already_answered(run_id, number, await self.journal.read(run_id))  # a moment ago
        return run

    async def put_back(self, run_id: str) -> None:
        """Have workers work again on a run that one of them has set aside."""
        await self.journal.set_aside(run_id, "")
        if self.dispatcher:
            self.dispatcher.wake()

    async def fork(
        self,
        run_id: str,
        at: int | None,
        new_id: str,
        definition: bytes | None = None,
        limits: Limits | None = None,
        settings: RunSettings | None = None,
        pinned: bytes | None = None,
        definitions: Mapping[str, bytes] | None = None,
        workspace: str = "",
    ) -> Run[Any]:
        """Continue from a record of a run, under a new id, with the old or a new definition, limits and settings.

        At a fact: what was decided on it is decided again. Anywhere else: at the end of that step,
        and what was open there is asked again. Without `at`: see `forking`.
        """
        await check_run(self.journal, run_id)
        records = await self.journal.read(run_id)
        if not records:
            raise await self.not_found(run_id)
        del records[last_shared(run_id, records, at, redefined=definition is not None) :]
        style = self._style(run_id, records[0])
        if style.unforkable:
            raise UsageError(style.unforkable)
        contents = await self._definitions.contents(self.journal, records, style.name)
        digest = "" if definition is None else self._definitions.pin(style.name, definition)
        pins = None if pinned is None else digest_of(pinned) if pinned else ""
        wanted = ForkChanges(digest, pins, limits, settings, workspace)
        fork = fork_run(style, contents, run_id, records, new_id, wanted, self.clock())
        step, used = fork.step, fork.step.run
        if definition is None:
            definition = await self.journal.blob(used.definition)
        if pinned is None:
            pinned = await self.journal.blob(used.pinned) if used.pinned else b""
        blobs = await self._definitions.family(self.journal, definition, pinned, definitions or {})

        async def append() -> Run[Any]:
            cell = self._cache.use(new_id)
            async with cell:
                shared = run_id, fork.shared.length
                kit = self.kit(used)
                entry, jobs = entry_of(new_id, kit, None, step, fork.changes, self.dispatcher, blobs, fork=shared)
                try:
                    await self.journal.append(entry)
                except Conflict as error:
                    for one in (run_id, new_id):
                        if isinstance(gone := await self.not_found(one), RunForgotten):
                            raise gone from error
                    raise RunAlreadyStarted(new_id) from error
                cell.style, cell.run, cell.checked = style, used, True
            after_append(self.live, self.dispatcher, style, step, fork.changes)
            if self.dispatcher and fork.asks_again:
                self.dispatcher.wake()
            self._dispatch(jobs)
            return used

        return await self._see_through(append())
