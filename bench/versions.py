"""What the work of the benchmarks costs, in CPU: two or more checkouts of ripstop side by side.

    python bench/versions.py old=OLD new=. [--rounds 9]

Each checkout runs its own contestants with its own source, and this Python's libraries. The checkouts take turns, so
that a busy moment of the machine meets all of them. A figure is user and system time of a whole process, start-up
included, the median of the rounds; a ratio is the median of the ratios within a round, to the checkout named first.
Bytecode is written beside the sources, as an installed version has it.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from commands import FOREIGN, DidNotWork, Seconds, print_table

WORK = {
    "one run, 3,000 steps": ("ripstop_engine", "single", {"steps": 3000}),
    "200 runs x 20 steps": ("ripstop_engine", "concurrent", {"runs": 200, "steps": 20}),
    "50 chats x 10 messages": ("ripstop_chats", "chats", {"sessions": 50, "messages": 10}),
}
"""The contestant, its measure, and what it is given."""
ROUNDS = 9


def measure(checkouts: dict[str, Path], rounds: int, folder: Path) -> Seconds:
    taken: Seconds = {title: {name: [] for name in checkouts} for title in WORK}
    for turn in range(rounds + 1):
        for title in WORK:
            for name, checkout in checkouts.items():
                seconds = _cpu(checkout, title, Path(tempfile.mkdtemp(dir=folder)))
                if turn:  # the first round only fills the caches
                    taken[title][name].append(seconds)
    return taken


def _cpu(checkout: Path, title: str, folder: Path) -> float:
    """Seconds of user and system time of one process."""
    module, name, arguments = WORK[title]
    environment = {one: value for one, value in os.environ.items() if not one.startswith(FOREIGN)}
    process = subprocess.Popen(
        [sys.executable, "-m", f"contestants.{module}", name, str(folder), json.dumps(arguments)],
        cwd=checkout / "bench",
        env={**environment, "PYTHONPATH": str(checkout / "src"), "HOME": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise DidNotWork(f"{checkout}: {title} ended with code {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def _checkout(text: str) -> tuple[str, Path]:
    name, _, path = text.partition("=")
    if not path or not (Path(path) / "bench" / "contestants").is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=PATH of a checkout of ripstop")
    return name, Path(path).absolute()


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench/versions.py", description=__doc__.splitlines()[0])
    parser.add_argument("checkouts", nargs="+", type=_checkout, metavar="NAME=PATH", help="a checkout of ripstop")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    return print_table(lambda folder: measure(dict(options.checkouts), options.rounds, folder))


if __name__ == "__main__":
    sys.exit(main())
