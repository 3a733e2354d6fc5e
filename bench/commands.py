"""What everyday commands cost, in CPU: two or more installed versions of ripstop side by side.

    python bench/commands.py old=/path/to/old/.venv/bin/ripstop new=.venv/bin/ripstop [--repeats 10]

The versions take turns, so that a busy moment of the machine meets all of them. A figure is user and system time of
the process, the median of the repeats; a ratio is the median of the ratios within a turn, to the version named first.
Each version has a journal of its own, on which it has finished one scripted run before anything is measured; each
measured `run` has a fresh one.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from processes import scratch

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
JOURNAL = "sqlite:kept/journal.db"
SCRIPT = "script:haiku/script.jsonl"
COMMANDS = {
    "--help": ("--help",),
    "check": ("check", "haiku"),
    "run": ("--model", SCRIPT, "--store", "sqlite:fresh/journal.db", "run", "haiku"),
    "runs": ("--store", JOURNAL, "runs"),
    "desk": ("--store", JOURNAL, "desk"),
}
FIRST = ("--model", SCRIPT, "--store", JOURNAL, "run", "haiku")
FOREIGN = ("RIPSTOP_", "XDG_", "PYTHON")
"""Variables of the caller that would change what is measured."""
REPEATS = 10

Seconds = dict[str, dict[str, list[float]]]
"""Of each command, by version."""


class DidNotWork(Exception):
    """A command that should be measured failed."""


def measure(versions: dict[str, Path], repeats: int, folder: Path) -> Seconds:
    homes = {name: _home(folder / name) for name in versions}
    for name, program in versions.items():
        _cpu(program, FIRST, homes[name])
    taken: Seconds = {command: {name: [] for name in versions} for command in COMMANDS}
    for turn in range(repeats + 1):
        for command, arguments in COMMANDS.items():
            for name, program in versions.items():
                shutil.rmtree(homes[name] / "fresh", ignore_errors=True)
                seconds = _cpu(program, arguments, homes[name])
                if turn:  # the first round only fills the caches
                    taken[command][name].append(seconds)
    return taken


def _home(folder: Path) -> Path:
    folder.mkdir()
    shutil.copytree(EXAMPLES / "haiku", folder / "haiku")
    return folder


def _cpu(program: Path, arguments: tuple[str, ...], folder: Path) -> float:
    """Seconds of user and system time of one process and what it waited for."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    errors = folder / "errors"
    with errors.open("wb") as stream:
        process = subprocess.Popen(
            [program, *arguments],
            cwd=folder,
            env={**environment, "HOME": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stream,
        )
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise DidNotWork(f"{program} {' '.join(arguments)}: {errors.read_text(errors='replace')[-500:]}")
    return usage.ru_utime + usage.ru_stime


def render(taken: Seconds) -> str:
    versions = list(next(iter(taken.values())))
    first, others = versions[0], versions[1:]
    width = max(map(len, taken)) + 2
    headings = [f"{name:>12}" for name in versions] + [f"{f'{one}/{first}':>16}" for one in others]
    lines = ["".join([f"{'CPU, ms':{width}}", *headings])]
    for command, seconds in taken.items():
        medians = "".join(f"{statistics.median(seconds[name]) * 1000:12.0f}" for name in versions)
        ratios = (
            statistics.median(own / base for own, base in zip(seconds[one], seconds[first], strict=True))
            for one in others
        )
        lines.append(f"{command:{width}}{medians}" + "".join(f"{ratio:16.2f}" for ratio in ratios))
    return "\n".join(lines)


def print_table(take: Callable[[Path], Seconds]) -> int:
    """Measure in a scratch folder and print the table; the exit code."""
    with scratch() as folder:
        try:
            print(render(take(folder)))
        except DidNotWork as error:
            print(error, file=sys.stderr)
            return 1
    return 0


def _version(text: str) -> tuple[str, Path]:
    name, _, path = text.partition("=")
    if not path or not Path(path).is_file():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=PATH of an installed `ripstop`")
    return name, Path(path).absolute()


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench/commands.py", description=__doc__.splitlines()[0])
    parser.add_argument("versions", nargs="+", type=_version, metavar="NAME=PATH", help="an installed `ripstop`")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    options = parser.parse_args()
    return print_table(lambda folder: measure(dict(options.versions), options.repeats, folder))


if __name__ == "__main__":
    sys.exit(main())
