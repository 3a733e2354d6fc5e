"""Spoils hand-off documents and messages at random and finds out whether anything is lost.

    python -m tests.harness.mutate_documents --count 15000

Each spoilt text is read as a document, rewritten, offered as an edit of the document that it was made from (as if found
in its file, and as if sent in a message), and read as a message. Some are handled in a real inbox. It is a bug if

- anything but a refusal is raised, or one text takes more than two seconds of processor time;
- a document that is not changed is not written as it was read;
- a line of the text is missing after a change that is not about that line, or after an edit that was taken over.
"""

import argparse
import asyncio
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from ripstop.app.application import App
from ripstop.app.settings.settings_file import Settings
from ripstop.engine.ports import NOTHING
from ripstop.kernel.effects import ToolReturned
from ripstop.kernel.events import FORMAT, Ended, Started
from ripstop.styles.handoff.definition import Policy
from ripstop.styles.handoff.document import HEADERS, HandoffDocument, Malformed, oddities, read, write
from ripstop.styles.handoff.document_view import FolderWarning
from ripstop.styles.handoff.events import EditAccepted, EditFound, EditRefused
from ripstop.styles.handoff.inbox import Inbox, messages
from ripstop.styles.handoff.message import embedded, read_message, spoken
from ripstop.styles.handoff.service import HandoffService
from ripstop.styles.handoff.state import draft
from ripstop.styles.handoff.style import HandoffStyle
from ripstop.testing.scenarios import Given, given
from tests.harness.mutate import spoilt

LONGEST = 2.0
"""Seconds of processor time."""
AT, LATER = "2026-01-01 10:00:00", "2026-01-02 11:00:00"
PAPERS = (
    draft("calc_1", "boss", "ann", "What is 2 + 2?", AT),
    draft("代码_2", "秘书", "程序员", "请实现 add(a, b)\n\n```python\n## History\n```", AT, language="zh"),
    draft("odd.3", "boss", "ann", "Status: completed\n## History\n- not one", AT)
    .with_header("Priority", "high")
    .with_section("Notes", "keep me")
    .with_section("Result", "half"),
)
_EDITS = (
    ("Status: pending", "Status: in_progress"),
    ("Status: pending", "Status: completed"),
    ("Current_Owner: ann", "Current_Owner: bob"),
    ("Interaction_Count: 0", "Interaction_Count: 3"),
    ("## Next_Action", f"- {LATER} ann took it pending→in_progress\n\n## Next_Action"),
)
_HEAD = "# Message\nFrom: ann\nTo: boss\nTime: 2026-01-01 10:00:00\nType: {}\n\n{}\n"
DOCUMENTS = tuple(write(paper).replace(old, new, 1) for paper in PAPERS for old, new in _EDITS)
MESSAGES = (
    *(_HEAD.format("workflow_reply", f"Done.\n\n## Workflow Document\n{embedded(text)}") for text in DOCUMENTS[:6]),
    _HEAD.format("normal", "## Content\n谢谢！\n\n> Please add 2 and 2."),
    _HEAD.format("normal", "Please add 2 and 2.\n\n-- \nann"),
    "**From:** 李四\n**To:** 张三\n\n**回复：** 等于4 [WORKFLOW_END]\n",
    "发件人：李四\n收件人：张三\n内容：请计算 2+2\n",
    "From: 秘书\nTo: 老板\nAnswer: 收到您的任务。",
)
TOKENS = (
    b"# Workflow: calc_1\n", b"## Task\n", b"## History\n", b"## Next_Action\n", b"## Termination_Conditions\n", b"\n",
    b"## Result\n", b"### ", b"## ", b"# ", b"```\n", b"~~~\n", b"\\## x\n", b"\\", b"- ", b"* ", b"> ", b"**", b": ",
    b"\r\n", b"\r", b"\t", b"\0", b"\xff", b"\xef\xbb\xbf", b"\xe2\x80\xa8", "：".encode(), "→".encode(), b"->",
    b"Status: pending\n", b"Status: completed\n", b"Current_Owner: ann\n", b"Interaction_Count: 7\n",
    b"Interaction_Count: x\n", b"Previous_Owner: eve\n", b"Created_At: never\n", b"[WORKFLOW_END]",
    "- 2026-01-02 11:00:00 ann took it pending→in_progress\n".encode(), b"## Workflow Document\n", b"From: eve\n",
    "- 2026-01-02 11:00:00 ann did it in_progress→completed\n".encode(), b"Type: normal\n", "谢谢".encode(), b"9" * 40,
)  # fmt: skip
"""Pieces that mean something in a document or a message."""

STYLE = HandoffStyle()
_WRITTEN = ToolReturned(value={"file": "f.md", "done": "written"})


class Tally(Struct):
    """What came of it."""

    documents: int = 0
    """Texts that are documents."""
    taken: int = 0
    """Edits that were taken over."""
    refused: int = 0
    messages: int = 0
    """Texts that are messages."""
    handled: int = 0
    """Messages that went through a real inbox."""
    slowest: float = 0.0
    """Seconds."""


class Lost(AssertionError):
    """Raised when a line is missing that should have survived."""


def costly() -> Iterator[str]:
    """Texts of 60 kB, built so that each kind of work is the most it can be."""
    head = write(PAPERS[0])
    for piece in ("```\n", "## History\n", "## x\n", "- \n", "> \n", "\\#\n", f"- {AT} a b pending→pending\n", "—\n"):
        yield head + piece * (60_000 // len(piece.encode()))
        yield "From: a\nTo: b\n\n" + piece * (60_000 // len(piece.encode()))
    yield "# Workflow: x\nStatus: pending\nCurrent_Owner: a\n" + "K: v\n" * 10_000
    yield "From: a\nTo: b\n" + "**" * 30_000
    yield "From: a\nTo: b\n\n" + "在" * 20_000


def texts(count: int, seed: int) -> Iterator[str]:
    """Spoilt documents and messages; what is not UTF-8 is refused before anything reads it."""
    for data in spoilt(count, seed, (*DOCUMENTS, *MESSAGES), TOKENS):
        yield data.decode(errors="replace")


def try_all(count: int, seed: int, with_costly: bool = True) -> Tally:
    """Try so many texts. Raises what a bug raises."""
    tally = Tally()
    for number, text in enumerate([*texts(count, seed), *(costly() if with_costly else ())]):
        start = time.process_time()
        try:
            _rewrite(text, tally)
            for paper in PAPERS:
                if paper.id in text[:80] or number % 7 == 0:
                    _edit(text, paper, tally)
            _message(text, tally)
        except Exception as error:
            error.add_note(f"The text: {text[:3000]!r}")
            raise
        took = time.process_time() - start
        assert took < LONGEST, f"{took:.1f} s for {text[:200]!r}"
        tally.slowest = max(tally.slowest, took)
    return tally


def _rewrite(text: str, tally: Tally) -> None:
    """Read it, and change it: every line that the change is not about survives."""
    try:
        paper = read(text)
    except Malformed:
        return
    tally.documents += 1
    assert write(paper) == text
    oddities(paper)
    _survives(text, write(paper.with_bullet(LATER, "eve", "looked", "pending", "pending")), "with_bullet")
    changed = paper.with_headers({"Status": "terminated", "Updated_At": LATER})
    _survives(_without_header(paper), write(changed), "with_headers")
    assert changed.status == "terminated"


def _edit(text: str, base: HandoffDocument, tally: Tally) -> None:
    """Offer it as an edit: it is taken over with every line, or refused and kept."""
    for sender in ("", "ann"):
        arguments = {"is_document": True, "file": "f.md"}
        started = Started("handoff", "definition", FORMAT, input=write(base), arguments=arguments)
        story: Given = given(STYLE, Policy(), started, _WRITTEN)
        events = story.tell(EditFound(text, base=2, sender=sender))
        failed = [event for event in events if isinstance(event, Ended)]
        assert not failed, failed
        assert story.run is not None
        if any(isinstance(event, EditAccepted) for event in events):
            tally.taken += 1
            _survives(
                _without_header(read(text)) if not _odd_count(text) else "", write(story.run.state.document), "edit"
            )
        elif text != write(base):
            assert any(isinstance(event, EditRefused) for event in events), events
            tally.refused += 1


def _odd_count(text: str) -> bool:
    """Whether it could be read only after its count was put right."""
    try:
        read(text)
    except Malformed:
        return True
    return False


def _message(text: str, tally: Tally) -> None:
    try:
        message = read_message(text)
        said = spoken(message)
    except Malformed:
        return
    tally.messages += 1
    assert not said.text or said.text.strip() == said.text
    assert len(said.own) <= len(message.body)


def _without_header(paper: HandoffDocument) -> str:
    """The text without the headers that the engine keeps."""
    ours = {header.index for header in paper.headers if header.key in HEADERS}
    return "".join(line for number, line in enumerate(paper.lines) if number not in ours)


def _survives(before: str, after: str, what: str) -> None:
    missing = _lines(before) - _lines(after)
    if missing:
        raise Lost(f"{what}: {list(missing)[:3]}")


def _lines(text: str) -> Counter[str]:
    """The lines without what a rewrite can change: spaces around them, a BOM, and backslashes that escape them."""
    bare = (line.strip().strip("\ufeff").lstrip("\\").strip() for line in re.split(r"[\r\n]", text))
    return Counter(line for line in bare if line)


async def handle_all(count: int, seed: int, root: Path, tally: Tally) -> None:
    """Put spoilt messages into a real inbox and have them handled: each is put away, and none raises anything."""
    inbox = root / ".inbox" / "boss"
    await asyncio.to_thread(inbox.mkdir, parents=True)
    for number, data in enumerate(spoilt(count, seed, MESSAGES, TOKENS)):
        await asyncio.to_thread((inbox / f"{number:05}.md").write_bytes, data)
    log: list[FolderWarning] = []
    async with App(Settings(store=f"sqlite:{root / 'journal.db'}"), scope=NOTHING) as app:
        documents = HandoffService(app, root, log.append)
        room = Inbox(documents)
        for letter in await messages(documents):
            became, away = await room.handle(letter)
            assert away, f"{letter.file}: {became}"
            tally.handled += 1
        assert await messages(documents, "boss") == []
        await documents.reconcile()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.harness.mutate_documents", description="Spoil documents.")
    parser.add_argument("--count", type=int, default=15_000, help="how many texts (15000)")
    parser.add_argument("--inbox", type=int, default=500, help="how many messages in a real inbox (500)")
    parser.add_argument("--seed", type=int, default=1, help="where the choices start (1)")
    chosen = parser.parse_args()
    start = time.perf_counter()
    tally = try_all(chosen.count, chosen.seed)
    with tempfile.TemporaryDirectory(prefix="ripstop-mutate-") as folder:
        asyncio.run(handle_all(chosen.inbox, chosen.seed, Path(folder), tally))
    print(  # a program
        f"{chosen.count} texts: {tally.documents} documents, {tally.messages} messages; "
        f"edits: {tally.taken} taken over, {tally.refused} refused; "
        f"{tally.handled} handled in an inbox; the slowest text took {tally.slowest:.2f} s; "
        f"{time.perf_counter() - start:.0f} s in all. No line lost."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
