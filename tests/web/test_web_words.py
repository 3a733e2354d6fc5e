"""What pages say in both languages: commands as commands, numbers with their words, no English on Chinese pages."""

import re
from pathlib import Path
from typing import Any

import pytest

from ripstop.faces.demo.world import RUNS
from ripstop.kernel.events import RetryRequested
from tests.web.desk_server import DeskServer
from tests.web.worlds import IDLE, World

LANGUAGES = pytest.mark.parametrize("locale", ["en-GB", "zh-CN"])


@LANGUAGES
def test_commands_on_the_sign_in_page_and_on_empty_pages_are_shown_as_commands(
    tmp_path: Path, visit, locale: str
) -> None:
    with World(tmp_path).served(kind=IDLE) as server:
        window = visit(server, locale=locale)
        for path, command in (
            ("/runs", "ripstop init graph workflows/first"),
            ("/chats", "ripstop chat WORKFLOW"),
            ("/documents", "ripstop docs new"),
            ("/workflows", "ripstop init graph workflows/mine"),
        ):
            page = window.open(path)
            assert page.locator(".empty code").all_inner_texts() == [command]
            assert "<code" not in page.locator("body").inner_text()
        window.context.clear_cookies()
        page = window.open("/login")
        assert page.locator("main code").all_inner_texts() == ["ripstop web"]
        assert "<code" not in page.locator("body").inner_text()
        window.check()


def test_a_fork_at_a_question_to_an_agent_has_no_ghost_turn_and_no_trouble(demo: DeskServer, visit) -> None:
    window: Any = visit(demo)
    run = RUNS["completed"]
    page = window.open(f"/runs/{run}?see=records")
    asked = page.locator("li.rec", has=page.locator("b", has_text=re.compile("^asked$")))
    at = asked.nth(1).get_attribute("id").removeprefix("r")
    page = window.open(f"/runs/{run}/fork?at={at}")
    page.locator("main form .primary").click()
    page.wait_for_url(lambda url: "/fork" not in url)
    page.wait_for_selector("li.turn >> nth=1")
    seconds = page.locator("li.turn .turn-facts span:text-matches('^[0-9.]+ s$')").all_inner_texts()
    assert all(float(one.removesuffix(" s")) < 60 for one in seconds)
    assert page.locator(".seg a", has_text="Trouble").inner_text().split() == ["Trouble", "0"]
    agents = page.locator("li.turn .turn-head > .faint").all_inner_texts()
    assert len({one.partition("·")[2] for one in agents}) == len(agents)
    window.check()


HAN = re.compile("[\u4e00-\u9fff]")


def test_records_reasons_verdicts_labels_and_choices_are_chinese_on_chinese_pages(demo: DeskServer, visit) -> None:
    window: Any = visit(demo, locale="zh-CN")
    for run in ("completed", "board", "review", "document", "ready", "stopped", "failed"):
        page = window.open(f"/runs/{RUNS[run].replace(':', '%3A')}?see=records")
        names = page.locator("li.rec .what b").all_text_contents()
        assert names and [one for one in names if not HAN.search(one)] == []
        said = page.locator("li.rec .what > span[lang], li.rec .what > span:not(.sr)").all_text_contents()
        assert [one for one in said if one and not one.startswith("（") and not HAN.search(one)] == []
    page = window.open(f"/runs/{RUNS['completed']}/26/why")
    assert all(one.startswith("到 ") for one in page.locator(".cond p").all_inner_texts())
    page = window.open(f"/runs/{RUNS['stopped']}")
    assert "连续两次只说了客套话" in page.locator("[data-piece=verdict]").inner_text()
    assert "courtesy" not in page.locator("[data-piece=verdict]").inner_text()
    page = window.open("/desk?kind=guard")
    assert HAN.search(page.locator(".pane h1").inner_text()) and "The run" not in page.locator(".pane").inner_text()
    page = window.open("/desk?kind=review")
    page = window.open(page.locator(".list .item").first.get_attribute("href").partition("?")[0])
    labels = page.locator(".opts .field > span").all_inner_texts()
    assert labels and [one for one in labels if not HAN.search(one)] == []
    options = [one for one in page.locator(".opts option").all_inner_texts() if one.strip()]
    assert options and [one for one in options if not HAN.search(one)] == []
    window.check()


def test_the_page_of_a_bot_lists_its_conversations_as_its_last_runs(demo: DeskServer, visit) -> None:
    window: Any = visit(demo)
    page = window.open("/workflows/shop")
    runs = page.locator(".aside .card").nth(1).locator("a.mono").all_inner_texts()
    assert runs and all(one.startswith("chat:shop:") for one in runs)
    assert "None yet" not in page.locator(".aside").inner_text()
    page = window.open("/workflows/haiku")
    assert all(one.startswith("haiku-") for one in page.locator(".aside a.mono").all_inner_texts())
    window.check()


@LANGUAGES
def test_paused_runs_are_retried_one_by_one_and_all_at_once(tmp_path: Path, visit, locale: str) -> None:
    world = World(tmp_path)
    world.script([{"reply": "At last."}])
    world.tell(lambda desk: desk.refused("one-aaaaa"))
    with world.served(kind=IDLE) as server:
        window = visit(server, locale=locale)
        page = window.open("/runs/one-aaaaa")
        page.locator("form[action$='/retry'] button").click()
        page.wait_for_selector("#notice")
        assert page.locator("form[action$='/retry']").count() == 0
        world.tell(lambda desk: desk.refused("two-aaaaa"))
        world.tell(lambda desk: desk.refused("three-aaaaa"))
        page = window.open("/runs?status=paused")
        page.locator("form[action='/retry'] button").click()
        page.wait_for_selector("#notice")
        assert "2" in page.locator("#notice").inner_text() and page.locator("form[action='/retry']").count() == 0
        window.check()
    for run in ("one-aaaaa", "two-aaaaa", "three-aaaaa"):
        assert [event.by for event in world.events(run, RetryRequested)] == ["ann"]
