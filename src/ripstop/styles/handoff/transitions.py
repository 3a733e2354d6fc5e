"""Making transitions: only legal ones, and none that a guard forbids.

Four guards terminate a document: more interactions than allowed, the same owner (or a circle of owners) without
progress, a message of nothing but courtesy, the end marker. After every change the file is written again.
"""

from unicodedata import normalize

from msgspec.structs import replace

from ripstop.kernel import progress
from ripstop.kernel.counting import count
from ripstop.kernel.effects import CallTool
from ripstop.kernel.events import GuardTripped
from ripstop.kernel.step import Step

from .. import turn as turns
from ..courtesy import courteous
from .events import TransitionMade, TransitionRefused
from .rules import FINAL, RULES, TERMINATED, why_not
from .state import PUBLISH, RESULT, HandoffState, asked_of, document_after, last_words
from .texts import ENGINE, action_words, guard_words, timestamp


def request(step: Step[HandoffState], action: str, by: str, to: str, forgiven: bool = False) -> str:
    """Make a transition on request; returns why it was refused, if it was.

    `forgiven`: a person has seen what a guard says about it, and wants it all the same.
    """
    state = step.state
    reason = why_not(state.paper, action, by, to)
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
    make(step, action, by, to)
    review(step)
    return ""


def review(step: Step[HandoffState]) -> None:
    """Stop the document if the last handlings changed nothing."""
    verdict = progress.review(step.run.trail, step.run.guards)
    if verdict and step.state.paper.status not in FINAL:
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
) -> None:
    """Make a transition, and write the file again. `silent`: what was said last was not said with it."""
    state = step.state
    message = reason or ("" if silent else state.said.message)
    made = TransitionMade(
        action=action,
        by=by,
        before=state.paper.status,
        after=RULES[action].after,
        at=timestamp(step.at, state.offset),
        to=to,
        words=action_words(state.language, action, to, message),
        counts=RULES[action].counts,
        written=written,
        result=result,
        silent=silent,
    )
    if action in ("pass", "complete"):
        made = replace(made, agent=by, digest=_digest(state, made))
    _call_back(step, f"the document was changed: {action}")
    step.record(made)
    publish(step)


def _digest(state: HandoffState, made: TransitionMade) -> str:
    """The turn digest: all that a handling can change, after it. History and times are left out."""
    paper = document_after(state, made)
    files = turns.deeds(state.turn) if state.turn else []
    texts = [_compared(text) for text in (paper.task, paper.next_action, paper.section(RESULT))]
    return progress.digest(texts, paper.status, paper.owner, files)


def _compared(text: str) -> str:
    """A text without what changes nothing: case, spaces, full-width forms."""
    return "".join(normalize("NFKC", text).casefold().split())


def reopen(step: Step[HandoffState]) -> None:
    """Reopen a document that a guard terminated, because a person wants it to continue."""
    state = step.state
    if state.paper.status != TERMINATED:  # a person was asked before anything was terminated
        publish(step)
        if state.requested:
            wanted = state.requested
            request(step, wanted.action, wanted.by or state.paper.owner, wanted.to, forgiven=True)
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
