"""Agents at work on the document that they own.

An agent accepts the document, works, and says what becomes of it. A reply that changes nothing, or completes it without
words, is corrected once; an agent that fails is asked again, and after as many attempts as the policy allows a person
is asked. A failure is not an interaction.
"""

from collections.abc import Collection
from typing import Any

from ripstop.kernel import progress
from ripstop.kernel.budget import allows_no_child
from ripstop.kernel.effects import Answer, AskAgent, AskPerson, Failed, RunFinished, StartRun
from ripstop.kernel.prompt import Message, Prompt
from ripstop.kernel.step import Step
from ripstop.kernel.style import Child
from ripstop.kernel.text_limits import shown as quoted
from ripstop.text.courtesy import courteous
from ripstop.text.plurals import count
from ripstop.text.visible_text import without_hidden

from .. import reply
from .. import turn as turns
from ..final_object import final_decisions
from ..shortening import cut
from ..turn import FinishedTurn
from . import transitions
from .document import write
from .events import AgentFailed, TransitionRefused
from .state import ACTIONS, FAILED, FINAL, PENDING, HandoffState, WorkflowStatement, asked_of, owner_asked

# What an agent is told about the document it owns, and what it may answer.


_TOLD = {
    "en": (
        "You are {name}. You own the document below and work on it now. Do what its Next_Action asks of you, then "
        "say what becomes of it. Other members of the team: {team}.\n"
        "To deliver a file, write its path on a line of its own (shared files begin with collab/) and the whole file "
        "in a fenced block below it.\n"
        "End with one JSON object and nothing after it:\n"
        '{{"content": "what you did, in a sentence", "decisions": {{"action": "pass", "to": "a member of the team", '
        '"next_action": "what that member shall do", "result": "what came out of it"}}}}\n'
        'action is "pass" (to somebody else), "complete" (the whole task is done) or "terminate" (it cannot be done). '
        "Only this object changes the document; saying that it is completed does not."
    ),
    "zh": (
        "你是{name}。下面的文档现在由你负责。完成其中 Next_Action 要你做的事，然后说明文档接下来怎么办。"
        "团队其他成员：{team}。\n"
        "要交付文件，单独一行写路径（共享文件以 collab/ 开头），下面用代码块写出完整内容。\n"
        "最后只写一个 JSON 对象，后面不要再写别的：\n"
        '{{"content": "一句话说明你做了什么", "decisions": {{"action": "pass", "to": "团队成员", '
        '"next_action": "该成员要做什么", "result": "得到的结果"}}}}\n'
        'action 是 "pass"（转交他人）、"complete"（整个任务已完成）或 "terminate"（无法完成）。'
        "只有这个对象会改变文档，口头说“已完成”不算。"
    ),
}

NOBODY = {"en": "nobody", "zh": "无"}

CHANGED = (
    "The document was changed by somebody else while you worked; above it is as it is now. "
    "Take the change into account and answer again, with the JSON object at the end."
)


def prompt_for(state: HandoffState, agent: str, tools: tuple[str, ...], longest: int) -> Prompt:
    """`longest`: characters of the document; 0: all."""
    assignment, language = state.assignment(agent), state.language
    team = [name for name in assignment.team if name != agent]
    told = _TOLD[language].format(name=agent, team=", ".join(team) or NOBODY[language])
    if assignment.prompt.strip():
        told = f"{assignment.prompt.strip()}\n\n{told}"
    messages = (Message(role="system", text=told), Message(role="user", text=cut(write(state.document), longest)))
    return Prompt(messages=messages, tools=tools, schema=_schema(team))


def _schema(team: list[str]) -> dict[str, Any]:
    text = {"type": "string", "maxLength": 1000}
    to: dict[str, Any] = {"enum": [*team, ""]} if team else text
    decisions = {
        "type": "object",
        "properties": {"action": {"enum": list(ACTIONS)}, "to": to, "next_action": text, "result": text},
        "required": ["action", "to", "next_action", "result"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"content": text, "decisions": decisions},
        "required": ["content", "decisions"],
        "additionalProperties": False,
    }


def wrong_with(decisions: dict[str, Any], others: Collection[str]) -> str:
    """What is wrong with an agent's decisions; empty if they can be followed. `others` are the rest of its team."""
    action, to = decisions.get("action"), decisions.get("to", "")
    if action not in ACTIONS:
        return f'"action" is {action!r}; it must be one of {", ".join(ACTIONS)}'
    if action == "pass" and (not isinstance(to, str) or not to.strip()):
        return '"to" must name the member of the team that the document is passed to'
    if action != "pass" and isinstance(to, str) and to.strip() in others:
        return f'"action" is {action!r}, which ends the document, and "to" passes it to {to.strip()!r}; say one of both'
    return ""


def _says_nothing(step: Step[HandoffState], decisions: dict[str, Any]) -> str:
    """What is wrong with a completion that says nothing; empty if it does say what came out. People may be silent."""
    said = step.state.said
    words = next((text for text in (said.result, said.message) if without_hidden(text).strip()), "")
    if decisions["action"] != "complete" or (words and not courteous(words, step.run.guards)):
        return ""
    found = f"{quoted(words)} is only a courtesy" if words else '"result" and "content" are empty'
    return f'"action" is \'complete\', and {found}; say in "result" what came out of the task'


AGAIN, TERMINATE = "again", "terminate"
"""What a person may say about an agent that has failed."""


def work(step: Step[HandoffState], agent: str) -> None:
    """Have an agent work on the document, if it is the owner and nobody works on it."""
    state = step.state
    document = state.document
    if agent != document.owner or document.status in FINAL:
        reason = f"{agent!r} cannot work on it: it is {document.status} and belongs to {document.owner!r}"
        return step.record(TransitionRefused(action="accept", by=agent, reason=reason))
    if is_handled(step):
        return None
    if document.status == PENDING:
        if state.count >= state.most_interactions:
            step.stop(transitions.too_many(state))
        transitions.make(step, "accept", agent, silent=True)
    return ask(step, agent)


def work_by_role(step: Step[HandoffState]) -> bool:
    """Have the owner work if it is a role of the definition; returns whether it was asked to."""
    state = step.state
    if step.run.ended or state.document.status in FINAL or is_handled(step):
        return False
    if all(role.name != state.document.owner for role in state.definition.roles):
        return False
    work(step, state.document.owner)
    return True


def is_handled(step: Step[HandoffState]) -> bool:
    """Whether an agent is at work, or a person is asked about one."""
    others = (opened for number, opened in step.run.open.items() if number != owner_asked(step.run.open))
    return any(asked_of(opened.command) in ("agent", "person") for opened in others)


def ask(step: Step[HandoffState], agent: str) -> None:
    state = step.state
    if workflow := state.workflow_of(agent):
        continued = state.said.continued if isinstance(state.said, WorkflowStatement) else ""
        step.ask(StartRun(workflow=workflow, name=continued, context=(1,)))
        return
    step.ask(AskAgent(agent=agent, kind="coder", model=step.state.assignment(agent).model, context=(1,)))


def child_for(state: HandoffState) -> Child:
    """What a workflow gets that works in the owner's place."""
    prompt = state.assignment(state.document.owner).prompt.strip()
    return Child(input="\n\n".join(filter(None, (prompt, state.document.next_action, write(state.document)))))


def after_workflow(step: Step[HandoffState], answer: Answer) -> None:
    """A workflow has worked in the owner's place: its decisions say what becomes of the document, if it has any.

    If not, the document goes back to the role that handed it over; where there is none, it is completed.
    """
    state, agent = step.state, step.state.document.owner
    workflow = state.workflow_of(agent)
    if not isinstance(answer, RunFinished):
        reason = answer.reason if isinstance(answer, Failed) else "its run has no end"
        return _failed(step, agent, f"the workflow {workflow!r} could not be run: {reason}")
    if answer.outcome == "limit" and allows_no_child(step.run, StartRun(workflow=workflow)):
        return ask(step, agent)  # it is the limit of this run, so a guard says so
    if answer.outcome != "completed":
        why = f"the workflow {workflow!r} ended as {answer.outcome} ({answer.run}): {answer.because}"
        return _failed(step, agent, why)
    assert isinstance(state.said, WorkflowStatement)
    action, to = state.said.action, state.said.to
    if not action:
        giver = state.document.previous
        is_role = giver != agent and any(role.name == giver for role in state.definition.roles)
        action, to = ("pass", giver) if is_role else ("complete", "")
    refusal = transitions.request(step, action, agent, to)
    return _failed(step, agent, refusal) if refusal else None


def after_turn(step: Step[HandoffState], finished: FinishedTurn) -> None:
    turn = step.state.turn
    assert turn is not None
    agent = turn.ask.agent
    if finished.failure:
        return _failed(step, agent, finished.failure.reason)
    try:
        _, decisions = final_decisions(finished.text)
        others = [name for name in step.state.assignment(agent).team if name != agent]
        problem = wrong_with(decisions, others) or _says_nothing(step, decisions)
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
        f"{agent} has failed {count(state.failures, 'time')} at {state.document.id!r}: {reason.rstrip('.')}. What now?"
    )
    choices = {AGAIN: f"Let {agent} try again", TERMINATE: "Terminate the document"}
    title = state.document.id
    step.ask_unguarded(AskPerson(question=question, purpose=FAILED, title=title, about=(failure,), choices=choices))
    return None
