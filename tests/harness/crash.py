"""Kills a working process again and again, and finds out whether anything was lost or silently repeated.

    python -m tests.harness.crash --kills 1000

A *chain* is one journal with the runs of `crash_runs`: a process works on it (`crash_work`), is killed with
SIGKILL at a fail-point or at a random moment, is started again, and so on until the runs have ended. After
every kill the journal is looked at (`crash_checks`); at the end it is compared with one that was never
killed. Two chains run side by side. The harness is also the people: it answers what is on the desk, and
when asked about an unsafe effect in doubt it looks whether it has left a trace.
"""

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from msgspec import Struct

from ripstop.engine.failpoints import FAILPOINTS
from ripstop.engine.ports import Question
from ripstop.kernel.doubts import AGAIN, HAPPENED
from tests.harness.crash_checks import Found, differences, look, unfit
from tests.harness.crash_work import read_effects

AT_RANDOM = "(at random)"
RANDOM_SHARE = 0.2
"""Of all kills."""
CHAINS = 2
"""Side by side."""
TWO_SHARE = 0.25
"""How often two processes work on one journal at the same time."""
MOMENT = 0.25
"""Seconds within which a process is killed at random …"""
AT_WORK_SHARE = 0.8
"""… counted, so often, from when it is ready to work; else from its very start."""
HUNG = 60.0
"""Seconds. A life that lasts longer has stopped moving."""
STUCK = 5
"""Processes in a row that nobody killed and that recorded nothing."""
CREATION = frozenset(name for name in FAILPOINTS if "migration" in name)
"""Reached only by the first process on a journal."""
LEAVING = frozenset({"worker.before_leave", "worker.after_leave", "liveness.before_unlink", "liveness.after_unlink"})
"""Reached only by a process that stops in an orderly way."""
OFTEN = (
    frozenset(
        name for name in FAILPOINTS if name.startswith(("engine.", "sqlite.")) or name.endswith(("perform", "tell"))
    )
    - CREATION
)
"""Reached many times in a life, so that the process may be killed at any of them."""

Say = Callable[[str], None]


class Line(Struct):
    """What came of the kills at one fail-point."""

    kills: int = 0
    lost: int = 0
    repeated: int = 0
    silent: int = 0
    doubts: int = 0


class Tally:
    """The figures of all chains, and what is still to be done."""

    def __init__(self, kills: int, seconds: float | None, rng: random.Random) -> None:
        self.lines = {name: Line() for name in (*FAILPOINTS, AT_RANDOM)}
        self.trouble: list[str] = []
        self.chains = 0
        self.acknowledged = 0
        self.again = 0
        self.began = time.monotonic()
        self._wanted = kills
        self._deadline = self.began + seconds if seconds else None
        self._rng = rng
        self._each = max(1, round(kills * (1 - RANDOM_SHARE) / len(FAILPOINTS)))
        self.lock = threading.Lock()

    @property
    def kills(self) -> int:
        return sum(line.kills for line in self.lines.values())

    @property
    def enough(self) -> bool:
        late = self._deadline is not None and time.monotonic() > self._deadline
        return late or bool(self.trouble) or (self.kills >= self._wanted and not self.unreached)

    @property
    def unreached(self) -> list[str]:
        return [name for name in FAILPOINTS if not self.lines[name].kills]

    def next_target(self, created: bool) -> str:
        """Where the next process dies: the places that lack most kills first, more or less."""
        with self.lock:
            lacking = {
                name: self._each - self.lines[name].kills
                for name in FAILPOINTS
                if self.lines[name].kills < self._each and created is not (name in CREATION)
            }
            if not lacking or self._rng.random() < RANDOM_SHARE:
                return AT_RANDOM
            return self._rng.choices(list(lacking), [count * count for count in lacking.values()])[0]

    def report(self) -> dict[str, Any]:
        lines = self.lines.values()
        return {
            "kills": self.kills,
            "chains": self.chains,
            "seconds": round(time.monotonic() - self.began, 1),
            "acknowledged": self.acknowledged,
            "lost": sum(line.lost for line in lines),
            "silently_repeated": sum(line.silent for line in lines),
            "repeated_and_reported": sum(line.repeated - line.silent for line in lines),
            "doubts": sum(line.doubts for line in lines),
            "said_again": self.again,
            "unreached": self.unreached,
            "trouble": self.trouble,
            "failpoints": {
                name: {field: getattr(line, field) for field in line.__struct_fields__}
                for name, line in self.lines.items()
            },
        }


class Chain:
    """One journal, from its creation until all its runs have ended."""

    def __init__(self, folder: Path, tally: Tally, reference: Found | None, rng: random.Random) -> None:
        self._folder = folder
        self._tally = tally
        self._reference = reference
        self._rng = rng
        self.found = Found()
        self._killed_at: str | None = None
        self._still = 0
        folder.mkdir()

    def run(self) -> None:
        while not self.found.ended and not self._tally.trouble:
            never = self._reference is None or self._tally.enough
            target = None if never else self._tally.next_target(bool(self.found.records))
            self._look(self._live(target))
        if self._reference and self.found.ended:
            wrong = differences(self.found, self._reference)
            with self._tally.lock:
                self._tally.chains += 1
                self._tally.acknowledged += self.found.acknowledged
                self._tally.again += self.found.again
                self._tally.trouble += [f"{self._folder}: {text}" for text in wrong]

    def _live(self, target: str | None) -> list[str]:
        """A process, or two at a time, from start to end; where they were killed."""
        answers = json.dumps([self._answer(question) for question in self.found.desk])
        processes = [(target, self._begin(target, answers))]
        if target and self._rng.random() < TWO_SHARE:
            other = self._tally.next_target(bool(self.found.records))
            processes.append((other, self._begin(other, answers)))
        return [place for place, process in processes if self._end(place, process) and place]

    def _begin(self, target: str | None, answers: str) -> "subprocess.Popen[bytes]":
        environment = {name: value for name, value in os.environ.items() if name != "RIPSTOP_FAILPOINT"}
        if target and target != AT_RANDOM:
            count = 1 + int(self._rng.expovariate(0.3)) if target in OFTEN else 1
            environment["RIPSTOP_FAILPOINT"] = f"{target}:{count}"
        leave_after = self._rng.randint(1, 40) if target in LEAVING else 0
        command = [sys.executable, "-m", "tests.harness.crash_work", str(self._folder), answers, str(leave_after)]
        with (self._folder / "stderr.txt").open("ab") as errors:
            return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=errors)  # our own program

    def _end(self, target: str | None, process: "subprocess.Popen[bytes]") -> bool:
        """Wait for the end of a process, or bring it about; whether it was killed."""
        with process:
            assert process.stdout is not None
            if target == AT_RANDOM and self._rng.random() < AT_WORK_SHARE:
                process.stdout.read(1)  # it has started, or it is dead
            try:
                process.wait(self._rng.uniform(0, MOMENT) if target == AT_RANDOM else HUNG)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
                if target != AT_RANDOM:
                    self._complain(f"a process hung for {HUNG:g} s (fail-point {target})")
        if process.returncode not in (0, -signal.SIGKILL):
            said = (self._folder / "stderr.txt").read_text(encoding="utf-8", errors="replace")[-2000:]
            self._complain(f"a process ended with {process.returncode} (fail-point {target}): {said}")
        return process.returncode == -signal.SIGKILL

    def _answer(self, question: Question) -> tuple[str, int, str, str]:
        """What a person says. About an effect in doubt: whether it has left a trace."""
        command, run_id, number = question.command, question.run_id, question.number
        if HAPPENED not in command.choices:
            return run_id, number, next(iter(command.choices), ""), "go on"
        key = f"{run_id}/{command.about[0]}"
        trace = next((effect for effect in read_effects(self._folder) if effect.key == key), None)
        if trace is None or self._rng.random() < 0.1:  # now and then a person wants it done again
            return run_id, number, AGAIN, ""
        return run_id, number, HAPPENED, trace.value

    def _look(self, killed_at: list[str]) -> None:
        before, self.found = self.found, asyncio.run(look(self._folder))
        found, tally = self.found, self._tally
        with tally.lock:
            for place in killed_at:
                tally.lines[place].kills += 1
            if killed_at:
                tally.lines[killed_at[0]].lost += len(found.lost)
            # what was done over again is due to the kill before, or to the first of two in this life
            if cause := self._killed_at or next(iter(killed_at), None):
                line = tally.lines[cause]
                line.repeated += found.repeated - before.repeated
                line.silent += len(found.silent) - len(before.silent)
                line.doubts += found.doubts - before.doubts
            tally.trouble += [f"{self._folder}: lost, killed at {killed_at}: {text}" for text in found.lost]
            tally.trouble += [f"{self._folder}: silently repeated, killed at {cause}: {s}" for s in found.silent]
        self._killed_at = killed_at[0] if killed_at else self._killed_at
        moved = killed_at or _size(found) > _size(before)
        self._still = 0 if moved else self._still + 1
        if self._still == STUCK:
            self._complain(f"is stuck: {STUCK} processes have come and gone, and nothing has happened")

    def _complain(self, text: str) -> None:
        with self._tally.lock:
            self._tally.trouble.append(f"{self._folder}: {text}")


def _size(found: Found) -> int:
    return sum(len(records) for records in found.records.values())


def crash(kills: int, seed: int, seconds: float | None, folder: Path, say: Say) -> dict[str, Any]:
    """Kill until there have been `kills` kills and every fail-point was reached, or time is up."""
    rng = random.Random(seed)  # chooses where to kill, guards nothing
    tally = Tally(kills, seconds, rng)
    calm = Chain(folder / "never-killed", tally, None, rng)
    calm.run()
    tally.trouble += [f"never killed, and yet: {text}" for text in unfit(calm.found)]
    say(f"never killed: {len(calm.found.records)} runs, {calm.found.acknowledged} records, {calm.found.doubts} doubts")

    def chains(name: str, own: random.Random) -> None:
        made = 0
        while not tally.enough:
            made += 1
            Chain(folder / f"{name}-{made}", tally, calm.found, own).run()

    with ThreadPoolExecutor(CHAINS) as pool:
        # each chain draws from a source of its own, so that the order in which they run does not matter
        sources = [random.Random(rng.random()) for _ in range(CHAINS)]  # as above
        running = [pool.submit(chains, f"chain-{n}", own) for n, own in enumerate(sources)]
        while wait(running, timeout=5).not_done:
            say(_progress(tally.report()))
        for chain in running:
            chain.result()
    return tally.report()


def _progress(report: dict[str, Any]) -> str:
    return (
        f"{report['kills']} kills, {report['chains']} journals to their end, {report['lost']} lost, "
        f"{report['silently_repeated']} silently repeated, {report['seconds']:.0f} s"
    )


def table(report: dict[str, Any]) -> str:
    rows: list[tuple[str, ...]] = [("killed at", "kills", "lost", "silently repeated", "repeated, reported", "doubts")]
    for name, line in report["failpoints"].items():
        reported = line["repeated"] - line["silent"]
        rows.append((name, *(str(n) for n in (line["kills"], line["lost"], line["silent"], reported, line["doubts"]))))
    total = ("kills", "lost", "silently_repeated", "repeated_and_reported", "doubts")
    rows.append(("all", *(str(report[name]) for name in total)))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        f"{row[0]:<{widths[0]}}" + "".join(f"  {c:>{w}}" for c, w in zip(row[1:], widths[1:], strict=True))
        for row in rows
    ]
    lines.append(
        f"{report['chains']} journals to their end, {report['acknowledged']} acknowledged records, "
        f"{report['said_again']} times a person said “again”, {report['seconds']} s"
    )
    lines += [f"never reached: {name}" for name in report["unreached"]]
    return "\n".join([*lines, *report["trouble"]])


def failed(report: dict[str, Any]) -> bool:
    return bool(report["lost"] or report["silently_repeated"] or report["unreached"] or report["trouble"])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.harness.crash", description="Kill a working process.")
    parser.add_argument("--kills", type=int, default=1000, help="how often at least (1000)")
    parser.add_argument("--seed", type=int, default=1, help="where the choices start (1)")
    parser.add_argument("--seconds", type=float, help="stop killing after so long")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    chosen = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="ripstop-crash-"))
    report = crash(
        chosen.kills, chosen.seed, chosen.seconds, folder, lambda text: print(text, file=sys.stderr)
    )  # a program
    print(json.dumps(report, indent=2) if chosen.json else table(report))  # a program
    if failed(report):
        print(f"The journals are kept in {folder}.", file=sys.stderr)  # a program
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
