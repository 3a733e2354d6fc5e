"""What one sees while following a run: the events that a journal holds, and what happens in between.

Records have events; whoever watches live is also told what is not recorded:

    async for seen in app.follow(run):
        if isinstance(seen, Record) and isinstance(seen.event, Heard): ...
        if isinstance(seen, Token): ...
"""

from ripstop.engine.live import Appended, Began, LiveEvent, RateLimited, Retrying, Token
from ripstop.kernel.effects import (
    AgentReplied,
    AnswerChild,
    AskAgent,
    AskPerson,
    CallTool,
    Failed,
    PersonAnswered,
    RunFinished,
    Said,
    Say,
    SetTimer,
    StartRun,
    TimerFired,
    ToolReturned,
)
from ripstop.kernel.events import (
    Allowed,
    Answered,
    Asked,
    CancelRequested,
    ChildSpoke,
    Doubted,
    DoubtResolved,
    Ended,
    Event,
    Fact,
    Forked,
    GuardTripped,
    Heard,
    Record,
    Redefined,
    Repeated,
    Restored,
    Resumed,
    ResumeRequested,
    SettingsChanged,
    Started,
    TurnRestarted,
    TurnResult,
    Warned,
    Withdrawn,
)

__all__ = [
    # Recorded: what happened, and what a style decided
    "Allowed",
    "Answered",
    "Asked",
    "CancelRequested",
    "ChildSpoke",
    "DoubtResolved",
    "Doubted",
    "Ended",
    "Event",
    "Fact",
    "Forked",
    "GuardTripped",
    "Heard",
    "Record",
    "Redefined",
    "Repeated",
    "Restored",
    "ResumeRequested",
    "Resumed",
    "SettingsChanged",
    "Started",
    "TurnRestarted",
    "TurnResult",
    "Warned",
    "Withdrawn",
    # In `Asked` and `Answered`: commands and their answers
    "AgentReplied",
    "AnswerChild",
    "AskAgent",
    "AskPerson",
    "CallTool",
    "Failed",
    "PersonAnswered",
    "RunFinished",
    "Said",
    "Say",
    "SetTimer",
    "StartRun",
    "TimerFired",
    "ToolReturned",
    # Live, and not recorded
    "Appended",
    "Began",
    "LiveEvent",
    "RateLimited",
    "Retrying",
    "Token",
]
