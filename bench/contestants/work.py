"""The work that every contestant does, and how it is timed. Standard library only: two environments use it.

- The "model" answers at once. Every answer is a new text, so that nobody is helped by a cache of answers.
- A step is durable when the model is asked for the next one. That is the same moment for everybody, so
  times per step are taken between two calls of the model.
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


class Model:
    """Answers with JSON of exactly `size` bytes, and notes when it was asked.

    Every answer decides something new (`step`): a run in which nothing changes is one that guards would stop.
    """

    def __init__(self, size: int = 500, die_at: int = 0, announce: bool = False) -> None:
        self.asked: list[float] = []
        self._die_at = die_at
        self._announce = announce
        self._filler = "All work and no play makes the agent a dull one. " * (size // 48 + 1)
        self._room = size - len(_FRAME)

    def answer(self) -> str:
        self.asked.append(time.perf_counter())
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
        return {**growth_of(self.asked, window), "steps": float(len(self.asked))}


def growth_of(began: Sequence[float], window: int) -> Figures:
    """Seconds per step over `window` steps: the first after the warm-up, those after settling, the last."""

    def average(first: int) -> float:
        return (began[first + window] - began[first]) / window

    figures = {"first": average(WARM_UP), "last": average(len(began) - 1 - window)}
    if len(began) > SETTLED + 2 * window:
        figures["settled"] = average(SETTLED)
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
