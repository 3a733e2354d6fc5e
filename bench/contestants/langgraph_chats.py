"""LangGraph: a session is a thread, a message one call of the graph, with its SQLite checkpointer.

- `durability="sync"`: what was said and what was answered are written before the call returns.
- WAL (the checkpointer sets it) and synchronous=FULL.
- The synchronous `SqliteSaver` with a thread for each call under way: measured here it is faster than
  `AsyncSqliteSaver`. The model sleeps, so as many threads as sessions would only wait for the checkpointer's lock.
- The conversation is a list that grows by a reducer, as its documentation teaches. It has no timers, greeting or plan.
"""

import asyncio
import operator
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver  # type: ignore[import-not-found]  # in the peers' environment only
from langgraph.graph import END, START, StateGraph  # type: ignore[import-not-found]  # the same

from .conversation import ANSWER, DELAY, Tell, closed_loop, measured_open, question
from .work import Figures, bytes_in, main

THREADS = 128


class Talk(TypedDict):
    messages: Annotated[list[str], operator.add]


def _answer(_state: dict[str, Any]) -> dict[str, Any]:
    time.sleep(DELAY)
    return {"messages": [ANSWER]}


def with_graph(folder: Path, work: Callable[[Tell], Any], check: Callable[[Any], None] | None = None) -> Figures:
    with (
        closing(sqlite3.connect(folder / "checkpoints.db", check_same_thread=False)) as connection,
        ThreadPoolExecutor(THREADS) as threads,
    ):
        connection.execute("PRAGMA synchronous = FULL")
        builder = StateGraph(Talk)
        builder.add_node("answer", _answer)
        builder.add_edge(START, "answer")
        builder.add_edge("answer", END)
        graph = builder.compile(checkpointer=SqliteSaver(connection))

        def say(session: int, text: str) -> None:
            graph.invoke({"messages": [text]}, _config(session), durability="sync")

        async def inside() -> Figures:
            loop = asyncio.get_running_loop()
            figures: Figures = await work(lambda session, text: loop.run_in_executor(threads, say, session, text))
            return figures

        figures = asyncio.run(inside())
        if check:
            check(graph)
        return figures


def _config(session: int) -> dict[str, Any]:
    return {"configurable": {"thread_id": f"session-{session}"}}


def closed(folder: Path, sessions: int, messages: int) -> Figures:
    def check(graph: Any) -> None:
        for session in range(sessions):
            said = graph.get_state(_config(session)).values["messages"]
            assert said[::2] == [question(session, turn) for turn in range(messages)], said

    figures = with_graph(folder, lambda tell: closed_loop(tell, sessions, messages), check)
    return {**figures, "bytes": bytes_in(folder)}


def open_(folder: Path, sessions: int, rate: float, seconds: float) -> Figures:
    return with_graph(folder, lambda tell: measured_open(tell, sessions, rate, seconds))


if __name__ == "__main__":
    main({"chats": closed, "chats-open": open_})
