"""Kills the processes that work on a run, again and again; are its files the same as those of a run nobody killed?

Every chain is a copy of one folder. A process works in it and is killed with SIGKILL: at a fail-point, or at a random
moment; then the next one goes on. When the work is done, its files are compared with those of the work that was never
disturbed. Only times are masked. `board_crash` and `project_crash` say what the work is.
"""

import argparse
import asyncio
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from msgspec import Struct, field

from ripstop.app.settings.settings_file import read_settings
from ripstop.app.stores import open_engine
from ripstop.history.desk import DeskItem, desk_item
from ripstop.kernel.errors import RipstopError

AT_RANDOM = "(at random)"
CHAINS = 2
"""Side by side."""
LINES, MOMENT = 8, 0.1
"""A process is killed at random after so many lines of its progress at most, and so many seconds more."""
LIVES = 90
"""Processes of one chain; work that needs more never ends."""
TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?Z| UTC)")


class Work(Protocol):
    """What is done in a folder, and killed."""

    def make(self, folder: Path) -> None:
        """What the folder begins with."""

    def command(self, folder: Path) -> list[str] | None:
        """What to run next; none when all is done."""

    def files(self, folder: Path) -> dict[str, str]:
        """What is compared."""


class Tally(Struct):
    kills: Counter[str] = field(default_factory=Counter)
    done: int = 0
    trouble: list[str] = field(default_factory=list)


class Blow(Struct, frozen=True):
    """How a process is to be killed; with neither, it lives."""

    failpoint: str = ""
    lines: int = 0
    moment: float = 0.0


class Life(Struct):
    """One process that works in a folder."""

    code: int
    said: str


def masked(path: Path) -> str:
    return TIME.sub("TIME", path.read_text(encoding="utf-8"))


def environment(folder: Path) -> dict[str, str]:
    home = folder.with_name(f"home-of-{folder.name}")
    return {**os.environ, "HOME": str(home), "XDG_STATE_HOME": str(home / "state")}


class Found(Struct, frozen=True):
    """The run of a folder's journal, and what it asks a person."""

    run_id: str = ""
    status: str = ""
    question: DeskItem | None = None


def found_in(folder: Path) -> Found:
    """What a journal says, without the cost of a process."""

    if not (folder / ".ripstop" / "journal.db").exists():
        return Found()

    async def look() -> Found:
        async with open_engine(read_settings(folder, store=f"sqlite:{folder}/.ripstop/journal.db")) as engine:
            runs = (await engine.runs()).items
            if not runs:
                return Found()
            questions = (await engine.desk()).items
            question = await desk_item(engine, questions[0]) if questions else None
            return Found(runs[-1].run_id, runs[-1].status, question)

    try:
        return asyncio.run(look())
    except RipstopError:  # its process was killed while it made the journal
        return Found()


def live(folder: Path, command: Sequence[str], blow: Blow = Blow()) -> Life:
    """Let a process work until it ends or is killed: at a fail-point, or some time after it has shown its progress."""
    around = environment(folder)
    if blow.failpoint:
        around["RIPSTOP_FAILPOINT"] = blow.failpoint
    process = subprocess.Popen(
        [sys.executable, "-m", "ripstop", "--model", f"script:{folder / 'script.jsonl'}", *command],
        cwd=folder,
        env=around,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    said = ""
    with process:
        for count, line in enumerate(process.stdout, 1):
            said += line
            if count == blow.lines:
                time.sleep(blow.moment)
                process.send_signal(signal.SIGKILL)
        return Life(process.wait(120), said)


def chain(root: Path, name: str, work: Work, wanted: dict[str, str], plan: Callable[[], Blow], tally: Tally) -> None:
    """The whole work in one folder, killed as `plan` says until it is done."""
    folder = root / name
    shutil.copytree(root / "pattern", folder)
    for _ in range(LIVES):
        command = work.command(folder)
        if command is None:
            break
        blow = plan()
        life = live(folder, command, blow)
        if life.code == -signal.SIGKILL:
            tally.kills[blow.failpoint.partition(":")[0] or AT_RANDOM] += 1
        elif life.code not in (0, 4):
            tally.trouble.append(f"{name}: {command} ended with {life.code}: {life.said[-600:]}")
            return
    else:
        tally.trouble.append(f"{name}: not done after {LIVES} processes")
        return
    found = work.files(folder)
    for path in sorted({*found, *wanted}):
        if found.get(path) != wanted.get(path):
            tally.trouble.append(f"{name}: {path} differs:\n{found.get(path)}\n--- instead of ---\n{wanted.get(path)}")
    tally.done += 1
    if not tally.trouble:
        shutil.rmtree(folder)


def crash(
    work: Work, kills: int, seed: int, root: Path, points: Sequence[str], say: Callable[[str], None] = print
) -> Tally:
    """Kill at each of the fail-points three times, then until `kills` kills were made at random."""
    tally, chance = Tally(), random.Random(seed)
    (root / "pattern").mkdir()
    work.make(root / "pattern")
    unharmed = root / "unharmed"
    shutil.copytree(root / "pattern", unharmed)
    while (command := work.command(unharmed)) is not None:
        life = live(unharmed, command)
        assert life.code in (0, 4), f"{command}: {life.said}"
    wanted = work.files(unharmed)

    def at_point(point: str) -> Callable[[], Blow]:
        def blow() -> Blow:  # the later processes of a chain get to other places than the first ones
            killed = tally.kills[point]
            return Blow(f"{point}:{3 * killed + 1}") if killed < 3 else Blow()

        return blow

    def at_random() -> Blow:
        return Blow(lines=chance.randint(1, LINES), moment=chance.uniform(0, MOMENT))

    with ThreadPoolExecutor(CHAINS) as pool:
        named = [pool.submit(chain, root, f"at-{point}", work, wanted, at_point(point), tally) for point in points]
        chains = range(kills)  # more than are needed: those that are left are cancelled
        waiting = [pool.submit(chain, root, f"random-{number}", work, wanted, at_random, tally) for number in chains]
        for one in (*named, *waiting):
            one.result()
            if tally.trouble or (one not in named and tally.kills[AT_RANDOM] >= kills):
                for other in waiting:
                    other.cancel()
                break
            say(f"{tally.kills.total()} kills, {tally.kills[AT_RANDOM]} of {kills} at random, {tally.done} done")
    return tally


def table(tally: Tally) -> str:
    rows = [f"{count:6} {name}" for name, count in sorted(tally.kills.items())]
    rows.append(f"{tally.kills.total():6} kills, {tally.done} the same, {len(tally.trouble)} in trouble")
    return "\n".join([*rows, *tally.trouble[:5]])


def main(work: Work, points: Sequence[str], about: str) -> None:
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        tally = crash(work, arguments.kills, arguments.seed, Path(root), points)
    print(table(tally))
    sys.exit(bool(tally.trouble))
