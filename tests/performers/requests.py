"""Requests as a worker gives them to performers, without an engine."""

from collections.abc import Mapping, Sequence
from typing import Any

from ripstop.kernel.effects import AskPerson, CallTool, Command, PersonAnswered
from ripstop.kernel.events import Record, RunSettings
from ripstop.runtime.call_progress import CallProgress
from ripstop.runtime.performers import Request

NO_SETTINGS = RunSettings()


async def nobody_answers(key: str, question: AskPerson) -> PersonAnswered | None:
    return None


async def nothing_changes(run_id: str) -> bool:
    return False


async def no_run_ends(run_id: str) -> bool:
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
    async def history() -> list[Record]:
        return list(records)

    return Request(
        run_id=run_id,
        number=number,
        command=command,
        attempt=attempt,
        settings=settings,
        history=history,
        ask=nobody_answers,
        progress=CallProgress(),
        **{"reread": nothing_changes, "is_over": no_run_ends, **of_command},
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
