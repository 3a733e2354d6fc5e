"""The books of `outages`: what the model server counted and what the bank has, against what is on record.

An attempt whose worker was killed leaves no record but a gap in the numbers of the attempts. So of every order (of all
conversations together, because they share a plan):

- a refusal on record is one that the server counted, or one that nobody was there to count;
- what the server counted and is not on record is not more than there are gaps.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from msgspec import Struct, field

from ripstop.app.resume import all_runs
from ripstop.engine.engine import Engine
from ripstop.engine.ports import RunQuery
from ripstop.kernel.effects import AskAgent, Failed
from ripstop.kernel.events import Answered, Asked, CallRefused, Doubted, Record
from tests.harness.outage_server import STEPS, STYLES, served_in
from tests.harness.outage_world import OutageWorld

CHATS = "conversation"
NOBODY_THERE = "ConnectError"
"""How a refusal begins that no server can count."""


class Calls(Struct):
    """Calls of models, of one order."""

    answered: int = 0
    refused: int = 0
    uncounted: int = 0
    """Refusals at an address where nobody listened."""
    gaps: int = 0
    """Attempts without a record."""
    twice: int = 0
    """Attempts with two records."""
    pauses: int = 0
    doubts: int = 0


class Counted(Struct):
    """Calls as the server saw them."""

    answered: int = 0
    refused: int = 0
    """Those included that it died with."""
    dropped: int = 0
    """The worker was gone."""


class Account(Struct):
    style: str
    runs: int = 0
    seen: Calls = field(default_factory=Calls)
    counted: Counted = field(default_factory=Counted)
    paid: int = 0
    wrong: list[str] = []

    @property
    def lost(self) -> int:
        """Refusals that the server counted, and whose worker was killed before they were recorded."""
        return self.counted.refused - self.seen.refused


async def accounts_of(engine: Engine, world: OutageWorld) -> list[Account]:
    accounts = {style: Account(style, runs=sum(one.endswith(style) for one in world.orders)) for style in STYLES}
    seen, counted = await _on_record(engine, world), _at_the_server(world)
    for group in {*seen, *counted}:
        account = accounts[group.rpartition("-")[2]]
        account.wrong += [f"{group}: {text}" for text in differences(seen[group], counted[group])]
        _add(account.seen, seen[group])
        _add(account.counted, counted[group])
    ledger = world.ledger()
    for order in world.orders:
        for step in STEPS:
            times = ledger[*step, order]
            account = accounts[order.rpartition("-")[2]]
            account.paid += times
            if times != 1:
                account.wrong.append(f"{order}: {step} {times} times")
    return list(accounts.values())


def differences(seen: Calls, counted: Counted) -> list[str]:
    lost = counted.refused - seen.refused
    unheard = counted.answered - seen.answered
    wrong = []
    if seen.twice:
        wrong.append(f"{seen.twice} attempts have two records")
    if lost < 0 or unheard < 0:
        wrong.append(f"on record {seen}, but the server has counted {counted}")
    elif lost + unheard + counted.dropped > seen.gaps:
        wrong.append(
            f"{lost} refusals and {unheard} answers are not on record, and only {seen.gaps} attempts are missing"
        )
    return wrong


async def _on_record(engine: Engine, world: OutageWorld) -> dict[str, Calls]:
    found: defaultdict[str, Calls] = defaultdict(Calls)
    orders = {run: order for order, run in world.runs.items()}
    for info in await all_runs(engine, RunQuery()):
        order = orders.get(info.root, CHATS)
        group = CHATS if order.endswith(CHATS) else order
        _add(found[group], _calls(await engine.journal.read(info.run_id)))
    return found


def _calls(records: Iterable[Record]) -> Calls:
    calls, attempts = Calls(), defaultdict[int, list[int]](list)
    for record in records:
        match record.event:
            case Asked(command=AskAgent()):
                attempts[record.number] = []
            case CallRefused(to=to, attempt=attempt, reason=reason, pauses=pauses) if to in attempts:
                attempts[to].append(attempt)
                calls.pauses += pauses
                _refuse(calls, reason)
            case Answered(to=to, attempt=attempt, answer=answer) if to in attempts:
                attempts[to].append(attempt)
                if isinstance(answer, Failed):
                    _refuse(calls, answer.reason)
                else:
                    calls.answered += 1
            case Doubted():
                calls.doubts += 1
    for made in attempts.values():
        calls.twice += len(made) - len(set(made))
        calls.gaps += max(made, default=0) - len(set(made))
    return calls


def _refuse(calls: Calls, reason: str) -> None:
    if NOBODY_THERE in reason:
        calls.uncounted += 1
    else:
        calls.refused += 1


def _at_the_server(world: OutageWorld) -> dict[str, Counted]:
    found: defaultdict[str, Counted] = defaultdict(Counted)
    became: dict[str, tuple[str, str]] = {}
    for one in served_in(world.folder):
        group = CHATS if one.order.endswith(CHATS) else one.order
        became[one.request] = (group, one.became)
    for (group, end), times in Counter(became.values()).items():
        counted = found[group]
        name = {"answered": "answered", "dropped": "dropped"}.get(end, "refused")
        setattr(counted, name, getattr(counted, name) + times)
    return found


def _add(total: Any, more: Any) -> None:
    for name in total.__struct_fields__:
        setattr(total, name, getattr(total, name) + getattr(more, name))


COLUMNS = {
    "runs": lambda one: one.runs,
    "answers": lambda one: one.seen.answered,
    "refusals counted": lambda one: one.counted.refused,
    "on record": lambda one: one.seen.refused,
    "lost with a worker": lambda one: one.lost,
    "nobody there": lambda one: one.seen.uncounted,
    "pauses": lambda one: one.seen.pauses,
    "doubts": lambda one: one.seen.doubts,
    "paid": lambda one: one.paid,
}


def table(accounts: list[Account]) -> str:
    rows = [["style", *COLUMNS], *([one.style, *(str(get(one)) for get in COLUMNS.values())] for one in accounts)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
