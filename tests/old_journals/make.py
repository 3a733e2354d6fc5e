"""Makes `vN.sql`, a journal as version N of the file writes it. Run once per format, and never again for an old one:

    python tests/old_journals/make.py tests/old_journals/v2.sql

A later version must still open it, fold it to the fingerprints in it, and find it undamaged.
"""

import asyncio
import sqlite3
import sys
import tempfile
from pathlib import Path

from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.kernel.codec import Codec
from ripstop.kernel.effects import (
    AgentReplied,
    AskAgent,
    AskPerson,
    CallTool,
    Failed,
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
from ripstop.kernel.events import Answered, Doubted, Heard, Ordered
from ripstop.kernel.run import fingerprint
from ripstop.runtime.engine import Engine
from ripstop.testing import ERRAND_EVENTS, Errands, ErrandStyle, FakeClock

ROUNDS = (
    (AskAgent(agent="ada", kind="coder", context=(1,)),),
    (CallTool(tool="write", agent="ada", source=(5, 0)), CallTool(tool="pay", arguments={"type": "x", "euros": 5})),
    (AskPerson(question="好吗?", choices=("yes", "no"), about=(5,)), SetTimer(name="tea", after=180.5)),
    (Say(about=5), StartRun(workflow="child", input="go", limits=Limits(tokens=1000))),
)
REPLY = AgentReplied(
    text='{"content": "你好", "decisions": {}}',
    calls=(ToolCall(id="c1", tool="write", arguments={"path": "a.txt"}),),
    usage=Usage(input_tokens=12, output_tokens=34, money=0.0056),
    sent="0" * 64,
    model="m",
)


async def story(engine: Engine) -> None:
    """Every kind of record once, in three runs: one that ended, one that waits, and a fork."""
    limits = Limits(tokens=100_000, money=5.0, calls=50, seconds=86_400.0, turns=9, input_price=1.5, output_price=6.0)
    content = Errands(rounds=ROUNDS).content()
    await engine.start("old", "errands", content, input="Build it", limits=limits, settings={"model": "script:x"})

    async def answer(kind: type, answer: object, attempt: int = 1) -> None:
        run = (await engine.look("old")).run
        number = max(number for number, opened in run.open.items() if isinstance(opened.command, kind))
        await engine.tell("old", Answered(to=number, answer=answer, attempt=attempt))  # type: ignore[arg-type]

    await answer(AskAgent, REPLY)
    pay = max((await engine.look("old")).run.open)
    await engine.tell("old", Doubted(to=pay, evidence="It was begun."))
    await answer(AskPerson, PersonAnswered(choice="again"))
    await answer(CallTool, Failed(reason="no money", fault="tool"), attempt=2)
    await answer(CallTool, ToolReturned(value={"type": "asked", "n": [1, 2.5, None]}))
    await answer(AskPerson, PersonAnswered(choice="yes", text="gern", by="ada"))
    await engine.tell("old", Heard(text="hurry", by="bob"))
    await engine.fork("old", 4, "fork", definition=Errands(rounds=ROUNDS[:1]).content())
    await engine.start("waits", "errands", Errands(rounds=((AskPerson(question="Well?"),),)).content(), limits=limits)
    await engine.start("broke", "errands", content, limits=Limits(calls=0))
    await engine.start("ends", "errands", Errands(rounds=ROUNDS[3:]).content())
    await engine.tell("ends", Answered(to=3, answer=Said()))
    await engine.tell("ends", Answered(to=4, answer=RunFinished(run="ends.4", outcome="failed", because="x")))
    await answer(SetTimer, TimerFired())
    await engine.tell("old", Ordered(order="cancel", by="ada"))


async def make(target: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.db"
        journal = SqliteJournal(path, Codec(ERRAND_EVENTS))
        engine = Engine(journal, {"errands": ErrandStyle()}, ErrandStyle.load, FakeClock())
        await story(engine)
        prints = {info.run_id: fingerprint((await engine.look(info.run_id)).run) for info in await journal.runs()}
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
