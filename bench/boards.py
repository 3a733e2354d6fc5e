"""What an iteration on a board costs as the run grows: time, length of MAIN's prompt, bytes in the journal.

    python bench/boards.py                     # 1,000 iterations
    python bench/boards.py --iterations 300

Scripted agents, so all the time is ripstop's: three writes to the board per iteration, each with its fsyncs, and every
step on disk. What does not grow is the same in every row.
"""

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from ripstop import App, Limits, find, read_settings
from ripstop.kernel.effects import AskAgent
from ripstop.kernel.events import Asked, Record

Moment = tuple[float, float]
"""Seconds by the wall, and of the processor."""
WINDOW = 100
REPORT = "A line about what was found, as reports have them.\n" * 40
"""2 KB."""
POLICY = {
    "report_rules": {
        "apply_to": ["CHECKER"],
        "require_verdict": True,
        "verdict_prefix": "Verdict:",
        "verdict_allowed": ["GOOD", "BAD"],
        "blocker_prefix": "Blockers:",
        "blocker_clear_value": "none",
    },
    "evidence": [{"evidence": "file", "agents": ["CHECKER"], "path": "collab/line.md"}],
}


def make_board(folder: Path, iterations: int) -> Path:
    prompts = folder / "board/memory/prompts"
    prompts.mkdir(parents=True)
    memory = prompts.parent
    (memory / "verification_policy.json").write_text(json.dumps({**POLICY, "max_iterations": iterations}))
    (memory / "dev_plan.md").write_text("# Plan\n" + "".join(f"### T{n}: Line\n- status: TODO\n" for n in range(50)))
    for agent in ("main", "writer", "checker"):
        (prompts / f"subagent_prompt_{agent}.md").write_text(f"You are {agent}.\n")
    (folder / "board/workspace/collab").mkdir(parents=True)
    (folder / "board/workspace/collab/line.md").write_text("a line\n")
    script = folder / "script.jsonl"
    with script.open("w") as lines:
        for number in range(1, iterations + 1):
            agent = "WRITER" if number % 2 else "CHECKER"
            decision = {"next_agent": agent, "reason": f"turn {number}", "task": f"Work on T{number % 50}, {number}."}
            if number == iterations:
                decision = {"next_agent": "FINISH", "reason": "all is written"}
            report = f"iteration: {number}\n{REPORT}Verdict: GOOD\nBlockers: none\n"
            lines.write(json.dumps({"agent": "MAIN", "reply": json.dumps(decision)}) + "\n")
            lines.write(json.dumps({"agent": agent, "reply": report}) + "\n")
    return script


async def run_board(folder: Path, script: Path, iterations: int) -> tuple[list[Moment], list[int]]:
    """When MAIN was asked, and how long its prompt was, for every iteration."""
    settings = read_settings(folder, store=f"sqlite:{folder / 'journal.db'}", model=f"script:{script}")
    async with App(settings) as app:
        limits = Limits(calls=3 * iterations, seconds=86_400.0)
        run = await app.start(find(str(folder / "board")), limits=limits)
        moments = [
            (time.perf_counter(), time.process_time())
            async for event in app.follow(run)
            if isinstance(event, Record) and asked_of_main(event)
        ]
        assert (await app.wait(run)).status == "completed"
        style = app.engine.style(run)
        asked = [(after, command) for one, after in await app.engine.history(run.id) if (command := asked_of_main(one))]
    rendered = (style.render(after.state, command) for after, command in asked)
    return moments, [sum(len(message.text) for message in prompt.messages) for prompt in rendered]


def asked_of_main(record: Record) -> AskAgent | None:
    command = record.event.command if isinstance(record.event, Asked) else None
    return command if isinstance(command, AskAgent) and command.agent == "MAIN" else None


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--iterations", type=int, default=1000)
    iterations = parser.parse_args().iterations
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        script = make_board(folder, iterations)
        moments, prompts = asyncio.run(run_board(folder, script, iterations))
        size = (folder / "journal.db").stat().st_size
    wall, cpu = ([1000 * (after[n] - before[n]) for before, after in pairwise(moments)] for n in (0, 1))
    print(f"{'iterations':>12} {'ms each':>9} {'of CPU':>9} {'MAIN is sent':>16}")
    for first in range(0, len(wall), WINDOW):
        window = slice(first, first + WINDOW)
        row = f"{first + 1}–{min(first + WINDOW, len(wall))}"
        times = f"{statistics.median(wall[window]):9.1f} {statistics.median(cpu[window]):9.1f}"
        print(f"{row:>12} {times} {max(prompts[window]):10,} chars")
    early, late = (statistics.median(part) for part in (cpu[WINDOW : 2 * WINDOW], cpu[-WINDOW:]))
    print(f"the last {WINDOW} to the second {WINDOW}, in CPU: {late / early:.2f} ×")
    print(f"{size / iterations:,.0f} bytes per iteration in the journal")


if __name__ == "__main__":
    main()
