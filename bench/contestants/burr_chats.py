"""Burr: a session is an application, a message one run of its two actions, with its SQLite persister.

- The state is saved after every action, as its builder does with a persister.
- WAL and synchronous=FULL are set here.
- The synchronous persister with a thread for each call under way. The persister has one connection that only one thread
  can use at a time, so saving is behind a lock; the model's time is not.
- Applications stay in memory between messages, as ripstop's sessions do. It has no timers, greeting or plan.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from burr.core import Application, ApplicationBuilder, State, action  # type: ignore[import-not-found]  # peers' only
from burr.core.persistence import SQLitePersister  # type: ignore[import-not-found]  # the same

from .conversation import ANSWER, DELAY, Tell, closed_loop, measured_open, question
from .work import Figures, bytes_in, main

THREADS = 128


@action(reads=["messages"], writes=["messages"])  # type: ignore[untyped-decorator]
def hear(state: State, text: str) -> State:
    return state.append(messages=text)


@action(reads=["messages"], writes=["messages"])  # type: ignore[untyped-decorator]
def answer(state: State) -> State:
    time.sleep(DELAY)
    return state.append(messages=ANSWER)


class LockedPersister(SQLitePersister):  # type: ignore[misc]
    """Lets one thread at a time use the connection."""

    _lock = threading.Lock()

    def save(self, *given: Any, **named: Any) -> None:
        with self._lock:
            super().save(*given, **named)

    def load(self, *given: Any, **named: Any) -> Any:
        with self._lock:
            return super().load(*given, **named)


def with_sessions(folder: Path, work: Callable[[Tell], Any], check: Callable[[Any], None] | None = None) -> Figures:
    persister = LockedPersister(str(folder / "burr.db"), connect_kwargs={"check_same_thread": False})
    persister.connection.execute("PRAGMA journal_mode = WAL")
    persister.connection.execute("PRAGMA synchronous = FULL")
    persister.initialize()
    sessions: dict[int, Application] = {}

    def begin(session: int) -> Application:
        builder = ApplicationBuilder().with_actions(hear, answer)
        builder = builder.with_transitions(("hear", "answer"), ("answer", "hear"))
        builder = builder.with_identifiers(app_id=f"session-{session}", partition_key="bench")
        builder = builder.initialize_from(persister, True, {"messages": []}, "hear").with_state_persister(persister)
        return builder.build()

    def say(session: int, text: str) -> None:
        if session not in sessions:
            sessions[session] = begin(session)
        sessions[session].run(halt_after=["answer"], inputs={"text": text})

    with ThreadPoolExecutor(THREADS) as threads:

        async def inside() -> Figures:
            loop = asyncio.get_running_loop()
            figures: Figures = await work(lambda session, text: loop.run_in_executor(threads, say, session, text))
            return figures

        figures = asyncio.run(inside())
    if check:
        check(persister)
    persister.cleanup()
    return figures


def closed(folder: Path, sessions: int, messages: int) -> Figures:
    def check(persister: Any) -> None:
        for session in range(sessions):
            said = persister.load("bench", f"session-{session}")["state"]["messages"]
            assert said[::2] == [question(session, turn) for turn in range(messages)], said

    figures = with_sessions(folder, lambda tell: closed_loop(tell, sessions, messages), check)
    return {**figures, "bytes": bytes_in(folder)}


def open_(folder: Path, sessions: int, rate: float, seconds: float) -> Figures:
    return with_sessions(folder, lambda tell: measured_open(tell, sessions, rate, seconds))


if __name__ == "__main__":
    main({"chats": closed, "chats-open": open_})
