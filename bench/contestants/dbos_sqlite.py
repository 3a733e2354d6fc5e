"""DBOS with SQLite as its system database, set up as kindly as its durability allows.

- A workflow of steps; DBOS writes a step's result before the workflow goes on.
- DBOS leaves SQLite's defaults: synchronous=FULL, and the slow rollback journal. Here the file is switched to
  WAL before DBOS opens it (the mode stays with the file), because that is what the others use: 440 steps/s
  for one run instead of 260.
- Synchronous workflows on its own thread pool: measured here they are faster than async ones, for one run (440
  against 280 steps/s) and for many (250 against 200). Only waiting uses async workflows, because a synchronous
  one that waits keeps a thread.
- The conversation is what the steps returned: DBOS keeps each once, so speed, growth and size use one workflow.
"""

import asyncio
import sqlite3
import time
from pathlib import Path
from typing import Any

from dbos import DBOS, SetWorkflowID  # type: ignore[import-not-found]  # in the peers' environment only

from .work import Figures, Model, bytes_in, go, main, rate, resident

models = [Model()]
"""The last is the one that the step asks. DBOS recovers functions of a module, so it cannot be an argument."""


def _play(state: str) -> str:
    return models[-1].answer()


play = DBOS.step(name="play")(_play)


def _ping_pong(steps: int) -> int:
    state, said = "ping", 0
    conversation = []
    while said < steps:
        answer = play(state)
        conversation.append(answer)
        said += 1
        if not go(answer):
            break
        state = "pong" if state == "ping" else "ping"
    return said


ping_pong = DBOS.workflow(name="ping_pong")(_ping_pong)


async def _wait_for_person() -> Any:
    return await DBOS.recv_async(timeout_seconds=3600)


wait_for_person = DBOS.workflow(name="wait_for_person")(_wait_for_person)


def launch(folder: Path) -> None:
    path = folder.resolve() / "dbos.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    DBOS(
        config={
            "name": "bench",
            "system_database_url": f"sqlite:///{path}",
            "log_level": "ERROR",
            "application_version": "bench",
        }
    )
    DBOS.launch()


def concurrent(folder: Path, runs: int, steps: int) -> Figures:
    launch(folder)
    began = time.perf_counter()
    handles = [DBOS.start_workflow(ping_pong, steps) for _ in range(runs)]
    for handle in handles:
        handle.get_result(polling_interval_sec=0.05)
    figures = rate(runs * steps, began)
    assert len(models[-1].asked) == runs * steps, len(models[-1].asked)
    DBOS.destroy()
    return figures


def one_run(folder: Path, steps: int, size: int = 500) -> Figures:
    models.append(Model(size))
    launch(folder)
    began = time.perf_counter()
    ping_pong(steps)
    figures = rate(steps, began)
    DBOS.destroy()
    return {**figures, "bytes": bytes_in(folder)}


def growth(folder: Path, steps: int, window: int) -> Figures:
    figures = one_run(folder, steps)
    return {**models[-1].growth(window), "bytes": figures["bytes"]}


def fill(folder: Path, steps: int) -> Figures:
    models.append(Model(die_at=steps + 1))
    launch(folder)
    with SetWorkflowID("run"):
        ping_pong(steps + 10)
    raise AssertionError("should have been killed")


def resume(folder: Path) -> Figures:
    models.append(Model(announce=True))
    launch(folder)  # takes up what was pending, by itself
    time.sleep(60)
    raise AssertionError("the run was not taken up again within a minute")


def waiting(folder: Path, runs: int, seconds: float) -> Figures:
    launch(folder)

    async def wait() -> Figures:
        for _ in range(20):
            await DBOS.start_workflow_async(wait_for_person)
        await asyncio.sleep(1)
        before = resident()
        for _ in range(runs):
            await DBOS.start_workflow_async(wait_for_person)
        await asyncio.sleep(2)  # until the last of them waits
        grown = resident() - before
        used = time.process_time()
        await asyncio.sleep(seconds)
        return {"bytes_per_run": grown / runs, "cpu_share": (time.process_time() - used) / seconds, "runs": runs}

    return asyncio.run(wait())


def print_and_leave(folder: Path, runs: int, seconds: float) -> Figures:
    """The waiting workflows would keep the process alive for an hour."""
    import json
    import os

    print(json.dumps(waiting(folder, runs, seconds)), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main(
        {
            "concurrent": concurrent,
            "single": one_run,
            "growth": growth,
            "bytes": one_run,
            "fill": fill,
            "resume": resume,
            "waiting": print_and_leave,
        }
    )
