"""What happens, for pages that are open: one follower of the journal, and a bounded queue for each stream.

- Steps come from the journal in the order of its cursor, whichever process wrote them. A step of this process wakes
  the follower; for those of others it looks twice a second, and only while a stream is open.
- Words come from this process as they are written, at most `TOKENS_PER_SECOND` times a second for each call.
- Nothing waits for a reader. What does not fit into its queue is dropped, words first; then the page is told to look
  for itself (`lost`). No event carries HTML, and none is needed: a page that missed all of them shows the same after
  it has looked again.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ripstop.engine.live import Began, LiveEvent, RateLimited, Retrying
from ripstop.engine.ports import Moved, RunQuery
from ripstop.faces.http.event_stream import ALIVE, HEARTBEAT, event_lines
from ripstop.history.runs import shown_status
from ripstop.history.unfinished_words import NewWords, WordsSoFar
from ripstop.kernel.desk_kinds import HALTED
from ripstop.kernel.effects import AskPerson, PersonAnswered
from ripstop.kernel.errors import JournalError, RipstopError
from ripstop.kernel.events import Answered, Asked, Ended, Started, Withdrawn

if TYPE_CHECKING:
    from ripstop.engine.engine import Engine

log = logging.getLogger("ripstop.web")

ROUND = 0.1
"""Seconds between two looks at the journal while much happens."""
POLL_INTERVAL = 0.5
"""Seconds after which the journal is looked at for steps of other processes."""
MOST_QUEUED = 1_000
MOST_STEPS = 500
"""Steps that are read at once, and that a page which comes back is told of one by one."""
TOKENS_PER_SECOND = 20
RETRY = 1500
"""Milliseconds after which a browser comes back."""
MOST_STREAMS = 12
"""Of one person; the oldest goes."""


class StreamTopics(Struct, frozen=True):
    """What a page wants to hear of."""

    runs: frozenset[str] = frozenset()
    """With all that happens in them."""
    desk: bool = False
    every_run: bool = False
    """That it moved, and how it is now."""


class Stream:
    """The queue of one page."""

    def __init__(self, wanted: StreamTopics, owner: str) -> None:
        self.wanted = wanted
        self.owner = owner
        self.is_over = False
        self.desk = -1
        """How much waits for a person, as the page was told last."""
        self._events: deque[tuple[str, dict[str, Any], str]] = deque()
        self._words: dict[tuple[str, int, int], NewWords] = {}
        self._news = asyncio.Event()

    def put(self, kind: str, data: dict[str, Any], cursor: str = "") -> None:
        if len(self._events) >= MOST_QUEUED:
            self._events.clear()
            self._words.clear()
            kind, data = "lost", {}
        self._events.append((kind, data, cursor))
        self._news.set()

    def put_words(self, new: NewWords) -> None:
        """Words wait for the next moment to be sent, and those of one call are sent together."""
        key = new.run_id, new.number, new.attempt
        waiting = self._words.get(key)
        if waiting is None and len(self._words) + len(self._events) >= MOST_QUEUED:
            return
        if waiting is not None:
            new = NewWords(new.run_id, new.number, new.attempt, waiting.offset, waiting.text + new.text)
        self._words[key] = new
        self._news.set()

    def end(self, why: str, again: bool) -> None:
        """Say goodbye. `again`: the page comes back by itself, as to a server that is started again."""
        self.is_over = True
        self._events.clear()
        self.put("bye", {"why": why, "again": again})

    async def lines(self) -> AsyncGenerator[bytes, None]:
        """The events as they come, and a comment when there is none for a while."""
        yield f"retry: {RETRY}\n\n".encode()
        while True:
            try:
                async with asyncio.timeout(HEARTBEAT):
                    await self._news.wait()
            except TimeoutError:
                yield ALIVE
                continue
            self._news.clear()
            while self._events:
                kind, data, cursor = self._events.popleft()
                yield event_lines(kind, data, cursor)
            if self.is_over:
                return
            words, self._words = self._words, {}
            for new in words.values():
                told = {"run": new.run_id, "number": new.number, "attempt": new.attempt, "offset": new.offset}
                yield event_lines("token", {**told, "text": new.text})
            if words:
                await asyncio.sleep(1 / TOKENS_PER_SECOND)


class Feed:
    def __init__(self, engine: "Engine") -> None:
        self._engine = engine
        self._streams: list[Stream] = []
        self._woken = asyncio.Event()
        self._cursor = ""
        self._words = WordsSoFar(self._reader_of)

    def words_so_far(self, run_id: str, number: int) -> str:
        """What was said in an open call; empty if another process makes it."""
        return self._words.words(run_id, number)

    @contextlib.asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        stop = self._engine.live.watch(self._watch)
        task = asyncio.create_task(self._follow())
        try:
            yield
        finally:
            stop()
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def subscribe(self, wanted: StreamTopics, owner: str, after: str = "") -> Stream:
        """A stream of what happens from now on or, with the cursor that a page has, from there."""
        mine = [stream for stream in self._streams if stream.owner == owner]
        for oldest in mine[: max(0, len(mine) - MOST_STREAMS + 1)]:
            oldest.end("too many pages are open", again=False)
            self._streams.remove(oldest)
        stream = Stream(wanted, owner)
        journal = self._engine.journal
        here = await journal.cursor()
        workers = sum(alive for _, alive in await journal.workers(self._engine.clock()))
        stream.put("hello", {"workers": workers}, here)
        if not self._streams:
            self._cursor = here
        self._streams.append(stream)
        self._woken.set()
        # others may have been told of a step between `here` and now; to be told of one twice does no harm
        await self._catch_up(stream, after or here)
        return stream

    def unsubscribe(self, stream: Stream) -> None:
        with contextlib.suppress(ValueError):
            self._streams.remove(stream)

    def end_streams(self) -> None:
        for stream in self._streams:
            stream.end("the server stops", again=True)
        self._streams.clear()

    async def _catch_up(self, stream: Stream, after: str) -> None:
        """Tell a page that comes back what it has missed."""
        try:
            missed = await self._engine.journal.since(after, MOST_STEPS)
        except (RipstopError, ValueError):  # a cursor of another journal
            return stream.put("lost", {})
        if len(missed) >= MOST_STEPS:
            return stream.put("lost", {})
        if missed:
            await self._tell(missed, [stream])

    # From the journal

    async def _follow(self) -> None:
        while True:
            if not self._streams:
                self._woken.clear()
                await self._woken.wait()
            try:
                moved = await self._engine.journal.since(self._cursor, MOST_STEPS)
                if moved:
                    self._cursor = moved[-1].cursor
                    await self._tell(moved, list(self._streams))
            except JournalError as error:
                log.warning("The journal cannot be followed: %s", error)
            self._woken.clear()
            await asyncio.sleep(ROUND)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_INTERVAL - ROUND):
                    await self._woken.wait()

    async def _tell(self, moved: list[Moved], streams: list[Stream]) -> None:
        """Tell streams of steps: of one run together, because a page looks for all that is new at once."""
        last = moved[-1].cursor
        by_run: dict[str, list[Moved]] = {}
        for step in moved:
            by_run.setdefault(step.run_id, []).append(step)
        for run_id, steps in by_run.items():
            close = [stream for stream in streams if run_id in stream.wanted.runs]
            far = [stream for stream in streams if stream.wanted.every_run and stream not in close]
            if not close and not far:
                continue
            numbers = [record.number for step in steps for record in step.records]
            for stream in close:
                stream.put("records", {"run": run_id, "from": min(numbers), "to": max(numbers)}, steps[-1].cursor)
            is_new = any(isinstance(record.event, Started) for step in steps for record in step.records)
            if (now := await self._now(run_id)) is not None:
                for stream in (*close, *far):
                    stream.put("run", {**now, "new": is_new}, steps[-1].cursor)
        if any(_touches_desk(step) for step in moved):
            await self._tell_desk(moved, streams, last)

    async def _now(self, run_id: str) -> dict[str, Any] | None:
        """How a run is at this moment, in short."""
        info = await self._engine.journal.run(run_id)
        if info is None:
            return None
        return {
            "run": run_id,
            "status": shown_status(info.status, has_workers=True),
            "gist": info.gist,
            "length": info.length,
            "tokens": info.tokens,
            "money": info.money,
            "parent": info.parent or "",
        }

    async def _tell_desk(self, moved: list[Moved], streams: list[Stream], cursor: str) -> None:
        count = await self._engine.journal.desk_count()
        count += sum((await self._engine.journal.counts(RunQuery(statuses=HALTED))).values())
        added: list[str] = []
        gone: list[str] = []
        is_answered = False
        for step in moved:
            for record in step.records:
                match record.event:
                    case Asked(command=AskPerson()):
                        added.append(f"{step.run_id}/{record.number}")
                    case Answered(to=number, answer=PersonAnswered()):
                        gone.append(f"{step.run_id}/{number}")
                        is_answered = True
                    case Withdrawn(number=number):  # of a question, or of any other command
                        gone.append(f"{step.run_id}/{number}")
        for stream in streams:
            if stream.wanted.desk and (added or is_answered or stream.desk != count):
                stream.desk = count
                stream.put("desk", {"count": count, "added": added[:50], "gone": gone[:50]}, cursor)

    # From this process

    def _watch(self, event: LiveEvent) -> None:
        new = self._words.take(event)
        if not self._streams:
            return
        streams = [stream for stream in self._streams if event.run_id in stream.wanted.runs]
        if new is not None:
            for stream in streams:
                stream.put_words(new)
        elif isinstance(event, Began):
            self._put(streams, "began", event, attempt=event.attempt, who=getattr(event.command, "agent", ""))
        elif isinstance(event, Retrying):
            self._put(streams, "retrying", event, reason=event.reason[:200], seconds=event.seconds)
        elif isinstance(event, RateLimited):
            self._put(streams, "retrying", event, reason=event.provider, seconds=event.seconds)
        else:
            self._woken.set()

    def _put(self, streams: list[Stream], kind: str, event: Began | Retrying | RateLimited, **data: Any) -> None:
        for stream in streams:
            stream.put(kind, {"run": event.run_id, "number": event.number, **data})

    def _reader_of(self, run_id: str) -> Any:
        run = self._engine.known(run_id)
        return self._engine.style(run).view.word_reader() if run else lambda piece: piece


def _touches_desk(step: Moved) -> bool:
    return any(isinstance(record.event, Asked | Answered | Withdrawn | Ended) for record in step.records)
