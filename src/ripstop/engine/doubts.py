"""What is known about a call that may or may not have taken effect.

- `Failed` means: surely not done. What broke after the request left is in doubt, and a person is asked.
- The evidence names the tool, its arguments and what broke, because a person must be able to decide by it alone.
- It is bounded and always JSON: it quotes what came from outside.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import msgspec

from ripstop.kernel.effects import Answer, AskPerson, CallTool, Command, Failed, Say, ToolReturned, Usage
from ripstop.kernel.errors import JournalError, Unwritable
from ripstop.kernel.events import Asked, Doubted
from ripstop.kernel.run import DOUBT
from ripstop.kernel.shown_calls import digest_of_arguments

from .entries import Job
from .performers import Kind, Performer, Request
from .ports import Journal

log = logging.getLogger("ripstop.worker")

MAX_ARGUMENTS = 600
"""Characters of the arguments that the evidence quotes."""
MAX_REASON = 600
"""Characters of an exception's text that the evidence quotes."""


def worker_died(job: Job, request: Request) -> Doubted:
    """The doubt about a call that another worker began and never answered."""
    return _doubted(job, request, job.attempt - 1, "Its worker died, or was stopped, before it recorded an answer")


def made_before(job: Job, request: Request) -> Doubted:
    """The doubt about a call of a run whose journal was put back from a copy."""
    return _doubted(job, request, job.attempt, "The run may have made it after the copy of its journal was made")


def call_broke(job: Job, request: Request, reason: str) -> Doubted:
    """The doubt about a call of this worker that broke off; `reason` says how."""
    return _doubted(job, request, job.attempt, f"It broke off: {_bounded(reason, MAX_REASON)}")


async def not_as_shown(journal: Journal, job: Job, request: Request) -> Doubted | None:
    """The doubt about a call that a person wants made again, if it is not the call that the person was shown."""
    if not isinstance(request.command, CallTool):
        return None
    events = [record.event for record in await journal.read(job.run_id, after=job.number)]
    asked = [event.command for event in events if isinstance(event, Asked) and isinstance(event.command, AskPerson)]
    shown = [ask.shown for ask in asked if ask.purpose == DOUBT and ask.about == (job.number,)]
    if not shown or shown[-1] in ("", digest_of_arguments(request.arguments)):
        return None
    return _doubted(job, request, job.attempt - 1, "Its arguments are not those that were shown with the last question")


def may_recur(command: Command, kind: Kind) -> bool:
    """Whether a call that was begun could take effect a second time, if a resumed run asks for it once more.

    Its number is another one then, and so is the key of a keyed call. What a style does itself is made to be repeated.
    """
    return not kind.repeatable or (kind is Kind.KEYED and type(command) is CallTool and bool(command.agent))


def not_needed(reason: str, uncertain: bool, usage: Usage = Usage()) -> Failed:
    """The late answer to a call that is no longer needed; `uncertain` if it was begun and must not be repeated."""
    said = f"{reason} It may have taken effect." if uncertain else reason
    return Failed(reason=said, fault="ours", usage=usage, uncertain=uncertain)


async def probe(performer: Performer, request: Request) -> tuple[bool, Answer | None]:
    """Whether it is known what happened, and the answer if it did happen."""
    try:
        return True, await performer.probe(request)
    except JournalError:
        raise
    except asyncio.CancelledError:
        if cancelled_by_us():
            raise
        return False, None
    except (Exception, SystemExit):
        log.debug("Cannot probe whether %s took effect", request.name, exc_info=True)
        return False, None


def cancelled_by_us() -> bool:
    """Whether this task was cancelled, rather than something inside it."""
    me = asyncio.current_task()
    return me is None or me.cancelling() > 0


def describe(error: BaseException) -> str:
    """An exception as a reason: its type and its text."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def unreadable_answer(answer: Answer, kind: Kind, error: Unwritable) -> Answer:
    """What to record instead of an answer that a journal cannot hold."""
    if isinstance(answer, ToolReturned) and kind is not Kind.PURE:
        return ToolReturned(value=done_but_unreadable(str(error)))
    return Failed(reason=str(error))


def done_but_unreadable(problem: str) -> str:
    """The result of a tool that took effect, in place of one that cannot be recorded."""
    return f"The call took effect, but its result could not be recorded: {_bounded(problem, MAX_REASON)}"


def _doubted(job: Job, request: Request, attempt: int, how: str) -> Doubted:
    command = job.opened.command
    if isinstance(command, CallTool):
        tool, given = _as_people_know_it(command, request.arguments)
        what = f"The tool {tool!r} was called with {_quoted(given)}"
    elif isinstance(command, Say):
        what = f"The message {_quoted(request.text)} was to be sent on {command.channel}"
    else:
        what = f"A command of type {type(command).__name__} was begun"
    return Doubted(to=job.number, evidence=f"{what} ({request.name}, attempt {attempt}). {how}.")


def _as_people_know_it(command: CallTool, arguments: Mapping[str, Any]) -> tuple[str, Any]:
    """A call's tool and arguments. If a style calls something for a tool of its definition, it is that tool's call."""
    named, params = arguments.get("tool"), arguments.get("params")
    if not command.agent and isinstance(named, str) and isinstance(params, Mapping):
        return named, params
    return command.tool, arguments


def _quoted(arguments: Any) -> str:
    try:
        text = msgspec.json.encode(arguments).decode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        text = repr(arguments)
    return _bounded(text, MAX_ARGUMENTS)


def _bounded(text: str, most: int) -> str:
    kept = text if len(text) <= most else f"{text[:most]}… ({len(text)} characters)"
    return kept.encode("utf-8", "backslashreplace").decode().rstrip(".")
