"""What long and hostile replies cost: `python bench/replies.py`. Prints figures and asserts nothing.

Each reply is answered by a scripted agent in a real run (SQLite journal, worker, files on disk). Beside the time
of the run stands the longest time for which the event loop did not come round: so long a deadline or Ctrl-C waits.
The edits are timed alone, without a run.
"""

import asyncio
import json
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ripstop.app.application import App
from ripstop.app.settings.settings_file import Models, Settings
from ripstop.definitions.loading import find
from ripstop.engine.following import until_settled
from ripstop.styles.reply_files import deliveries
from ripstop.tools.files import NotOnce, Undecidable, edited, is_edited

DONE = '{"content": "ok", "decisions": {"done": true}}'
FLOW = """\
name: flow
initial_message: files
max_turns: 2
reasks: 0
agents: [{name: maker, type: coder}]
states:
  - {name: make, agent: maker, start: true, prompt: "{{COLLABORATION_GUIDE}} done", transitions: [{to: END}]}
"""
SIZE = 900_000
LIMIT = 40
"""Seconds after which an edit or the reading of a reply is broken off."""


async def run(reply: dict[str, object]) -> tuple[float, float, str]:
    """Seconds of the run, the longest stall of the event loop, and how it ended."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "flow.yaml").write_text(FLOW, encoding="utf-8")
        script = place / "script.jsonl"
        script.write_text("\n".join(json.dumps(line) for line in (reply, {"reply": DONE})), encoding="utf-8")
        settings = Settings(store=f"sqlite:{place / 'journal.db'}", models=Models(default=f"script:{script}"))
        async with App(settings) as app:
            ticking = asyncio.create_task(_longest_stall())
            begin = time.perf_counter()
            started = await app.start(find(str(place / "flow.yaml"), any_name=True), workspace=place / "w")
            view = await until_settled(app.engine, app.worker, started.id)
            took = time.perf_counter() - begin
            ticking.cancel()
            stall = (await asyncio.gather(ticking, return_exceptions=True))[0]
            return took, _stall[0] if isinstance(stall, BaseException) else 0.0, view.status


_stall = [0.0]


async def _longest_stall() -> None:
    _stall[0], last = 0.0, time.perf_counter()
    while True:
        await asyncio.sleep(0.001)
        now = time.perf_counter()
        _stall[0], last = max(_stall[0], now - last), now


def files(count: int) -> dict[str, object]:
    return {"reply": "".join(f"f{n}.md\n```\n{n}\n```\n" for n in range(count)) + DONE}


def calls(count: int) -> dict[str, object]:
    return {"reply": "", "calls": [{"tool": "read_file", "args": {"path": f"f{n}.md"}} for n in range(count)]}


def edits() -> dict[str, tuple[str, str, str]]:
    """(text, search, replace) that look almost alike in as many places as possible."""
    lines = SIZE // 2
    return {
        "the same line everywhere, one missing": ("a\n" * lines, "a\n" * (lines // 2) + "b\n", "c\n"),
        "the same, with spaces at the ends of lines": ("a \n" * (SIZE // 3), "a\n" * (SIZE // 6) + "b\n", "c\n"),
        "one long line, no line break to begin at": ("a" * SIZE, "a" * (SIZE // 2) + "\n", "c\n"),
        "a piece that overlaps itself": ("a" * SIZE, "aa\n", "a"),
        "a first line that is nearly there": ("almost the same line, but not quite\n" * 25_000, "almost tha same", "c"),
        "200 long different lines": ("".join(f"{n} {'xy' * 100}\n" for n in range(4_400)), "yx" * 100, "c"),
    }


def timed(do: Callable[[], object]) -> float:
    signal.alarm(LIMIT)
    begin = time.perf_counter()
    try:
        do()
    except (NotOnce, Undecidable, _TooLong):
        pass
    finally:
        signal.alarm(0)
    return time.perf_counter() - begin


class _TooLong(Exception):
    """Raised by the alarm."""


def _break_off(_number: int, _frame: object) -> None:
    raise _TooLong


def main() -> None:
    signal.signal(signal.SIGALRM, _break_off)
    print(f"Python {sys.version.split()[0]}\n\nEdits of a file of {SIZE:,} bytes, seconds")
    for name, (text, search, replace) in edits().items():
        once = timed(lambda: edited(text, search, replace))  # noqa: B023  (called at once)
        again = timed(lambda: is_edited(text, search, replace))  # noqa: B023
        print(f"  {name:45} edit {once:8.3f}   after a crash {again:8.3f}", flush=True)
    print("\nReading a reply, seconds")
    for unit in ("a.md\n```\nx\n```\n", "a.md\n```x\n", "```x\n~~~y\n", "a.py\n```\n{\n", "x.py\n<<<<<<< SEARCH\n"):
        text = unit * (SIZE // len(unit))
        print(f"  {unit!r:45} × {SIZE // len(unit):7,} {timed(lambda: deliveries(text)):8.3f}", flush=True)  # noqa: B023
    print("\nRuns: seconds, longest stall of the event loop in seconds, outcome")
    for what, make, counts in (
        ("files in a reply", files, (50, 100, 200, 500)),
        ("tool calls", calls, (50, 100, 3_000)),
    ):
        for count in counts:
            took, stall, status = asyncio.run(run(make(count)))
            print(f"  {count:5} {what:20} {took:8.2f} {stall:8.3f}   {status}", flush=True)


if __name__ == "__main__":
    main()
