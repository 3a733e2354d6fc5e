"""A document as it is now, and as it is shown."""

from typing import Any

import msgspec
from msgspec import Struct

from ripstop.history.outages import Outage
from ripstop.kernel.run import Run

from .document import HandoffDocument, interactions, write
from .state import RESULT, HandoffState


class DocumentView(Struct, frozen=True):
    """A document as it is now."""

    id: str
    run: str
    file: str
    content: HandoffDocument
    oddities: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    """What a person is asked about it, apart from what to do about an outage."""
    outage: Outage | None = None
    """The refused call that has paused its run."""
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


class FolderWarning(Struct, frozen=True):
    """Something about a file that a person should know."""

    file: str
    text: str


def text_of(document: DocumentView) -> str:
    return write(document.content)


def plain(document: DocumentView, run: Run[HandoffState] | None = None) -> dict[str, Any]:
    """A document as `--json` prints it."""
    content = document.content
    shown: dict[str, Any] = {
        "id": document.id,
        "run": document.run,
        "file": document.file,
        "status": content.status,
        "current_owner": content.owner,
        "previous_owner": content.previous,
        "created_at": content.created,
        "updated_at": content.updated,
        "interaction_count": interactions(content),
        "task": content.task,
        "history": [
            {"at": b.at, "agent": b.agent, "action": b.action, "from": b.before, "to": b.after, "line": b.line}
            for b in content.history
        ],
        "next_action": content.next_action,
        "termination_conditions": list(content.conditions),
        "result": content.section(RESULT),
        "oddities": list(document.oddities),
        "refused": list(document.refused),
        "unread": document.unread,
    }
    if document.outage is not None:
        shown["outage"] = msgspec.to_builtins(document.outage)
    if run is not None and run.verdict:
        shown["guard"] = {"name": run.verdict.guard, "text": run.verdict.text}
    return shown
