"""Requests as a worker gives them to performers, without an engine."""

from collections.abc import Mapping, Sequence
from typing import Any

from ripstop.engine.performers import CallProgress, Request
from ripstop.kernel.effects import AskPerson, CallTool, Command, PersonAnswered
from ripstop.kernel.events import Record, RunSettings

NO_SETTINGS = RunSettings()


class Alone:
    """Access of a performer that has no engine: nobody answers, nothing changes, and no run ends."""

    def __init__(self, records: Sequence[Record] = (), **instead: Any) -> None:
        self._records = records
        for name, function in instead.items():
            setattr(self, name, function)

    async def history(self) -> list[Record]:
        return list(self._records)

    async def ask(self, key: str, question: AskPerson) -> PersonAnswered | None:
        return None

    async def reread(self, run_id: str) -> bool:
        return False

    async def is_over(self, run_id: str) -> bool:
        return False


def request_for(
    command: Command,
    run_id: str = "r",
    number: int = 9,
    attempt: int = 1,
    settings: RunSettings = NO_SETTINGS,
    records: Sequence[Record] = (),
    **of_command: Any,
) -> Request:
    instead = {name: of_command.pop(name) for name in ("ask", "reread", "is_over") if name in of_command}
    return Request(
        run_id=run_id,
        number=number,
        command=command,
        attempt=attempt,
        settings=settings,
        access=Alone(records, **instead),
        progress=CallProgress(),
        **of_command,
    )


def tool_request(
    arguments: Mapping[str, Any],
    run_id: str = "r",
    tool: str = "publish_document",
    settings: RunSettings = NO_SETTINGS,
    agent: str = "",
    **request: Any,
) -> Request:
    return request_for(CallTool(tool=tool, agent=agent), run_id, settings=settings, arguments=arguments, **request)
