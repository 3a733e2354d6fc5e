"""A process that delivers is killed again and again: everything arrives, with the same id, in order for each run."""

import asyncio
import os
import signal
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from tests.app.webhooks.receiver import SECRET, Receiver, a_receiver, in_a_loop
from tests.app.webhooks.telling_style import REGISTRY, speaking
from tests.engine.world import a_world

RUNS, MESSAGES = 3, 10
"""Runs between two kills, and messages of each."""


async def start_follower(journal: Path, receiver: Receiver) -> asyncio.subprocess.Process:
    command = [sys.executable, "-m", "tests.app.webhooks.follow_journal", str(journal), receiver.url]
    environment = {**os.environ, "CRM_SECRET": SECRET, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, env=environment)
    assert process.stdout and await process.stdout.readline() == b"ready\n"
    return process


async def kill(process: asyncio.subprocess.Process) -> None:
    process.send_signal(signal.SIGKILL)
    await process.wait()


def check(receiver: Receiver, runs: int) -> None:
    bodies: dict[str, dict[str, object]] = {}
    order: dict[str, list[int]] = defaultdict(list)
    for one in receiver.got:
        assert bodies.setdefault(one.id, one.body) == one.body
        number = one.body["data"]["number"]
        if number not in order[one.body["data"]["run"]]:
            order[one.body["data"]["run"]].append(number)
    assert len(order) == runs and all(numbers == sorted(numbers) for numbers in order.values())
    assert all(len(numbers) == 2 * MESSAGES + 1 for numbers in order.values())


@pytest.mark.parametrize("kills", [1, pytest.param(10, marks=pytest.mark.long)])
@in_a_loop
async def test_everything_arrives_although_the_process_is_killed(tmp_path: Path, kills: int) -> None:
    path = tmp_path / "j.db"
    async with a_world(path, registry=REGISTRY) as world, a_receiver() as receiver:
        process = await start_follower(path, receiver)
        for turn in range(kills):
            for number in range(RUNS):
                definition = speaking(*(f"{n}" for n in range(MESSAGES)))
                await world.engine.start(f"r{turn}-{number}", "errands", definition.content())
            wanted = len(receiver.got) + 20
            await receiver.until(lambda one, wanted=wanted: len(one.got) >= wanted)  # type: ignore[misc]
            await kill(process)
            process = await start_follower(path, receiver)
        total = kills * RUNS * (3 * MESSAGES + 1)
        await receiver.until(lambda one: len(set(one.ids())) == total)
        await kill(process)
        assert await world.journal.verify() == []
    check(receiver, kills * RUNS)


@in_a_loop
async def test_one_of_two_processes_delivers_and_the_other_takes_over(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    async with a_world(path, registry=REGISTRY) as world, a_receiver() as receiver:
        first = await start_follower(path, receiver)
        second = await start_follower(path, receiver)
        await world.engine.start("a", "errands", speaking("one").content())
        await receiver.until(lambda one: len(one.got) == 4)
        while await world.journal.follower("webhook:crm") != await world.journal.cursor():
            await asyncio.sleep(0.01)
        await kill(first)
        await world.engine.start("b", "errands", speaking("two").content())
        await receiver.until(lambda one: one.ids().count("b/4"))
        await kill(second)
    assert len([one for one in receiver.got if one.id == "a/3"]) == 1
