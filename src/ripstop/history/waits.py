"""For what a run waits, with all that it has started: a status alone would leave people to guess."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from ripstop.engine.engine import Engine, View
from ripstop.engine.ports import DeskQuery, Question, RunInfo
from ripstop.kernel.effects import AskAgent, SetTimer, StartRun
from ripstop.kernel.errors import RunNotFound, RunUnreadable
from ripstop.kernel.outbox import child_id
from ripstop.kernel.run import Run, is_deadline

from .outages import outage_behind
from .timeline import iso

MICROS = 1_000_000


RUNS_READ = 100
"""Runs of a list that are read to say what they wait for: the newest."""


async def held_back_in(engine: Engine, infos: Iterable[RunInfo]) -> dict[str, tuple[str, ...]]:
    """What the runs of a list wait for that are at work, but whose calls no provider takes now."""
    found: dict[str, tuple[str, ...]] = {}
    for info in sorted((one for one in infos if one.status == "working"), key=lambda one: one.created)[-RUNS_READ:]:
        with suppress(RunUnreadable, RunNotFound):
            found[info.run_id] = held_back((await engine.look(info.run_id)).run)
    return {run_id: held for run_id, held in found.items() if held}


async def questions_of(engine: Engine, run_id: str) -> list[Question]:
    """What a run and its children ask people."""
    info = await engine.journal.run(run_id)
    found = (await engine.desk(DeskQuery(root=info.root if info else run_id, size=1000))).items
    return [one for one in found if one.run_id == run_id or one.run_id.startswith(f"{run_id}.")]


async def waits_for(engine: Engine, view: View) -> tuple[str, ...]:
    """For what a run waits, each in a few words; nothing if it has ended, or is at work and no provider holds it up."""
    held = held_back(view.run) if view.run.held_back and await engine.has_workers() else ()
    if view.run.ended or (view.status == "working" and not view.needs):
        return held
    asked = [await _asked(engine, one) for one in await questions_of(engine, view.run.id)]
    needed = [f"a worker that has the {' '.join(needs.split(':', 1))}" for needs in view.needs]
    found = [*asked, *needed, *held, *await _below(engine, view.run, {view.run.id})]
    if not found and view.status == "listening":
        found = ["a message"]
    return tuple(found)


def held_back(run: Run[Any]) -> tuple[str, ...]:
    """What the calls wait for that a worker holds back; as recorded, so only true while a worker is alive."""
    return tuple(f"{by} to take calls again: {run.id}/{number}" for number, by in run.held_back.items() if by)


async def _asked(engine: Engine, question: Question) -> str:
    outage = await outage_behind(engine, question)
    if outage is None:
        return f"an answer to {question.run_id}/{question.number}"
    who = outage.by or "the model"
    return f"{who}, which refuses the call {outage.run}/{outage.call}"


async def _below(engine: Engine, run: Run[Any], seen: set[str]) -> list[str]:
    """Its timers, and those of the runs that it waits for; which of these are not settled and wait for nothing else."""
    found: list[str] = []
    for number, opened in run.open.items():
        command = opened.command
        if number in run.waiting:
            found.append(f"the part of the budget of {run.id} that is set aside for {_set_aside_for(run)}")
        elif isinstance(command, SetTimer) and not is_deadline(command):
            due = iso(opened.at + round(command.after * MICROS))
            found.append(f"the timer {command.name!r} of {run.id}, due at {due}")
        elif isinstance(command, StartRun):
            name = child_id(run.id, number, command)
            if name not in seen:
                found += await _child(engine, name, seen | {name})
    return found


def _set_aside_for(run: Run[Any]) -> str:
    """Who has what the commands of a run wait for: children, and calls that have no reply yet."""
    made = {number: opened.command for number, opened in run.open.items() if number not in run.waiting}
    names = [child_id(run.id, n, one) for n, one in (made | run.late).items() if isinstance(one, StartRun)]
    calls = [f"{run.id}/{number}" for number, one in made.items() if isinstance(one, AskAgent)]
    return ", ".join([*names, *calls])


async def _child(engine: Engine, name: str, seen: set[str]) -> list[str]:
    try:
        view = await engine.look(name)
    except RunNotFound:
        return [f"{name}, which is to be started"]
    if view.run.is_settled:
        return [f"a worker: {name} has ended"]
    if view.status == "working":
        return [*held_back(view.run)] or [f"{name}, which is at work"]
    return await _below(engine, view.run, seen)
