"""A style for tests of the runtime: errands, and everything that a style can do beyond giving commands.

It reacts to what people and children say, ends with a result, can be resumed, projects documents and offers actions.
"""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from ripstop.kernel.effects import Answer, AnswerChild, Field, PersonAnswered, StartRun
from ripstop.kernel.events import Answered, ChildSpoke, Event, Fact, Heard, Redefined, Started
from ripstop.kernel.run import Run
from ripstop.kernel.step import Step
from ripstop.kernel.style import Action, CallPolicy, Child, Document, Ending, News, PersonHooks, StyleKit, Uses
from ripstop.testing.stub_style import Errands, ErrandStyle, ErrandView, RoundBegan, StubState


class Clerk(Errands, frozen=True, omit_defaults=True):
    result: Any = None
    """What its runs end with."""
    answers_children: bool = False
    """Whether a message answers the last question of a child that surfaced."""
    channel: str = ""
    """Where a child's words are repeated."""
    resumable: bool = False
    interval: float = 0.0
    retry: str = "all"
    fault: str = ""
    """A method that raises, as one of a style with a bug would."""


class ClerkState(StubState, frozen=True):
    asked: int = 0
    """The record of a child's question that is not answered yet."""
    joined: tuple[Any, ...] = ()
    """The results of children."""
    stamps: int = 0


class Stamped(Fact, tag="clerk.stamped", frozen=True):
    times: int
    by: str = ""


class ClerkBegan(Event, tag="clerk.round_began", frozen=True):
    index: int


class ClerkView(ErrandView):
    def gist(self, run: Run[Any]) -> str:
        if run.state.round:
            _break(run.state.definition, "gist")
        return f"{run.state.stamps} stamps"


class ClerkPeople(PersonHooks[Any]):
    def actions(self, run: Run[Any]) -> tuple[Action, ...]:
        if run.ended:
            return ()
        stamp = Action("stamp", "Stamp it", {"times": Field(type="integer", required=True)})
        return (stamp, replace(stamp, name="countersign", by="chief"))

    def act(self, run: Run[Any], name: str, fields: Mapping[str, Any], by: str) -> Fact:
        return Stamped(times=fields["times"], by=by)


class ClerkStyle(ErrandStyle):
    name = "clerk"
    view = ClerkView()
    people = ClerkPeople()

    def begin(self, definition: Any, started: Started) -> ClerkState:
        return ClerkState(definition)

    def evolve(self, state: Any, number: int, event: Event) -> Any:
        match event:
            case ClerkBegan(index=index):
                if index:
                    _break(state.definition, "evolve")
                return super().evolve(state, number, RoundBegan(index=index))
            case ChildSpoke(ask=ask) if ask:
                return replace(state, asked=number)
            case Stamped(times=times):
                return replace(state, stamps=state.stamps + times)
        return super().evolve(state, number, event)

    def joined(self, state: Any, number: int, event: Answered, result: Any) -> Any:
        return replace(self.evolve(state, number, event), joined=(*state.joined, result))

    def decide(self, step: Step[Any], news: News) -> None:
        definition = step.state.definition
        match news:
            case Stamped() | Redefined():
                return
            case ChildSpoke(text=text, ask=ask):
                if definition.channel:
                    step.say(text or (ask.question if ask else ""), channel=definition.channel)
                return
            case Heard() if definition.answers_children:
                if step.state.asked:
                    step.ask(AnswerChild(asked=step.state.asked, about=step.number))
                return
        super().decide(step, news)

    def _begin(self, step: Step[Any], index: int) -> None:
        definition = step.state.definition
        if index >= len(definition.rounds):
            if definition.outcome:
                step.end(definition.outcome, "all errands are done", result=definition.result)
            return
        step.record(ClerkBegan(index=index))
        for command in definition.rounds[index]:
            step.ask(command)

    def start_child(self, state: Any, command: StartRun) -> Child:
        if state.definition.fault == "start_child" and state.stamps:
            _break(state.definition, "start_child")
        return super().start_child(state, command)

    def ending(self, state: Any) -> Ending:
        return Ending(is_resumable=bool(state.definition.resumable))

    def uses(self, definition: Any) -> Uses:
        return replace(super().uses(definition), calls=CallPolicy(definition.interval, definition.retry))

    def documents(self, run: Run[Any]) -> tuple[Document, ...]:
        if run.ended:
            return ()
        if run.state.round:
            _break(run.state.definition, "documents")
        return (Document("desks", run.id, {"round": run.state.round, "stamps": run.state.stamps}),)


def _break(definition: Clerk, method: str) -> None:
    if definition.fault == method:
        raise ZeroDivisionError(f"a bug in {method}")


def said(answer: Answer) -> str:
    assert isinstance(answer, PersonAnswered)
    return answer.text or answer.choice


CLERK = StyleKit(style=ClerkStyle(), definition=Clerk, events=(ClerkBegan, Stamped), collections=("desks",))
