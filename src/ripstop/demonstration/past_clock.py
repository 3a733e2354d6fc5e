"""A clock in the past, moved on from scene to scene, so that the world looks as if people had worked in it for days.

Scripted agents answer at once. So the clock runs ahead while a command is performed, by as long as such a call takes
elsewhere: a few seconds, different ones, and always the same ones. Likewise while a customer reads an answer.
"""

from ripstop.kernel.effects import AskAgent, CallTool, Say
from ripstop.kernel.events import Asked, Event
from ripstop.runtime.live import Appended, Began, LiveEvent
from ripstop.runtime.process_clock import ProcessClock, system_time

SECOND = 1_000_000
SHORTEST_CALL, LONGEST_CALL = 3, 14
"""Seconds of a model's call."""
TOOL_CALL = 0.4
READING = 41
ANSWER = "answer"
"""The purpose of a message that somebody reads before they say more."""


class PastClock:
    def __init__(self, seconds: float) -> None:
        """`seconds`: how long ago it is."""
        self._behind = round(seconds * SECOND)

    def __call__(self) -> int:
        return system_time() - self._behind

    def as_process_clock(self) -> ProcessClock:
        return ProcessClock(system=self, elapsed=self)

    def move_on(self, seconds: float) -> None:
        """It is so long ago now, unless that would be back in time."""
        self._behind = min(self._behind, round(seconds * SECOND))

    def watch(self, event: LiveEvent) -> None:
        """Run ahead while something takes its time; never into the future."""
        self._behind = max(0, self._behind - round(_duration(event) * SECOND))


def _duration(event: LiveEvent) -> float:
    match event:
        case Began(number=number, command=AskAgent()):
            return SHORTEST_CALL + number * 7 % (LONGEST_CALL - SHORTEST_CALL)
        case Began(command=CallTool()):
            return TOOL_CALL
        case Appended(records=records) if any(_is_answer(record.event) for record in records):
            return READING
    return 0.0


def _is_answer(event: Event) -> bool:
    return isinstance(event, Asked) and isinstance(event.command, Say) and event.command.purpose == ANSWER
