"""What a conversation adds to a journal. Tags, fields and defaults are part of the file format, for ever."""

from typing import Any, ClassVar, cast

from ripstop.kernel.events import Event, Fact

from ..turn import TURN_EVENTS
from .definition import CLOSE, HANDOFF, UPDATE_PROFILE, Purpose

SUPERSEDED = "superseded"
"""Why a pass is cancelled: a new message came, and both are answered in the next one."""


class PassBegan(Event, tag="conversation.pass_began", frozen=True):
    """The bot takes up what was said, or a timer that has expired."""

    heard: tuple[int, ...] = ()
    """Numbers of the messages that it answers."""
    timer: str = ""
    continues: bool = False
    """It is the pass that a limit had broken off: its workflow goes on where it was."""


class StatusChanged(Event, tag="conversation.status_changed", frozen=True):
    status: str
    because: str = ""
    """Of `cancelled`: why the pass was broken off, or `superseded`."""


class Greeted(Event, tag="conversation.greeted", frozen=True):
    """The greeting was sent, so no other is needed."""


class IterationDecided(Event, tag="conversation.decided", frozen=True):
    """The model has decided what comes next. Its words are in the reply, or in the plan's result."""

    reply: int
    """The record with the decision: a reply, or the end of the planning run."""
    next_status: str
    action: str = ""
    target: str = ""
    """The action's type and target; empty for none."""
    visible: bool = True
    """Whether the user and the model may learn of the action."""


class ActionFailed(Event, tag="conversation.action_failed", frozen=True):
    """Nothing came of the action that was decided on last: its call failed, or there is nothing of that name."""

    is_trouble: ClassVar[bool] = True
    action: str
    target: str
    visible: bool = True
    """Whether the user and the model may learn of the action."""


class CallRepeated(Event, tag="conversation.call_repeated", frozen=True):
    """The model has decided on a call that this pass has made, or that is in doubt: it is told so, and not obeyed."""

    is_trouble: ClassVar[bool] = True
    reply: int
    """The record with the decision."""
    action: str
    target: str
    text: str
    """What the model is told."""
    visible: bool = True


class PlanMissing(Event, tag="conversation.plan_missing", frozen=True):
    """There is no plan for the configuration now: the pass uses the old one, or the procedure as it is written."""

    is_trouble: ClassVar[bool] = True
    because: str


class PassSuperseded(Event, tag="conversation.superseded", frozen=True):
    """A new message came while a tool or a flow was at work; the next pass begins when its result is known."""


class ResultNoted(Event, tag="conversation.result_noted", frozen=True):
    """What the model is told of an action for which nothing was called."""

    text: str


class TimerQueued(Event, tag="conversation.timer_queued", frozen=True):
    """A timer expired while a pass was under way; it is next."""

    name: str


class ProfileUpdated(Event, tag="conversation.profile_updated", frozen=True):
    values: dict[str, Any]


class SessionClosed(Event, tag="conversation.closed", frozen=True):
    pass


class SessionTaken(Fact, tag="conversation.taken", frozen=True):
    """A person takes the conversation over: from the bot, or from another person."""

    by: str


class PlanRefused(Event, tag="planning.refused", frozen=True):
    """What the planner said cannot be used, or it could not be asked."""

    is_trouble: ClassVar[bool] = True
    problem: str
    failures: int
    """How many times in a row, with this one."""
    resume_at: int
    """When the next message may have another plan made, in microseconds."""


PLANNING_EVENTS: tuple[type[Event], ...] = (PlanRefused, *TURN_EVENTS)
CONVERSATION_EVENTS: tuple[type[Event], ...] = (
    PassBegan,
    StatusChanged,
    Greeted,
    IterationDecided,
    ActionFailed,
    CallRepeated,
    PlanMissing,
    PassSuperseded,
    ResultNoted,
    TimerQueued,
    ProfileUpdated,
    SessionClosed,
    SessionTaken,
    *TURN_EVENTS,
)


# Which built-in action a tool is, by its name: bots call handing over and closing by many names.
#
# Upper and lower case, `_`, `-` and blanks do not matter. A tool's own `purpose` counts before its name.


_NAMES: dict[str, tuple[str, ...]] = {
    HANDOFF: (
        HANDOFF,
        "handoffto",
        "handofftohuman",
        "handofftoagent",
        "humanhandoff",
        "transfertohuman",
        "transfertoagent",
        "transfertohumanagent",
        "escalatetohuman",
        "转人工",
    ),
    CLOSE: (
        "closeconversation",
        "closechat",
        "closesession",
        "closedialog",
        "endconversation",
        "endchat",
        "endsession",
        "关闭会话",
        "结束会话",
    ),
    UPDATE_PROFILE: ("updateprofile",),
}
_SYSTEM_NAMES: dict[str, tuple[str, ...]] = {
    UPDATE_PROFILE: (
        "updateuserprofile",
        "updatecustomerprofile",
        "updatecontact",
        "updatecontactattributes",
        "upsertcontact",
        "upsertcontactattributes",
    ),
}
"""Names that count only among the system actions: elsewhere the model should see what such a tool has done."""
_ALWAYS = {name: purpose for purpose, names in _NAMES.items() for name in names}
_AMONG_SYSTEM = _ALWAYS | {name: purpose for purpose, names in _SYSTEM_NAMES.items() for name in names}


def purpose_named(name: str, is_system: bool = False) -> Purpose:
    """The built-in action that a tool of this name is; empty for none."""
    letters = "".join(character for character in name.casefold() if character.isalnum())
    return cast(Purpose, (_AMONG_SYSTEM if is_system else _ALWAYS).get(letters, ""))
