"""W-35 to W-39: conversations, boards, projects and documents on the desk."""

import json
import secrets
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path

import pytest

from ripstop.app.application import App
from ripstop.faces.demo.world import RUNS
from ripstop.kernel.effects import Say, ToolReturned
from ripstop.kernel.events import Asked, Heard
from ripstop.styles.conversation.chats import Chats
from ripstop.styles.conversation.events import SessionTaken, StatusChanged
from ripstop.styles.handoff.demo import FLOUR, OVEN
from ripstop.styles.handoff.events import EditAccepted, EditRefused
from ripstop.styles.handoff.service import open_documents
from tests.faces.web.desk_browser import Desk
from tests.styles.pipeline import pipelines
from tests.web.desk_server import DeskServer, Person
from tests.web.served_world import HOLD
from tests.web.waiting import until
from tests.web.worlds import IDLE, World

BOT = """
name: Shop
tone: brief
greeting: Good day.
sop: Say hello.
constraints: None.
tools:
  - { name: reply, description: Look it up }
timers:
  - { delay: 20 minutes, message: "Are you still there?" }
"""
TYPING = {"reasoning": "r", "next_status": "typing", "action": None, "response": "hello"}
LOOKS_UP = {
    "reasoning": "r",
    "next_status": "processing",
    "action": {"type": "TOOL", "target": "reply", "params": {}},
    "response": None,
}
HANDS_OVER = {
    "reasoning": "r",
    "next_status": "transferred",
    "action": {"type": "SYSTEM", "target": "handoff", "params": {}},
    "response": "One moment.",
}
PLAN = {"name": "Shop", "tone": "brief", "greeting": "Good day.", "sop": "Say hello.", "constraints": "None."}
SCRIPT = [
    {"agent": "planner", "reply": json.dumps({"plan": {**PLAN, "timers": None}, "decision": TYPING})},
    *({"agent": "assistant", "reply": json.dumps(decision)} for decision in (LOOKS_UP, TYPING) * 12),
]
REPLIES = ".msg.bot .bubble"


class Shop:
    """A world with a bot, and the server that works on it."""

    def __init__(self, world: World, server: DeskServer) -> None:
        self.world, self.server = world, server

    def hears(self, session: str, text: str) -> str:
        """Send the bot a message of a user; returns the run."""
        body = json.dumps({"text": text, "id": secrets.token_hex(8)}).encode()
        headers = {"content-type": "application/json"}
        reply = self.server.request("POST", f"/conversations/shop/{session}/messages", headers, body=body)
        assert reply.status in (200, 202), reply.text
        return f"chat:shop:{session}"

    def hold(self, is_held: bool) -> None:
        """Whether the bot takes its time."""
        file = self.world.folder / HOLD
        file.touch() if is_held else file.unlink(missing_ok=True)

    def said(self, run: str) -> int:
        """How often the bot, or a person at the desk, has said something."""
        return sum(isinstance(event.command, Say) for event in self.world.events(run, Asked))

    def status(self, run: str) -> str:
        statuses: list[StatusChanged] = self.world.events(run, StatusChanged)
        return statuses[-1].status if statuses else ""

    def ready(self, session: str, text: str = "Hello?") -> str:
        """A conversation whose first message the bot has answered."""
        run = self.hears(session, text)
        until(lambda: self.status(run) == "ready", "the bot has answered")
        return run


def write_shop(folder: Path) -> None:
    (folder / "shop").mkdir()
    (folder / "shop" / "bot.yaml").write_text(BOT, encoding="utf-8")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    world = World(tmp_path_factory.mktemp("styles"))
    world.script(SCRIPT)
    write_shop(world.folder)
    world.tell(sent_back)
    world.work(lambda app: write_documents(app, world.folder))
    with world.served("shop") as server:
        yield Shop(world, server)


# W-35: conversations


def test_w35_the_page_shows_each_status_as_it_comes(shop: Shop, visit) -> None:
    run = shop.ready("statuses")
    window = visit(shop.server)
    page = window.open(f"/chats/{run}")
    assert page.locator(".crumbs .st").inner_text().strip() == "ready"
    shop.hold(True)
    try:
        shop.hears("statuses", "Where is my parcel?")
        page.locator(".crumbs .st", has_text="processing").wait_for()
    finally:
        shop.hold(False)
    page.locator(".crumbs .st", has_text="ready").wait_for()
    page.locator(REPLIES, has_text="hello").nth(1).wait_for()
    statuses = [event.status for event in shop.world.events(run, StatusChanged)]
    assert statuses[-6:] == ["processing", "typing", "ready"] * 2
    window.check()


def test_w35_a_person_takes_a_conversation_and_the_bot_is_silent(shop: Shop, visit) -> None:
    run = shop.ready("taken")
    window = visit(shop.server)
    page = window.open(f"/chats/{run}")
    with page.expect_navigation():
        page.get_by_role("button", name="Take it over").click()
    assert page.url.endswith(f"/chats/{run}")
    assert "You have this conversation." in page.locator(".composer").inner_text()
    assert page.locator(".crumbs .st").inner_text().strip() == "transferred"
    before = shop.said(run)
    shop.hears("taken", "Is anybody there?")
    page.locator(".msg.user", has_text="Is anybody there?").wait_for()
    page.fill("#say", "Yes, <b>I</b> am 在这里.")
    with page.expect_navigation():
        page.get_by_role("button", name="Send").click()
    page.locator(".msg.me .bubble", has_text="Yes, <b>I</b> am 在这里.").wait_for()
    assert shop.said(run) == before + 1, "what the person said, and nothing of the bot"
    window.check()


def test_w35_a_conversation_that_was_taken_shows_its_timers_as_cancelled(shop: Shop, visit) -> None:
    run = shop.ready("timers")
    window = visit(shop.server)
    page = window.open(f"/chats/{run}")
    assert "Are you still there?" in page.locator("aside").inner_text(), "one is set"
    with page.expect_navigation():
        page.get_by_role("button", name="Take it over").click()
    assert "Are you still there?" not in page.locator("aside").inner_text()
    assert page.locator(".event s").count() == 1
    assert "a person has the conversation" in page.locator(".event", has=page.locator("s")).inner_text()
    window.check()


def test_w35_a_conversation_that_was_given_back_is_answered_by_the_bot(shop: Shop, visit) -> None:
    run = shop.ready("returned")
    window = visit(shop.server)
    page = window.open(f"/chats/{run}")
    with page.expect_navigation():
        page.get_by_role("button", name="Take it over").click()
    shop.hears("returned", "And now?")
    before = shop.said(run)
    with page.expect_navigation():
        page.get_by_role("button", name="Give back to the bot").click()
    assert page.url.endswith(f"/chats/{run}")
    until(lambda: shop.status(run) == "ready" and shop.said(run) > before, "the bot answers what was left")
    page.locator(".crumbs .st", has_text="ready").wait_for()
    page.get_by_role("button", name="Take it over").wait_for()
    window.check()


def test_w35_a_second_person_is_told_who_has_it_and_can_take_it(shop: Shop, visit) -> None:
    run = shop.ready("two")
    assert shop.server.sign_in("ann").post(f"/runs/{run}/act/take", {}, page=f"/chats/{run}").status == 303
    window = visit(shop.server, by="bob")
    page = window.open(f"/chats/{run}")
    assert "ann has this conversation." in page.locator(".composer").inner_text()
    refused = shop.server.sign_in("bob").post(f"/runs/{run}/messages", {"text": "Hi."}, page=f"/chats/{run}")
    assert refused.status == 422 and "ann has this conversation." in refused.text
    with page.expect_navigation():
        page.get_by_role("button", name="Take it over").click()
    assert "You have this conversation." in page.locator(".composer").inner_text()
    assert [event.by for event in shop.world.events(run, SessionTaken)] == ["ann", "bob"]
    window.check()


def test_w35_a_double_click_takes_a_conversation_once(shop: Shop, visit) -> None:
    run = shop.ready("double")
    window = visit(shop.server, java_script_enabled=False)
    page = window.open(f"/chats/{run}")
    page.get_by_role("button", name="Take it over").dblclick()  # the second click breaks off the first answer
    page.wait_for_selector("#say")
    assert [event.by for event in shop.world.events(run, SessionTaken)] == ["ann"]


def test_w35_a_message_that_is_refused_is_kept(shop: Shop) -> None:
    run = shop.ready("kept")
    reply = shop.server.sign_in("ann").post(f"/runs/{run}/messages", {"text": "A <long> message."})
    assert reply.status == 422 and "The bot has this conversation." in reply.text
    assert "A &lt;long&gt; message.</textarea>" in reply.text


def test_w35_a_conversation_on_the_desk_is_answered_there(shop: Shop, visit) -> None:
    run = shop.ready("desk")
    shop.world.tell(lambda desk: Chats(desk.app).take(run, "ann"))
    window = visit(shop.server)
    page = window.open(f"/desk/{run}")
    page.fill("#text", "We are looking for it.")
    with page.expect_navigation():
        page.get_by_role("button", name="Send").click()
    assert "/desk/chat" in page.url, "it stays open until it is given back"
    page.locator(".bubble", has_text="We are looking for it.").wait_for()
    with page.expect_navigation():
        page.get_by_role("button", name="Give the conversation back").click()
    until(lambda: shop.status(run) == "ready", "the bot has it again")
    window.check()


# W-36: a message once, over a crash


@pytest.mark.parametrize(
    "point",
    [
        "engine.before_append",
        pytest.param("sqlite.before_commit", marks=pytest.mark.soak),
        "sqlite.after_commit",
        pytest.param("engine.after_append", marks=pytest.mark.soak),
        pytest.param("engine.before_append:2", marks=pytest.mark.soak),
        pytest.param("sqlite.after_commit:2", marks=pytest.mark.soak),
    ],
)
def test_w36_a_message_whose_server_was_killed_is_said_once_when_it_is_sent_again(tmp_path: Path, point: str) -> None:
    world = World(tmp_path)
    write_shop(tmp_path)
    world.script(
        [{"agent": "planner", "reply": json.dumps({"plan": {**PLAN, "timers": None}, "decision": HANDS_OVER})}]
    )
    run = world.work(lambda app: handed_over(app, tmp_path))
    if ":2" not in point:  # else the message itself takes the conversation: two steps, and a kill between them
        world.tell(lambda desk: Chats(desk.app).take(run, "ann"))
    server = world.serve(kind=IDLE, failpoint=point)
    try:
        ann = server.sign_in("ann")
        form = {**ann.form_fields(f"/chats/{run}"), "text": "It is at the depot."}
        with pytest.raises((HTTPException, OSError)):
            ann.post(f"/runs/{run}/messages", form)
        server.process.wait(60)
    finally:
        server.kill()
    with world.served(kind=IDLE, port=server.port) as after:
        again = Person(after, ann.cookie)
        assert [again.post(f"/runs/{run}/messages", form).status for _ in range(2)] == [303, 303]
        assert again.get(f"/chats/{run}").text.count("It is at the depot.") == 2, "in the talk, and in the list"
    assert [event.text for event in world.events(run, Heard) if event.by == "ann"] == ["It is at the depot."]
    assert sum(event.by == "ann" for event in world.events(run, SessionTaken)) == 1


async def handed_over(app: App, folder: Path) -> str:
    """A conversation that waits for a person, and that none has."""
    chats = Chats(app)
    run = (await chats.tell(folder / "shop", "tom", "Where is my parcel?", by="tom")).id
    await app.wait(run)
    return run


# W-37: boards


def test_w37_what_was_claimed_and_not_shown_is_marked(demo: DeskServer, visit) -> None:
    window = visit(demo)
    page = window.open(f"/runs/{RUNS['board']}")
    wrong = page.locator("tr", has=page.locator("td.no"))
    assert wrong.count() >= 1
    assert "92 %" in wrong.first.inner_text() and "does not have these words" in wrong.first.inner_text()
    assert "not confirmed" in wrong.first.locator("td.no").inner_text(), "in words, not by colour alone"
    right = page.locator("tr", has=page.locator("td.ok"))
    assert right.count() >= 1 and "92 %" not in " ".join(right.all_inner_texts())
    window.check()


def test_w37_the_plan_counts_what_is_done(demo: DeskServer, visit) -> None:
    window = visit(demo)
    page = window.open(f"/runs/{RUNS['board']}")
    card = page.locator(".card", has=page.locator("ul.tasks"))
    tasks, done = card.locator("li").count(), card.locator("li.done").count()
    assert 0 < done < tasks
    assert f"{done} of {tasks} done" in card.locator("header").inner_text()
    meter = card.locator("meter")
    assert (meter.get_attribute("value"), meter.get_attribute("max")) == (str(done), str(tasks))
    window.check()


# W-38: projects


async def sent_back(desk: Desk) -> None:
    """A project whose check asks for a restart at the requirements."""
    run = "sent-back"
    await desk.project(run, pipelines.said("# Draft"))
    await desk.engine.answer(run, (await desk.open_questions(run))[0], choice="pass", by="ann")
    await desk.lead(run, pipelines.WRITTEN, pipelines.WRITTEN, pipelines.begun())
    await desk.lead(run, pipelines.calls("create_requirement", title="One"), ToolReturned(value="REQ-001"))
    await desk.lead(run, pipelines.said("Done."), pipelines.found(), pipelines.begun())
    await desk.lead(run, pipelines.said("Good."), pipelines.FINISHED)
    await desk.lead(run, pipelines.begun(), pipelines.said("index.html"), pipelines.WRITTEN)
    await desk.engine.answer(run, (await desk.open_questions(run))[0], choice="pass", by="ann")
    await desk.lead(run, pipelines.WRITTEN, pipelines.begun(), pipelines.said("Written."), pipelines.SHOWN)
    await desk.engine.answer(run, (await desk.open_questions(run))[0], choice="pass", by="ann")
    await desk.lead(run, pipelines.FINISHED, pipelines.begun(), pipelines.found())
    await desk.lead(run, pipelines.calls("goto_stage", stage="prd", reason="a requirement is missing"))
    await desk.lead(run, pipelines.DONE, pipelines.said("Back."), pipelines.FINISHED, pipelines.CLOSED)


def test_w38_the_rail_shows_which_stage_asked_for_the_restart(shop: Shop, visit) -> None:
    window = visit(shop.server)
    page = window.open("/runs/sent-back?part=stages")
    rail = page.locator("ol.rail li")
    states = dict(zip(rail.all_inner_texts(), [one.get_attribute("class") for one in rail.all()], strict=True))
    by_name = {name.split(":")[-1].split("·")[0].strip(): state for name, state in states.items()}
    assert by_name == {"idea": "done", "prd": "done", "coding": "done", "check": "failed", "delivery": "next"}
    assert page.locator(".sum .st.restart").count() == 1
    window.check()


def test_w38_a_restart_says_why_and_leads_to_what_it_removes(shop: Shop, visit) -> None:
    window = visit(shop.server)
    page = window.open("/runs/sent-back")
    told = page.locator("[data-piece=verdict]").inner_text()
    assert "asks for a restart at 'prd': a requirement is missing" in told
    link = page.locator("[data-piece=verdict] a.b", has_text="Restart at prd")
    assert link.get_attribute("href") == "/runs/sent-back/restart?stage=prd"
    window.check()


# W-39: documents


async def write_documents(app: App, folder: Path) -> None:
    documents = await open_documents(app, folder, lambda trouble: None)
    for name in ("till", "oven", "sign", "flour", "lamp"):
        await documents.new(f"About the {name}", owner="ann", creator="bob", named=name)
        await app.wait(await documents.run_of(name))


class Document:
    def __init__(self, shop: Shop, name: str) -> None:
        self._shop, self._name = shop, name
        self.run: str = shop.world.tell(self._find)
        (self.file,) = [
            path
            for path in (shop.world.folder / ".workflows").rglob("*.md")
            if f"About the {name}" in path.read_text(encoding="utf-8")
        ]
        self.page = f"/documents/{self.run}"

    async def _find(self, desk: Desk) -> str:
        return await (await open_documents(desk.app, self._shop.world.folder, print)).run_of(self._name)

    def edit(self, old: str, new: str) -> None:
        """Change the file, as an editor does."""
        text = self.file.read_text(encoding="utf-8")
        assert old in text
        self.file.write_text(text.replace(old, new, 1), encoding="utf-8")

    def read_back(self) -> None:
        """Another process reads the files."""

        async def read(app: App) -> None:
            await (await open_documents(app, self._shop.world.folder, print)).reconcile()

        self._shop.world.work(read)


def test_w39_only_what_is_legal_is_offered_and_it_is_done(shop: Shop, visit) -> None:
    till = Document(shop, "till")
    window = visit(shop.server)
    page = window.open(till.page)
    legal = page.locator("aside .card", has_text="What is legal now")
    assert "Accept" in legal.inner_text() and "Complete" not in legal.inner_text()
    with page.expect_navigation():
        legal.get_by_role("link", name="Accept").click()
    with page.expect_navigation():
        page.locator("form.form button.primary").click()
    assert page.url.endswith(till.page)
    assert "Complete" in page.locator("aside .card", has_text="What is legal now").inner_text()
    until(lambda: "in_progress" in till.file.read_text(encoding="utf-8"), "the file says so, too")
    window.check()


def test_w39_an_illegal_transition_is_refused_with_the_legal_ones(shop: Shop) -> None:
    oven = Document(shop, "oven")
    ann = shop.server.sign_in("ann")
    before = oven.file.read_text(encoding="utf-8")
    reply = ann.post(f"/runs/{oven.run}/act/complete", {"field.result": "Done."})
    assert reply.status == 422
    assert "accept" in reply.text and "terminate" in reply.text, "what would be legal"
    page = ann.get(f"/runs/{oven.run}/act/complete")
    assert page.status == 422 and "possible now: " in page.text and "accept" in page.text
    assert oven.file.read_text(encoding="utf-8") == before


def test_w39_a_document_that_was_edited_meanwhile_is_not_moved_on(shop: Shop, visit) -> None:
    sign = Document(shop, "sign")
    window = visit(shop.server, java_script_enabled=False)
    page = window.open(sign.page)
    with page.expect_navigation():
        page.get_by_role("link", name="Accept").click()
    page.fill("input[name='field.message']", "I take it.")
    sign.edit("About the sign", "About the large sign")
    sign.read_back()
    with page.expect_response(lambda reply: reply.request.method == "POST") as refused:
        page.locator("form.form button.primary").click()
    assert refused.value.status == 409
    assert "has changed since this page was made" in page.locator("[role=alert]").inner_text()
    assert page.locator(".failure textarea").input_value() == "I take it.", "what was typed is kept"
    assert len(shop.world.events(sign.run, EditAccepted)) == 1
    assert "About the large sign" in window.open(sign.page).locator("article.prose").inner_text()


def test_w39_the_page_of_a_document_follows_it(shop: Shop, visit) -> None:
    lamp = Document(shop, "lamp")
    window = visit(shop.server)
    page = window.open(lamp.page)
    assert "with ann" in page.locator(".sum").inner_text()
    shown = shop.world.tell(lambda desk: length_of(desk, lamp.run))
    assert shop.server.sign_in("ann").post(f"/runs/{lamp.run}/act/accept", {"seen": str(shown)}).status == 303
    until(lambda: "in_progress" in page.locator(".sum").inner_text(), "the page shows that it was accepted")
    assert page.get_by_role("link", name="Accept").count() == 0
    window.check()


def test_w39_an_edit_that_nobody_has_read_yet_is_not_overwritten(shop: Shop) -> None:
    flour = Document(shop, "flour")
    ann = shop.server.sign_in("ann")
    shown = shop.world.tell(lambda desk: length_of(desk, flour.run))
    flour.edit("About the flour", "About the rye flour")
    reply = ann.post(f"/runs/{flour.run}/act/accept", {"seen": str(shown)})
    assert reply.status in (303, 409)
    until(lambda: shop.world.events(flour.run, EditAccepted, EditRefused), "the edit was found")
    kept = "".join(path.read_text(encoding="utf-8") for path in flour.file.parent.rglob("*") if path.is_file())
    assert "About the rye flour" in kept


async def length_of(desk: Desk, run: str) -> int:
    return (await desk.engine.look(run)).run.length


def test_w39_a_document_whose_owner_is_a_person_is_handled_on_the_desk(demo: DeskServer, visit) -> None:
    window = visit(demo, by="tom")
    page = window.open(f"/desk/{FLOUR}")  # leads to the question that is open
    assert page.locator("#decide button[name=choice]").all_inner_texts() == ["Complete", "Hand over", "Terminate"]
    page.locator("[name='field.result']").fill("Ordered for the third.")
    page.get_by_role("button", name="Complete").click()
    page.wait_for_selector("#notice")
    page = window.open(f"/documents/{FLOUR}")
    assert "completed" in page.locator("[data-swap=sum]").inner_text()
    assert "Ordered for the third." in page.locator("article.prose").inner_text()
    page = window.open(f"/desk/{OVEN}")
    page.locator("[name='field.to']").fill("eve")
    page.locator("[name='field.next_action']").fill("Ring the fitter.")
    page.get_by_role("button", name="Hand over").click()
    page.wait_for_selector("#notice")
    page = window.open(f"/desk/{OVEN}")
    assert (
        "eve" in page.locator(".pane .meta").inner_text() and "Ring the fitter." in page.locator(".prose").inner_text()
    )
    page.get_by_role("button", name="Terminate").click()
    page.wait_for_selector("#notice")
    assert "terminated" in window.open(f"/documents/{OVEN}").locator("[data-swap=sum]").inner_text()
    window.check()
