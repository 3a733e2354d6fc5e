"""Outages of a model server, under runs of all five styles that pay, with workers that are killed in between.

The server is taken away for 20 seconds, refuses everything for ten minutes (of the workers' clocks), and says "too
many requests" for a while. No run may fail, all must complete (pipelines after `ripstop retry --all`), every refusal
must be on record once, and nothing may be paid twice or not at all:

    python -m tests.harness.outages [--runs 50] [--away 20] [--limited 10] [--seed 1]
"""

import argparse
import asyncio
import contextlib
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ripstop import App
from ripstop.app.resume import all_runs
from ripstop.engine.ports import MAX_PAGE, DeskQuery, RunInfo, RunQuery
from ripstop.kernel.events import OUTCOMES
from ripstop.kernel.outages import LONGEST_PAUSE
from ripstop.kernel.run import DOUBT, OUTAGE
from ripstop.kernel.style import arguments_for
from ripstop.styles.conversation.chats import Chats
from tests.harness.outage_account import Account, accounts_of, table
from tests.harness.outage_server import Mode, receipt, served_in
from tests.harness.outage_world import OutageWorld

LONG_OUTAGE = 600.0
STRIDE = 50.0
"""Seconds of the workers' clocks between two generations of them, while the long outage lasts."""
LIFE = (0.0, 2.0)
"""Seconds that workers live, from their first sign of life."""
LONGEST_IDLE = 10.0
PATIENCE = 900.0
"""Seconds for what has to happen, before the harness gives up."""
WORKERS = 2
GIVEN_UP = ("failed", "stopped", "limit", "stuck", "set_aside", "unreadable")


class Outages:
    def __init__(self, world: OutageWorld, seed: int) -> None:
        self.world = world
        self.doubts = 0
        self.paused: set[str] = set()
        """Runs that were seen paused."""
        self._chance = random.Random(seed)
        self._asked = dict.fromkeys(world.orders, 1)
        """How often a customer has asked."""

    async def go_through(self, away: float, limited: float) -> None:
        world = self.world
        world.serve(Mode(each=1))
        await world.start()
        await self._until("every run has begun", self._answered(1))
        await self._taken_away(away)
        world.serve(Mode(each=2))
        await self._until("every run is over the first outage", self._answered(2), retry=True)
        await self._down_for_long()
        await self._comes_back()
        world.serve(Mode(refuse="429"))
        end = time.monotonic() + limited
        while time.monotonic() < end:
            await self._generation()
        world.serve(Mode())
        await self._until("every run has completed", self._completed, retry=True, customers=True)

    async def check(self) -> list[Account]:
        """What was seen, by style. Raises `AssertionError` with all that is wrong."""
        async with self.world.app() as app:
            infos = await all_runs(app.engine, RunQuery())
            found = await accounts_of(app.engine, self.world)
        failed = [info.run_id for info in infos if info.status == "failed"]
        wrong = [f"failed: {failed}"] if failed else []
        wrong += [f"{one.style}: {text}" for one in found for text in one.wrong]
        assert not wrong, "\n".join(wrong)
        assert self.world.killed, "no worker was killed"
        self.world.command("verify")
        return found

    # Outages

    async def _taken_away(self, seconds: float) -> None:
        """Nobody listens at the server's address: first under workers with calls that hang, then under new ones."""
        self._begin_work()
        deadline = time.monotonic() + PATIENCE
        while not self._all_hang():
            assert time.monotonic() < deadline, "no call hangs"
            await self._answer_doubts()
            await asyncio.sleep(0.1)
        self.world.take_server_away()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            await self._generation()

    async def _down_for_long(self) -> None:
        """Refuse everything, until ten minutes have passed and every run that can be is paused."""
        world, begun, deadline = self.world, self.world.ahead, time.monotonic() + PATIENCE
        number = 0
        while world.ahead - begun < LONG_OUTAGE or not await self._all_halted():
            assert time.monotonic() < deadline, "runs are neither paused nor given up"
            world.serve(Mode(refuse=("reset", "503")[number % 2]))
            await self._generation()
            await self._answer_doubts()
            world.ahead += STRIDE
            number += 1
        async with world.app() as app:
            infos = await all_runs(app.engine, RunQuery(statuses=("paused",)))
            self.paused |= {info.root for info in infos}
        assert {one.rpartition("-")[2] for one in self._orders_of(self.paused)} >= {"graph", "pipeline", "handoff"}

    async def _comes_back(self) -> None:
        """Paused runs go on by themselves, but pipelines only when somebody says so."""
        world = self.world
        before = {order: self._given(order) for order in self._of("pipeline")}
        world.serve(Mode(each=3))
        world.ahead += 2 * LONGEST_PAUSE
        others = [order for order in world.orders if order not in before]
        await self._until("runs go on by themselves", self._answered(3, others), customers=True)
        after = {order: self._given(order) for order in before}
        assert after == before, f"pipelines went on by themselves: {before} → {after}"
        await self._until("pipelines are retried", self._answered(3), retry=True, customers=True)

    # Work

    async def _until(
        self, what: str, holds: Callable[[], Any], *, retry: bool = False, customers: bool = False
    ) -> None:
        """Let workers live and die until something is so."""
        deadline = time.monotonic() + PATIENCE
        while not await holds():
            assert time.monotonic() < deadline, f"not in time: {what}; {await self._state()}"
            await self._generation(retry=retry)
            await self._answer_doubts()
            await self._check_none_given_up()
            if customers:
                await self._ask_again()
        print(f"{what}: {self.world.killed} workers were killed, {self.doubts} calls in doubt", flush=True)

    async def _generation(self, retry: bool = False) -> None:
        """Workers begin, do something, and are killed."""
        before = await self._signs()
        self._begin_work()
        if retry and await self._any_paused():
            self.world.work("retry", "--all")
        await self._until_signs(before)
        await asyncio.sleep(self._chance.uniform(*LIFE))
        self.world.kill()

    def _begin_work(self) -> None:
        for _ in range(WORKERS):
            self.world.work()

    async def _signs(self) -> int:
        """What the server and the journal have seen: more of it is a sign that workers are at work."""
        async with self.world.app() as app:
            records = sum(info.length for info in await all_runs(app.engine, RunQuery()))
        return len(served_in(self.world.folder)) + records

    async def _until_signs(self, before: int) -> None:
        end = time.monotonic() + LONGEST_IDLE
        while await self._signs() == before and time.monotonic() < end:
            await asyncio.sleep(0.1)  # nothing may be due: then they die without having done anything

    async def _any_paused(self) -> bool:
        async with self.world.app() as app:
            return bool(await all_runs(app.engine, RunQuery(statuses=("paused",))))

    async def _answer_doubts(self) -> None:
        """As somebody would who looks into the books of the bank."""
        ledger = self.world.ledger()
        async with self.world.app() as app:
            for asked in (await app.engine.desk(DeskQuery(size=MAX_PAGE))).items:
                if asked.command.purpose == OUTAGE:
                    continue
                assert asked.command.purpose == DOUBT, f"{asked.run_id}/{asked.number}: {asked.command.question}"
                run = (await app.look(asked.run_id)).run
                opened = run.open[asked.command.about[0]]
                arguments = arguments_for(app.engine.style(run), opened.state, opened.command)  # type: ignore[arg-type]
                step = opened.command.tool, arguments["part"], arguments["order"]  # type: ignore[union-attr]
                happened = ledger[step] > 0
                words, choice = (receipt(*step), "happened") if happened else ("", "again")
                await app.answer(f"{asked.run_id}/{asked.number}", words, "auditor", choice=choice)
                self.doubts += 1

    async def _ask_again(self) -> None:
        """Customers who got an apology ask once more."""
        async with self.world.app() as app:
            for order in self._of("conversation"):
                answers = (await Chats(app).look(self.world.runs[order])).messages
                if answers and answers[-1].kind == "apology":
                    self._asked[order] += 1
                    await self.world.ask_for(app, order, self._asked[order])

    # What is so

    def _of(self, style: str) -> list[str]:
        return [order for order in self.world.orders if order.endswith(style)]

    def _orders_of(self, runs: set[str]) -> set[str]:
        return {order for order, run in self.world.runs.items() if run in runs}

    def _given(self, order: str) -> int:
        return sum(one.order == order and one.became == "answered" for one in served_in(self.world.folder))

    def _all_hang(self) -> bool:
        """Whether the server has a call of every order in hand."""
        last = {one.order: one.became for one in served_in(self.world.folder)}
        return set(last.values()) == {"asked"}

    def _answered(self, times: int, orders: list[str] | None = None) -> Callable[[], Any]:
        async def holds() -> bool:
            wanted = set(orders or self.world.orders)
            given = [one.order for one in served_in(self.world.folder) if one.became == "answered"]
            return all(given.count(order) >= times for order in wanted)

        return holds

    async def _infos(self, app: App) -> list[RunInfo]:
        return [info for info in await all_runs(app.engine, RunQuery()) if info.style != "planning"]

    async def _all_halted(self) -> bool:
        """Whether no run has anything to do but to wait for the end of the outage."""
        async with self.world.app() as app:
            infos = await self._infos(app)
        return all(info.status in ("paused", "waiting", "listening", "completed") for info in infos)

    async def _check_none_given_up(self) -> None:
        async with self.world.app() as app:
            found = [info for info in await self._infos(app) if info.status in GIVEN_UP]
            ends = {info.run_id: (await app.look(info.run_id)).run.ended for info in found}
        assert not found, [(info.run_id, info.status, ends[info.run_id], info.set_aside) for info in found]

    async def _completed(self) -> bool:
        async with self.world.app() as app:
            infos = {info.run_id: info for info in await self._infos(app)}
            chats = [
                (await Chats(app).look(self.world.runs[order])).messages[-1].text == f"{order} is paid."
                for order in self._of("conversation")
            ]
        rest = [infos[run].status for order, run in self.world.runs.items() if not order.endswith("conversation")]
        return all(chats) and all(status in OUTCOMES for status in rest)

    async def _state(self) -> str:
        async with self.world.app() as app:
            return ", ".join(f"{info.run_id} {info.status}" for info in await self._infos(app))


async def soak(folder: Path, runs: int, away: float, limited: float, seed: int) -> str:
    """Go through all of it; returns a table of what was seen. Raises `AssertionError`."""
    world = OutageWorld(folder, runs)
    try:
        outages = Outages(world, seed)
        with contextlib.chdir(folder):  # where the workers are, so that they may use its files
            await outages.go_through(away, limited)
            accounts = await outages.check()
    finally:
        world.close()
    killed = (
        f"{world.killed} workers killed, {outages.doubts} calls in doubt answered, {len(outages.paused)} runs paused"
    )
    return f"{table(accounts)}\n{killed}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--away", type=float, default=20.0, help="seconds for which nobody listens")
    parser.add_argument("--limited", type=float, default=10.0, help="seconds of 429")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ripstop-outages-") as folder:
        os.environ["XDG_STATE_HOME"] = f"{folder}/state"
        try:
            print(asyncio.run(soak(Path(folder).resolve(), chosen.runs, chosen.away, chosen.limited, chosen.seed)))
        except AssertionError as error:
            sys.exit(f"TROUBLE: {error}")
    print("No run failed, every refusal is on record once, nothing was paid twice and nothing was left out.")


if __name__ == "__main__":
    main()
