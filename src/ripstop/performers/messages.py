"""Says what a run wants to say to whoever listens.

Each saying carries its key, so a listener that must not hear a thing twice can tell. After a crash
the same words may be said again, with the same key and a higher attempt.
"""

from collections.abc import Callable

from msgspec import Struct

from ripstop.kernel.effects import Answer, Command, Said
from ripstop.runtime.failpoints import failpoint
from ripstop.runtime.ports import Kind, Request


class DeliveredMessage(Struct, frozen=True):
    run_id: str
    key: str
    text: str
    attempt: int


class MessageDelivery:
    def __init__(self) -> None:
        self._listeners: list[Callable[[DeliveredMessage], None]] = []

    def listen(self, listener: Callable[[DeliveredMessage], None]) -> None:
        self._listeners.append(listener)

    async def perform(self, request: Request) -> Answer | None:
        saying = DeliveredMessage(request.run_id, request.key, request.text, request.attempt)
        failpoint("loudspeaker.before_send")
        for listener in self._listeners:
            listener(saying)
        failpoint("loudspeaker.after_send")
        return Said()

    def kind(self, command: Command) -> Kind:
        return Kind.KEYED

    def provider(self, request: Request) -> str:
        return ""

    async def probe(self, request: Request) -> Answer | None:
        return None
