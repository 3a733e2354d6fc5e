"""The page of a run: parts of every style, windows of the timeline, what is beside it, and the pieces that change."""

import re
from pathlib import Path
from typing import Any

import pytest

from ripstop.faces.web.pages import run as run_tabs
from ripstop.faces.web.pages import timeline as timeline_view
from ripstop.faces.web.pages.run import shown_address
from ripstop.history import outline as snapshots
from ripstop.kernel.effects import AgentReplied, AskAgent, Failed, Limits, Usage
from ripstop.kernel.events import CallRefused, Record, RunSettings
from ripstop.kernel.parts import Claim, Claims, Facts, Ledger, LedgerEntry, Line, Paper, Rail, Stage, Talk, Task, Tasks
from ripstop.tools.snapshots.run_files import RunFiles
from tests.engine.looked_at import PLUGINS, every_run
from tests.faces.web.desk_browser import Desk
from tests.faces.web.run_stories import long_run, neighbour, nodes, open_tab, records, review, tabs, tell, turns
from tests.styles.pipeline import pipelines

ADA, BOB = AskAgent(agent="ada"), AskAgent(agent="bob")
MOST_NODES = 5000


# Every style


WAYS = [
    "",
    "?see=turns",
    "?see=records",
    "?see=trouble",
    "/2",
    "/2/why",
    "?part=board",
    "?part=stages",
    "?part=document",
]


@pytest.mark.long
def test_every_kind_of_run_is_shown_in_every_way(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        styles: set[str] = set()
        for run in await every_run(desk.engine):
            style = (await desk.engine.look(run)).run.started.style
            paths = [""] if style in styles else ["", "?see=turns", "?see=records", "?see=trouble", "/2", "/2/why"]
            paths += (
                [] if style in styles else [f"?part={name}" for name in ("board", "stages", "document", "timeline")]
            )
            styles.add(style)
            for path in paths:
                page = await desk.ann.get(f"/runs/{run}{path}")
                found = nodes(page)
                assert (page.status, found.headings, found.bad) == (200, 1, []), (run, path)
        assert styles >= {"graph", "blackboard", "pipeline", "handoff", "conversation"}

    tell(tmp_path, story, plugins=PLUGINS)


RAIL = Rail((Stage("prd", "now"),))
TALK = Talk((Line(1, "li", "hello"), Line(2, "bot", "hi", is_reply=True)))
LEDGER, PAPER = Ledger((LedgerEntry(3, "MAIN", "go"),)), Paper("# A")
CLAIMS, TASKS, FACTS = Claims((Claim(4, "TEST", "92 %"),)), Tasks((Task("1", "a"),)), Facts((("a", 1),))


@pytest.mark.parametrize(
    ("parts", "names"),
    [
        ((), ("timeline",)),
        ((FACTS,), ("timeline",)),
        ((RAIL, FACTS, TALK), ("timeline", "stages")),
        ((RAIL, FACTS, LEDGER, PAPER), ("stages", "timeline")),
        ((RAIL, FACTS, LEDGER, CLAIMS, PAPER), ("stages", "timeline")),
        ((FACTS, TASKS, LEDGER, CLAIMS), ("board", "timeline")),
        ((FACTS, LEDGER, PAPER), ("document", "timeline")),
        ((FACTS, TALK), ("talk", "timeline")),
    ],
)
def test_the_parts_of_a_run_say_which_tabs_it_has(parts: tuple[Any, ...], names: tuple[str, ...]) -> None:
    found = run_tabs.tabs_of(parts)
    assert found.names == names
    shown = [one.part for tab in found.main.values() for one in tab] + [one.part for one in found.beside]
    assert sorted(map(repr, shown)) == sorted(map(repr, parts)), "every part is somewhere"


def test_a_project_opens_with_its_stages_and_a_graph_with_its_timeline(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.project("cowork", pipelines.said("# One"), pipelines.said("# Two\n\nA **draft**."))
        page = await desk.ann.get("/runs/cowork")
        assert tabs(page) == ["stages", "timeline"] and open_tab(page) == "stages"
        assert 'class="rail"' in page.html and "<strong>draft</strong>" in page.html and "Too big." in page.text
        assert f'href="/desk/cowork/{(await desk.open_questions("cowork"))[0]}"' in page.html
        await review(desk, "note", 3)
        assert open_tab(await desk.ann.get("/runs/note")) == "timeline"
        assert open_tab(await desk.ann.get("/runs/note?part=stages")) == "stages"
        assert open_tab(await desk.ann.get("/runs/cowork?see=records")) == "timeline"

    tell(tmp_path, story)


def test_of_a_part_with_many_rows_the_last_ones_are_shown() -> None:
    many = Talk(tuple(Line(n, "li", f"message {n}" if n < 999 else "x" * 5000) for n in range(1000)))
    (shown,) = run_tabs.tabs_of([many]).main["talk"]
    assert isinstance(shown.part, Talk)
    assert len(shown.part.lines) == run_tabs.MOST_ROWS and shown.part.lines[-1].number == 999
    assert shown.left_out == 1000 - run_tabs.MOST_ROWS
    assert shown.part.lines[-1].text == "x" * run_tabs.LONGEST_LINE + "… (999)"


# The timeline


def test_the_page_of_a_long_run_is_a_window_from_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "INTERVAL", 50)

    async def story(desk: Desk) -> None:
        await long_run(desk, "long", 120)
        page = await desk.ann.get("/runs/long")
        length = (await desk.engine.look("long")).run.length
        reads: list[int] = []
        read = desk.engine.journal.read

        async def noted(run_id: str, after: int = 0, **more: Any) -> list[Record]:
            reads.append(after)
            return await read(run_id, after, **more)

        monkeypatch.setattr(desk.engine.journal, "read", noted)
        assert turns(page) == list(range(22, 122)) and nodes(page).count < MOST_NODES
        assert "21 earlier turns" in page.text and "later" not in page.text
        page = await desk.ann.get("/runs/long?see=records")
        assert records(page) == list(range(length - 299, length + 1)) and nodes(page).count < MOST_NODES
        page = await desk.ann.get("/runs/long?at=209")
        assert 209 in records(page) and len(records(page)) == 300
        assert f"{length - records(page)[-1]} later records" in page.text
        assert min(reads) > 0, "no page reads the run from its beginning"

    tell(tmp_path, story)


def test_a_page_says_which_files_of_the_user_its_run_changed(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "a.py").write_text("old")

    async def story(desk: Desk) -> None:
        await long_run(desk, "changer", 2, settings=RunSettings(workspace=str(workspace)))
        assert "Your files" not in (await desk.ann.get("/runs/changer")).text
        began = (await desk.engine.journal.read("changer", most=1))[0].at
        files = RunFiles(workspace, "changer", began)
        begun = files.begin(("",))
        assert begun is not None
        (workspace / "a.py").unlink()
        files.note(begun, ["a.py"])
        page = (await desk.ann.get("/runs/changer")).text
        assert "Your files" in page and "a.py" in page and "ripstop undo-files changer" in page

    tell(tmp_path, story)


@pytest.mark.parametrize("see", ["turns", "records"])
def test_windows_lead_through_the_whole_run_and_back(tmp_path: Path, see: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline_view, "MOST_TURNS", 10)
    monkeypatch.setattr(timeline_view, "MOST_RECORDS", 40)
    numbers = turns if see == "turns" else records

    async def story(desk: Desk) -> None:
        await long_run(desk, "long", 45)
        page = await desk.ann.get(f"/runs/long?see={see}")
        shown, back = numbers(page), list[int]()
        while path := neighbour(page, "prev"):
            page = await desk.ann.get(path)
            shown = numbers(page) + shown
        assert shown == list(range(1, len(shown) + 1)) and shown[-1] >= 46
        while path := neighbour(page, "next"):
            back += numbers(page)
            page = await desk.ann.get(path)
        assert sorted({*back, *numbers(page)}) == shown

    tell(tmp_path, story)


def test_a_search_finds_turns_by_what_was_said_and_where(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await long_run(desk, "long", 20)
        assert turns(await desk.ann.get("/runs/long?q=TURN+17.")) == [17]
        assert len(turns(await desk.ann.get("/runs/long?q=reviewer"))) == 10
        page = await desk.ann.get("/runs/long?q=nothing+like+it")
        assert turns(page) == [] and "0 turns" in page.text

    tell(tmp_path, story)


def test_trouble_is_counted_and_shown_on_its_own(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.ask("odd", ADA, BOB)
        await desk.lead("odd", Failed(reason="the server is down", fault="agent"), AgentReplied(text="fine"))
        page = await desk.ann.get("/runs/odd?see=trouble")
        assert turns(page) == [1] and "the server is down" in page.text and "Trouble 1" in page.text
        assert "Nothing went wrong." not in page.text
        await desk.ask("even", ADA)
        assert "Nothing went wrong." in (await desk.ann.get("/runs/even?see=trouble")).text

    tell(tmp_path, story)


def test_rows_are_what_came_after_a_record_and_nothing_around_them(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await long_run(desk, "long", 20)
        length = (await desk.engine.look("long")).run.length
        page = await desk.ann.get(f"/runs/long/rows?after={length - 4}")
        assert records(page) == list(range(length - 3, length + 1)) and "<nav" not in page.html
        assert records(await desk.ann.get("/runs/long/rows?after=2&before=5")) == [3, 4]
        page = await desk.ann.get(f"/runs/long/rows?see=turns&after={length - 2}")
        assert turns(page) == [20, 21], "the turn that has grown comes again"
        assert turns(await desk.ann.get(f"/runs/long/rows?see=turns&after={length}")) == []

    tell(tmp_path, story)


def test_a_call_under_way_is_shown_with_the_words_so_far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(desk: Desk) -> None:
        await desk.ask("busy", ADA)
        page = await desk.ann.get("/runs/busy")
        assert "ada was asked, and no worker is on it" in page.text
        await desk.engine.journal.enrol(desk.engine.clock())
        monkeypatch.setattr(desk.face.site.feed, "words_so_far", lambda run, number: f"{run}/{number}: <b>so far")
        for path in ("/runs/busy", "/runs/busy?see=records", "/runs/busy/summary"):
            page = await desk.ann.get(path)
            assert (
                "ada is thinking" in page.text and "busy/3: <b>so far" in page.text and 'data-stream="3"' in page.html
            )

    tell(tmp_path, story)


@pytest.mark.parametrize("pauses", [True, False])
def test_a_refused_call_is_shown_as_waiting_and_not_as_at_work(
    tmp_path: Path, pauses: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(desk: Desk) -> None:
        await desk.engine.journal.enrol(desk.engine.clock())
        await desk.ask("poem", ADA)
        again = desk.engine.clock() + 3_600_000_000
        refused = CallRefused(to=3, reason="<b>overloaded", by="acme", again=again, pauses=pauses)
        await desk.engine.tell_fact("poem", refused)
        monkeypatch.setattr(desk.face.site.feed, "words_so_far", lambda *_: "")
        for path in ("/runs/poem", "/runs/poem?see=records", "/runs/poem/summary"):
            page = await desk.ann.get(path)
            assert "ada is thinking" not in page.text and 'data-stream="3"' not in page.html
            assert "ada waits, for the call was refused: <b>overloaded" in page.text
            assert "Refusals of this call: 1" in page.text and "A worker tries again from" in page.text
        for path in ("/runs/poem", "/runs/poem/rows?see=turns&after=0"):
            turn = (await desk.ann.get(path)).html.partition('id="t1"')[2].partition("</li>")[0]
            assert "waits: refused" in turn and "working" not in turn
        await desk.engine.retry("poem")
        page = await desk.ann.get("/runs/poem")
        assert "ada is thinking" in page.text and 'data-stream="3"' in page.html

    tell(tmp_path, story)


def test_pieces_of_the_page_are_in_the_fragment_that_replaces_them(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await review(desk, "note", 3)
        page, fragment = await desk.ann.get("/runs/note"), await desk.ann.get("/runs/note/summary")
        pieces = re.compile(r'data-piece="(\w+)"')
        assert sorted(pieces.findall(page.html)) == sorted(pieces.findall(fragment.html))
        assert '<nav class="side"' not in fragment.html

    tell(tmp_path, story)


# What is beside the timeline


def test_a_limit_that_was_reached_offers_to_raise_it(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.ask("shop", ADA, BOB, ADA, limits=Limits(calls=2))
        await desk.lead("shop", AgentReplied(text="one"), AgentReplied(text="two"))
        page = await desk.ann.get("/runs/shop")
        assert "Stopped by the guard budget.calls" in page.text and "limit 2, found 3" in page.text
        assert page.values("raise.calls") == ["1"] and page.values("length") == [
            str((await desk.engine.look("shop")).run.length)
        ]

    tell(tmp_path, story)


def test_a_guard_that_asks_leads_to_the_desk(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.cycle("essay")
        (number,) = await desk.open_questions("essay")
        page = await desk.ann.get("/runs/essay")
        assert page.html.count(f'href="/desk/essay/{number}"') == 2, "in the card of the verdict, and beside"
        assert not page.values("raise.patience")

    tell(tmp_path, story)


def test_a_run_that_failed_through_its_agent_offers_to_ask_again(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await review(desk, "note")
        await desk.lead("note", AgentReplied(text="no decisions"), AgentReplied(text="none again"))
        page = await desk.ann.get("/runs/note")
        assert "Ended as failed" in page.text and "Fork, and ask again" in page.text

    tell(tmp_path, story)


def test_what_was_spent_is_shown_beside_its_limit(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.ask("shop", ADA, BOB, limits=Limits(tokens=1000, calls=9))
        await desk.lead("shop", AgentReplied(text="one", usage=Usage(200, 50, 0.5)))
        page = await desk.ann.get("/runs/shop")
        assert "250 of 1,000" in page.text and "2 of 9" in page.text and "$0.500" in page.text
        assert re.search(r'<meter[^>]*max="1000"[^>]*value="250"', page.html)

    tell(tmp_path, story)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://api.example.com/v1", "https://api.example.com/v1"),
        ("https://user:secret@api.example.com:8443/v1?key=secret#x", "https://api.example.com:8443/v1"),
        ("http://[::1", ""),
        ("", ""),
    ],
)
def test_an_address_is_shown_without_what_can_be_secret(address: str, shown: str) -> None:
    assert shown_address(address) == shown


def test_settings_are_shown_without_secrets(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        settings = RunSettings(
            model="openai:gpt", base_url="https://u:hunter22@x.example/v1?k=hunter22", workspace="/w/x"
        )
        await desk.ask("shop", ADA, settings=settings)
        page = await desk.ann.get("/runs/shop")
        assert "openai:gpt" in page.text and "https://x.example/v1" in page.text and "/w/x" in page.text
        assert "hunter22" not in page.html

    tell(tmp_path, story)


def test_a_run_leads_to_its_family(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.ask("one", ADA)
        await desk.engine.fork("one", 1, "two")
        assert 'href="/runs/two"' in (await desk.ann.get("/runs/one")).html
        assert 'href="/runs/one?at=1#r1"' in (await desk.ann.get("/runs/two")).html

    tell(tmp_path, story)


def test_a_run_or_record_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.ask("one", ADA)
        for path in ("/runs/nothing", "/runs/nothing/rows", "/runs/one/99", "/runs/one/99/why", "/runs/nothing/3"):
            assert (await desk.ann.get(path)).status == 404, path

    tell(tmp_path, story)


def test_the_page_speaks_chinese_to_those_who_read_it(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await review(desk, "note", 5)
        for path in ("/runs", "/runs/note", "/runs/note/3", "/runs/note/5/why", "/runs/note/fork", "/runs/note/cancel"):
            page = await desk.ann.get(path, accept_language="zh-CN,zh;q=0.9")
            assert page.status == 200 and '<html lang="zh-Hans"' in page.html and "运行" in page.text

    tell(tmp_path, story)


def test_a_window_has_the_size_that_a_browser_can_hold() -> None:
    assert (timeline_view.MOST_TURNS, timeline_view.MOST_RECORDS) == (100, 300)
