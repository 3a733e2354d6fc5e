"""Every change is told, folders may come and go, and while nothing happens nothing runs."""

import asyncio
import errno
import os
import selectors
import shutil
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from ripstop.performers.handoff import file_events as watching
from ripstop.performers.handoff.file_events import changes
from ripstop.performers.handoff.folder import Folder

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")

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
    first, second = watch(tmp_path, lambda: folder.send("小明", "a", "x"), lambda: folder.send("小明", "b", "x"))
    assert first >= {inbox, inbox / "a.md"}
    assert second == {inbox / "b.md"}


def test_folders_may_be_missing_removed_and_made_again(tmp_path: Path) -> None:
    folder, documents = Folder(tmp_path), tmp_path / ".workflows"
    names = [f"workflow_x_20260131_23595{number}.md" for number in range(4)]

    def create(number: int) -> None:
        folder.create("x", f"20260131_23595{number}", "x")

    def write_there_and_create() -> None:
        (tmp_path / "moved" / "no.md").write_text("")
        create(3)

    told = watch(
        tmp_path,
        lambda: create(0),
        lambda: create(1),
        lambda: shutil.rmtree(documents),
        lambda: create(2),
        lambda: documents.rename(tmp_path / "moved"),
        write_there_and_create,
    )
    assert documents / names[0] in told[0]
    assert told[1] == {documents / names[1]}
    assert documents in told[2]
    assert documents / names[2] in told[3]
    assert told[4] == {documents}
    assert told[5] == {documents, documents / names[3]}, "what happens where it was moved to is not ours"


def test_even_the_folder_above_may_come_and_go(tmp_path: Path) -> None:
    root = tmp_path / "deep" / "project"

    def make() -> None:
        root.mkdir(parents=True)
        Folder(root).create("x", "20260131_235959", "x")

    path = root / ".workflows" / "workflow_x_20260131_235959.md"
    told = watch(root, make, lambda: shutil.rmtree(tmp_path / "deep"), make, lambda: path.write_text("y"))
    assert path in told[0]
    assert path in told[2]
    assert told[3] == {path}


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


def test_dropped_reports_make_us_look_at_everything(tmp_path: Path, documents: Path) -> None:
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if most > 100_000:
        pytest.skip("this system queues too many reports to overflow it")

    async def main() -> None:
        async with aclosing(changes([documents], sweep=NEVER)) as told:
            await next_of(told)
            for number in range(most // 2 + 100):
                path = documents / f"{number % 50}.md"
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT))
                os.unlink(path)
            while await next_of(told):
                pass  # what was queued before the queue was full
            (documents / "last.md").write_text("x")
            assert await next_of(told) == {documents / "last.md"}

    asyncio.run(main())


class CountingSelector(selectors.DefaultSelector):
    """Counts how often the loop wakes up."""

    woken = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(timeout)
        self.woken += 1
        return found


def test_nothing_runs_while_nothing_happens(tmp_path: Path, documents: Path) -> None:
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


def test_folders_that_have_left_are_watched_no_longer(tmp_path: Path, documents: Path) -> None:
    def watches() -> int:
        links = [path for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
        ours = [path.name for path in links if "inotify" in os.readlink(path)]
        return sum(Path("/proc/self/fdinfo", name).read_text().count("inotify wd:") for name in ours)

    async def main() -> None:
        async with aclosing(changes([documents], sweep=NEVER)) as told:
            await next_of(told)
            before = watches()
            (documents / "sub").mkdir()
            await next_of(told)
            assert watches() == before + 1
            (documents / "sub").rename(tmp_path / "left")
            await next_of(told)
            assert watches() == before

    asyncio.run(main())


def test_closes_its_descriptor_however_it_ends(documents: Path) -> None:
    def watched() -> int:
        links = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
        return sum("inotify" in os.readlink(link) for link in links if os.path.lexists(link))

    async def leave() -> None:
        async for _ in changes([documents]):
            assert watched() == before + 1
            break

    async def give_up() -> None:
        async for _ in changes([documents]):
            pass

    before = watched()
    asyncio.run(leave())
    assert watched() == before
    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(give_up(), 0.05))
    assert watched() == before


def test_where_nothing_is_reported_there_is_the_sweep(
    documents: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "platform", "plan9")
    monkeypatch.setattr(watching, "BLIND_SWEEP", 0.01)

    async def main() -> None:
        async with aclosing(changes([documents])) as told:
            assert [await next_of(told) for _ in range(3)] == [set()] * 3

    asyncio.run(main())
    assert "only every" in caplog.text


def test_a_watch_that_fails_on_the_way_goes_on_as_a_sweep(
    documents: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def none_left(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "no watches left")

    async def main() -> None:
        async with aclosing(changes([documents], sweep=NEVER)) as told:
            await next_of(told)
            monkeypatch.setattr(watching._Reports, "_watch", none_left)
            (documents / "new").mkdir()
            assert await next_of(told) == set()

    asyncio.run(main())
    assert "no watches left" in caplog.text
