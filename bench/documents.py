"""Measure `docs list` and `docs show` with many documents, and `docs inbox --handle` with many messages.

    python bench/documents.py --documents 2000 --messages 200

Every figure is the wall time of a whole command, in a process of its own.
"""

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ripstop.app.application import App
from ripstop.app.settings.settings_file import Settings
from ripstop.styles.handoff.document import write
from ripstop.styles.handoff.service import HandoffService
from ripstop.styles.handoff.state import draft

AT = "2026-01-01 10:00:00"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--messages", type=int, default=200)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / ".workflows").mkdir()
        for number in range(given.documents):
            text = write(draft(f"task_{number}", "boss", "ann", f"Add {number} and 1", AT))
            (root / ".workflows" / f"workflow_task_{number}.md").write_text(text, encoding="utf-8")
        asyncio.run(_take_in(root))
        for name, *arguments in (
            ("docs list", "list"),
            ("docs show", "show", f"task_{given.documents // 2}"),
            ("docs accept", "accept", f"task_{given.documents // 2}"),
        ):
            print(f"{name}, {given.documents} documents: {_timed(root, *arguments):.2f} s", flush=True)
    for messages in (given.messages // 2, given.messages):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            inbox = root / ".inbox" / "ann"
            inbox.mkdir(parents=True)
            for number in range(messages):
                text = f"# Message\nFrom: boss\nTo: ann\nType: normal\n\nPlease add {number} and 1.\n"
                (inbox / f"{number:04}.md").write_text(text, encoding="utf-8")
            print(f"docs inbox --handle, {messages} messages: {_timed(root, 'inbox', '--handle'):.2f} s", flush=True)


async def _take_in(root: Path) -> None:
    async with App(Settings(store=f"sqlite:{root / '.ripstop' / 'journal.db'}")) as app:
        app.worker.only = ""
        await HandoffService(app, root, print).reconcile()


def _timed(root: Path, *arguments: str) -> float:
    began = time.perf_counter()
    command = [sys.executable, "-m", "ripstop", "docs", *arguments, "--json"]
    subprocess.run(command, cwd=root, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
