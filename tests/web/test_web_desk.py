"""W-10 to W-17: everything that waits for a person is on the desk, is decided there, and is decided once."""

import json
import re
import threading
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

from ripstop.app.application import App
from ripstop.faces.demo.world import RUNS
from ripstop.kernel.desk_kinds import KINDS
from ripstop.kernel.effects import AgentReplied, AskAgent, AskPerson, Failed, Limits, PersonAnswered
from ripstop.kernel.events import DoubtResolved, Forked, Repeated, Resumed, Started
from tests.faces.web.desk_browser import Desk
from tests.web.desk_server import DeskServer, Person, Reply
from tests.web.waiting import until, wait_until
from tests.web.worlds import IDLE, World, start_project

CHOICES = ("happened", "again", "give up")
PROJECTS = ("passed", "sent-back", "edited")
DRAFTS = ("# Shop\n\nUsers can upload files.\n", "# Shop\n\nUsers can upload pictures.\n", "# Shop\n\nThree.\n")
HAIKU = """\
name: haiku
max_turns: 3
agents:
  - name: poet
    type: ask
states:
  - name: write
    agent: poet
    start: true
    prompt: Write.
    transitions:
      - to: END
        condition: done
      - to: write
        condition: NOT done
"""


class Served:
    """A world, and the server that works on it."""

    def __init__(self, world: World, server: DeskServer) -> None:
        self.world, self.server = world, server

    def review(self, run: str, *drafts: str) -> str:
        """Start a review; returns where it is decided."""
        self.world.tell(lambda desk: desk.review(run, *(drafts or DRAFTS)))
        return f"/desk/{run}/3"

    def ask(self, run: str, ask: AskPerson) -> str:
        self.world.tell(lambda desk: desk.ask(run, ask))
        return f"/desk/{run}/3"

    def question_of(self, run: str) -> str:
        """Where the open question of a run is decided, once there is one."""

        async def look(desk: Desk) -> list[int]:
            return await desk.open_questions(run)

        (number,) = until(lambda: self.world.tell(look), f"{run} asks a person")
        return f"/desk/{run}/{number}"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Projects, calls in doubt and runs that a guard stopped; tests add reviews and questions of their own."""
    world = World(tmp_path_factory.mktemp("desk"))
    world.script([{"reply": f"{number}. {{}}"} for number in range(50)])
    script = world.folder / "project.jsonl"
    lines = [
        {"agent": "idea", "reply": "# Idea\n"},
        *({"agent": "prd", "reply": f"# Requirements\n\nDraft {number}.\n"} for number in range(1, 9)),
    ]
    script.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    (world.folder / "workflows" / "haiku").mkdir(parents=True)
    (world.folder / "workflows" / "haiku" / "workflow.yaml").write_text(HAIKU, encoding="utf-8")

    async def projects(app: App) -> None:
        for name in PROJECTS:
            await start_project(app, name, world.folder / "projects" / name, script)

    async def troubles(desk: Desk) -> None:
        for choice in (*CHOICES, "nothing"):
            await desk.doubt(f"deploy-{choice.replace(' ', '-')}", release=4)
        for name in ("raised", "stopped"):
            await desk.guard(name, Limits(calls=2), *[AskAgent(agent="writer")] * 5)
            await desk.lead(name, AgentReplied(text="one"), AgentReplied(text="two"))
        await desk.cycle("essay")

    world.work(projects)
    world.tell(troubles)
    with world.served() as server:
        yield Served(world, server)


def count_in(text: str) -> int:
    found = re.search(r"[\d,]+", text)
    assert found, text
    return int(found[0].replace(",", ""))


# W-10: what waits


@pytest.mark.parametrize("kind", KINDS)
def test_w10_every_kind_is_listed_and_opens(demo: DeskServer, visit, kind: str) -> None:
    window = visit(demo)
    page = window.open(f"/desk?kind={kind}")
    item = page.locator("a.item").first
    title = item.locator(".item-title").inner_text()
    with page.expect_navigation():
        item.click()
    assert page.locator("article.pane h1").count() == 1 and title
    assert page.locator(f"article.pane .meta .st.{kind}").count() == 1
    assert page.locator("a.item[aria-current=true]").count() == 1
    assert page.locator(".decide, .composer").count() >= 1, "it can be decided"
    window.check()


def test_w10_title_navigation_and_list_have_the_same_count(demo: DeskServer, visit) -> None:
    window = visit(demo)
    page = window.open("/runs")
    shown = count_in(page.locator("nav [data-count=desk]").first.inner_text())
    assert shown >= len(KINDS) and page.title().startswith(f"({shown}) ")
    page = window.open("/desk")
    assert page.title().startswith(f"({shown}) ")
    assert page.locator("a.item").count() == shown
    assert count_in(page.locator(".chip[aria-current=true]").inner_text()) == shown
    kinds = [count_in(chip) for chip in page.locator(".chip:not([aria-current])").all_inner_texts()]
    assert sum(kinds) == shown


def test_w10_the_stream_keeps_the_count(served: Served, visit) -> None:
    served.review("counted")
    window = visit(served.server)
    page = window.open("/runs")
    before = count_in(page.title())
    ann = served.server.sign_in("ann")
    assert ann.post("/desk/counted/3", {"choice": "pass"}).status == 303
    wait_until(page, "n => document.title.startsWith(`(${n}) `)", before - 1)
    assert count_in(page.locator("nav [data-count=desk]").first.inner_text()) == before - 1
    served.review("counted-too")
    wait_until(page, "n => document.title.startsWith(`(${n}) `)", before)
    window.check()


# W-11: reviews


def project_file(served: Served, run: str, path: str) -> Path:
    return served.world.folder / "projects" / run / ".cowork" / path


def test_w11_a_draft_is_passed(served: Served, visit) -> None:
    window = visit(served.server)
    page = window.open(served.question_of("passed"))
    with page.expect_navigation():
        page.get_by_role("button", name="Pass").click()
    assert "You passed passed/" in page.locator("#notice").inner_text()
    assert served.world.answers("passed") == [PersonAnswered(choice="pass", by="ann")]
    window.check()


def test_w11_feedback_reaches_the_history_with_its_kind_and_severity(served: Served, visit) -> None:
    words = "Too big.\n只要一页：<b>no sharing</b> & no reminders."
    window = visit(served.server, by="bob")
    page = window.open(served.question_of("sent-back"))
    page.fill("#text", words)
    page.select_option("select[name='field.type']", "missing_requirement")
    page.select_option("select[name='field.severity']", "critical")
    with page.expect_navigation():
        page.get_by_role("button", name="Send feedback").click()
    history = project_file(served, "sent-back", "session/feedback_history.json")
    until(lambda: history.exists() and "Too big" in history.read_text(encoding="utf-8"), "the feedback is in the file")
    (entry,) = json.loads(history.read_text(encoding="utf-8"))["feedbacks"]
    said = [value for value in entry.values() if isinstance(value, str)]
    assert words in said and "missing_requirement" in said and "critical" in said and "bob" in json.dumps(entry)
    window.check()


def test_w11_an_edit_is_the_draft_word_for_word(served: Served, visit) -> None:
    document = "\n# 需求 & <b>\n\n\ttabs,  two spaces \n</textarea><script>alert(1)</script>\n\"quotes\" 'and' \\n\n"
    window = visit(served.server)
    page = window.open(served.question_of("edited"))
    with page.expect_navigation():
        page.get_by_role("link", name="Edit the source").click()
    page.fill("#document", document)
    with page.expect_navigation():
        page.get_by_role("button", name="Save as the draft and pass").click()
    (answer,) = served.world.answers("edited")
    assert (answer.choice, answer.document) == ("edit", document)
    draft = project_file(served, "edited", "artifacts/prd_draft.md")
    until(lambda: draft.read_text(encoding="utf-8") == document, "the file is what was typed")
    window.check()


# W-12: what has changed


def test_w12_changes_are_those_since_the_draft_that_was_answered_last(served: Served, visit) -> None:
    path = served.review("changes")
    ann = served.server.sign_in("ann")
    assert ann.post(path, {"choice": "feedback", "text": "Pictures."}).status == 303
    assert ann.post(served.question_of("changes"), {"choice": "feedback", "text": "Shorter."}).status == 303
    window = visit(served.server)
    page = window.open(served.question_of("changes"))
    rows = {kind: page.locator(f".diff tr.{kind} td.text").all_inner_texts() for kind in ("removed", "added")}
    assert rows == {"removed": ["Users can upload pictures."], "added": ["Three."]}
    assert "Changes since draft 2" in page.locator("nav.tabs").last.inner_text()


def test_w12_changes_since_an_edit_are_those_since_the_edited_text(served: Served, visit) -> None:
    path = served.review("changes-of-an-edit")
    ann = served.server.sign_in("ann")
    assert ann.post(path, {"choice": "edit", "document": "# Mine\n"}).status == 303
    window = visit(served.server)
    page = window.open(served.question_of("changes-of-an-edit"))
    assert page.locator(".diff tr.removed, .diff tr.added").count() == 0


def test_w12_han_is_compared_by_character(demo: DeskServer, visit) -> None:
    window = visit(demo)
    number = re.search(rf"/desk/{RUNS['review']}/(\d+)", demo.sign_in().get("/desk").text)
    assert number
    page = window.open(f"/desk/{RUNS['review']}/{number[1]}?view=changes")
    added = page.locator(".diff ins").all_inner_texts()
    removed = page.locator(".diff del").all_inner_texts()
    assert "七" in added and "六" in removed
    assert any(text.strip("，。") == "最新的在最上面" for text in added)
    window.check()


def test_w12_two_thousand_changed_lines_are_shown(served: Served, visit, record_property) -> None:
    old, new = ("".join(f"Line {n} of the {word} draft.\n" for n in range(2_000)) for word in ("old", "new"))
    path = served.review("long", old, new)
    served.server.sign_in("ann").post(path, {"choice": "feedback", "text": "All of it."})
    window = visit(served.server)
    page = window.open(served.question_of("long"))
    timing = page.evaluate("performance.getEntriesByType('navigation')[0].toJSON()")
    record_property("seconds to the first byte", round(timing["responseStart"] / 1000, 3))
    record_property("seconds to load", round(timing["loadEventEnd"] / 1000, 3))
    assert page.locator(".diff tr.added, .diff tr.removed").count() == 2_000
    assert "2,000 more lines are not shown" in page.locator("article.pane").inner_text()
    window.check()


# W-13 and W-14: two people


def test_w13_the_second_of_two_browsers_is_told_who_was_first_and_keeps_its_text(served: Served, visit) -> None:
    path = served.review("race")
    ann, bob = visit(served.server), visit(served.server, by="bob", java_script_enabled=False)
    ann.open(path), bob.open(path)
    words = "Not <b>yet</b>,\nplease 等一下."
    bob.page.fill("#text", words)
    with ann.page.expect_response(lambda reply: reply.request.method == "POST") as first:
        ann.page.get_by_role("button", name="Pass").click()
    with bob.page.expect_response(lambda reply: reply.request.method == "POST") as second:
        bob.page.get_by_role("button", name="Send feedback").click()
    assert (first.value.status, second.value.status) == (303, 409)
    assert "Answered by ann" in bob.page.locator("[role=alert]").inner_text()
    assert bob.page.locator("textarea").input_value() == words
    assert [answer.by for answer in served.world.answers("race")] == ["ann"]
    ann.check()


def test_w13_what_a_person_typed_stays_when_another_answers_meanwhile(served: Served, visit) -> None:
    path = served.review("meanwhile")
    bob = visit(served.server, by="bob")
    page = bob.open(path)
    page.fill("#text", "Half a sent")
    assert served.server.sign_in("ann").post(path, {"choice": "pass"}).status == 303
    page.get_by_text("Answered by ann").wait_for()
    assert page.locator("article.pane textarea").input_value() == "Half a sent"
    assert page.get_by_role("button", name="Pass").count() == 0
    bob.check()


def test_w13_of_two_answers_at_once_one_is_taken(served: Served) -> None:
    people = [served.server.sign_in(name) for name in ("ann", "bob")]
    for number in range(8):
        path = served.review(f"at-once-{number}")
        replies: dict[str, Reply] = {}
        # both have the question before them when they answer: its page has no form for who comes after
        forms = [(person, {**person.form_fields(path), "choice": "pass"}) for person in people]

        def send(person: Person, form: dict[str, str], path: str = path, replies: dict[str, Reply] = replies) -> None:
            replies[person.cookie] = person.post(path, form)

        threads = [threading.Thread(target=send, args=one) for one in forms]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(reply.status for reply in replies.values()) == [303, 409]
        (answer,) = served.world.answers(f"at-once-{number}")
        (late,) = [reply for reply in replies.values() if reply.status == 409]
        assert f"Answered by {answer.by}" in late.text


def test_w14_an_edit_of_an_older_draft_is_refused_and_can_be_saved_to_the_new_one(served: Served, visit) -> None:
    path = served.review("older")
    ann = visit(served.server, java_script_enabled=False)
    page = ann.open(f"{path}?view=source")
    page.fill("#document", "# My shop\n")
    assert served.server.sign_in("bob").post(path, {"choice": "feedback", "text": "Pictures."}).status == 303
    with page.expect_response(lambda reply: reply.request.method == "POST") as refused:
        page.get_by_role("button", name="Save as the draft and pass").click()
    assert refused.value.status == 409
    assert page.locator("#document").input_value() == "# My shop\n"
    assert page.locator(".diff tr.added td.text").all_inner_texts() == ["# My shop"], "beside the draft now"
    with page.expect_response(lambda reply: reply.request.method == "POST") as saved:
        page.get_by_role("button", name="Save mine as the draft").click()
    assert saved.value.status == 303
    assert [answer.document for answer in served.world.answers("older")] == [None, "# My shop\n"]


def test_w14_an_edit_of_a_draft_that_never_was_is_refused(served: Served) -> None:
    path = served.review("never")
    reply = served.server.sign_in("ann").post(path, {"choice": "edit", "document": "x", "base": "0" * 64}, page=path)
    assert reply.status == 409 and "Nothing was saved." in reply.text
    assert served.world.answers("never") == []


# W-15: in doubt


def test_w15_nothing_is_chosen_and_nothing_is_sent_without_a_choice(served: Served, visit) -> None:
    window = visit(served.server)
    page = window.open("/desk/deploy-nothing/5")
    assert page.locator("input[type=radio]").count() == len(CHOICES)
    assert page.locator("input[type=radio]:checked").count() == 0
    posts: list[str] = []
    page.on("request", lambda request: posts.append(request.url) if request.method == "POST" else None)
    page.fill("#text", "It is live.")
    page.get_by_role("button", name="Answer").click()
    assert posts == [] and page.locator("input[type=radio]:invalid").count() == len(CHOICES)
    with page.expect_response(lambda reply: reply.request.method == "POST") as refused:
        page.press("#text", "Enter")
    assert refused.value.status == 422
    assert "Choose one of the answers first." in page.locator("[role=alert]").inner_text()
    assert page.locator("#text").input_value() == "It is live."
    assert page.locator("input[type=radio]:checked").count() == 0
    assert served.world.answers("deploy-nothing") == []
    window.check()


@pytest.mark.parametrize("choice", CHOICES)
def test_w15_each_choice_does_what_it_says(served: Served, visit, choice: str) -> None:
    run = f"deploy-{choice.replace(' ', '-')}"
    seen = "Release 4 is live:  <ok>"
    before = served.world.deployed
    window = visit(served.server)
    page = window.open(f"/desk/{run}/5")
    page.check(f"input[type=radio][value='{choice}']")
    page.fill("#text", seen)
    with page.expect_navigation():
        page.get_by_role("button", name="Answer").click()
    assert served.world.answers(run) == [PersonAnswered(choice=choice, text=seen, by="ann")]
    events = served.world.events(run, DoubtResolved, Repeated)
    if choice == "again":
        assert [type(event) for event in events] == [Repeated]
        until(lambda: served.world.deployed > before, "the call is made")
        assert served.world.deployed == before + 1
        return
    (resolved,) = events
    if choice == "happened":
        assert resolved.answer.value == seen
    else:
        assert isinstance(resolved.answer, Failed)
    assert served.world.deployed == before, "it is not called again"
    window.check()


# W-16: guards


def test_w16_a_run_continues_with_the_limit_raised_by_the_amount_that_is_offered(served: Served, visit) -> None:
    window = visit(served.server)
    page = window.open(served.question_of("raised"))
    assert page.locator("input[type=radio]:checked").count() == 0
    assert page.locator("#raise").input_value() == "1"
    page.check("input[type=radio][value=continue]")
    with page.expect_navigation():
        page.get_by_role("button", name="Answer").click()
    (resumed, *_) = served.world.events("raised", Resumed)
    assert resumed.raises == {"calls": 1}
    window.check()


def test_w16_a_run_is_stopped_and_nothing_is_raised(served: Served, visit) -> None:
    window = visit(served.server)
    page = window.open(served.question_of("stopped"))
    page.check("input[type=radio][value=stop]")
    with page.expect_navigation():
        page.get_by_role("button", name="Answer").click()
    assert served.world.answers("stopped") == [PersonAnswered(choice="stop", by="ann")]
    page = window.open("/runs/stopped")
    assert page.locator(".sum .st.limit").count() == 1
    window.check()


def test_w16_a_run_that_went_round_is_forked_at_its_last_progress(served: Served, visit) -> None:
    window = visit(served.server)
    page = window.open(served.question_of("essay"))
    link = page.get_by_role("link", name="Fork at record")
    at = count_in(link.inner_text())
    progress = page.locator(".note", has_text="The last record with progress is").inner_text()
    assert str(at) in progress
    with page.expect_navigation():
        link.click()
    assert page.locator("input[name=at]").input_value() == str(at)
    with page.expect_navigation():
        page.locator("form[action$='/fork'] button.primary").click()
    fork = page.url.rpartition("/")[2]
    (forked,) = served.world.events(fork, Forked)
    rest_of_step = served.world.events("essay")[at : forked.at]
    assert forked.run == "essay" and not any(event.is_fact for event in rest_of_step), "the step of that record"
    assert served.question_of("essay"), "the question is still open: the fork decides nothing"
    window.check()


# W-17: once


def posts_on(page: Any) -> list[str]:
    found: list[str] = []
    page.on("request", lambda request: found.append(request.url) if request.method == "POST" else None)
    return found


@pytest.mark.parametrize("script", [True, False])
def test_w17_a_double_click_answers_once(served: Served, visit, script: bool) -> None:
    path = served.review(f"double-{script}".lower())
    window = visit(served.server, java_script_enabled=script)
    page = window.open(path)
    page.get_by_role("button", name="Pass").dblclick()  # the second click may break off the first answer
    until(lambda: not page.url.endswith(path), "another page is shown", lambda: page.wait_for_timeout(50))
    page.wait_for_load_state()
    assert len(served.world.answers(f"double-{script}".lower())) == 1
    assert page.locator(".failure").count() == 0 and page.locator("[role=alert]").count() == 0
    window.check()


def test_w17_a_reload_after_an_answer_sends_nothing(served: Served, visit) -> None:
    path = served.review("reloaded")
    window = visit(served.server)
    page = window.open(path)
    posts = posts_on(page)
    page.fill("#text", "Pictures.")
    with page.expect_navigation():
        page.get_by_role("button", name="Send feedback").click()
    page.reload()
    page.reload()
    assert len(posts) == 1 and len(served.world.answers("reloaded")) == 1
    window.check()


def test_w17_going_back_and_sending_it_again_answers_once(served: Served, visit) -> None:
    path = served.review("back")
    window = visit(served.server, java_script_enabled=False)
    page = window.open(path)
    page.fill("#text", "Pictures.")
    with page.expect_navigation():
        page.get_by_role("button", name="Send feedback").click()
    page.go_back()
    if page.get_by_role("button", name="Send feedback").count():  # the browser kept the page as it was
        page.fill("#text", "Pictures.")
        with page.expect_response(lambda reply: reply.request.method == "POST") as again:
            page.get_by_role("button", name="Send feedback").click()
        assert again.value.status == 303
    else:
        assert "Answered by ann" in page.locator("article.pane").inner_text()
    assert len(served.world.answers("back")) == 1


def runs_about(world: World, subject: str) -> list[str]:
    """The runs that were started with this input."""

    async def find(desk: Desk) -> list[str]:
        infos = (await desk.engine.runs()).items
        started = [(info.run_id, (await desk.engine.look(info.run_id)).run.started) for info in infos]
        return [run for run, fact in started if fact.input == subject]

    return world.tell(find)


def test_w17_a_double_click_starts_one_run(served: Served, visit) -> None:
    window = visit(served.server, java_script_enabled=False)
    page = window.open("/runs/new?workflow=haiku")
    page.fill("textarea[name=input]", "rain")
    page.locator("form[action='/runs'] button.primary").dblclick()  # the second click breaks off the first answer
    until(lambda: "/runs/haiku-" in page.url, "the run is shown", lambda: page.wait_for_timeout(50))
    (run,) = runs_about(served.world, "rain")
    assert page.url.endswith(f"/runs/{run}")


def test_w17_reload_and_back_after_a_start_start_nothing(served: Served, visit) -> None:
    window = visit(served.server)
    page = window.open("/runs/new?workflow=haiku")
    posts = posts_on(page)
    page.fill("textarea[name=input]", "snow")
    with page.expect_navigation():
        page.locator("form[action='/runs'] button.primary").click()
    page.reload()
    page.go_back()
    page.go_forward()
    assert len(posts) == 1 and len(runs_about(served.world, "snow")) == 1
    window.check()


def test_w17_a_form_that_forks_a_run_forks_it_once(served: Served) -> None:
    served.review("trunk")
    ann = served.server.sign_in("ann")
    form = {**ann.form_fields("/runs/trunk/fork"), "at": "2"}
    replies = [ann.post("/runs/trunk/fork", form) for _ in range(3)]
    assert [reply.status for reply in replies] == [303] * 3
    assert len({reply.headers["location"] for reply in replies}) == 1


# W-17: kill -9 between the request and its answer


POINTS = [
    "engine.before_append",
    pytest.param("sqlite.before_commit", marks=pytest.mark.soak),
    "sqlite.after_commit",
    pytest.param("engine.after_append", marks=pytest.mark.soak),
]


@pytest.mark.parametrize("point", POINTS)
def test_w17_an_answer_whose_server_was_killed_is_taken_once_when_it_is_sent_again(
    tmp_path: Path, visit, point: str
) -> None:
    world = World(tmp_path)
    world.tell(lambda desk: desk.review("shop", *DRAFTS))
    server = world.serve(kind=IDLE, failpoint=point)
    try:
        window = visit(server, java_script_enabled=False)
        page = window.open("/desk/shop/3")
        page.fill("#text", "Pictures.")
        page.get_by_role("button", name="Send feedback").click(no_wait_after=True)
        server.process.wait(60)
    finally:
        server.kill()
    assert len(world.answers("shop")) == (0 if "before" in point else 1)
    with world.served(kind=IDLE, port=server.port):
        with page.expect_response(lambda reply: reply.request.method == "POST") as again:
            page.reload()  # the browser sends the same form again: the same session, the same intent
        assert again.value.status == 303
        assert page.locator("#notice").count() == 1 or page.url.endswith("/desk/shop/6")
    assert world.answers("shop") == [PersonAnswered(choice="feedback", text="Pictures.", by="ann")]


def test_w17_words_that_found_no_server_are_still_in_the_form(tmp_path: Path, visit) -> None:
    world = World(tmp_path)
    world.tell(lambda desk: desk.review("shop", *DRAFTS))
    server = world.serve(kind=IDLE)
    window = visit(server)
    page = window.open("/desk/shop/3")
    page.fill("#text", "Pictures.")
    server.kill()
    with page.expect_event("requestfailed"):
        page.get_by_role("button", name="Send feedback").click(no_wait_after=True)
    with world.served(kind=IDLE, port=server.port):
        page = window.open("/desk/shop/3")
        assert page.locator("#text").input_value() == "Pictures."
        with page.expect_navigation():
            page.get_by_role("button", name="Send feedback").click()
        assert window.open("/desk/shop/6").locator("#text").input_value() == "", "what was taken is not typed again"
    assert world.answers("shop") == [PersonAnswered(choice="feedback", text="Pictures.", by="ann")]


@pytest.mark.parametrize("point", POINTS)
def test_w17_a_run_whose_server_was_killed_while_it_started_is_started_once(tmp_path: Path, point: str) -> None:
    world = World(tmp_path)
    (tmp_path / "workflows" / "haiku").mkdir(parents=True)
    (tmp_path / "workflows" / "haiku" / "workflow.yaml").write_text(HAIKU, encoding="utf-8")
    world.script([{"reply": "{}"}])
    world.tell(lambda desk: desk.review("shop", *DRAFTS))
    server = world.serve(kind=IDLE, failpoint=point)
    try:
        ann = server.sign_in("ann")
        form = {"workflow": "haiku", "input": "rain", **ann.form_fields("/runs/new?workflow=haiku")}
        with pytest.raises((HTTPException, OSError)):
            ann.post("/runs", form)
        server.process.wait(60)
    finally:
        server.kill()
    with world.served(kind=IDLE, port=server.port) as after:
        again = Person(after, ann.cookie)
        replies = [again.post("/runs", form) for _ in range(2)]
        assert [reply.status for reply in replies] == [303, 303]
        run = replies[0].headers["location"].rpartition("/")[2]
        assert replies[1].headers["location"].endswith(run)
    assert len(world.events(run, Started)) == 1

    async def count(desk: Desk) -> int:
        return sum((await desk.engine.journal.counts()).values())

    assert world.tell(count) == 2
