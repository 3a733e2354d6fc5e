"""Making transitions: only legal ones, and none that a guard forbids.

Four guards terminate a document: more interactions than allowed, the same owner (or a circle of owners) without
progress, a message of nothing but courtesy, the end marker. After every change the file is written again.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Any
from unicodedata import normalize

from msgspec import Struct
from msgspec.structs import replace

from ripstop.kernel import progress
from ripstop.kernel.effects import CallTool, Field
from ripstop.kernel.errors import Unworkable, UsageError
from ripstop.kernel.events import Fact, GuardTripped, ResumeRequested, Started
from ripstop.kernel.questions import name_problem, read_field
from ripstop.kernel.resuming import limit_of, raisable_by
from ripstop.kernel.run import Run
from ripstop.kernel.step import Step
from ripstop.kernel.style import Action
from ripstop.text.courtesy import courteous
from ripstop.text.plurals import count

from .. import turn as turns
from .calls import PUBLISH
from .definition import Policy
from .document import read
from .events import DocumentDrafted, TransitionMade, TransitionRefused, TransitionRequested
from .state import (
    FINAL,
    RESULT,
    RULES,
    TERMINATED,
    HandoffState,
    WorkflowStatement,
    asked_of,
    document_after,
    draft,
    last_words,
    sha,
    why_not,
)
from .texts import ENGINE, UNNAMED, action_words, guard_words, language_of, timestamp

# What a person may do with a document now, as actions that any face can offer.
#
# An action becomes the same fact that the commands for documents record, so there is one way to move a document on.


REOPEN, RAISE = "reopen", "raise"
_TO = Field(label="To", required=True)
_MESSAGE = Field(label="Message")
_RESULT = Field(label="Result so far")

TRANSITIONS = {
    "assign": Action("assign", "Assign", {"to": _TO, "message": _MESSAGE}),
    "accept": Action("accept", "Accept", {"message": _MESSAGE}),
    "pass": Action(
        "pass",
        "Hand over",
        {"to": _TO, "message": _MESSAGE, "next_action": Field(label="Next action"), "result": _RESULT},
    ),
    "complete": Action(
        "complete", "Complete", {"message": _MESSAGE, "result": Field(label="Result")}, "Complete it? That is final."
    ),
    "terminate": Action(
        "terminate", "Terminate", {"message": Field(label="Reason")}, "Terminate it before it is completed?"
    ),
}
"""One for each rule, in the order of the rules; who may do it depends on the document."""


def actions(run: Run[HandoffState]) -> tuple[Action, ...]:
    if run.ended:
        return (_reopen(run),) if run.verdict else ()
    document = run.state.document
    return tuple(
        replace(TRANSITIONS[name], by=document.owner if rule.by_owner else "")
        for name, rule in RULES.items()
        if document.status in rule.before
    )


def _reopen(run: Run[HandoffState]) -> Action:
    assert run.verdict is not None
    name = raisable_by(run.verdict)
    by = Field(label=f"Raise {name} by", type="number", required=bool(limit_of(run.verdict)))
    return Action(REOPEN, "Reopen", {RAISE: by} if name else {})


def fact_of(run: Run[HandoffState], name: str, fields: Mapping[str, Any], by: str) -> Fact:
    """The fact that an action becomes. Raises `UsageError`, also for what would be refused as the document is now."""
    if name == REOPEN:
        return _resumed(run, fields, by)
    if name not in TRANSITIONS:
        raise UsageError(f"There is no action {name!r} for a document; there are: {', '.join((*RULES, REOPEN))}.")
    given = _checked(TRANSITIONS[name], fields)
    document = run.state.document
    reason = why_not(document, name, by, given.get("to", ""))
    if reason:
        raise UsageError(f"{document.id}: {reason}.")
    # a request without a name is recorded as the owner's: that is what it means in journals
    return TransitionRequested(action=name, by=by or UNNAMED[run.state.language], **given)


def _resumed(run: Run[HandoffState], fields: Mapping[str, Any], by: str) -> Fact:
    if run.verdict is None or not run.ended:
        raise UsageError(f"{run.state.document.id} was not terminated by a guard, so it cannot be reopened.")
    given = _checked(_reopen(run), fields)
    return ResumeRequested(raises={raisable_by(run.verdict): given[RAISE]} if RAISE in given else {}, by=by)


def _checked(action: Action, fields: Mapping[str, Any]) -> dict[str, Any]:
    for name in fields:
        if name not in action.fields:
            there = f"there are: {', '.join(action.fields)}" if action.fields else "it has none"
            raise UsageError(f"{action.name!r} has no field {name!r}; {there}.")
    return {name: read_field(name, action.fields[name], value) for name, value in fields.items()}


# How a run begins: with a whole document, or with a task.
#
# From a task a document is drafted in the run's first step, because its id, its file and its time follow from the run.
# Every argument has a default, so any other workflow can start one with a task.


NO_TIME = "1970-01-01 00:00:00"
"""The time of a draft until its first step."""
MAX_TITLE, MAX_RUN_ID = 24, 80
"""Characters of a title, and of a run's id, in the id and the file name of a draft."""


class HandoffArguments(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """How a run is started. Its input is a task, or a whole document."""

    is_document: bool = False
    """The input is a whole document."""
    file: str = ""
    """The name of the document's file; empty: made from the run's id."""
    utc_offset: int = 0
    """Seconds east of Greenwich, for the times in the document."""
    reply_to: str = ""
    """Who is notified when the document is finished; empty: nobody."""
    title: str = ""
    """What the document's id begins with; empty: the first words of the task."""
    owner: str = ""
    """The first owner; empty: the first role of the definition."""
    creator: str = ""
    """Who asks for it; empty: the run that starts this one."""


def begin(policy: Policy, started: Started, given: HandoffArguments) -> HandoffState:
    if given.is_document:
        document, over = read(started.input).gathered(), sha(started.input)
        language = policy.language or language_of(document.task, document.next_action)
    else:
        creator = given.creator.strip() or (started.parent[0] if started.parent else ENGINE)
        owner = given.owner.strip() or next((role.name for role in policy.roles), ENGINE)
        document, over = draft("draft", creator, owner, started.input, NO_TIME), ""
        language = policy.language or language_of(started.input)
    return HandoffState(policy, document, given.file, language, given.utc_offset, over=over, reply_to=given.reply_to)


def draft_document(step: Step[HandoffState], started: Started, given: HandoffArguments) -> None:
    """Make a document of the run's task. Raises `Unworkable` if nobody could work on it."""
    if not started.input.strip():
        raise Unworkable("A document needs a task, and the run was started without input.")
    if not given.owner.strip() and not step.state.definition.roles:
        raise Unworkable("The document has no owner. Start it with the argument `owner`, or give its folder roles.")
    for name in (given.owner.strip(), given.creator.strip()):
        if problem := name_problem(name):
            raise Unworkable(f"{problem}.")
    title = _in_a_name(given.title.strip() or started.input.strip().partition("\n")[0])[:MAX_TITLE].strip("-.")
    run_id = _in_a_name(step.run.id)
    if run_id != step.run.id or len(run_id) > MAX_RUN_ID:  # what is left out must not make two names one
        run_id = f"{run_id[:MAX_RUN_ID]}-{hashlib.sha256(step.run.id.encode()).hexdigest()[:8]}"
    name = f"{title}_{run_id}" if title else run_id
    at = timestamp(step.at, given.utc_offset)
    step.record(DocumentDrafted(id=name, file=given.file or f"workflow_{name}.md", at=at))


def _in_a_name(text: str) -> str:
    """A text as a part of an id and of a file name, in any language."""
    return re.sub(r"[^\w.-]+", "-", text)


def request(step: Step[HandoffState], action: str, by: str, to: str, forgiven: bool = False, person: str = "") -> str:
    """Make a transition on request; returns why it was refused, if it was.

    Args:
        forgiven: A person has seen what a guard says about it, and wants it all the same.
        person: Who requests it in the name of `by`.
    """
    state = step.state
    reason = why_not(state.document, action, by, to)
    if not reason and action == "pass" and only_courtesy(step) and step.run.guards.courtesy == "ignore":
        reason = "it is nothing but a courtesy, and needs nobody's attention"
    if reason:
        step.record(TransitionRefused(action=action, by=by, reason=reason))
        return reason
    if RULES[action].counts and state.count >= state.most_interactions:
        step.stop(too_many(state))
    verdict = verdict_on(step, by) if action in ("pass", "assign") and not forgiven else None
    if verdict:
        step.stop(verdict)
    make(step, action, by, to, person=person)
    review(step)
    return ""


def review(step: Step[HandoffState]) -> None:
    """Stop the document if the last handlings changed nothing."""
    verdict = progress.review(step.run.trail, step.run.guards)
    if verdict and step.state.document.status not in FINAL:
        step.stop(replace(verdict, progress=0))  # a document has one file, so there is no going back by a fork


def verdict_on(step: Step[HandoffState], by: str) -> GuardTripped | None:
    """Whether a message ends the document: no, by the end marker, or by being nothing but courtesy."""
    said, guards = step.state.said, step.run.guards
    evidence = (said.number or step.number,)
    if any(progress.has_end_marker(text, guards) for text in (said.message, said.next_action, said.result, said.text)):
        text = guard_words(step.state.language, "end_marker", by=by, marker=guards.end_marker)
        return GuardTripped(guard="end_marker", limit=0, value=1, text=text, evidence=evidence)
    if guards.courtesy == "terminate" and only_courtesy(step):
        text = guard_words(step.state.language, "courtesy", by=by)
        return GuardTripped(guard="courtesy", limit=0, value=1, text=text, evidence=evidence)
    return None


def only_courtesy(step: Step[HandoffState]) -> bool:
    said = step.state.said
    if isinstance(said, WorkflowStatement):  # what a workflow comes to is a result, however short
        return False
    texts = [text for text in (said.message, said.next_action, said.result) if text.strip()]
    return bool(texts) and all(courteous(text, step.run.guards) for text in texts)


def too_many(state: HandoffState) -> GuardTripped:
    most = state.most_interactions
    text = guard_words(state.language, "interactions", limit=most, interactions=count(most, "interaction"))
    return GuardTripped(guard="interactions", limit=most, value=most + 1, text=text)


def terminate(step: Step[HandoffState], verdict: GuardTripped) -> None:
    """Have a guard's verdict. What was said with the end marker is kept: real agents end every answer with it."""
    state = step.state
    result = last_words(state, step.run.guards.end_marker) if verdict.guard == "end_marker" else ""
    make(step, "terminate", ENGINE, reason=_reason(step, verdict), result=result)


def _reason(step: Step[HandoffState], verdict: GuardTripped) -> str:
    """A verdict in the language of the document. Those of the kernel are in English."""
    language = step.state.language
    if language == "en" or verdict.guard in ("end_marker", "courtesy", "interactions"):
        return verdict.text
    agents = [turn.agent for turn in step.run.trail if turn.number in verdict.evidence]
    names = " → ".join(dict.fromkeys(agents))
    return guard_words(language, verdict.guard, names=names, value=f"{verdict.value:g}", limit=f"{verdict.limit:g}")


def make(
    step: Step[HandoffState],
    action: str,
    by: str,
    to: str = "",
    reason: str = "",
    written: bool = False,
    result: str = "",
    silent: bool = False,
    person: str = "",
) -> None:
    """Make a transition, and write the file again.

    Args:
        silent: What was said last was not said with it.
        person: Who has made it in the name of `by`; the history says so.
    """
    state = step.state
    message = reason or ("" if silent else state.said.message)
    made = TransitionMade(
        action=action,
        by=by,
        before=state.document.status,
        after=RULES[action].after,
        at=timestamp(step.at, state.offset),
        to=to,
        words=action_words(state.language, action, to, message, person),
        counts=RULES[action].counts,
        written=written,
        result=result,
        silent=silent,
    )
    if action in ("pass", "complete"):
        made = replace(made, agent=by, digest=_digest(state, made))
    _call_back(step, f"{person or by} {action_words(state.language, action, to, '')}")
    step.record(made)
    publish(step)


def _digest(state: HandoffState, made: TransitionMade) -> str:
    """The turn digest: all that a handling can change, after it. History and times are left out."""
    document = document_after(state, made)
    files = turns.effects_of(state.turn) if state.turn else []
    texts = [_compared(text) for text in (document.task, document.next_action, document.section(RESULT))]
    return progress.digest(texts, document.status, document.owner, files)


def _compared(text: str) -> str:
    """A text without what changes nothing: case, spaces, full-width forms."""
    return "".join(normalize("NFKC", text).casefold().split())


def reopen(step: Step[HandoffState]) -> None:
    """Reopen a document that a guard terminated, because a person wants it to continue."""
    state = step.state
    if state.document.status != TERMINATED:  # a person was asked before anything was terminated
        publish(step)
        if state.requested:
            wanted = state.requested
            request(step, wanted.action, wanted.by or state.document.owner, wanted.to, forgiven=True)
        return None
    made = TransitionMade(
        action="reopen",
        by=state.resumed_by or ENGINE,
        before=TERMINATED,
        after=state.before_end,
        at=timestamp(step.at, state.offset),
        words=action_words(state.language, "reopen", "", ""),
    )
    step.record(made)
    return publish(step)


def _call_back(step: Step[HandoffState], because: str) -> None:
    """Withdraw what agents and people were asked about the document: they have an outdated version of it."""
    for number, opened in list(step.run.open.items()):
        if asked_of(opened.command) in ("agent", "person"):
            step.withdraw(number, because)


def publish(step: Step[HandoffState]) -> None:
    for number, opened in list(step.run.open.items()):
        if asked_of(opened.command) == "publish":
            step.withdraw(number, "a newer view is written instead")
        if asked_of(opened.command) == "reply":
            step.withdraw(number, "it is sent when the file is written")
    step.ask_unguarded(CallTool(tool=PUBLISH))
