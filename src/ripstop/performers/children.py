"""Starts other workflows as children of a run, and brings back how they ended.

A child's id follows from its parent's command, so starting it twice starts it once. When a child
ends, its journal entry makes the parent's command due again in the same transaction; it is then
answered from what the child's journal says.
"""

from collections.abc import Callable
from typing import Any

from ripstop.kernel.effects import Answer, Command, RunFinished, StartRun
from ripstop.kernel.errors import RipstopError, RunAlreadyStarted, RunNotFound
from ripstop.kernel.run import Run
from ripstop.runtime.engine import Engine
from ripstop.runtime.ports import Kind, Refused, Request

Resolve = Callable[[str, str], tuple[str, bytes]]
"""(workflow, input) → (style, pinned definition)"""


def child_id(parent: str, number: int) -> str:
    return f"{parent}.{number}"


class Children:
    def __init__(self, engine: Engine, resolve: Resolve) -> None:
        self._engine = engine
        self._resolve = resolve

    async def perform(self, request: Request) -> Answer | None:
        command = request.command
        assert isinstance(command, StartRun)
        name = child_id(request.run_id, request.number)
        try:
            child = (await self._engine.look(name)).run
        except RunNotFound:
            child = await self._start(name, command, request)
        return _finished(child)

    async def _start(self, name: str, command: StartRun, request: Request) -> Run[Any]:
        try:
            style, definition = self._resolve(command.workflow, command.input)
        except RipstopError as error:
            raise Refused(f"The workflow {command.workflow!r} cannot be started: {error}", "definition") from error
        parent = await self._engine.standing(request.run_id)
        try:
            return await self._engine.start(
                name,
                style,
                definition,
                input=command.input,
                limits=command.limits,
                settings=request.settings,
                parent=(request.run_id, request.number),
                depth=parent.started.depth + 1,
                guards=parent.started.guards,
            )
        except RunAlreadyStarted:
            return (await self._engine.look(name)).run

    def kind(self, command: Command) -> Kind:
        return Kind.KEYED

    def provider(self, request: Request) -> str:
        return ""

    async def probe(self, request: Request) -> Answer | None:
        return None


def _finished(child: Run[Any]) -> RunFinished | None:
    if child.ended is None:
        return None
    return RunFinished(run=child.id, outcome=child.ended.outcome, because=child.ended.because, usage=child.spent.usage)
