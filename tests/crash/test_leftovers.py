"""A killed worker leaves nothing behind for ever, even one that had nothing in hand."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

from ripstop.journals.sqlite.journal import LEASE, SqliteJournal
from ripstop.kernel.codec import Codec

ENROL_AND_DIE = """
import asyncio, os, signal, sys
from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.kernel.codec import Codec

async def main():
    journal = SqliteJournal(sys.argv[1], Codec())
    await journal.enrol(1)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


def die_in(path: Path, failpoint: str = "") -> None:
    environment = {**os.environ, "RIPSTOP_FAILPOINT": failpoint} if failpoint else dict(os.environ)
    ended = subprocess.run([sys.executable, "-c", ENROL_AND_DIE, str(path)], env=environment, check=False)
    assert ended.returncode == -signal.SIGKILL


async def enrolled_and_left(path: Path, at: int) -> list[str]:
    """What lies beside the journal while a worker is at work."""
    journal = SqliteJournal(path, Codec())
    mine = await journal.enrol(at)
    try:
        files = sorted(file.name for file in path.parent.glob(f"{path.name}-worker-*"))
        assert f"{path.name}-worker-{mine}" in files
        return [name for name in files if name != f"{path.name}-worker-{mine}"]
    finally:
        await journal.leave(mine, at)
        await journal.close()


def test_the_file_of_a_killed_worker_goes_when_its_lease_has_run_out(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    die_in(path)
    assert asyncio.run(enrolled_and_left(path, LEASE)) == [f"{path.name}-worker-1"]
    assert asyncio.run(enrolled_and_left(path, LEASE + 2)) == []


def test_a_living_worker_keeps_its_file_even_if_its_lease_has_run_out(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"

    async def story() -> None:
        journal = SqliteJournal(path, Codec())
        await journal.enrol(1)
        assert await enrolled_and_left(path, LEASE * 2) == [f"{path.name}-worker-1"]
        assert await journal.heartbeat(1, LEASE * 2)
        await journal.close()

    asyncio.run(story())


def test_a_file_whose_worker_is_not_in_the_list_goes_at_once(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    die_in(path, "liveness.before_lock")
    (tmp_path / "journal.db-worker-77").touch()
    (tmp_path / "journal.db-worker-notes").touch()
    left = asyncio.run(enrolled_and_left(path, 2))
    assert left == ["journal.db-worker-1", "journal.db-worker-notes"]
