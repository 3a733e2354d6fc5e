"""The built-in style `question`: a run that asks a person one thing and ends with the answer.

With it a performer can ask a person: the question is a child of the command that needs the answer, so it survives
crashes, is on the desk, and is cancelled with the command.
"""

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from .effects import AskPerson, PersonAnswered, text_of
from .events import Event, Started
from .run import DOUBT, GUARD, Run
from .step import Step
from .style import News, Picture, Settled, Style, StyleKit

NAME = "question"


class QuestionState(Struct, frozen=True):
    definition: AskPerson


class QuestionStyle(Style[QuestionState]):
    name = NAME
    unforkable = "A question to a person cannot be forked; fork the run that asks it."

    def begin(self, definition: AskPerson, started: Started) -> QuestionState:
        # a performer cannot ask in the kernel's name: the answer would be lost
        own = definition.purpose not in (GUARD, DOUBT)
        return QuestionState(definition if own else replace(definition, purpose=NAME))

    def evolve(self, state: QuestionState, number: int, event: Event) -> QuestionState:
        return state

    def decide(self, step: Step[QuestionState], news: News) -> None:
        match news:
            case Started():
                step.ask_unguarded(step.state.definition)
            case Settled(answer=PersonAnswered() as answer):
                by = f"{answer.by} answered" if answer.by else "a person answered"
                step.end("completed", by, result=msgspec.to_builtins(answer))
            case Settled(answer=answer):
                step.end("failed", text_of(answer) or "the question could not be asked")

    def picture(self, run: Run[QuestionState]) -> Picture:
        return Picture(where=run.state.definition.title or "question")

    def gist(self, run: Run[QuestionState]) -> str:
        return run.state.definition.title


QUESTION = StyleKit(style=QuestionStyle(), definition=AskPerson)
