"""The list of runs in a browser, starting a run from a page, and two runs side by side."""

import html
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
import pytest

from ripstop.engine.ports import RunQuery
from ripstop.kernel.effects import AgentReplied, AskAgent, AskPerson, Field, StartRun
from ripstop.kernel.events import CallRefused
from ripstop.styles.graph.definition import END, Agent, Graph, State, Transition
from ripstop.styles.graph.reader import READER
from ripstop.testing import Errands
from tests.faces.web.desk_browser import Desk, Page
from tests.faces.web.run_stories import EVIL, KEY, tell
from tests.styles.loops import says

ADA = AskAgent(agent="ada")


def listed(page: Page) -> list[str]:
    """The runs of the table, in order."""
    return re.findall(r'<tr data-swap="run ([^"]*)"', page.html)


def link(page: Page, rel: str) -> str:
    found = re.search(rf'rel="{rel}" href="([^"]*)"', page.html)
    return found[1].replace("&amp;", "&") if found else ""


def chips(page: Page) -> dict[str, str]:
    return dict(re.findall(r'<a class="chip"[^>]*>([^<]*?) <b>([\d,]+)</b>', page.html))


async def several(desk: Desk) -> None:
    """Runs with different statuses and styles."""
    await desk.ask("busy", ADA)
    await desk.ask("asks", AskPerson(question="Ready?"))
    await desk.ask("done", ADA)
    await desk.lead("done", AgentReplied(text="here"))
    await desk.review("shop", "# Shop")
    await desk.engine.start("nowhere", "errands", Errands(outcome="").content())


# The list


def test_runs_are_listed_newest_first_with_their_status(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await several(desk)
        page = await desk.ann.get("/runs")
        assert listed(page) == ["nowhere", "shop", "done", "asks", "busy"]
        assert chips(page) == {"interrupted": "1", "waiting": "2", "stuck": "1", "completed": "1"}
        assert 'href="/runs/done"' in page.html

    tell(tmp_path, story)


def test_a_run_at_work_is_interrupted_only_while_no_worker_is_alive(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await several(desk)
        assert listed(await desk.ann.get("/runs?status=interrupted")) == ["busy"]
        assert listed(await desk.ann.get("/runs?status=working")) == []
        await desk.engine.journal.enrol(desk.engine.clock())
        assert listed(await desk.ann.get("/runs?status=working")) == ["busy"]
        assert listed(await desk.ann.get("/runs?status=interrupted")) == []

    tell(tmp_path, story)


def test_a_paused_run_is_listed_with_who_refused_it_how_often_and_what_is_next(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.refused("poem", reason="Your <b>credit is used up.")
        await desk.ask("ode", ADA)
        again = desk.engine.clock() + 3_600_000_000
        await desk.engine.tell_fact("ode", CallRefused(to=3, reason="No answer.", by="acme", again=again, pauses=True))
        for path in ("/runs", "/runs?status=paused"):
            page = await desk.ann.get(path)
            assert "Refused by acme: Your <b>credit is used up." in page.text
            assert "Refusals of this call: 1" in page.text and "It waits for you" in page.text
            assert "No worker is running: the first one tries again from" in page.text
        await desk.engine.journal.enrol(desk.engine.clock())
        assert "A worker tries again from" in (await desk.ann.get("/runs")).text

    tell(tmp_path, story)


def test_an_ended_run_is_listed_with_why_it_ended(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.cycle("essay")
        assert gist(await desk.ann.get("/runs")) == "write"
        await desk.engine.cancel("essay", "ann", "No room in this issue.\nPerhaps in the next one.")
        assert gist(await desk.ann.get("/runs")) == "cancelled by ann: No room in this issue."

    def gist(page: Page) -> str:
        found = re.search(r'<td class="c-gist"[^>]*>(.*?)</td>', page.html, re.DOTALL)
        return re.sub(r"<[^>]*>", "", found[1]) if found else ""

    tell(tmp_path, story)


def test_the_chips_count_a_run_that_only_lacks_a_worker_as_interrupted(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await several(desk)
        await desk.ask("starts", StartRun(workflow="child"))
        page = await desk.ann.get("/runs")
        assert chips(page) == {"interrupted": "2", "waiting": "2", "stuck": "1", "completed": "1"}
        assert listed(await desk.ann.get("/runs?status=interrupted")) == ["starts", "busy"]
        assert chips(await desk.ann.get("/runs?q=starts")) == {"interrupted": "1"}
        await desk.engine.journal.enrol(desk.engine.clock())
        assert chips(await desk.ann.get("/runs?q=starts")) == {"waiting": "1"}

    tell(tmp_path, story)


@pytest.mark.parametrize(
    ("query", "runs"),
    [
        ("status=completed", ["done"]),
        ("status=set_aside", []),
        ("style=drafts", ["shop"]),
        ("style=drafts&status=completed", []),
        ("q=o", ["nowhere", "shop", "done"]),
        ("q=sho", ["shop"]),
        ("since=hour", ["nowhere", "shop", "done", "asks", "busy"]),
        ("since=never&status=odd&size=0", ["nowhere", "shop", "done", "asks", "busy"]),
    ],
)
def test_filters_leave_out_what_they_say(tmp_path: Path, query: str, runs: list[str]) -> None:
    async def story(desk: Desk) -> None:
        await several(desk)
        page = await desk.ann.get(f"/runs?{query}")
        assert page.status == 200 and listed(page) == runs
        assert runs or "Clear the filter" in page.text

    tell(tmp_path, story)


def test_children_are_listed_only_when_they_are_asked_for(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.ask("parent", StartRun(workflow="child"))
        await desk.engine.start("parent.3", "errands", Errands().content(), parent=("parent", 3), depth=1)
        assert listed(await desk.ann.get("/runs")) == ["parent"]
        assert listed(await desk.ann.get("/runs?parent=*")) == ["parent.3", "parent"]
        assert listed(await desk.ann.get("/runs?parent=parent")) == ["parent.3"]

    tell(tmp_path, story)


def test_paging_shows_every_run_once_while_new_ones_start(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        for number in range(95):
            await desk.ask(f"run-{number:03}")
        path, seen, pages = "/runs?size=20", [], []
        while path:
            page = await desk.ann.get(path)
            pages.append(path)
            seen += listed(page)
            path = link(page, "next")
            await desk.ask(f"late-{len(seen)}")
        assert seen == [f"run-{number:03}" for number in reversed(range(95))]
        for before in reversed(pages[:-1]):
            page = await desk.ann.get(link(page, "prev"))
            assert "late-" in page.html if before == pages[0] else listed(page) == seen[20 * pages.index(before) :][:20]
        assert not link(page, "prev")

    tell(tmp_path, story)


def test_a_page_has_at_most_two_hundred_rows(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        for number in range(205):
            await desk.ask(f"run-{number:03}")
        assert len(listed(await desk.ann.get("/runs?size=100000"))) == 200
        assert len(listed(await desk.ann.get("/runs"))) == 50

    tell(tmp_path, story)


def test_without_runs_the_list_offers_the_workflows_of_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    async def story(desk: Desk) -> None:
        assert "ripstop init" in (await desk.ann.get("/runs")).text
        READER.example(tmp_path / "workflows" / "first")
        page = await desk.ann.get("/runs")
        assert "No runs yet." in page.text and 'href="/runs/new?workflow=workflows%2Ffirst' in page.html

    tell(tmp_path, story)


def test_hostile_names_and_keys_cannot_act_in_the_list(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.ask(EVIL.replace("/", ""), ADA)
        await desk.ask("aside", ADA)
        await desk.engine.journal.set_aside("aside", f"{EVIL} with the key {KEY}")
        page = await desk.ann.get("/runs")
        assert "<script>alert" not in page.html and "<img" not in page.html
        assert "\u202e" not in re.search(r'class="c-gist".*?</td>', page.html, re.DOTALL)[0]  # type: ignore[index]
        assert KEY not in page.html and "sk-l…" in page.text
        run = re.search(r'class="mono" dir="auto" href="(/runs/%3C[^"]*)"', page.html)
        shown = await desk.ann.get(unquote(html.unescape(run[1]))) if run else page
        assert shown.status == 200 and "<script>alert" not in shown.html and "<img" not in shown.html

    tell(tmp_path, story)


def test_a_fork_is_marked_with_the_run_it_comes_from(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.ask("one", ADA)
        await desk.engine.fork("one", 1, "two")
        assert "fork of one" in (await desk.ann.get("/runs")).text

    tell(tmp_path, story)


# Starting


WRONG = """\
name: wrong
initial_message: a poem
agents:
  - {name: poet, type: coder}
states:
  - name: write
    agent: poet
    start: true
    prompt: "Write."
    transitions:
      - {to: nowhere}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a workflow and a script for its agents."""
    monkeypatch.chdir(tmp_path)
    READER.example(tmp_path / "workflows" / "first")
    (tmp_path / "script.jsonl").write_text('{"reply": "never", "delay": 600}\n')
    (tmp_path / "workflows" / "wrong").mkdir()
    (tmp_path / "workflows" / "wrong" / "workflow.yaml").write_text(WRONG)
    return tmp_path


async def all_runs(desk: Desk) -> list[str]:
    return [info.run_id for info in (await desk.engine.runs(RunQuery())).items]


FORM = {"workflow": "workflows/first", "input": "rain", "model": "script:script.jsonl"}


def test_a_form_that_is_sent_twice_starts_one_run(project: Path) -> None:
    async def story(desk: Desk) -> None:
        intent = {"intent": "a" * 22}
        first = await desk.ann.post("/runs", FORM | intent | {"limit.calls": "7"})
        second = await desk.ann.post("/runs", FORM | intent | {"limit.calls": "7"})
        changed = await desk.ann.post("/runs", FORM | intent | {"input": "snow"})
        (run,) = await all_runs(desk)
        assert [page.status for page in (first, second, changed)] == [303, 303, 303]
        assert {page.to for page in (first, second, changed)} == {f"/runs/{run}"}
        assert "sent before" in changed.headers["set-cookie"]
        started = (await desk.engine.look(run)).run.started
        assert (started.input, started.limits.calls) == ("rain", 7)
        await desk.ann.post("/runs", FORM)
        assert len(await all_runs(desk)) == 2

    tell(project, story)


def test_problems_of_a_workflow_are_shown_with_their_place_before_the_start(project: Path) -> None:
    async def story(desk: Desk) -> None:
        page = await desk.ann.get("/runs/new?workflow=workflows/wrong")
        assert page.status == 200 and re.search(r"workflow\.yaml:\d+:\d+ error:", page.text)
        assert "nowhere" in page.text and "disabled" in page.html
        page = await desk.ann.get("/runs/new?workflow=workflows/first")
        assert "no problems" in page.text and "disabled" not in page.html

    tell(project, story)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"workflow": "workflows/wrong"}, "nowhere"),
        ({"workflow": "workflows/frist"}, "first"),
        ({"workflow": "/etc/passwd"}, "not inside the folder"),
        ({"workflow": "../elsewhere"}, "not inside the folder"),
        ({"workflow": ""}, "Name a workflow"),
        ({"values": "no equals sign"}, "not KEY=VALUE"),
        ({"values": "unknown=1"}, "unknown"),
        ({"limit.calls": "1.5"}, "limit of calls"),
        ({"model": "script:gone"}, "gone"),
    ],
)
def test_a_run_that_cannot_be_started_is_refused_and_keeps_what_was_typed(
    project: Path, fields: dict[str, str], words: str
) -> None:
    async def story(desk: Desk) -> None:
        page = await desk.ann.post("/runs", FORM | {"input": "a text that is long to type"} | fields)
        assert page.status == 422 and words in page.text
        assert await all_runs(desk) == []
        if fields.get("workflow") != "":
            assert "a text that is long to type" in page.html

    tell(project, story)


def test_a_workflow_behind_a_link_out_of_the_folder_is_refused(project: Path, tmp_path_factory: Any) -> None:
    outside = tmp_path_factory.mktemp("outside")
    READER.example(outside / "theirs")
    (project / "linked").symlink_to(outside / "theirs")

    async def story(desk: Desk) -> None:
        page = await desk.ann.post("/runs", FORM | {"workflow": "linked"})
        assert page.status == 422 and "not inside the folder" in page.text

    tell(project, story)


def test_a_program_is_told_in_json_what_it_started(project: Path) -> None:
    async def story(desk: Desk) -> None:
        page = await desk.ann.post("/runs", FORM, accept="application/json")
        (run,) = await all_runs(desk)
        assert msgspec.json.decode(page.html) == {"done": True, "see": f"/runs/{run}", "run": run}
        page = await desk.ann.post("/runs", FORM | {"workflow": "/etc"}, accept="application/json")
        assert page.status == 422 and "not inside" in msgspec.json.decode(page.html)["error"]

    tell(project, story)


# Comparing


def graph(name: str, wanted: int) -> bytes:
    write = State("write", "writer", "Go.", (Transition(END, f"score >= {wanted}"), Transition("write")))
    return msgspec.json.encode(Graph(name=name, start="write", agents=(Agent("writer"),), states=(write,)))


def test_a_fork_is_compared_with_its_origin_behind_what_they_share(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.engine.start("essay-one", "graph", graph("essay", 8), "rain")
        await desk.lead("essay-one", says("A first draft.", score=5), says("A second draft.", score=8))
        records = await desk.engine.journal.read("essay-one")
        last = max(record.number for record in records if record.event.is_fact)
        await desk.engine.fork("essay-one", last, "essay-two", graph("strict", 9))
        await desk.lead("essay-two", says("A third draft.", score=9))
        page = await desk.ann.get("/runs/essay-one/compare/essay-two")
        assert page.status == 200
        assert f"Both share records 1 to {last} (2 turns)." in page.text
        assert "A first draft." not in page.text and page.text.count("A second draft.") >= 2
        assert "A third draft." in page.text
        assert "score &gt;= 9" in page.html and "strict" in page.text
        chosen = await desk.ann.get("/runs/essay-two/compare")
        assert 'href="/runs/essay-two/compare/essay-one"' in chosen.html
        asked = await desk.ann.get("/runs/essay-two/compare?other=essay-one")
        assert (asked.status, asked.to) == (303, "/runs/essay-two/compare/essay-one")

    tell(tmp_path, story)


def test_runs_without_anything_in_common_can_be_compared(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await several(desk)
        page = await desk.ann.get("/runs/busy/compare/shop")
        assert page.status == 200 and "They share no records." in page.text
        assert (await desk.ann.get("/runs/busy/compare/nothing")).status == 404

    tell(tmp_path, story)


def test_two_forks_of_one_run_share_what_both_took_from_it(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        fields = {"sure": Field(type="boolean")}
        await desk.ask("one", ADA, AskPerson(question="Sure?", fields=fields), ADA)
        await desk.lead("one", AgentReplied(text="a"))
        await desk.engine.fork("one", 1, "early")
        await desk.engine.fork("one", 4, "late")
        await desk.engine.fork("late", 4, "later")
        for pair, shared in {
            ("early", "late"): 1,
            ("late", "later"): 4,
            ("later", "early"): 1,
            ("one", "later"): 4,
        }.items():
            page = await desk.ann.get(f"/runs/{pair[0]}/compare/{pair[1]}")
            assert f"records 1 to {shared} " in page.text, pair

    tell(tmp_path, story)
