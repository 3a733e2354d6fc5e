"""Makes `formatN.sql`, a journal as format N writes it. Run once per format, or when there are new events
(`format2b.sql` is the second of format 2), and never again for an old one:

    python -m tests.old_journals.make tests/old_journals/format2b.sql

`format2.sql` is of 0.2; `format2b.sql` also has what 0.3 added to the same format.

A later version must still open it, fold it to the fingerprints in it, find it undamaged, and continue it. What a
fingerprint counts has changed once since (fields with their defaults are left out): those here are of the version that
wrote the journal, with the new count.
"""

import asyncio
import sqlite3
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ripstop.app.plugins import BUILT_IN, Plugins
from ripstop.engine.engine import Attachment, Engine
from ripstop.engine.ports import RunQuery
from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.kernel.doubts import AGAIN, HAPPENED
from ripstop.kernel.effects import (
    ANSWER_TO,
    AgentReplied,
    Answer,
    AnswerChild,
    AskAgent,
    AskPerson,
    CallTool,
    Command,
    Failed,
    Field,
    Limits,
    PersonAnswered,
    RunFinished,
    Said,
    Say,
    SetTimer,
    StartRun,
    TimerFired,
    ToolCall,
    ToolReturned,
    Usage,
)
from ripstop.kernel.events import Answered, CallHeldBack, CallRefused, ChildSpoke, Doubted, Restored, RunSettings
from ripstop.kernel.registry import Registry
from ripstop.kernel.run import fingerprint
from ripstop.testing import ERRANDS, Errands, FakeClock

LIMITS = Limits(tokens=100_000, money=5.0, calls=50, seconds=86_400.0, turns=9, input_price=1.5, output_price=6.0)
SETTINGS = RunSettings(
    model="script:x", model_for_all="local", base_url="http://127.0.0.1:1/v1", workspace="/w", folder="/d"
)
ASK = AskPerson(
    question="好吗?",
    purpose="errands.ask",
    title="a.md",
    to="ada",
    about=(2,),
    document=2,
    choices={"yes": "Yes, please", "no": "", "edit": ""},
    other="no",
    empty="yes",
    edit="edit",
    fields={"grade": Field(label="Grade", type="one_of", allowed=("a", "b"), required=True)},
)
ROUNDS: tuple[tuple[Command, ...], ...] = (
    (AskAgent(agent="ada", kind="coder", model="m", context=(1,)),),
    (
        CallTool(tool="write", agent="ada", source=(4, 0)),
        CallTool(tool="pay", arguments={"type": "x", "euros": 5}, effect="unsafe"),
    ),
    (ASK, SetTimer(name="tea", after=180.5)),
    (Say(about=4), Say(text="hello", channel="mail", to="ann"), Say(text="more", channel="mail")),
)
REPLY = AgentReplied(
    text='{"content": "你好", "decisions": {}}',
    calls=(ToolCall(id="c1", tool="write", arguments={"path": "a.txt"}),),
    usage=Usage(12, 34, 0.0056, unreported_input=7, unreported_output=1, unreported_money=0.25),
    sent="0" * 64,
    model="m",
    recorded=True,
)


class Story:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def start(self, run_id: str, *rounds: tuple[Command, ...], listens: bool = False, **more: Any) -> None:
        content = Errands(rounds=rounds, listens=listens, outcome="" if listens else "completed").content()
        await self._engine.start(run_id, "errands", content, **more)

    async def answer(self, run_id: str, kind: type, answer: Answer, **more: Any) -> None:
        run = (await self._engine.look(run_id)).run
        number = min(number for number, opened in run.open.items() if isinstance(opened.command, kind))
        await self._engine.tell(run_id, Answered(to=number, answer=answer, **more))

    async def errands(self) -> None:
        """Every fact, decision, command and answer of the kernel."""
        engine = self._engine
        await self.start(
            "all", *ROUNDS, input="Build it", limits=LIMITS, settings=SETTINGS, guards={"patience": 3}, key="k1"
        )
        await self.answer("all", AskAgent, REPLY, attempt=2, took=1.25, first_token=0.5, retries=(("busy", 2.0),))
        pay = max((await engine.look("all")).run.open)
        await engine.tell("all", Doubted(to=pay, evidence="It was begun."))
        await self.answer("all", AskPerson, PersonAnswered(choice=AGAIN))
        await self.answer("all", CallTool, ToolReturned(value={"type": "asked", "n": [1, 2.5, None]}))
        pay = max((await engine.look("all")).run.open)
        await engine.tell("all", Doubted(to=pay, evidence="Again."))
        await self.answer("all", AskPerson, PersonAnswered(choice=HAPPENED, text="paid", by="zoe"))
        said = PersonAnswered(choice="edit", text="so", document="# Neu", fields={"grade": "a"}, by="ada")
        await self.answer("all", AskPerson, said)
        await engine.hear("all", "hurry", "bob", "chat", "m-1", [Attachment(b"bytes", "a.txt", "text/plain")])
        await engine.change_settings("all", RunSettings(model="local", small_model=True), "ada")
        await engine.redefine("all", Errands(rounds=ROUNDS, prompt="Anew.").content())
        await self.answer("all", SetTimer, TimerFired())
        await self.answer("all", Say, Said())
        await engine.fork("all", 3, "fork", limits=Limits(calls=7), settings=RunSettings(workspace="/f"))
        await self.start("limited", *ROUNDS, limits=Limits(calls=0))
        await engine.resume("limited", {"calls": 5.0}, "ada")
        await self.answer("limited", AskAgent, Failed(reason="no", fault="agent", usage=Usage(3, 0)))
        await engine.cancel("limited", "ada", "enough")
        await self.answer_late("limited")
        await self.start("parent", (StartRun(workflow="child", surface=True, limits=Limits(calls=3)),), limits=LIMITS)
        spoke = ChildSpoke(command=3, run="parent.3", number=2, text="", ask=AskPerson(question="Well?"))
        await engine.tell("parent", spoke)
        finished = RunFinished(run="parent.3", outcome="failed", because="x", usage=Usage(1, 2), calls=1)
        await self.answer("parent", StartRun, finished)
        await self.start("relays", (AnswerChild(asked=1, choice="yes", about=1),))
        await self.start("waits", (AskPerson(question="Well?"),), listens=True, limits=LIMITS)

    async def warned(self) -> None:
        """A model that does not report what it costs."""
        await self.start("warned", *ROUNDS[:1], limits=LIMITS)
        await self.answer("warned", AskAgent, AgentReplied(text="hm", usage=Usage(unreported_input=50), model="m"))

    async def waits_for_budget(self) -> None:
        """A call that waited for what a child had, and one that still waits."""
        rounds = (
            (StartRun(workflow="child"), AskAgent(agent="ada")),
            (StartRun(workflow="child"), AskAgent(agent="ada")),
        )
        await self.start("allowed", *rounds, limits=Limits(calls=5))
        await self.answer("allowed", StartRun, RunFinished(run="allowed.3", outcome="completed", calls=2))
        await self.answer("allowed", AskAgent, AgentReplied(text="done"))

    async def refused(self, plugins: Plugins) -> None:
        """Calls that were refused: tried again, retried by a person, and one with which a run ended."""
        engine = self._engine
        await self.start("refused", *ROUNDS[:1], limits=LIMITS)
        call = max((await engine.look("refused")).run.open)
        await engine.tell(
            "refused", CallRefused(to=call, reason="429", by="openai", again=9_000_000, usage=Usage(1, 0))
        )
        await engine.tell("refused", CallRefused(to=call, reason="402", by="openai", attempt=2, pauses=True))
        await engine.retry("refused", "ada")
        await self.start("held-back", *ROUNDS[:1], limits=LIMITS)
        call = max((await engine.look("held-back")).run.open)
        await engine.tell("held-back", CallHeldBack(to=call, by="openai"))
        (graph,) = (kit for kit in plugins.kits if kit.name == "graph")
        assert graph.samples
        await engine.start("reopened", "graph", _encoded(next(iter(graph.samples())).definition))
        await self.answer("reopened", AskAgent, Failed(reason="away", fault="agent"))
        await engine.retry("reopened", "ada")

    async def restored(self) -> None:
        """Runs of a journal that was put back from a copy: one is held, and one has gone on."""
        for run_id in ("held", "restored"):
            await self.start(run_id, (CallTool(tool="hammer"),))
            await self._engine.tell(run_id, Restored(copy="a@1", evidence="It is a copy.", begun=(3,)))
        await self.answer("restored", AskPerson, PersonAnswered(choice="happened", text="seen"))

    async def answer_late(self, run_id: str) -> None:
        run = (await self._engine.look(run_id)).run
        for number, command in run.late.items():
            answer = ANSWER_TO[type(command)]
            late = answer() if answer is not RunFinished else Failed(reason="late")
            await self._engine.tell(run_id, Answered(to=number, answer=late))

    async def samples(self, plugins: Plugins) -> None:
        """Runs of every style that is built in, as far as its sample's answers lead."""
        for kit in plugins.kits:
            for sample in kit.samples() if kit.samples else ():
                run_id = f"{kit.name}-{sample.name}".replace(" ", "-")
                content = _encoded(sample.definition)
                await self._engine.start(run_id, kit.name, content, sample.input, sample.arguments)
                await self._play(run_id, sample.answers)
                if not kit.style.unforkable:  # in the middle of a turn, if it calls tools
                    await self._engine.start(f"{run_id}-half", kit.name, content, sample.input, sample.arguments)
                    await self._play(f"{run_id}-half", sample.answers[:1])
                    await self._engine.fork(f"{run_id}-half", None, f"{run_id}-fork")

    async def _play(self, run_id: str, answers: Sequence[Answer]) -> None:
        for answer in answers:
            kinds = tuple(asked for asked, given in ANSWER_TO.items() if isinstance(answer, (given, Failed)))
            run = (await self._engine.look(run_id)).run
            fitting = [number for number, opened in run.open.items() if isinstance(opened.command, kinds)]
            if not fitting:
                return
            await self._engine.tell(run_id, Answered(to=min(fitting), answer=answer))


def _encoded(definition: Any) -> bytes:
    import msgspec

    return msgspec.json.encode(definition, order="deterministic")


def known() -> Plugins:
    """The styles of the fixtures: those built in, and the stub style of the tests."""
    plugins = Plugins(BUILT_IN)
    plugins.__dict__["kits"] = (*plugins.kits, ERRANDS)
    plugins.__dict__["registry"] = Registry(plugins.kits)
    return plugins


async def make(target: Path) -> None:
    plugins = known()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.db"
        journal = SqliteJournal(path, plugins.registry.codec)
        engine = Engine(journal, plugins.registry, FakeClock())
        story = Story(engine)
        await story.errands()
        await story.warned()
        await story.waits_for_budget()
        await story.refused(plugins)
        await story.restored()
        await story.samples(plugins)
        infos = (await journal.runs(RunQuery(size=1000))).items
        prints = {info.run_id: fingerprint((await engine.look(info.run_id)).run) for info in infos}
        assert await journal.verify() == []
        await journal.close()
        db = sqlite3.connect(path)
        lines = [f"-- fingerprint {run_id} {print_}" for run_id, print_ in sorted(prints.items())]
        for pragma in ("application_id", "user_version"):
            lines.append(f"PRAGMA {pragma} = {db.execute(f'PRAGMA {pragma}').fetchone()[0]};")
        lines += db.iterdump()
        db.close()
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(make(Path(sys.argv[1])))
