"""W-20 to W-22: the list of runs, however many there are and whatever starts meanwhile."""

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.web.desk_server import DeskServer, Person
from tests.web.filled_journals import start_runs
from tests.web.waiting import wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Page

RECORD_SHIFTS = """
window.shifts = [];
new PerformanceObserver((list) => {
  for (const entry of list.getEntries())
    window.shifts.push([entry.value, ...entry.sources.map((source) => source.node?.className)]);
}).observe({ type: "layout-shift", buffered: true });
"""


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeskServer]:
    """A desk that only looks at a journal with 600 runs."""
    folder = tmp_path_factory.mktemp("many")
    start_runs(folder, (f"run-{number:05}" for number in range(600)))
    server = DeskServer(folder, "--look-only")
    yield server
    server.stop()


def listed(html: str) -> list[str]:
    return re.findall(r'<tr data-swap="run ([^"]*)"', html)


def next_page(html: str) -> str:
    found = re.search(r'rel="next" href="([^"]*)"', html)
    return found[1].replace("&amp;", "&") if found else ""


def walk(person: Person, size: int, meanwhile: Callable[[], None]) -> list[str]:
    """The runs of all pages, while something happens between any two of them."""
    path, seen = f"/runs?size={size}", []
    while path:
        html = person.get(path).text
        seen += listed(html)
        path = next_page(html)
        meanwhile()
    return seen


class Starting:
    """Starts some runs with each call, up to a number of them."""

    def __init__(self, folder: Path, prefix: str, most: int, at_once: int) -> None:
        self._folder, self._prefix, self._most, self._at_once = folder, prefix, most, at_once
        self.started = 0

    def __call__(self) -> None:
        until = min(self._most, self.started + self._at_once)
        start_runs(self._folder, (f"{self._prefix}-{number}" for number in range(self.started, until)))
        self.started = until


def test_w20_pages_show_every_run_once_while_others_start(many: DeskServer) -> None:
    start_late = Starting(many.folder, "late", most=60, at_once=5)
    seen = walk(many.sign_in(), 50, start_late)
    assert start_late.started == 60
    assert seen == [f"run-{number:05}" for number in reversed(range(600))]


@pytest.mark.soak
def test_w20_ten_thousand_runs_while_500_start(tmp_path: Path, record_property: Any) -> None:
    before = time.perf_counter()
    start_runs(tmp_path, (f"run-{number:05}" for number in range(10_000)))
    filled = time.perf_counter() - before
    server = DeskServer(tmp_path, "--look-only")
    try:
        person = server.sign_in()
        times = sorted(timed(person, "/runs") for _ in range(11))
        start_late = Starting(tmp_path, "late", most=500, at_once=10)
        seen = walk(person, 200, start_late)
    finally:
        server.stop()
    assert start_late.started == 500
    assert seen == [f"run-{number:05}" for number in reversed(range(10_000))]
    figures = {"filled_s": round(filled, 1), "first_page_ms": round(times[5], 1), "slowest_ms": round(times[-1], 1)}
    record_property("w20", figures)
    print("W-20", figures)


def timed(person: Person, path: str) -> float:
    """Milliseconds until the whole page is there."""
    before = time.perf_counter()
    assert person.get(path).status == 200
    return (time.perf_counter() - before) * 1000


# Filters


def rows(page: "Page") -> list[str]:
    return page.locator("table.rows tbody .c-id a").all_inner_texts()


def test_w21_a_chip_shows_the_runs_of_one_status_and_as_many_as_it_says(demo: DeskServer, visit) -> None:
    window = visit(demo)
    page = window.open("/runs")
    chip = page.locator(".chip", has_text="completed")
    count = int(chip.locator("b").inner_text())
    chip.click()
    page.wait_for_url("**status=completed**")
    assert len(rows(page)) == count
    assert set(page.locator("tbody .c-status").all_inner_texts()) == {"completed"}
    assert page.locator(".chip[aria-current]").inner_text().startswith("completed")
    window.check()


def test_w21_style_and_time_are_chosen_together_and_stay_with_a_search(demo: DeskServer, visit) -> None:
    window = visit(demo)
    page = window.open("/runs")
    page.select_option("select[name=style]", "graph")
    page.select_option("select[name=since]", "month")
    page.locator("header.bar button").click()
    page.wait_for_url("**style=graph**")
    page.locator("input[type=search]").fill("review-")
    page.keyboard.press("Enter")
    page.wait_for_url("**q=review-**")
    assert "style=graph" in page.url and "since=month" in page.url
    assert rows(page) and all(row.startswith("review-") for row in rows(page))
    assert set(page.locator("tbody .c-style").all_inner_texts()) == {"graph"}
    window.check()


def test_w21_a_filter_that_finds_nothing_says_so_and_is_cleared(demo: DeskServer, visit) -> None:
    window = visit(demo)
    page = window.open("/runs?status=restart")
    assert "restart" in page.locator(".empty h2").inner_text()
    assert page.locator(".chip[aria-current]").inner_text().startswith("restart")
    page.locator(".empty a", has_text="Clear").click()
    page.wait_for_url("**/runs")
    assert rows(page)
    window.open("/runs?q=no-such-run")
    assert page.locator(".empty").is_visible()
    window.check()


def test_w21_back_keeps_the_place(many: DeskServer, visit) -> None:
    window = visit(many)
    page = window.open("/runs")
    page.locator(".pager a[rel=next]").click()
    page.wait_for_url("**before=**")
    place, shown = page.url, rows(page)
    page.locator(".scroll").evaluate("pane => { pane.scrollTop = 700 }")
    page.locator("table.rows .c-id a").nth(30).click()
    page.wait_for_url("**/runs/run-**")
    page.go_back()
    assert page.url == place and rows(page) == shown
    wait_until(page, "document.querySelector('.scroll').scrollTop === 700")
    window.check()


# Newer runs


def test_w22_newer_runs_are_a_line_and_shift_nothing(tmp_path: Path, visit) -> None:
    start_runs(tmp_path, (f"run-{number:02}" for number in range(80)))
    server = DeskServer(tmp_path, "--look-only")
    try:
        window = visit(server)
        window.page.add_init_script(RECORD_SHIFTS)
        page = window.open("/runs")
        page.wait_for_selector('#live[data-state="on"]')
        before = rows(page)
        tops = page.locator("tbody tr").evaluate_all("rows => rows.map((row) => row.getBoundingClientRect().top)")
        start_runs(tmp_path, ["new-1", "new-2"])
        page.wait_for_selector(".newer:has-text('2')")
        start_runs(tmp_path, ["new-3"])
        page.wait_for_selector(".newer:has-text('3')")
        assert rows(page) == before
        now = page.locator("tbody tr").evaluate_all("rows => rows.map((row) => row.getBoundingClientRect().top)")
        assert now == tops
        assert page.evaluate("window.shifts") == []
        page.locator(".newer").click()
        page.wait_for_selector("tr:has-text('new-3')")
        assert rows(page)[:3] == ["new-3", "new-2", "new-1"]
        assert page.locator(".newer").is_hidden()
        window.check()
    finally:
        server.stop()
