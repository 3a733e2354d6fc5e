"""Every change is told, folders may come and go, and while nothing happens the loop sleeps."""

import asyncio
import errno
import os
import selectors
import shutil
import sys
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

import pytest

from ripstop.styles.handoff import file_events as watching
from ripstop.styles.handoff.file_events import changes
from ripstop.styles.handoff.folder import Folder

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="counts inotify's descriptors in /proc")
EVERYTHING: set[Path] = set()
"""Told where folders have come or gone: look at everything."""

NEVER = 1000.0


async def next_of(watch: AsyncGenerator[set[Path], None]) -> set[Path]:
    async with asyncio.timeout(30):
        return await anext(watch)


def watch(tmp_path: Path, *acts: Callable[[], Any]) -> list[set[Path]]:
    """What is told of each act, in the two folders that ripstop watches."""

    async def main() -> list[set[Path]]:
        async with aclosing(changes([tmp_path / ".workflows", tmp_path / ".inbox"], sweep=NEVER)) as told:
            assert await next_of(told) == set()
            found = []
            for act in acts:
                act()
                found.append(await next_of(told))
            return found

    return asyncio.run(main())


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    (tmp_path / ".inbox").mkdir()
    (tmp_path / ".workflows").mkdir()
    return tmp_path / ".workflows"


def test_sees_a_write_a_rename_and_a_deletion(tmp_path: Path, documents: Path) -> None:
    (tmp_path / "outside.md").write_text("")
    told = watch(
        tmp_path,
        lambda: (documents / "a.md").write_text("x"),
        lambda: (tmp_path / "outside.md").rename(documents / "b.md"),
        lambda: (documents / "b.md").rename(documents / "c.md"),
        (documents / "a.md").unlink,
    )
    assert told == [
        {documents / "a.md"},
        {documents / "b.md"},
        {documents / "b.md", documents / "c.md"},
        {documents / "a.md"},
    ]


@pytest.mark.req("S0-48")
def test_sees_what_the_folder_writes_and_none_of_its_hidden_files(tmp_path: Path, documents: Path) -> None:
    folder = Folder(tmp_path)

    def create() -> None:
        assert folder.id
        folder.take_note("k", b"{}")
        folder.create("x", "20260131_235959", "one")

    told = watch(
        tmp_path,
        create,
        lambda: folder.replace("workflow_x_20260131_235959.md", "two"),
    )
    assert told == [{documents / "workflow_x_20260131_235959.md"}] * 2


def test_many_changes_at_once_are_told_together(tmp_path: Path, documents: Path) -> None:
    paths = {documents / f"{number}.md" for number in range(100)}
    assert watch(tmp_path, lambda: [path.write_text("x") for path in paths]) == [paths]


@pytest.mark.req("S0-60")
def test_a_new_inbox_is_watched_as_soon_as_it_is_there(tmp_path: Path, documents: Path) -> None:
    inbox = tmp_path / ".inbox" / "小明"
    folder = Folder(tmp_path)
    told = watch(tmp_path, lambda: folder.send("小明", "a", "x"), lambda: folder.send("小明", "b", "x"))
    assert told == [EVERYTHING, {inbox / "b.md"}]


def test_folders_may_be_missing_removed_and_made_again(tmp_path: Path) -> None:
    folder, documents = Folder(tmp_path), tmp_path / ".workflows"
    names = [f"workflow_x_20260131_23595{number}.md" for number in range(4)]

    def create(number: int) -> None:
        folder.create("x", f"20260131_23595{number}", "x")

    def write_there_and_here() -> None:
        (tmp_path / "moved" / "no.md").write_text("")  # what happens where it was moved to is not told
        folder.replace(names[3], "y")

    told = watch(
        tmp_path,
        lambda: create(0),
        lambda: create(1),
        lambda: shutil.rmtree(documents),
        lambda: create(2),
        lambda: documents.rename(tmp_path / "moved"),
        lambda: create(3),
        write_there_and_here,
    )
    assert told == [EVERYTHING, {documents / names[1]}, *[EVERYTHING] * 4, {documents / names[3]}]


def test_even_the_folder_above_may_come_and_go(tmp_path: Path) -> None:
    root = tmp_path / "deep" / "project"

    def make() -> None:
        root.mkdir(parents=True)
        Folder(root).create("x", "20260131_235959", "x")

    path = root / ".workflows" / "workflow_x_20260131_235959.md"
    told = watch(root, make, lambda: shutil.rmtree(tmp_path / "deep"), make, lambda: path.write_text("y"))
    assert told == [EVERYTHING, EVERYTHING, EVERYTHING, {path}]


def test_a_folder_replaced_between_two_looks_is_watched(tmp_path: Path, documents: Path) -> None:
    def replace() -> None:
        for _ in range(3):  # the new one often gets the number (inode) of the old one
            shutil.rmtree(documents)
            documents.mkdir()

    def swap() -> None:
        (tmp_path / "other").mkdir()
        documents.rename(tmp_path / "gone")
        (tmp_path / "other").rename(documents)

    path = documents / "a.md"
    told = watch(tmp_path, replace, lambda: path.write_text("x"), swap, lambda: path.write_text("y"))
    assert told == [EVERYTHING, {path}, EVERYTHING, {path}]


def test_links_on_the_way_to_a_folder_do_not_matter(tmp_path: Path, documents: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    path = tmp_path / "link" / ".workflows" / "a.md"
    assert watch(tmp_path / "link", lambda: (documents / "a.md").write_text("x")) == [{path}]


def test_a_relative_folder_is_told_of_with_whole_paths(
    tmp_path: Path, documents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert watch(Path(), lambda: (documents / "a.md").write_text("x")) == [{documents / "a.md"}]


def test_what_happens_elsewhere_wakes_nobody(tmp_path: Path, documents: Path) -> None:
    def act() -> None:
        (tmp_path / "code.py").write_text("x")
        (tmp_path / "src").mkdir()
        (documents / "a.md").write_text("x")

    assert watch(tmp_path, act) == [{documents / "a.md"}]


def test_nothing_is_lost_while_the_loop_is_busy(documents: Path) -> None:
    paths = {documents / f"{number}.md" for number in range(20_000)}  # more than Linux would keep for us

    async def main() -> None:
        told: set[Path] = set()
        async with aclosing(changes([documents], sweep=NEVER)) as watch:
            await next_of(watch)
            for path in paths:
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT))
            while told != paths:
                told |= await next_of(watch)

    asyncio.run(main())


class CountingSelector(selectors.DefaultSelector):
    """Counts how often the loop wakes up."""

    woken = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(timeout)
        self.woken += 1
        return found


def test_the_loop_sleeps_while_nothing_happens(tmp_path: Path, documents: Path) -> None:
    selector = CountingSelector()

    async def wakings() -> int:
        before = selector.woken
        await asyncio.sleep(0.3)
        return selector.woken - before

    async def main() -> None:
        alone = await wakings()
        told = changes([documents], sweep=NEVER)
        await next_of(told)
        waiting = asyncio.create_task(next_of(told))
        await asyncio.sleep(0.01)
        assert await wakings() == alone
        assert not waiting.done()
        (documents / "a.md").write_text("x")
        assert await waiting == {documents / "a.md"}
        await told.aclose()

    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        runner.run(main())


def test_sweeps_again_and_again_even_if_something_always_happens(documents: Path) -> None:
    async def main() -> None:
        swept = 0
        async with aclosing(changes([documents], sweep=0.2)) as told:
            while swept < 3:
                (documents / "a.md").write_text("x")
                swept += not await next_of(told)

    asyncio.run(main())


def watches() -> list[int]:
    """For each inotify descriptor of this process, how many folders it watches."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # closed since it was listed
            if "inotify" in os.readlink(f"/proc/self/fd/{name}"):
                found.append(Path("/proc/self/fdinfo", name).read_text().count("inotify wd:"))
    return found


def come_to(expected: list[int]) -> bool:
    """Whether the watches come to be these. A watcher's thread closes its descriptor when it next runs."""
    deadline = time.monotonic() + 30
    while watches() != expected and time.monotonic() < deadline:
        time.sleep(0.01)
    return watches() == expected


@on_linux
def test_folders_that_have_left_are_watched_no_longer(tmp_path: Path, documents: Path) -> None:
    async def main() -> None:
        async with aclosing(changes([documents], sweep=NEVER)) as told:
            await next_of(told)
            assert watches() == [2], "the folder, and the one above it"
            (documents / "sub").mkdir()
            await next_of(told)
            assert come_to([3])
            (documents / "sub").rename(tmp_path / "left")
            await next_of(told)
            assert come_to([2])

    assert come_to([])
    asyncio.run(main())


@on_linux
def test_closes_its_descriptor_however_it_ends(documents: Path) -> None:
    async def leave() -> None:
        async for _ in changes([documents]):
            assert len(watches()) == 1
            break

    async def give_up() -> None:
        async for _ in changes([documents]):
            pass

    assert come_to([])
    asyncio.run(leave())
    assert come_to([])
    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(give_up(), 0.05))
    assert come_to([])


def test_where_nothing_is_reported_there_is_the_sweep(
    documents: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(watching, "RustNotify", none_left)
    monkeypatch.setattr(watching, "BLIND_SWEEP", 0.01)

    async def main() -> None:
        async with aclosing(changes([documents])) as told:
            assert [await next_of(told) for _ in range(3)] == [set()] * 3

    asyncio.run(main())
    assert "only every" in caplog.text


def test_a_watch_that_fails_on_the_way_goes_on_as_a_sweep(
    documents: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with aclosing(changes([documents], sweep=NEVER)) as told:
            await next_of(told)
            monkeypatch.setattr(watching, "RustNotify", none_left)
            (documents / "new").mkdir()
            assert await next_of(told) == set()

    asyncio.run(main())
    assert "no watches left" in caplog.text


def none_left(*_: Any) -> None:
    raise OSError(errno.ENOSPC, "no watches left")
