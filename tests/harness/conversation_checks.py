"""What must be true of conversations whose process was killed, however often.

- Every message that a user sent was heard once, and belongs to exactly one pass that answered, once.
- A keyed effect has one key per decision; an unsafe effect happened once, or its doubt was put to a person and its user
  was told.
- Every timer that was set fired once or was withdrawn, and said its message once.
- There is one plan for each configuration, and the journal is sound.
"""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct, field

from ripstop.app.settings.settings_file import Settings
from ripstop.app.stores import open_engine
from ripstop.engine.engine import Engine
from ripstop.engine.ports import RunQuery
from ripstop.kernel.doubts import AGAIN, HAPPENED
from ripstop.kernel.effects import AskAgent, AskPerson, CallTool, PersonAnswered, Say, SetTimer, StartRun, TimerFired
from ripstop.kernel.errors import UsageError
from ripstop.kernel.events import Answered, Asked, Doubted, Heard, Record, Withdrawn
from ripstop.kernel.run import DOUBT
from ripstop.styles.conversation.events import IterationDecided, PassBegan
from tests.harness.conversation_world import ANSWERS, CALLED, MESSAGES, World, effects_in


class Conversations(Struct):
    """What a journal says."""

    states: Counter[str] = field(default_factory=Counter)
    """How many sessions were in which status, or at which work."""
    timers: int = 0
    """Timers that run."""
    answered: int = 0
    doubts: int = 0
    fired: int = 0
    wrong: list[str] = field(default_factory=list)


def journal_in(folder: Path) -> Path:
    return folder / ".ripstop" / "journal.db"


@asynccontextmanager
async def engine_in(folder: Path) -> AsyncIterator[Engine]:
    async with open_engine(Settings(store=f"sqlite:{journal_in(folder)}")) as engine:
        yield engine


async def _run_ids(engine: Engine) -> list[str]:
    return [one.run_id for one in (await engine.runs(RunQuery(size=1000))).items]


async def states_in(engine: Engine) -> Conversations:
    """Where every session is now."""
    found = Conversations()
    for run_id in await _run_ids(engine):
        if not run_id.startswith("chat:"):
            continue
        run = (await engine.look(run_id)).run
        found.states[run.state.status] += 1
        commands = [opened.command for opened in run.open.values()]
        found.states["(planning)"] += any(isinstance(one, StartRun) for one in commands)
        found.states["(a tool at work)"] += any(isinstance(one, CallTool) for one in commands)
        found.states["(asking the model)"] += any(isinstance(one, AskAgent) for one in commands)
        found.timers += sum(isinstance(one, SetTimer) for one in commands)
        due = (opened for opened in run.open.values() if isinstance(opened.command, SetTimer))
        found.states["(a timer is due)"] += any(
            isinstance(one.command, SetTimer) and one.at + one.command.after * 1e6 < engine.clock() for one in due
        )
    return found


async def answer_doubts(engine: Engine, folder: Path) -> int:
    """As the person at the desk: look whether the bell has rung, and say so."""
    answered = 0
    for question in (await engine.desk()).items:
        if question.command.purpose != DOUBT:
            continue
        key = f"{question.run_id}/{question.command.about[0]}"
        happened = any(effect.key == key for effect in effects_in(folder))
        choice = HAPPENED if happened else AGAIN
        try:
            await engine.answer(question.run_id, question.number, "unsafe done", choice=choice, by="harness")
        except UsageError:  # it is not open any more
            continue
        answered += 1
    return answered


async def check(engine: Engine, world: World) -> Conversations:
    """Look at everything once all is said."""
    found = await states_in(engine)
    found.wrong += [f"{one.run_id}@{one.number}: {one.text}" for one in await engine.journal.verify()]
    run_ids = await _run_ids(engine)
    plans = [run_id for run_id in run_ids if run_id.startswith("plan:")]
    if len(plans) != len(MESSAGES):
        found.wrong.append(f"there are {len(plans)} plans for {len(MESSAGES)} bots: {plans}")
    for run_id in plans:
        asked = sum(_asks(record, AskAgent) for record in await engine.journal.read(run_id))
        if asked != 1:
            found.wrong.append(f"{run_id} asked {asked} times")
    again: set[str] = set()
    for user in world.users:
        run_id = f"chat:{user.bot}:{user.name}"
        records = await engine.journal.read(run_id)
        found.wrong += [f"{run_id}: {text}" for text in _wrong_messages(records, MESSAGES[user.bot], user.name)]
        found.wrong += [f"{run_id}: {text}" for text in _wrong_timers(records)]
        found.wrong += [f"{run_id}: {text}" for text in _wrong_tools(run_id, records)]
        found.answered += sum(_says(record) in ANSWERS for record in records)
        found.fired += sum(_fires(record) for record in records)
        found.doubts += sum(isinstance(record.event, Doubted) for record in records)
        again |= _said_again(run_id, records)
    found.wrong += _wrong_effects(world.folder, again)
    return found


def _asks(record: Record, kind: type) -> bool:
    return isinstance(record.event, Asked) and isinstance(record.event.command, kind)


def _fires(record: Record) -> bool:
    return isinstance(record.event, Answered) and isinstance(record.event.answer, TimerFired)


def _says(record: Record) -> str:
    """The kind of a message that a record says; empty if it says none."""
    event = record.event
    return event.command.purpose if isinstance(event, Asked) and isinstance(event.command, Say) else ""


def _wrong_messages(records: list[Record], count: int, name: str) -> list[str]:
    heard = {record.number: record.event.id for record in records if isinstance(record.event, Heard)}
    wanted = [f"{name}-{number}" for number in range(count)]
    wrong = [] if list(heard.values()) == wanted else [f"heard {list(heard.values())}, not {wanted}"]
    answered: Counter[int] = Counter()
    taken: tuple[int, ...] = ()
    answers = 0
    for record in [*records, None]:
        begins = record is not None and isinstance(record.event, PassBegan)
        if begins or record is None:
            if answers > 1:
                wrong.append(f"{answers} answers to {[heard[number] for number in taken]}")
            if answers:
                answered.update(taken)
            taken, answers = (), 0
        if record is None:
            break
        if isinstance(record.event, PassBegan):
            taken = record.event.heard
        answers += bool(taken) and _says(record) in ANSWERS
    not_once = {id: answered[number] for number, id in heard.items() if answered[number] != 1}
    return wrong + [f"{id} was answered {times} times" for id, times in not_once.items()]


def _wrong_timers(records: list[Record]) -> list[str]:
    armed = [record.number for record in records if _asks(record, SetTimer)]
    fired = Counter(record.event.to for record in records if _fires(record) and isinstance(record.event, Answered))
    withdrawn = {record.event.number for record in records if isinstance(record.event, Withdrawn)}
    wrong = [
        f"the timer {number} fired {fired[number]} times and was {'' if number in withdrawn else 'not '}withdrawn"
        for number in armed
        if fired[number] + (number in withdrawn) != 1
    ]
    said = sum(_says(record) == "timer" for record in records)
    passes = sum(isinstance(record.event, PassBegan) and bool(record.event.timer) for record in records)
    if not (said == passes <= fired.total()):
        wrong.append(f"{fired.total()} timers fired, {passes} were taken up, {said} spoke")
    return wrong


def _wrong_tools(run_id: str, records: list[Record]) -> list[str]:
    """Every decision to call a tool is one call; a doubt is told to the user."""
    wrong = []
    decided = sum(isinstance(one.event, IterationDecided) and one.event.target in CALLED for one in records)
    called = sum(_asks(one, CallTool) for one in records)
    if decided != called:
        wrong.append(f"{decided} decisions to call a tool, and {called} calls")
    doubts = sum(isinstance(one.event, Doubted) for one in records)
    told = sum(_says(one) == "checking" for one in records)
    asked = sum(
        isinstance(one.event, Asked) and isinstance(one.event.command, AskPerson) and one.event.command.purpose == DOUBT
        for one in records
    )
    if not (doubts == told == asked):
        wrong.append(f"{doubts} doubts, {asked} on the desk, {told} told to the user")
    return wrong


def _said_again(run_id: str, records: list[Record]) -> set[str]:
    """Calls in doubt that a person wanted to be made again."""
    about = {
        one.number: one.event.command.about[0]
        for one in records
        if isinstance(one.event, Asked) and isinstance(one.event.command, AskPerson) and one.event.command.about
    }
    return {
        f"{run_id}/{about[one.event.to]}"
        for one in records
        if isinstance(one.event, Answered)
        and isinstance(one.event.answer, PersonAnswered)
        and one.event.answer.choice == AGAIN
        and one.event.to in about
    }


def _wrong_effects(folder: Path, again: set[str]) -> list[str]:
    rung = Counter(effect.key for effect in effects_in(folder) if effect.kind == "unsafe")
    return [f"{key} rang {times} times" for key, times in rung.items() if times > 1 + (key in again)]
