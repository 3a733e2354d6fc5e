"""The hand-off style's own events: what is wanted of a document, and what became of it."""

from typing import ClassVar

from msgspec import Struct

from ripstop.kernel.events import Event, Fact, TurnResult

from ..turn import TURN_EVENTS


class Assignment(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """How an agent is told to work."""

    prompt: str = ""
    model: str = ""
    team: tuple[str, ...] = ()


# Facts


class TransitionRequested(Fact, tag="handoff.transition_requested", frozen=True):
    """A person or a program wants the document to move on."""

    action: str
    """One of `state.RULES`."""
    by: str = ""
    """Empty: the document's owner."""
    to: str = ""
    """The new owner, if the action names one."""
    message: str = ""
    next_action: str = ""
    result: str = ""


class WorkRequested(Fact, tag="handoff.work_requested", frozen=True):
    """An agent is to work on the document that it owns."""

    agent: str
    assignment: Assignment | None = None
    """None: the same instructions as before."""


class EditFound(Fact, tag="handoff.edit_found", frozen=True):
    """Another text of the document was found in its file, or in a message."""

    text: str
    base: int = 0
    """The command that wrote the view in which the edit was made."""
    sender: str = ""
    """Who sent the text in a message; empty if it was in the file."""


class FileMissing(Fact, tag="handoff.file_missing", frozen=True):
    """The document's file is gone."""


class FileRenamed(Fact, tag="handoff.file_renamed", frozen=True):
    """The document's file has another name now."""

    file: str


class AgentsChanged(Fact, tag="handoff.agents_changed", frozen=True):
    """Who works as an agent in the document's folder has changed, or was not known before."""

    agents: tuple[str, ...]


class PublishRequested(Fact, tag="handoff.publish_requested", frozen=True):
    """The document is to be written to its file again, because the last attempt is stale or failed."""


# Decisions


class DocumentDrafted(Event, tag="handoff.document_drafted", frozen=True):
    """A document was made from the run's task."""

    id: str
    file: str
    at: str
    """The time as the document writes it."""


class TransitionMade(TurnResult, tag="handoff.transition_made", frozen=True):
    """A transition. What was said with it is in the fact before it: a request, a reply or an edit."""

    action: str
    by: str
    before: str
    after: str
    at: str
    """The time as the document writes it."""
    to: str = ""
    """The new owner, if there is one."""
    words: str = ""
    """The action as the history says it."""
    counts: bool = False
    """Whether it is an interaction."""
    written: bool = False
    """The editor of the document has written the history line already."""
    silent: bool = False
    """Nothing was said with it: an agent accepts what it owns."""
    result: str = ""
    """The text for the section `Result`, where that is not what was said with the transition."""


class TransitionRefused(Event, tag="handoff.transition_refused", frozen=True):
    """A transition was requested that is not legal. The document stays as it is."""

    is_trouble: ClassVar[bool] = True
    action: str
    by: str
    reason: str


class EditAccepted(Event, tag="handoff.edit_accepted", frozen=True):
    """The document was changed from outside, and the change is merged."""

    at: str
    """The time as the document writes it."""
    text: str = ""
    """The document, if the change had to be joined with others; empty: as it was found."""
    notes: tuple[str, ...] = ()
    """What was put right in it, and what is odd about it."""


class EditRefused(Event, tag="handoff.edit_refused", frozen=True):
    """An edit cannot be merged. The document stays as it is, and the text is kept next to its file."""

    is_trouble: ClassVar[bool] = True
    reason: str
    line: int
    """The line of the edited text that the reason is about."""
    at: str
    """The time as the document writes it."""
    by: str = ""
    """Who sent the text in a message; empty if it was in the file."""


class MessageNoted(Event, tag="handoff.message_noted", frozen=True):
    """A message that changes nothing, and why."""

    by: str
    because: str


class AgentFailed(Event, tag="handoff.agent_failed", frozen=True):
    """An agent did not do what it was asked to. That is not an interaction, but it is counted."""

    is_trouble: ClassVar[bool] = True
    by: str
    reason: str


HANDOFF_EVENTS: tuple[type[Event], ...] = (
    TransitionRequested,
    WorkRequested,
    EditFound,
    FileMissing,
    FileRenamed,
    AgentsChanged,
    PublishRequested,
    DocumentDrafted,
    TransitionMade,
    TransitionRefused,
    EditAccepted,
    EditRefused,
    MessageNoted,
    AgentFailed,
    *TURN_EVENTS,
)
