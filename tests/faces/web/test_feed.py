"""Pages are told what happens, in order, without HTML, and no reader holds up a run."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from ripstop.app.application import App
from ripstop.app.settings.settings_file import read_settings
from ripstop.engine.live import Appended, Began, Token
from ripstop.faces.web import feed as feed_module
from ripstop.faces.web.feed import MOST_QUEUED, MOST_STREAMS, Feed, Stream, StreamTopics
from ripstop.history.unfinished_words import MOST_CHARACTERS, NewWords, WordsSoFar

WORKFLOW = """\
name: pair
initial_message: rain
max_turns: 4
agents:
  - { name: poet, type: ask }
  - { name: critic, type: ask }
states:
  - name: write
    agent: poet
    start: true
    prompt: "{{COLLABORATION_GUIDE}} Write. Set done in decisions."
    transitions:
      - { to: judge, condition: done }
      - { to: END, condition: NOT done }
  - name: judge
    agent: critic
    prompt: "{{COLLABORATION_GUIDE}} Judge. Set good in decisions."
    transitions:
      - { to: END, condition: good }
      - { to: write, condition: NOT good }
"""
SCRIPT = [
    {"agent": "poet", "reply": '{"content": "It rains.", "decisions": {"done": true}}'},
    {"agent": "critic", "reply": '{"content": "Good.", "decisions": {"good": true}}'},
]


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[App]:
    home = folder / "workflows" / "pair"
    if not home.exists():
        home.mkdir(parents=True)
        (home / "workflow.yaml").write_text(WORKFLOW)
        (folder / "script.jsonl").write_text("\n".join(map(json.dumps, SCRIPT)))
    settings = read_settings(folder, store=f"sqlite:{folder}/j.db", model=f"script:{folder}/script.jsonl")
    async with App(settings) as app:
        yield app


async def events_of(stream: Stream, until: str, seconds: float = 10.0) -> list[tuple[str, dict[str, object]]]:
    found: list[tuple[str, dict[str, object]]] = []
    async with asyncio.timeout(seconds):
        async for piece in stream.lines():
            for block in piece.decode().split("\n\n"):
                fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
                if "event" in fields:
                    found.append((fields["event"], json.loads(fields["data"])))
            if found and found[-1][0] == until:
                return found
    return found


async def run_to_its_end(app: App, folder: Path) -> str:
    run = await app.start(folder / "workflows" / "pair")
    await app.wait(run)
    return run.id


def test_a_page_hears_of_the_records_of_its_run(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path) as app:
            feed = Feed(app.engine)
            async with feed.following():
                stream = await feed.subscribe(StreamTopics(every_run=True), "ann")
                run_id = await run_to_its_end(app, tmp_path)
                found: list[tuple[str, dict[str, object]]] = []
                while not any(data.get("status") == "completed" for _, data in found):
                    found += await events_of(stream, "run")
                assert found[0][0] == "hello"
                assert all(data["run"] == run_id for kind, data in found if kind == "run")

    asyncio.run(story())


def test_a_page_that_comes_back_hears_what_it_missed(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path) as app:
            feed = Feed(app.engine)
            before = await app.engine.journal.cursor()
            run_id = await run_to_its_end(app, tmp_path)
            stream = await feed.subscribe(StreamTopics(frozenset({run_id})), "ann", after=before)
            found = await events_of(stream, "run")
            length = (await app.engine.look(run_id)).run.length
            assert ("records", {"run": run_id, "from": 1, "to": length}) in found

    asyncio.run(story())


def test_a_cursor_of_another_journal_makes_a_page_look_for_itself(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path) as app:
            stream = await Feed(app.engine).subscribe(StreamTopics(desk=True), "ann", after="no cursor")
            assert [kind for kind, _ in await events_of(stream, "lost")] == ["hello", "lost"]

    asyncio.run(story())


def test_a_page_hears_of_steps_of_another_process(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path) as app, opened(tmp_path) as other:
            feed = Feed(app.engine)
            async with feed.following():
                stream = await feed.subscribe(StreamTopics(every_run=True), "ann")
                run_id = await run_to_its_end(other, tmp_path)
                found = await events_of(stream, "run")
                assert found[-1][1]["run"] == run_id

    asyncio.run(story())


def test_the_oldest_of_too_many_streams_of_a_person_ends(tmp_path: Path) -> None:
    async def story() -> None:
        async with opened(tmp_path) as app:
            feed = Feed(app.engine)
            streams = [await feed.subscribe(StreamTopics(), "ann") for _ in range(MOST_STREAMS + 1)]
            assert streams[0].is_over and not any(one.is_over for one in streams[1:])
            other = await feed.subscribe(StreamTopics(), "bob")
            assert not other.is_over and not streams[1].is_over

    asyncio.run(story())


def test_a_reader_that_does_not_read_is_told_to_look_again() -> None:
    async def story() -> None:
        stream = Stream(StreamTopics(), "ann")
        for number in range(MOST_QUEUED + 1):
            stream.put("records", {"number": number})
        assert [kind for kind, _ in await events_of(stream, "lost")] == ["lost"]

    asyncio.run(story())


def test_words_of_one_call_are_sent_together() -> None:
    async def story() -> None:
        stream = Stream(StreamTopics(), "ann")
        for offset, text in ((0, "a"), (1, "bc"), (3, "d")):
            stream.put_words(NewWords("r", 5, 1, offset, text))
        found = await events_of(stream, "token")
        assert [data for _, data in found] == [{"run": "r", "number": 5, "attempt": 1, "offset": 0, "text": "abcd"}]

    asyncio.run(story())


def test_an_idle_feed_does_not_look_at_the_journal(tmp_path: Path, monkeypatch) -> None:
    async def story() -> None:
        async with opened(tmp_path) as app:
            looks = 0
            since = app.engine.journal.since

            async def counted(*given):
                nonlocal looks
                looks += 1
                return await since(*given)

            monkeypatch.setattr(app.engine.journal, "since", counted)
            monkeypatch.setattr(feed_module, "POLL_INTERVAL", 0.12)
            feed = Feed(app.engine)
            async with feed.following():
                await asyncio.sleep(0.3)
                assert looks == 0
                stream = await feed.subscribe(StreamTopics(), "ann")
                async with asyncio.timeout(25):
                    while not looks:
                        await asyncio.sleep(0.01)
                feed.unsubscribe(stream)
                seen = looks
                await asyncio.sleep(0.6)
                assert looks <= seen + 1, "one can have been under way"

    asyncio.run(story())


def reader(_run_id: str):
    return lambda piece: piece


def test_words_so_far_are_those_of_the_last_attempt() -> None:
    words = WordsSoFar(reader)
    words.take(Token("r", 3, "broken", 1))
    assert words.take(Token("r", 3, "good ", 2)) == NewWords("r", 3, 2, 0, "good ")
    assert words.take(Token("r", 3, "late", 1)) is None
    assert words.take(Token("r", 3, "words", 2)) == NewWords("r", 3, 2, 5, "words")
    assert words.words("r", 3) == "good words"
    assert words.words("r", 4) == ""


def test_words_so_far_are_bounded_and_forgotten_with_the_answer() -> None:
    from ripstop.kernel.effects import AgentReplied, AskAgent
    from ripstop.kernel.events import Answered, Record
    from ripstop.kernel.style import Picture

    words = WordsSoFar(reader)
    words.take(Began("r", 3, AskAgent("poet"), 1))
    for _ in range(3):
        words.take(Token("r", 3, "x" * (MOST_CHARACTERS // 2 + 1), 1))
    assert len(words.words("r", 3)) == MOST_CHARACTERS
    words.take(Appended("r", (Record(4, 0, Answered(to=3, answer=AgentReplied())),), Picture()))
    assert words.words("r", 3) == ""
