"""What the bot says, on the channel of its session."""

from ripstop.kernel.step import Step

from .state import SessionState


def say(step: Step[SessionState], text: str) -> None:
    chat = step.state.chat
    step.say(text, channel=chat.channel, to=chat.user)


def pass_on(step: Step[SessionState], number: int) -> None:
    """Say what a record holds: the words of a flow, or of a person at the desk."""
    chat = step.state.chat
    step.say(about=number, channel=chat.channel, to=chat.user)
