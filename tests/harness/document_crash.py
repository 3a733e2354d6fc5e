"""Many processes work on one folder of documents and are killed at random; is any document torn, any update lost?

    python -m tests.harness.document_crash --processes 50 --updates 100000

The processes are `document_work`. While they work, files are read at random moments, and each must be a whole
document. When enough updates were acknowledged, all are killed; then one fresh process takes stock, and everything
that was acknowledged is looked for (`Findings`):

- a history line that was acknowledged stands in its document exactly once, in the file and in the journal;
- what was refused stands nowhere, and every file says what the journal says;
- every document has a file and an id of its own;
- an edit by hand was taken over, or it was refused and is kept beside the file.

Saving in place is not atomic, so a file that is saved so may be seen half; its edits are counted by themselves.
"""

import argparse
import asyncio
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from msgspec import Struct, field, to_builtins

from ripstop.app.application import App
from ripstop.kernel.effects import ToolReturned
from ripstop.kernel.events import Answered, Record
from ripstop.styles.handoff.document import Malformed, read, write
from ripstop.styles.handoff.document_view import DocumentView, FolderWarning
from ripstop.styles.handoff.events import EditAccepted, EditFound, EditRefused
from ripstop.styles.handoff.folder import SET_ASIDE, WORKFLOWS
from ripstop.styles.handoff.reconcile import SETTLED
from ripstop.styles.handoff.state import OWNED
from tests.harness.document_work import (
    IN_PLACE,
    Declined,
    Made,
    Moved,
    Saved,
    Unseen,
    documents_of,
    lines_in,
    log_of,
    scope_of,
    settings_for,
)

PAUSE = 0.05
"""Seconds between two looks at the processes."""
GLANCES = 5
"""Files read at each look."""
PER_KILL = 150
"""Updates between two kills."""
TELL = 5.0
"""Seconds between two lines about how far it is."""
MOST_TROUBLE = 40
"""Then it is clear that something is wrong."""
SILENCE = 60.0
"""Seconds without an update after which everything has stopped moving."""
STOCKS = 5
"""How often stock is taken at most until there is nothing new."""
NAME = re.compile(r"workflow_[a-z]+_[0-9]{8}_[0-9]{6}(_[0-9]+)?\.md")

Say = Callable[[str], None]


class Tally(Struct):
    """The figures."""

    updates: int = 0
    kills: int = 0
    glances: int = 0
    half_saved: int = 0
    seconds: float = 0.0
    documents: int = 0
    longest: int = 0
    """Lines of a history."""
    declined: int = 0
    edits: Counter[str] = field(default_factory=Counter)
    trouble: list[str] = []


class Crowd:
    """The processes. One that dies is followed by another in its place."""

    def __init__(self, root: Path, processes: int, rng: random.Random, tally: Tally) -> None:
        self._root = root
        self._rng = rng
        self._tally = tally
        self._lives = 0
        for folder in ("logs", "hands", WORKFLOWS):
            (root / folder).mkdir()
        self._logs = [log_of(root, place).open("w+b") for place in range(processes)]
        self._running = [self._begin(place) for place in range(processes)]

    def _begin(self, place: int) -> "subprocess.Popen[bytes]":
        self._lives += 1
        module, arguments = "tests.harness.document_work", (place, self._lives, self._rng.random())
        command = [sys.executable, "-m", module, str(self._root), *map(str, arguments)]
        with (self._root / "stderr.txt").open("ab") as errors:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors)  # our own program

    def kill_one(self) -> None:
        place = self._rng.randrange(len(self._running))
        self._end(place)
        self._running[place] = self._begin(place)
        self._tally.kills += 1

    def _end(self, place: int) -> None:
        process = self._running[place]
        process.kill()
        if process.wait() != -signal.SIGKILL:
            said = (self._root / "stderr.txt").read_text(encoding="utf-8", errors="replace")[-1500:]
            self._tally.trouble.append(f"a process ended by itself with {process.returncode}: {said}")

    def look(self) -> None:
        """Count what was acknowledged since the last look, and see whether all still live."""
        for place, process in enumerate(self._running):
            new = self._logs[place].read()
            self._tally.updates += new.count(b'{"type":"made"') + new.count(b'{"type":"moved"')
            if process.poll() is not None:
                self._end(place)
                self._running[place] = self._begin(place)

    def glance(self) -> None:
        """Some files, as they are at this moment, must be whole documents."""
        names = [name for name in os.listdir(self._root / WORKFLOWS) if not name.startswith(".")]
        for name in self._rng.sample(names, min(GLANCES, len(names))):
            if name == SET_ASIDE or ".md.refused-" in name:
                continue
            self._tally.glances += 1
            problem = torn(self._root / WORKFLOWS / name)
            if problem and name.startswith(f"workflow_{IN_PLACE}_"):
                self._tally.half_saved += 1
            elif problem:
                self._tally.trouble.append(f"{name!r} was torn: {problem}")

    def end(self) -> None:
        """Nobody is left."""
        for place, log in enumerate(self._logs):
            self._end(place)
            log.close()


def torn(path: Path) -> str:
    """What is wrong with a file that should be a document."""
    if not NAME.fullmatch(path.name):
        return "its name is not that of a document"
    try:
        read(path.read_bytes().decode())
    except (Malformed, UnicodeDecodeError) as problem:
        return str(problem)
    return ""


class Findings:
    """What one fresh process finds when all others are dead."""

    def __init__(self, root: Path, tally: Tally) -> None:
        self._folder = root / WORKFLOWS
        self._root = root
        self._tally = tally
        self._documents: dict[str, DocumentView] = {}
        self._records: dict[str, list[Record]] = {}

    async def look(self) -> None:
        async with App(settings_for(self._root), scope=scope_of(self._root)) as app:
            troubles: list[FolderWarning] = []
            documents = documents_of(app, self._root, troubles.append)
            for _ in range(STOCKS):
                troubles.clear()  # edits that nobody had seen yet; when all are read, there is nothing more to say
                self._documents = {document.run: document for document in await documents.reconcile()}
                if not troubles:
                    break
                await asyncio.sleep(SETTLED / 1_000_000)
            self._complain(f"{trouble.file!r}: {trouble.text}" for trouble in troubles)
            for run in self._documents:
                self._records[run] = await app.engine.journal.read(run)
            asked = (await app.engine.desk()).items
            odd = [one for one in asked if one.command.purpose != OWNED]  # the owners here are people, who are asked
            self._complain(f"{q.run_id}/{q.number} asks: {q.command.question}" for q in odd)
            runs = set(await documents.runs.list())
            self._complain(f"{run} has no file" for run in runs - self._documents.keys())
            self._complain(f"verify: {d.run_id}/{d.number}: {d.text}" for d in await app.engine.journal.verify())
        self._compare()

    def _complain(self, texts: Iterable[str]) -> None:
        self._tally.trouble += texts

    def _compare(self) -> None:
        logs = [line for log in (self._root / "logs").iterdir() for line in lines_in(log.read_bytes())]
        made = [line for line in logs if isinstance(line, Made)]
        for what in ("run", "id", "file"):
            common = Counter(getattr(line, what) for line in made)
            self._complain(f"{count} documents have the {what} {one!r}" for one, count in common.items() if count > 1)
        files = {name for name in os.listdir(self._folder) if name.endswith(".md") and not name.startswith(".")}
        known = {document.file for document in self._documents.values()}
        self._complain(f"{name!r} belongs to no document" for name in files - known)
        aside = self._folder / SET_ASIDE
        self._complain(f"{path.name!r} was set aside" for path in aside.glob("*.md") if IN_PLACE not in path.name)
        self._texts = {run: self._text(document) for run, document in self._documents.items()}
        for line in logs:
            if not isinstance(line, Saved):
                self._complain(self._wrong_with(line))
        self._edits([line for line in logs if isinstance(line, Saved)])
        self._tally.documents = len(self._documents)
        self._tally.longest = max((len(d.content.history) for d in self._documents.values()), default=0)
        self._tally.declined = sum(isinstance(line, Declined) for line in logs)

    def _text(self, document: DocumentView) -> list[str]:
        """The lines of a document's file, which says what the journal says."""
        path = self._folder / document.file
        text = path.read_bytes().decode() if path.exists() else ""
        if text != write(document.content):
            self._complain([f"{document.file!r} is not what the journal says"])
        return [line.strip() for line in text.splitlines()]

    def _wrong_with(self, line: Made | Moved | Declined | Unseen) -> Iterator[str]:
        document = self._documents.get(line.run)
        if document is None:
            yield f"{line.run} was acknowledged and is not there"
            return
        said = [bullet.raw for bullet in document.content.history if line.words and line.words in bullet.raw]
        match line:
            case Unseen():
                yield f"{line.run}: {line.words} was acknowledged, but not made"
            case Declined() if said:
                yield f"{line.run}: {line.words} was refused, but made: {said}"
            case Made() if (document.id, document.file, document.content.task) != (line.id, line.file, line.words):
                yield f"{line.run} is {document.id!r} in {document.file!r}, but was {line.id!r} in {line.file!r}"
            case Made() | Moved() if (count := self._texts[line.run].count(line.line)) != 1:
                yield f"{line.run}: {line.line!r} stands there {count} times"
            case Moved() if line.words and len(said) != 1:
                yield f"{line.run}: {line.words} was made {len(said)} times: {said}"

    # Edits by hand

    def _edits(self, saved: list[Saved]) -> None:
        runs = {document.file: run for run, document in self._documents.items()}
        kept: dict[str, str] = defaultdict(str)
        for path in self._folder.glob("*.md.refused-*"):
            kept[path.name.partition(".refused-")[0]] += path.read_text(encoding="utf-8")
        for edit in saved:
            run = runs.get(edit.file, "")
            fate = _fate(self._records.get(run, []), edit.words)
            if fate != "accepted" and edit.words in kept[edit.file]:
                fate = "refused"
            elif fate == "refused":
                fate = "refused, and kept in the journal only"
            elif fate == "accepted" and edit.line and self._texts[run].count(edit.line) != 1:
                fate = "accepted, but not there once"
            self._tally.edits[f"{edit.how}: {fate}"] += 1
            if fate not in ("accepted", "refused"):
                self._complain([f"{edit.file!r}: the edit {edit.words} {edit.how} is {fate}"])


def _fate(records: list[Record], words: str) -> str:
    """What became of an edit, as the journal tells it."""
    found = False
    for record in records:
        match record.event:
            case EditFound(text=text):
                found = words in text
            case Answered(answer=ToolReturned(value={"found": str(text)})):
                found = words in text
            case EditAccepted() if found:
                return "accepted"
            case EditRefused() if found:
                return "refused"
    return "unknown"


def crash(
    processes: int, updates: int, seed: int, seconds: float | None, root: Path, say: Say, per_kill: int = PER_KILL
) -> Tally:
    """Let them work, and kill them, until so many updates were acknowledged or time is up."""
    rng = random.Random(seed)  # chooses whom to kill, guards nothing
    tally = Tally()
    began = told = moved = time.monotonic()
    crowd = Crowd(root, processes, rng, tally)
    try:
        before = 0
        while tally.updates < updates and len(tally.trouble) < MOST_TROUBLE:
            time.sleep(rng.uniform(0, 2 * PAUSE))
            crowd.look()
            crowd.glance()
            if tally.updates >= per_kill * (tally.kills + 1):
                crowd.kill_one()
            now = time.monotonic()
            tally.seconds = now - began
            if tally.updates > before:
                before, moved = tally.updates, now
            if now - moved > SILENCE:
                tally.trouble.append(f"nothing was acknowledged for {SILENCE:g} s")
                break
            if seconds is not None and tally.seconds > seconds:
                break
            if now - told > TELL:
                told = now
                say(progress(tally))
    finally:
        crowd.end()
    say(f"{progress(tally)}; now one process takes stock")
    asyncio.run(Findings(root, tally).look())
    return tally


def progress(tally: Tally) -> str:
    return (
        f"{tally.updates} updates, {tally.updates / max(tally.seconds, 0.001):.0f} a second, {tally.kills} kills, "
        f"{tally.glances} files read, {len(tally.trouble)} in trouble, {tally.seconds:.0f} s"
    )


def table(tally: Tally) -> str:
    figures = {
        "updates acknowledged": tally.updates,
        "updates a second": round(tally.updates / max(tally.seconds, 0.001), 1),
        "transitions refused": tally.declined,
        "processes killed": tally.kills,
        "documents": tally.documents,
        "lines of the longest history": tally.longest,
        "files read meanwhile": tally.glances,
        "… seen half, saved in place": tally.half_saved,
        **{f"edits {fate}": count for fate, count in sorted(tally.edits.items())},
        "in trouble": len(tally.trouble),
    }
    return "\n".join([*(f"{name:<48} {value:>10}" for name, value in figures.items()), *tally.trouble[:MOST_TROUBLE]])


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.harness.document_crash", description="Kill those who work on documents."
    )
    parser.add_argument("--processes", type=int, default=50, help="how many at a time (50)")
    parser.add_argument("--updates", type=int, default=100_000, help="how many must be acknowledged (100000)")
    parser.add_argument("--seed", type=int, default=1, help="where the choices start (1)")
    parser.add_argument("--seconds", type=float, help="stop after so long")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    chosen = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="ripstop-documents-"))

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)  # a program

    tally = crash(chosen.processes, chosen.updates, chosen.seed, chosen.seconds, root, say)
    print(json.dumps(to_builtins(tally), indent=2) if chosen.json else table(tally))  # a program
    if tally.trouble:
        say(f"The documents are kept in {root}.")
        return 1
    shutil.rmtree(root)
    return 0


if __name__ == "__main__":
    sys.exit(main())
