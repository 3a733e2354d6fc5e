"""How a worker behaves as a service: a damaged run among healthy ones, cancels by another process, timers among many.

    python bench/service.py                    # 200 healthy runs, 10 cancels, 20 timers beside 100,000 pending ones

Everything is on disk, and the worker of the first two parts is a process of its own (`ripstop work`).
"""

import argparse
import asyncio
import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from contestants.ripstop_engine import Nothing
from ripstop import App, find, read_settings
from ripstop.engine.engine import Engine
from ripstop.engine.performers import TimerPerformer
from ripstop.engine.worker import Worker
from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.kernel.effects import SetTimer, TimerFired
from ripstop.kernel.events import Answered, Event, Record, Started
from ripstop.kernel.registry import Registry
from ripstop.kernel.step import Step
from ripstop.kernel.style import News, Settled, Style, StyleKit
from waiting import fill

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "haiku"
LONG = 600


def ripstop(folder: Path, *arguments: str) -> Any:
    command = [sys.executable, "-m", "ripstop", "--json", *arguments]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


async def start(folder: Path, script: Path, runs: int) -> list[str]:
    """Runs that nobody works on yet."""
    settings = read_settings(folder, store=f"sqlite:{folder / '.ripstop/journal.db'}", model=f"script:{script}")
    async with App(settings, scope=None) as app:
        files = folder / ".ripstop/workspaces"
        started = [await app.start(find(str(EXAMPLE)), workspace=files / str(number)) for number in range(runs)]
    return [run.id for run in started]


def poisoned(folder: Path, healthy: int) -> str:
    """One damaged run beside healthy ones: what `ripstop work` makes of them."""
    first, *_ = asyncio.run(start(folder, EXAMPLE / "script.jsonl", healthy + 1))
    with sqlite3.connect(folder / ".ripstop/journal.db") as db:
        key = db.execute("SELECT key FROM runs WHERE id = ?", (first,)).fetchone()[0]
        db.execute("UPDATE records SET body = replace(body, 'haiku', 'hiaku') WHERE run = ?", (key,))
    db.close()
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "ripstop", "work", "--until-idle"], cwd=folder, check=True, capture_output=True
    )
    taken = time.perf_counter() - began
    listed = {row["run"]: row for row in ripstop(folder, "runs")}
    completed = sum(row["status"] == "completed" for row in listed.values())
    return f"{completed} of {healthy} completed in {taken:.1f} s; the other: {listed[first].get('set_aside')}"


def cancels(folder: Path, count: int) -> list[float]:
    """Seconds from the record of a cancel by another process until the call under way has reported its end."""
    script = folder / "slow.jsonl"
    script.write_text("".join(json.dumps({"reply": "never", "delay": LONG}) + "\n" for _ in range(count)))
    runs = asyncio.run(start(folder, script, count))
    worker = subprocess.Popen(
        [sys.executable, "-m", "ripstop", "work"], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        time.sleep(5)
        for run in runs:
            ripstop(folder, "cancel", run)
        time.sleep(3)
        return [seconds for run in runs if (seconds := _noticed(folder, run)) is not None]
    finally:
        worker.terminate()
        worker.wait()


def _noticed(folder: Path, run: str) -> float | None:
    """None if the worker had not begun the call."""
    command = [sys.executable, "-m", "ripstop", "log", run, "--json"]
    lines = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.splitlines()
    times = {one["type"]: datetime.fromisoformat(one["at"]) for one in map(json.loads, lines)}
    return (times["answered"] - times["cancel_requested"]).total_seconds() if "answered" in times else None


class Alarm(Style[str]):
    """A style whose run sets one timer, and ends when it fires."""

    name = "alarm"

    def begin(self, definition: Any, started: Started) -> str:
        return started.input

    def evolve(self, state: str, number: int, event: Event) -> str:
        return state

    def decide(self, step: Step[str], news: News) -> None:
        if isinstance(news, Started):
            step.ask(SetTimer(name="alarm", after=float(step.state)))
        elif isinstance(news, Settled) and isinstance(news.answer, TimerFired):
            step.end("completed", "it rang")


def timers(folder: Path, count: int, pending: int) -> list[float]:
    """How many seconds late timers fire beside many that are pending."""

    async def work() -> list[float]:
        registry = Registry([StyleKit(style=Alarm(), definition=Nothing)])
        journal = SqliteJournal(folder / "timers.db", registry.codec)
        await fill(journal, pending)
        engine = Engine(journal, registry, lambda: time.time_ns() // 1000)
        worker = Worker(engine, {SetTimer: TimerPerformer()})
        await worker.start()
        waits = [0.2 + 0.15 * number for number in range(count)]
        for number, seconds in enumerate(waits):
            await engine.start(f"alarm-{number}", "alarm", b"{}", input=str(seconds))
        await asyncio.sleep(max(waits) + 3)
        late = []
        for number, seconds in enumerate(waits):
            records = await journal.read(f"alarm-{number}")
            late.append((_fired(records) - records[0].at) / 1e6 - seconds)
        await worker.stop()
        await journal.close()
        return late

    return asyncio.run(work())


def _fired(records: list[Record]) -> int:
    return next(record.at for record in records if isinstance(record.event, Answered))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--healthy", type=int, default=200)
    parser.add_argument("--pending", type=int, default=100_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        print(f"a damaged run among healthy ones: {poisoned(in_folder(name, 'damaged'), options.healthy)}", flush=True)
        noticed = cancels(in_folder(name, "cancels"), 10)
        print(f"{len(noticed)} cancels by another process: noticed after at most {max(noticed):.2f} s", flush=True)
        late = timers(in_folder(name, "timers"), 20, options.pending)
        print(f"{len(late)} timers beside {options.pending:,} pending ones: late by at most {max(late):.2f} s")


def in_folder(root: str, name: str) -> Path:
    folder = Path(root) / name
    (folder / ".ripstop").mkdir(parents=True, mode=0o700)
    return folder


if __name__ == "__main__":
    main()
