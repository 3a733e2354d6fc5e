"""W-47 to W-49: journals that cannot be used, many idle readers, and what a plain import costs."""

import asyncio
import http.client
import os
import resource
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ripstop.app.run_sync import in_loop
from ripstop.faces.web.feed import Feed, StreamTopics
from ripstop.kernel.effects import AskPerson
from ripstop.kernel.errors import JournalError
from ripstop.testing import Errands
from tests.faces.web.desk_browser import a_desk
from tests.web.desk_server import DeskServer, Person
from tests.web.filled_journals import journal_of, line, start_runs, write_spoken

# W-47


def refusal(folder: Path, *arguments: str, code: str = "") -> str:
    """What `ripstop web` says when it does not start."""
    given = ["-c", code] if code else ["-m", "ripstop", "web", "--port", "0", *arguments]
    done = subprocess.run([sys.executable, *given], cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and "Traceback" not in done.stderr, done
    return done.stderr


def test_w47_a_newer_journal_is_left_alone(tmp_path: Path) -> None:
    start_runs(tmp_path, ["note"])
    db = sqlite3.connect(journal_of(tmp_path))
    db.execute("PRAGMA user_version = 99")
    db.commit()
    db.close()
    for how in ((), ("--look-only",)):
        said = refusal(tmp_path, *how)
        assert "newer version" in said and "99" in said and "Upgrade ripstop" in said


def test_w47_a_journal_that_is_not_there_is_not_made_by_looking(tmp_path: Path) -> None:
    assert "There is no journal" in refusal(tmp_path, "--look-only")
    assert not journal_of(tmp_path).exists()


AS_SOMEBODY_ELSE = """
import asyncio, os, sys
import jinja2, markdown_it, nh3, starlette, uvicorn, ripstop.faces.serve_web, ripstop.faces.web.application
from ripstop.__main__ import main
from ripstop.app.application import App
from ripstop.app.settings.settings_file import Settings

async def import_the_rest():
    async with App(Settings(store="sqlite:another.db")):
        "localhost".encode("idna")

asyncio.run(import_the_rest())
os.environ |= {name: os.getcwd() for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")}
if os.geteuid() == 0:
    os.setegid(65534)
    os.seteuid(65534)
sys.argv = ["ripstop", "web", "--port", "0"]
main()
"""
"""The superuser can write anything. Imports come first: another user need not be able to read them."""


def test_w47_a_read_only_journal_says_so_before_anything_is_served() -> None:
    place = Path(tempfile.mkdtemp())  # `tmp_path` is closed to others
    try:
        start_runs(place, ["note"])
        place.chmod(0o755)
        journal_of(place).chmod(0o444)
        journal_of(place).parent.chmod(0o555)
        said = refusal(place, code=AS_SOMEBODY_ELSE)
        assert "read-only" in said and "permissions" in said
    finally:
        journal_of(place).parent.chmod(0o755)
        shutil.rmtree(place)


@pytest.mark.parametrize(
    ("said", "status", "hint"),
    [
        ("The journal j.db cannot be written to: it, or its folder, is read-only.", 423, "Another process holds"),
        ("The journal j.db is locked by another process.", 423, "Another process holds"),
        ("The journal j.db cannot grow: the disk is full.", 503, "ripstop verify"),
    ],
)
def test_w47_a_journal_that_fails_later_is_a_page_with_what_was_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, status: int, hint: str
) -> None:
    async def story() -> None:
        async with a_desk(tmp_path) as desk:
            await desk.ask("note", AskPerson(question="Ready?"))

            def refuse(*_: object) -> None:
                raise JournalError(said)

            monkeypatch.setattr(desk.engine.journal, "append", refuse)
            reply = await desk.ann.post("/desk/note/3", {"text": "Not before noon."})
            assert reply.status == status
            assert said in reply.text and hint in reply.text and "Not before noon." in reply.text
            assert 'role="alert"' in reply.html

    in_loop(story)


def test_w47_a_desk_that_only_looks_says_that_nobody_works_and_offers_no_decision(tmp_path: Path, visit) -> None:
    start_runs(tmp_path, ["note"])
    server = DeskServer(tmp_path, "--look-only")
    try:
        window, person = visit(server), server.sign_in()
        for path in ("/desk", "/runs", "/runs/note", "/runs/note/2", "/chats", "/documents", "/health", "/look"):
            page = window.open(path)
            assert "No worker is running on this journal" in page.locator("#no-workers").inner_text(), path
            decides = page.locator("form[method=post]").evaluate_all("forms => forms.map((form) => form.action)")
            assert {Path(one).name for one in decides} <= {"look", "logout", "verify"}, path
        refused = person.post("/runs/note/cancel", {"because": "no reason"})
        assert refused.status == 403 and "--look-only" in refused.text
        window.check()
    finally:
        server.stop()


@contextmanager
def full_disk(server: DeskServer) -> Iterator[None]:
    """No file of the server can grow beyond a page."""
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="only Linux can limit another process")
def test_w47_a_full_disk_loses_nothing_that_was_typed_and_the_same_form_works_later(tmp_path: Path, visit) -> None:
    said = [line("writer", "It rains.", drafted=True), line("reviewer", "Good.", score=9)]
    server = DeskServer(tmp_path, environment=write_spoken(tmp_path, said))
    try:
        window = visit(server)
        page = window.open("/runs/new?workflow=spoken")
        fields = server.sign_in().form_fields("/runs/new?workflow=spoken")
        form = {**fields, "workflow": "spoken", "input": "the weather of Tuesday"}
        with full_disk(server):
            page.locator("textarea[name=input]").fill("the weather of Monday")
            page.locator("form[action='/runs'] .primary").click()
            page.wait_for_selector(".failure")
            assert page.locator(".code-no").inner_text() == "503"
            told = page.locator(".failure").inner_text()
            assert "disk" in told and "What was recorded before is safe" in told
            assert page.locator(".failure textarea").input_value() == "the weather of Monday"
            assert server.sign_in().post("/runs", form).status == 503
            assert server.sign_in().get("/runs").status == 200, "what is there can be read"
        replies = [server.sign_in().post("/runs", form) for _ in range(2)]
        assert [reply.status for reply in replies] == [303, 303]
        assert replies[0].headers["location"] == replies[1].headers["location"]
        page = window.open(replies[0].headers["location"])
        page.wait_for_selector(".sum .completed")
        window.check()
    finally:
        server.stop()


# W-48


def test_w48_many_idle_streams_look_at_the_journal_as_often_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Any
) -> None:
    async def looks(streams: int, seconds: float) -> int:
        async with a_desk(tmp_path / str(streams)) as desk:
            await desk.engine.start("note", "errands", Errands(outcome="").content())
            feed, count, since = Feed(desk.engine), 0, desk.engine.journal.since

            async def counted(*given: Any) -> Any:
                nonlocal count
                count += 1
                return await since(*given)

            monkeypatch.setattr(desk.engine.journal, "since", counted)
            async with feed.following():
                for number in range(streams):
                    await feed.subscribe(StreamTopics(desk=True, every_run=True), f"person {number}")
                count = 0
                await asyncio.sleep(seconds)
            return count

    async def story() -> tuple[int, int]:
        for streams in (1, 10):
            (tmp_path / str(streams)).mkdir()
        return await looks(1, 2.5), await looks(10, 2.5)

    one, ten = in_loop(story)
    record_property("w48_looks", {"1 stream": one, "10 streams": ten, "seconds": 2.5})
    assert 1 <= ten <= 8, "twice a second, whoever reads"


class Reader:
    """Somebody who has a page open: a stream that is read."""

    def __init__(self, person: Person, path: str = "/live?desk=1&runs=1") -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", person.server.port, timeout=60)
        headers = {"Host": f"127.0.0.1:{person.server.port}", "Cookie": person.cookie, "Sec-Fetch-Site": "same-origin"}
        self._connection.request("GET", path, headers=headers)
        self._answer = self._connection.getresponse()
        assert self._answer.status == 200, self._answer.status
        assert b"event: hello" in self._until(b"hello")

    def _until(self, word: bytes) -> bytes:
        said = b""
        while word not in said:
            piece = self._answer.read1(4096)
            assert piece, "the stream ended"
            said += piece
        return said

    def close(self) -> None:
        if self._connection.sock:
            self._connection.sock.shutdown(socket.SHUT_RDWR)
        self._connection.close()


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_bytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024


def used(pid: int, seconds: float) -> float:
    """Per cent of a core."""
    before = cpu_seconds(pid)
    time.sleep(seconds)
    return round((cpu_seconds(pid) - before) / seconds * 100, 2)


@pytest.mark.soak
def test_w48_fifty_idle_streams(tmp_path: Path, record_property: Any) -> None:
    start_runs(tmp_path, (f"run-{number}" for number in range(100)))
    figures: dict[str, Any] = {}
    for kind in (("--look-only",), ()):
        server = DeskServer(tmp_path, *kind, environment=write_spoken(tmp_path / f"of{len(kind)}", []))
        try:
            name = "with a worker" if not kind else "only looking"
            time.sleep(5)
            figures[f"{name}, no stream"] = used(server.process.pid, 30)
            readers = [Reader(server.sign_in(f"p{number % 5}")) for number in range(50)]
            figures[f"{name}, 50 streams"] = used(server.process.pid, 60)
            for reader in readers:
                reader.close()
        finally:
            server.stop()
    record_property("w48_cpu_percent", figures)
    print("W-48 % of a core", figures)


@pytest.mark.soak
def test_w48_five_thousand_connects(tmp_path: Path, record_property: Any) -> None:
    start_runs(tmp_path, ["note"])
    server = DeskServer(tmp_path, "--look-only")
    try:
        people = [server.sign_in(f"p{number}") for number in range(5)]
        _connect(people, 500)
        before = memory_bytes(server.process.pid)
        begun = time.perf_counter()
        _connect(people, 5000)
        figures = {
            "seconds": round(time.perf_counter() - begun, 1),
            "before_mb": round(before / 2**20, 1),
            "grown_mb": round((memory_bytes(server.process.pid) - before) / 2**20, 2),
            "descriptors": len(os.listdir(f"/proc/{server.process.pid}/fd")),
        }
    finally:
        server.stop()
    record_property("w48_connects", figures)
    print("W-48 connects", figures)
    assert figures["grown_mb"] <= 5 and figures["descriptors"] < 100, figures


def _connect(people: list[Person], times: int) -> None:
    """Open and close streams, ten at a time."""
    for at in range(0, times, 10):
        readers = [Reader(people[number % len(people)]) for number in range(at, min(times, at + 10))]
        for reader in readers:
            reader.close()


# W-49


@pytest.mark.parametrize(
    "code",
    [
        "import ripstop",
        "import ripstop; ripstop.App, ripstop.run_sync",
        "import ripstop.testing.commands as commands; commands.command('--help')",
        "import ripstop.testing.commands as commands; commands.command('web', '--help')",
    ],
    ids=["import", "names", "help", "help of web"],
)
def test_w49_nothing_of_the_web_is_imported_without_being_asked_for(code: str) -> None:
    parts = ("starlette", "uvicorn", "jinja2", "nh3", "markdown_it", "ripstop.faces.web", "ripstop.faces.http")
    look = f"import sys; print('found', [name for name in sys.modules if name.startswith({parts!r})])"
    done = subprocess.run([sys.executable, "-c", f"{code}\n{look}"], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("found []"), done.stdout[-500:]
