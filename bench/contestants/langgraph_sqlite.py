"""LangGraph with its SQLite checkpointer, set up as kindly as its durability allows.

- `durability="sync"`: a step's checkpoint is written before the next step begins. (The default, "async", is
  faster and loses steps when the process dies, so it is not the same work.)
- WAL (the checkpointer sets it) and synchronous=FULL (set here, and SQLite's own default).
- The synchronous `SqliteSaver`: measured here it is faster than `AsyncSqliteSaver`, for one run (550 against
  325 steps/s) and for many (430 against 220). Many runs share 8 threads.
- Speed is measured with a constant state. Growth and size are measured with a list of messages that grows by a
  reducer, as its documentation teaches; `growth-delta` with `DeltaChannel`, its beta answer to that growth.
"""

import operator
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.channels.delta import DeltaChannel  # type: ignore[import-not-found]  # in the peers' environment only
from langgraph.checkpoint.sqlite import SqliteSaver  # type: ignore[import-not-found]  # the same
from langgraph.graph import END, START, StateGraph  # type: ignore[import-not-found]  # the same
from langgraph.types import interrupt  # type: ignore[import-not-found]  # the same

from .work import Figures, Model, bytes_in, go, main, rate, resident

THREADS = 8


class Constant(TypedDict):
    last: str
    left: int


class Growing(TypedDict):
    last: str
    left: int
    messages: Annotated[list[str], operator.add]


def _joined(messages: list[str], more: list[list[str]]) -> list[str]:
    return [*messages, *(message for batch in more for message in batch)]


class GrowingByDelta(TypedDict):
    last: str
    left: int
    messages: Annotated[list[str], DeltaChannel(_joined)]


def opened(folder: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(folder / "checkpoints.db", check_same_thread=False)
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def ping_pong(connection: sqlite3.Connection, model: Model, state: type = Constant) -> Any:
    grows = "messages" in state.__annotations__

    def play(values: dict[str, Any]) -> dict[str, Any]:
        answer = model.answer()
        update: dict[str, Any] = {"last": answer, "left": values["left"] - 1}
        if grows:
            update["messages"] = [answer]
        return update

    def then(other: str) -> Callable[[dict[str, Any]], str]:
        return lambda values: other if values["left"] > 0 and go(values["last"]) else END

    builder = StateGraph(state)
    builder.add_node("ping", play)
    builder.add_node("pong", play)
    builder.add_edge(START, "ping")
    builder.add_conditional_edges("ping", then("pong"), ["pong", END])
    builder.add_conditional_edges("pong", then("ping"), ["ping", END])
    return builder.compile(checkpointer=SqliteSaver(connection))


def invoke(graph: Any, run: str, steps: int, values: dict[str, Any] | None) -> None:
    config = {"configurable": {"thread_id": run}, "recursion_limit": steps + 10}
    graph.invoke(values, config, durability="sync")


def concurrent(folder: Path, runs: int, steps: int) -> Figures:
    model = Model()
    with closing(opened(folder)) as connection:
        graph = ping_pong(connection, model)
        began = time.perf_counter()
        with ThreadPoolExecutor(min(THREADS, runs)) as threads:
            start = {"last": "", "left": steps}
            list(threads.map(lambda run: invoke(graph, f"run-{run}", steps, start), range(runs)))
        figures = rate(runs * steps, began)
    assert len(model.asked) == runs * steps, len(model.asked)
    return {**figures, "bytes": bytes_in(folder)}


def single(folder: Path, steps: int) -> Figures:
    model = Model()
    with closing(opened(folder)) as connection:
        graph = ping_pong(connection, model)
        began = time.perf_counter()
        invoke(graph, "run", steps, {"last": "", "left": steps})
        return rate(steps, began)


def growth(folder: Path, steps: int, window: int, state: type = Growing) -> Figures:
    model = Model()
    with closing(opened(folder)) as connection:
        invoke(ping_pong(connection, model, state), "run", steps, {"last": "", "left": steps, "messages": []})
    return {**model.growth(window), "bytes": bytes_in(folder)}


def growth_delta(folder: Path, steps: int, window: int) -> Figures:
    return growth(folder, steps, window, GrowingByDelta)


def size_on_disk(folder: Path, steps: int, size: int) -> Figures:
    with closing(opened(folder)) as connection:
        graph = ping_pong(connection, Model(size), Growing)
        invoke(graph, "run", steps, {"last": "", "left": steps, "messages": []})
    return {"bytes": bytes_in(folder)}


def fill(folder: Path, steps: int) -> Figures:
    graph = ping_pong(opened(folder), Model(die_at=steps + 1))
    invoke(graph, "run", steps + 10, {"last": "", "left": steps + 10})
    raise AssertionError("should have been killed")


def resume(folder: Path) -> Figures:
    invoke(ping_pong(opened(folder), Model(announce=True)), "run", 100, None)
    raise AssertionError("should have ended at the first durable step")


def waiting(folder: Path, runs: int, seconds: float) -> Figures:
    def ask(values: dict[str, Any]) -> dict[str, Any]:
        return {"last": interrupt("May it go on?")}

    with closing(opened(folder)) as connection:
        builder = StateGraph(Constant)
        builder.add_node("ask", ask)
        builder.add_edge(START, "ask")
        graph = builder.compile(checkpointer=SqliteSaver(connection))
        for run in range(100):
            invoke(graph, f"warm-{run}", 10, {"last": "hello", "left": 1})
        before = resident()
        for run in range(runs):
            invoke(graph, f"run-{run}", 10, {"last": "hello", "left": 1})
        grown = resident() - before
        used = time.process_time()
        time.sleep(seconds)
        return {"bytes_per_run": grown / runs, "cpu_share": (time.process_time() - used) / seconds, "runs": runs}


if __name__ == "__main__":
    main(
        {
            "concurrent": concurrent,
            "single": single,
            "growth": growth,
            "growth-delta": growth_delta,
            "bytes": size_on_disk,
            "fill": fill,
            "resume": resume,
            "waiting": waiting,
        }
    )
