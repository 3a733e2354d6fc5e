"""W-25 to W-27 and W-32: the page of a run, however long it is, its reasons, its prompts, and its forks."""

import json
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ripstop.faces.demo.world import RUNS
from ripstop.testing.commands import command
from tests.web.desk_server import DeskServer
from tests.web.filled_journals import add_turns, journal_of, line, start_runs, start_spoken, write_spoken
from tests.web.page_checks import WHY
from tests.web.waiting import until

if TYPE_CHECKING:
    from playwright.sync_api import Page

MOST_NODES = 5000
WINDOW = 300
"""Records on one page."""


# Long runs


def make_long(folder: Path, turns: int) -> int:
    start_runs(folder, ["long"])
    return add_turns(folder, "long", turns)


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeskServer]:
    """A desk that only looks at a run of 2,000 records."""
    folder = tmp_path_factory.mktemp("long")
    assert make_long(folder, 666) >= 2000
    server = DeskServer(folder, "--look-only")
    yield server
    server.stop()


def nodes(page: "Page") -> int:
    return int(page.evaluate("document.querySelectorAll('*').length"))


def numbers(page: "Page", kind: str = "r") -> list[int]:
    """The numbers of the records (`r`) or turns (`t`) that the timeline shows."""
    ids = "rows => rows.map((row) => Number(row.id.slice(1)))"
    return list(page.locator(f"[data-timeline] > li[id^={kind}]").evaluate_all(ids))


def follow(page: "Page", rel: str) -> bool:
    """Go to the window before (`prev`) or behind (`next`); false if there is none."""
    link = page.locator(f"a.earlier[rel={rel}]")
    if not link.count():
        return False
    href = link.get_attribute("href") or "-"
    link.click()
    page.wait_for_url(lambda url: url.endswith(href))
    return True


def check_windows(page: "Page", last: int, kind: str, record_property: Any) -> None:
    """Walk to the beginning and back to the end: every row once, and never too many at a time."""
    most, found = nodes(page), numbers(page, kind)
    while follow(page, "prev"):
        found = [*numbers(page, kind), *found]
        most = max(most, nodes(page))
    assert found == list(range(found[0], last + 1)) and found[0] <= 1
    shown = numbers(page, kind)
    while follow(page, "next"):
        assert numbers(page, kind)[0] == shown[-1] + 1
        shown = numbers(page, kind)
    assert shown[-1] == last
    assert most <= MOST_NODES
    record_property(f"w25_nodes_{kind}", most)


def check_anchor(window: Any, number: int, last: int) -> None:
    page = window.open(f"/runs/long?at={number}#r{number}")
    row = page.locator(f"#r{number}")
    assert row.is_visible() and row.evaluate("row => row.matches(':target')")
    until(lambda: row.evaluate("row => row.checkVisibility()"), "the record is drawn")
    box, pane = row.bounding_box(), page.locator(".lead .scroll").bounding_box()
    assert box and pane and pane["y"] <= box["y"] < pane["y"] + pane["height"], "it is in sight"
    found = numbers(page)
    assert number in found and len(found) <= WINDOW and found[-1] < last


def test_w25_a_long_run_is_shown_in_windows_both_ways(long: DeskServer, visit, record_property: Any) -> None:
    window = visit(long)
    page = window.open("/runs/long?see=records")
    check_windows(page, 2000, "r", record_property)
    page = window.open("/runs/long")
    check_windows(page, 667, "t", record_property)
    window.check()


def test_w25_a_link_to_a_record_opens_the_window_around_it(long: DeskServer, visit) -> None:
    window = visit(long)
    check_anchor(window, 900, 2000)
    page = window.page
    page.locator("#r900 a").click()
    page.wait_for_url("**/runs/long/900")
    page.locator(".crumbs a.mono").click()
    page.wait_for_url("**#r900")
    assert page.locator("#r900").is_visible()
    window.check()


@pytest.mark.soak
def test_w25_twenty_thousand_records(tmp_path: Path, visit, record_property: Any) -> None:
    before = time.perf_counter()
    last = make_long(tmp_path, 6666)
    figures: dict[str, Any] = {"records": last, "filled_s": round(time.perf_counter() - before, 1)}
    server = DeskServer(tmp_path, "--look-only")
    try:
        window = visit(server)
        for name, path in (("cold", "/runs/long"), ("warm", "/runs/long"), ("records", "/runs/long?see=records")):
            before = time.perf_counter()
            page = window.open(path)
            figures[f"{name}_ms"] = round((time.perf_counter() - before) * 1000)
            figures[f"{name}_first_byte_ms"] = round(
                page.evaluate("performance.getEntriesByType('navigation')[0].responseStart")
            )
            figures[f"{name}_nodes"] = nodes(page)
            assert nodes(page) <= MOST_NODES
        check_windows(page, last, "r", record_property)
        check_anchor(window, 9000, last)
        window.check()
    finally:
        server.stop()
    record_property("w25", figures)
    print("W-25", figures)


# Why

NOTES = {" (holds as well, but comes later)": "  (holds too, but comes later)", " (not needed)": "  (not needed)"}
"""The words of the page, and those of the command line."""


def page_lines(run: str, card: dict[str, Any]) -> list[str]:
    """What a card of the page says, in the words of `ripstop why`."""
    lines = []
    for name, text in card["facts"]:
        if name == "Guard":
            lines.append(f"guard     {card['guard']}: {text[text.rindex('limit ') :]}")
        elif name == "Evidence":
            what, _, records = text.rpartition(": ")
            lines.append(f"evidence  {what}: record {records}")
        elif name == "Last progress":
            lines.append(f"progress  the last is {text.lower()}")
    for row in card["reasons"]:
        text = row["text"]
        for ours, theirs in NOTES.items():
            text = f"{text.removesuffix(ours)}{theirs}" if text.endswith(ours) else text
        note = "  (taken)" if row["taken"] and row["mark"] else ""
        lines += [f"{row['mark']}{text}{note}{'  ' if row['source'] else ''}{row['source']}", *row["tree"]]
    for action, *with_ in card["ways"]:
        option = " --raise" if action == "resume" else " --at"
        given = [one.replace("=", "=+") if action == "resume" else one for one in with_ if one]
        lines.append(f"next      ripstop {action} {run}" + "".join(f"{option} {one}" for one in given))
    return lines


def cli_why(store: str, where: str) -> list[dict[str, Any]]:
    """What `ripstop why` says; in a thread, because the browser has this one's event loop."""
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(command, "--store", store, "why", where, "--json").result()
    assert done.code == 0, done
    found: list[dict[str, Any]] = json.loads(done.out)
    return found


def test_w26_why_says_what_the_command_line_says_line_by_line(demo: DeskServer, visit, record_property: Any) -> None:
    window, store = visit(demo), demo.store
    compared = 0
    asked = [(RUNS["completed"], number) for number in (5, 9, 15, 26)]
    asked += [(RUNS[name], 0) for name in ("guard", "family", "limit", "failed", "stopped")]
    for run, number in asked:
        told = cli_why(store, f"{run}@{number}" if number else run)
        page = window.open(f"/runs/{run}/{number or told[-1]['number']}/why")
        shown: dict[int, list[str]] = {}
        for card in page.evaluate(WHY):
            shown.setdefault(int(card["record"]), []).extend(page_lines(run, card))
        # how to answer a question is said by the command line only: the page has the desk for it
        lines = {
            one["number"]: one["explanation"] for one in told if one.get("command", {}).get("type") != "ask_person"
        }
        assert shown == {record: found for record, found in lines.items() if found}, run
        compared += sum(map(len, shown.values()))
    record_property("w26_lines", compared)
    assert compared > 20
    window.check()


def test_w26_why_opens_below_its_turn_and_closes_again(demo: DeskServer, visit) -> None:
    window = visit(demo)
    page = window.open(f"/runs/{RUNS['completed']}?see=turns")
    turn = page.locator("li.turn", has=page.locator("a[data-why]")).first
    turn.locator("a[data-why]").click()
    turn.locator(".whys .cond").first.wait_for()
    assert turn.locator("a[data-why]").get_attribute("aria-expanded") == "true"
    turn.locator("a[data-why]").click()
    assert turn.locator(".whys").count() == 0
    window.check()


# Prompts


def test_w42_keys_go_from_turn_to_turn_though_records_are_unfolded(demo: DeskServer, visit) -> None:
    window = visit(demo)
    page: Page = window.open(f"/runs/{RUNS['completed']}?see=turns")
    page.locator("#t2 summary").click()
    record = page.locator("#t2 .records li[id] a").first
    record.wait_for()
    record.focus()
    page.keyboard.press("w")
    page.wait_for_selector("#t2 .whys")
    for key, at in (("[", "t1"), ("]", "t2"), ("]", "t3")):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.id") == at
    record.focus()
    page.keyboard.press("x")
    assert not record.is_visible()
    assert page.evaluate("document.activeElement.id") == "t2"
    window.check()


def test_w27_a_prompt_is_genuine_until_the_journal_is_tampered_with(tmp_path: Path, visit) -> None:
    said = [line("writer", "It rains.", drafted=True), line("reviewer", "Good.", score=9)]
    server = DeskServer(tmp_path, environment=write_spoken(tmp_path, said))
    try:
        run = start_spoken(server, "the weather")
        until(lambda: "completed" in server.sign_in().get(f"/runs/{run}").text, "the run is completed")
        asked = first_question(tmp_path, run)
        window = visit(server)
        page = window.open(f"/runs/{run}/{asked}")
        assert page.locator(".note.green strong").inner_text() == "Genuine."
        assert "Write about the weather." in page.locator("main").inner_text()
        page.locator("a", has_text="Answered in record").click()
        page.wait_for_url(lambda url: not url.endswith(f"/{asked}"))
        assert page.locator(".note.green strong").inner_text() == "Genuine."
        answer = page.url.removeprefix(server.address)
        window.check()
    finally:
        server.stop()
    db = sqlite3.connect(journal_of(tmp_path))
    changed = db.execute("UPDATE records SET body = replace(body, 'the weather', 'the winter!')").rowcount
    db.commit()
    db.close()
    assert changed
    server = DeskServer(tmp_path, "--look-only")
    try:
        window = visit(server)
        for path in (f"/runs/{run}/{asked}", answer):
            page = window.open(path)
            assert page.locator(".note.red strong").inner_text() == "Not genuine."
        window.check()
    finally:
        server.stop()


def first_question(folder: Path, run: str) -> int:
    """The number of the record that asks an agent for the first time."""
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(command, "--store", f"sqlite:{journal_of(folder)}", "log", run, "--json").result()
    records = [json.loads(one) for one in done.out.splitlines()] if done.out.startswith("{") else json.loads(done.out)
    return next(int(one["number"]) for one in records if one.get("command", {}).get("type") == "ask_agent")


# Forks


def test_w32_a_fork_from_a_record_is_compared_with_its_origin(demo: DeskServer, visit) -> None:
    window, origin = visit(demo), RUNS["completed"]
    page = window.open(f"/runs/{origin}/9")
    page.locator("header.bar a", has_text="Fork from here").click()
    page.wait_for_url("**/fork?at=9")
    assert page.locator("input[name=at]").input_value() == "9"
    page.locator("form button.primary").click()
    page.wait_for_url(lambda url: "/fork" not in url)
    fork = page.url.rpartition("/")[2]
    assert fork != origin and fork.startswith("review-")
    assert origin in page.locator("#notice").inner_text()
    assert page.locator(".sum a", has_text=origin).count() == 1
    page.locator("header.bar a", has_text="Compare").click()
    page.wait_for_url("**/compare")
    page.locator("a", has_text=origin).last.click()
    page.wait_for_url(f"**/compare/{origin}")
    assert "Both share records 1 to 9" in page.locator("main").inner_text()
    assert page.locator(".columns h2").all_inner_texts() == [fork, origin]
    assert page.locator(".columns section").nth(1).locator("li.turn").count() > 0
    shared = page.locator("a", has_text="Show").first
    assert "before=10" in (shared.get_attribute("href") or "")
    window.check()


def test_w32_the_same_fork_form_sent_twice_forks_once(demo: DeskServer) -> None:
    person, path = demo.sign_in(), f"/runs/{RUNS['completed']}/fork"
    fields = {**person.form_fields(path), "at": "5"}
    first, second = person.post(path, fields), person.post(path, fields)
    assert (first.status, second.status) == (303, 303)
    assert first.headers["location"] == second.headers["location"]
