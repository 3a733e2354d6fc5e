"""Events of a session over HTTP: each once and in order, across reconnects, and at no cost to anybody else."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.requests import Request

from ripstop.engine.live import Token
from ripstop.faces.http.event_stream import with_pauses
from ripstop.kernel.events import Record, Warned
from ripstop.styles.conversation.feed import DraftWords
from ripstop.styles.conversation.http import application as event_stream
from ripstop.styles.conversation.http.application import ShownEvent, session_events
from ripstop.styles.conversation.http.requests import stream_position
from tests.styles.conversation.http.served_bot import ChatServer, chat_server, events

Story = Callable[[ChatServer], Awaitable[None]]


def tell(folder: Path, story: Story, **options: Any) -> None:
    async def main() -> None:
        async with chat_server(folder, **options) as server:
            await story(server)

    asyncio.run(main())


PASS = ["the user", "processing", "FLOW hello", "hello", "ready"]
"""A message, and what it leads to."""


def shown(event: tuple[str, Any]) -> str:
    kind, data = event
    if data.get("kind") == "user":
        return "the user"
    return f"{data['type']} {data['target']}" if kind == "action" else str(data.get("text") or data["status"])


def test_shows_what_is_on_record_and_then_what_happens(tmp_path: Path) -> None:
    async def story(server: ChatServer) -> None:
        await server.say("one", "m1", params={"wait": 10})
        async with events(server) as stream:
            assert [shown(await stream.next()) for _ in PASS] == PASS
            await server.say("two", "m2")
            assert [shown(await stream.next()) for _ in PASS] == PASS

    tell(tmp_path, story)


def test_what_the_user_says_is_a_message_of_the_kind_user(tmp_path: Path) -> None:
    async def story(server: ChatServer) -> None:
        await server.say("one", "m1", params={"wait": 10})
        async with events(server) as stream:
            kind, data = await stream.next()
        assert (kind, data["kind"], data["text"]) == ("message", "user", "one")
        session = (await server.client.get("/conversations/shop/ann")).json()
        assert [(one["kind"], one["text"]) for one in session["messages"]] == [("user", "one"), ("flow", "hello")]

    tell(tmp_path, story)


def test_a_client_that_comes_back_after_every_event_misses_nothing_and_gets_nothing_twice(tmp_path: Path) -> None:
    async def story(server: ChatServer) -> None:
        for number in range(3):
            await server.say(f"message {number}", f"m{number}", params={"wait": 10})
        seen, ids, last = [], set(), ""
        for _ in range(3 * len(PASS)):
            async with events(server, last) as stream:
                event = await stream.next()
                seen.append(shown(event))
                ids.add(event[1]["id"])
                last = stream.last_id
        assert seen == PASS * 3 and len(ids) == len(seen)

    tell(tmp_path, story)


@given(st.lists(st.integers(0, 3), max_size=6), st.data())
def test_any_event_is_a_place_to_continue_from(counts: list[int], data: st.DataObject) -> None:
    """Also between the events of one record."""
    records = [Record(number, 0, Warned("x")) for number in range(1, len(counts) + 1)]

    async def events_of(record: Record) -> list[ShownEvent]:
        return [ShownEvent("message", {"n": f"{record.number}/{index}"}) for index in range(counts[record.number - 1])]

    async def read(last: str) -> list[tuple[str, str]]:
        position = stream_position(Request({"type": "http", "headers": [(b"last-event-id", last.encode())]}))

        async def happening() -> Any:
            for record in records[position.record - 1 :]:
                yield record

        draft = DraftWords()
        lines = b"".join([line async for line in session_events(happening(), position, events_of, draft)])
        return re.findall(r'id: (.*)\ndata: \{"n":"(.*)"\}', lines.decode())

    whole = asyncio.run(read(""))
    assert [n for _, n in whole] == [f"{at}/{index}" for at, count in enumerate(counts, 1) for index in range(count)]
    if whole:
        at = data.draw(st.integers(0, len(whole) - 1))
        assert asyncio.run(read(whole[at][0])) == whole[at + 1 :]


def test_tokens_are_shown_as_they_come_without_an_id(tmp_path: Path) -> None:
    async def story(server: ChatServer) -> None:
        await server.say("one", "m1", params={"wait": 10})
        async with events(server) as stream:
            for _ in PASS:
                await stream.next()
            last = stream.last_id
            begin = '{"next_status": "typing", "action": null, "response": "'
            for attempt, text in ((1, f"{begin}He"), (1, "llo"), (2, f"{begin}Hi"), (1, "late")):
                server.app.live.show(Token("chat:shop:ann", 99, text, attempt))
            shown = [await stream.next() for _ in range(5)]
            assert [kind for kind, _ in shown] == ["status", "token", "token", "status", "token"]
            assert shown[0][1] == {"status": "typing"}, "when the words begin"
            tokens = [data for kind, data in shown if kind == "token"]
            assert [(data["attempt"], data["text"]) for data in tokens] == [(1, "He"), (1, "llo"), (2, "Hi")]
            assert stream.last_id == last

    tell(tmp_path, story)


def test_other_sessions_are_not_seen(tmp_path: Path) -> None:
    async def story(server: ChatServer) -> None:
        await server.say("mine", "m1", params={"wait": 10})
        async with events(server) as stream:
            for _ in PASS:
                await stream.next()
            await server.say("theirs", "m1", session="bob", params={"wait": 10})
            server.app.live.show(Token("chat:shop:bob", 3, "theirs"))
            await server.say("more", "m2")
            assert [(await stream.next())[1]["id"].partition("/")[0] for _ in PASS] == ["chat:shop:ann"] * len(PASS)

    tell(tmp_path, story)


def test_a_quiet_stream_shows_that_it_is_alive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "HEARTBEAT", 0.05)

    async def story(server: ChatServer) -> None:
        await server.say("one", "m1", params={"wait": 10})
        async with events(server) as stream:
            for _ in PASS:
                await stream.next()
            coming = asyncio.create_task(stream.next())
            async with asyncio.timeout(25):
                while stream.comments < 2:  # it is counted where it is read
                    await asyncio.sleep(0.01)
            await server.say("two", "m2")
            assert shown(await coming) == "the user"

    tell(tmp_path, story)


def test_there_is_a_bound_on_streams_and_a_stream_that_is_left_frees_its_place(tmp_path: Path) -> None:
    async def story(server: ChatServer) -> None:
        await server.say("one", "m1", params={"wait": 10})
        async with events(server) as first, events(server) as second:
            await first.next()
            await second.next()
            refused = await server.client.get("/conversations/shop/ann/events")
            assert refused.status_code == 429 and "retry-after" in refused.headers
        async with asyncio.timeout(25):
            while server.face._slots.taken:
                await asyncio.sleep(0.01)
        assert not server.app.live._family_watchers, "nobody is watched for any more"
        async with events(server) as third:
            assert shown(await third.next()) == "the user"

    tell(tmp_path, story, streams=2)


def test_streams_end_when_the_server_stops_and_when_the_session_ends(tmp_path: Path) -> None:
    async def story(server: ChatServer) -> None:
        await server.say("one", "m1", params={"wait": 10})
        async with events(server) as stream:
            for _ in PASS:
                await stream.next()
            await server.app.cancel("chat:shop:ann")
            assert [shown(await stream.next())] == ["cancelled"]
            assert await stream.next() == ("", None)
        await server.say("one", "m1", session="bob", params={"wait": 10})
        async with events(server, session="bob") as stream:
            await stream.next()
            server.face.stopping.set()
            while (await stream.next())[0]:
                pass

    tell(tmp_path, story)


def test_refuses_positions_that_are_not_in_the_session(tmp_path: Path) -> None:
    async def story(server: ChatServer) -> None:
        await server.say("one", "m1", params={"wait": 10})
        for last in ("x", "-1", "1.5.2", "9" * 13, "1e3", "999", "٣"):
            headers = [(b"last-event-id", last.encode())]
            reply = await server.client.get("/conversations/shop/ann/events", headers=headers)
            assert reply.status_code == (409 if last == "999" else 422), last

    tell(tmp_path, story)


def test_a_stream_of_a_session_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    async def story(server: ChatServer) -> None:
        assert (await server.client.get("/conversations/shop/ann/events")).status_code == 404

    tell(tmp_path, story)


@settings(max_examples=40)
@given(st.lists(st.sampled_from([0.0, 0.002]), max_size=12))
def test_pauses_lose_no_item(delays: list[float]) -> None:
    async def items() -> Any:
        for number, delay in enumerate(delays):
            if delay:
                await asyncio.sleep(delay)
            yield number

    async def main() -> list[int | None]:
        return [item async for item in with_pauses(items(), 0.001)]

    assert [item for item in asyncio.run(main()) if item is not None] == list(range(len(delays)))
