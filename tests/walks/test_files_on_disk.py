"""Files of replies on a real disk: their order, and what a run says about those that could not be written."""

import asyncio
import json
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ripstop.app.settings.settings_file import Settings
from ripstop.app.stores import open_engine
from ripstop.kernel.effects import AgentReplied, CallTool, Failed, ToolReturned
from ripstop.kernel.events import Answered, Asked, Record
from tests.walks.commands import ripstop

FLOW = """\
name: flow
initial_message: files
max_turns: 1000
guards: {patience: 0}
agents: [{name: maker, type: coder}]
states:
  - name: make
    agent: maker
    start: true
    prompt: "{{COLLABORATION_GUIDE}} Decide: more."
    transitions: [{to: make, condition: more}, {to: END}]
"""
NAMES = ("a.txt", "b.txt", "c.txt")


def decided(more: bool = True) -> str:
    return json.dumps({"content": "The files are written.", "decisions": {"more": more}})


# Replies with several operations on the same files


class Turn:
    """One generated turn: its lines in the script, and what doing its operations in order leads to."""

    def __init__(self, number: int, chance: random.Random) -> None:
        self.files: dict[str, str] = {}
        self.reads: list[str | None] = []
        """What each `read_file` returns; none: it fails."""
        self._chance, self._folder, self._serial = chance, f"t{number}", 0
        text = "".join(self._in_text() for _ in range(chance.choice((0, 2, 4, 8))))
        calls = [self._call() for _ in range(chance.choice((0, 2, 4, 8)))]
        if calls:
            self.lines: list[dict[str, Any]] = [{"reply": text, "calls": calls}, {"reply": decided()}]
        else:
            self.lines = [{"reply": text + decided()}]

    def _in_text(self) -> str:
        path = self._path()
        if path in self.files and self._chance.random() < 0.6:
            search, new = self._edit(path)
            return f"{path}\n```\n<<<<<<< SEARCH\n{search}=======\n{new}>>>>>>> REPLACE\n```\n\n"
        return f"{path}\n```\n{self._write(path)}```\n\n"

    def _call(self) -> dict[str, Any]:
        path, kind = self._path(), self._chance.random()
        if kind < 0.35:
            self.reads.append(self.files.get(path))
            return {"tool": "read_file", "args": {"path": path}}
        if kind < 0.45:  # fails, and changes nothing
            return {"tool": "edit_file", "args": {"path": path, "search": "not there\n", "replace": "x\n"}}
        if path in self.files and kind < 0.75:
            search, new = self._edit(path)
            return {"tool": "edit_file", "args": {"path": path, "search": search, "replace": new}}
        return {"tool": "write_file", "args": {"path": path, "content": self._write(path)}}

    def _path(self) -> str:
        return f"{self._folder}/{self._chance.choice(NAMES[: self._chance.choice((1, 3))])}"

    def _write(self, path: str) -> str:
        self.files[path] = "".join(self._line() for _ in range(self._chance.randint(1, 4)))
        return self.files[path]

    def _edit(self, path: str) -> tuple[str, str]:
        old = self._chance.choice(self.files[path].splitlines(keepends=True))
        new = self._line()
        self.files[path] = self.files[path].replace(old, new)
        return old, new

    def _line(self) -> str:
        self._serial += 1
        return f"line {self._serial}\n"


def turns_for(folder: Path, count: int, seed: int) -> list[Turn]:
    """Write the workflow and a script of so many turns."""
    chance = random.Random(seed)
    turns = [Turn(number, chance) for number in range(count)]
    lines = [line for turn in turns for line in turn.lines] + [{"reply": decided(more=False)}]
    (folder / "script.jsonl").write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    (folder / "flow.yaml").write_text(FLOW, encoding="utf-8")
    return turns


RUN = ("run", "flow.yaml", "--any-name", "--model", "script:script.jsonl", "--workspace", "w", "--max-calls", "100000")


def check(folder: Path, turns: list[Turn], run: str) -> None:
    found = {
        str(path.relative_to(folder / "w" / "maker")): path.read_text(encoding="utf-8")
        for path in (folder / "w" / "maker").rglob("*.txt")
    }
    assert found == {path: text for turn in turns for path, text in turn.files.items()}
    assert reads(asyncio.run(records(folder, run))) == [read for turn in turns for read in turn.reads]


async def records(folder: Path, run: str) -> list[Record]:
    async with open_engine(Settings(store=f"sqlite:{folder / '.ripstop' / 'journal.db'}")) as engine:
        return [record for record, _ in await engine.history(run)]


def reads(told: list[Record]) -> list[str | None]:
    """What every `read_file` was answered, in the order of the replies."""
    sources: dict[int, tuple[int, int]] = {}
    answers: dict[tuple[int, int], str | None] = {}
    replies = {record.number: record.event.answer for record in told if isinstance(record.event, Answered)}
    for record in told:
        match record.event:
            case Asked(command=CallTool(source=(number, index))):
                reply = replies[number]
                assert isinstance(reply, AgentReplied)
                if index < len(reply.calls) and reply.calls[index].tool == "read_file":
                    sources[record.number] = (number, index)
            case Answered(to=to, answer=ToolReturned(value=value)) if to in sources:
                answers[sources[to]] = value
            case Answered(to=to, answer=Failed()) if to in sources:
                answers[sources[to]] = None
    return [answers[source] for source in sorted(answers)]


def in_order(folder: Path, count: int, seed: int) -> None:
    turns = turns_for(folder, count, seed)
    done = ripstop(*RUN, "--json", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    check(folder, turns, json.loads(done.stdout)["run"])


def test_replies_take_effect_in_their_order(tmp_path: Path) -> None:
    in_order(tmp_path, 25, seed=0)


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2, 6, 7])
def test_many_replies_take_effect_in_their_order(tmp_path: Path, seed: int) -> None:
    in_order(tmp_path, 125, seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", [3, pytest.param(4, marks=pytest.mark.soak)])
def test_many_replies_take_effect_in_their_order_however_often_the_process_is_killed(tmp_path: Path, seed: int) -> None:
    turns, chance = turns_for(tmp_path, 250, seed), random.Random(seed)
    arguments, kills = [*RUN, "--json"], 0
    while True:
        command = [sys.executable, "-m", "ripstop", *arguments]
        with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as work:
            try:
                out, err = work.communicate(timeout=120 if kills >= 12 else chance.uniform(0.6, 1.8))
            except subprocess.TimeoutExpired:
                work.kill()
                work.communicate()
                kills += 1
                arguments = ["resume", "--json"] if (tmp_path / "w").exists() else arguments
                continue
        break
    assert work.returncode == 0 and kills, out + err
    check(tmp_path, turns, json.loads(out)["run"])


@pytest.mark.long
def test_replies_take_effect_in_their_order_with_several_workers(tmp_path: Path) -> None:
    turns = turns_for(tmp_path, 150, seed=5)
    command = [sys.executable, "-m", "ripstop"]
    pipes: dict[str, Any] = {"cwd": tmp_path, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([*command, *RUN, "--json"], **pipes) as first:
        while not (tmp_path / "w" / "maker" / "t0").exists() and first.poll() is None:
            time.sleep(0.01)
        others = [subprocess.Popen([*command, "resume", "--json"], **pipes) for _ in range(2)]
        out, err = first.communicate(timeout=240)
        for other in others:
            other.communicate(timeout=240)
    assert first.returncode == 0, out + err
    check(tmp_path, turns, json.loads(out)["run"])


def test_a_limit_in_time_ends_a_run_among_its_files(tmp_path: Path) -> None:
    many = "".join(f"f{n}.txt\n```\n{n}\n```\n" for n in range(200)) + decided()
    result = run_of(tmp_path, *[many] * 50, more=("--max-seconds", "1"))
    assert result["outcome"] == "limit" and result["turns"] < 50


# What could not be written


def run_of(folder: Path, *replies: str, recorded: bool = False, more: tuple[str, ...] = ()) -> dict[str, Any]:
    (folder / "flow.yaml").write_text(FLOW, encoding="utf-8")
    script = folder / ("recording" if recorded else "script.jsonl")
    if recorded:
        (script / "maker").mkdir(parents=True)
        for number, reply in enumerate(replies, 1):
            (script / "maker" / f"{number:02}_reply.txt").write_text(reply, encoding="utf-8")
    else:
        script.write_text("\n".join(json.dumps({"reply": reply}) for reply in replies), encoding="utf-8")
    arguments = ("run", "flow.yaml", "--any-name", "--model", f"script:{script}", "--workspace", "w", "--json", *more)
    result: dict[str, Any] = json.loads(ripstop(*arguments, cwd=folder).stdout)
    return result


MISSING = "x.txt\n```\n<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE\n```\n\n"
WHOLE = "{}\n```\nnew\n```\n\n"


def test_a_file_that_the_agent_sends_again_is_written(tmp_path: Path) -> None:
    result = run_of(tmp_path, MISSING + decided(False), WHOLE.format("x.txt") + decided(False))
    assert (result["outcome"], result["warnings"]) == ("completed", [])
    assert (tmp_path / "w" / "maker" / "x.txt").read_text() == "new\n"


@pytest.mark.parametrize("path", ["../x.txt", "/etc/x.txt", "d/x.txt", "n" * 300 + ".txt", "a\x1b[31m.txt"])
def test_a_file_that_cannot_be_written_fails_the_run_and_is_named(tmp_path: Path, path: str) -> None:
    (tmp_path / "w" / "maker").mkdir(parents=True)
    (tmp_path / "w" / "maker" / "d").write_text("not a folder")
    result = run_of(tmp_path, *[WHOLE.format(path) + decided(False)] * 2)
    assert result["outcome"] == "failed" and repr(path[:100])[:-1] in result["because"]


def test_a_recording_keeps_its_path_and_warns_of_what_is_missing(tmp_path: Path) -> None:
    result = run_of(tmp_path, MISSING + decided(), WHOLE.format("y.txt") + decided(False), recorded=True)
    assert (result["outcome"], result["path"]) == ("completed", ["make", "make"])
    (warning,) = result["warnings"]
    assert "'x.txt'" in warning


def test_the_summary_on_the_screen_lists_the_warnings(tmp_path: Path) -> None:
    run_of(tmp_path, MISSING + decided(False), recorded=True)
    done = ripstop("run", "flow.yaml", "--any-name", "--model", "script:recording", "--workspace", "v", cwd=tmp_path)
    shown = done.stdout.partition("completed")[2]
    assert "warning" in shown and "'x.txt'" in shown
