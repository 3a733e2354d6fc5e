"""Several processes and one session: each message is answered once, whatever becomes of the processes."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ripstop.testing.commands import command
from tests.walks.talking_bot import GREETING, decision, script, write_bot

PATIENCE = 60.0


def start(bot: Path, text: str, *more: str) -> "subprocess.Popen[str]":
    return process_of(bot, "chat", str(bot), "--session", "ann", "--message", text, "--json", *more)


def process_of(bot: Path, *args: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "ripstop", *args, "--model", script(bot)],
        cwd=bot.parent, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def wait_until(is_so: Callable[[], bool], process: "subprocess.Popen[str]") -> None:
    until = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < until and process.poll() is None, process.communicate()
        time.sleep(0.05)


def log() -> list[dict[str, Any]]:
    return [json.loads(line) for line in command("log", "chat:shop:ann", "--json").out.splitlines()]


def said(kind: str) -> list[str]:
    asked = [one["command"] for one in log() if one["type"] == "asked"]
    return [one["text"] for one in asked if one["type"] == "say" and one["purpose"] == kind]


def heard() -> list[str]:
    return sorted(one["text"] for one in log() if one["type"] == "heard")


@pytest.mark.long
def test_two_processes_share_a_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    answers = [decision(f"Answer {number}.") for number in range(6)]
    bot = write_bot(tmp_path, *answers, on_new_message="queue")
    processes = [start(bot, f"Question {number}") for number in range(3)]
    ends = [(*process.communicate(timeout=PATIENCE), process.returncode) for process in processes]
    assert [code for _, _, code in ends] == [0, 0, 0], ends
    assert heard() == ["Question 0", "Question 1", "Question 2"]
    assert said("greeting") == [GREETING]
    statuses = [one["status"] for one in log() if one["type"] == "conversation.status_changed"]
    assert len(said("answer")) == statuses.count("typing") == statuses.count("ready") >= 1
    assert statuses[-1] == "ready" and "cancelled" not in statuses


@pytest.mark.long
@pytest.mark.parametrize("with_plan", [False, True])
def test_a_message_whose_process_was_killed_is_answered_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_plan: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    first = [decision("Hi.")] if with_plan else []
    bot = write_bot(tmp_path, *first, decision("Slow.", delay=600))
    if with_plan:
        assert command("chat", str(bot), "--session", "ann", "--message", "Hello", "--model", script(bot)).code == 0
    process = start(bot, "Where is my order?", "--message-id", "m1")
    wait_until(lambda: "Where is my order?" in command("log", "chat:shop:ann").out, process)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    write_bot(tmp_path, *first, decision("On its way."))
    for _ in range(2):
        again = start(bot, "Where is my order?", "--message-id", "m1")
        out, err = again.communicate(timeout=PATIENCE)
        assert again.returncode == 0, err
        assert json.loads(out)["messages"][-1] == {"kind": "answer", "text": "On its way."}
    assert said("answer") == ["Hi."] * with_plan + ["On its way."]
    assert heard().count("Where is my order?") == 1


@pytest.mark.long
def test_planning_again_that_is_interrupted_ends_with_130_and_leaves_the_old_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    bot = write_bot(tmp_path, decision("Hi."), decision("By the old plan."))
    chat = ("chat", str(bot), "--session", "ann", "--json", "--model", script(bot))
    assert command(*chat, "--message", "Hello").code == 0
    write_bot(tmp_path, decision("Never said.", delay=600), decision("By the old plan."))
    process = process_of(bot, "sessions", "replan", str(bot))
    try:
        wait_until(lambda: len(plans()) == 2, process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    (newest,) = (name for name, status in plans().items() if status != "completed")
    assert (process.returncode, out) == (130, "") and f"ripstop resume {newest}" in err
    answered = json.loads(command(*chat, "--message", "And now?").out)
    assert [one["text"] for one in answered["messages"]] == ["By the old plan."]
    assert plans()[newest] != "completed" and len(plans()) == 2


def plans() -> dict[str, str]:
    """The planning runs, with their statuses."""
    runs = json.loads(command("runs", "--json").out)
    return {one["run"]: one["status"] for one in runs if one["run"].startswith("plan:")}
