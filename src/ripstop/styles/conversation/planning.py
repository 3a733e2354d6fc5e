"""The planning style: a configuration becomes a plan, once, for all sessions that wait for it.

The run is named after the configuration's hash, so a hundred sessions that begin at once lead to one call. Its first
asker gets the decision about his message with it; all others decide for themselves.
"""

from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ripstop.kernel.effects import AgentReplied, AskAgent, Failed, Limits
from ripstop.kernel.events import Ended, Event, Forked, Redefined, Resumed, Started
from ripstop.kernel.prompt import Prompt
from ripstop.kernel.run import Run, end_line
from ripstop.kernel.step import Step
from ripstop.kernel.style import AgentUse, Document, News, Picture, Settled, Style

from .. import reply
from .. import turn as turns
from ..turn import Turn
from .actions import PLANNER
from .decision import BrokenContract, read_decision
from .definition import Bot
from .plan import CachedPlan, WrongPlan, read_plan
from .prompts import planning_prompt

PLAN_CACHE = "plan_cache"


class PlanningArguments(Struct, frozen=True, forbid_unknown_fields=True):
    message: str = ""
    asker: str = ""
    """The message that is also decided about, as `session/number`; empty: none."""
    passages: tuple[tuple[str, str], ...] = ()


class PlanningState(Struct, frozen=True):
    definition: Bot
    given: PlanningArguments
    turn: Turn | None = None
    is_planned: bool = False


class PlanningStyle(Style[PlanningState]):
    name = "planning"
    unforkable = "A plan is made once for its configuration. Ask for another with `ripstop sessions replan`."
    default_limits = Limits(calls=3)
    arguments_type = PlanningArguments

    def begin(self, definition: Bot, started: Started) -> PlanningState:
        return PlanningState(definition, self.start_arguments(started))

    def evolve(self, state: PlanningState, number: int, event: Event) -> PlanningState:
        if isinstance(event, Ended):
            return replace(state, is_planned=event.outcome == "completed")
        if isinstance(event, Resumed):
            return replace(state, turn=None)
        turn = turns.evolve(state.turn, number, event)
        return state if turn is state.turn else replace(state, turn=turn)

    def decide(self, step: Step[PlanningState], news: News) -> None:
        match news:
            case Started() | Forked() | Resumed() | Redefined():
                step.ask(AskAgent(agent=PLANNER, model=step.state.definition.model, context=(1,)))
            case Settled(answer=Failed(reason=reason)):
                step.end("failed", reason)
            case Settled(answer=AgentReplied() as answer):
                _planned(step, answer)

    def render(self, state: PlanningState, command: AskAgent) -> Prompt:
        first = planning_prompt(state.definition, state.given.message, state.given.passages)
        return turns.render(state.turn, command, first)

    def resumable(self, state: PlanningState) -> bool:
        return not state.is_planned

    def agents(self, definition: Bot) -> tuple[AgentUse, ...]:
        return (AgentUse(PLANNER, definition.model),)

    def documents(self, run: Run[PlanningState]) -> tuple[Document, ...]:
        state = run.state
        if not state.is_planned:
            return ()
        plan, _, _ = _read(_text(state), state)
        bot = state.definition
        body = {"workflow_id": bot.name, "hash": bot.hash, **msgspec.to_builtins(plan)}
        return (Document(PLAN_CACHE, f"{bot.name}:{bot.hash}", body),)

    def picture(self, run: Run[PlanningState]) -> Picture:
        return Picture(where="planned" if run.state.is_planned else "planning", whose_turn=PLANNER)

    def gist(self, run: Run[PlanningState]) -> str:
        return end_line(run) or run.state.definition.name


def _text(state: PlanningState) -> str:
    assert state.turn is not None
    return state.turn.exchanges[-1].reply.text


def _planned(step: Step[PlanningState], answer: AgentReplied) -> None:
    state = step.state
    turn = state.turn
    assert turn is not None
    corrected = answer.recorded or any(exchange.correction for exchange in turn.exchanges)
    try:
        plan, decision, problem = _read(answer.text, state)
    except WrongPlan as error:
        if corrected:
            return step.end("failed", f"the planner did not give a plan: {error}")
        return _correct(step, turn, str(error))
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
