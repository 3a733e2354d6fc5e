"""What the bot says, on the channel of its session."""

from ripstop.kernel.step import Step

from .state import SessionState

GREETING, ANSWER, NOTE, APOLOGY, CHECKING = "greeting", "answer", "note", "apology", "checking"
FLOW, TIMER, DESK, HANDED_OVER = "flow", "timer", "desk", "transfer"
"""What kind of message it is; recorded with it."""


def say(step: Step[SessionState], text: str, purpose: str = ANSWER) -> None:
    chat = step.state.chat
    step.say(text, channel=chat.channel, to=chat.user, purpose=purpose)


def pass_on(step: Step[SessionState], number: int, purpose: str) -> None:
    """Say what a record holds: the words of a flow, or of a person at the desk."""
    chat = step.state.chat
    step.say(about=number, channel=chat.channel, to=chat.user, purpose=purpose)
