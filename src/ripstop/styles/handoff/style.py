"""The hand-off style: a document goes from owner to owner until it is completed or terminated.

- Only legal transitions change the document (`rules.py`). Anything else is refused and recorded, with what would
  be legal; that an agent says "completed" changes nothing.
- Four guards terminate it: more interactions than allowed, the same owner twice without progress (or a circle of
  owners), a message of nothing but courtesy, the end marker.
- The file is a view that is written after every change (`publish_document`), and a door: a text found in it that
  is not ours is read back as an edit (`edits.py`).
- The run ends when the last view has been written and whoever sent the document in has been told.
"""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from ripstop.kernel import progress
from ripstop.kernel.effects import AskAgent, AskPerson, CallTool, Failed, Guards, PersonAnswered, ToolReturned
from ripstop.kernel.events import RESUME, Event, GuardTripped, Heard, Ordered, Started
from ripstop.kernel.prompt import Prompt
from ripstop.kernel.resuming import override_guards
from ripstop.kernel.run import Run
from ripstop.kernel.step import News, Picture, Settled, Step

from .. import reply
from .. import turn as turns
from ..courtesy import check_phrases, courteous
from ..exchange import EDIT, LOOKING, WRITE
from ..turn import Finished
from . import state as standing
from . import transitions
from .document import oddities, write
from .edits import Refusal, read_edit
from .events import AgentFailed, Edited, MessageNoted, Moved, TransitionRefused
from .policy import END_MARKER, Policy
from .prompts import CHANGED, prompt_for, wrong_with
from .reply_message import sending
from .rules import FINAL, PENDING, RULES, TERMINATED
from .state import OWED, SEND, UNWRITTEN, HandoffState, asked_of, publishing
from .texts import ENGINE, timestamp

TOOLS = (*LOOKING, WRITE, EDIT)
AGAIN, GIVE_UP = "again", "terminate"
MOST_ODDITIES = 20
_DEFAULTS = Guards(patience=2, end_marker=END_MARKER)


class HandoffStyle:
    name = "handoff"
    unforkable = "A document has one file, so its run cannot be forked. Make a new one: ripstop docs new."

    # Folding

    def guards(self, definition: Policy, wishes: Mapping[str, Any]) -> Guards:
        return check_phrases(override_guards(_DEFAULTS, wishes, definition.guards))

    def begin(self, definition: Policy, started: Started) -> HandoffState:
        return standing.begin(definition, started)

    def rebase(self, state: HandoffState, definition: Policy) -> HandoffState:
        return replace(state, policy=definition)

    def evolve(self, state: HandoffState, number: int, event: Event) -> HandoffState:
        return standing.evolve(state, number, event)

    # Deciding

    def decide(self, step: Step[HandoffState], news: News) -> None:
        match news:
            case Started():
                for odd in oddities(step.state.paper)[:MOST_ODDITIES]:
                    step.warn(f"line {odd.line}: {odd.text}")
                transitions.publish(step)
            case Heard(by=by, text=text):
                _hear(step, by, text)
            case Ordered(order="edit"):
                _edit(step)
            case Ordered(order="work", by=by):
                _work(step, by)
            case Ordered(order="renamed" | "publish"):
                transitions.publish(step)
            case Ordered(order="missing"):
                step.warn("the file was gone; it is written again")
                transitions.publish(step)
            case Ordered(order=order) if order == RESUME:
                transitions.reopen(step, news.by)
            case Ordered(order=action, by=by, arguments=given):
                transitions.order(step, action, by or step.state.paper.owner, given.get("to", ""))
            case Settled():
                _settled(step, news)

    def cancelled(self, step: Step[HandoffState], because: str) -> None:
        if step.state.paper.status in FINAL:
            step.end("stopped", because)  # its last view cannot be written, or is about to be
        else:
            transitions.move(step, "terminate", ENGINE, reason=because)

    def stopped(self, step: Step[HandoffState], verdict: GuardTripped) -> None:
        if step.state.paper.status not in FINAL:  # else the run ends when its last view is written
            transitions.terminate(step, verdict)

    # Looking

    def render(self, state: HandoffState, command: AskAgent) -> Prompt:
        return turns.render(state.turn, command, prompt_for(state, command.agent, TOOLS))

    def arguments(self, state: HandoffState, command: CallTool) -> dict[str, Any]:
        if asked_of(command) == "publish":
            return publishing(state)
        return sending(state) if asked_of(command) == "reply" else turns.arguments(state.turn, command)

    def listens(self, state: HandoffState) -> bool:
        return state.paper.status not in FINAL

    def resumable(self, state: HandoffState) -> bool:
        return False

    def picture(self, run: Run[HandoffState]) -> Picture:
        state, paper = run.state, run.state.paper
        return Picture(
            where=paper.status,
            whose_turn="" if paper.status in FINAL else paper.owner,
            progress=f"{state.count} of at most {state.most_interactions} interactions",
            document=write(paper),
        )

    def explain(self, before: HandoffState, event: Event) -> list[str]:
        match event:
            case TransitionRefused(reason=reason, line=line):
                where = f" (line {line})" if line else ""
                return [f"refused{where}: {reason}", f"the document stayed {before.paper.status}"]
            case Moved(action=action, before=old, after=new, by=by):
                return [f"{action} by {by}: {old}→{new} is legal, and {by} may"]
            case Edited(notes=notes):
                return [*notes]
            case MessageNoted(because=because):
                return [because]
        return []


# Edits


def _edit(step: Step[HandoffState]) -> None:
    """A text was found in the file that is not ours: take it over, or refuse it and keep it."""
    state = step.state
    if state.repeated:
        return None  # another process has reported it first
    if state.found == write(state.paper):
        return transitions.publish(step)  # it is what we would write; let that be noted
    views = [paper for _, paper in state.views if paper is not state.paper]
    stale = next((view for view in reversed(views) if write(view) == state.found), None)
    if stale:
        reason = f"this is how it stood at {stale.updated}, with nothing new in it; change it as it is now"
        return _refuse_edit(step, 1, reason)
    try:
        edit = read_edit(state.found, [*views, state.paper], state.sender)
    except Refusal as refusal:
        return _refuse_edit(step, refusal.line, refusal.reason)
    if state.count + sum(RULES[move.action].counts for move in edit.moves) > state.most_interactions:
        reason = f"{state.most_interactions} interactions are all that are allowed; this would be one more"
        step.record(_refused_edit(step, 1, reason))  # so the text is kept beside the file
        step.stop(transitions.too_many(state))
    step.record(Edited(at=timestamp(step.at, state.offset), text=edit.text, notes=edit.notes))
    for move in edit.moves:
        verdict = transitions.verdict_on(step, move.by) if move.action in ("pass", "assign") else None
        if verdict:
            step.stop(verdict)
        transitions.move(step, move.action, move.by, move.to, written=move.written)
    transitions.publish(step)
    return transitions.review(step)


def _refuse_edit(step: Step[HandoffState], line: int, reason: str) -> None:
    step.record(_refused_edit(step, line, reason))
    transitions.publish(step)


def _refused_edit(step: Step[HandoffState], line: int, reason: str) -> TransitionRefused:
    at = timestamp(step.at, step.state.offset)
    return TransitionRefused(order="edit", by=step.state.sender, reason=reason, line=line, at=at)


def _settled(step: Step[HandoffState], news: Settled) -> None:
    if isinstance(news.answer, PersonAnswered):
        return _after_question(step, news.answer)
    if asked_of(news.command) == "publish":
        return _after_publishing(step, news)
    if asked_of(news.command) == "reply":
        if isinstance(news.answer, Failed):
            step.warn(f"{step.state.reply_to!r} could not be told that it is finished: {news.answer.reason}")
        return _finish(step)
    finished = turns.decide(step, step.state.turn, news, TOOLS)
    if finished:
        _after_turn(step, finished)
    return None


def _after_publishing(step: Step[HandoffState], news: Settled) -> None:
    answer, paper = news.answer, step.state.paper
    if isinstance(answer, Failed):
        if not step.state.unwritten:
            question = f"The document's file could not be written: {answer.reason} Put that right, then answer."
            step.ask_unguarded(AskPerson(question=question, choices=UNWRITTEN))
        return None
    assert isinstance(answer, ToolReturned)
    if step.state.unwritten:
        step.withdraw(step.state.unwritten, "the file could be written")
    if "kept" in answer.value:
        kept = answer.value["kept"]
        step.warn(f"the file was edited when a process was killed that wrote it; that edit is in {kept}")
    if "found" in answer.value:
        if step.state.repeated:
            return transitions.publish(step)
        _edit(step)
        for note in step.state.notes:
            step.warn(f"an edit was taken over, {note}")
        if step.state.keep and step.state.refusal:
            refused = step.state.refusal
            step.warn(f"an edit was refused, line {refused.line}: {refused.reason}; its text is kept beside the file")
        return None
    return _finish(step) if paper.status in FINAL else None


def _finish(step: Step[HandoffState]) -> None:
    """End the run, if it owes nobody anything any more."""
    paper = step.state.paper
    if step.state.reply_to and not step.state.reply:
        step.ask_unguarded(CallTool(tool=SEND))
        return None
    if any(asked_of(opened.command) in OWED for opened in step.run.open.values()):
        return None
    if paper.status == TERMINATED and step.run.verdict:
        return step.end_by_guard(step.run.verdict)
    last = paper.history[-1] if paper.history else None
    because = f"{last.agent} {last.action}" if last else "it came so"
    return step.end("completed" if paper.status != TERMINATED else "stopped", because)


# Messages


def _hear(step: Step[HandoffState], by: str, text: str) -> None:
    """Somebody wrote about the document without changing it."""
    paper = step.state.paper
    if paper.status in FINAL:
        return step.record(MessageNoted(by=by, because=f"it is {paper.status} already"))
    verdict = transitions.verdict_on(step, by)
    if courteous(text, step.run.guards):
        if paper.status == PENDING and by == paper.owner:
            because = f"{by} acknowledged the assignment, which is no answer to it"
            return step.record(MessageNoted(by=by, because=because))
        if verdict is None:
            return step.record(MessageNoted(by=by, because="it is nothing but a courtesy"))
    if verdict:
        step.stop(verdict)
    return step.record(MessageNoted(by=by, because="it is kept; only a transition changes the document"))


# Agents of ours


def _work(step: Step[HandoffState], agent: str) -> None:
    """Let an agent work on the document it owns."""
    state = step.state
    paper = state.paper
    if agent != paper.owner or paper.status in FINAL:
        reason = f"{agent!r} cannot work on it: it is {paper.status} and belongs to {paper.owner!r}"
        return step.record(TransitionRefused(order="work", by=agent, reason=reason))
    if any(asked_of(opened.command) in ("agent", "person") for opened in step.run.open.values()):
        return None  # somebody is at it, or a person is asked
    if paper.status == PENDING:
        if state.count >= state.most_interactions:
            step.stop(transitions.too_many(state))
        transitions.move(step, "accept", agent)
    return _ask(step, agent)


def _ask(step: Step[HandoffState], agent: str) -> None:
    brief = step.state.briefs.get(agent)
    step.ask(AskAgent(agent=agent, kind="coder", model=brief.model if brief else "", context=(1,)))


def _after_turn(step: Step[HandoffState], finished: Finished) -> None:
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
        if progress.marked(finished.text, step.run.guards):
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
    refusal = transitions.order(step, action, agent, decisions.get("to", "").strip() if action == "pass" else "")
    if refusal:
        _failed(step, agent, refusal)
    return None


def _failed(step: Step[HandoffState], agent: str, reason: str) -> None:
    """A failure is no interaction; but it is not tried for ever either."""
    step.record(AgentFailed(by=agent, reason=reason))
    if step.state.failures < step.state.policy.attempts:
        return _ask(step, agent)
    times, paper = step.state.failures, step.state.paper.id
    question = f"{agent} has failed {times} times at {paper!r}: {reason.rstrip('.')}. What now?"
    step.ask_unguarded(AskPerson(question=question, choices=(AGAIN, GIVE_UP)))
    return None


def _after_question(step: Step[HandoffState], answer: PersonAnswered) -> None:
    if answer.choice == GIVE_UP and step.state.paper.status not in FINAL:
        return transitions.move(step, "terminate", answer.by or ENGINE, reason=answer.text)
    if answer.choice == AGAIN and step.state.paper.status not in FINAL:
        return _ask(step, step.state.paper.owner)
    return transitions.publish(step)
