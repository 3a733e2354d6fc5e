"""One step of a run: a fact comes in, the style decides, records come out.

- A step is written from top to bottom: what the style records is applied at once, so the next
  line of `decide` sees it.
- A repeated answer leads to nothing, so delivery may repeat itself. A late one is recorded for what it cost.
- What a style cannot work with (`Unworkable`) ends the run as `failed`; it is never tried again.
- A guard's verdict ends the run, or asks a person whether it may continue, whatever the style meant to do next.
- Cancelling, deadlines, verdicts and effects in doubt are handled here; styles never see them.

Nothing here reads a clock, draws a random number or touches the world.
"""

import hashlib
from collections.abc import Mapping
from functools import partial
from typing import Any, Generic, NoReturn, TypeVar

import msgspec

from .budget import explained, time_is_up
from .doubts import (
    AGAIN,
    GIVE_UP,
    HAPPENED,
    IN_DOUBT,
    cut_off_by,
    describe_cut_off_calls,
    is_stopping_children,
    question_about_doubt,
    testimony,
    verdict_on_cut_off,
)
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
    Say,
    SetTimer,
    text_of,
)
from .errors import RunAlreadyStarted, RunHasEnded, RunNotFound, Unworkable
from .events import (
    OUTCOMES,
    Allowed,
    Answered,
    Asked,
    CallHeldBack,
    CallRefused,
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
    Reopened,
    Repeated,
    Restored,
    Resumed,
    ResumeRequested,
    RetryRequested,
    SettingsChanged,
    Started,
    TurnRestarted,
    Warned,
    Withdrawn,
)
from .folding import apply, heard_id, spoken_id
from .guards import review
from .outages import RETRY, is_between_attempts, question_about_outage, refusals_of
from .prompt import Prompt
from .restoring import END, GO_ON, GO_ON_LABEL, has_happened, may_have_happened, question_about_copy
from .result import Result
from .resuming import CONTINUE, check_raises, outcome_of, question_about_verdict, raises_in_answer
from .run import DEADLINE, DOUBT, GUARD, OUTAGE, OWN_PURPOSES, RESTORED, Contents, Open, Run, about
from .style import Settled, Style, arguments_for

S = TypeVar("S")

_encode = msgspec.json.Encoder(order="deterministic").encode


class _StepIsOver(Exception):
    """A guard has ended the run or has it wait; unwinds the style's `decide`."""


class Step(Generic[S]):
    """A fact and the decisions on it, while a style makes them."""

    __slots__ = ("_contents", "_id", "_style", "at", "kept", "number", "records", "run", "state")

    def __init__(
        self, style: Style[S], contents: Contents, run: Run[S] | None, run_id: str, fact: Fact, at: int
    ) -> None:
        self._style = style
        self._contents = contents
        self._id = run_id
        self.at = at
        """When this step happens."""
        self.records: list[Record] = []
        self.kept: dict[str, bytes] | None = None
        """Content to keep with this step, by hash."""
        self.number = run.length if run else 0
        """The number of the record written last."""
        self.run: Run[S] = run  # type: ignore[assignment]  # none only until the fact is recorded, on the next line
        self.record(fact)

    def record(self, event: Event) -> None:
        number = self.number + 1
        record = Record(number, self.at, event)
        self.run = run = apply(self._style, self._contents, self._id, self.run, record)
        self.records.append(record)
        self.state, self.number = run.state, number

    def ask(self, command: Command) -> int:
        """Ask the world for something; returns the command's number. A guard may end the run here."""
        if type(command) is SetTimer:
            self.cancel_timer(command.name, "replaced by a new one")
        found = review(self.run, command, self._style.render)
        if type(found) is GuardTripped:
            self.stop(found)
        self.record(Asked(command=found) if found is not None else Asked(command=command, waits=True))
        return self.number

    def render(self, command: AskAgent) -> Prompt:
        """What an agent would be sent now."""
        return self._style.render(self.state, command)

    def ask_unguarded(self, command: Command) -> int:
        """Ask for something that no limit may prevent, such as a last message."""
        self.record(Asked(command=command))
        return self.number

    def say(self, text: str = "", about: int = 0, channel: str = "", to: str = "", purpose: str = "") -> int:
        return self.ask_unguarded(Say(text=text, about=about, channel=channel, to=to, purpose=purpose))

    def withdraw(self, number: int, because: str) -> None:
        refused = refusals_of(self.run, number) if self.run.refused else None
        self.record(Withdrawn(number=number, because=because))
        if refused and refused.question in self.run.open:
            self.record(Withdrawn(number=refused.question, because=because))

    def cancel_timer(self, name: str, because: str = "cancelled") -> None:
        """Withdraw the open timer of that name, if there is one."""
        for number, opened in self.run.open.items():
            if type(opened.command) is SetTimer and opened.command.name == name:
                return self.withdraw(number, because)
        return None

    def restart_turn(self, number: int) -> None:
        """A turn that was not finished is about to begin again; its first command was `number`."""
        self.record(TurnRestarted(number=number))

    def warn(self, text: str) -> None:
        self.record(Warned(text=text))

    def stop(self, verdict: GuardTripped) -> NoReturn:
        """Apply a guard's verdict: the run ends, or waits for a person to say whether it may continue."""
        if self.run.asks_about_verdict in self.run.open:  # before the verdict, because this forgets the one it is about
            self.withdraw(self.run.asks_about_verdict, "a new verdict takes its place")
        self.record(verdict)
        if self.run.guards.then == "ask" or verdict.guard == IN_DOUBT:
            for number, opened in list(self.run.open.items()):
                # a question about a doubt goes with its command, which was withdrawn before it, and stays with it
                is_open = number in self.run.open
                if is_open and not _must_be_done(opened.command) and number not in self.run.doubts:
                    self.withdraw(number, f"stopped by a guard: {verdict.guard}")
            self.ask_unguarded(question_about_verdict(verdict))
        else:
            self._style.stopped(self, verdict)
        raise _StepIsOver

    def end_by_guard(self, verdict: GuardTripped) -> None:
        self.end(outcome_of(verdict), verdict.text)

    def end(self, outcome: str, because: str, result: Any = None) -> None:
        """End the run. `result`: a `Result`, or any JSON value, for those that wait for the run; `None` for none."""
        assert outcome in OUTCOMES, outcome
        found = result.as_json() if isinstance(result, Result) else result
        self.record(Ended(outcome=outcome, because=because, result="" if found is None else self.keep(found)))

    def keep(self, value: Any) -> str:
        """Keep a JSON value with this step; returns its hash."""
        body = _encode(value)
        digest = hashlib.sha256(body).hexdigest()
        self.kept = {**(self.kept or {}), digest: body}
        return digest


def _must_be_done(command: Command) -> bool:
    """Whether a command is not part of a turn's work: a message, or the style's own duty."""
    return type(command) is Say or (type(command) is CallTool and not command.agent)


TOLD_AFTER_END = frozenset({Forked, CallRefused, Restored})
"""Facts for runs that have ended; a message can be refused after the end. Others are for runs that can go on."""


def advance(
    style: Style[S], contents: Contents, run: Run[S] | None, run_id: str, fact: Fact, at: int
) -> Step[S] | None:
    """The step that a fact leads to, ready to append; `None` if it changes nothing."""
    if run is None:
        if type(fact) is not Started:
            raise RunNotFound(run_id)
        style.start_arguments(fact)  # nothing is recorded that could not be folded
    elif type(fact) is Answered:  # by far the most frequent
        if fact.to not in run.open and fact.to not in run.late:
            return None
        if run.asks_about_verdict:
            _check_raise(run, fact)
    elif type(fact) is Started:
        raise RunAlreadyStarted(run_id)
    elif _changes_nothing(style, run, fact):
        return None
    elif run.ended:
        if type(fact) not in TOLD_AFTER_END:
            _check_resumable(style, run, fact)
    elif type(fact) is ResumeRequested:
        check_raises(fact.raises, run.verdict)
    return _take(style, Step(style, contents, run, run_id, fact, at), run, fact)


def _changes_nothing(style: Style[S], run: Run[S], fact: Fact) -> bool:
    if type(fact) is Doubted:
        opened = run.open.get(fact.to)
        if opened is None or run.ended or fact.to in run.doubts.values():
            return True
        return type(opened.command) is AskPerson or type(opened.command) is SetTimer  # they have no effect
    if type(fact) is CallRefused:
        return fact.to not in run.open
    if type(fact) is CallHeldBack:  # for people, or for the sake of a limit of seconds
        is_of_use = bool(fact.by) or fact.over or run.limits.seconds is not None
        is_waiting = not run.ended and fact.to in run.open
        is_held = fact.to in run.held_back or (fact.over and is_between_attempts(run, fact.to))
        return not (is_of_use and is_waiting) or is_held is not fact.over
    if type(fact) is RetryRequested:
        return run.ended is None and not run.refused
    if type(fact) is Restored:
        is_over = run.ended is not None and not _can_go_on(style, run)
        return is_over or (run.held is not None and run.held.copy == fact.copy)
    if type(fact) is Heard:
        return bool(fact.id) and heard_id(fact) in run.known_messages
    if type(fact) is ChildSpoke:
        return run.ended is not None or fact.command not in run.open or spoken_id(fact) in run.known_messages
    if type(fact) is SettingsChanged:
        return fact.settings == run.settings
    if type(fact) is ResumeRequested:
        # it is at work already; or it must not continue before a person has answered
        return not run.ended and (run.verdict is None or not run.asks_about_verdict or run.verdict.guard == IN_DOUBT)
    return False


def _check_raise(run: Run[Any], fact: Answered) -> None:
    """Refuse an answer to a guard's question that names an invalid amount."""
    said = fact.answer
    if run.verdict and fact.to == run.asks_about_verdict and type(said) is PersonAnswered and said.choice == CONTINUE:
        raises_in_answer(run.verdict, said)


def _can_go_on(style: Style[S], run: Run[S]) -> bool:
    """Whether a run that has ended can be resumed, or its last call be made again."""
    return run.verdict is not None or run.failed_call is not None or style.ending(run.state).is_resumable


def _check_resumable(style: Style[S], run: Run[S], fact: Fact) -> None:
    """A run that has ended takes nothing but a resume, and only if it was saved or a guard stopped it.

    Its settings can be changed before that, because it begins at once when it is resumed.
    """
    if type(fact) is RetryRequested and run.failed_call and run.ended and run.ended.outcome == "failed":
        return
    saved = style.ending(run.state).is_resumable
    if can_resume := saved or run.verdict is not None:
        if type(fact) is SettingsChanged:
            return
        if type(fact) is ResumeRequested:
            check_raises(fact.raises, None if saved else run.verdict)
            return
    assert run.ended is not None
    raise RunHasEnded(run.id, run.ended.outcome, can_resume, not style.unforkable)


def decide_again(
    style: Style[S], contents: Contents, before: Run[S] | None, fact: Record, forked: Forked, run_id: str, at: int
) -> Step[S]:
    """A fork right after a fact: its decisions were left behind, so they are made again."""
    run = apply(style, contents, run_id, before, fact)
    assert isinstance(fact.event, Fact)  # a step begins with one
    step = Step(style, contents, run, run_id, forked, at)
    if before is not None and before.ended and type(fact.event) is not ResumeRequested:
        return _take(style, step, before, forked)  # such as a late answer: the run had ended, so nothing was decided
    return _take(style, step, before, fact.event)


def _take(style: Style[S], step: Step[S], before: Run[S] | None, fact: Fact) -> Step[S]:
    """Decide on a fact. Whatever the style raises, the step is complete."""
    try:
        if type(fact) is Answered:
            assert before is not None
            if before.ended is None:
                if fact.to in before.open:
                    _settle(style, step, before, fact.to, fact.answer)
                else:
                    _after_late(style, step, before, fact.to, fact.answer)
        else:
            _decide(style, step, fact)
        if step.run.waiting:
            _allow_waiting(style, step)
    except _StepIsOver:
        pass
    except Unworkable as error:
        _fail(step, str(error))
    except Exception as error:
        # keep the fact even if our code raises: unrecorded, it would be delivered again and fail for ever
        _fail(step, f"This is a bug in ripstop, not in the workflow: {type(error).__name__}: {error}")
    seconds = step.run.limits.seconds
    if seconds is not None:
        _keep_deadline(step, seconds)
    return step


def _allow_waiting(style: Style[S], step: Step[S]) -> None:
    """Give the commands that waited for their part of the budget, in their order, as far as it has come back."""
    for number in step.run.waiting:
        opened = step.run.open[number]
        found = review(step.run, opened.command, partial(_rendered_then, style, opened))
        if type(found) is GuardTripped:
            step.stop(found)
        if found is not None:
            step.record(Allowed(number=number, command=found))


def _rendered_then(style: Style[S], waiting: Open, state: S, command: AskAgent) -> Prompt:
    """A prompt: of the command that waits as it was when it was asked, of others as they are."""
    return style.render(waiting.state if command is waiting.command else state, command)


def _fail(step: Step[Any], because: str) -> None:
    if not step.run.ended:
        step.end("failed", because)


def _decide(style: Style[S], step: Step[S], fact: Fact) -> None:
    match fact:
        case Forked():
            for number in list(step.run.open):
                step.record(Withdrawn(number=number, because="asked again by the fork", unmade=True))
            style.decide(step, fact)
        case ResumeRequested(raises=raises, accept_edits=accept_edits):
            _resume(style, step, raises, accept_edits)
        case CancelRequested():
            said, because = (
                f"cancelled by {fact.by}" if fact.by else "cancelled",
                f": {fact.because}" if fact.because else "",
            )
            _withdraw_question_about_copy(step)
            style.cancelled(step, f"{said}{because}")
        case Restored() if not step.run.ended:
            _withdraw_question_about_copy(step)
            step.ask_unguarded(question_about_copy(step.run, fact, _calls_to_come(style, step.run)))
        case Restored():
            pass  # what it did before it ended is on record; what it does if it is resumed is in doubt
        case SettingsChanged() | CallHeldBack():
            pass  # what is open is performed with the settings, and so is what comes; and a call only waits
        case Doubted(to=to, evidence=evidence):
            _doubt(style, step, to, evidence)
        case CallRefused():
            _pause(step, fact)
        case RetryRequested():
            _retry(step)
        case _:
            style.decide(step, fact)


def _pause(step: Step[Any], refused: CallRefused) -> None:
    """Ask a person about a call that pauses the run, unless one is asked already and still has to know the same."""
    known, opened = refusals_of(step.run, refused.to), step.run.open.get(refused.to)
    if not (refused.pauses and known and opened and type(opened.command) is AskAgent):
        return
    if known.question in step.run.open:
        if known.news == known.told:
            return
        step.withdraw(known.question, "the call is refused for another reason now, so it is asked again")
    step.ask_unguarded(question_about_outage(refused.to, opened.command.agent, refused.by, refused.reason))


def _retry(step: Step[Any]) -> None:
    """Make the calls again that were refused, or the one with which the run ended."""
    if step.run.ended and step.run.failed_call:
        return step.record(Reopened(number=step.run.failed_call.number))
    for one in step.run.refused:
        step.record(Repeated(number=one.to))
        if one.question in step.run.open:
            step.withdraw(one.question, "the call is made again")
    return None


def _doubt(style: Style[S], step: Step[S], to: int, evidence: str) -> None:
    run = step.run
    if run.held and has_happened(run, to):  # a person has said so of all that was open
        command = run.open[to].command
        answer = testimony(command, run.held.words)
        step.record(DoubtResolved(to=to, answer=answer))
        return style.decide(step, Settled(to, command, answer))
    more = {GO_ON: GO_ON_LABEL} if may_have_happened(run, to) else None
    step.ask_unguarded(question_about_doubt(to, evidence, _arguments_of(style, run.open[to]), more))
    return style.audience.doubted(step, to)


def _calls_to_come(style: Style[S], run: Run[S]) -> dict[str, Mapping[str, Any]]:
    """The calls of tools that are open, and those that wait for their turn, as a person is shown them."""
    calls: dict[str, Mapping[str, Any]] = {}
    for number, opened in run.open.items():
        command = opened.command
        if type(command) is CallTool:
            calls[f"{command.tool} ({run.id}/{number})"] = arguments_for(style, opened.state, command)
    for turn, waiting in enumerate(style.waiting_calls(run.state), start=1):
        calls[f"{waiting.tool} (in its turn, {turn})"] = waiting.arguments or {}
    return calls


def _withdraw_question_about_copy(step: Step[Any]) -> None:
    for number, opened in list(step.run.open.items()):
        if type(opened.command) is AskPerson and opened.command.purpose == RESTORED:
            step.withdraw(number, "another question, or the end of the run, takes its place")


def _resume(style: Style[S], step: Step[S], raises: dict[str, float], accept_edits: bool = False) -> None:
    for number, opened in list(step.run.open.items()):
        if number in step.run.open and type(opened.command) is not Say and number not in step.run.doubts:
            step.withdraw(number, "the run was resumed")
    if is_stopping_children(step.run):
        step.record(Resumed(raises=raises, waits=True, accept_edits=accept_edits))
    else:
        _continue(style, step, raises, accept_edits)


def _continue(style: Style[S], step: Step[S], raises: dict[str, float], accept_edits: bool = False) -> None:
    cut_off, resumed = step.run.uncertain, Resumed(raises=raises, accept_edits=accept_edits)
    step.record(resumed)
    if cut_off:
        step.stop(verdict_on_cut_off(step.run.id, cut_off))
    style.decide(step, resumed)


def _after_late(style: Style[S], step: Step[S], before: Run[S], to: int, answer: Answer) -> None:
    """A command that is no longer needed has reported."""
    run, cut_off = step.run, cut_off_by(before, to, answer)
    if before.resuming:
        if not is_stopping_children(run):
            _continue(style, step, {})
    elif cut_off and not run.asks_about_verdict:
        if to < run.resumed:  # it was stopped with the run, which was resumed before this was known
            step.stop(verdict_on_cut_off(run.id, run.uncertain))
        step.warn(describe_cut_off_calls(run.id, cut_off))


def _keep_deadline(step: Step[Any], seconds: float) -> None:
    """Keep the deadline's timer open while a call is in progress, and only then."""
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
    if type(command) is SetTimer and command.name == DEADLINE:
        limit, work = before.limits.seconds, step.run.work
        # it may fire early: time between two processes is not time at work. Then it is set again at the end of the step
        if limit is not None and work.is_up(limit):
            step.stop(explained(step.run, time_is_up(limit, work, deadline=to)))
    elif type(command) is AskPerson and command.purpose in OWN_PURPOSES:
        _after_own_question(style, step, before, command, answer)
    else:
        refused = refusals_of(before, to) if before.refused else None
        if refused and refused.question in step.run.open:
            step.withdraw(refused.question, "the call was answered")
        if type(answer) is AgentReplied and step.run.gaps is not before.gaps:
            for gap in sorted(step.run.gaps - before.gaps):
                step.warn(about(gap, answer))
        elif type(answer) is RunFinished and answer.uncertain:
            step.warn(describe_cut_off_calls(step.run.id, answer.uncertain))
        style.decide(step, Settled(to, command, answer))


def _after_own_question(style: Style[S], step: Step[S], before: Run[S], asked: AskPerson, answer: Answer) -> None:
    """A person has answered a question of the kernel's own."""
    said = answer if type(answer) is PersonAnswered else PersonAnswered()
    if asked.purpose == GUARD:
        if before.verdict is None:
            return None  # the run was cancelled in the meantime, so the answer changes nothing
        if said.choice != CONTINUE:
            return _stop(style, step, before.verdict)
        return _resume(style, step, raises_in_answer(before.verdict, said))
    if asked.purpose == DOUBT:
        return _resolve_doubt(style, step, before, asked.about[0], answer)
    if asked.purpose == OUTAGE:
        return _after_outage(style, step, before, asked.about[0], answer)
    if said.choice == END:
        style.cancelled(step, f"ended{f' by {said.by}' if said.by else ''}: its journal was restored")
    return None


def _stop(style: Style[S], step: Step[S], verdict: GuardTripped) -> None:
    style.stopped(step, verdict)
    if verdict.guard == IN_DOUBT and not step.run.ended and not step.run.open:
        step.end_by_guard(verdict)  # the style had not begun again, so it has nothing to end


def _after_outage(style: Style[S], step: Step[S], before: Run[S], about: int, said: Answer) -> None:
    refused = refusals_of(before, about)
    if about not in before.open or refused is None:
        return None  # answered or withdrawn in the meantime, so this changes nothing
    if type(said) is PersonAnswered and said.choice == RETRY:
        return step.record(Repeated(number=about))
    given_up = Failed(reason=f"{refused.reason} A person gave it up.", fault="agent")
    step.record(DoubtResolved(to=about, answer=given_up))
    return style.decide(step, Settled(about, before.open[about].command, given_up))


def _arguments_of(style: Style[Any], opened: Open) -> dict[str, Any] | None:
    """What a tool was called with; `None` for other commands."""
    command = opened.command
    return arguments_for(style, opened.state, command) if type(command) is CallTool else None


def _resolve_doubt(style: Style[S], step: Step[S], before: Run[S], about: int, said: Answer) -> None:
    if about not in before.open:
        return None  # withdrawn in the meantime, so the answer changes nothing
    choice = said.choice if type(said) is PersonAnswered else GIVE_UP
    if choice in (AGAIN, GO_ON):
        return step.record(Repeated(number=about, goes_on=choice == GO_ON))
    command = before.open[about].command
    answer = testimony(command, text_of(said))
    if choice != HAPPENED:
        answer = Failed(reason="It is not known whether it happened, and a person gave it up.", fault="ours")
    step.record(DoubtResolved(to=about, answer=answer))
    return style.decide(step, Settled(about, command, answer))
