"""What a person may do with a document now, as actions that any face can offer.

An action becomes the same fact that the commands for documents record, so there is one way to move a document on.
"""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from ripstop.kernel.effects import Field
from ripstop.kernel.errors import UsageError
from ripstop.kernel.events import Fact, ResumeRequested
from ripstop.kernel.questions import read_field
from ripstop.kernel.resuming import limit_of, raisable_by
from ripstop.kernel.run import Run
from ripstop.kernel.style import Action

from .events import TransitionRequested
from .rules import RULES, why_not
from .state import HandoffState

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
    paper = run.state.paper
    return tuple(
        replace(TRANSITIONS[name], by=paper.owner if rule.by_owner else "")
        for name, rule in RULES.items()
        if paper.status in rule.before
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
    paper = run.state.paper
    reason = why_not(paper, name, by or paper.owner, given.get("to", ""))
    if reason:
        raise UsageError(f"{paper.id}: {reason}.")
    return TransitionRequested(action=name, by=by, **given)


def _resumed(run: Run[HandoffState], fields: Mapping[str, Any], by: str) -> Fact:
    if run.verdict is None or not run.ended:
        raise UsageError(f"{run.state.paper.id} was not terminated by a guard, so it cannot be reopened.")
    given = _checked(_reopen(run), fields)
    return ResumeRequested(raises={raisable_by(run.verdict): given[RAISE]} if RAISE in given else {}, by=by)


def _checked(action: Action, fields: Mapping[str, Any]) -> dict[str, Any]:
    for name in fields:
        if name not in action.fields:
            there = f"there are: {', '.join(action.fields)}" if action.fields else "it has none"
            raise UsageError(f"{action.name!r} has no field {name!r}; {there}.")
    return {name: read_field(name, action.fields[name], value) for name, value in fields.items()}
