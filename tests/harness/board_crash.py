"""Kills a run on a board again and again; is the final board the same as that of a run which nobody killed?

    python -m tests.harness.board_crash --kills 500

Every chain is a copy of one board, a journal, and a run of twelve iterations with scripted agents. A process works on
it (`ripstop run`, then `ripstop resume`) and is killed with SIGKILL: at a fail-point, or at a random moment. When the
run has ended, all files of the board are compared with those of the run that was never killed. Only times are masked.
"""

import argparse
import json
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

from msgspec import Struct, field

from ripstop.runtime.failpoints import BOARD_FAILPOINTS, FAILPOINTS

ITERATIONS = 12
AT_RANDOM = "(at random)"
CHAINS = 2
"""Side by side."""
LINES, MOMENT = 8, 0.1
"""A process is killed at random after so many lines of its progress at most, and so many seconds more."""
LIVES = 60
"""Processes on one board; a run that needs more never ends."""
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
UNREACHED = ("messages.", "worker.before_doubt")
"""How the fail-points begin that no run of this board gets to."""
POINTS = tuple(name for name in FAILPOINTS + BOARD_FAILPOINTS if not name.startswith(UNREACHED))

POLICY = {
    "report_rules": {
        "apply_to": ["CHECKER"],
        "require_verdict": True,
        "verdict_prefix": "Verdict:",
        "verdict_allowed": ["GOOD", "BAD"],
        "blocker_prefix": "Blockers:",
        "blocker_clear_value": "none",
    },
    "evidence": [{"evidence": "file", "agents": ["CHECKER"], "path": "collab/line.md"}],
}
PLAN = "# Plan\n\n" + "".join(f"### T{number}: Line {number}\n- status: TODO\n\n" for number in range(1, 7))


class Tally(Struct):
    kills: Counter[str] = field(default_factory=Counter)
    boards: int = 0
    trouble: list[str] = field(default_factory=list)


def make_board(folder: Path) -> Path:
    """A board whose twelve iterations write, check, and change the plan."""
    prompts = folder / "memory" / "prompts"
    prompts.mkdir(parents=True)
    (folder / "memory" / "verification_policy.json").write_text(json.dumps(POLICY, indent=2))
    (folder / "memory" / "dev_plan.md").write_text(PLAN)
    for agent in ("main", "writer", "checker"):
        (prompts / f"subagent_prompt_{agent}.md").write_text(f"You are {agent}.\n")
    replies = []
    for number in range(1, ITERATIONS):
        task = (number + 1) // 2
        agent = "WRITER" if number % 2 else "CHECKER"
        decision = {"next_agent": agent, "reason": f"turn {number}", "task": f"Work on T{task}."}
        if number % 2 == 0:
            decision["dev_plan"] = f"update T{task} status to DONE"
        report = f"iteration: {number}\nLine {task}.\n"
        if agent == "WRITER":
            report = f"collab/line.md\n```\nline {number}\n```\n\n{report}"
        else:
            report += "Verdict: GOOD\nBlockers: none\n"
        replies += [{"agent": "MAIN", "reply": json.dumps(decision)}, {"agent": agent, "reply": report}]
    last = {"next_agent": "FINISH", "reason": "all is written", "dev_plan": "update T6 status to DONE"}
    replies.append({"agent": "MAIN", "reply": json.dumps(last)})
    script = folder.parent / "script.jsonl"
    script.write_text("".join(json.dumps(reply) + "\n" for reply in replies))
    return script


def files_of(board: Path) -> dict[str, str]:
    """The board's files, with times masked; what the engine keeps for itself is not part of it."""
    found = {}
    for path in sorted(board.rglob("*")):
        name = str(path.relative_to(board))
        if path.is_file() and not name.startswith(".ripstop"):
            found[name] = TIME.sub("TIME", path.read_text())
    return found


class Blow(Struct, frozen=True):
    """How a process is to be killed; with neither, it lives."""

    failpoint: str = ""
    lines: int = 0
    moment: float = 0.0


class Life(Struct):
    """One process that works on a board."""

    code: int
    said: str


def live(folder: Path, script: Path, begin: bool, failpoint: str = "", lines: int = 0, moment: float = 0.0) -> Life:
    """Let a process work until it ends or is killed: at a fail-point, or some time after it has shown its progress."""
    command = ["run", "board"] if begin else ["resume"]
    environment = {**os.environ, "HOME": str(folder), "XDG_STATE_HOME": str(folder / "state")}
    if failpoint:
        environment["RIPSTOP_FAILPOINT"] = failpoint
    process = subprocess.Popen(
        [sys.executable, "-m", "ripstop", "--model", f"script:{script}", *command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    said = ""
    with process:
        for count, line in enumerate(process.stdout, 1):
            said += line
            if count == lines:
                time.sleep(moment)
                process.send_signal(signal.SIGKILL)
        return Life(process.wait(120), said)


def chain(root: Path, name: str, wanted: dict[str, str], plan: Callable[[], Blow], tally: Tally) -> int:
    """One board, killed as `plan` says until its run has ended. Returns how often it was killed."""
    folder = root / name
    shutil.copytree(root / "pattern", folder)
    script, killed = folder / "script.jsonl", 0
    for _ in range(LIVES):
        blow = plan()
        status = _status(folder)
        if status == "completed":  # it was killed after its last record
            break
        life = live(folder, script, not status, blow.failpoint, blow.lines, blow.moment)
        if life.code == -signal.SIGKILL:
            killed += 1
            tally.kills[blow.failpoint.partition(":")[0] or AT_RANDOM] += 1
            continue
        if life.code == 0:
            break
        tally.trouble.append(f"{name}: exit code {life.code}: {life.said[-600:]}")
        return killed
    else:
        tally.trouble.append(f"{name}: not ended after {LIVES} processes")
        return killed
    found = files_of(folder / "board")
    for path in sorted({*found, *wanted}):
        if found.get(path) != wanted.get(path):
            tally.trouble.append(f"{name}: {path} differs:\n{found.get(path)}\n--- instead of ---\n{wanted.get(path)}")
    tally.boards += 1
    if not tally.trouble:
        shutil.rmtree(folder)
    return killed


def _status(folder: Path) -> str:
    """How the run is; empty if there is none."""
    if not (folder / ".ripstop" / "journal.db").exists():
        return ""
    environment = {**os.environ, "HOME": str(folder), "XDG_STATE_HOME": str(folder / "state")}
    listed = subprocess.run(
        [sys.executable, "-m", "ripstop", "--json", "runs"], cwd=folder, env=environment, capture_output=True, text=True
    )
    runs = json.loads(listed.stdout) if listed.returncode == 0 else []
    return str(runs[0]["status"]) if runs else ""


def crash(
    kills: int, seed: int, root: Path, say: Callable[[str], None] = print, points: Sequence[str] = POINTS
) -> Tally:
    """Kill at each of the fail-points three times, then until `kills` kills were made at random."""
    tally, chance = Tally(), random.Random(seed)
    pattern = root / "pattern"
    pattern.mkdir()
    make_board(pattern / "board")
    unharmed = root / "unharmed"
    shutil.copytree(pattern, unharmed)
    life = live(unharmed, unharmed / "script.jsonl", begin=True)
    assert life.code == 0, life.said
    wanted = files_of(unharmed / "board")

    def at_point(point: str) -> Callable[[], Blow]:
        planned = iter([Blow(f"{point}:{count}") for count in (1, 4, 9)])
        return lambda: next(planned, Blow())

    def at_random() -> Blow:
        return Blow(lines=chance.randint(1, LINES), moment=chance.uniform(0, MOMENT))

    with ThreadPoolExecutor(CHAINS) as pool:
        named = [pool.submit(chain, root, f"at-{point}", wanted, at_point(point), tally) for point in points]
        chains = range(kills)  # more than are needed: those that are left are cancelled
        waiting = [pool.submit(chain, root, f"random-{number}", wanted, at_random, tally) for number in chains]
        for one in (*named, *waiting):
            one.result()
            if tally.trouble or (one not in named and tally.kills[AT_RANDOM] >= kills):
                for other in waiting:
                    other.cancel()
                break
            say(f"{tally.kills.total()} kills, {tally.kills[AT_RANDOM]} of {kills} at random, {tally.boards} boards")
    return tally


def table(tally: Tally) -> str:
    rows = [f"{count:6} {name}" for name, count in sorted(tally.kills.items())]
    rows.append(f"{tally.kills.total():6} kills, {tally.boards} boards the same, {len(tally.trouble)} in trouble")
    return "\n".join([*rows, *tally.trouble[:5]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        tally = crash(arguments.kills, arguments.seed, Path(root))
    print(table(tally))
    sys.exit(bool(tally.trouble))


if __name__ == "__main__":
    main()
