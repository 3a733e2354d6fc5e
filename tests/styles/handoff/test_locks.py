"""One holder at a time, over processes and tasks, whoever dies or gives up."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from ripstop.engine.performers import Refused
from ripstop.styles.handoff.files import do_locked, locked

HOLDER = """
import asyncio, sys
from pathlib import Path
from ripstop.styles.handoff.files import locked

async def main():
    async with locked(Path(sys.argv[1])):
        print("held", flush=True)
        await asyncio.to_thread(sys.stdin.readline)

asyncio.run(main())
"""


def hold(path: Path) -> "subprocess.Popen[str]":
    pipe = subprocess.PIPE
    worker_id = subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdin=pipe, stdout=pipe, text=True)
    assert worker_id.stdout is not None
    assert worker_id.stdout.readline() == "held\n"
    return worker_id


def end(worker_id: "subprocess.Popen[str]") -> None:
    worker_id.kill()
    worker_id.communicate()


def open_files() -> set[str]:
    return {os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd") if exists(name)}


def exists(name: str) -> bool:
    return os.path.lexists(f"/proc/self/fd/{name}")


@pytest.mark.req("S0-61")
def test_a_killed_holder_frees_the_lock_for_whoever_waits(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    worker_id = hold(path)

    async def main() -> None:
        got = asyncio.create_task(do_locked(path, lambda: "mine"))
        await until(lambda: waiting_threads(path) == 1)
        assert not got.done()
        os.kill(worker_id.pid, signal.SIGKILL)
        assert await got == "mine"

    asyncio.run(main())
    assert worker_id.wait() == -signal.SIGKILL
    end(worker_id)
    assert path.exists()


@pytest.mark.req("S0-61")
def test_tasks_of_one_process_exclude_one_another_however_many_wait(tmp_path: Path) -> None:
    inside, most, order = 0, 0, []

    def work(number: int) -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        order.append(number)
        inside -= 1

    async def main() -> None:
        # more than the pool has threads: if they waited in it, the holder could not work
        await asyncio.gather(*(do_locked(tmp_path / "a.lock", partial(work, number)) for number in range(60)))

    asyncio.run(main())
    assert most == 1
    assert sorted(order) == list(range(60))


def test_waiting_does_not_block_the_loop(tmp_path: Path) -> None:
    path, told = tmp_path / "a.lock", []

    async def main() -> None:
        async def second() -> None:
            async with locked(path):
                told.append("second")

        async with locked(path):
            waiting = asyncio.create_task(second())
            await until(lambda: waiting_threads(path) == 1)
            told.append("first")
        await waiting

    asyncio.run(main())
    assert told == ["first", "second"]


@pytest.mark.req("S0-61")
def test_giving_up_keeps_no_lock_and_no_file_open(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    worker_id = hold(path)

    async def main() -> None:
        waiting = asyncio.create_task(do_locked(path, lambda: "never"))
        await until(lambda: waiting_threads(path) == 1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        end(worker_id)
        async with asyncio.timeout(30):  # a lock that is kept for nobody would never be free
            assert await do_locked(path, lambda: "free") == "free"
        await until(lambda: waiting_threads(path) == 0)

    asyncio.run(main())
    assert str(path) not in open_files()


def test_giving_up_in_the_moment_of_getting_it_keeps_nothing_either(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"

    async def main() -> None:
        for _ in range(50):
            async with locked(path):
                waiting = asyncio.create_task(do_locked(path, lambda: None))
                await until(lambda: waiting_threads(path) == 1)
            while waiting_threads(path):  # without giving the loop a turn: the task has the lock and does not know it
                pass
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert str(path) not in open_files()

    asyncio.run(main())


def test_the_lock_is_kept_until_cancelled_work_has_ended(tmp_path: Path) -> None:
    path, go, began, told = tmp_path / "a.lock", threading.Event(), threading.Event(), []

    def work() -> None:
        began.set()
        go.wait()
        told.append("worked")

    async def main() -> None:
        working = asyncio.create_task(do_locked(path, work))
        await until(began.is_set)
        working.cancel()
        after = asyncio.create_task(do_locked(path, lambda: told.append("after")))
        try:
            await until(lambda: waiting_threads(path) == 1)
        finally:
            go.set()
        await after
        with pytest.raises(asyncio.CancelledError):
            await working

    asyncio.run(main())
    assert told == ["worked", "after"]


def test_leaving_does_not_wait_for_a_lock_that_is_never_freed(tmp_path: Path) -> None:
    worker_id = hold(tmp_path / "a.lock")
    leaver = HOLDER.replace("asyncio.run(main())", "asyncio.run(asyncio.wait_for(main(), 0.2))")
    ended = subprocess.run(
        [sys.executable, "-c", leaver, str(tmp_path / "a.lock")], capture_output=True, text=True, timeout=240
    )
    end(worker_id)
    assert "TimeoutError" in ended.stderr


def test_a_lock_that_cannot_be_says_where_and_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link.lock").symlink_to(tmp_path / "elsewhere")

    async def take(path: Path) -> None:
        async with locked(path):
            pass

    with pytest.raises(Refused, match=r"file/a\.lock.*Not a directory.*move it away"):
        asyncio.run(take(tmp_path / "file" / "a.lock"))
    with pytest.raises(Refused, match="symbolic link"):
        asyncio.run(take(tmp_path / "link.lock"))
    assert not (tmp_path / "elsewhere").exists()


def waiting_threads(path: Path) -> int:
    return sum(thread.name == f"waits for {path.name}" for thread in threading.enumerate())


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.002)
