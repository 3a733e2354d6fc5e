"""A process that works on a folder of documents for as long as it lives; `document_crash` starts and kills it.

- It makes documents and moves them on through `Documents`, and now and then it edits a file by hand, as a person
  with an editor would. Most of what it does is legal; some is not, and must be refused.
- Everything it does carries words of its own, so that it can be found again in histories, files and the journal.
- What it was told has happened, it writes into its log, after it was told and in one piece: a kill leaves no half
  line, and the log never says more than what was acknowledged.
- It has a few documents at hand, some of its own making and some that it found in the folder.
"""

import asyncio
import fcntl
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ripstop.app.application import App, now
from ripstop.app.settings.settings_file import Settings
from ripstop.engine.ports import Prefixed
from ripstop.kernel.errors import UsageError
from ripstop.styles.handoff.document import HandoffDocument, Malformed, read, write
from ripstop.styles.handoff.document_view import DocumentView
from ripstop.styles.handoff.folder import WORKFLOWS, Folder
from ripstop.styles.handoff.folder_runs import prefix_of
from ripstop.styles.handoff.service import HandoffService
from ripstop.styles.handoff.state import FINAL, IN_PROGRESS, PENDING
from ripstop.styles.handoff.texts import ENGINE, timestamp

AGENTS = ("anna", "ben", "carla", "dora", "emil")
AT_HAND = 6
"""Documents that a process works on at the same time."""
NEWEST = 200
"""Documents among which it looks for some that others have made."""
MANY = 60
"""Interactions that most documents may have; the others have as many as the settings say."""
IN_PLACE = "inplace"
"""The kind of documents that are saved in place, so others may see half of them. All others are never seen torn."""
EDIT_SHARE = 0.06
"""How often a document is edited by hand instead of moved on."""
THINKING = 0.2
"""Seconds at most between an editor's reading and saving."""


class Made(Struct, frozen=True, tag="made"):
    """A document was made."""

    run: str
    id: str
    file: str
    words: str
    line: str


class Moved(Struct, frozen=True, tag="moved"):
    """A transition was made, and this line stands in the history now; `words` are empty if a guard made it."""

    run: str
    words: str
    line: str


class Declined(Struct, frozen=True, tag="declined"):
    """A transition was refused, so its words must stand nowhere."""

    run: str
    words: str


class Unseen(Struct, frozen=True, tag="unseen"):
    """A transition was acknowledged, but the document that came back does not hold it."""

    run: str
    words: str


class Saved(Struct, frozen=True, tag="saved"):
    """A file was edited by hand."""

    file: str
    words: str
    how: str
    line: str = ""
    """What the edit added to the history, if it is accepted."""


Line = Made | Moved | Declined | Unseen | Saved


def lines_in(log: bytes) -> list[Line]:
    lines: list[Line] = msgspec.json.Decoder(Line).decode_lines(log)
    return lines


def settings_for(root: Path) -> Settings:
    return Settings(store=f"sqlite:{root / 'journal.db'}")


def log_of(root: Path, place: int) -> Path:
    return root / "logs" / f"{place}.jsonl"


def scope_of(root: Path) -> Prefixed:
    """The documents of the folder, and nothing else."""
    return Prefixed(prefix_of(Folder(root)))


def documents_of(app: Any, root: Path, tell: Callable[[Any], None]) -> HandoffService:
    return HandoffService(app, root, tell)


class Clerk:
    """One process at work."""

    def __init__(self, documents: HandoffService, log: Path, name: str, rng: random.Random) -> None:
        self._documents = documents
        self._folder = documents.folder.root / WORKFLOWS
        self._log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._name = name
        self._rng = rng
        self._said = 0
        self._at_hand: dict[str, None] = {}

    async def work(self) -> None:
        """One thing."""
        if len(self._at_hand) < AT_HAND:
            return await (self._make() if self._rng.random() < 0.4 else self._look_around())
        id_ = self._rng.choice(list(self._at_hand))
        document = await self._documents.known(id_)
        assert document is not None, f"{id_} was acknowledged and is not known"
        if document.content.status in FINAL:
            del self._at_hand[id_]
        if self._rng.random() < EDIT_SHARE:
            return await self._edit(document)
        if document.content.status not in FINAL or self._rng.random() < 0.1:
            await self._move(document)

    def _write(self, line: Line) -> None:
        os.write(self._log, msgspec.json.encode(line) + b"\n")

    def _words(self) -> str:
        self._said += 1
        return f"({self._name}.{self._said})"

    # Making and finding

    async def _make(self) -> None:
        words, kind = self._words(), IN_PLACE if self._rng.random() < 0.15 else "task"
        most = MANY if self._rng.random() < 0.8 else None
        owner = self._rng.choice(AGENTS)
        document = await self._documents.new(words, owner, self._name, kind=kind, max_interactions=most)
        self._write(Made(document.run, document.id, document.file, words, document.content.history[0].raw.strip()))
        self._at_hand[document.id] = None

    async def _look_around(self) -> None:
        names = sorted(name for name in os.listdir(self._folder) if name.endswith(".md"))
        if not names:
            return await self._make()
        name = self._rng.choice(names[-NEWEST:])
        paper = glance(self._folder / name)
        if paper is None or paper.status in FINAL:
            return None
        if await self._documents.known(paper.id) is None:  # whoever made it was killed, or is about to begin its run
            await self._documents.reconcile([name])
        else:
            self._at_hand[paper.id] = None

    # Moving on

    async def _move(self, document: DocumentView) -> None:
        words, rng = self._words(), self._rng
        action, by = self._choose(document.content), document.content.owner
        if action != "terminate" and rng.random() < 0.02:
            by = "nobody"
        given = {"message": words}
        if action in ("pass", "assign"):
            given["to"] = rng.choice([agent for agent in AGENTS if agent != document.content.owner])
        try:
            moved = await self._documents.act(document, action, by, **given)
        except UsageError:
            return self._write(Declined(document.run, words))
        lines = [bullet.raw.strip() for bullet in moved.content.history if words in bullet.raw]
        guarded = [bullet.raw.strip() for bullet in moved.content.history if bullet.agent == ENGINE]
        if lines:
            self._write(Moved(document.run, words, lines[0]))
        elif guarded:
            self._write(Moved(document.run, "", guarded[0]))
        else:
            self._write(Unseen(document.run, words))

    def _choose(self, paper: HandoffDocument) -> str:
        chances = {
            PENDING: {"accept": 80, "assign": 15, "terminate": 1, "complete": 2, "pass": 2},
            IN_PROGRESS: {"pass": 91, "complete": 4, "terminate": 1, "accept": 2, "assign": 2},
        }.get(paper.status, {"accept": 1, "pass": 1})
        return self._rng.choices(list(chances), list(chances.values()))[0]

    # Editing by hand

    async def _edit(self, document: DocumentView) -> None:
        """Two people do not edit one file at the same time here, for then it is they who lose something."""
        hands = self._documents.folder.root / "hands" / document.file
        with hands.open("a") as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            await self._edit_alone(document.file)
        if self._rng.random() < 0.3:
            await self._documents.reconcile([document.file])

    async def _edit_alone(self, name: str) -> None:
        path, words = self._folder / name, self._words()
        paper = glance(path)
        if paper is None:
            return
        await asyncio.sleep(self._rng.uniform(0, THINKING) if self._rng.random() < 0.5 else 0)
        edited, line = self._edited(paper, words)
        in_place = name.startswith(f"workflow_{IN_PLACE}_")
        (save_in_place if in_place else save)(path, write(edited))
        self._write(Saved(name, words, "in place" if in_place else "by renaming", line))

    def _edited(self, paper: HandoffDocument, words: str) -> tuple[HandoffDocument, str]:
        """What a person makes of a document, and the line that they add to its history."""
        change = self._rng.choice(["remark", "remark", "next", "status", "created", "count", "shorten"])
        if change == "remark":
            at = timestamp(now(), 0)
            paper = paper.with_bullet(at, self._name, f"remarks {words}", paper.status, paper.status)
            return paper, paper.history[-1].raw.strip()
        if change == "status":
            paper = paper.with_header("Status", IN_PROGRESS if paper.status == PENDING else PENDING)
        elif change == "created":
            paper = paper.with_header("Created_At", "2001-01-01 00:00:00")
        elif change == "count":
            paper = paper.with_header("Interaction_Count", "4711")
        elif change == "shorten":
            lines = list(paper.lines)
            del lines[paper.history[0].line - 1]
            paper = read("".join(lines))
        # what another person has written before, and nobody has read yet, stays in it
        return paper.with_next_action(f"{paper.next_action} {words}"), ""


def glance(path: Path) -> HandoffDocument | None:
    """What stands in a file; nothing if somebody saves it in place just now, or was killed over that."""
    try:
        return read(path.read_text(encoding="utf-8", errors="replace"))
    except Malformed:
        return None


def save(path: Path, text: str) -> None:
    """As careful editors do."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


def save_in_place(path: Path, text: str) -> None:
    """As all others do: for a moment the file is empty."""
    path.write_text(text, encoding="utf-8")


async def work(root: Path, place: int, life: str, seed: str) -> None:
    rng = random.Random(seed)  # chooses what to do, guards nothing
    harness = os.getppid()
    async with App(settings_for(root), scope=scope_of(root)) as app:
        documents = documents_of(app, root, lambda _: None)
        clerk = Clerk(documents, log_of(root, place), f"w{place}l{life}", rng)
        while os.getppid() == harness:  # nobody stays behind when the harness itself is killed
            await clerk.work()


def main() -> None:
    root, place, life, seed = sys.argv[1:]
    asyncio.run(work(Path(root), int(place), life, seed))


if __name__ == "__main__":
    main()
