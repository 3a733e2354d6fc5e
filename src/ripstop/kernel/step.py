"""One step of a run: a fact comes in, the style decides, records come out.

- A step is written from top to bottom: what the style records is applied at once, so the next
  line of `decide` sees it.
- A late or repeated answer leads to nothing, so delivery may repeat itself.
- What a style cannot work with (`Unworkable`) ends the run as `failed`; it is never tried again.
- A guard's verdict ends the run, or asks a person whether it may go on, whatever the style meant to do next.
- Cancelling, deadlines and effects in doubt are handled here; styles never see them.

Nothing here reads a clock, draws a random number or touches the world.
"""

from collections.abc import Mapping
from typing import Any, Generic, NoReturn, Protocol, TypeVar

from msgspec import Struct

from .budget import time_is_up
from .effects import (
    AgentReplied,
    Answer,
    AskAgent,
    AskPerson,
    CallTool,
    Command,
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
from .errors import RunAlreadyStarted, RunHasEnded, RunNotFound, Unworkable
from .events import (
    CANCEL,
    FACTS,
    OUTCOMES,
    RESUME,
    USE,
    Answered,
    Asked,
    Doubted,
    Ended,
    Event,
    Fact,
    Forked,
    GuardTripped,
    Heard,
    Ordered,
    Record,
    Repeated,
    Started,
    Warned,
    Withdrawn,
)
from .guards import review
from .prompt import Prompt
from .resuming import GO_ON, STOP, outcome_of, raisable_by, raises_in_words, raises_of
from .run import Folding, Run, apply
from .usage_gaps import about
from .work_time import DEADLINE

S = TypeVar("S")

HAPPENED, AGAIN, GIVE_UP = "happened", "again", "give up"
"""What a person may say about an effect in doubt."""


class Settled(Struct, frozen=True, gc=False):
    """An answer, joined with the command it settles."""

    number: int
    command: Command
    answer: Answer


News = Started | Forked | Heard | Ordered | Settled


class Picture(Struct, frozen=True, kw_only=True):
    """What any face may show of a run, whatever its style."""

    where: str = ""
    whose_turn: str = ""
    path: tuple[str, ...] = ()
    progress: str = ""
    document: str = ""


class Style(Folding[S], Protocol[S]):
    """A way of working together: pure functions of what has happened."""

    name: str

    def decide(self, step: "Step[S]", news: News) -> None: ...

    unforkable: str
    """Why its runs cannot be forked; empty if they can."""

    def cancelled(self, step: "Step[S]", because: str) -> None:
        """Somebody cancels the run: end it as `stopped`, and do before that whatever the style owes."""

    def stopped(self, step: "Step[S]", verdict: GuardTripped) -> None:
        """A guard stops the run: end it (`end_by_guard`), and do before that whatever the style owes."""

    def render(self, state: S, command: AskAgent) -> Prompt: ...

    def arguments(self, state: S, command: CallTool) -> dict[str, Any]: ...

    def listens(self, state: S) -> bool: ...

    def resumable(self, state: S) -> bool:
        """Whether a run that has ended was saved, so that it can go on from where it ended."""

    def picture(self, run: Run[S]) -> Picture: ...

    def explain(self, before: S, event: Event) -> list[str]:
        """Why a decision of this style was made, in lines for a person; empty for what is not its own."""


class _StepIsOver(Exception):
    """A guard has ended the run or has it wait; unwinds the style's `decide`."""


class Step(Generic[S]):
    __slots__ = ("_definitions", "_id", "_style", "at", "number", "records", "run", "state")

    def __init__(
        self, style: Style[S], definitions: Mapping[str, Any], run: Run[S] | None, run_id: str, fact: Fact, at: int
    ) -> None:
        self._style = style
        self._definitions = definitions
        self._id = run_id
        self.at = at
        """When this step happens."""
        self.records: list[Record] = []
        self.number = run.length if run else 0
        """The number of the record written last."""
        self.run: Run[S] = run  # type: ignore[assignment]  # none only until the fact is recorded, on the next line
        self.record(fact)

    def record(self, event: Event) -> None:
        number = self.number + 1
        record = Record(number, self.at, event)
        self.run = run = apply(self._style, self._definitions, self._id, self.run, record)
        self.records.append(record)
        self.state, self.number = run.state, number

    def ask_unguarded(self, command: Command) -> int:
        """Ask for something that the run owes whatever its limits say, such as the last word."""
        self.record(Asked(command=command))
        return self.number

    def ask(self, command: Command) -> int:
        """Ask the world for something; returns the command's number. A guard may end the run here."""
        verdict = review(self.run, command, self._style.render)
        if type(verdict) is GuardTripped:
            self.stop(verdict)
        self.record(Asked(command=verdict))
        return self.number

    def withdraw(self, number: int, because: str) -> None:
        self.record(Withdrawn(number=number, because=because))

    def take_turn_back(self, number: int) -> None:
        """A turn that was not finished is about to be taken anew; its first command is `number`."""
        self.record(Withdrawn(number=number, because="the turn is taken anew", turn=True))

    def warn(self, text: str) -> None:
        self.record(Warned(text=text))

    def stop(self, verdict: GuardTripped) -> NoReturn:
        """Have a guard's verdict: the run ends, or waits for a person to say whether it may go on."""
        self.record(verdict)
        if self.run.guards.then == "ask":
            for number, opened in list(self.run.open.items()):
                if not _is_owed(opened.command):
                    self.withdraw(number, f"stopped by a guard: {verdict.guard}")
            raisable = raisable_by(verdict)
            how = f" (TEXT may say by how much {raisable} is raised)" if raisable else ""
            question = f"{verdict.text} May it go on?{how}"
            self.record(Asked(command=AskPerson(question=question, choices=(GO_ON, STOP), about=verdict.evidence)))
        else:
            self._style.stopped(self, verdict)
        raise _StepIsOver

    def end_by_guard(self, verdict: GuardTripped) -> None:
        self.end(outcome_of(verdict), verdict.text)

    def end(self, outcome: str, because: str) -> None:
        assert outcome in OUTCOMES, outcome
        self.record(Ended(outcome=outcome, because=because))


def _is_owed(command: Command) -> bool:
    """Whether a command is the run's own duty, not part of what somebody works on."""
    return isinstance(command, CallTool) and not command.agent


def advance(
    style: Style[S], definitions: Mapping[str, Any], run: Run[S] | None, run_id: str, fact: Fact, at: int
) -> tuple[list[Record], Run[S]]:
    """The fact and every decision it leads to, ready to append, and the run as it then stands."""
    if run is None:
        if not isinstance(fact, Started):
            raise RunNotFound(run_id)
    elif type(fact) is Answered or type(fact) is Doubted:  # by far the most frequent
        if run.ended or fact.to not in run.open:
            return [], run
        if run.asks_about_verdict:
            _check_words(run, fact)
    elif type(fact) is Started:
        raise RunAlreadyStarted(run_id)
    elif type(fact) is Ordered and fact.order == USE and fact.arguments.items() <= run.settings.items():
        return [], run  # it does so already
    elif run.ended and type(fact) is not Forked:
        _may_go_on(style, run, fact)
    elif type(fact) is Ordered and fact.order == RESUME:
        if not run.asks_about_verdict:
            return [], run  # it is going on already
        raises_of(fact.arguments, run.verdict)
    return _take(style, Step(style, definitions, run, run_id, fact, at), run, fact)


def _check_words(run: Run[Any], fact: Answered | Doubted) -> None:
    """Refuse an answer to a guard's question that names an amount which is not one."""
    said = fact.answer if isinstance(fact, Answered) and fact.to == run.asks_about_verdict else None
    if run.verdict and isinstance(said, PersonAnswered) and said.choice == GO_ON:
        raises_in_words(run.verdict, said.text)


def _may_go_on(style: Style[S], run: Run[S], fact: Fact) -> None:
    """A run that has ended goes on only by order, and only if it was saved or a guard stopped it.

    It can be told before that what to use, because it begins at once when it goes on.
    """
    saved = style.resumable(run.state)
    if isinstance(fact, Ordered) and (saved or run.verdict is not None):
        if fact.order == USE:
            return
        if fact.order == RESUME:
            raises_of(fact.arguments, None if saved else run.verdict)
            return
    assert run.ended is not None
    raise RunHasEnded(run.id, run.ended.outcome)


def decide_again(
    style: Style[S],
    definitions: Mapping[str, Any],
    before: Run[S] | None,
    fact: Record,
    forked: Forked,
    run_id: str,
    at: int,
) -> tuple[list[Record], Run[S]]:
    """A fork right after a fact: its decisions were left behind, so they are made anew."""
    run = apply(style, definitions, run_id, before, fact)
    assert isinstance(fact.event, FACTS)  # a step begins with one
    return _take(style, Step(style, definitions, run, run_id, forked, at), before, fact.event)


def _take(style: Style[S], step: Step[S], before: Run[S] | None, fact: Fact) -> tuple[list[Record], Run[S]]:
    """Decide on a fact. Whatever comes of it, a step ends in order."""
    try:
        if isinstance(fact, Answered):
            assert before is not None
            _settle(style, step, before, fact.to, fact.answer)
        else:
            _decide(style, step, fact)
    except _StepIsOver:
        pass
    except Unworkable as error:
        step.end("failed", str(error))
    except Exception as error:
        # a fault of ours must not lose the fact: it would come again, and fail again, for ever
        if not step.run.ended:
            step.end("failed", f"This is a fault of ripstop, not of the workflow: {type(error).__name__}: {error}")
    seconds = step.run.limits.seconds
    if seconds is not None:
        _keep_deadline(step, seconds)
    return step.records, step.run


def _decide(style: Style[S], step: Step[S], fact: Started | Forked | Heard | Ordered | Doubted) -> None:
    match fact:
        case Forked():
            for number, opened in list(step.run.open.items()):
                call = type(opened.command) is AskAgent
                step.record(Withdrawn(number=number, because="asked anew by the fork", call=call))
            style.decide(step, fact)
        case Ordered(order=order) if order == RESUME:
            for number in list(step.run.open):
                step.withdraw(number, "the run was told to go on")
            style.decide(step, fact)
        case Ordered(order=order) if order == CANCEL:
            style.cancelled(step, f"cancelled{f' by {fact.by}' if fact.by else ''}")
        case Ordered(order=order) if order == USE:
            pass  # what is open is carried out with it, and so is what comes
        case Doubted(to=to, evidence=evidence):
            _ask_about_doubt(step, to, evidence)
        case _:
            style.decide(step, fact)


def _keep_deadline(step: Step[Any], seconds: float) -> None:
    """Have the deadline open while something is at work, and only then."""
    run = step.run
    work = run.work
    if run.ended or run.verdict or bool(work.since) is bool(work.deadline):
        return
    if work.deadline:
        step.withdraw(work.deadline, "nothing is at work")
    else:
        step.ask_unguarded(SetTimer(name=DEADLINE, after=work.left(seconds)))


def _settle(style: Style[S], step: Step[S], before: Run[S], to: int, answer: Answer) -> None:
    command = before.open[to].command
    if type(command) is SetTimer and command.name == DEADLINE and type(answer) is TimerFired:
        limit, work = before.limits.seconds, step.run.work
        # it may fire early: time between two processes is not time at work. Then it is set anew at the end of the step
        if limit is not None and work.is_up(limit):
            step.stop(time_is_up(limit, work, deadline=to))
    elif to == before.asks_about_verdict and isinstance(answer, PersonAnswered):
        _after_verdict(style, step, before, answer)
    elif to in before.doubts and isinstance(answer, PersonAnswered):
        _resolve_doubt(style, step, before, before.doubts[to], answer)
    else:
        if type(answer) is AgentReplied:
            for gap in sorted(step.run.gaps - before.gaps):
                step.warn(about(gap, answer))
        style.decide(step, Settled(to, command, answer))


def _after_verdict(style: Style[S], step: Step[S], before: Run[S], said: PersonAnswered) -> None:
    verdict = before.verdict
    assert verdict is not None
    if said.choice != GO_ON:
        return style.stopped(step, verdict)
    raises = raises_in_words(verdict, said.text)
    order = Ordered(order=RESUME, arguments={"raise": raises} if raises else {}, by=said.by)
    step.record(order)
    return style.decide(step, order)


def _ask_about_doubt(step: Step[Any], to: int, evidence: str) -> None:
    step.record(
        Asked(
            command=AskPerson(
                question=f"Did this call take effect? {evidence} Repeating it may not be safe.",
                choices=(HAPPENED, AGAIN, GIVE_UP),
                about=(to,),
            )
        )
    )


def _resolve_doubt(style: Style[S], step: Step[S], before: Run[S], about: int, said: PersonAnswered) -> None:
    if about not in before.open:
        return None  # withdrawn in the meantime: nobody needs to know any more
    if said.choice == AGAIN:
        return step.record(Repeated(number=about, because=f"a person said: {AGAIN}"))
    command = before.open[about].command
    answer = _testimony(command, said.text)
    if said.choice != HAPPENED:
        answer = Failed(reason="Nobody knows whether it happened, and a person gave it up.", fault="ours")
    step.record(Answered(to=about, answer=answer))
    return style.decide(step, Settled(about, command, answer))


def _testimony(command: Command, words: str) -> Answer:
    """What a person saw, as the answer that the command was waiting for."""
    match command:
        case AskAgent():
            return AgentReplied(text=words)
        case Say():
            return Said()
        case StartRun():
            return RunFinished(run="", outcome="completed", because=words)
    return ToolReturned(value=words)
