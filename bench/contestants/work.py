"""The work that every contestant does, and how it is timed. Standard library only: two environments use it.

- The "model" answers at once. Every answer is a new text, so that nobody is helped by a cache of answers.
- A step is durable when the model is asked for the next one. That is the same moment for everybody, so
  times per step are taken between two calls of the model.
- SQLite copies its write-ahead log into the database whenever the log has 1,000 pages: about every 286 steps of a
  lone run. That step writes 320 KB more than the others and waits for the disk twice more. A window of 100 steps holds
  such a checkpoint or does not, so windows of the same run differ although no step is dearer than another. Where the
  log can be read, growth is therefore taken over whole periods, from one new beginning of the log to the next.
- A contestant prints one line of JSON and ends.
"""

import gc
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

WARM_UP = 20
"""Steps that the growth measure leaves out: imports, caches, the first pages of the file."""
SETTLED = 1000
"""By then SQLite's write-ahead log has reached its full length and is used again from its beginning. Until
then every fsync also makes a file longer, which is dearer, and flatters a comparison of last with first."""

Figures = dict[str, float]
Measure = Callable[..., Figures]

_FRAME = '{"content":"","decisions":{"go":true,"step":00000000}}'


class Log:
    """Notes, step by step, how often the write-ahead log of a database was begun again: once after every checkpoint."""

    def __init__(self, database: Path) -> None:
        self._path = Path(f"{database}-wal")
        self._file = -1
        self.beginnings: list[int] = []

    def note(self) -> None:
        if self._file < 0:
            self._file = os.open(self._path, os.O_RDONLY)
        self.beginnings.append(int.from_bytes(os.pread(self._file, 4, 12), "big"))  # in the header, as SQLite counts


class Model:
    """Answers with JSON of exactly `size` bytes, and notes when it was asked.

    Every answer decides something new (`step`): a run in which nothing changes is one that guards would stop.
    """

    def __init__(self, size: int = 500, die_at: int = 0, announce: bool = False, log: Log | None = None) -> None:
        self.asked: list[float] = []
        self._used: list[float] = []
        self._log = log
        self._die_at = die_at
        self._announce = announce
        self._filler = "All work and no play makes the agent a dull one. " * (size // 48 + 1)
        self._room = size - len(_FRAME)

    def answer(self) -> str:
        self.asked.append(time.perf_counter())
        if self._log:
            self._log.note()
            self._used.append(time.process_time())
        count = len(self.asked)
        if count == self._die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if self._announce and count == 2:
            # the step that the first answer led to is on disk, or nobody would ask again
            print("durable", flush=True)
            os._exit(0)
        content = f"Answer {count}. {self._filler}"[: self._room]
        return f'{{"content":"{content}","decisions":{{"go":true,"step":{10_000_000 + count}}}}}'

    def growth(self, window: int) -> Figures:
        figures = {**growth_of(self.asked, window, self._log), "steps": float(len(self.asked))}
        if self._log:
            figures |= {f"{name}_cpu": used for name, used in growth_of(self._used, window, self._log).items()}
        return figures


def growth_of(began: Sequence[float], window: int, log: Log | None = None) -> Figures:
    """Seconds per step over `window` steps: the first after the warm-up, those after settling, the last.

    With a `log`: the last two of these over a whole period between checkpoints each.
    """

    def average(first: int, last: int) -> float:
        return (began[last] - began[first]) / (last - first)

    end = len(began) - 1
    figures = {"first": average(WARM_UP, WARM_UP + window), "last": average(end - window, end)}
    if end >= SETTLED + 2 * window:
        figures["settled"] = average(SETTLED, SETTLED + window)
    counts = log.beginnings if log else []
    new = [step for step in range(SETTLED, len(counts)) if counts[step] != counts[step - 1]]
    if len(new) > 2:
        figures |= {"settled": average(new[0], new[1]), "last": average(new[-2], new[-1])}
    return figures


def go(answer: str) -> bool:
    """The decision that an answer holds; every contestant reads it in its own way or in this one."""
    return bool(json.loads(answer)["decisions"]["go"])


def rate(steps: int, began: float) -> Figures:
    return {"steps_per_second": steps / (time.perf_counter() - began)}


def bytes_in(folder: Path) -> float:
    return float(sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()))


def resident() -> int:
    """Bytes of memory that this process has now."""
    gc.collect()
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    import resource  # elsewhere: the highest so far, which is the same while it only grows

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main(measures: Mapping[str, Measure]) -> None:
    name, folder, arguments = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    given: dict[str, Any] = json.loads(arguments)
    print(json.dumps(measures[name](folder, **given)))
