"""The definition of a hand-off run: its limits and guards, and, for a folder of documents, who works there."""

from typing import Any, Literal

from msgspec import Struct

END_MARKER = "[WORKFLOW_END]"
WORKFLOWS = ".workflows"
"""Where the files of documents are, in their folder."""


class Role(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """An agent of a folder, and how it is told to work."""

    name: str
    prompt: str = ""
    model: str = ""
    """Empty: the default model."""
    workflow: str = ""
    """A workflow that works in the agent's place; the prompt and the document are its input."""


class Policy(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    max_interactions: int = 10
    """Acceptances, hand-overs and completions that are allowed; the attempt to make one more terminates."""
    attempts: int = 3
    """How often an agent may fail at the document before a person is asked."""
    language: Literal["", "en", "zh"] = ""
    """The language of what is written into the document; empty: that of its task."""
    guards: dict[str, Any] = {}
    """Guards that are set otherwise than by default (`kernel.effects.Guards`)."""
    folder: str = ""
    """The folder of documents that it describes, as an absolute path; empty: the run's settings say."""
    roles: tuple[Role, ...] = ()
    """Agents that work on the document as soon as they own it. The first one is the owner if nobody is named."""
    agents: tuple[str, ...] | None = None
    """Who else works as an agent in the folder, when it is asked to; `None`: not known. Any other owner is a person."""
