"""W-28 to W-31 and W-33: what a page shows of a run at work, and what becomes of it when the server goes away."""

import http.server
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ripstop.app.application import App
from ripstop.kernel.effects import AgentReplied
from ripstop.kernel.events import Answered, Record
from tests.web.desk_server import DeskServer
from tests.web.filled_journals import add_turns, in_journal, line, start_runs, start_spoken, write_spoken
from tests.web.waiting import until, wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Page

LIT, LOST = '#live[data-state="on"]', '#live:is([data-state="lost"], [data-state="gone"])'
WORDS = " ".join(f"{number} loaves 🍞 of 黑麦面包, <b>not</b> {{}} & \u202erye\u202c." for number in range(30))
"""Letters of one, two and four bytes, markup, and marks that turn the direction of text."""
SHOWN = WORDS.replace("\u202e", "\\u202e").replace("\u202c", "\\u202c")
"""The same as a page shows it."""
HEAR = """
window.heard = {};
window.writes = 0;
new MutationObserver(() => {
  window.writes += 1;
  for (const box of document.querySelectorAll("[data-stream]")) {
    const text = box.textContent;
    if (text.length > (window.heard[box.dataset.stream] || "").length) window.heard[box.dataset.stream] = text;
  }
}).observe(document, { subtree: true, childList: true, characterData: true });
"""
HIDE = """(hidden) => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
  Object.defineProperty(document, "visibilityState", { configurable: true, get: () => hidden ? "hidden" : "visible" });
  document.dispatchEvent(new Event("visibilitychange"));
}"""
"""A browser without a window never hides a tab; this is what a page notices when a person changes tabs."""


def records_of(folder: Path, run: str) -> list[Record]:
    async def read(app: App) -> list[Record]:
        return await app.engine.journal.read(run)

    return in_journal(folder, read)


def shown_records(page: "Page") -> list[int]:
    ids = "rows => rows.map((row) => Number(row.id.slice(1)))"
    return list(page.locator("[data-timeline] > li[id^=r]").evaluate_all(ids))


# Words as they are said


@pytest.fixture(scope="module")
def speaking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeskServer]:
    """A desk whose agents take their time."""
    folder = tmp_path_factory.mktemp("speaking")
    said = [line("writer", WORDS, 9, drafted=True), line("reviewer", "Good.", 0.2, score=9)]
    server = DeskServer(folder, environment=write_spoken(folder, said))
    yield server
    server.stop()


def heard(page: "Page") -> str:
    return str(page.evaluate("Object.values(window.heard)[0] || ''"))


def test_w28_a_page_opened_in_the_middle_of_a_turn_shows_all_words_so_far(speaking: DeskServer, visit) -> None:
    run = start_spoken(speaking)
    early, late = visit(speaking, "ann"), visit(speaking, "bob")
    for window in (early, late):
        window.page.add_init_script(HEAR)
    early.open(f"/runs/{run}")
    before = until(lambda: len(heard(early.page)) > 300 and heard(early.page), "a part was said")
    late.open(f"/runs/{run}")
    at_once = str(late.page.evaluate("document.querySelector('[data-stream]').textContent"))
    assert SHOWN.startswith(at_once) and len(at_once) >= len(before)
    for window in (early, late):
        window.page.wait_for_selector(".sum .completed")
        assert SHOWN.startswith(heard(window.page)), "nothing twice, nothing missing"
        assert len(heard(window.page)) > len(SHOWN) * 0.8
        window.check()
    replies = [record for record in records_of(speaking.folder, run) if isinstance(record.event, Answered)]
    answer = replies[0].event.answer  # type: ignore[attr-defined]
    assert isinstance(answer, AgentReplied) and json.loads(answer.text)["content"] == WORDS
    page = early.open(f"/runs/{run}/{replies[0].number}")
    assert SHOWN in page.locator("main").inner_text()
    early.check()


# A server that goes away


def test_w29_a_page_outlives_a_killed_server_and_misses_nothing(tmp_path: Path, visit) -> None:
    said = [("writer", "A draft.", score) for score in range(9)] + [
        ("reviewer", "Not yet.", score) for score in range(9)
    ]
    environment = write_spoken(tmp_path, [line(who, text, 0.7, drafted=True, score=score) for who, text, score in said])
    server = DeskServer(tmp_path, environment=environment)
    try:
        run = start_spoken(server)
        window = visit(server)
        page = window.open(f"/runs/{run}?see=records")
        page.wait_for_selector(LIT)
        until(lambda: len(shown_records(page)) > 8, "records come in")
        server.kill()
        page.wait_for_selector(LOST)
        frozen = shown_records(page)
        server = DeskServer(tmp_path, port=server.port, environment=environment)
        page.wait_for_selector(LIT)
        page.wait_for_selector(".sum .completed", timeout=60_000)
        written = [record.number for record in records_of(tmp_path, run)]
        until(lambda: len(shown_records(page)) >= len(written), "the last record is shown")
        assert frozen == written[: len(frozen)] and len(frozen) < len(written)
        assert shown_records(page) == written, "none missing, none twice, in order"
        window.check()
    finally:
        server.stop()


def test_w29_a_page_catches_up_with_what_others_wrote_while_the_server_was_away(tmp_path: Path, visit) -> None:
    start_runs(tmp_path, ["note"])
    server = DeskServer(tmp_path, "--look-only")
    try:
        window = visit(server)
        page = window.open("/runs/note?see=records")
        page.wait_for_selector(LIT)
        server.kill()
        length = add_turns(tmp_path, "note", 5)
        page.wait_for_selector(LOST)
        assert len(shown_records(page)) < length
        server = DeskServer(tmp_path, "--look-only", port=server.port)
        until(lambda: shown_records(page) == list(range(1, length + 1)), "all records are shown")
        page.wait_for_selector(LIT)
        window.check()
    finally:
        server.stop()


# Other processes


def test_w30_steps_of_another_process_appear(tmp_path: Path, visit, record_property: Any) -> None:
    start_runs(tmp_path, ["note"])
    server = DeskServer(tmp_path, "--look-only")
    try:
        records, turns = visit(server, "ann"), visit(server, "bob")
        page, other = records.open("/runs/note?see=records"), turns.open("/runs/note?see=turns")
        for one in (page, other):
            one.wait_for_selector(LIT)
        waits = []
        for _ in range(3):
            length, before = add_turns(tmp_path, "note", 2), time.perf_counter()
            page.wait_for_selector(f"#r{length}", state="attached")
            waits.append(round(time.perf_counter() - before, 2))
        assert shown_records(page) == list(range(1, length + 1))
        wait_until(other, "document.querySelectorAll('li.turn').length === 7")
        record_property("w30_seconds", waits)
        records.check()
        turns.check()
    finally:
        server.stop()


# Many words a second


class FastModel(http.server.ThreadingHTTPServer):
    """A model server that says 500 words a second, for some seconds a reply."""

    daemon_threads = True

    def __init__(self, seconds: float) -> None:
        self.words = int(500 * seconds)
        super().__init__(("127.0.0.1", 0), _FastReply)
        self._thread = threading.Thread(target=self.serve_forever, daemon=True)
        self._thread.start()

    @property
    def environment(self) -> dict[str, str]:
        address = f"http://127.0.0.1:{self.server_address[1]}/v1"
        return {"RIPSTOP_MODEL": "openai:fast", "RIPSTOP_BASE_URL": address, "OPENAI_API_KEY": "none"}

    def close(self) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()


class _FastReply(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers["content-length"]))
        words = self.server.words if b"Write about" in asked else 1  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self._say('{"content": "')
        begun = time.perf_counter()
        for number in range(words):
            self._say(f"w{number} ")
            time.sleep(max(0.0, begun + number / 500 - time.perf_counter()))
        self._say('", "decisions": {"drafted": true, "score": 9}}', finish="stop")
        self.wfile.write(b"data: [DONE]\n\n")

    def _say(self, text: str, finish: str | None = None) -> None:
        chunk = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}
        self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")

    def log_message(self, *args: object) -> None:
        pass


def count_writes(folder: Path, visit: Any, seconds: float) -> dict[str, float]:
    """Watch a reply of 500 words a second; returns how often the page was written to, and over how many seconds."""
    model = FastModel(seconds)
    server = DeskServer(folder, environment={**write_spoken(folder, []), **model.environment})
    try:
        window = visit(server)
        window.page.add_init_script(HEAR)
        run = start_spoken(server)
        page = window.open(f"/runs/{run}")
        until(lambda: heard(page), "the first word")
        writes, begun = page.evaluate("[window.writes, performance.now()]")
        until(lambda: page.locator("[data-stream]").count() == 0, "the reply is recorded")
        now, end = page.evaluate("[window.writes, performance.now()]")
        said = heard(page)
        page.wait_for_selector(".sum .completed")
        window.check()
    finally:
        server.stop()
        model.close()
    assert "".join(f"w{number} " for number in range(model.words)).startswith(said)
    return {"writes": now - writes, "seconds": round((end - begun) / 1000, 1), "characters": len(said)}


def test_w31_500_words_a_second_are_few_writes(tmp_path: Path, visit, record_property: Any) -> None:
    found = count_writes(tmp_path, visit, 2)
    record_property("w31", found)
    assert found["writes"] <= 25 * found["seconds"] + 25, found


@pytest.mark.soak
def test_w31_500_words_a_second_for_ten_seconds(tmp_path: Path, visit, record_property: Any) -> None:
    found = count_writes(tmp_path, visit, 10)
    record_property("w31", found)
    print("W-31", found)
    assert found["writes"] <= 25 * found["seconds"] + 25, found


@pytest.mark.soak
def test_w31_readers_that_never_read_do_not_slow_a_run(tmp_path: Path, record_property: Any) -> None:
    model = FastModel(5)
    server = DeskServer(tmp_path, environment={**write_spoken(tmp_path, []), **model.environment})
    took: dict[str, list[float]] = {"alone": [], "stalled": []}
    try:
        for _ in range(3):
            for kind, found in took.items():
                run = start_spoken(server)
                readers = [stalled_reader(server, run) for _ in range(10 if kind == "stalled" else 0)]
                wait_completed(server, run)
                for reader in readers:
                    reader.close()
                records = records_of(tmp_path, run)
                found.append((records[-1].at - records[0].at) / 1e6)
    finally:
        server.stop()
        model.close()
    ratio = min(took["stalled"]) / min(took["alone"])
    record_property("w31_stalled", {**took, "ratio": round(ratio, 3)})
    print("W-31 stalled", took, "ratio", round(ratio, 3))


def wait_completed(server: DeskServer, run: str) -> None:
    until(lambda: "completed" in server.get(f"/runs/{run}/summary").text, f"{run} is completed")


def stalled_reader(server: DeskServer, run: str) -> socket.socket:
    """A connection that asks for a stream, and then reads nothing."""
    reader = socket.socket()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    reader.connect(("127.0.0.1", server.port))
    head = f"GET /live?run={run}&desk=1 HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
    reader.sendall(f"{head}Authorization: Bearer {server.token}\r\n\r\n".encode())
    return reader


# Many tabs


def test_w33_eight_tabs_load_because_hidden_ones_close_their_stream(speaking: DeskServer, visit) -> None:
    window = visit(speaking)
    run = start_spoken(speaking)
    tabs = [window.page]
    for number in range(8):
        if number:
            tabs[-1].evaluate(HIDE, True)
            tabs.append(window.context.new_page())
        tabs[-1].goto(f"{speaking.address}/runs/{run}", timeout=20_000)
        tabs[-1].wait_for_selector(LIT)
    assert [tab.locator("#live").get_attribute("data-state") for tab in tabs] == [*["off"] * 7, "on"]
    tabs[-1].evaluate(HIDE, True)
    tabs[0].evaluate(HIDE, False)
    tabs[0].wait_for_selector(LIT)
    tabs[0].wait_for_selector(".sum .completed")
    length = len(records_of(speaking.folder, run))
    wait_until(tabs[0], "(length) => document.querySelector('[data-timeline]').dataset.last === String(length)", length)
    window.check()
