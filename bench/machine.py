"""What the figures were measured on: processor, disk, versions, and what an fsync costs here."""

import json
import os
import platform
import sqlite3
import statistics
import subprocess
import time
from pathlib import Path

PEERS = ("langgraph", "langgraph-checkpoint-sqlite", "dbos", "burr")


def facts(folder: Path) -> dict[str, object]:
    return {
        "cpu": _processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "filesystem": _filesystem(folder),
        "fsync_microseconds": round(_fsync(folder, 200) * 1e6),
        "load_at_start": round(os.getloadavg()[0], 2),
    }


class Disk:
    """Waits until the disk is quiet, so that nobody pays for what the one before left behind (deleted files, say)."""

    PATIENCE = 60.0
    """Seconds in all. On a disk that others keep busy, waiting does not help, and the repeats must do."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.parent
        self._usual = _fsync(self._folder, 50)
        self._patience = self.PATIENCE

    def settle(self) -> None:
        os.sync()
        while self._patience > 0:
            now = _fsync(self._folder, 10)
            self._usual = min(self._usual, now)
            if now < 2 * self._usual:
                return
            time.sleep(0.5)
            self._patience -= 0.5


def versions_of_peers(python: str) -> dict[str, str]:
    ask = f"import json, importlib.metadata as m; print(json.dumps({{n: m.version(n) for n in {PEERS!r}}}))"
    finished = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True)
    versions: dict[str, str] = json.loads(finished.stdout)
    return versions


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _filesystem(folder: Path) -> str:
    mounts = Path("/proc/mounts")
    if not mounts.exists():
        return "unknown"
    best = ("", "unknown")
    for line in mounts.read_text().splitlines():
        _, place, kind, *_ = line.split()
        if folder.resolve().is_relative_to(place) and len(place) >= len(best[0]):
            best = (place, kind)
    return best[1]


def _fsync(folder: Path, times: int) -> float:
    """Median seconds to add 4 KB to a file and have it on disk."""
    path, taken = folder / "fsync-probe", []
    handle = os.open(path, os.O_CREAT | os.O_WRONLY)
    try:
        for _ in range(times):
            began = time.perf_counter()
            os.write(handle, b"." * 4096)
            os.fsync(handle)
            taken.append(time.perf_counter() - began)
    finally:
        os.close(handle)
        path.unlink()
    return statistics.median(taken)
