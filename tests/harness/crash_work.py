"""The process that the crash harness kills: real journal, engine and worker, and effects that leave traces.

    python -m tests.harness.crash_work FOLDER ANSWERS LEAVE_AFTER

- Works on the journal in FOLDER until its runs have ended or wait for a person, then goes.
- ANSWERS is what people have said meanwhile, as JSON: [[run, number, choice, text], …].
- LEAVE_AFTER: stop in an orderly way after so many acknowledged steps; 0 for never.
- What has been acknowledged is appended to `acknowledged.jsonl` right after the append returned, and every
  effect to `effects.jsonl` before it returns. Neither file is written by anything that knows the journal.
"""

import asyncio
import contextlib
import hashlib
import os
import sys
import time
from collections.abc import Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from ripstop.engine.children import ChildAnswers, Children
from ripstop.engine.engine import Engine
from ripstop.engine.live import Appended, Live, LiveEvent
from ripstop.engine.messages import DeliveredMessage, Messages
from ripstop.engine.performers import Kind, Performer, Request, TimerPerformer
from ripstop.engine.ports import RunQuery
from ripstop.engine.worker import Worker
from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.kernel.effects import (
    Answer,
    AnswerChild,
    AskAgent,
    AskPerson,
    CallTool,
    Command,
    Say,
    SetTimer,
    StartRun,
    ToolReturned,
)
from ripstop.kernel.errors import RunAlreadyStarted, UsageError
from ripstop.kernel.events import Record
from ripstop.kernel.outages import RetryPolicy
from ripstop.kernel.registry import Registry
from ripstop.models.router import Agents
from ripstop.styles.graph.kit import KIT
from ripstop.testing.stub_style import ERRANDS
from ripstop.tools.toolbox import Tool, Toolbox, tool
from ripstop.tools.workspace_tools import FileTools
from tests.engine.clerk_style import CLERK
from tests.harness.crash_runs import ALLOWED, CHANNEL, DEFINITIONS, DOOMED, PINNED, RUNS, SCRIPT

REGISTRY = Registry([KIT, ERRANDS, CLERK])
CODEC = REGISTRY.codec
LOOK = 0.01
"""Seconds between two looks at whether there is anything left to do."""

T = TypeVar("T")

_encode = msgspec.json.encode


def now() -> int:
    return time.time_ns() // 1000


class Effect(Struct, frozen=True):
    """A trace that something was really done."""

    kind: str
    key: str
    attempt: int
    value: str
    pid: int


class Acknowledged(Struct, frozen=True):
    """A record of which the engine has said that it is durable."""

    run: str
    number: int
    digest: str


def digest_of(record: Record) -> str:
    return hashlib.sha256(b"%d %d %b" % (record.number, record.at, CODEC.dump(record.event))).hexdigest()


class Traces:
    """Two append-only files. A line is one write, so a kill leaves a line whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._effects = os.open(folder / "effects.jsonl", flags, 0o644)
        self._acknowledged = os.open(folder / "acknowledged.jsonl", flags, 0o644)
        self.steps = 0

    def effect(self, kind: str, key: str, attempt: int, value: str) -> None:
        os.write(self._effects, _encode(Effect(kind, key, attempt, value, os.getpid())) + b"\n")
        os.fsync(self._effects)

    def acknowledge(self, sight: LiveEvent) -> None:
        if isinstance(sight, Appended):
            lines = [_encode(Acknowledged(sight.run_id, r.number, digest_of(r))) for r in sight.records]
            os.write(self._acknowledged, b"\n".join(lines) + b"\n")
            self.steps += 1

    async def heard(self, message: DeliveredMessage) -> None:
        self.effect("say", message.key, message.attempt, message.text)

    def happened(self, kind: str, key: str) -> bool:
        return any((effect.kind, effect.key) == (kind, key) for effect in read_effects(self._folder))

    def other_side(self, key: str) -> None:
        """What a service that takes our key does: the first time it acts, after that it does not."""
        path = self._folder / f"once-{key.replace('/', '-')}"
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))


def read_effects(folder: Path) -> list[Effect]:
    return _read(folder / "effects.jsonl", Effect)


def read_acknowledged(folder: Path) -> list[Acknowledged]:
    return _read(folder / "acknowledged.jsonl", Acknowledged)


def _read(path: Path, kind: type[T]) -> list[T]:
    return [msgspec.json.decode(line, type=kind) for line in path.read_bytes().splitlines()] if path.exists() else []


_doing: ContextVar[tuple[str, int]] = ContextVar("doing")
"""(key, attempt) of the command under way; a tool would not know them otherwise."""


class Witnessed:
    """A performer whose tools can tell for which command they work."""

    def __init__(self, inner: Performer) -> None:
        self._inner = inner

    async def perform(self, request: Request) -> Answer | None:
        _doing.set((request.key, request.attempt))
        return await self._inner.perform(request)

    async def probe(self, request: Request) -> Answer | None:
        _doing.set((request.key, request.attempt))
        return await self._inner.probe(request)

    def kind(self, command: Command) -> Kind:
        return self._inner.kind(command)

    def offers(self) -> Sequence[str]:
        return self._inner.offers()

    def provider(self, request: Request) -> str:
        return self._inner.provider(request)


class WitnessedTools(Witnessed):
    """Tools, and one that asks a person first."""

    def __init__(self, inner: Performer, traces: Traces) -> None:
        super().__init__(inner)
        self._traces = traces

    async def perform(self, request: Request) -> Answer | None:
        if not isinstance(request.command, CallTool) or request.command.tool != ALLOWED:
            return await super().perform(request)
        said = await request.ask("permission", AskPerson(question="May it?"))
        if said is None:
            return None
        self._traces.effect("pure", request.key, request.attempt, said.text)
        return ToolReturned(value=said.text)

    def kind(self, command: Command) -> Kind:
        return Kind.PURE if isinstance(command, CallTool) and command.tool == ALLOWED else super().kind(command)

    def offers(self) -> Sequence[str]:
        return (*super().offers(), f"tool:{ALLOWED}")


class WitnessedAgents(Witnessed):
    """Agents whose calls leave traces, as a provider's bill would."""

    def __init__(self, agents: Agents, traces: Traces) -> None:
        super().__init__(agents)
        self._traces = traces

    async def perform(self, request: Request) -> Answer | None:
        answer = await super().perform(request)
        self._traces.effect("agent", request.key, request.attempt, "")
        return answer


class WitnessedFiles(FileTools):
    """File tools whose writes leave traces."""

    def __init__(self, traces: Traces) -> None:
        super().__init__()
        self._traces = traces

    async def perform(self, request: Request) -> Answer | None:
        answer = await super().perform(request)
        self._traces.effect("pure", request.key, request.attempt, "")
        return answer


def tools(traces: Traces) -> list[Tool]:
    """One of each kind. What they return follows from what they are asked, whatever else happens."""

    def done(kind: str, value: str) -> str:
        traces.effect(kind, *_doing.get(), value)
        return value

    @tool("pure")
    def look_up(what: str) -> str:
        return done("pure", f"{what} looked up")

    @tool("keyed")
    def pay(what: str, key: str) -> str:
        traces.other_side(key)
        return done("keyed", f"{what} paid")

    def was_posted(what: str) -> str | None:
        return f"{what} posted" if traces.happened("probeable", _doing.get()[0]) else None

    @tool("probeable", probe=was_posted)
    def post(what: str) -> str:
        return done("probeable", f"{what} posted")

    @tool("unsafe")
    def ring(what: str) -> str:
        return done("unsafe", f"{what} rung")

    return [look_up, pay, post, ring]


def performers(engine: Engine, traces: Traces, script: Path) -> dict[type, Performer]:
    messages = Messages(engine, {CHANNEL: traces.heard})
    toolbox = Toolbox(tools(traces), files=WitnessedFiles(traces))
    agents = Agents(engine.live, toolbox.specs, default_model=f"script:{script}")
    return {
        AskAgent: WitnessedAgents(agents, traces),
        CallTool: WitnessedTools(toolbox, traces),
        Say: messages,
        AskPerson: messages,
        SetTimer: TimerPerformer(),
        StartRun: Children(engine),
        AnswerChild: ChildAnswers(engine),
    }


async def work(folder: Path, answers: list[tuple[str, int, str, str]], leave_after: int) -> None:
    traces, script = Traces(folder), folder / "script.jsonl"
    if not script.exists():
        new = script.with_suffix(f".{os.getpid()}")  # two processes may be here at the same time
        new.write_text(SCRIPT, encoding="utf-8")
        new.rename(script)
    journal = SqliteJournal(folder / "journal.db", CODEC)
    engine = Engine(journal, REGISTRY, now, Live())
    engine.live.watch(traces.acknowledge)
    worker = Worker(engine, performers(engine, traces, script), retry=RetryPolicy(pause=0.01))
    await worker.start()
    os.write(sys.stdout.fileno(), b".")  # to the harness: from here on there is something to disturb
    try:
        there = {info.run_id for info in (await engine.runs(RunQuery(size=1000))).items}
        for run_id, (style, content) in RUNS.items():
            if run_id not in there:
                with contextlib.suppress(RunAlreadyStarted):  # by another process, a moment ago
                    await engine.start(run_id, style, content, pinned=PINNED, definitions=DEFINITIONS)
        for run_id, number, choice, text in answers:
            with contextlib.suppress(UsageError):  # answered: the harness has told two processes
                await _answer(engine, run_id, number, choice, text)
        await _until_nothing_is_left(engine, worker, traces, leave_after)
    finally:
        await worker.stop(grace=0 if leave_after else 5)
        await journal.close()


async def _answer(engine: Engine, run_id: str, number: int, choice: str, text: str) -> None:
    """As people do: at the desk; in the chat where it shows the question; and by cancelling what is doomed."""
    if run_id.startswith("chat."):
        if (await engine.look("chat")).run.state.asked:  # else it has not appeared there yet
            await engine.hear("chat", choice, by="harness", id=f"{run_id}/{number}")
    elif run_id.startswith(f"{DOOMED}."):
        await engine.cancel(DOOMED, by="harness")
    else:
        await engine.answer(run_id, number, text, choice=choice, by="harness")


async def _until_nothing_is_left(engine: Engine, worker: Worker, traces: Traces, leave_after: int) -> None:
    calm = 0
    while calm < 3 and not (leave_after and traces.steps >= leave_after):
        await asyncio.sleep(LOOK)
        await worker.idle()
        calm = calm + 1 if await engine.journal.next_due(offers=worker.offers) is None else 0


def main() -> None:
    folder, answers, leave_after = sys.argv[1:]
    said = msgspec.json.decode(answers, type=list[tuple[str, int, str, str]])
    os.chdir(folder)  # so that the script has the same name in every journal
    asyncio.run(work(Path(), said, int(leave_after)))


if __name__ == "__main__":
    main()
