"""Messages over HTTP: heard once, answered, refused with a reason, and never with a path of the client's."""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ripstop.kernel.codec import Codec
from ripstop.kernel.events import Event, Heard
from ripstop.kernel.folding import KNOWN_MESSAGES
from ripstop.styles.conversation.chats import Chats
from ripstop.styles.conversation.http.application import open_face
from tests.styles.conversation.http.served_bot import ChatServer, chat_server, events

Story = Callable[[ChatServer], Awaitable[None]]


def tell(folder: Path, story: Story, **options: Any) -> None:
    async def main() -> None:
        async with chat_server(folder, **options) as server:
            await story(server)

    asyncio.run(main())


async def heard(server: ChatServer, session: str = "ann") -> list[Heard]:
    records = await server.app.engine.journal.read(f"chat:shop:{session}")
    return [record.event for record in records if isinstance(record.event, Heard)]


def test_a_message_is_accepted_and_the_session_shows_the_answer(tmp_path: Path) -> None:
    async def story(server: ChatServer) -> None:
        accepted = await server.say("hi", "m1")
        told = {"run": "chat:shop:ann", "session": "ann", "message": "chat:shop:ann/2"}
        assert (accepted.status_code, accepted.json()) == (202, told)
        await server.app.wait("chat:shop:ann")
        session = await server.client.get("/conversations/shop/ann")
        assert session.status_code == 200
        assert [one["text"] for one in session.json()["messages"]] == ["hi", "hello"]

    tell(tmp_path, story)


def test_with_wait_the_answer_comes_at_once(tmp_path: Path) -> None:
    async def story(server: ChatServer) -> None:
        answered = await server.say("hi", "m1", params={"wait": 10})
        assert answered.status_code == 200
        said = answered.json()["messages"][-1]
        assert (said["kind"], said["text"], said["answers"]) == ("flow", "hello", ["chat:shop:ann/2"])

    tell(tmp_path, story)


def test_every_message_has_an_id_and_says_what_it_answers(tmp_path: Path) -> None:
    async def story(server: ChatServer) -> None:
        server.may_reply.clear()
        sent = [(await server.say(text, id)).json()["message"] for text, id in (("one", "m1"), ("two", "m2"))]
        server.may_reply.set()
        await server.app.wait("chat:shop:ann")
        messages = (await server.client.get("/conversations/shop/ann")).json()["messages"]
        users = {one["sent_as"]: one["id"] for one in messages if one["kind"] == "user"}
        assert users == dict(zip(("m1", "m2"), sent, strict=True))
        answers = {one["id"]: one["answers"] for one in messages if one["kind"] != "user"}
        assert [one for found in answers.values() for one in found] == sent, "each is answered once, by its own flow"
        async with events(server) as stream:
            shown: dict[str, Any] = {}
            while len(shown) < len(answers):
                kind, data = await stream.next()
                if kind == "message" and data["kind"] != "user":
                    shown[data["id"]] = data["answers"]
        assert shown == answers, "the stream and the session agree"

    tell(tmp_path, story)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many steps of the journal were decoded."""
    found: Counter[str] = Counter()
    load_step = Codec.load_step

    def counted(codec: Codec, data: str | bytes) -> list[Event]:
        found["steps"] += 1
        return load_step(codec, data)

    monkeypatch.setattr(Codec, "load_step", counted)
    return found


def test_waiting_for_an_answer_costs_as_much_at_the_hundredth_message_as_at_the_second(
    tmp_path: Path, decoded: Counter[str]
) -> None:
    async def story(server: ChatServer) -> None:
        costs: dict[int, int] = {}
        for number in range(1, 101):
            decoded.clear()
            answered = await server.say("hi", f"m{number}", params={"wait": 10})
            assert [one["text"] for one in answered.json()["messages"]] == ["hello"]
            costs[number] = decoded["steps"]
        steps = len({record.at for record in await server.app.engine.journal.read("chat:shop:ann")})
        assert costs[100] < costs[2] + 10 < steps, "what was said before is not read again"
        decoded.clear()
        chats = Chats(server.app)
        numbers = [await chats.heard_at("chat:shop:ann", f"m{number}") for number in (2, 50, 100)]
        assert (decoded["steps"], numbers) == (0, sorted(numbers)) and all(numbers)

    tell(tmp_path, story)


def test_a_message_is_found_even_if_more_came_since_than_a_session_remembers(tmp_path: Path) -> None:
    async def story(server: ChatServer) -> None:
        for number in range(KNOWN_MESSAGES + 1):
            await server.say("hi", f"m{number}")
        records = await server.app.engine.journal.read("chat:shop:ann")
        first = next(one.number for one in records if isinstance(one.event, Heard))
        chats = Chats(server.app)
        assert (await chats.heard_at("chat:shop:ann", "m0"), await chats.heard_at("chat:shop:ann", "no")) == (first, 0)

    tell(tmp_path, story)


def test_a_message_that_is_delivered_twice_is_heard_once(tmp_path: Path) -> None:
    async def story(server: ChatServer) -> None:
        replies = await asyncio.gather(*(server.say("hi", "m1") for _ in range(20)))
        assert {reply.status_code for reply in replies} == {202}
        await server.say("hi", "m2")
        assert [one.id for one in await heard(server)] == ["m1", "m2"]

    tell(tmp_path, story)


@pytest.mark.parametrize("params", [{}, {"wait": 10}], ids=["accepted", "waited for"])
def test_another_message_with_the_id_of_one_that_was_heard_is_refused(tmp_path: Path, params: dict[str, Any]) -> None:
    async def story(server: ChatServer) -> None:
        first = await server.say("hi", "m1", params=params)
        other = await server.say("Cancel my order", "m1", params=params)
        assert other.status_code == 409
        assert "'m1' was used for another message" in other.json()["error"]
        assert other.json()["hint"] == "Send it with an id of its own."
        again = await server.say("hi", "m1", params=params)
        assert again.status_code == first.status_code
        assert [one.text for one in await heard(server)] == ["hi"]

    tell(tmp_path, story)


def test_of_two_messages_that_come_at_once_with_one_id_one_is_refused(tmp_path: Path) -> None:
    async def story(server: ChatServer) -> None:
        replies = await asyncio.gather(*(server.say(f"message {number}", "m1") for number in range(10)))
        assert sorted(reply.status_code for reply in replies) == [202, *[409] * 9]
        accepted = next(number for number, reply in enumerate(replies) if reply.status_code == 202)
        assert [one.text for one in await heard(server)] == [f"message {accepted}"]

    tell(tmp_path, story)


def test_who_sends_it_is_what_the_door_checked(tmp_path: Path) -> None:
    async def story(server: ChatServer) -> None:
        await server.client.post(
            "/conversations/shop/ann/messages",
            json={"text": "hi", "id": "m1"},
            headers={"x-forwarded-user": "root", "from": "root"},
        )
        assert [one.by for one in await heard(server)] == ["http"]
        claimed = await server.client.post(
            "/conversations/shop/ann/messages", json={"text": "hi", "id": "m2", "by": "root"}
        )
        assert claimed.status_code == 422

    tell(tmp_path, story)


PATHS = [
    ("/conversations/bank/ann", 404),
    ("/conversations/..%2F..%2Fetc/ann", 404),
    ("/conversations/shop/nobody", 404),
    ("/conversations/shop/.a", 422),
    ("/conversations/shop/a!b", 422),
    ("/conversations/shop/ann%0A", 422),
    ("/conversations/shop/%E4%BD%A0", 422),
    ("/conversations/shop/" + "a" * 101, 422),
    ("/conversations/shop/", 404),
    ("/conversations/shop/ann/", 404),
    ("/conversations/shop/ann/messages", 405),
    ("//healthz", 404),
    ("/", 404),
]


def test_answers_only_under_names_that_are_served(tmp_path: Path) -> None:
    async def story(server: ChatServer) -> None:
        for path, status in PATHS:
            reply = await server.client.get(f"http://127.0.0.1:{server.port}{path}")
            assert reply.status_code == status, path
            assert {*reply.json()} == {"error", "hint"}
            assert "location" not in reply.headers

    tell(tmp_path, story)


GOOD = {"text": "hi", "id": "m1"}


BODIES: list[tuple[bytes | str, int]] = [
    (b"", 400),
    (b"{", 400),
    (b"[" * 100_000, 422),
    (b'{"text": "\xff", "id": "m"}', 400),
    (rb'{"text": "\ud800", "id": "m"}', 422),
    (b"[]", 422),
    (b"null", 422),
    (b'{"text": "hi"}', 422),
    (b'{"id": "m1"}', 422),
    (json.dumps({**GOOD, "more": 1}), 422),
    (json.dumps({**GOOD, "text": ""}), 422),
    (json.dumps({**GOOD, "text": " \n"}), 422),
    (json.dumps({**GOOD, "text": 5}), 422),
    (json.dumps({**GOOD, "text": "x" * 20_001}), 422),
    (json.dumps({**GOOD, "id": ""}), 422),
    (json.dumps({**GOOD, "id": "a b"}), 422),
    (json.dumps({**GOOD, "id": "m\n"}), 422),
    (json.dumps({**GOOD, "id": "x" * 201}), 422),
    (json.dumps({**GOOD, "variables": {"a b": "1"}}), 422),
    (json.dumps({**GOOD, "variables": {"a": 1}}), 422),
    (json.dumps({**GOOD, "variables": {f"v{n}": "" for n in range(101)}}), 422),
    (json.dumps({**GOOD, "variables": {"a": "x" * 2001}}), 422),
]


def test_refuses_bodies_that_are_not_messages(tmp_path: Path) -> None:
    async def story(server: ChatServer) -> None:
        for content, status in BODIES:
            reply = await server.client.post(
                "/conversations/shop/ann/messages", content=content, headers={"content-type": "application/json"}
            )
            assert reply.status_code == status, (content[:100], reply.text)
        assert (await server.client.get("/conversations/shop/ann")).status_code == 404, "nothing was started"

    tell(tmp_path, story)


def test_half_a_character_is_named_as_what_is_wrong(tmp_path: Path) -> None:
    async def story(server: ChatServer) -> None:
        for text in (r"\ud800", r"a\ud800b", r"\udc00", r"\ud800\u0041"):
            reply = await server.client.post(
                "/conversations/shop/ann/messages",
                content=f'{{"text": "{text}", "id": "m1"}}',
                headers={"content-type": "application/json"},
            )
            assert reply.status_code == 422 and "half of a character" in reply.json()["error"], text

    tell(tmp_path, story)


def test_refuses_bodies_of_other_types(tmp_path: Path) -> None:
    async def story(server: ChatServer) -> None:
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
            reply = await server.client.post(
                "/conversations/shop/ann/messages", content=json.dumps(GOOD), headers={"content-type": kind}
            )
            assert reply.status_code == 415, kind

    tell(tmp_path, story)


def test_refuses_other_queries(tmp_path: Path) -> None:
    async def story(server: ChatServer) -> None:
        for query in ("wait=-1", "wait=121", "wait=x", "wait=1.5", "wait=1&wait=2", "other=1", "wait="):
            reply = await server.client.post(f"/conversations/shop/ann/messages?{query}", json=GOOD)
            assert reply.status_code == 422, query

    tell(tmp_path, story)


def test_a_session_that_has_ended_takes_no_messages(tmp_path: Path) -> None:
    async def story(server: ChatServer) -> None:
        await server.say("hi", "m1", params={"wait": 10})
        await server.app.cancel("chat:shop:ann")
        assert (await server.say("hi again", "m2")).status_code == 409

    tell(tmp_path, story)


def test_a_waiting_request_is_answered_when_the_server_stops(tmp_path: Path) -> None:
    async def story(server: ChatServer) -> None:
        await server.say("hi", "m1", params={"wait": 10})
        server.may_reply.clear()
        waiting = asyncio.create_task(server.say("hi again", "m2", params={"wait": 100}))
        while len(await heard(server)) < 2:
            await asyncio.sleep(0.01)
        server.face.stopping.set()
        assert (await waiting).status_code == 202

    tell(tmp_path, story)


def test_wait_ends_when_the_time_is_over(tmp_path: Path) -> None:
    async def story(server: ChatServer) -> None:
        await server.say("hi", "m1", params={"wait": 10})
        server.may_reply.clear()
        assert (await server.say("hi again", "m2", params={"wait": 1})).status_code == 202

    tell(tmp_path, story)


def test_a_session_that_waits_for_a_tool_that_nobody_brings_is_still_to_be_answered(tmp_path: Path) -> None:
    async def story(server: ChatServer) -> None:
        accepted = await server.say("hi", "m1", params={"wait": 20})
        told = {"run": "chat:shop:ann", "session": "ann", "message": "chat:shop:ann/2"}
        assert (accepted.status_code, accepted.json()) == (202, told)

    tell(tmp_path, story, has_tool=False)


def test_a_failed_action_is_marked_in_the_session_and_told_in_the_stream(tmp_path: Path) -> None:
    async def story(server: ChatServer) -> None:
        session = (await server.say("hi", "m1", params={"wait": 10})).json()
        assert session["status"] == "cancelled" and session["messages"][-1]["kind"] == "apology"
        assert session["actions"] == [{"type": "FLOW", "target": "hello", "visible": True, "failed": True}]
        assert "because" not in session, "what a tool said is for those who operate the bot"
        async with events(server) as stream:
            told = [await stream.next() for _ in range(6)]
        assert [kind for kind, _ in told] == ["message", "status", "action", "action_failed", "message", "status"]
        assert told[-1][1]["because"] == "broken_off"

    tell(tmp_path, story, reply_fails=True)


def test_the_log_says_which_pass_was_broken_off_and_no_word_of_the_user(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(server: ChatServer) -> None:
        with caplog.at_level(logging.WARNING):
            await open_face(server.app, {}, [str(tmp_path / "shop")])
            await server.say("my secret", "m1", params={"wait": 10})
        (line,) = [one for one in caplog.messages if "broken off" in one]
        assert line == "A pass of chat:shop:ann was broken off: the flow failed; see `ripstop why`"
        assert "my secret" not in caplog.text

    tell(tmp_path, story, reply_fails=True)


def test_a_server_says_at_its_start_what_its_bots_lack(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SHOP_KEY", raising=False)

    async def story(server: ChatServer) -> None:
        with (tmp_path / "shop" / "bot.yaml").open("a", encoding="utf-8") as bot:
            bot.write(SKILL)
        with caplog.at_level(logging.WARNING):
            await open_face(server.app, {}, [str(tmp_path / "shop")])
        said = caplog.text
        assert "shop: This process does not have the tools 'reply'" in said
        assert "http://127.0.0.1:9" in said and "--allow http://127.0.0.1:9" in said
        assert "The environment variable SHOP_KEY is not set, so calls of insurance fail." in said

    tell(tmp_path, story, has_tool=False)


SKILL = """
skills:
  - id: insurance
    endpoint: { url: "http://127.0.0.1:9/{id}", headers: { Authorization: "${SHOP_KEY}" } }
"""


def test_says_that_it_works_and_what_it_can_do(tmp_path: Path) -> None:
    async def story(server: ChatServer) -> None:
        assert (await server.client.get("/healthz")).json() == {"status": "ok"}
        document = (await server.client.get("/openapi.json")).json()
        assert document["openapi"] == "3.1.0" and len(document["paths"]) == 5
        for path in ("/healthz", "/openapi.json", "/conversations/shop/ann/events"):
            assert (await server.client.get(path, headers={"authorization": ""})).status_code == 401

    tell(tmp_path, story)


def test_health_names_the_providers_that_take_no_calls_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(server: ChatServer) -> None:
        monkeypatch.setattr(server.app.worker, "held", lambda: {"openai": 599})
        health = await server.client.get("/healthz")
        assert (health.status_code, health.json()) == (200, {"status": "ok", "waiting": {"openai": 599}})

    tell(tmp_path, story)
