"""Agents at work on the document that they own.

An agent accepts the document, works, and says what becomes of it. A reply that changes nothing is corrected once; an
agent that fails is asked again, and after as many attempts as the policy allows a person is asked. A failure is not an
interaction.
"""

from ripstop.kernel import progress
from ripstop.kernel.counting import count
from ripstop.kernel.effects import AskAgent, AskPerson
from ripstop.kernel.step import Step

from .. import reply
from .. import turn as turns
from ..turn import FinishedTurn
from . import transitions
from .events import AgentFailed, TransitionRefused
from .prompts import CHANGED, wrong_with
from .rules import FINAL, PENDING
from .state import FAILED, HandoffState, asked_of

AGAIN, TERMINATE = "again", "terminate"
"""What a person may say about an agent that has failed."""


def work(step: Step[HandoffState], agent: str) -> None:
    """Have an agent work on the document, if it is the owner and nobody works on it."""
    state = step.state
    paper = state.paper
    if agent != paper.owner or paper.status in FINAL:
        reason = f"{agent!r} cannot work on it: it is {paper.status} and belongs to {paper.owner!r}"
        return step.record(TransitionRefused(action="accept", by=agent, reason=reason))
    if is_handled(step):
        return None
    if paper.status == PENDING:
        if state.count >= state.most_interactions:
            step.stop(transitions.too_many(state))
        transitions.make(step, "accept", agent, silent=True)
    return ask(step, agent)


def work_by_role(step: Step[HandoffState]) -> bool:
    """Have the owner work if it is a role of the definition; returns whether it was asked to."""
    state = step.state
    if step.run.ended or state.paper.status in FINAL or is_handled(step):
        return False
    if all(role.name != state.paper.owner for role in state.definition.roles):
        return False
    work(step, state.paper.owner)
    return True


def is_handled(step: Step[HandoffState]) -> bool:
    """Whether an agent is at work, or a person is asked."""
    return any(asked_of(opened.command) in ("agent", "person") for opened in step.run.open.values())


def ask(step: Step[HandoffState], agent: str) -> None:
    step.ask(AskAgent(agent=agent, kind="coder", model=step.state.assignment(agent).model, context=(1,)))


def after_turn(step: Step[HandoffState], finished: FinishedTurn) -> None:
    turn = step.state.turn
    assert turn is not None
    agent = turn.ask.agent
    if finished.failure:
        return _failed(step, agent, finished.failure.reason)
    try:
        _, decisions = reply.decided(finished.text)
        problem = wrong_with(decisions)
    except reply.NoReply as error:
        problem = str(error)
    if problem:
        if progress.has_end_marker(finished.text, step.run.guards):
            verdict = transitions.verdict_on(step, agent)
            assert verdict is not None
            step.stop(verdict)
        if finished.corrections < 1:
            told = f"Your reply changes nothing: {problem}. Answer again.\n{finished.about_files()}"
            return turns.correct(step, turn, finished, told)
        return _failed(step, agent, f"{agent} broke the protocol: {problem}")
    if step.state.edited_since_asked:
        return turns.correct(step, turn, finished, CHANGED)
    if finished.must_be_repeated:
        if finished.corrections < 1:
            told = f"{finished.about_files()}End with the same JSON object as before."
            return turns.correct(step, turn, finished, told)
        return _failed(step, agent, finished.why_incomplete(agent))
    turns.warn_about_files(step, finished)
    action = decisions["action"]
    refusal = transitions.request(step, action, agent, decisions.get("to", "").strip() if action == "pass" else "")
    if refusal:
        _failed(step, agent, refusal)
    return None


def _failed(step: Step[HandoffState], agent: str, reason: str) -> None:
    step.record(AgentFailed(by=agent, reason=reason))
    failure, state = step.number, step.state
    if state.failures < state.definition.attempts:
        return ask(step, agent)
    question = (
        f"{agent} has failed {count(state.failures, 'time')} at {state.paper.id!r}: {reason.rstrip('.')}. What now?"
    )
    choices = {AGAIN: f"Let {agent} try again", TERMINATE: "Terminate the document"}
    title = state.paper.id
    step.ask_unguarded(AskPerson(question=question, purpose=FAILED, title=title, about=(failure,), choices=choices))
    return None
