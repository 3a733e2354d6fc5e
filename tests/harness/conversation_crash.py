"""Kills `ripstop serve` under load, again and again. Is every user answered once, and does every timer fire once?

    python -m tests.harness.conversation_crash --kills 1000

A *chain* is one folder (`conversation_world`): a server is started, users talk to it over HTTP, it is killed with
SIGKILL at a fail-point or at a random moment, the next one is started, and so on until everything is said. The users
send again what they do not know to be heard, and the harness answers at the desk what is in doubt. Then the journal and
the traces of the tools are looked at (`conversation_checks`).

The statuses `acknowledged` and, without an action, `typing` are entered and left in one step, so no server dies in
them: it dies before or after the step is durable.
"""

import argparse
import asyncio
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, field

from ripstop.engine.failpoints import FAILPOINTS
from ripstop.kernel.errors import RipstopError
from tests.harness.conversation_checks import answer_doubts, check, engine_in, journal_in, states_in
from tests.harness.conversation_world import RETRY, TIMER, Server, World, make_world

AT_RANDOM = "(at random)"
CHAINS = 4
"""Side by side: most of a chain's time is spent waiting, for timers and for requests that are sent again."""
USERS = 24
MOMENT = 1.0
"""Seconds within which a server is killed at random, counted, mostly, from when it listens."""
AT_WORK_SHARE = 0.9
LIVES = 120
"""Servers of one chain in a row under which nothing more is said; talk that needs more never ends."""
LONGEST = 90.0
"""Seconds of one life that nobody ends."""
UNREACHED = ("files.", "messages.", "liveness.", "sqlite.in_", "worker.before_leave", "worker.after_leave")
"""How the fail-points begin that a server which is killed never gets to, or that others are killed at."""
SELDOM = ("migration", "retry", "probe")
POINTS = tuple(name for name in FAILPOINTS if not name.startswith(UNREACHED) and not name.endswith(SELDOM))

Say = Callable[[str], None]


class ChatTally(Struct):
    kills: Counter[str] = field(default_factory=Counter)
    states: Counter[str] = field(default_factory=Counter)
    """In how many kills at least one session was in a status, or at some work."""
    chains: int = 0
    messages: int = 0
    answers: int = 0
    doubts: int = 0
    timers: int = 0
    trouble: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Death(Struct, frozen=True):
    """How a server is to die: at a fail-point, after a moment, or not at all."""

    failpoint: str = ""
    moment: float | None = None
    early: bool = False
    """The moment counts from its start, not from when it listens."""


class Chain:
    def __init__(self, world: World, tally: ChatTally) -> None:
        self._world = world
        self._folder = world.folder
        self._tally = tally

    def run(self, next_death: Callable[[], Death]) -> None:
        lives, said = 0, 0
        while lives < LIVES:
            if self._tally.trouble:
                return None
            death = next_death()
            code = asyncio.run(self._live(death))
            lives, said = (0 if self._said > said else lives + 1), max(said, self._said)
            if code == -signal.SIGKILL:
                self._count(death)
            elif code != 128 + signal.SIGTERM:
                last = (self._folder / "stderr.txt").read_text(encoding="utf-8", errors="replace")[-2000:]
                return self._complain(f"a server ended with {code}: {last}")
            elif self._world.is_done:
                return asyncio.run(self._check())
        return self._complain(f"nothing more was said under {LIVES} servers")

    @property
    def _said(self) -> int:
        return sum(user.sent for user in self._world.users)

    async def _live(self, death: Death) -> int:
        """One server, from its start to its end."""
        server = Server(self._folder, death.failpoint)
        end: asyncio.Task[None] | None = None
        try:
            if death.early and death.moment is not None:
                end = asyncio.create_task(self._kill(server, death.moment))
            address = await server.ready()
            if death.moment is not None and end is None:
                end = asyncio.create_task(self._kill(server, death.moment))
            if address:
                await self._talk(server, address)
        finally:
            if end:
                if not self._world.is_done:
                    await end
                end.cancel()
            code = await asyncio.to_thread(server.end, signal.SIGTERM)
        return code

    async def _kill(self, server: Server, moment: float) -> None:
        await asyncio.sleep(moment)
        server.process.send_signal(signal.SIGKILL)

    async def _talk(self, server: Server, address: str) -> None:
        """Until all is said and no timer runs, or the server is dead."""
        dead = asyncio.Event()
        talking = asyncio.create_task(self._world.talk(address, dead))
        desk = asyncio.create_task(self._sit_at_the_desk())
        ended = asyncio.create_task(asyncio.to_thread(server.process.wait))
        ended.add_done_callback(lambda _: dead.set())
        try:
            async with asyncio.timeout(LONGEST):
                await talking  # requests to a dead server fail
                while self._world.is_done and not ended.done() and await self._timers():
                    await asyncio.sleep(RETRY)
        except TimeoutError:
            self._complain(f"a server was at work for {LONGEST:g} s and did not end it")
        finally:
            desk.cancel()
            await asyncio.gather(desk, return_exceptions=True)
            if server.process.poll() is None:
                server.process.send_signal(signal.SIGTERM if self._world.is_done else signal.SIGKILL)
            await ended

    async def _sit_at_the_desk(self) -> None:
        while True:
            await asyncio.sleep(RETRY)
            with suppress(RipstopError):  # the journal is just being made
                async with engine_in(self._folder) as engine:
                    await answer_doubts(engine, self._folder)

    async def _timers(self) -> int:
        async with engine_in(self._folder) as engine:
            return (await states_in(engine)).timers

    def _count(self, death: Death) -> None:
        """A server was killed: how were its sessions at that moment?"""

        async def states() -> Counter[str]:
            with suppress(RipstopError):  # it was killed while it made the journal
                async with engine_in(self._folder) as engine:
                    return (await states_in(engine)).states
            return Counter()

        found = asyncio.run(states()) if journal_in(self._folder).exists() else Counter[str]()
        with self._tally.lock:
            self._tally.kills[death.failpoint.partition(":")[0] or AT_RANDOM] += 1
            self._tally.states.update(name for name, count in found.items() if count)

    async def _check(self) -> None:
        async with engine_in(self._folder) as engine:
            found = await check(engine, self._world)
        tally = self._tally
        with tally.lock:
            tally.chains += 1
            tally.messages += sum(user.sent for user in self._world.users)
            tally.answers += found.answered
            tally.doubts += found.doubts
            tally.timers += found.fired
            tally.trouble += [f"{self._folder}: {text}" for text in found.wrong]
        if not found.wrong:
            await asyncio.to_thread(shutil.rmtree, self._folder)

    def _complain(self, text: str) -> None:
        with self._tally.lock:
            self._tally.trouble.append(f"{self._folder}: {text}")


def crash(
    kills: int,
    seed: int,
    root: Path,
    points: tuple[str, ...] = POINTS,
    users: int = USERS,
    each: int = 3,
    seconds: float | None = None,
    say: Say = print,
) -> ChatTally:
    """Kill `each` times at each of the fail-points, and `kills` times at random, or until time is up."""
    tally, chance = ChatTally(), random.Random(seed)
    began = time.monotonic()

    def enough() -> bool:
        late = seconds is not None and time.monotonic() - began > seconds
        missing = [name for name in points if tally.kills[name] < each]
        return late or bool(tally.trouble) or (tally.kills[AT_RANDOM] >= kills and not missing)

    def next_death(own: random.Random) -> Death:
        if enough():
            return Death()
        with tally.lock:
            missing = [name for name in points if tally.kills[name] < each]
        if missing and (tally.kills[AT_RANDOM] >= kills or own.random() < 0.5):
            # seldom reached places get little time, so that the others do not wait for them
            return Death(f"{own.choice(missing)}:{1 + int(own.expovariate(0.1))}", moment=MOMENT * 4)
        return Death(moment=own.uniform(0, MOMENT), early=own.random() > AT_WORK_SHARE)

    def chains(name: str, own: random.Random) -> None:
        made = 0
        while not enough():
            made += 1
            Chain(make_world(root / f"{name}-{made}", users, own), tally).run(lambda: next_death(own))
            say(progress(tally, time.monotonic() - began))

    with ThreadPoolExecutor(CHAINS) as pool:
        sources = [random.Random(chance.random()) for _ in range(CHAINS)]
        running = [pool.submit(chains, f"chain-{number}", own) for number, own in enumerate(sources)]
        for chain in running:
            chain.result()
    return tally


def progress(tally: ChatTally, seconds: float) -> str:
    return (
        f"{tally.kills.total()} kills, {tally.kills[AT_RANDOM]} of them at random, {tally.chains} worlds to their end, "
        f"{tally.messages} messages, {len(tally.trouble)} in trouble, {seconds:.0f} s"
    )


def table(tally: ChatTally) -> str:
    rows = [f"{count:6} {name}" for name, count in sorted(tally.kills.items())]
    rows += ["kills while at least one session was:"]
    rows += [f"{count:6} {name}" for name, count in sorted(tally.states.items())]
    rows.append(
        f"{tally.chains} worlds to their end: {tally.messages} messages, {tally.answers} answers, "
        f"{tally.timers} timers of {TIMER:g} s fired, {tally.doubts} doubts"
    )
    return "\n".join([*rows, *tally.trouble[:10]])


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill a server under load.")
    parser.add_argument("--kills", type=int, default=1000, help="at random, at least (1000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, help="stop killing after so long")
    chosen = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="ripstop-chats-"))
    tally = crash(chosen.kills, chosen.seed, root, seconds=chosen.seconds)
    print(table(tally))
    if tally.trouble:
        print(f"The folders are kept in {root}.", file=sys.stderr)
        return 1
    shutil.rmtree(root)
    return 0


if __name__ == "__main__":
    sys.exit(main())
