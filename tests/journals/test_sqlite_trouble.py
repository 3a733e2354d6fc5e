"""When the file cannot be used: the error says what to do, and nothing that was acknowledged is lost."""

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ripstop.journals.sqlite.file import connect
from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.kernel.codec import Codec
from ripstop.kernel.errors import JournalError
from ripstop.kernel.events import Heard
from ripstop.testing.journal_entries import DIGEST, Scribe

SCRIBE = Scribe()
NOBODY = 65534


def filled(path: Path) -> None:
    """A journal with one run."""

    async def story() -> None:
        journal = SqliteJournal(path, Codec())
        await journal.append(SCRIBE.start("a"))
        await journal.close()

    asyncio.run(story())


def refusal(path: Path, append: bool = False) -> str:
    """What opening it (and appending to it) says."""

    async def story() -> None:
        journal = SqliteJournal(path, Codec())
        try:
            if append:
                await journal.append(SCRIBE.start("new"))
        finally:
            await journal.close()

    with pytest.raises(JournalError) as caught:
        asyncio.run(story())
    assert str(path) in str(caught.value)
    return str(caught.value)


def lengths(path: Path) -> dict[str, int]:
    async def story() -> dict[str, int]:
        journal = SqliteJournal(path, Codec())
        found = {info.run_id: info.length for info in (await journal.runs()).items}
        for run_id, length in found.items():
            assert len(await journal.read(run_id)) == length
        assert await journal.verify() == []
        await journal.close()
        return found

    return asyncio.run(story())


# Files that are not journals


def test_a_folder_is_no_journal(tmp_path: Path) -> None:
    said = refusal(tmp_path)
    assert "is a folder" in said and "--store" in said
    assert list(tmp_path.iterdir()) == []


def test_a_file_whose_folder_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    said = refusal(tmp_path / "file" / "j.db")
    assert "cannot be opened" in said and "folder" in said


@pytest.mark.parametrize("content", [b"Dear diary,\n" * 500, b"\x00" * 5000])
def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "diary.txt"
    path.write_bytes(content)
    said = refusal(path)
    assert "is not an SQLite database" in said and "--store" in said and "Nothing was changed" in said
    assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["diary.txt"]


@pytest.mark.parametrize("application", [0, 0x0F055112])
def test_another_programs_database_is_left_alone(tmp_path: Path, application: int) -> None:
    path = tmp_path / "bills.db"
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA application_id = {application}")
        db.execute("CREATE TABLE bills (amount)")
    db.close()
    before = path.read_bytes()
    said = refusal(path)
    assert "not a journal of ripstop" in said and "--store" in said and "Nothing was changed" in said
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["bills.db"]


def test_a_journal_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    filled(path)
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    before = path.read_bytes()
    said = refusal(path)
    assert "newer version" in said and "99" in said and "Upgrade ripstop" in said
    assert path.read_bytes() == before


# A journal as ripstop 0.1 left it: its tables do not matter, because they are not read
OLD = """
PRAGMA journal_mode = WAL;
CREATE TABLE runs (key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
CREATE TABLE records (position INTEGER PRIMARY KEY, run INTEGER NOT NULL, body TEXT NOT NULL);
INSERT INTO runs VALUES (1, 'a');
INSERT INTO records VALUES (1, 1, '[{"type":"started"}]');
PRAGMA application_id = 1380536403;
PRAGMA user_version = %d;
"""


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("version", [1, 2])
def test_a_journal_of_the_first_release_is_refused_and_left_alone(tmp_path: Path, version: int, killed: bool) -> None:
    made, path = tmp_path / "made.db", tmp_path / "old.db"
    db = sqlite3.connect(made, isolation_level=None)
    db.executescript(OLD % version)
    if not killed:
        db.close()
    for name in ("", "-wal"):  # as after a kill, what was written last is only in the log
        if Path(f"{made}{name}").exists():
            shutil.copy(f"{made}{name}", f"{path}{name}")
    db.close()
    before = {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path) if name.startswith("old")}
    assert len(before) == 1 + killed
    said = refusal(path)
    assert "written by ripstop 0.1" in said and f"journal version {version}" in said and "Nothing was changed" in said
    with pytest.raises(JournalError, match=r"ripstop 0\.1"):
        connect(path, create=False)
    after = {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path) if name.startswith("old")}
    assert {name: after[name] for name in before} == before


def test_a_new_folder_is_made_for_a_new_journal(tmp_path: Path) -> None:
    filled(tmp_path / "deep" / "er" / "j.db")
    assert lengths(tmp_path / "deep" / "er" / "j.db") == {"a": 1}


# Files that cannot be written


@contextmanager
def somewhere_open() -> Iterator[Path]:
    """A folder that others may enter; `tmp_path` is closed to them."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


@contextmanager
def without_privileges() -> Iterator[None]:
    """The superuser may write anything, so be somebody else."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_read_only_journal_says_so_and_stays_as_it_is() -> None:
    with somewhere_open() as folder:
        path = folder / "j.db"
        filled(path)
        path.chmod(0o444)
        folder.chmod(0o777)
        before = path.read_bytes()
        with without_privileges():
            said = refusal(path, append=True)
        assert "read-only" in said and "permissions" in said
        assert path.read_bytes() == before
        path.chmod(0o644)
        assert lengths(path) == {"a": 1}


def test_a_journal_in_a_read_only_folder_says_so_and_stays_as_it_is() -> None:
    with somewhere_open() as folder:
        path = folder / "j.db"
        filled(path)
        folder.chmod(0o555)
        with without_privileges():
            said = refusal(path, append=True)
        assert "may you write" in said or "read-only" in said
        folder.chmod(0o755)
        assert lengths(path) == {"a": 1}


def test_a_new_journal_in_a_read_only_folder_says_so() -> None:
    with somewhere_open() as folder:
        folder.chmod(0o555)
        with without_privileges():
            said = refusal(folder / "j.db")
        assert "may you write" in said


def test_a_journal_in_a_folder_that_may_not_be_entered_says_so() -> None:
    with somewhere_open() as folder:
        closed = folder / ".ripstop"
        filled(closed / "j.db")
        closed.chmod(0o000)
        with without_privileges():
            said = refusal(closed / "j.db")
        closed.chmod(0o755)
        assert "cannot be opened" in said and "may you write" in said


LOOK = """
import asyncio, os, subprocess, sys
from pathlib import Path
from test_sqlite_trouble import lengths, refusal

folder = Path(sys.argv[1])
for options in ("--bind", "-oremount,bind,ro"):
    source = [str(folder)] if options == "--bind" else []
    if subprocess.run(["mount", options, *source, str(folder)], capture_output=True).returncode:
        sys.exit(77)
if sys.argv[2] == "look":
    print(lengths(folder / "j.db"))
    print(refusal(folder / "j.db", append=True))
else:
    print(refusal(folder / "j.db"))
"""


def on_a_read_only_mount(folder: Path, what: str) -> str:
    return on_a_mount(LOOK, str(folder), what)


def on_a_mount(program: str, *arguments: str) -> str:
    """What somebody sees there, in a name space of mounts of its own."""
    here = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    own = ["unshare", "--mount", *(["--map-root-user"] if os.geteuid() else [])]
    command = [*own, sys.executable, "-c", program, *arguments]
    if shutil.which("unshare") is None:
        pytest.skip("no `unshare` here")
    told = subprocess.run(command, env=here, capture_output=True, text=True, timeout=50)
    if told.returncode == 77 or "unshare" in told.stderr:
        pytest.skip("nothing can be mounted here")
    assert told.returncode == 0, told.stderr
    return told.stdout


def test_a_journal_on_a_read_only_mount_can_be_looked_at_but_not_written_to(tmp_path: Path) -> None:
    filled(tmp_path / "j.db")
    before = (tmp_path / "j.db").read_bytes()
    said = on_a_read_only_mount(tmp_path, "look")
    assert "{'a': 1}" in said and "is read-only" in said
    assert (tmp_path / "j.db").read_bytes() == before


def test_a_journal_in_use_on_a_read_only_mount_is_to_be_copied(tmp_path: Path) -> None:
    filled(tmp_path / "j.db")
    (tmp_path / "j.db-wal").write_bytes(b"")
    said = on_a_read_only_mount(tmp_path, "refuse")
    assert "copy it" in said and "j.db-wal" in said


async def fill_until_refused(journal: SqliteJournal) -> tuple[int, str]:
    """Append until it is refused: how many were acknowledged, and what it said."""
    for number in range(1, 2000):
        try:
            if number == 1:
                await journal.append(SCRIBE.start("a"))
            else:
                await journal.append(SCRIBE.entry("a", Heard(text="x" * 2000), after=number - 1))
        except JournalError as error:
            return number - 1, str(error)
    raise AssertionError("it was never full")


def test_a_full_disk_says_so_loses_nothing_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    path = tmp_path / "j.db"

    async def story() -> int:
        journal = SqliteJournal(path, Codec())
        journal._writing.execute("PRAGMA max_page_count = 60")
        kept, said = await fill_until_refused(journal)
        assert "disk is full" in said and "Make room" in said and "safe" in said
        assert len(await journal.read("a")) == kept
        journal._writing.execute("PRAGMA max_page_count = 1000000")
        await journal.append(SCRIBE.entry("a", Heard(text="room again"), after=kept))
        await journal.close()
        return kept + 1

    kept = asyncio.run(story())
    assert kept > 5
    assert lengths(path) == {"a": kept}


SMALL = """
import subprocess, sys
from pathlib import Path
from test_sqlite_trouble import refusal

folder, size = sys.argv[1:]
if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}k", "tmpfs", folder], capture_output=True).returncode:
    sys.exit(77)
print(refusal(Path(folder, "j.db")))
"""


@pytest.mark.parametrize("size", ["20", "40", "100"])
def test_a_disk_without_room_for_a_new_journal_says_so(tmp_path: Path, size: str) -> None:
    said = on_a_mount(SMALL, str(tmp_path), size)
    assert "cannot be opened: the disk is full. Make room, then repeat the command" in said


LIMITED = """
import asyncio, resource, sys
from pathlib import Path
from test_sqlite_trouble import Codec, SqliteJournal, fill_until_refused

async def main(path):
    journal = SqliteJournal(path, Codec())
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
    print(*await fill_until_refused(journal))

asyncio.run(main(Path(sys.argv[1])))
"""


def test_a_disk_that_refuses_to_write_says_so_and_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    here = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    command = [sys.executable, "-c", LIMITED, str(path)]
    told = subprocess.run(command, env=here, capture_output=True, text=True, timeout=50)
    assert told.returncode == 0, told.stderr
    kept, _, said = told.stdout.partition(" ")
    assert "What was recorded before is safe" in said
    assert int(kept) > 5
    assert lengths(path) == {"a": int(kept)}


def test_content_that_was_changed_is_not_handed_out(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    filled(path)
    with sqlite3.connect(path) as db:
        db.execute("UPDATE blobs SET body = 'something else'")
    db.close()

    async def story() -> None:
        journal = SqliteJournal(path, Codec())
        try:
            await journal.blob(DIGEST)
        finally:
            await journal.close()

    with pytest.raises(JournalError, match="was changed: it does not fit its hash"):
        asyncio.run(story())


@pytest.mark.parametrize(
    "spoil", [lambda data: data[: len(data) // 2], lambda data: data[:3000] + b"\xaa" * 9000 + data[12000:]]
)
def test_a_damaged_file_says_so(tmp_path: Path, spoil: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "j.db"

    async def story() -> None:
        journal = SqliteJournal(path, Codec())
        for number in range(200):
            await journal.append(SCRIBE.start(f"r{number}"))
        await journal.close()

    asyncio.run(story())
    path.write_bytes(spoil(path.read_bytes()))

    async def look() -> None:
        journal = SqliteJournal(path, Codec())
        try:
            for number in range(200):
                await journal.read(f"r{number}")
            await journal.verify()
        finally:
            await journal.close()

    with pytest.raises(JournalError, match=r"is damaged|not an SQLite database"):
        asyncio.run(look())


@pytest.mark.parametrize("content", [b"x", b"\n", b"SQLite format 3\0", b"x" * 99, b"x" * 100, b"x" * 5000])
def test_a_file_that_is_not_a_database_is_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    path.chmod(0o644)
    for create in (True, False):
        with pytest.raises(JournalError, match="Name another file"):
            connect(path, create)
    assert path.read_bytes() == content
    assert path.stat().st_mode & 0o777 == 0o644
    assert os.listdir(tmp_path) == ["notes.txt"]
