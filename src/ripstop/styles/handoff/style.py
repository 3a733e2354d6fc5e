"""The hand-off style: a document goes from owner to owner until it is completed or terminated.

- Only legal transitions change the document (`state.RULES`). Anything else is refused and recorded, with what would
  be legal; that an agent says "completed" changes nothing.
- Four guards terminate it: more interactions than allowed, the same owner twice without progress (or a cycle of
  owners), a message of nothing but courtesy, the end marker.
- The file is a view that is written after every change (`publish_document`), and a door: a text found in it that
  the style did not write is read back as an edit (`edits.py`).
- A role of the definition works as soon as it owns the document; any other agent is asked to (`WorkRequested`).
- The run ends when the last view has been written and the sender has been notified. What came out of it is
  the run's result.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from ripstop.kernel.effects import (
    AskAgent,
    AskPerson,
    CallTool,
    Failed,
    Guards,
    Limits,
    PersonAnswered,
    StartRun,
    ToolReturned,
)
from ripstop.kernel.events import Answered, Event, Fact, GuardTripped, Heard, Resumed, Started
from ripstop.kernel.parts import Part
from ripstop.kernel.prompt import Prompt
from ripstop.kernel.resuming import outcome_of
from ripstop.kernel.run import Run
from ripstop.kernel.step import Step
from ripstop.kernel.style import Action, AgentUse, Child, Explanation, News, PersonHooks, Picture, Settled, Uses
from ripstop.text.courtesy import courteous
from ripstop.text.plurals import count

from .. import turn as turns
from ..reply_operations import EDIT, LOOKING, WRITE
from ..turn import TurnStyle, TurnView
from . import agents, owners, transitions, view
from .agents import AGAIN, TERMINATE, prompt_for
from .calls import SEND, PublishedDocument
from .definition import END_MARKER, Policy
from .document import HandoffDocument, oddities, write
from .edits import DocumentEdit, Refusal, read_edit
from .events import (
    EditAccepted,
    EditFound,
    EditRefused,
    FileMissing,
    FileRenamed,
    MessageNoted,
    PublishRequested,
    TransitionRequested,
    WorkRequested,
)
from .message import sending
from .state import (
    FAILED,
    FINAL,
    OWNED,
    PENDING,
    RULES,
    TERMINATED,
    UNWRITTEN,
    WRITES,
    HandoffState,
    asked_of,
    evolve,
    joined,
    publishing,
)
from .texts import ENGINE, UNNAMED, timestamp
from .transitions import HandoffArguments, begin, draft_document

TOOLS = (*LOOKING, WRITE, EDIT)
RETRY = "retry"
"""What a person says when the file can be written again."""
MAX_ODDITIES = 20
SECOND = 1_000_000
"""In microseconds."""


class HandoffView(TurnView[HandoffState]):
    def picture(self, run: Run[HandoffState]) -> Picture:
        return view.picture(run)

    def gist(self, run: Run[HandoffState]) -> str:
        return view.gist(run)

    def parts(self, run: Run[HandoffState]) -> tuple[Part, ...]:
        return view.parts(run)

    def explain(self, before: HandoffState, event: Event) -> Explanation:
        return view.explain(before, event)


class HandoffPeople(PersonHooks[HandoffState]):
    def actions(self, run: Run[HandoffState]) -> tuple[Action, ...]:
        return transitions.actions(run)

    def act(self, run: Run[HandoffState], name: str, fields: Mapping[str, Any], by: str) -> Fact:
        return transitions.fact_of(run, name, fields, by)


class HandoffStyle(TurnStyle[HandoffState]):
    name = "handoff"
    view = HandoffView()
    people = HandoffPeople()
    default_limits = Limits(calls=200, runs=500)
    """Without a limit of time: a document waits for people most of its life."""
    unforkable = "A document has one file, so its run cannot be forked. Make a new document instead."
    default_guards = Guards(patience=2, end_marker=END_MARKER)
    arguments_type = HandoffArguments

    # Folding

    def begin(self, definition: Policy, started: Started) -> HandoffState:
        return begin(definition, started, self.start_arguments(started))

    def evolve(self, state: HandoffState, number: int, event: Event) -> HandoffState:
        return evolve(state, number, event)

    def joined(self, state: HandoffState, number: int, event: Answered, result: Any) -> HandoffState:
        return joined(state, number, event, result)

    # Deciding

    def decide(self, step: Step[HandoffState], news: News) -> None:
        match news:
            case Started():
                _begin(step, news, self.start_arguments(news))
            case Heard(by=by, text=text):
                _hear(step, by, text)
            case EditFound():
                _edit(step)
            case WorkRequested(agent=agent):
                agents.work(step, agent)
            case FileRenamed() | PublishRequested():
                transitions.publish(step)
            case FileMissing():
                step.warn("the file was gone; it is written again")
                transitions.publish(step)
            case Resumed():
                transitions.reopen(step)
            case TransitionRequested(action=action, by=by, to=to):
                transitions.request(step, action, by or step.state.document.owner, to)
            case Settled():
                _settled(step, news)
        agents.work_by_role(step)
        owners.ask_owner(step)

    def cancelled(self, step: Step[HandoffState], because: str) -> None:
        if step.state.document.status in FINAL:  # its last view cannot be written, or is about to be
            step.end("stopped", because, view.result_of(step.state))
        else:
            transitions.make(step, "terminate", ENGINE, reason=because)

    def stopped(self, step: Step[HandoffState], verdict: GuardTripped) -> None:
        if step.state.document.status not in FINAL:  # else the run ends when its last view is written
            transitions.terminate(step, verdict)

    # What commands say

    def render(self, state: HandoffState, command: AskAgent) -> Prompt:
        return turns.render(state.turn, command, prompt_for(state, command.agent, TOOLS, command.longest_given))

    def arguments(self, state: HandoffState, command: CallTool) -> Struct | dict[str, Any]:
        if asked_of(command) == "publish":
            return publishing(state)
        return sending(state) if asked_of(command) == "reply" else super().arguments(state, command)

    def start_child(self, state: HandoffState, command: StartRun) -> Child:
        return agents.child_for(state)

    # What people do

    def listens(self, state: HandoffState) -> bool:
        return state.document.status not in FINAL

    # What it depends on

    def uses(self, definition: Policy) -> Uses:
        """The agents are the roles of its folder; people and programs that own documents are not known beforehand."""
        return Uses(
            agents=tuple(AgentUse(role.name, role.model, TOOLS) for role in definition.roles if not role.workflow),
            children={role.workflow: "" for role in definition.roles if role.workflow},
            folders=(definition.folder,) if definition.folder else (),
        )

    # Looking


# Beginning


def _begin(step: Step[HandoffState], started: Started, given: HandoffArguments) -> None:
    if not given.is_document:
        draft_document(step, started, given)
    for odd in oddities(step.state.document)[:MAX_ODDITIES]:
        step.warn(f"line {odd.line}: {odd.text}")
    if not agents.work_by_role(step):  # else it is written when the role has accepted it
        transitions.publish(step)


# Edits


def _edit(step: Step[HandoffState]) -> None:
    """A text was found that the style did not write: merge it, or refuse it and keep it."""
    state = step.state
    if state.repeated:
        return None  # another process has reported it first
    if state.found == write(state.document):
        return transitions.publish(step)  # it is what would be written; let that be noted
    views = [document for _, document in state.views if document is not state.document]
    stale = next((one for one in reversed(views) if write(one) == state.found), None)
    if stale:
        reason = f"this is how it was at {stale.updated}, with nothing new in it; change it as it is now"
        return _refuse_edit(step, 1, reason)
    try:
        edit = read_edit(state.found, [*views, state.document], state.sender, _base(state))
    except Refusal as refusal:
        return _refuse_edit(step, refusal.line, refusal.reason)
    if state.count + sum(RULES[move.action].counts for move in edit.moves) > state.most_interactions:
        reason = f"at most {count(state.most_interactions, 'interaction')} can be; this would be one more"
        step.record(_refused_edit(step, 1, reason))  # so the text is kept beside the file
        step.stop(transitions.too_many(state))
    step.record(EditAccepted(at=_time_of_edit(step, edit), text=edit.text, notes=edit.notes))
    for move in edit.moves:
        verdict = transitions.verdict_on(step, move.by) if move.action in ("pass", "assign") else None
        if verdict:
            step.stop(verdict)
        transitions.make(step, move.action, move.by, move.to, written=move.written)
    transitions.publish(step)
    return transitions.review(step)


def _time_of_edit(step: Step[HandoffState], edit: DocumentEdit) -> str:
    """When an edit was merged, as the document says it: a second in which it has no other view.

    A view is known by its history and by `Updated_At`. An edit without a transition leaves the history as it was, so
    two of them in one second would make two views of which nobody knows in which one the next edit was made: then
    either a second save is refused for nothing, or one editor undoes what another has just saved.
    """
    taken = {step.state.document.updated, *(one.updated for _, one in step.state.views)}
    at, offset = step.at, step.state.offset
    while not edit.moves and timestamp(at, offset) in taken:
        at += SECOND
    return timestamp(at, offset)


def _base(state: HandoffState) -> HandoffDocument | None:
    """The view that was in the file before the last edit; `None` if that is not known, or too long ago.

    A text in a message can have been made in any view.
    """
    number, _ = state.found_key
    return None if state.sender else dict(state.views).get(number)


def _refuse_edit(step: Step[HandoffState], line: int, reason: str) -> None:
    step.record(_refused_edit(step, line, reason))
    transitions.publish(step)


def _refused_edit(step: Step[HandoffState], line: int, reason: str) -> EditRefused:
    at = timestamp(step.at, step.state.offset)
    return EditRefused(by=step.state.sender, reason=reason, line=line, at=at)


# Answers


def _settled(step: Step[HandoffState], news: Settled) -> None:
    if isinstance(news.command, AskPerson):
        return _after_question(step, news.command, news.answer)
    if isinstance(news.command, StartRun):
        return agents.after_workflow(step, news.answer)
    if asked_of(news.command) == "publish":
        return _after_publishing(step, news)
    if asked_of(news.command) == "reply":
        if isinstance(news.answer, Failed):
            step.warn(f"{step.state.reply_to!r} could not be notified that it is finished: {news.answer.reason}")
        return _finish(step)
    finished = turns.decide(step, step.state.turn, news, TOOLS)
    if finished:
        agents.after_turn(step, finished)
    return None


def _after_publishing(step: Step[HandoffState], news: Settled) -> None:
    answer, state = news.answer, step.state
    if isinstance(answer, Failed):
        if not state.unwritten:
            question = f"The document's file could not be written: {answer.reason} Put that right, then answer."
            choices = {RETRY: "Write it again", TERMINATE: "Terminate the document"}
            title = state.document.id
            step.ask_unguarded(AskPerson(question=question, purpose=UNWRITTEN, title=title, choices=choices))
        return None
    assert isinstance(answer, ToolReturned)
    if state.unwritten:
        step.withdraw(state.unwritten, "the file could be written")
    published = msgspec.convert(answer.value, PublishedDocument)
    if published.kept:
        step.warn(f"the file was edited when a process was killed that wrote it; that edit is in {published.kept}")
    if published.found is not None:
        if step.state.repeated:
            return transitions.publish(step)
        _edit(step)
        for note in step.state.notes:
            step.warn(f"an edit was merged, {note}")
        refused = step.state.refused_edit
        if step.state.keep and refused:
            step.warn(f"an edit was refused, line {refused.line}: {refused.reason}; its text is kept next to the file")
        return None
    return _finish(step) if step.state.document.status in FINAL else None


def _after_question(step: Step[HandoffState], asked: AskPerson, answer: object) -> None:
    if not isinstance(answer, PersonAnswered):
        return transitions.publish(step)
    if asked.purpose == OWNED:
        return owners.after_owner(step, answer)
    if step.state.document.status not in FINAL:
        if answer.choice == TERMINATE:
            return transitions.make(step, "terminate", answer.by or UNNAMED[step.state.language], reason=answer.text)
        if asked.purpose == FAILED and answer.choice == AGAIN:
            return agents.ask(step, step.state.document.owner)
    return transitions.publish(step)


def _finish(step: Step[HandoffState]) -> None:
    """End the run, if nothing is left that it has to do."""
    state, document = step.state, step.state.document
    if state.reply_to and not state.reply:
        step.ask_unguarded(CallTool(tool=SEND))
        return None
    if any(asked_of(opened.command) in WRITES for opened in step.run.open.values()):
        return None
    verdict, result = step.run.verdict, view.result_of(state)
    if document.status == TERMINATED and verdict:
        return step.end(outcome_of(verdict), verdict.text, result)
    last = document.history[-1] if document.history else None
    because = f"{last.agent} {last.action}" if last else "it was so when it came"
    return step.end("completed" if document.status != TERMINATED else "stopped", because, result)


# Messages


def _hear(step: Step[HandoffState], by: str, text: str) -> None:
    """A message about the document, which changes it only if it ends it."""
    document = step.state.document
    if document.status in FINAL:
        return step.record(MessageNoted(by=by, because=f"it is {document.status} already"))
    verdict = transitions.verdict_on(step, by)
    if courteous(text, step.run.guards):
        if document.status == PENDING and by == document.owner:
            because = f"{by} acknowledged the assignment, which is not an answer to it"
            return step.record(MessageNoted(by=by, because=because))
        if verdict is None:
            return step.record(MessageNoted(by=by, because="it is nothing but a courtesy"))
    if verdict:
        step.stop(verdict)
    return step.record(MessageNoted(by=by, because="it is kept; only a transition changes the document"))
