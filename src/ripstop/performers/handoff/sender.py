"""Sends a message for a run into an agent's inbox, once.

The name of the message follows from the run and from what it is about. So an attempt that is repeated, because it is
unknown how the first one ended, finds the message: unread, handled or set aside. Only a recipient that deletes a
message before we have noted that it was sent can get it again, under the same name.
"""

from collections.abc import Callable

import msgspec
from msgspec import Struct

from ripstop.kernel.effects import Answer, CallTool, Command, ToolReturned
from ripstop.runtime.performers import Kind, Refused, Request

from .folder import Folder
from .locks import do_locked
from .publisher import key_of

TOOL = "send_reply"


class OutgoingMessage(Struct, frozen=True):
    """The arguments of the tool."""

    agent: str
    stem: str
    """What it is about; the same for the same message, and for no other of this run."""
    text: str
    folder: str = ""
    """The folder that the definition names. The run's settings come first (`relocation.py`)."""


class Sender:
    """The performer of `CallTool(tool="send_reply")`."""

    def __init__(self, folder_for: Callable[[Request], Folder]) -> None:
        self._folder_for = folder_for

    async def perform(self, request: Request) -> Answer | None:
        command = request.command
        assert isinstance(command, CallTool)
        try:
            letter = msgspec.convert(dict(request.arguments), OutgoingMessage)
        except msgspec.ValidationError as error:
            raise Refused(f"{TOOL} was called wrongly: {error}.", "ours") from error
        folder, key = self._folder_for(request), key_of(request.run_id)
        stem = f"{letter.stem[:40]}_{key[:8]}"
        await do_locked(folder.lock(key), lambda: folder.send(letter.agent, stem, letter.text))
        return ToolReturned(value={"to": letter.agent})

    def kind(self, command: Command) -> Kind:
        return Kind.PURE

    def offers(self) -> tuple[str, ...]:
        return (f"tool:{TOOL}",)

    def provider(self, request: Request) -> str:
        return ""

    async def probe(self, request: Request) -> Answer | None:
        return None
