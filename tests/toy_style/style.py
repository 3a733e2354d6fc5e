"""How chores are done: an agent does each, its report is filed, paint dries, and a person says whether it is clean."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ripstop import Run, UsageError
from ripstop.events import Answered, Forked, Resumed, Started
from ripstop.style_api import (
    Action,
    AgentReplied,
    AgentUse,
    AskAgent,
    AskPerson,
    CallTool,
    Document,
    Event,
    Explanation,
    Fact,
    Facts,
    Failed,
    Field,
    Message,
    News,
    Part,
    PersonAnswered,
    PersonHooks,
    Picture,
    Prompt,
    Reason,
    SetTimer,
    Settled,
    Step,
    Style,
    StyleView,
    Task,
    Tasks,
    Uses,
)

from .definition import ChoreArguments, Chores
from .events import ChoreAdded, ChoreFinished, RoundBegan

TOOL = "file_report"
CLEAN = "chores.clean"
COLLECTION = "chores"
YES, NO = "yes", "no"


class ChoreState(Struct, frozen=True):
    definition: Chores
    given: ChoreArguments
    chores: tuple[str, ...]
    done: tuple[str, ...] = ()
    """What the agent reported, chore by chore."""
    report: str = ""
    """What it reported on the chore that is not finished yet."""
    round: int = 1
    wish: str = ""
    """What the person said about the last round."""


class ChoreView(StyleView[ChoreState]):
    def picture(self, run: Run[ChoreState]) -> Picture:
        state = run.state
        where = state.chores[len(state.done)] if len(state.done) < len(state.chores) else "is it clean?"
        progress = f"{len(state.done)} of {len(state.chores)}, round {state.round}"
        return Picture(where=where, whose_turn=state.definition.agent, progress=progress, document=state.report)

    def gist(self, run: Run[ChoreState]) -> str:
        return f"{len(run.state.done)} of {len(run.state.chores)} chores"

    def parts(self, run: Run[ChoreState]) -> tuple[Part, ...]:
        state = run.state
        tasks = tuple(
            Task(str(index), what, "done" if index < len(state.done) else "open")
            for index, what in enumerate(state.chores)
        )
        return (Tasks(tasks, "Chores"), Facts((("round", state.round), ("wish", state.wish)), "Round"))

    def explain(self, before: ChoreState, event: Event) -> Explanation:
        match event:
            case ChoreFinished(index=index):
                return Explanation((Reason(f"{before.chores[index]!r} was reported", holds=True, taken=True),))
            case RoundBegan(round=round) if round > 1:
                return Explanation((Reason(f"the person was not content: {before.wish or 'no word'}", taken=True),))
        return Explanation()


class ChorePeople(PersonHooks[ChoreState]):
    def actions(self, run: Run[ChoreState]) -> tuple[Action, ...]:
        if run.ended:
            return ()
        return (Action("add", "Add a chore", {"what": Field(label="What to do", required=True)}),)

    def act(self, run: Run[ChoreState], name: str, fields: Mapping[str, Any], by: str) -> Fact:
        what = str(fields["what"]).strip()
        if not what:
            raise UsageError("A chore needs words.")
        return ChoreAdded(what=what, by=by)


class ChoreStyle(Style[ChoreState]):
    name = "chores"
    view = ChoreView()
    people = ChorePeople()
    arguments_type = ChoreArguments

    # Folding

    def begin(self, definition: Chores, started: Started) -> ChoreState:
        return ChoreState(definition, self.start_arguments(started), definition.chores)

    def evolve(self, state: ChoreState, number: int, event: Event) -> ChoreState:
        match event:
            case ChoreAdded(what=what):
                return replace(state, chores=(*state.chores, what))
            case RoundBegan(round=round):
                return replace(state, round=round, done=())
            case ChoreFinished():
                return replace(state, done=(*state.done, state.report), report="")
            case Answered(answer=AgentReplied(text=text)):
                return replace(state, report=text)
            case Answered(answer=PersonAnswered(text=text)):
                return replace(state, wish=text)
        return state

    # Deciding

    def decide(self, step: Step[ChoreState], news: News) -> None:
        match news:
            case Started():
                step.record(RoundBegan(round=1))
                _go_on(step)
            case Forked() | Resumed():
                _go_on(step)
            case ChoreAdded():
                _interrupt(step)
            case Settled(answer=Failed(reason=reason)):
                step.end("failed", reason)
            case Settled(command=AskAgent()):
                _file(step)
            case Settled(command=CallTool()):
                index = len(step.state.done)
                digest = f"{step.state.round}/{index}"
                step.record(ChoreFinished(index=index, agent=step.state.definition.agent, digest=digest))
                _go_on(step)
            case Settled(command=SetTimer()):
                _ask(step)
            case Settled(command=AskPerson(), answer=PersonAnswered(choice=choice, by=by)):
                _judge(step, choice, by)

    # What commands say

    def render(self, state: ChoreState, command: AskAgent) -> Prompt:
        wish = f" The last time they said: {state.wish}" if state.wish else ""
        task = f"Do this and report in one line: {state.chores[len(state.done)]}.{wish}"
        return Prompt((Message("system", "You do chores."), Message("user", task)))

    def uses(self, definition: Chores) -> Uses:
        return Uses(agents=(AgentUse(definition.agent),))

    # What people do

    # Looking

    def documents(self, run: Run[ChoreState]) -> tuple[Document, ...]:
        state = run.state
        body = {"name": state.definition.name, "round": state.round, "done": list(state.done), "chores": state.chores}
        return (Document(COLLECTION, run.id, body),)


def _go_on(step: Step[ChoreState]) -> None:
    state = step.state
    if len(state.done) < len(state.chores):
        step.ask(AskAgent(agent=state.definition.agent, context=(1,)))
    elif not state.definition.pause:
        _ask(step)
    else:
        step.ask(SetTimer(name="drying", after=state.definition.pause))


def _file(step: Step[ChoreState]) -> None:
    state = step.state
    index = len(state.done)
    arguments = {"name": f"{state.round}-{index}.txt", "text": state.report}
    step.ask(CallTool(tool=TOOL, arguments=arguments))


def _ask(step: Step[ChoreState]) -> None:
    question = f"Is everything clean? ({len(step.state.done)} chores are done.)"
    choices = {YES: "It is clean", NO: "Once more"}
    to = step.state.given.person
    step.ask(AskPerson(question=question, purpose=CLEAN, title="clean?", to=to, choices=choices, other=NO))


def _judge(step: Step[ChoreState], choice: str, by: str) -> None:
    state = step.state
    if choice == YES:
        return step.end("completed", f"{by or 'a person'} is content", {"reports": list(state.done)})
    if state.round >= state.given.rounds:
        return step.end("stopped", f"it was not clean after {state.round} rounds")
    step.record(RoundBegan(round=state.round + 1))
    return _go_on(step)


def _interrupt(step: Step[ChoreState]) -> None:
    """A chore was added: whoever is asked whether all is clean is not asked any more, because it is not."""
    if step.run.asks_about_verdict:
        return  # a guard has stopped the run; it continues when a person says so
    waiting = [n for n, opened in step.run.open.items() if isinstance(opened.command, AskPerson | SetTimer)]
    if any(isinstance(opened.command, AskAgent | CallTool) for opened in step.run.open.values()):
        return
    for number in waiting:
        step.withdraw(number, "a chore was added")
    _go_on(step)
