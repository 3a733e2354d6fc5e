"""What is settled for a document before it begins: its limits, its guards, its language."""

from typing import Any

from msgspec import Struct

END_MARKER = "[WORKFLOW_END]"


class Policy(Struct, frozen=True, omit_defaults=True):
    max_interactions: int = 10
    """Acceptances, hand-overs and completions that are allowed; the attempt to make one more terminates."""
    attempts: int = 3
    """How often an agent may fail at the document before a person is asked."""
    language: str = "en"
    """The language of what is written into the document: en or zh."""
    guards: dict[str, Any] = {}
    """Guards that are set otherwise than by default (`kernel.effects.Guards`)."""
