"""Runs the real `ripstop run` against every mode of the hostile server, and checks what must hold in all of them.

`python -m tests.harness.hostile_matrix [MODE …]` prints a table: exit code, time, memory over idle, journal.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from msgspec import Struct

from tests.harness.hostile_server import MODES, hostile_server

KEY = "sk-hostile-0123456789abcdef"
MOST_SECONDS = 60.0
MOST_MEMORY = 300.0
"""MiB over what a run with a good server takes."""
IDLE = "good_stream"

WORKFLOW = """
name: hello
initial_message: hello
max_turns: 50
agents:
  - name: ada
    type: coder
states:
  - name: greet
    agent: ada
    start: true
    prompt: "Say hello. {{COLLABORATION_GUIDE}}"
    transitions:
      - to: END
        condition: done
      - to: greet
        condition: NOT done
"""
SETTINGS = "attempts = 2\n[models]\ntimeout = 2\n"
LIMITS = ("--max-seconds", "15", "--max-tokens", "20000", "--max-calls", "40")


class Result(Struct):
    mode: str
    exit_code: int
    seconds: float
    memory: float
    """Peak of the process, in MiB."""
    output: str
    problems: list[str]
    """What does not hold, besides the bound on memory."""


async def attack(url: str, mode: str, folder: Path) -> Result:
    workflow = folder / "hello" / "workflow.yaml"
    workflow.parent.mkdir(parents=True)
    workflow.write_text(WORKFLOW)
    (folder / "ripstop.toml").write_text(SETTINGS)
    environment = {**os.environ, "OPENAI_API_KEY": KEY, "XDG_CONFIG_HOME": str(folder / "config")}
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "ripstop", "-v", "run", str(workflow.parent), "--model", "openai:m",
        "--base-url", f"{url}/{mode}/v1", *LIMITS,
        cwd=folder, env=environment, stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    watching = asyncio.ensure_future(_peak(process.pid))
    problems: list[str] = []
    try:
        async with asyncio.timeout(MOST_SECONDS):
            output = (await process.communicate())[0].decode("utf-8", "replace")
    except TimeoutError:
        process.kill()
        await process.wait()
        output = ""
        problems.append(f"took longer than {MOST_SECONDS:g} s")
    seconds = time.monotonic() - began
    memory = await watching
    code = process.returncode if process.returncode is not None else -1
    if code != MODES[mode][0]:
        problems.append(f"exit code {code}, not {MODES[mode][0]}")
    if "Traceback" in output:
        problems.append("a traceback")
    if any((ord(char) < 32 and char not in "\n\t") or 0x7F <= ord(char) < 0xA0 for char in output):
        problems.append("a control character")
    problems += await asyncio.to_thread(_look_at_files, folder, output)
    return Result(mode, code, seconds, memory, output, problems)


async def _peak(pid: int) -> float:
    """The most memory that a process had, in MiB, seen just before it ended."""
    peak = 0.0
    while True:
        try:
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            return peak
        if "VmHWM:" not in status:
            return peak
        peak = max(peak, int(status.partition("VmHWM:")[2].split()[0]) / 1024)
        await asyncio.sleep(0.05)


def _look_at_files(folder: Path, output: str) -> list[str]:
    """The journal is sound and every record can be read; the key is nowhere."""
    from ripstop.app.settings.settings_file import Settings
    from ripstop.app.stores import open_engine

    async def look() -> list[str]:
        async with open_engine(Settings(store=f"sqlite:{folder}/.ripstop/journal.db")) as engine:
            found = [str(problem) for problem in await engine.journal.verify()]
            runs = (await engine.runs()).items
            for info in runs:
                await engine.look(info.run_id)
                await engine.journal.read(info.run_id)
            return found if runs else [*found, "there is no run"]

    try:
        problems = asyncio.run(look())
    except Exception as error:
        problems = [f"the journal cannot be read: {error!r}"]
    if KEY in output:
        problems.append("the key is in the output")
    for file in folder.rglob("*"):
        if file.is_file() and KEY.encode() in file.read_bytes():
            problems.append(f"the key is in {file.relative_to(folder)}")
    return problems


async def matrix(
    modes: Iterable[str], at_once: int = 4, seen: Callable[[Result], None] = lambda result: None
) -> list[Result]:
    """One result for every mode, in order; a few at a time. `seen` gets each as it comes."""
    room = asyncio.Semaphore(at_once)
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        async with hostile_server() as url:

            async def one(mode: str) -> Result:
                async with room:
                    result = await attack(url, mode, Path(folder) / mode)
                    seen(result)
                    return result

            results = await asyncio.gather(*(one(mode) for mode in dict.fromkeys((IDLE, *modes))))
    idle = results[0].memory
    for result in results:
        if result.memory - idle > MOST_MEMORY:
            result.problems.append(f"{result.memory - idle:.0f} MiB over idle")
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modes", nargs="*", metavar="MODE", choices=[[], *MODES])
    parser.add_argument("--at-once", type=int, default=4)
    given = parser.parse_args()
    results = asyncio.run(matrix(given.modes or MODES, given.at_once, lambda one: print(".", end="", flush=True)))
    idle = results[0].memory
    print(f"\n{'mode':32} {'exit':>4} {'seconds':>8} {'MiB over idle':>14}  {'what is wrong'}")
    for one in results:
        wrong = "; ".join(one.problems) or "—"
        print(f"{one.mode:32} {one.exit_code:>4} {one.seconds:>8.1f} {one.memory - idle:>14.1f}  {wrong}")
    bad = [one for one in results if one.problems]
    print(f"{len(results)} modes, {len(bad)} with problems; idle is {idle:.0f} MiB")
    for one in bad:
        print(f"--- {one.mode}\n{one.output[-1500:]}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
