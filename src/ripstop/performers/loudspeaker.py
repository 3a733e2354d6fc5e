"""Says what a run wants to say to whoever listens.

Each saying carries its key, so a listener that must not hear a thing twice can tell. After a crash
the same words may be said again, with the same key and a higher attempt.
"""

from collections.abc import Callable

from msgspec import Struct

from ripstop.kernel.effects import Answer, Command, Said
from ripstop.runtime.failpoints import reach
from ripstop.runtime.ports import Kind, Request


class Saying(Struct, frozen=True):
    run_id: str
    key: str
    text: str
    attempt: int


class Loudspeaker:
    def __init__(self) -> None:
        self._listeners: list[Callable[[Saying], None]] = []

    def listen(self, listener: Callable[[Saying], None]) -> None:
        self._listeners.append(listener)

    async def perform(self, request: Request) -> Answer | None:
        saying = Saying(request.run_id, request.key, request.text, request.attempt)
        reach("loudspeaker.before_send")
        for listener in self._listeners:
            listener(saying)
        reach("loudspeaker.after_send")
        return Said()

    def kind(self, command: Command) -> Kind:
        return Kind.KEYED

    def provider(self, request: Request) -> str:
        return ""

    async def probe(self, request: Request) -> Answer | None:
        return None
