"""The planning style: a configuration becomes a plan, once, for all sessions that wait for it.

The run is named after the configuration's hash, so a hundred sessions that begin at once lead to one call. Its first
asker gets the decision about his message with it; all others decide for themselves.

A plan that cannot be used is never kept. The run ends as `failed`, and the next message resumes it, after a pause that
grows with every failure, or at once with another model. From `max_failed_plans` on a person is asked besides, with what
the planner said; sessions do without a plan meanwhile.
"""

from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ripstop.kernel.advice import Advice, NextStep
from ripstop.kernel.effects import AgentReplied, AskAgent, Failed, Limits
from ripstop.kernel.events import Ended, Event, Forked, GuardTripped, Redefined, Resumed, Started
from ripstop.kernel.prompt import Prompt
from ripstop.kernel.resuming import question_about_verdict
from ripstop.kernel.run import SECOND, Run, end_line
from ripstop.kernel.step import Step
from ripstop.kernel.style import AgentUse, Document, Ending, News, Picture, Settled, Style, StyleView, Uses

from .. import reply
from .. import turn as turns
from ..turn import Turn
from .actions import PLANNER
from .decision import BrokenContract, read_decision
from .definition import Bot
from .events import PlanRefused
from .plan import CachedPlan, WrongPlan, missing_in, read_plan
from .prompts import planning_prompt

PLAN_CACHE = "plan_cache"
CALLS_OF_PLAN = 3
"""Calls of the model that are set aside for one plan; a reply that cannot be used is asked for once more."""
NO_PLAN = "no_plan"
"""The guard that has a person asked about a configuration of which no plan can be made."""
FIRST_PAUSE, LONGEST_PAUSE = 10.0, 3_600.0
"""Seconds before the next message may have another plan made: after the first failure, and at most."""
MOST_DOUBLED = 10


class PlanningArguments(Struct, frozen=True, forbid_unknown_fields=True):
    message: str = ""
    asker: str = ""
    """The message that is also decided about, as `session/number`; empty: none."""
    passages: tuple[tuple[str, str], ...] = ()
    known: dict[str, str] = {}
    """What is known of the user who has sent the message."""


class PlanningState(Struct, frozen=True):
    definition: Bot
    given: PlanningArguments
    turn: Turn | None = None
    is_planned: bool = False
    failures: int = 0
    """Plans in a row that could not be used."""
    resume_at: int = 0


class PlanningView(StyleView[PlanningState]):
    def picture(self, run: Run[PlanningState]) -> Picture:
        return Picture(where="planned" if run.state.is_planned else "planning", whose_turn=PLANNER)

    def gist(self, run: Run[PlanningState]) -> str:
        return end_line(run) or run.state.definition.name


class PlanningStyle(Style[PlanningState]):
    name = "planning"
    view = PlanningView()
    unforkable = Advice(
        "A plan is made once for its configuration. ",
        NextStep("replan", "Ask for another", "Ask for another with `{}`"),
        ".",
    )
    default_limits = Limits(calls=CALLS_OF_PLAN)
    arguments_type = PlanningArguments

    def begin(self, definition: Bot, started: Started) -> PlanningState:
        return PlanningState(definition, self.start_arguments(started))

    def evolve(self, state: PlanningState, number: int, event: Event) -> PlanningState:
        if isinstance(event, Ended):
            return replace(state, is_planned=event.outcome == "completed")
        if isinstance(event, Resumed):
            return replace(state, turn=None)
        if isinstance(event, PlanRefused):
            return replace(state, failures=event.failures, resume_at=event.resume_at)
        turn = turns.evolve(state.turn, number, event)
        return state if turn is state.turn else replace(state, turn=turn)

    def decide(self, step: Step[PlanningState], news: News) -> None:
        match news:
            case Started() | Forked() | Resumed() | Redefined():
                step.ask(AskAgent(agent=PLANNER, model=step.state.definition.model, context=(1,)))
            case Settled(answer=Failed() as failed):
                turn = step.state.turn
                failure = turns.shorten(step, turn, failed) if turn else failed
                if failure:
                    _refuse(step, failure.reason)
            case Settled(answer=AgentReplied() as answer):
                _planned(step, answer)

    def stopped(self, step: Step[PlanningState], verdict: GuardTripped) -> None:
        if verdict.guard != NO_PLAN:  # else the person who was asked has stopped it
            _note(step, verdict.text)
        step.end_by_guard(verdict)

    def render(self, state: PlanningState, command: AskAgent) -> Prompt:
        first = planning_prompt(state.definition, state.given.message, state.given.passages, state.given.known)
        return turns.render(state.turn, command, first)

    def ending(self, state: PlanningState) -> Ending:
        return Ending(is_resumable=not state.is_planned, resume_at=state.resume_at)

    def pauses(self, run: Run[PlanningState]) -> bool:
        # an outage must not keep every session waiting: the plan has failed, and the next message makes another
        parent = run.started.parent
        return parent is not None and run.id.startswith(f"{parent[0]}.")

    def uses(self, definition: Bot) -> Uses:
        return Uses(agents=(AgentUse(PLANNER, definition.model),))

    def documents(self, run: Run[PlanningState]) -> tuple[Document, ...]:
        state = run.state
        if not state.is_planned:
            return ()
        plan, _, _ = _read(_text(state), state)
        bot = state.definition
        body = {"workflow_id": bot.name, "hash": bot.hash, **msgspec.to_builtins(plan)}
        return (Document(PLAN_CACHE, f"{bot.name}:{bot.hash}", body),)


def _text(state: PlanningState) -> str:
    assert state.turn is not None
    return state.turn.exchanges[-1].reply.text


def _planned(step: Step[PlanningState], answer: AgentReplied) -> None:
    state = step.state
    turn = state.turn
    assert turn is not None
    if turns.is_cut(answer):
        finished = turns.ask_for_rest(step, turn)
        return _refuse(step, finished.failure.reason) if finished and finished.failure else None
    corrected = answer.recorded or any(exchange.correction for exchange in turn.exchanges)
    try:
        plan, decision, problem = _read(_text(state), state)
        if lacking := missing_in(plan, state.definition):
            raise WrongPlan(lacking)
    except WrongPlan as error:
        return _refuse(step, str(error)) if corrected else _correct(step, turn, str(error))
    if problem and not corrected:
        return _correct(step, turn, problem)
    if problem:
        step.warn(f"the decision that came with the plan breaks the contract: {problem}")
    result = {
        "plan": msgspec.to_builtins(plan),
        "decision": decision,
        "problem": problem,
        "asker": state.given.asker,
    }
    return step.end("completed", "The configuration is planned.", result=result)


def _refuse(step: Step[PlanningState], problem: str) -> None:
    """There is no plan: end the run until another message comes, or ask a person besides."""
    state = step.state
    said = state.turn.exchanges[-1].number if state.turn and state.turn.exchanges else 0
    _note(step, problem)
    most, failures = state.definition.max_failed_plans, step.state.failures
    if failures < most:
        return step.end("failed", f"the planner did not give a plan: {problem}")
    times = "once" if failures == 1 else f"{failures} times in a row"
    verdict = GuardTripped(
        guard=NO_PLAN,
        limit=most,
        value=failures,
        text=f"No plan of the bot {state.definition.name!r} could be used, {times}. The last one: {problem}.",
        evidence=(said,) if said else (),
    )
    step.record(verdict)
    step.ask_unguarded(replace(question_about_verdict(verdict), title=state.definition.name))
    return None


def _note(step: Step[PlanningState], problem: str) -> None:
    failures = step.state.failures + 1
    pause = min(FIRST_PAUSE * 2.0 ** min(failures - 1, MOST_DOUBLED), LONGEST_PAUSE)
    step.record(PlanRefused(problem=problem, failures=failures, resume_at=step.at + round(pause * SECOND)))


def _correct(step: Step[PlanningState], turn: Turn, problem: str) -> None:
    finished = turns.FinishedTurn(turn.exchanges[-1].number, turn.exchanges[-1].reply.text)
    said = f"Your reply cannot be used: {problem}. Reply again with one JSON object that keeps the rules."
    turns.correct(step, turn, finished, said)


def _read(text: str, state: PlanningState) -> tuple[CachedPlan, Any, str]:
    """The plan, the decision about the first message, and what is wrong with that. Raises `WrongPlan`."""
    try:
        said, _ = reply.last(text, "plan")
    except reply.NoReply as error:
        raise WrongPlan(f"the reply has no JSON object with 'plan' and 'decision' ({error})") from error
    plan = read_plan(said["plan"], state.definition)
    if not state.given.asker:
        return plan, None, ""
    decision = said.get("decision")
    try:
        read_decision(decision, state.definition)
    except BrokenContract as error:
        return plan, None, str(error)
    return plan, decision, ""
