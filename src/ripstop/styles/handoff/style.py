"""The hand-off style: a document goes from owner to owner until it is completed or terminated.

- Only legal transitions change the document (`rules.py`). Anything else is refused and recorded, with what would
  be legal; that an agent says "completed" changes nothing.
- Four guards terminate it: more interactions than allowed, the same owner twice without progress (or a circle of
  owners), a message of nothing but courtesy, the end marker.
- The file is a view that is written after every change (`publish_document`), and a door: a text found in it that
  is not ours is read back as an edit (`edits.py`).
- The run ends when the last view has been written.
"""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from ripstop.kernel import progress
from ripstop.kernel.effects import AskAgent, AskPerson, CallTool, Failed, Guards, PersonAnswered, ToolReturned
from ripstop.kernel.errors import Unworkable
from ripstop.kernel.events import RESUME, Event, Forked, Guarded, Heard, Ordered, Started
from ripstop.kernel.going_on import with_wishes
from ripstop.kernel.prompt import Prompt
from ripstop.kernel.run import Run
from ripstop.kernel.step import News, Picture, Settled, Step

from .. import reply
from .. import turn as turns
from ..turn import EDIT, LOOKING, WRITE, Finished
from . import standing
from .edits import Refusal, read_edit
from .events import Edited, Heeded, Moved, Refused, Stumbled
from .paper import oddities, write
from .policy import END_MARKER, Policy
from .prompts import CHANGED, prompt_for, wrong_with
from .rules import FINAL, PENDING, RULES, TERMINATED, why_not
from .standing import PUBLISH, RESULT, Standing, after_move, asked_of, publishing
from .words import ENGINE, action_words, timestamp

TOOLS = (*LOOKING, WRITE, EDIT)
AGAIN, GIVE_UP = "again", "terminate"
MOST_ODDITIES = 20
_DEFAULTS = Guards(patience=2, end_marker=END_MARKER)


class HandoffStyle:
    name = "handoff"

    # Folding

    def guards(self, definition: Policy, wishes: Mapping[str, Any]) -> Guards:
        return with_wishes(_DEFAULTS, wishes, definition.guards)

    def begin(self, definition: Policy, started: Started) -> Standing:
        return standing.begin(definition, started)

    def rebase(self, state: Standing, definition: Policy) -> Standing:
        return replace(state, policy=definition)

    def evolve(self, state: Standing, number: int, event: Event) -> Standing:
        return standing.evolve(state, number, event)

    # Deciding

    def decide(self, step: Step[Standing], news: News) -> None:
        match news:
            case Started():
                for odd in oddities(step.state.paper)[:MOST_ODDITIES]:
                    step.warn(f"line {odd.line}: {odd.text}")
                _publish(step)
            case Forked():
                raise Unworkable("A document has one file, so its run cannot be forked; make a new document instead.")
            case Heard(by=by, text=text):
                _hear(step, by, text)
            case Ordered(order="edit"):
                _edit(step)
            case Ordered(order="work", by=by):
                _work(step, by)
            case Ordered(order="renamed"):
                _publish(step)
            case Ordered(order="missing"):
                step.warn("the file was gone; it is written again")
                _publish(step)
            case Ordered(order=order) if order == RESUME:
                _reopen(step, news.by)
            case Ordered(order=action, by=by, arguments=given):
                _order(step, action, by or step.state.paper.owner, given.get("to", ""))
            case Settled():
                _settled(step, news)

    def stopped(self, step: Step[Standing], verdict: Guarded) -> None:
        if step.state.paper.status not in FINAL:  # else the run ends when its last view is written
            _move(step, "terminate", ENGINE, reason=verdict.text)

    # Looking

    def render(self, state: Standing, command: AskAgent) -> Prompt:
        return turns.render(state.turn, command, prompt_for(state, command.agent, TOOLS))

    def arguments(self, state: Standing, command: CallTool) -> dict[str, Any]:
        return publishing(state) if command.tool == PUBLISH else turns.arguments(state.turn, command)

    def listens(self, state: Standing) -> bool:
        return state.paper.status not in FINAL

    def resumable(self, state: Standing) -> bool:
        return False

    def picture(self, run: Run[Standing]) -> Picture:
        state, paper = run.state, run.state.paper
        return Picture(
            where=paper.status,
            whose_turn="" if paper.status in FINAL else paper.owner,
            progress=f"{state.count} of at most {state.most_interactions} interactions",
            document=write(paper),
        )

    def explain(self, before: Standing, event: Event) -> list[str]:
        match event:
            case Refused(reason=reason, line=line):
                where = f" (line {line})" if line else ""
                return [f"refused{where}: {reason}", f"the document stayed {before.paper.status}"]
            case Moved(action=action, before=old, after=new, by=by):
                return [f"{action} by {by}: {old}→{new} is legal, and {by} may"]
            case Heeded(because=because):
                return [because]
        return []


# Transitions


def _order(step: Step[Standing], action: str, by: str, to: str) -> str:
    """Make a transition that somebody asked for; returns why it was refused, if it was."""
    state = step.state
    reason = why_not(state.paper, action, by, to)
    if not reason and action == "pass" and _only_courtesy(step) and step.run.guards.courtesy == "ignore":
        reason = "it is nothing but a courtesy, and needs nobody's attention"
    if reason:
        step.record(Refused(order=action, by=by, reason=reason))
        return reason
    if RULES[action].counts and state.count >= state.most_interactions:
        step.stop(_too_many(state))
    verdict = _verdict_on(step, by) if action in ("pass", "assign") else None
    if verdict:
        step.stop(verdict)
    _move(step, action, by, to)
    _review(step)
    return ""


def _review(step: Step[Standing]) -> None:
    """Stop the document if the last handlings changed nothing."""
    verdict = progress.review(step.run.trail, step.run.guards)
    if verdict and step.state.paper.status not in FINAL:
        step.stop(replace(verdict, progress=0))  # a document has one file, so there is no going back by a fork


def _verdict_on(step: Step[Standing], by: str) -> Guarded | None:
    """What a message says about going on: nothing, an end, or nothing but courtesy."""
    said, guards = step.state.said, step.run.guards
    evidence = (said.number or step.number,)
    if any(progress.marked(text, guards) for text in (said.message, said.next_action, said.result, said.text)):
        text = f"{by} ended it with {guards.end_marker}."
        return Guarded(guard="end_marker", limit=0, value=1, text=text, evidence=evidence)
    if guards.courtesy == "terminate" and _only_courtesy(step):
        text = f"{by} said nothing but a courtesy."
        return Guarded(guard="courtesy", limit=0, value=1, text=text, evidence=evidence)
    return None


def _only_courtesy(step: Step[Standing]) -> bool:
    said = step.state.said
    texts = [text for text in (said.message, said.next_action, said.result) if text.strip()]
    return bool(texts) and all(progress.courteous(text, step.run.guards) for text in texts)


def _too_many(state: Standing) -> Guarded:
    most = state.most_interactions
    text = f"{most} interactions were made, which is all that are allowed."
    return Guarded(guard="interactions", limit=most, value=most + 1, text=text)


def _move(step: Step[Standing], action: str, by: str, to: str = "", reason: str = "", written: bool = False) -> None:
    state = step.state
    message = reason or state.said.message
    moved = Moved(
        action=action,
        by=by,
        before=state.paper.status,
        after=RULES[action].after,
        at=timestamp(step.at, state.offset),
        to=to,
        words=action_words(state.policy.language, action, to, message),
        counts=RULES[action].counts,
        written=written,
    )
    if action in ("pass", "complete"):
        moved = replace(moved, agent=by, deed=_deed(state, moved))
    _call_back(step, f"the document was changed: {action}")
    step.record(moved)
    _publish(step)


def _deed(state: Standing, moved: Moved) -> str:
    """All that a handling may change, as it stands after it. History and times are not in it."""
    paper = after_move(state, moved)
    files = turns.deeds(state.turn) if state.turn else []
    return progress.mark(paper.task, paper.next_action, paper.status, paper.section(RESULT), paper.owner, files)


def _reopen(step: Step[Standing], by: str) -> None:
    """Somebody has looked at a document that a guard terminated, and wants it to go on."""
    state = step.state
    if state.paper.status != TERMINATED:
        return _publish(step)  # a person was asked before anything was terminated
    moved = Moved(
        action="reopen",
        by=by or ENGINE,
        before=TERMINATED,
        after=state.before_end,
        at=timestamp(step.at, state.offset),
        words=action_words(state.policy.language, "reopen", "", ""),
    )
    step.record(moved)
    return _publish(step)


def _call_back(step: Step[Standing], because: str) -> None:
    """Whoever works on the document, works on something that is no longer so."""
    for number, opened in list(step.run.open.items()):
        if asked_of(opened.command) == "agent":
            step.withdraw(number, because)


# The file


def _publish(step: Step[Standing]) -> None:
    for number, opened in list(step.run.open.items()):
        if asked_of(opened.command) == "publish":
            step.withdraw(number, "a newer view is written instead")
    step.owe(CallTool(tool=PUBLISH))


def _edit(step: Step[Standing]) -> None:
    """A text was found in the file that is not ours."""
    state = step.state
    if state.found == write(state.paper):
        return _publish(step)  # it is what we would write; let that be noted
    views = [paper for _, paper in state.views if paper is not state.paper]
    try:
        edit = read_edit(state.found, [*views, state.paper])
    except Refusal as refusal:
        step.record(Refused(order="edit", by="", reason=refusal.reason, line=refusal.line))
        return _publish(step)
    if state.count + sum(RULES[move.action].counts for move in edit.moves) > state.most_interactions:
        reason = f"{state.most_interactions} interactions are all that are allowed; this would be one more"
        step.record(Refused(order="edit", by="", reason=reason, line=1))  # so the text is kept beside the file
        step.stop(_too_many(state))
    step.record(Edited(at=timestamp(step.at, state.offset), text=edit.text))
    for move in edit.moves:
        _move(step, move.action, move.by, move.to, written=move.written)
    _publish(step)
    return _review(step)


def _settled(step: Step[Standing], news: Settled) -> None:
    if isinstance(news.answer, PersonAnswered):
        return _after_question(step, news.answer)
    if asked_of(news.command) == "publish":
        return _after_publishing(step, news)
    finished = turns.decide(step, step.state.turn, news, TOOLS)
    if finished:
        _after_turn(step, finished)
    return None


def _after_publishing(step: Step[Standing], news: Settled) -> None:
    answer, paper = news.answer, step.state.paper
    if isinstance(answer, Failed):
        question = f"The document's file could not be written: {answer.reason} Put that right, then answer."
        step.owe(AskPerson(question=question, choices=(AGAIN, GIVE_UP)))
        return None
    assert isinstance(answer, ToolReturned)
    if "found" in answer.value:
        return _edit(step)
    if paper.status not in FINAL:
        return None
    if paper.status == TERMINATED and step.run.verdict:
        return step.end_by_guard(step.run.verdict)
    last = paper.history[-1] if paper.history else None
    because = f"{last.agent} {last.action}" if last else "it came so"
    return step.end("completed" if paper.status != TERMINATED else "stopped", because)


# Messages


def _hear(step: Step[Standing], by: str, text: str) -> None:
    """Somebody wrote about the document without changing it."""
    paper = step.state.paper
    if paper.status in FINAL:
        return step.record(Heeded(by=by, because=f"it is {paper.status} already"))
    verdict = _verdict_on(step, by)
    if progress.courteous(text, step.run.guards):
        if paper.status == PENDING and by == paper.owner:
            because = f"{by} acknowledged the assignment, which is no answer to it"
            return step.record(Heeded(by=by, because=because))
        if verdict is None:
            return step.record(Heeded(by=by, because="it is nothing but a courtesy"))
    if verdict:
        step.stop(verdict)
    return step.record(Heeded(by=by, because="it is kept; only a transition changes the document"))


# Agents of ours


def _work(step: Step[Standing], agent: str) -> None:
    """Let an agent work on the document it owns."""
    state = step.state
    paper = state.paper
    if agent != paper.owner or paper.status in FINAL:
        reason = f"{agent!r} cannot work on it: it is {paper.status} and belongs to {paper.owner!r}"
        return step.record(Refused(order="work", by=agent, reason=reason))
    if any(asked_of(opened.command) in ("agent", "person") for opened in step.run.open.values()):
        return None  # somebody is at it, or a person is asked
    if paper.status == PENDING:
        if state.count >= state.most_interactions:
            step.stop(_too_many(state))
        _move(step, "accept", agent)
    return _ask(step, agent)


def _ask(step: Step[Standing], agent: str) -> None:
    brief = step.state.briefs.get(agent)
    step.ask(AskAgent(agent=agent, kind="coder", model=brief.model if brief else "", context=(1,)))


def _after_turn(step: Step[Standing], finished: Finished) -> None:
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
            verdict = _verdict_on(step, agent)
            assert verdict is not None
            step.stop(verdict)
        if finished.corrections < 1:
            return turns.correct(step, turn, finished, f"Your reply changes nothing: {problem}. Answer again.")
        return _failed(step, agent, f"{agent} broke the protocol: {problem}")
    if step.state.edited_since_asked:
        return turns.correct(step, turn, finished, CHANGED)
    for reason in finished.undelivered:
        step.warn(f"a file was not delivered: {reason}")
    action = decisions["action"]
    refusal = _order(step, action, agent, decisions.get("to", "") if action == "pass" else "")
    if refusal:
        _failed(step, agent, refusal)
    return None


def _failed(step: Step[Standing], agent: str, reason: str) -> None:
    """A failure is no interaction; but it is not tried for ever either."""
    step.record(Stumbled(by=agent, reason=reason))
    if step.state.failures < step.state.policy.attempts:
        return _ask(step, agent)
    question = f"{agent} has failed {step.state.failures} times at {step.state.paper.id!r}: {reason}. What now?"
    step.owe(AskPerson(question=question, choices=(AGAIN, GIVE_UP)))
    return None


def _after_question(step: Step[Standing], answer: PersonAnswered) -> None:
    if answer.choice == GIVE_UP and step.state.paper.status not in FINAL:
        return _move(step, "terminate", answer.by or ENGINE, reason=answer.text)
    if step.state.turn is not None and step.state.turn.ask.agent == step.state.paper.owner:
        return _ask(step, step.state.paper.owner)
    return _publish(step)
