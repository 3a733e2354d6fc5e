"""A person has the conversation: the bot is silent, and one question on the desk stays open until it is given back."""

from ripstop.kernel.effects import AskPerson
from ripstop.kernel.step import Step

from . import timers
from .events import StatusChanged
from .folding import HANDOFF_QUESTION, RELEASE, REPLY
from .state import SessionState

MOST_SHOWN = 20
"""Lines of the conversation that the question on the desk names."""
CHOICES = {REPLY: "Answer the user", RELEASE: "Give the conversation back to the bot"}
Chat = Step[SessionState]


def transfer(step: Chat) -> None:
    """The user has been told: hand the conversation over."""
    step.record(StatusChanged("transferred"))
    timers.cancel_all(step, "a person has the conversation")
    ask(step)


def ask(step: Chat) -> None:
    state = step.state
    taken = f"{state.taken_by} has it. " if state.taken_by else ""
    step.ask_unguarded(
        AskPerson(
            question=f"{taken}Answer the user of session {state.chat.session!r}, or give the conversation back.",
            purpose=HANDOFF_QUESTION,
            title=f"{state.definition.name}: {state.chat.session}",
            to=state.definition.handoff_to,
            about=tuple(line.number for line in state.lines[-MOST_SHOWN:]),
            choices=CHOICES,
            other=REPLY,
        )
    )
