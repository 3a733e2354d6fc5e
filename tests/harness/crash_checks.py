"""What the crash harness finds out about a journal whose process was killed.

- A *copy* of the files is looked at, so that it is the next process that has to recover the real ones.
- `lost`: a record that was acknowledged and is not there any more, byte for byte.
- `silent`: an effect that was done more often than the journal admits. A pure or keyed effect, an agent's
  call or a saying may be done n times if its answer says it was attempt n or later; a probeable one only
  once; an unsafe one once, and once more each time that a person said "again".
- `canonical`: what may differ between a run that was killed and one that never was is the order in which
  simultaneous answers came, and the records of doubt. Put the first in order, leave out the second,
  number the rest anew: then it must fold to the same fingerprint.
- A refusal can be lost with the process that met it (the next attempt is not refused), so the records of
  refusals are left out as well. They move the numbers that scripted calls have in their ids: the ids are
  renumbered, and the hashes of prompts, which contain them, are only compared between equal numbers.
"""

import hashlib
import shutil
import sqlite3
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ripstop.engine.engine import Engine
from ripstop.engine.ports import Question, RunQuery
from ripstop.history.timeline import path, timeline
from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.kernel.effects import (
    AgentReplied,
    AnswerChild,
    AskAgent,
    AskPerson,
    CallTool,
    Command,
    Failed,
    Said,
    Say,
    StartRun,
    ToolReturned,
)
from ripstop.kernel.events import (
    Answered,
    Asked,
    CallRefused,
    ChildSpoke,
    Doubted,
    DoubtResolved,
    Ended,
    Event,
    Record,
    Repeated,
    Started,
    Withdrawn,
)
from ripstop.kernel.folding import replay
from ripstop.kernel.run import Contents, fingerprint
from ripstop.styles.graph.state import TurnFinished
from ripstop.styles.turn import Corrected
from tests.harness.crash_runs import CHILDREN, DOOMED, EXACT, RUNS
from tests.harness.crash_work import CODEC, REGISTRY, digest_of, now, read_acknowledged, read_effects

DEFINITIONS = {
    hashlib.sha256(content).hexdigest(): REGISTRY.load(style, content)
    for style, content in (*RUNS.values(), *CHILDREN.values())
}


class Found(Struct):
    """What a look at the journal of a dead process shows."""

    records: dict[str, list[Record]] = {}
    desk: list[Question] = []
    paths: dict[str, list[str]] = {}
    lost: list[str] = []
    silent: list[str] = []
    repeated: int = 0
    """Effects done more than once; each of them is reported, or in `silent`."""
    doubts: int = 0
    """Questions to a person about an unsafe effect."""
    again: int = 0
    """How often a person said that it shall be done again."""
    acknowledged: int = 0
    results: dict[str, Any] = {}
    """What runs ended with, by hash."""
    questions: dict[str, Any] = {}
    """Definitions of questions that performers asked."""
    open: int = 0
    """Commands that are not answered yet, and children that have not reported to a run which has ended."""

    @property
    def ended(self) -> bool:
        there = self.records.keys() >= RUNS.keys()
        return there and not self.open and all(_has_ended(run) for run in self.records.values())


def _has_ended(records: list[Record]) -> bool:
    """What a run says and what it has to report may come after its end."""
    return any(isinstance(record.event, Ended) for record in records)


async def look(folder: Path) -> Found:
    acknowledged = read_acknowledged(folder)
    copy = _copy(folder)
    if copy is None:
        return Found(lost=[f"{a.run}/{a.number}" for a in acknowledged], acknowledged=len(acknowledged))
    journal = SqliteJournal(copy, CODEC)
    try:
        engine = Engine(journal, REGISTRY, now)
        found = Found(desk=(await journal.desk()).items, acknowledged=len(acknowledged))
        found.lost += [f"{d.run_id}/{d.number}: {d.text}" for d in await journal.verify()]
        for info in (await journal.runs(RunQuery(size=1000))).items:
            found.records[info.run_id] = records = await journal.read(info.run_id)
            run = (await engine.look(info.run_id)).run
            found.open += len(run.open) + sum(isinstance(command, StartRun) for command in run.late.values())
            await _keep_contents(journal, records, found)
            if _has_ended(found.records[info.run_id]):
                found.paths[info.run_id] = path(engine, await timeline(engine, info.run_id))
    finally:
        await journal.close()
    kept = {(run, r.number): digest_of(r) for run, records in found.records.items() for r in records}
    found.lost += [f"{a.run}/{a.number}" for a in acknowledged if kept.get((a.run, a.number)) != a.digest]
    _count_effects(folder, found)
    return found


async def _keep_contents(journal: SqliteJournal, records: list[Record], found: Found) -> None:
    for record in records:
        if isinstance(record.event, Ended) and record.event.result:
            found.results[record.event.result] = msgspec.json.decode(await journal.blob(record.event.result))
        if isinstance(record.event, Started) and record.event.style == "question":
            digest = record.event.definition
            found.questions[digest] = REGISTRY.load("question", await journal.blob(digest))


def _copy(folder: Path) -> Path | None:
    """The files as the dead process left them; nothing if it had not even created them."""
    source, target = folder / "journal.db", folder / "look" / "journal.db"
    if not source.exists():
        return None
    shutil.rmtree(target.parent, ignore_errors=True)
    target.parent.mkdir()
    for suffix in ("", "-wal"):
        if (part := source.with_name(source.name + suffix)).exists():
            shutil.copyfile(part, target.with_name(part.name))
    db = sqlite3.connect(target)
    try:
        created = db.execute("PRAGMA user_version").fetchone()[0]
    finally:
        db.close()
    return target if created else None


# Effects


def _count_effects(folder: Path, found: Found) -> None:
    attempts: dict[str, int] = {}
    again: Counter[str] = Counter()
    answered: dict[str, Command] = {}
    for run_id, records in found.records.items():
        asked: dict[int, Command] = {}
        for record in records:
            match record.event:
                case Asked(command=command):
                    asked[record.number] = command
                case Answered(to=to, answer=ToolReturned() | AgentReplied() | Said(), attempt=attempt):
                    attempts[f"{run_id}/{to}"] = attempt
                    answered[f"{run_id}/{to}"] = asked[to]
                case Repeated(number=number):
                    again[f"{run_id}/{number}"] += 1
                case Doubted():
                    found.doubts += 1
    found.again = again.total()
    done: dict[tuple[str, str], list[int]] = defaultdict(list)
    for effect in read_effects(folder):
        done[effect.kind, effect.key].append(effect.attempt)
    for (kind, key), tries in done.items():
        found.repeated += len(tries) - 1
        if not _admitted(kind, tries, attempts.get(key), again[key]):
            found.silent.append(f"{kind} {key} was done {len(tries)} times (attempts {tries})")
    seen = {key for _, key in done}
    for key, command in answered.items():
        if _leaves_a_trace(command) and key not in seen:
            found.lost.append(f"{key} is answered, but was never done")


def _leaves_a_trace(command: Command) -> bool:
    return isinstance(command, CallTool | AskAgent) or (isinstance(command, Say) and bool(command.channel))


def _admitted(kind: str, tries: list[int], answered: int | None, again: int) -> bool:
    if kind == "unsafe":
        return len(tries) <= 1 + again
    if kind == "probeable":
        return len(tries) == 1
    return len(set(tries)) == len(tries) and (answered is None or max(tries) <= answered)


# Comparing with a run that was never killed


def canonical(records: list[Record]) -> tuple[list[Record], dict[int, int]]:
    """The run as it would have been without doubts and refusals, and where each of its records now stands."""
    kept = _in_order(_without_doubts(records))
    new = {record.number: place for place, record in enumerate(kept, 1)}
    return [Record(new[r.number], r.at, _renumbered(r.event, new)) for r in kept], new


def _without_doubts(records: list[Record]) -> list[Record]:
    questions = {r.number + 1 for r in records if isinstance(r.event, Doubted)}
    return [
        _as_answer(r)
        for r in records
        if r.number not in questions
        and not isinstance(r.event, Doubted | Repeated | CallRefused)
        and not (isinstance(r.event, Answered) and r.event.to in questions)
    ]


def _as_answer(record: Record) -> Record:
    """What a person says about an effect in doubt, as the answer that it stands for."""
    event = record.event
    if not isinstance(event, DoubtResolved):
        return record
    return Record(record.number, record.at, Answered(to=event.to, answer=event.answer))


def _in_order(records: list[Record]) -> list[Record]:
    """Answers that follow one another with no decision between them, in the order of their commands."""
    ordered: list[Record] = []
    answers: list[tuple[int, Record]] = []
    for record in records:
        if isinstance(record.event, Answered):
            answers.append((record.event.to, record))
            continue
        ordered += [r for _, r in sorted(answers, key=lambda pair: pair[0])]
        answers = []
        ordered.append(record)
    return ordered + [r for _, r in sorted(answers, key=lambda pair: pair[0])]


def _renumbered(event: Event, new: dict[int, int]) -> Event:
    match event:
        case Answered(to=to, answer=AgentReplied(calls=calls) as answer):
            renamed = tuple(replace(call, id=call.id.replace(f"_{to}_", f"_{new[to]}_")) for call in calls)
            return replace(event, to=new[to], answer=replace(answer, calls=renamed))
        case Answered(to=to):
            return replace(event, to=new[to])
        case TurnFinished(reply=reply):
            return replace(event, reply=new[reply])
        case Corrected(number=number) | Withdrawn(number=number):
            return replace(event, number=new[number])
        case ChildSpoke(command=command):
            return replace(event, command=new[command])
        case Asked(command=command):
            return replace(event, command=_renumbered_command(command, new))
    return event


def _renumbered_command(command: Command, new: dict[int, int]) -> Command:
    match command:
        case AskAgent(context=context, continues=continues):
            first = new[continues] if continues else None
            return replace(command, context=tuple(new[n] for n in context), continues=first)
        case CallTool(source=(number, index)):
            return replace(command, source=(new[number], index))
        case AskPerson(about=about):
            return replace(command, about=tuple(new[n] for n in about))
        case AnswerChild(asked=asked, about=said):
            return replace(command, asked=new[asked], about=new[said])
    return command


class Standing(Struct, frozen=True):
    """How a run came out, as far as it does not depend on when it was killed."""

    fingerprint: str
    path: list[str]


def standings(found: Found) -> dict[str, Standing]:
    """By run. A child is named by where its parent's command would stand if there had been no doubt."""
    told = {run_id: canonical(records) for run_id, records in found.records.items()}
    result = {}
    for run_id, (records, _) in told.items():
        started = records[0].event
        assert isinstance(started, Started)
        style: Any = REGISTRY.styles[started.style]
        run = replay(style, Contents(DEFINITIONS | found.questions, found.results), run_id, records)
        assert run is not None
        result[_name(run_id, started, told)] = Standing(fingerprint(run), found.paths[run_id])
    return result


def _name(run_id: str, started: Started, told: dict[str, tuple[list[Record], dict[int, int]]]) -> str:
    """What a run would be called if no doubt had moved the numbers of the commands that started it and its parents."""
    if started.parent is None or not run_id.startswith(f"{started.parent[0]}."):
        return run_id
    parent, number = started.parent
    above = told[parent][0][0].event
    assert isinstance(above, Started)
    rest = run_id.removeprefix(f"{parent}.{number}")  # a question has a key behind its command
    return f"{_name(parent, above, told)}.{told[parent][1][number]}{rest}"


def unfit(reference: Found) -> list[str]:
    """Why a run that was never killed is nothing to compare with: it must have done its work, without doubt."""
    wrong = [f"{name} has not completed" for name, told in reference.records.items() if not _completed(name, told)]
    return wrong + ([f"{reference.doubts} doubts"] if reference.doubts else [])


def _completed(run_id: str, records: list[Record]) -> bool:
    wanted = "stopped" if run_id.split(".", maxsplit=1)[0] == DOOMED else "completed"
    ends = [r.event.outcome for r in records if isinstance(r.event, Ended)]
    failed = any(isinstance(r.event, Answered) and isinstance(r.event.answer, Failed) for r in records)
    return ends == [wanted] and not failed


def differences(found: Found, reference: Found) -> list[str]:
    """In what a run that was killed came out differently; empty is what is wanted."""
    wanted, got = standings(reference), standings(found)
    wrong = [
        f"{name}: {got.get(name)} instead of {wanted.get(name)}"
        for name in wanted | got
        if got.get(name) != wanted.get(name)
    ]
    for run_id in EXACT:
        told = [f.records[run_id] for f in (found, reference)]
        hashes = _refusals(told[0]) == _refusals(told[1])
        one, two = ([_timeless(r, hashes) for r in canonical(records)[0]] for records in told)
        wrong += [
            f"{run_id}/{n}: {a} instead of {b}" for n, (a, b) in enumerate(zip(one, two, strict=False), 1) if a != b
        ]
    return wrong


def _refusals(records: list[Record]) -> list[int]:
    return [r.number for r in records if isinstance(r.event, CallRefused | Doubted | Repeated)]


def _timeless(record: Record, hashes: bool) -> Event:
    event = record.event
    if not isinstance(event, Answered):
        return event
    if isinstance(event.answer, AgentReplied) and not hashes:
        event = replace(event, answer=replace(event.answer, sent=""))
    return replace(event, attempt=1, began=0, took=0.0, first_token=0.0, retries=())
