"""Runs pay, a backup is made in the middle, they go on, and the backup is restored elsewhere, in three commands.

Whatever may have happened after the backup is asked about, and nothing is paid twice, or taken for paid and never paid:

    ripstop restore BACKUP --map OLD=NEW
    ripstop answer --all restored happened
    ripstop work

After that, every run has ended or is on the desk with a call that may have been made. A person who knows what the bank
did answers each of them, until all runs have ended. Each round has another way to lose the journal: it is restored in
another folder, at its old place, put back by hand, put back from a copy of the file that no command of ripstop made, or
its worker is killed. The model answers otherwise after the restore: it pays in another order.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from .foreign_folder import DONE, WORKFLOW
from .restored_bank import TOOLS, Bank

RIPSTOP = (sys.executable, "-m", "ripstop")
LOSSES = ("elsewhere", "same place", "by hand", "by a copy of the file", "killed")
ORIGINAL = """
import asyncio, os, sqlite3, sys
from pathlib import Path
from ripstop import ALL, App, Settings
from ripstop.app.settings.settings_file import Models
sys.path.insert(0, os.getcwd())
from bank import book, pay, wire

async def main(runs, middle, loss):
    settings = Settings(store="sqlite:.ripstop/journal.db", concurrency=4)
    bank = Path(os.environ["BANK"])
    async with App(settings, tools=[book, pay, wire], scope=None) as app:
        started = [(await app.start("bill.yaml", model=f"script:{Path.cwd()}/{n}.jsonl")).id for n in range(runs)]
        async with app.working(ALL):
            while len(bank.read_text().splitlines()) < middle:
                await asyncio.sleep(0.01)
            if loss == "by a copy of the file":
                copy = sqlite3.connect("../backup.db")
                sqlite3.connect(".ripstop/journal.db").backup(copy)
                copy.close()
            else:
                await app.engine.journal.backup(Path("../backup.db"), app.engine.clock())
            if loss == "killed":
                os.kill(os.getpid(), 9)
            for run in started:
                await app.wait(run)

asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
"""


ANSWERS = """
import asyncio, json, os, sys
from ripstop import ALL, App, DeskQuery, Settings
from ripstop.kernel.effects import AgentReplied
from ripstop.kernel.events import Answered
from ripstop.kernel.run import DOUBT
sys.path.insert(0, os.getcwd())
from bank import book, pay, told, wire

def was_done(purpose):
    return any(one["purpose"] == purpose and one["did"] for one in told())

async def main():
    asked, wanted = 0, set()
    async with App(Settings(store="sqlite:.ripstop/journal.db"), tools=[book, pay, wire], scope=None) as app:
        async with app.working(ALL):
            while set(await app.engine.journal.counts()) != {"completed"}:
                for question in (await app.engine.desk(DeskQuery(purpose=DOUBT, size=100))).items:
                    purpose = question.command.arguments["purpose"]
                    choice = "happened" if was_done(purpose) else "again"
                    await app.engine.answer(question.run_id, question.number, "", choice=choice)
                    asked += 1
                await asyncio.sleep(0.01)
        for run in (await app.engine.runs()).items:
            for record in await app.engine.journal.read(run.run_id):
                if isinstance(record.event, Answered) and isinstance(record.event.answer, AgentReplied):
                    wanted |= {call.arguments["purpose"] for call in record.event.answer.calls}
    print(json.dumps({"asked": asked, "wanted": sorted(wanted)}))

asyncio.run(main())
"""
ORDER = ("pay", "book", "wire", "pay", "book", "wire")
AGAIN = (3, 4, 5, 0, 1, 2)
"""Which of them the model wants, in turn, after the restore."""


def write_bills(folder: Path, runs: int, order: tuple[int, ...]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bill.yaml").write_text(WORKFLOW.replace("[pay]", "[pay, book, wire]"), encoding="utf-8")
    (folder / "bank.py").write_text(TOOLS, encoding="utf-8")
    for number in range(runs):
        calls = [{"tool": ORDER[index], "args": {"purpose": f"{number}-{index}"}} for index in order]
        lines = [*({"calls": [call], "delay": 0.02} for call in calls), DONE]
        (folder / f"{number}.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")


class World:
    """A folder with a bank in it, and commands that are run there."""

    def __init__(self, folder: Path) -> None:
        file = folder / "bank.txt"
        file.write_text("")
        self.bank = Bank(file)
        self._environment: Mapping[str, str] = {
            **os.environ,
            "XDG_STATE_HOME": str(folder / "state"),
            "BANK": str(file),
        }

    def run(self, folder: Path, *command: str, expect: tuple[int, ...] = (0,)) -> str:
        done = subprocess.run(command, cwd=folder, env=self._environment, capture_output=True, text=True, timeout=600)
        assert done.returncode in expect, f"{command} ended with {done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout

    def ripstop(self, folder: Path, *arguments: str, expect: tuple[int, ...] = (0,)) -> str:
        return self.run(folder, *RIPSTOP, *arguments, expect=expect)


def one_round(folder: Path, runs: int, loss: str) -> str:
    """Lose a journal and restore it; returns what was seen."""
    world, old, new = World(folder), folder / "old", folder / "new"
    write_bills(old, runs, tuple(range(len(ORDER))))
    middle = runs * len(ORDER) // 2
    world.run(old, sys.executable, "-c", ORIGINAL, str(runs), str(middle), loss, expect=(0, -9))
    before = world.bank.done
    assert len(before) == runs * len(ORDER) or loss == "killed"
    by_hand = loss.startswith("by ")
    here = old if by_hand or loss == "same place" else new
    write_bills(here, runs, AGAIN)
    if by_hand:
        for part in (old / ".ripstop").glob("journal.db*"):
            part.unlink()
        (folder / "backup.db").rename(old / ".ripstop" / "journal.db")
    else:
        moved = ("--map", f"{old}={new}") if here is new else ()
        world.ripstop(here, "restore", str(folder / "backup.db"), *moved)
    said = "ask" if loss in ("killed", "same place") else "happened"
    answered = json.loads(world.ripstop(here, "--json", "answer", "--all", "restored", said))["answered"]
    world.ripstop(here, "--tools", "bank", "work", "--until-idle")
    check_bank(world.bank)
    if loss != "killed":
        assert world.bank.done == before, "nothing is paid before a person has said that it was not"
    check_desk(world, here, runs)
    told = json.loads(world.run(here, sys.executable, "-c", ANSWERS))
    check_bank(world.bank)
    unpaid = [purpose for purpose in told["wanted"] if not world.bank.done[purpose]]
    assert not unpaid, f"not paid, and taken for paid: {unpaid}"
    world.ripstop(here, "verify")
    asked = f"{len(answered)} of {runs} runs asked about, {told['asked']} calls in doubt after that"
    return f"{loss}: {asked}, none paid twice, none left out"


def check_bank(bank: Bank) -> None:
    twice = {purpose: times for purpose, times in bank.done.items() if times > 1}
    assert not twice, f"paid twice: {twice}"
    assert not bank.denied, f"not paid, because another payment had the key: {bank.denied}"


def check_desk(world: World, here: Path, runs: int) -> None:
    """Every run has ended, or waits for a person with a call in doubt."""
    desk = json.loads(world.ripstop(here, "--json", "desk"))
    assert {item["kind"] for item in desk} <= {"doubt"}
    listed = json.loads(world.ripstop(here, "--json", "runs", "--last", str(runs)))
    waiting = {item["run"] for item in desk}
    ended = {one["run"] for one in listed if one["status"] == "completed"}
    assert len(listed) == runs and waiting | ended == {one["run"] for one in listed} and not waiting & ended


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=1, help="Rounds of every way to lose the journal.")
    options = parser.parse_args()
    for number in range(options.rounds):
        for loss in LOSSES:
            with tempfile.TemporaryDirectory(prefix="ripstop-restore-") as folder:
                print(f"round {number + 1}, {one_round(Path(folder).resolve(), options.runs, loss)}", flush=True)


if __name__ == "__main__":
    main()
