"""What the hand-off style asks of its tools, and what they answer. The style and the tools both use these types.

- A field of a call has no default: what the style forgets, mypy finds.
- An answer is recorded, so its fields are those of the journals. One can be added, with a default.
- A call is shown in the log with its fields in this order.
"""

from typing import Literal

from msgspec import Struct

PUBLISH = "publish_document"
"""The tool that writes the document into its file."""
SEND = "send_reply"
"""The tool that notifies the sender that the document is finished."""


class PublishCall(Struct, frozen=True, kw_only=True):
    """Write a view of the document into its file, unless somebody has edited the file."""

    number: int
    """Of the record that the text shows."""
    file: str
    text: str
    over: str
    """The SHA-256 of a text that may be overwritten although the publisher did not write it; empty: there is none …"""
    keep: str
    """… and is kept beside under this tag; empty if it need not be kept."""
    folder: str
    """The folder that the definition names, or empty. The run's settings come first (`app.relocation`)."""


class PublishedDocument(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of the file."""

    file: str
    done: Literal["written", "newer", "edited"]
    """`newer`: it had this view already, or a later one. `edited`: it was left alone, because it holds an edit."""
    found: str | None = None
    """The edited text."""
    base: int | None = None
    """The number of the view that was in the file before the edit; 0 if that is not known, `None` without an edit."""
    kept: str = ""
    """Where an edit is kept that was saved while a process was killed that wrote the file; empty: there was none."""


class SendCall(Struct, frozen=True, kw_only=True):
    """Put a message into an agent's inbox, once."""

    agent: str
    stem: str
    """What it is about; the same for the same message, and for no other of this run."""
    text: str
    folder: str
    """The folder that the definition names, or empty. The run's settings come first (`app.relocation`)."""


class SentReply(Struct, frozen=True):
    to: str
