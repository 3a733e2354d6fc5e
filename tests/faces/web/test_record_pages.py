"""The page of a record, and the reasons for it: whole, genuine or not, and harmless whatever it holds."""

import re
import sqlite3
from pathlib import Path

import msgspec

from ripstop.faces.cli.log import why_lines
from ripstop.faces.web.pages import record as record_module
from ripstop.history.timeline import explain, step_of, timeline
from ripstop.kernel.effects import AgentReplied, AskAgent, CallTool, Failed, Limits, ToolCall, ToolReturned
from ripstop.kernel.prompt import seal
from tests.faces.web.desk_browser import Desk
from tests.faces.web.run_stories import EVIL, KEY, nodes, review, tell
from tests.styles.loops import says

ADA, BOB = AskAgent(agent="ada"), AskAgent(agent="bob")


# Records and reasons


async def sealed(desk: Desk, run: str) -> int:
    """Answer the open call with a reply that says what was sent; returns the number of the call."""
    number = min((await desk.engine.look(run)).run.open)
    prompt = (await desk.face.site.outlines.at(run, number)).prompt
    assert prompt is not None
    said = says("Here it is.", drafted=True)
    await desk.lead(run, msgspec.structs.replace(said, sent=seal(prompt)))
    return number


def test_a_prompt_is_genuine_until_the_journal_is_tampered_with(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await review(desk, "note")
        assert "Not sent yet" in (await desk.ann.get("/runs/note/2")).text
        number = await sealed(desk, "note")
        page = await desk.ann.get(f"/runs/note/{number}")
        assert "Genuine." in page.text
        assert "Write a note. Decide drafted." in page.text
        assert "Genuine." in (await desk.ann.get(f"/runs/note/{number + 1}")).text
        assert f'href="/runs/note/{number + 1}"' in page.html

    async def tampered(desk: Desk) -> None:
        for number in (2, 3):
            assert "Not genuine." in (await desk.ann.get(f"/runs/note/{number}")).text

    tell(tmp_path, story)
    with sqlite3.connect(tmp_path / "journal.db") as db:
        db.execute("UPDATE records SET body = replace(body, 'a note', 'a vote')")
    db.close()
    tell(tmp_path, tampered)


def test_a_record_shows_arguments_and_values_as_they_are(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.ask("shop", CallTool(tool="pay", arguments={"amount": 5, "to": "李梅"}), ADA)
        await desk.lead("shop", ToolReturned(value={"receipt": [1, 2]}))
        await desk.lead("shop", AgentReplied(text="Bye.", calls=(ToolCall("c1", "mail", {"to": "tom"}),)))
        page = await desk.ann.get("/runs/shop/3")
        assert '"amount": 5' in page.text and "李梅" in page.text and "Answered in record 4" in page.text
        page = await desk.ann.get("/runs/shop/4")
        assert '"receipt": [' in page.text and "Answers record 3" in page.text
        page = await desk.ann.get("/runs/shop/7")
        assert "Bye." in page.text and '"to": "tom"' in page.text

    tell(tmp_path, story)


def test_a_long_record_is_cut_and_its_download_is_whole(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        text = "".join(f"{number:07} words in a line\n" for number in range(20_000))
        await desk.ask("shop", ADA)
        await desk.lead("shop", AgentReplied(text=text))
        page = await desk.ann.get("/runs/shop/4")
        assert len(page.html) < 2 * record_module.MOST_SHOWN and "more characters are in the download" in page.text
        assert "0000000 words" in page.text and "0019999 words" not in page.text
        file = await desk.ann.get("/runs/shop/4?download=1")
        assert file.headers["content-type"] == "application/octet-stream"
        assert file.headers["content-disposition"] == 'attachment; filename="shop-4.json"'
        assert msgspec.json.decode(file.html)["answer"]["text"] == text

    tell(tmp_path, story)


def test_the_name_of_a_download_holds_nothing_but_plain_letters(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.ask('a"b;\r\n李', ADA)
        file = await desk.ann.get('/runs/a"b;\r\n李/1?download=1')
        assert file.headers["content-disposition"] == 'attachment; filename="a_b_-1.json"'

    tell(tmp_path, story)


def test_why_says_what_the_command_line_says(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await review(desk, "note", 5, 9)
        await desk.ask("shop", ADA, BOB, limits=Limits(calls=1))
        await desk.lead("shop", AgentReplied(text="one"))
        for run in ("note", "shop"):
            told = await timeline(desk.engine, run)
            for one in told:
                number = one.record.number
                page = await desk.ann.get(f"/runs/{run}/{number}/why")
                found = [explain(desk.engine, told, each) for each in step_of(told, number)]
                for why in found:
                    for reason in why.reasons:
                        assert reason.text in page.text and reason.source in page.text
                        assert all(part.strip() in page.text for part in reason.tree)
                    for each in why.evidence:
                        assert all(f'href="/runs/{run}/{n}"' in page.html for n in each.numbers)
                    assert page.html.count('action="/runs/shop/resume"') >= sum(
                        way.action == "resume" for way in why.ways
                    )
                reasons = sum(len(why.reasons) for why in found)
                assert page.html.count('class="cond') == reasons
                notes = sum("(not needed)" in line for why in found for line in why_lines(run, why))
                assert page.text.count("(not needed)") == notes

    tell(tmp_path, story)


def test_why_is_a_fragment_for_a_script_and_a_page_for_a_person(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await review(desk, "note", 5)
        number = next(int(n) for n in re.findall(r'data-why="(\d+)"', (await desk.ann.get("/runs/note")).html))
        fragment = await desk.ann.get(f"/runs/note/{number}/why", x_fragment="1")
        page = await desk.ann.get(f"/runs/note/{number}/why")
        assert fragment.html.startswith('<div class="whys">') and "<html" not in fragment.html
        assert "<html" in page.html and "Why score?" in page.text and "Why score?" in fragment.text

    tell(tmp_path, story)


# Hostile texts


def test_nothing_that_agents_wrote_can_act_anywhere(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.ask("evil", AskAgent(agent=EVIL), CallTool(tool=EVIL, arguments={EVIL: EVIL}), ADA, input=EVIL)
        await desk.lead("evil", AgentReplied(text=EVIL))
        await desk.lead("evil", ToolReturned(value=EVIL))
        await desk.lead("evil", Failed(reason=EVIL))
        length = (await desk.engine.look("evil")).run.length
        paths = [
            "",
            "?see=records",
            "?see=trouble",
            f"?q={'%3Cscript%3E'}",
            "/rows?after=0",
            "/summary",
            "/compare/evil",
        ]
        paths += [f"/{n}{more}" for n in range(1, length + 1) for more in ("", "/why")]
        for path in paths:
            page = await desk.ann.get(f"/runs/evil{path}")
            assert page.status == 200 and nodes(page).bad == [], path
            assert "<script>alert" not in page.html and "\u202e" not in page.html and "\x00" not in page.html, path

    tell(tmp_path, story)


def test_keys_are_masked_in_lists_and_whole_on_the_page_of_their_record(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.ask("shop", ADA)
        await desk.lead("shop", AgentReplied(text=f"The key is {KEY}, and password: hunter2hunter2."))
        for path in ("", "?see=records", "?see=turns", "/rows?after=0", "/4/why"):
            page = await desk.ann.get(f"/runs/shop{path}")
            assert KEY not in page.html and "hunter2" not in page.html, path
        assert KEY in (await desk.ann.get("/runs/shop/4")).text

    tell(tmp_path, story)
