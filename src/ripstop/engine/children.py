"""Starts other workflows as children of a run, and brings back how they ended.

- A child's id follows from its parent's command, or is the name that the command asks for; starting it twice starts it
  once. What it is was pinned when the root of the family started.
- When a child has ended with all its own children, its journal entry makes the parent's command due in the same
  transaction; it is then answered from what the child's journal says.
- The command that started a child, or resumed it, pays for what it spent since then. Others that wait for it do not.
- A named run that ended otherwise than `completed`, or that a guard stopped, before it was asked for is resumed, if it
  can be and its time has come (`Ending.resume_at`), with the model of the run that asks. Whether the end came before or
  after the command is decided by a count of wake-ups, not by clocks.
- A named run that others share, and that waits for a person because a guard stopped it, is reported as if it had ended.
"""

from pathlib import PurePosixPath
from typing import Any

from msgspec.structs import replace

from ripstop.kernel.doubts import cut_off_in
from ripstop.kernel.effects import Answer, AnswerChild, Command, Failed, Limits, RunFinished, Said, StartRun
from ripstop.kernel.errors import AlreadyAnswered, RunAlreadyStarted, RunHasEnded, RunNotFound, UsageError
from ripstop.kernel.events import ChildSpoke, Ended, Heard, Pin, RunSettings
from ripstop.kernel.limits import AMOUNTS
from ripstop.kernel.outbox import child_id
from ripstop.kernel.questions import read_answer
from ripstop.kernel.restoring import may_have_happened
from ripstop.kernel.resuming import limit_of, outcome_of
from ripstop.kernel.run import Run, is_shared

from .engine import Engine
from .performers import Kind, Refused, Request
from .pinned_definitions import Pins
from .ports import text_in

MODEL_SETTINGS = ("model", "model_for_all", "base_url", "small_model")

# Answers questions of descendants that were asked in another run's place, such as a chat.


class ChildAnswers:
    """The performer of `AnswerChild`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def perform(self, request: Request) -> Answer:
        command = request.command
        assert isinstance(command, AnswerChild)
        records = await request.history()
        spoke = records[command.asked - 1].event
        assert isinstance(spoke, ChildSpoke)
        said = records[command.about - 1] if command.about else None
        words = text_in(said) if said else ""
        by = said.event.by if said and isinstance(said.event, Heard) else ""
        try:
            await self._engine.answer(spoke.run, spoke.number, words, choice=command.choice, by=by)
        except AlreadyAnswered as error:
            assert spoke.ask is not None
            meant = read_answer(spoke.ask, words, choice=command.choice, by=by)
            # a worker that died may have given this very answer
            if (error.choice, error.text, error.by) != (meant.choice, meant.text, meant.by):
                return Failed(reason=str(error), fault="person")
        except UsageError as error:
            return Failed(reason=str(error), fault="person")
        return Said()

    def kind(self, command: Command) -> Kind:
        return Kind.PURE  # a question takes one answer, so a repeat changes nothing

    def offers(self) -> tuple[str, ...]:
        return ()

    def provider(self, request: Request) -> str:
        return ""

    async def probe(self, request: Request) -> Answer | None:
        return None


class Children:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def perform(self, request: Request) -> Answer | None:
        command = request.command
        assert isinstance(command, StartRun)
        name = child_id(request.run_id, request.number, command)
        try:
            child: Run[Any] | None = (await self._engine.look(name)).run
        except RunNotFound:
            child = None
        if request.superseded:
            return await self._undo(name, child, command, request)
        if child is None:
            child = await self._start(name, command, request)
        elif command.name and not request.woken:
            child = await self._resume(child, command, request)
        if child.asks_about_verdict and child.verdict and is_shared(request.run_id, command):
            stopped = Ended(outcome=outcome_of(child.verdict), because=child.verdict.text)
            return _finished(child, stopped, request.name)
        return _finished(child, child.ended, request.name) if child.is_settled else None

    async def _undo(self, name: str, child: Run[Any] | None, command: StartRun, request: Request) -> Answer | None:
        """The parent does not need it any more: cancel it, unless others may; report what it cost."""
        if child is None:
            return RunFinished(run=name, outcome="stopped", because="It was never started.")
        if is_shared(request.run_id, command):
            if child.payer != request.name:
                return Failed(reason=f"{name} was no longer needed.", fault="ours")
        elif not child.ended:
            try:
                child = await self._engine.cancel(name, because=f"{request.run_id} does not need it any more")
            except RunHasEnded:  # a moment ago
                child = (await self._engine.look(name)).run
        return _finished(child, child.ended, request.name) if child.is_settled else None

    async def _start(self, name: str, command: StartRun, request: Request) -> Run[Any]:
        parent = await self._engine.current(request.run_id)
        pins = await self._engine.pins(parent)
        pin = pins.get(parent.definition, {}).get(command.workflow)
        if pin is None:
            raise Refused(f"The workflow {command.workflow!r} was not pinned when {parent.id} started.", "definition")
        journal = self._engine.journal
        child = request.child
        assert child is not None
        shared = is_shared(request.run_id, command)
        definition = await journal.blob(pin.definition)
        folder = child.workspace or self._own_folder(parent, command, request, pin, definition)
        surface = (request.run_id, request.number) if command.surface else None if shared else parent.started.surface
        try:
            return await self._engine.start(
                name,
                pin.style,
                definition,
                input=child.input,
                arguments=child.arguments,
                limits=command.limits or Limits(),
                settings=_inside(parent.settings, folder),
                guards=parent.started.guards,
                pinned=await journal.blob(parent.pinned),
                # a shared run may outlive the family that started it
                definitions=await self._definitions(pins) if shared else None,
                parent=(request.run_id, request.number),
                surface=surface,
                depth=parent.started.depth + 1,
                in_doubt=may_have_happened(parent, request.number),
            )
        except RunAlreadyStarted:
            return (await self._engine.look(name)).run
        except UsageError as error:
            raise Refused(f"The workflow {command.workflow!r} cannot be started: {error}", "definition") from error

    def _own_folder(self, parent: Run[Any], command: StartRun, request: Request, pin: Pin, definition: bytes) -> str:
        """The folder, inside its parent's workspace, of a child that takes a whole workspace, as its parent does.

        Two projects in one folder would have one set of records. Empty: it works where its parent works.
        """
        registry = self._engine.registry
        if pin.style not in registry.kits or not self._engine.uses(parent).shares_workspace:
            return ""
        uses = registry.kits[pin.style].style.uses(registry.load(pin.style, definition))
        name = PurePosixPath(command.workflow).stem.lstrip(".") or pin.style
        return f"{name}-{request.number}" if uses.shares_workspace else ""

    async def _definitions(self, pins: Pins) -> dict[str, bytes]:
        named = {pin.definition for workflows in pins.values() for pin in workflows.values()}
        return {digest: await self._engine.journal.blob(digest) for digest in named}

    def _is_to_be_resumed(self, child: Run[Any], settings: RunSettings, shared: bool) -> bool:
        ending = self._engine.style(child).ending(child.state)
        if not (shared and child.asks_about_verdict):
            if not child.is_settled or child.ended is None or child.ended.outcome == "completed":
                return False
            if child.verdict is None and not ending.is_resumable:
                return False
        return settings != child.settings or self._engine.clock() >= ending.resume_at

    async def _resume(self, child: Run[Any], command: StartRun, request: Request) -> Run[Any]:
        """Continue a run that has stopped, with the model of this run and what it has left for it; else as it is."""
        parent, settings = await self._engine.current(request.run_id), child.settings
        shared = is_shared(request.run_id, command)
        if shared:  # it was started by another run, perhaps with a model that is not used any more
            settings = replace(settings, **{name: getattr(parent.settings, name) for name in MODEL_SETTINGS})
        if not self._is_to_be_resumed(child, settings, shared):
            return child
        raises: dict[str, float] = {}
        if shared and command.limits:
            raises = {name: most for name in AMOUNTS if name != "depth" and (most := getattr(command.limits, name))}
        limit = limit_of(child.verdict) if child.verdict else ""
        if child.verdict and limit and limit not in raises:
            asked = getattr(command.limits, limit, None) if command.limits else None
            if asked == 0:  # of `runs` nothing is set aside; it would stop again at once
                return child
            raises[limit] = asked or child.verdict.limit or 1
        if settings != child.settings:
            await self._engine.change_settings(child.id, settings, by=request.name)
        return await self._engine.resume(child.id, raises, by=request.name)

    def kind(self, command: Command) -> Kind:
        return Kind.KEYED

    def offers(self) -> tuple[str, ...]:
        return ()

    def provider(self, request: Request) -> str:
        return ""

    async def probe(self, request: Request) -> Answer | None:
        return None


def _inside(settings: RunSettings, folder: str) -> RunSettings:
    """The settings of a child, which may work in a folder inside its parent's workspace."""
    if not folder:
        return settings
    path = PurePosixPath(folder)
    if path.is_absolute() or ".." in path.parts or not settings.workspace:
        raise Refused(f"{folder!r} is not a folder inside the workspace.", "definition")
    return replace(settings, workspace=f"{settings.workspace}/{path}")


def _finished(child: Run[Any], ended: Ended | None, asker: str) -> RunFinished:
    assert ended is not None
    spent, paid = child.spent, child.paid
    finished = RunFinished(
        run=child.id,
        outcome=ended.outcome,
        because=ended.because,
        result=ended.result,
        uncertain=cut_off_in(child),
        worked=None if child.limits.seconds is None else child.work.counted,
        refused=ended.outcome != "completed" and child.failed_call is not None,
    )
    if child.payer != asker:
        return finished
    runs = spent.runs - paid.runs + 1
    return replace(finished, usage=spent.usage.minus(paid.usage), calls=spent.calls - paid.calls, runs=runs)
