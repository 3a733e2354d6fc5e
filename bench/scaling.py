"""How time grows with the number of runs: following all of them in one process, and listing them.

    python bench/scaling.py                    # 500 and 2,000 runs
    python bench/scaling.py --runs 100 400

Each run is the haiku example with a script, so its steps are those of the command line. What should be linear has
the same time per run in every row.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ripstop import App, find, read_settings, until_settled

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "haiku"


def follow(folder: Path, runs: int) -> float:
    """Seconds to start so many runs at once and to follow each until it has ended."""

    async def work() -> float:
        settings = read_settings(
            folder, store=f"sqlite:{folder / 'journal.db'}", model=f"script:{EXAMPLE / 'script.jsonl'}"
        )
        workflow = find(str(EXAMPLE))
        async with App(settings) as app:
            began = time.perf_counter()
            started = await asyncio.gather(*(app.start(workflow, workspace=folder / "files") for _ in range(runs)))
            views = await asyncio.gather(*(until_settled(app.engine, app.worker, run.id) for run in started))
            taken = time.perf_counter() - began
        statuses = {view.status for view in views}
        assert statuses == {"completed"}, statuses
        return taken

    return asyncio.run(work())


def listing(folder: Path, *options: str) -> float:
    """Seconds of `ripstop runs`, its start included; the fastest of three."""
    command = [sys.executable, "-m", "ripstop", "--store", f"sqlite:{folder / 'journal.db'}", "runs", *options]

    def once() -> float:
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        return time.perf_counter() - began

    return min(once() for _ in range(3))


def measure(runs: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        taken = follow(folder, runs)
        return {"runs": runs, "follow": taken, "runs table": listing(folder), "runs --json": listing(folder, "--json")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, nargs="+", default=[500, 2000])
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = [measure(runs) for runs in arguments.runs]
    if arguments.json:
        print(json.dumps(rows))
        return
    for row in rows:
        per_run = row["follow"] / row["runs"] * 1000
        print(
            f"{row['runs']:6.0f} runs  followed in {row['follow']:7.2f} s ({per_run:5.2f} ms each)"
            f"  runs {row['runs table']:5.2f} s  runs --json {row['runs --json']:5.2f} s"
        )


if __name__ == "__main__":
    main()
