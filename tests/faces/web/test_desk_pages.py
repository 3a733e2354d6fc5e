"""The desk in a browser: what waits for a person, each kind with all that is needed to decide."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ripstop.app.plugins import BUILT_IN, Plugins
from ripstop.faces.web.pages import desk as desk_pane
from ripstop.faces.web.pages.desk import shown_changes
from ripstop.faces.web.rendering import address
from ripstop.history.answers import QuestionLog
from ripstop.kernel.effects import AgentReplied, AskAgent, AskPerson, Field, Limits
from ripstop.testing import Errands
from tests.faces.web.desk_browser import Desk, Page, a_desk
from tests.styles.pipeline import pipelines

FIRST, SECOND = "# Shop\n\nUsers can upload files.\n", "# Shop\n\nUsers can upload pictures.\n"
EVIL = "<script>alert(1)</script>\u202eevil\x00<img src=x onerror=alert(2)>"
Story = Callable[[Desk], Awaitable[None]]


def tell(folder: Path, story: Story, **options: Any) -> None:
    async def main() -> None:
        async with a_desk(folder, **options) as desk:
            await story(desk)

    asyncio.run(main())


def items(page: Page) -> list[str]:
    """The addresses of the items of the list."""
    return re.findall(r'<a class="item" href="([^"]*)"', page.html)


def current(page: Page) -> list[str]:
    return re.findall(r'<a class="item" href="([^"]*)" aria-current="true"', page.html)


async def halted(desk: Desk) -> None:
    """A run that is stuck, and one that is set aside."""
    for run in ("nowhere", "odd"):
        await desk.engine.start(run, "errands", Errands(outcome="").content())
    await desk.engine.journal.set_aside("odd", "its style is not installed")


async def stopped(desk: Desk, run: str) -> int:
    """A run that has reached its limit of calls and asks whether it may continue; returns the question."""
    await desk.guard(run, Limits(calls=2), *[AskAgent(agent="writer")] * 3)
    await desk.lead(run, AgentReplied(text="one"), AgentReplied(text="two"))
    (number,) = await desk.open_questions(run)
    return number


# The list


@pytest.mark.parametrize(
    ("count", "told"), [(0, "No run is at work."), (1, "1 run is at work."), (3, "3 runs are at work.")]
)
def test_an_empty_desk_says_how_many_runs_are_at_work(tmp_path: Path, count: int, told: str) -> None:
    async def story(desk: Desk) -> None:
        await desk.engine.journal.enrol(desk.engine.clock())
        for number in range(count):
            await desk.ask(f"busy{number}", AskAgent(agent="writer"))
        for path in ("/", "/desk"):
            page = await desk.ann.get(path)
            assert f"Nothing waits for you.{told}" in page.text and page.html.count("<h1") == 1

    tell(tmp_path, story)


def test_the_desk_lists_every_kind_with_its_number(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.review("shop", FIRST)
        await desk.ask("board", AskPerson(question="Salt or pepper?", choices={"salt": "", "pepper": "Black"}))
        await desk.doubt("pay")
        await stopped(desk, "loop")
        await desk.refused("poem")
        chat = await desk.handed_over(tmp_path, "tom", "hello")
        await halted(desk)
        page = await desk.ann.get("/desk")
        (talk,) = await desk.open_questions(chat)
        ids = ["shop/3", "board/3", "pay/5", "loop/10", "poem/5", f"{chat}/{talk}", "nowhere", "odd"]
        assert items(page) == [f"/desk/{one}" for one in ids]
        assert "<title>(8) Desk · ripstop</title>" in page.html and "8 wait for a person" in page.text
        assert "All 8Reviews 1Questions 1In doubt 1Guards 1Outages 1Chats 1Stuck 1Set aside 1" in page.text
        assert "Salt or pepper?" in page.text and "salt / Black" in page.text
        assert current(page) == ["/desk/shop/3"], "wide screens show the first one beside the list"
        assert page.html.count("<h1") == 1 and 'class="split"' in page.html

    tell(tmp_path, story)


def test_the_list_is_narrowed_to_a_kind_and_an_item_keeps_it(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        for run in ("a", "b"):
            await desk.review(run, FIRST)
            await desk.ask(f"{run}-question", AskPerson(question="Why?"))
        await halted(desk)
        page = await desk.ann.get("/desk?kind=question")
        assert items(page) == ["/desk/a-question/3?kind=question", "/desk/b-question/3?kind=question"]
        chosen = await desk.ann.get("/desk/b-question/3?kind=question")
        assert items(chosen) == items(page) and current(chosen) == ["/desk/b-question/3?kind=question"]
        assert 'class="split open"' in chosen.html and 'href="/desk?kind=question"' in chosen.html
        assert items(await desk.ann.get("/desk?kind=stuck")) == ["/desk/nowhere?kind=stuck"]
        nothing = await desk.ann.get("/desk?kind=handoff")
        assert nothing.status == 200 and "Nothing of this kind waits for you." in nothing.text
        assert len(items(await desk.ann.get("/desk?kind=nonsense&after=nonsense"))) == 6

    tell(tmp_path, story)


def test_pages_of_the_list_have_each_question_once_and_the_stopped_runs_at_the_end(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        for number in range(120):
            await desk.ask(f"q{number}", AskPerson(question=f"Question {number}?"))
        await halted(desk)
        found: list[str] = []
        page = await desk.ann.get("/desk")
        while True:
            found += [one.partition("?")[0] for one in items(page)]
            more = re.search(r'<a class="b" rel="next" href="([^"]*)"', page.html)
            if not more:
                break
            assert len(items(page)) == 50
            page = await desk.ann.get(more[1])
        assert found == [*(f"/desk/q{number}/3" for number in range(120)), "/desk/nowhere", "/desk/odd"]

    tell(tmp_path, story)


def test_the_list_reads_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(desk: Desk) -> None:
        for number in range(3):
            await desk.review(f"r{number}", FIRST)
        read = desk.engine.journal.read
        asked: list[str] = []

        async def watched(run_id: str, *args: Any, **options: Any) -> Any:
            asked.append(run_id)
            return await read(run_id, *args, **options)

        monkeypatch.setattr(desk.engine.journal, "read", watched)
        await desk.ann.get("/desk")
        assert set(asked) <= {"r0"}, "only the item that is shown is read"

    tell(tmp_path, story)


# Each kind


@pytest.mark.req("S3-28", "S3-29")
def test_a_first_draft_is_previewed_with_its_stage_and_all_ways_to_decide(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.project("cowork", pipelines.said("# Requirements\n\n- **one**\n"))
        (number,) = await desk.open_questions("cowork")
        page = await desk.ann.get(f"/desk/cowork/{number}")
        assert page.status == 200 and "<h1>" in page.html and "Review the draft of the stage" in page.text
        assert "a to-do list in the browser" in page.text and "Draft 1 · asked" in page.text
        assert '<ol class="rail"' in page.html and 'aria-current="step"' in page.html
        assert "<strong>one</strong>" in page.html and "Changes since" not in page.text
        assert 'value="pass" formnovalidate aria-keyshortcuts="Shift+P"' in page.html
        assert '<select name="field.type">' in page.html and '<select name="field.severity">' in page.html
        assert 'aria-keyshortcuts="v"' in page.html and 'aria-keyshortcuts="e"' in page.html
        assert f'href="/runs/cowork/{(await desk.engine.look("cowork")).run.state.draft_number}"' in page.html

    tell(tmp_path, story)


def test_a_later_draft_shows_what_has_changed_since_the_one_that_was_answered(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        first, second = "- 任务按创建时间排序。\n- same\n", "- 任务按创建时间排序，最新的在前。\n- same\n"
        await desk.project("cowork", pipelines.said(first), pipelines.said(second))
        (number,) = await desk.open_questions("cowork")
        page = await desk.ann.get(f"/desk/cowork/{number}")
        assert "Changes since draft 1 +1 −1" in page.text and 'aria-keyshortcuts="c" aria-current="true"' in page.html
        assert "<ins><bdi>，最新的在前</bdi></ins>" in page.html, "Chinese is compared by character"
        assert "ann, Draft 1 ·Too big. Severity: major" in page.text
        preview = await desk.ann.get(f"/desk/cowork/{number}?view=preview")
        assert '<table class="diff">' not in preview.html and "<li>same</li>" in preview.html

    tell(tmp_path, story)


def test_the_source_can_be_edited_as_it_is(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.review("shop", "\n# Shop & <b>more</b>\n\u202e")
        page = await desk.ann.get("/desk/shop/3?view=source")
        source = re.search(r'<textarea class="source"[^>]*>\n(.*?)</textarea>', page.html, re.DOTALL)
        assert source and source[1] == "\n# Shop &amp; &lt;b&gt;more&lt;/b&gt;\n\u202e"
        assert 'spellcheck="true"' in page.html and 'form="decide"' in page.html
        assert "This text has characters that are not seen." in page.text
        assert re.search(r'name="base" value="[0-9a-f]{64}"', page.html) and "Save as the draft and pass" in page.text

    tell(tmp_path, story)


def test_a_document_that_is_too_long_is_cut_and_cannot_be_edited_in_a_page(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.review("long", "word " * 60_000, "other " * 60_000)
        page = await desk.ann.get("/desk/long/3")
        assert "only its beginning is shown" in page.text and 'href="/runs/long/2"' in page.html
        assert len(page.html) < 500_000
        source = await desk.ann.get("/desk/long/3?view=source")
        assert "ripstop answer long/3 edit --file FILE" in source.text and "<textarea class" not in source.html

    tell(tmp_path, story)


def test_long_changes_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    from ripstop.text.differences import difference

    old = "".join(f"line {number}\n" for number in range(100))
    monkeypatch.setattr(desk_pane, "MOST_CHANGES", 30)
    shown = shown_changes(difference(old, old.replace("line", "row")))
    assert sum(len(hunk.lines) for hunk in shown.hunks) == 30
    assert (shown.added, shown.removed, shown.left_out) == (100, 100, 170)
    monkeypatch.setattr(desk_pane, "SHOWN", 100)
    assert sum(len(hunk.lines) for hunk in shown_changes(difference(old, old.upper())).hunks) < 15


def test_a_doubt_shows_what_is_on_record_and_chooses_nothing(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.doubt("deploy", evidence="Its worker died, or was stopped.", release=4, to="production")
        page = await desk.ann.get("/desk/deploy/5")
        assert "Did this call take effect? deploy" in page.text and "It must not be repeated blindly." in page.text
        assert "in doubt: Its worker died, or was stopped." in page.text
        assert "Called deploy unsafe" in page.text.replace("Calleddeploy", "Called deploy") and "deploy/3" in page.text
        assert "<dt" in page.html and "release4" in page.text and 'to"production"' in page.text
        for record in (3, 4):
            assert f'href="/runs/deploy/{record}"' in page.html
        assert page.values("choice") == ["happened", "again", "give up"] and " checked" not in page.html
        assert page.html.count('type="radio" name="choice"') == page.html.count(" required>")

    tell(tmp_path, story)


def test_a_call_that_is_to_be_allowed_is_shown_key_by_key_and_whole(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        memo, lines = "x" * 30_000, "one\ntwo  spaces <b>\u202e"
        arguments = {"memo": memo, "lines": lines, "to": "eve  @", "more": {"deep": [1]}}
        ask = AskPerson(question="May it?", choices={"approve": "", "reject": ""}, arguments=arguments)
        await desk.ask("pay", ask)
        page = await desk.ann.get("/desk/pay/3")
        assert page.html.count("<details><summary>") == 3
        assert memo in page.html and "30,000 characters" in page.text
        assert "one\ntwo  spaces &lt;b&gt;" in page.html and "\u202e" not in page.html
        assert "&#34;eve  @&#34;" in page.html

    tell(tmp_path, story)


def test_a_guard_that_holds_a_limit_offers_to_raise_it_by_the_amount_that_is_best(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        number = await stopped(desk, "loop")
        page = await desk.ann.get(f"/desk/loop/{number}")
        assert "The next call would bring calls to 3; the limit is 2." in page.text
        assert page.values("choice") == ["continue", "stop"] and page.values("field.raise") == ["1"]
        assert "Raise calls by" in page.text and "Fork at record" not in page.text

    tell(tmp_path, story)


def test_a_cycle_is_shown_round_by_round_with_a_fork_at_the_last_progress(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.cycle("essay")
        (number,) = await desk.open_questions("essay")
        verdict = (await desk.engine.look("essay")).run.verdict
        assert verdict is not None and verdict.guard == "circle" and len(verdict.evidence) == 6
        page = await desk.ann.get(f"/desk/essay/{number}")
        rows = re.findall(r"<tr><td class=\"num\">(\d+)</td>(.*?)</tr>", page.html, re.DOTALL)
        assert [row[0] for row in rows] == ["1", "2", "3"]
        linked = [int(one) for row in rows for one in re.findall(r'href="/runs/essay/(\d+)"', row[1])]
        assert linked == list(verdict.evidence)
        assert f'href="/runs/essay/fork?at={verdict.progress}"' in page.html
        assert page.values("field.raise") == ["3"] and "Raise patience by" in page.text

    tell(tmp_path, story)


def test_a_question_shows_its_text_as_markdown_with_its_choices(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        choices = {"yes": "写明价格", "no": "", "other": "Something else"}
        await desk.ask(
            "poster", AskPerson(question="**价格**？\n\n- 一\n- 二", choices=choices, other="other", to="bob")
        )
        page = await desk.ann.get("/desk/poster/3")
        assert "<strong>价格</strong>" in page.html and "<li>一</li>" in page.html and "for bob" in page.text
        assert page.values("choice") == ["yes", "no", "other"] and "写明价格" in page.text
        assert '<textarea id="text" name="text"' in page.html and " required" not in page.html
        await desk.ask("plain", AskPerson(question="Go?", choices={"go": "", "stay": ""}))
        plain = await desk.ann.get("/desk/plain/3")
        assert plain.html.count(" required") == 2 and 'name="text"' not in plain.html

    tell(tmp_path, story)


def test_a_question_with_fields_is_a_form_whose_refusal_needs_none_of_them(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        fields = {
            "name": Field("Your name", "text", (), True),
            "seats": Field("", "integer"),
            "window": Field("At the window", "boolean"),
            "meal": Field("Meal", "one_of", ("fish", "rice"), True),
            "days": Field("Days", "some_of", ("Mon", "Tue")),
        }
        choices = {"accept": "", "decline": ""}
        await desk.ask("trip", AskPerson(question="Where to?", choices=choices, empty="decline", fields=fields))
        page = await desk.ann.get("/desk/trip/3")
        for name in fields:
            assert f'name="field.{name}"' in page.html
        assert "seats" in page.text, "a field without a label has its name"
        assert 'value="decline" formnovalidate' in page.html

    tell(tmp_path, story)


def test_a_conversation_shows_what_was_said_and_who_has_it(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        run = await desk.handed_over(tmp_path, "tom", "Where is my parcel?", by="ann")
        (number,) = await desk.open_questions(run)
        mine, theirs = await desk.ann.get(f"/desk/{run}/{number}"), await desk.bob.get(f"/desk/{run}/{number}")
        assert "Where is my parcel?" in mine.text and "You have this conversation. The bot is silent." in mine.text
        assert 'name="choice" value="release"' in mine.html and 'name="choice" value="reply"' in mine.html
        assert "ann has this conversation." in theirs.text and 'name="text"' not in theirs.html
        assert f'href="/runs/{run}/act/take"' in theirs.html and "act/take" not in mine.html

    tell(tmp_path, story)


def test_a_run_that_cannot_go_on_shows_why_and_what_to_do(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await halted(desk)
        stuck, aside = await desk.ann.get("/desk/nowhere"), await desk.ann.get("/desk/odd")
        assert "Nothing can move this run any more." in stuck.text and 'href="/runs/nowhere/fork"' in stuck.html
        assert "its style is not installed" in aside.text and 'action="/runs/odd/resume"' in aside.html
        await desk.review("shop", FIRST)
        assert (await desk.ann.get("/desk/shop")).to == "/desk/shop/3"
        await desk.engine.answer("shop", 3, choice="pass")
        assert (await desk.ann.get("/desk/shop")).to == "/runs/shop"
        assert (await desk.ann.get("/desk/nobody")).status == 404

    tell(tmp_path, story)


def test_an_answered_question_says_who_answered_what_and_leads_on(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.review("shop", FIRST, SECOND)
        await desk.ask("other", AskPerson(question="And this?"))
        await desk.engine.answer("shop", 3, "Pictures only.", by="bob")
        page = await desk.ann.get("/desk/shop/3")
        assert page.status == 200 and "Answered by bob" in page.text and "Pictures only." in page.text
        assert 'href="/desk/shop/6"' in page.html and "The question is shop/6 now" in page.text
        assert 'rel="next" href="/desk/other/3"' in page.html and "data-answered" in page.html
        assert "<form" not in page.html.partition("data-answered")[2]

    tell(tmp_path, story)


def test_a_withdrawn_question_says_so_and_a_record_that_is_none_is_not_found(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.ask("r", AskPerson(question="Well?"))
        await desk.engine.cancel("r", by="bob", because="enough")
        page = await desk.ann.get("/desk/r/3")
        assert page.status == 200 and "This question is not open any more: it was withdrawn." in page.text
        for path in ("/desk/r/1", "/desk/r/99", "/desk/nobody/3"):
            assert (await desk.ann.get(path)).status == 404

    tell(tmp_path, story)


def test_a_run_of_a_style_that_is_not_installed_still_shows_its_question(tmp_path: Path) -> None:
    async def ask(desk: Desk) -> None:
        await desk.ask("r", AskPerson(question="Well, **then**?"))

    async def look(desk: Desk) -> None:
        page = await desk.ann.get("/desk/r/3")
        assert (
            page.status == 200 and "This run cannot be read here" in page.text and "<strong>then</strong>" in page.html
        )
        assert (await desk.ann.get("/desk")).status == 200

    tell(tmp_path, ask)
    tell(tmp_path, look, plugins=Plugins(BUILT_IN))


def test_a_desk_that_only_looks_has_no_forms(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.review("shop", FIRST)
        await desk.ask("board", AskPerson(question="Salt?"))
        await desk.doubt("pay")
        loop = await stopped(desk, "loop")
        chat = await desk.handed_over(tmp_path, "tom", "hello")
        await halted(desk)
        (talk,) = await desk.open_questions(chat)
        for item in ("shop/3", "board/3", "pay/5", f"loop/{loop}", f"{chat}/{talk}", "nowhere", "odd"):
            page = await desk.ann.get(f"/desk/{item}")
            assert page.status == 200 and 'method="post"' not in page.html, item
        assert (await desk.ann.post("/desk/shop/3", {"choice": "pass"})).status == 403

    tell(tmp_path, story, look_only=True)


# Whatever agents wrote


async def hostile(desk: Desk, folder: Path) -> list[str]:
    """Runs with hostile texts wherever an agent, a tool or a model can write; returns their pages."""
    await desk.review("review", f"# {EVIL}\n", f"# {EVIL}\n\nmore {EVIL}\n", input=EVIL)
    await desk.engine.answer("review", 3, EVIL, by="bob")
    await desk.review("first", f"# {EVIL}\n\n![x](https://evil.example/{EVIL})\n", input=EVIL)
    await desk.doubt("doubt", tool=EVIL, evidence=EVIL, **{EVIL: EVIL})
    fields = {"name": Field(EVIL, "one_of", (EVIL,)), "plain": Field(EVIL)}
    ask = AskPerson(question=EVIL, title=EVIL, to=EVIL, choices={EVIL: EVIL, "b": ""}, other=EVIL, about=(1, 2))
    await desk.ask("question", ask, input=EVIL)
    await desk.ask("fields", AskPerson(question=EVIL, title=EVIL, fields=fields, choices={"a": EVIL}))
    chat = await desk.handed_over(folder, "tom", EVIL.replace("\x00", ""))
    await desk.engine.start("odd", "errands", Errands(outcome="").content())
    await desk.engine.journal.set_aside("odd", EVIL)
    (talk,) = await desk.open_questions(chat)
    (draft,) = await desk.open_questions("review")
    review = [f"/desk/review/{draft}{view}" for view in ("", "?view=preview", "?view=source")]
    rest = ["/desk/doubt/5", "/desk/question/3", "/desk/fields/3", "/desk/odd", "/desk/first/3", "/desk/review/3"]
    return ["/desk", *review, *rest, address(f"/desk/{chat}/{talk}")]


def test_hostile_texts_are_only_text_on_every_page(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        for path in await hostile(desk, tmp_path):
            page = await desk.ann.get(path)
            assert page.status == 200, path
            assert "<script>alert" not in page.html and "<img" not in page.html and "onerror=alert(2)>" not in page.html
            seen = re.sub(r"<textarea.*?</textarea>|<option.*?</option>", "", page.html, flags=re.DOTALL)
            assert "\u202e" not in re.sub(r"<[^>]*>", "", seen), path
            assert "\x00" not in re.sub(r"<[^>]*>", "", seen), path

    tell(tmp_path, story)


def test_pages_are_the_same_in_chinese(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.doubt("pay")
        await stopped(desk, "loop")
        for path, words in (("/desk", "这次调用生效了吗？"), ("/desk/loop/10", "运行从这里继续")):
            page = await desk.ann.get(path, accept_language="zh-CN,zh;q=0.9")
            assert page.status == 200 and words in page.text and '<html lang="zh-Hans"' in page.html

    tell(tmp_path, story)


# Long runs


def test_the_questions_of_a_run_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(desk: Desk) -> None:
        await desk.review("shop", FIRST, SECOND)
        log = QuestionLog(desk.engine, most=1)
        assert list(await log.of("shop")) == [3]
        await desk.engine.answer("shop", 3, "Pictures.", by="bob")
        read = desk.engine.journal.read
        after: list[int] = []

        async def watched(run_id: str, after_number: int = 0, **options: Any) -> Any:
            after.append(options.get("after", after_number))
            return await read(run_id, **{"after": after_number, **options})

        monkeypatch.setattr(desk.engine.journal, "read", watched)
        asked = await log.of("shop")
        assert after == [3] and list(asked) == [3, 6]
        given = asked[3].given
        assert given is not None and (given.by, given.text) == ("bob", "Pictures.") and asked[6].given is None

    tell(tmp_path, story)
