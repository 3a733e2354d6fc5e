"""Runs pay, a backup is made in the middle, they go on, and the backup is restored elsewhere, in three commands.

Whatever may have happened after the backup is asked about, and nothing is paid twice:

    ripstop restore BACKUP --map OLD=NEW
    ripstop answer --all restored happened
    ripstop work

After that, every run has ended or is on the desk with a call that may have been made. Each round has another way to
lose the journal: it is restored in another folder, at its old place, put back by hand, put back from a copy of the file
that no command of ripstop made, or its worker is killed.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from .foreign_folder import DONE, TOOLS, WORKFLOW

RIPSTOP = (sys.executable, "-m", "ripstop")
LOSSES = ("elsewhere", "same place", "by hand", "by a copy of the file", "killed")
ORIGINAL = """
import asyncio, os, sqlite3, sys
from pathlib import Path
from ripstop import ALL, App, Settings
from ripstop.app.settings.settings_file import Models
sys.path.insert(0, os.getcwd())
from bank import pay

async def main(runs, middle, loss):
    settings = Settings(store="sqlite:.ripstop/journal.db", concurrency=4)
    bank = Path(os.environ["BANK"])
    async with App(settings, tools=[pay], scope=None) as app:
        started = [(await app.start("bill.yaml", model=f"script:{Path.cwd()}/{n}.jsonl")).id for n in range(runs)]
        async with app.working(ALL):
            while len(bank.read_text().split()) < middle:
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


def write_bills(folder: Path, runs: int) -> None:
    folder.mkdir(parents=True)
    (folder / "bill.yaml").write_text(WORKFLOW, encoding="utf-8")
    slow = TOOLS.replace("import os\n", "import os\nimport time\n").replace(
        "    with open", "    time.sleep(0.05)\n    with open"
    )
    (folder / "bank.py").write_text(slow, encoding="utf-8")
    for number in range(runs):
        pays = {"calls": [{"tool": "pay", "args": {"euros": number}}], "delay": 0.02}
        (folder / f"{number}.jsonl").write_text("\n".join(map(json.dumps, (pays, DONE))), encoding="utf-8")


class World:
    """A folder with a bank in it, and commands that are run there."""

    def __init__(self, folder: Path) -> None:
        self.bank = folder / "bank.txt"
        self.bank.write_text("")
        self._environment: Mapping[str, str] = {
            **os.environ,
            "XDG_STATE_HOME": str(folder / "state"),
            "BANK": str(self.bank),
        }

    def run(self, folder: Path, *command: str, expect: tuple[int, ...] = (0,)) -> str:
        done = subprocess.run(command, cwd=folder, env=self._environment, capture_output=True, text=True, timeout=600)
        assert done.returncode in expect, f"{command} ended with {done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout

    def ripstop(self, folder: Path, *arguments: str, expect: tuple[int, ...] = (0,)) -> str:
        return self.run(folder, *RIPSTOP, *arguments, expect=expect)

    @property
    def paid(self) -> Counter[str]:
        return Counter(self.bank.read_text().split())


def one_round(folder: Path, runs: int, loss: str) -> str:
    """Lose a journal and restore it; returns what was seen."""
    world, old, new = World(folder), folder / "old", folder / "new"
    write_bills(old, runs)
    world.run(old, sys.executable, "-c", ORIGINAL, str(runs), str(runs // 2), loss, expect=(0, -9))
    before = world.paid
    assert len(before) == runs or loss == "killed"
    by_hand = loss.startswith("by ")
    here = old if by_hand or loss == "same place" else new
    if here is new:
        write_bills(new, runs)
    if by_hand:
        for part in (old / ".ripstop").glob("journal.db*"):
            part.unlink()
        (folder / "backup.db").rename(old / ".ripstop" / "journal.db")
    else:
        moved = ("--map", f"{old}={new}") if here is new else ()
        world.ripstop(here, "restore", str(folder / "backup.db"), *moved)
    said = "ask" if loss == "killed" else "happened"
    answered = json.loads(world.ripstop(here, "--json", "answer", "--all", "restored", said))["answered"]
    world.ripstop(here, "--tools", "bank", "work", "--until-idle")
    twice = {euros: times for euros, times in world.paid.items() if times > 1}
    assert not twice, f"paid twice: {twice}"
    assert world.paid == before, "nothing is paid before a person has said that it was not"
    desk = json.loads(world.ripstop(here, "--json", "desk"))
    assert {item["kind"] for item in desk} <= {"doubt"}
    listed = json.loads(world.ripstop(here, "--json", "runs", "--last", str(runs)))
    waiting = {item["run"] for item in desk}
    ended = {one["run"] for one in listed if one["status"] == "completed"}
    assert len(listed) == runs and waiting | ended == {one["run"] for one in listed} and not waiting & ended
    world.ripstop(here, "verify")
    return f"{loss}: {len(answered)} of {runs} runs asked about, {len(desk)} calls in doubt after that, none paid twice"


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
