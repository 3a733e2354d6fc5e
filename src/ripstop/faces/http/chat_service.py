"""What the face needs of the conversation service."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from ripstop.kernel.events import Record
from ripstop.kernel.run import Run


class ChatEvent(Struct, frozen=True):
    id: str
    kind: str
    data: dict[str, Any]


class SessionView(Struct, frozen=True):
    run: str
    session: str
    status: str
    messages: tuple[dict[str, Any], ...] = ()
    actions: tuple[dict[str, Any], ...] = ()
    timers: tuple[dict[str, Any], ...] = ()
    usage: dict[str, Any] = {}


class ChatService(Protocol):
    def run_id(self, workflow: str, session: str) -> str: ...

    async def look(self, run_id: str) -> SessionView: ...

    async def tell(
        self,
        workflow: str | Path,
        session: str,
        text: str,
        *,
        by: str = "",
        id: str = "",
        variables: Mapping[str, str] | None = None,
    ) -> Run[Any]: ...

    def events_of(self, record: Record) -> list[ChatEvent]: ...
