"""Deployments under load: a worker is stopped with SIGTERM and followed by a new one, again and again.

Every run calls unsafe tools that take 0.1 to 5 seconds. A drain that is longer than any of them leaves no call in
doubt, every call is made once, and every run completes:

    python -m tests.harness.deployments [--deployments 300] [--longest 5] [--seed 1]
"""

import argparse
import asyncio
import contextlib
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from ripstop import App
from ripstop.app.settings.settings_file import Settings
from ripstop.engine.ports import RunQuery
from ripstop.kernel.events import Doubted

TOOLS = '''
import asyncio
from pathlib import Path

import ripstop

BEGUN, EFFECTS = Path(__file__).with_name("begun"), Path(__file__).with_name("effects")


@ripstop.tool
async def act(name: str, seconds: float) -> str:
    """Take effect at the end of the call."""
    with BEGUN.open("a") as file:
        file.write(f"{name}\\n")
    await asyncio.sleep(seconds)
    with EFFECTS.open("a") as file:
        file.write(f"{name}\\n")
    return "done"
'''
WORKFLOW = """\
name: busy
initial_message: Act.
max_turns: 3
agents: [{name: actor, type: ask, tools: [act]}]
states:
  - name: act
    agent: actor
    start: true
    prompt: "{{COLLABORATION_GUIDE}} {{initial_message}} Decide: done."
    transitions: [{to: END, condition: done}]
"""
AT_ONCE = 6
"""Runs under way, so that a worker that is stopped has calls to finish."""
CALLS = 4
"""Calls of each run, one after the other."""
SHORTEST = 0.1
"""Seconds that a call takes at least."""
LONGEST_LIFE = 2.5
"""Seconds for which a worker is left at work at the most."""
PATIENCE = 300.0
"""Seconds that a worker gets for what it has to do, before the harness gives up."""
STOPPED = 128 + signal.SIGTERM


class Deployments:
    def __init__(self, folder: Path, longest: float, seed: int, shortest: float = SHORTEST) -> None:
        self._folder = folder
        self._shortest, self._longest = shortest, longest
        self._chance = random.Random(seed)
        self._settings = Settings(store=f"sqlite:{folder / 'journal.db'}")
        self._started: list[str] = []
        (folder / "busy_tools.py").write_text(TOOLS, encoding="utf-8")
        (folder / "busy.yaml").write_text(WORKFLOW, encoding="utf-8")

    async def deploy(self, times: int, drain: float) -> None:
        """Replace the worker so many times."""
        for number in range(times):
            await self._load()
            begun = self._begun()
            with self._worker(drain) as worker:
                await self._until_at_work(begun)
                await asyncio.sleep(self._chance.uniform(0, min(self._longest / 2, LONGEST_LIFE)))
                worker.send_signal(signal.SIGTERM)
                _, said = worker.communicate(timeout=PATIENCE + drain)
            assert worker.returncode == STOPPED, said
            assert await self.doubts() == [], f"deployment {number} has left calls in doubt: {said}"
            print(f"\r{number + 1} of {times} deployments, {len(self._started)} runs", end="", flush=True)
        print()

    async def finish(self, drain: float) -> None:
        """Let a last worker finish what is left."""
        with self._worker(drain, "--until-idle") as worker:
            _, said = worker.communicate(timeout=PATIENCE * len(self._started))
        assert worker.returncode == 0 and not said.count("Setting"), said

    async def check(self) -> None:
        """Every run has completed, and every call took effect once."""
        async with App(self._settings, scope=None) as app:
            statuses = {run: (await app.look(run)).status for run in self._started}
        assert set(statuses.values()) == {"completed"}, statuses
        effects = Counter((self._folder / "effects").read_text(encoding="utf-8").split())
        assert effects == Counter(f"{run}.{call}" for run in range(len(self._started)) for call in range(CALLS))

    async def until_doubts(self) -> list[str]:
        """The runs of which a new worker says that a call is in doubt."""
        end = time.monotonic() + PATIENCE
        with self._worker(0.0) as worker:
            while not (found := await self.doubts()) and time.monotonic() < end:
                await asyncio.sleep(0.05)
            worker.send_signal(signal.SIGTERM)
            worker.communicate(timeout=PATIENCE)
        return found

    async def doubts(self) -> list[str]:
        async with App(self._settings, scope=None) as app:
            records = {run: await app.engine.journal.read(run) for run in self._started}
        return [run for run, found in records.items() if any(isinstance(one.event, Doubted) for one in found)]

    def _worker(self, drain: float, *options: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "ripstop", "--store", self._settings.store, "--tools", "busy_tools"]
        command += ["work", "--drain", str(drain), *options]
        return subprocess.Popen(command, cwd=self._folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    async def _load(self) -> None:
        """Start runs until there are enough that have not ended."""
        async with App(self._settings, scope=None) as app:
            counts = await app.engine.journal.counts(RunQuery())
            missing = AT_ONCE - (sum(counts.values()) - counts.get("completed", 0))
            for _ in range(missing):
                run = await app.start(self._folder / "busy.yaml", model=self._script(len(self._started)))
                self._started.append(run.id)

    def _script(self, run: int) -> str:
        def call(number: int) -> dict[str, object]:
            seconds = round(self._chance.uniform(self._shortest, self._longest), 2)
            return {"calls": [{"tool": "act", "args": {"name": f"{run}.{number}", "seconds": seconds}}]}

        lines = [*map(call, range(CALLS)), {"reply": '{"content": "Done.", "decisions": {"done": true}}'}]
        path = self._folder / f"script-{run}.jsonl"
        path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
        return f"script:{path}"

    def _begun(self) -> int:
        """How many calls have begun."""
        path = self._folder / "begun"
        return path.read_text(encoding="utf-8").count("\n") if path.exists() else 0

    async def _until_at_work(self, begun: int) -> None:
        """Until a call has begun, or there is none left to make."""
        end = time.monotonic() + PATIENCE
        async with App(self._settings, scope=None) as app:
            while self._begun() == begun and set(await app.engine.journal.counts()) != {"completed"}:
                assert time.monotonic() < end, "the worker makes no call"
                await asyncio.sleep(0.05)


async def soak(folder: Path, times: int, longest: float, seed: int) -> None:
    deployments = Deployments(folder, longest, seed)
    with contextlib.chdir(folder):  # where the workers are, so that they may use its files
        await deployments.deploy(times, drain=longest + 25)
        await deployments.finish(drain=longest + 25)
        await deployments.check()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--deployments", type=int, default=300)
    parser.add_argument("--longest", type=float, default=5.0, help="seconds that a call takes at most")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(soak(Path(folder), chosen.deployments, chosen.longest, chosen.seed))
    print(f"{chosen.deployments} deployments: no call in doubt, every run completed.")


if __name__ == "__main__":
    main()
