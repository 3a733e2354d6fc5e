"""Races between commands of agents and processes that exchange a folder of theirs for a link to somewhere else.

One process exchanges folders of a workspace for links, again and again. The others run commands there: those that
exchange folders themselves, and those that write and read through them. Nothing outside of the workspace may change, be
renamed, or be read.

python -m tests.harness.command_race --minutes 10 --sandbox bubblewrap --sandbox landlock
"""

import argparse
import asyncio
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from ripstop.engine.performers import Refused, TryAgain
from ripstop.kernel.effects import ToolReturned
from ripstop.kernel.events import RunSettings
from ripstop.tools.commands.allow_list import CommandRules
from ripstop.tools.commands.runner import SandboxedPrograms
from ripstop.tools.toolbox import Toolbox
from ripstop.tools.workspace_tools import FileTools
from tests.harness.command_attacks import SECRET, sandboxes_of
from tests.tools.tool_requests import tool_request

PROCESSES = 4
"""One of them exchanges folders, the others run commands."""
EXCHANGED = ("a", "b/c")
"""Folders of the workspace, each with a link beside it that leads out."""

SWAP = """
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def swap(one, other):
    return libc.syscall(316 if os.uname().machine == "x86_64" else 276, -100, one.encode(), -100, other.encode(), 2)
"""
EXCHANGE = (
    SWAP
    + """
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    for name in sys.argv[2:]:
        swap(name, name + ".link")
        time.sleep(0.0005 * (os.getpid() % 7))
"""
)
REACH = """
import os, sys, time
end = time.monotonic() + float(sys.argv[1])
def attempt(act):
    try:
        return act()
    except OSError:
        return None
def show(path):
    print(open(path).read())
while time.monotonic() < end:
    for name in sys.argv[2:]:
        attempt(lambda: show(name + "/.git/config"))
        attempt(lambda: show(name + "/secret.txt"))
        attempt(lambda: open(name + "/deep/x.txt", "a").write("x"))
        attempt(lambda: open(name + "/secret.txt", "a").write("x"))
        attempt(lambda: open(name + "/.git/config", "a").write("x"))
        attempt(lambda: os.mkdir(name + "/made"))
        attempt(lambda: os.mkdir(name + "/deep/.git"))
        attempt(lambda: os.mkdir(name + "/sub"))
        attempt(lambda: os.mkdir(name + "/sub/.git"))
"""


def make_world(base: Path) -> Path:
    """A workspace with folders to exchange, and another repository outside of it. Returns the workspace."""
    outside, project = base / "outside", base / "project"
    for folder in (outside, outside / "sub", *(project / name for name in EXCHANGED)):
        (folder / ".git").mkdir(parents=True)
        (folder / ".git" / "config").write_text(SECRET if outside in (folder, *folder.parents) else "ours")
    for name in EXCHANGED:
        (project / name / "deep").mkdir()
        (project / name / "deep" / "x.txt").write_text("text")
        (project / f"{name}.link").symlink_to(outside)
    (outside / "deep").mkdir()
    for path in ("secret.txt", "deep/x.txt"):
        (outside / path).write_text(SECRET)
    return project


def seen(folder: Path) -> dict[str, str]:
    """Every file of a folder with its content, and every folder."""
    return {
        str(path.relative_to(folder)): path.read_text() if path.is_file() and not path.is_symlink() else ""
        for path in sorted(folder.rglob("*"))
    }


class Races:
    """What came of the commands of one process."""

    def __init__(self, project: Path, kind: str) -> None:
        sandboxes = sandboxes_of(kind)
        assert sandboxes is not None
        self._box = Toolbox(files=FileTools(SandboxedPrograms(CommandRules(), sandboxes)))
        self._project = project
        self.figures: Counter[str] = Counter()
        self.escapes: list[str] = []

    async def run(self, minutes: float, rng: random.Random) -> None:
        before = seen(self._project.parent / "outside")
        end = time.monotonic() + minutes * 60
        while time.monotonic() < end and not self.escapes:
            program = rng.choice((REACH, REACH, EXCHANGE))
            shown = await self._call(["python3", "-c", program, str(rng.choice((0.02, 0.1, 0.2))), *EXCHANGED])
            if SECRET in shown:
                self.escapes.append("a secret was read")
            after = seen(self._project.parent / "outside")
            if after != before:
                names = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
                self.escapes.append(f"changed outside: {names}")

    async def _call(self, command: list[str]) -> str:
        settings = RunSettings(workspace=str(self._project), shared_workspace=True)
        try:
            request = tool_request(
                {"command": command, "seconds": 20.0}, "soup-1", "run_command", settings, "coder", number=7
            )
            answer = await self._box.perform(request)
        except (Refused, TryAgain) as error:
            self.figures["refused"] += 1
            return str(error).replace(str(command), "")
        assert isinstance(answer, ToolReturned)
        self.figures["run"] += 1
        return str(answer.value["output"])


def race(kind: str, minutes: float, seed: int) -> tuple[Counter[str], list[str]]:
    """Race for so long: what came of it, and every way out that was found."""
    base = Path(tempfile.mkdtemp(prefix="ripstop-race-")).resolve()
    project = make_world(base)
    swapping = subprocess.Popen([sys.executable, "-c", EXCHANGE, str(minutes * 60 + 60), *EXCHANGED], cwd=project)
    try:
        words = [sys.executable, "-m", "tests.harness.command_race", "--minutes", str(minutes), "--sandbox", kind]
        running = [
            subprocess.Popen(
                [*words, "--in", str(project), "--seed", str(seed + number)], stdout=subprocess.PIPE, text=True
            )
            for number in range(PROCESSES - 1)
        ]
        told = [json.loads(one.communicate()[0] or '{"figures": {}, "escapes": ["a process died"]}') for one in running]
    finally:
        swapping.kill()
        swapping.wait()
        shutil.rmtree(base, ignore_errors=True)
    figures: Counter[str] = Counter()
    for one in told:
        figures.update(one["figures"])
    return figures, [escape for one in told for escape in one["escapes"]]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.harness.command_race", description="Race to get out.")
    parser.add_argument("--minutes", type=float, default=10.0, help="for each sandbox (10)")
    parser.add_argument("--sandbox", action="append", help="bubblewrap or landlock; both if left out")
    parser.add_argument("--seed", type=int, default=1, help="where the choices start (1)")
    parser.add_argument("--in", dest="project", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    kinds = chosen.sandbox or ["bubblewrap", "landlock"]
    if chosen.project:
        races = Races(chosen.project, kinds[0])
        asyncio.run(races.run(chosen.minutes, random.Random(chosen.seed)))
        print(json.dumps({"figures": races.figures, "escapes": races.escapes}))
        return 0
    failed = False
    for kind in kinds:
        if sandboxes_of(kind) is None:
            print(f"{kind}: this machine has none")
            failed = True
            continue
        figures, escapes = race(kind, chosen.minutes, chosen.seed)
        run, refused = figures["run"], figures["refused"]
        print(f"{kind}: {PROCESSES} processes, {run} commands run, {refused} refused, {len(escapes)} outside")
        for line in escapes:
            print(f"  {line}")
        failed = failed or bool(escapes) or not run
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
