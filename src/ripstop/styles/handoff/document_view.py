"""A document as it is now, and as it is shown."""

from typing import Any

from msgspec import Struct

from ripstop.kernel.run import Run

from .document import HandoffDocument, interactions, write
from .state import RESULT, HandoffState


class DocumentView(Struct, frozen=True):
    """A document as it is now."""

    id: str
    run: str
    file: str
    paper: HandoffDocument
    oddities: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    """What a person is asked about it."""
    refused: tuple[str, ...] = ()
    """The files that keep refused edits of it."""
    unread: str = ""
    """Why its file cannot be read just now, if so: the document is as it was before the edit."""


class Verdict(Struct, frozen=True):
    """What became of an edit."""

    document: DocumentView
    refusal: str = ""
    """Why it was refused, with the line; empty if it was taken over."""
    notes: tuple[str, ...] = ()
    """What was put right in it, and what is odd about it."""


class Trouble(Struct, frozen=True):
    """Something about a file that a person should know."""

    file: str
    text: str


def text_of(document: DocumentView) -> str:
    return write(document.paper)


def plain(document: DocumentView, run: Run[HandoffState] | None = None) -> dict[str, Any]:
    """A document as `--json` prints it."""
    paper = document.paper
    shown: dict[str, Any] = {
        "id": document.id,
        "run": document.run,
        "file": document.file,
        "status": paper.status,
        "current_owner": paper.owner,
        "previous_owner": paper.previous,
        "created_at": paper.created,
        "updated_at": paper.updated,
        "interaction_count": interactions(paper),
        "task": paper.task,
        "history": [
            {"at": b.at, "agent": b.agent, "action": b.action, "from": b.before, "to": b.after, "line": b.line}
            for b in paper.history
        ],
        "next_action": paper.next_action,
        "termination_conditions": list(paper.conditions),
        "result": paper.section(RESULT),
        "oddities": list(document.oddities),
        "refused": list(document.refused),
        "unread": document.unread,
    }
    if run is not None and run.verdict:
        shown["guard"] = {"name": run.verdict.guard, "text": run.verdict.text}
    return shown
