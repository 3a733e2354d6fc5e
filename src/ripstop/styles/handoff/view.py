"""What faces show of a document's run: its facts, its history, its text, and why something was decided."""

from ripstop.kernel.events import Event
from ripstop.kernel.parts import Facts, Ledger, LedgerEntry, Paper, Part
from ripstop.kernel.result import Result
from ripstop.kernel.run import Run, end_line
from ripstop.kernel.style import Explanation, Picture, Reason
from ripstop.text.plurals import count

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
    document = run.state.document
    return Picture(
        where=document.status,
        whose_turn="" if document.status in FINAL else document.owner,
        progress=_interactions(run.state),
        document=write(document),
    )


def gist(run: Run[HandoffState]) -> str:
    if reason := end_line(run):
        return reason
    document = run.state.document
    return document.status if document.status in FINAL else f"{document.status}, {document.owner}"


def parts(run: Run[HandoffState]) -> tuple[Part, ...]:
    state, document = run.state, run.state.document
    facts = (
        ("Status", document.status),
        ("Owner", document.owner),
        ("Previous owner", document.previous),
        ("Interactions", _interactions(state)),
        ("File", state.file),
    )
    entries = (
        LedgerEntry(entry.number, entry.made.by, entry.made.words, f"{entry.made.before}→{entry.made.after}")
        for entry in state.ledger
    )
    return (
        Facts(facts, title=document.id),
        Ledger(tuple(entries), title="Transitions"),
        Paper(write(document), title=document.id),
    )


def _interactions(state: HandoffState) -> str:
    return f"{state.count} of at most {count(state.most_interactions, 'interaction')}"


def result_of(state: HandoffState) -> Result:
    """The result for those that wait for the document: its section `Result`, or what its last owner wrote."""
    document, path = state.document, f"{WORKFLOWS}/{state.file}"
    result = document.section(RESULT)
    last = document.history[-1] if document.history else None
    data = {
        "status": document.status,
        "owner": document.owner,
        "title": document.id,
        "path": path,
        "result": result,
        "next_action": document.next_action,
        "interactions": state.count,
    }
    folder = state.definition.folder
    return Result(result or (last.action if last else ""), data, (f"{folder}/{path}" if folder else path,))


def explain(before: HandoffState, event: Event) -> Explanation:
    return Explanation(_reasons(before, event))


def _reasons(before: HandoffState, event: Event) -> tuple[Reason, ...]:
    stayed = Reason(f"the document stayed {before.document.status}")
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
