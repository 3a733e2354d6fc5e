"""The clock. The outbox holds a timer back until it is due, so there is nothing left to wait for."""

from ripstop.kernel.effects import Answer, Command, TimerFired
from ripstop.runtime.performers import Kind, Request


class TimerPerformer:
    async def perform(self, request: Request) -> Answer | None:
        return TimerFired()

    def kind(self, command: Command) -> Kind:
        return Kind.PURE

    def offers(self) -> tuple[str, ...]:
        return ()

    def provider(self, request: Request) -> str:
        return ""

    async def probe(self, request: Request) -> Answer | None:
        return None
