"""What faces show of a document's run: its facts, its history, its text, and why something was decided."""

from typing import Any

from ripstop.kernel.events import Event
from ripstop.kernel.parts import Facts, Ledger, LedgerEntry, Paper, Part
from ripstop.kernel.run import Run, end_line
from ripstop.kernel.style import Explanation, Picture, Reason
from ripstop.text.visible_text import count

from .definition import WORKFLOWS
from .document import write
from .events import (
    AgentFailed,
    DocumentDrafted,
    EditAccepted,
    EditRefused,
    MessageNoted,
    TransitionMade,
    TransitionRefused,
)
from .state import FINAL, RESULT, RULES, HandoffState


def picture(run: Run[HandoffState]) -> Picture:
    paper = run.state.paper
    return Picture(
        where=paper.status,
        whose_turn="" if paper.status in FINAL else paper.owner,
        progress=_interactions(run.state),
        document=write(paper),
    )


def gist(run: Run[HandoffState]) -> str:
    if reason := end_line(run):
        return reason
    paper = run.state.paper
    return paper.status if paper.status in FINAL else f"{paper.status}, {paper.owner}"


def parts(run: Run[HandoffState]) -> tuple[Part, ...]:
    state, paper = run.state, run.state.paper
    facts = (
        ("Status", paper.status),
        ("Owner", paper.owner),
        ("Previous owner", paper.previous),
        ("Interactions", _interactions(state)),
        ("File", state.file),
    )
    entries = (
        LedgerEntry(entry.number, entry.made.by, entry.made.words, f"{entry.made.before}→{entry.made.after}")
        for entry in state.ledger
    )
    return (
        Facts(facts, title=paper.id),
        Ledger(tuple(entries), title="Transitions"),
        Paper(write(paper), title=paper.id),
    )


def _interactions(state: HandoffState) -> str:
    return f"{state.count} of at most {count(state.most_interactions, 'interaction')}"


def result_of(state: HandoffState) -> dict[str, Any]:
    """The result for those that wait for the document."""
    paper = state.paper
    return {
        "status": paper.status,
        "owner": paper.owner,
        "title": paper.id,
        "path": f"{WORKFLOWS}/{state.file}",
        "result": paper.section(RESULT),
        "next_action": paper.next_action,
        "interactions": state.count,
    }


def explain(before: HandoffState, event: Event) -> Explanation:
    return Explanation(_reasons(before, event))


def _reasons(before: HandoffState, event: Event) -> tuple[Reason, ...]:
    stayed = Reason(f"the document stayed {before.paper.status}")
    match event:
        case TransitionRefused(action=action, by=by, reason=reason):
            return (Reason(f"{by} may {action} it", holds=False), Reason(f"refused: {reason}"), stayed)
        case EditRefused(reason=reason, line=line):
            return (Reason(f"refused: {reason}", source=f"{before.file}:{line}"), stayed)
        case TransitionMade(action=action, before=old, after=new, by=by):
            rule = RULES.get(action)
            whose = "the owner" if rule and rule.by_owner else "anybody"
            return (
                Reason(f"{old}→{new} ({action}) is legal", holds=True, taken=True),
                Reason(f"{whose} may do that, so {by} may", holds=True),
            )
        case EditAccepted(notes=notes):
            return (Reason("the edit is legal, and was merged", taken=True), *(Reason(note) for note in notes))
        case MessageNoted(because=because):
            return (Reason(because),)
        case AgentFailed(by=by, reason=reason):
            failed = f"{by} failed: {reason}"
            return (Reason(failed), Reason(f"{before.failures + 1} of {before.definition.attempts} attempts"))
        case DocumentDrafted(id=id, file=file):
            return (Reason(f"the run began with a task, so the document {id!r} was drafted for {file!r}"),)
    return ()
