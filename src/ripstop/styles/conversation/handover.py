"""What people at the desk do with a conversation: answer the user, take it over, give it back."""

from typing import Any

from ripstop.kernel.effects import AskAgent, PersonAnswered
from ripstop.kernel.step import Step

from . import desk, passes, timers
from .events import StatusChanged
from .folding import REPLY
from .saying import DESK, pass_on
from .state import SessionState


def answered(step: Step[SessionState], answer: Any) -> None:
    """A person answered the question on the desk: with words for the user, or by giving the conversation back.

    Words that come with giving it back are said first.
    """
    if isinstance(answer, PersonAnswered) and answer.text.strip():
        pass_on(step, step.number, DESK)
    if isinstance(answer, PersonAnswered) and answer.choice == REPLY:
        return desk.ask(step)
    step.record(StatusChanged("ready"))
    if step.state.unanswered:
        return passes.begin(step)
    if not step.state.is_session:
        return passes.end(step)
    return timers.set_all(step)


def take(step: Step[SessionState]) -> None:
    """A person takes the conversation, from the bot or from another person."""
    state = step.state
    if state.desk:
        step.withdraw(state.desk, f"{state.taken_by} has taken the conversation")
        return desk.ask(step)
    for number, opened in list(step.run.open.items()):
        if type(opened.command) is AskAgent:
            step.withdraw(number, "a person has taken the conversation")
    return desk.transfer(step)
