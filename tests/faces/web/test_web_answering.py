"""Answers from a browser: taken once, word for word, refused with words, and never lost."""

import asyncio
import hashlib
import html
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ripstop.kernel.effects import AgentReplied, AskAgent, AskPerson, Field, Limits, PersonAnswered
from ripstop.kernel.events import Answered, DoubtResolved, GuardTripped, Repeated, Resumed
from ripstop.styles.pipeline.calls import ShownCode
from tests.faces.web.desk_browser import Desk, Page, a_desk
from tests.styles.pipeline import pipelines

FIRST, SECOND = "# Shop\n\nUsers can upload files.\n", "# Shop\n\nUsers can upload pictures.\n"
JSON = "application/json"
Story = Callable[[Desk], Awaitable[None]]


def tell(folder: Path, story: Story, **options: Any) -> None:
    async def main() -> None:
        async with a_desk(folder, **options) as desk:
            await story(desk)

    asyncio.run(main())


def base_of(document: str) -> str:
    return hashlib.sha256(document.encode()).hexdigest()


async def events(desk: Desk, run: str) -> list[Any]:
    return [record.event for record in await desk.engine.journal.read(run)]


def textareas(page: Page) -> list[str]:
    """What fields for long texts hold."""
    found = [one.partition("</textarea>")[0] for one in page.html.split("<textarea")[1:]]
    return [html.unescape(one.partition(">\n")[2]) for one in found]


# Reviews


def test_code_is_shown_to_be_passed_or_to_get_feedback_and_cannot_be_edited(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.code_review("cowork")
        (number,) = await desk.open_questions("cowork")
        page = await desk.ann.get(f"/desk/cowork/{number}")
        assert "Review the code of the stage" in page.text and "+eval(1)" in page.text
        assert "app.js (new, 8 bytes)" in page.text and "view=source" not in page.html
        refused = await desk.ann.post(f"/desk/cowork/{number}", {"choice": "edit", "document": "mine"})
        assert refused.status != 303
        done = await desk.ann.post(f"/desk/cowork/{number}", {"choice": "feedback", "text": "No eval."})
        assert done.status == 303
        await desk.lead("cowork", pipelines.WRITTEN, pipelines.begun(), pipelines.said("Changed."))
        await desk.lead("cowork", pipelines.returned(ShownCode("# The code, again", 1)))
        (number,) = await desk.open_questions("cowork")
        again = await desk.ann.get(f"/desk/cowork/{number}")
        assert again.status == 200 and "The code, again" in again.text, "with what has changed since"
        done = await desk.ann.post(f"/desk/cowork/{number}", {"choice": "pass", "text": ""})
        assert done.status == 303 and await desk.open_questions("cowork") == []

    tell(tmp_path, story)


@pytest.mark.req("S3-30", "S3-31", "S3-32")
def test_a_review_is_passed_or_gets_feedback_with_its_fields(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.project("cowork", pipelines.said("# One"))
        (number,) = await desk.open_questions("cowork")
        fields = {"choice": "feedback", "text": "Too\r\nbig.", "field.type": "quality_issue", "field.severity": "major"}
        done = await desk.ann.post(f"/desk/cowork/{number}", fields)
        assert (done.status, done.to) == (303, "/desk")
        assert "You sent feedback on cowork/" in done.headers["set-cookie"]
        await desk.lead("cowork", pipelines.WRITTEN, pipelines.begun(), pipelines.said("# Two"), pipelines.WRITTEN)
        (number,) = await desk.open_questions("cowork")
        await desk.bob.post(f"/desk/cowork/{number}", {"choice": "pass", "text": "", "field.severity": ""})
        said = {"type": "quality_issue", "severity": "major"}
        assert await desk.answers("cowork") == [
            PersonAnswered(choice="feedback", text="Too\nbig.", fields=said, by="ann"),
            PersonAnswered(choice="pass", by="bob"),
        ]

    tell(tmp_path, story)


@pytest.mark.parametrize("choice", ["feedback", ""])
@pytest.mark.parametrize("text", ["", " \r\n "])
def test_empty_feedback_is_refused_and_never_taken_as_a_pass(tmp_path: Path, choice: str, text: str) -> None:
    async def story(desk: Desk) -> None:
        await desk.review("shop", FIRST)
        page = await desk.ann.post("/desk/shop/3", {"choice": choice, "text": text, "field.severity": "major"})
        assert page.status == 422 and "Pass it, or say what should change." in page.text
        assert 'role="alert"' in page.html and '<option value="major" selected>' in page.html
        assert await desk.answers("shop") == []

    tell(tmp_path, story)


def test_words_without_a_button_are_feedback_even_if_they_are_the_name_of_a_choice(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.review("shop", FIRST)
        assert (await desk.ann.post("/desk/shop/3", {"text": "pass"})).status == 303
        assert await desk.answers("shop") == [PersonAnswered(choice="feedback", text="pass", by="ann")]

    tell(tmp_path, story)


@pytest.mark.req("S3-33")
def test_an_edited_draft_is_taken_word_for_word(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.review("shop", FIRST)
        document = "\n# 商店 & <b>\n\n\ttabs  \n"
        fields = {"choice": "edit", "document": document.replace("\n", "\r\n"), "base": base_of(FIRST), "text": "mine"}
        assert (await desk.ann.post("/desk/shop/3", fields)).status == 303
        assert await desk.answers("shop") == [
            PersonAnswered(choice="edit", text="mine", document=document, by="ann"),
        ]

    tell(tmp_path, story)


@pytest.mark.req("S3-33")
def test_an_edit_of_another_draft_is_refused_and_shown_beside_the_draft_now(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.review("shop", FIRST)
        fields = {"choice": "edit", "document": "# Shop\n\nMine.\n", "base": base_of("an older draft")}
        page = await desk.ann.post("/desk/shop/3", fields)
        assert page.status == 409 and "The draft that you edited is not the one that is reviewed now." in page.text
        assert "# Shop\n\nMine.\n" in textareas(page) and '<table class="diff">' in page.html
        assert page.values("base") == [base_of(FIRST)], "who has seen the difference can save it"
        assert await desk.answers("shop") == []

    tell(tmp_path, story)


def test_an_edit_of_a_draft_that_was_answered_is_kept_and_can_be_saved_to_the_new_one(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.review("shop", FIRST, SECOND)
        await desk.engine.answer("shop", 3, "Pictures only.", by="bob")
        mine = "# My shop\n"
        late = await desk.ann.post("/desk/shop/3", {"choice": "edit", "document": mine, "base": base_of(FIRST)})
        assert late.status == 409 and "Answered by bob" in late.text and "Pictures only." in late.text
        assert textareas(late) == [mine] and 'action="/desk/shop/6"' in late.html
        again = {"choice": "edit", "document": mine, "base": late.values("base")[0]}
        assert (await desk.ann.post("/desk/shop/6", again)).status == 303
        assert (await desk.answers("shop"))[-1].document == mine

    tell(tmp_path, story)


def test_an_empty_document_is_refused(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.review("shop", FIRST)
        page = await desk.ann.post("/desk/shop/3", {"choice": "edit", "document": " \r\n", "base": base_of(FIRST)})
        assert page.status == 422 and "The text is empty" in page.text and await desk.answers("shop") == []

    tell(tmp_path, story)


# Once


def test_the_same_answer_again_is_done_already(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.review("shop", FIRST, SECOND)
        fields = {"choice": "feedback", "text": "Pictures only.", "field.severity": "minor"}
        replies = [await desk.ann.post("/desk/shop/3", fields) for _ in range(3)]
        assert [one.status for one in replies] == [303, 303, 303]
        assert len(await desk.answers("shop")) == 1 and await desk.open_questions("shop") == [6]

    tell(tmp_path, story)


def test_an_answer_whose_page_never_came_can_be_sent_again(tmp_path: Path) -> None:
    """The server was killed after it had recorded the answer; the browser sends the form to the next one."""

    async def killed(desk: Desk) -> None:
        await desk.review("shop", FIRST, SECOND)
        await desk.engine.answer("shop", 3, "Pictures only.", choice="feedback", by="ann")

    async def again(desk: Desk) -> None:
        fields = {"choice": "feedback", "text": "Pictures only."}
        assert (await desk.ann.post("/desk/shop/3", fields)).status == 303
        assert (await desk.bob.post("/desk/shop/3", fields)).status == 409
        assert len(await desk.answers("shop")) == 1

    tell(tmp_path, killed)
    tell(tmp_path, again)


def test_two_clicks_at_once_answer_once(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.review("shop", FIRST, SECOND)
        posts = (desk.ann.post("/desk/shop/3", {"choice": "pass"}) for _ in range(8))
        assert {one.status for one in await asyncio.gather(*posts)} == {303}
        assert len(await desk.answers("shop")) == 1

    tell(tmp_path, story)


def test_a_second_answer_is_refused_with_the_name_of_the_first_and_keeps_the_text(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.review("shop", FIRST, SECOND)
        assert (await desk.bob.post("/desk/shop/3", {"choice": "pass"})).status == 303
        late = await desk.ann.post("/desk/shop/3", {"choice": "feedback", "text": "Not <b>yet</b>."})
        assert late.status == 409 and "Answered by bob" in late.text and "It is good" in late.text
        assert textareas(late) == ["Not <b>yet</b>."] and "Nothing was changed by what you sent." in late.text
        same = await desk.ann.post("/desk/shop/3", {"choice": "pass"})
        assert same.status == 409, "what another person did is not what this one did"
        assert [answer.by for answer in await desk.answers("shop")] == ["bob"]

    tell(tmp_path, story)


def test_of_two_people_who_answer_at_once_one_is_told_who_was_first(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        for number in range(5):
            await desk.review(f"race{number}", FIRST)
            path = f"/desk/race{number}/3"
            both = await asyncio.gather(*(one.post(path, {"choice": "pass"}) for one in (desk.ann, desk.bob)))
            assert sorted(page.status for page in both) == [303, 409]
            (answer,) = await desk.answers(f"race{number}")
            assert f"Answered by {answer.by}" in next(page for page in both if page.status == 409).text

    tell(tmp_path, story)


def test_an_answer_to_a_withdrawn_question_is_refused_and_kept(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.ask("r", AskPerson(question="Well?"))
        await desk.engine.cancel("r")
        page = await desk.ann.post("/desk/r/3", {"text": "My long answer"})
        assert page.status == 409 and "it was withdrawn" in page.text and textareas(page) == ["My long answer"]
        assert (await desk.ann.post("/desk/r/1", {"text": "x"})).status == 404

    tell(tmp_path, story)


# Doubts and guards


@pytest.mark.parametrize("text", ["", "happened", "It is live."])
def test_a_doubt_without_a_choice_is_refused(tmp_path: Path, text: str) -> None:
    async def story(desk: Desk) -> None:
        await desk.doubt("deploy")
        page = await desk.ann.post("/desk/deploy/5", {"text": text})
        assert page.status == 422 and "Choose one of the answers first." in page.text
        assert page.values("text") == [text] and await desk.answers("deploy") == []

    tell(tmp_path, story)


@pytest.mark.parametrize(
    ("choice", "event"),
    [("happened", DoubtResolved), ("again", Repeated), ("give up", DoubtResolved)],
)
def test_each_choice_about_a_doubt_does_what_the_kernel_says(tmp_path: Path, choice: str, event: Any) -> None:
    async def story(desk: Desk) -> None:
        await desk.doubt("deploy")
        seen = "Release 4 is live:  <ok>"
        assert (await desk.ann.post("/desk/deploy/5", {"choice": choice, "text": seen})).status == 303
        assert await desk.answers("deploy") == [PersonAnswered(choice=choice, text=seen, by="ann")]
        (found,) = [one for one in await events(desk, "deploy") if isinstance(one, event)]
        if choice == "happened":
            assert found.answer.value == seen

    tell(tmp_path, story)


async def stopped(desk: Desk) -> int:
    """The question of a run that has reached its limit of two calls."""
    await desk.guard("loop", Limits(calls=2), *[AskAgent(agent="writer")] * 5)
    await desk.lead("loop", AgentReplied(text="one"), AgentReplied(text="two"))
    (number,) = await desk.open_questions("loop")
    return number


def test_a_guard_lets_a_run_continue_with_the_limit_raised(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        path = f"/desk/loop/{await stopped(desk)}"
        wrong = await desk.ann.post(path, {"choice": "continue", "field.raise": "many"})
        assert wrong.status == 422 and "raise must be a number" in wrong.text
        assert wrong.values("field.raise") == ["many"] and "checked" in wrong.html
        (prefilled,) = (await desk.ann.get(path)).values("field.raise")
        assert (await desk.ann.post(path, {"choice": "continue", "field.raise": prefilled})).status == 303
        (resumed,) = [one for one in await events(desk, "loop") if isinstance(one, Resumed)]
        assert resumed.raises == {"calls": 1}

    tell(tmp_path, story)


def test_a_guard_stops_a_run_and_raises_nothing(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        path = f"/desk/loop/{await stopped(desk)}"
        assert (await desk.ann.post(path, {"field.raise": "1"})).status == 422
        assert (await desk.ann.post(path, {"choice": "stop", "field.raise": "1"})).status == 303
        assert await desk.answers("loop") == [PersonAnswered(choice="stop", by="ann")]
        assert (await desk.engine.look("loop")).run.ended is not None
        assert any(isinstance(one, GuardTripped) for one in await events(desk, "loop"))

    tell(tmp_path, story)


# Questions


TRIP = AskPerson(
    question="Where to?",
    choices={"accept": "", "decline": ""},
    empty="decline",
    fields={
        "name": Field("Your name", "text", (), True),
        "seats": Field("Seats", "integer"),
        "window": Field("At the window", "boolean", (), True),
        "days": Field("Days", "some_of", ("Mon", "Tue", "Wed")),
    },
)


def test_fields_are_read_by_their_types(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.ask("trip", TRIP, TRIP)
        fields = {"choice": "accept", "field.name": "Ann", "field.seats": "2", "field.days": "Mon,Wed"}
        assert (await desk.ann.post("/desk/trip/3", fields)).status == 303
        (number,) = await desk.open_questions("trip")
        assert (await desk.ann.post(f"/desk/trip/{number}", {"choice": "decline", "field.name": ""})).status == 303
        accepted, declined = await desk.answers("trip")
        assert accepted.fields == {"name": "Ann", "seats": 2, "days": ["Mon", "Wed"], "window": False}
        assert (declined.choice, declined.fields) == ("decline", {})

    tell(tmp_path, story)


def test_a_wrong_field_is_refused_and_everything_that_was_typed_stays(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.ask("trip", TRIP)
        page = await desk.ann.post("/desk/trip/3", {"choice": "accept", "field.name": 'A"nn', "field.seats": "two"})
        assert page.status == 422 and "seats must be a whole number" in page.text
        assert page.values("field.name") == ['A"nn'] and page.values("field.seats") == ["two"]
        empty = await desk.ann.post("/desk/trip/3", {"field.name": ""})
        assert empty.status == 422 and "Choose one of the answers first." in empty.text, "nothing means no refusal here"
        assert await desk.answers("trip") == []

    tell(tmp_path, story)


def test_other_words_are_an_answer_only_where_the_question_takes_them(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        choices = {"salt": "", "else": "Something else"}
        await desk.ask("open", AskPerson(question="Salt?", choices=choices, other="else"))
        await desk.ask("closed", AskPerson(question="Salt?", choices=choices))
        empty = await desk.ann.post("/desk/open/3", {"choice": "else", "text": " \u200b"})
        assert empty.status == 422 and "Say in your own words what “Something else” is." in empty.text
        assert (await desk.ann.post("/desk/open/3", {"text": "a pinch of both"})).status == 303
        assert await desk.answers("open") == [PersonAnswered(choice="else", text="a pinch of both", by="ann")]
        refused = await desk.ann.post("/desk/closed/3", {"text": "a pinch"})
        assert refused.status == 422 and "choose from salt, else" in refused.text
        assert (await desk.ann.post("/desk/closed/3", {"choice": "pepper"})).status == 422
        assert await desk.answers("closed") == []

    tell(tmp_path, story)


# Conversations


def test_a_conversation_stays_open_until_it_is_given_back(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        run = await desk.handed_over(tmp_path, "tom", "Where is my parcel?", by="ann")
        (first,) = await desk.open_questions(run)
        reply = await desk.ann.post(f"/desk/{run}/{first}", {"choice": "reply", "text": "release"})
        (second,) = await desk.open_questions(run)
        assert (reply.status, reply.to) == (303, f"/desk/{run}/{second}"), "the same conversation, not the next item"
        again = await desk.ann.post(f"/desk/{run}/{first}", {"text": "release"})
        assert again.status == 303 and len(await desk.answers(run)) == 1
        stale = await desk.ann.post(f"/desk/{run}/{first}", {"text": "It is at the depot."})
        assert stale.status == 303
        assert (await desk.ann.post(f"/desk/{run}/{first}", {"text": "It is at the depot."})).status == 303
        assert [one.text for one in await desk.answers(run)] == ["release", "It is at the depot."]
        (third,) = await desk.open_questions(run)
        empty = await desk.ann.post(f"/desk/{run}/{third}", {"choice": "reply", "text": " "})
        assert empty.status == 422 and "give the conversation back" in empty.text
        back = await desk.ann.post(f"/desk/{run}/{third}", {"choice": "release", "text": ""})
        assert back.status == 303 and await desk.open_questions(run) == []

    tell(tmp_path, story)


def test_a_conversation_that_another_person_has_is_not_answered(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        run = await desk.handed_over(tmp_path, "tom", "Where is my parcel?", by="ann")
        (number,) = await desk.open_questions(run)
        page = await desk.bob.post(f"/desk/{run}/{number}", {"choice": "reply", "text": "It is here."})
        assert page.status == 422 and "ann has this conversation." in page.text
        assert textareas(page) == ["It is here."] and await desk.answers(run) == []

    tell(tmp_path, story)


# What follows


def test_the_next_item_of_the_same_list_follows(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        for run in ("a", "b", "c"):
            await desk.ask(run, AskPerson(question=f"Question of {run}?"))
        await desk.review("shop", FIRST)
        done = await desk.ann.post("/desk/b/3", {"text": "yes", "kind": "question"})
        assert done.to == "/desk/c/3?kind=question" and "Next: Question of c?" in done.headers["set-cookie"]
        assert (await desk.ann.post("/desk/c/3", {"text": "yes", "kind": "question"})).to == "/desk/a/3?kind=question"
        assert (await desk.ann.post("/desk/a/3", {"text": "yes", "kind": "question"})).to == "/desk/shop/3"
        assert (await desk.ann.post("/desk/shop/3", {"choice": "pass"})).to == "/desk"

    tell(tmp_path, story)


def test_programs_get_json(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.review("shop", FIRST, SECOND)
        refused = await desk.ann.post("/desk/shop/3", {"choice": "feedback"}, accept=JSON)
        assert refused.status == 422 and json.loads(refused.html)["error"] == "Pass it, or say what should change."
        done = json.loads((await desk.ann.post("/desk/shop/3", {"choice": "pass"}, accept=JSON)).html)
        assert (done["done"], done["run"], done["number"], done["status"]) == (True, "shop", 3, "completed")
        late = await desk.bob.post("/desk/shop/3", {"choice": "pass"}, accept=JSON)
        assert late.status == 409 and "was answered already, by ann" in json.loads(late.html)["error"]

    tell(tmp_path, story)


def test_a_form_of_another_session_answers_nothing(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        await desk.review("shop", FIRST)
        assert (await desk.ann.post("/desk/shop/3", {"choice": "pass", "csrf": "another"})).status == 403
        assert await desk.answers("shop") == []

    tell(tmp_path, story)


def test_an_answer_to_another_process_is_seen_at_once(tmp_path: Path) -> None:
    """What another process has recorded since a page was made is not overwritten."""

    async def story(desk: Desk) -> None:
        await desk.review("shop", FIRST, SECOND)
        await desk.ann.get("/desk/shop/3")
        async with a_desk(tmp_path) as other:
            await other.bob.post("/desk/shop/3", {"choice": "pass"})
        page = await desk.ann.post("/desk/shop/3", {"choice": "feedback", "text": "No."})
        assert page.status == 409 and "Answered by bob" in page.text
        facts = [one for one in await events(desk, "shop") if isinstance(one, Answered)]
        assert len(facts) == 1

    tell(tmp_path, story)
