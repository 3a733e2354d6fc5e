"""What goes to an agent: put together by a style, purely, from the records a command names."""

import hashlib
from typing import Any

import msgspec

from .effects import Effect, ToolCall


class Message(Effect):
    """One message. `role` is system, user, assistant or tool."""

    role: str
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    """Tool calls that an assistant message made."""
    call_id: str = ""
    """The call that a tool message answers."""


class Prompt(Effect):
    messages: tuple[Message, ...]
    tools: tuple[str, ...] = ()
    """Names of the tools that the agent may call."""
    schema: dict[str, Any] | None = None
    """JSON Schema of the reply, for models that can be held to one."""

    @property
    def text(self) -> str:
        """The first user message: what a person would call "the prompt"."""
        return next((message.text for message in self.messages if message.role == "user"), "")


_encode = msgspec.json.Encoder(order="sorted").encode


def seal(prompt: Prompt) -> str:
    """The hash that is recorded with the reply."""
    return hashlib.sha256(_encode(prompt)).hexdigest()


def estimate(prompt: Prompt) -> int:
    """How many tokens a prompt has, rather too many than too few.

    Three bytes a token fits Chinese text, and overestimates English by a third. A budget that
    stops a little early keeps its promise; one that stops late does not.
    """
    size = sum(len(message.text.encode()) + 24 for message in prompt.messages)
    return -(-size // 3)
