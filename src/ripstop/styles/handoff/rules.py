"""Which transitions are legal, and who may make them.

| action    | from        | to          | by        | counts |
|-----------|-------------|-------------|-----------|--------|
| assign    | pending     | pending     | anybody   | no     |
| accept    | pending     | in_progress | the owner | yes    |
| pass      | in_progress | pending     | the owner | yes    |
| complete  | in_progress | completed   | the owner | yes    |
| terminate | not final   | terminated  | anybody   | no     |

`completed` and `terminated` are final.
"""

from msgspec import Struct

from ripstop.kernel.person_names import name_problem

from .document import LEGAL, HandoffDocument, Malformed, line_of

PENDING, IN_PROGRESS, COMPLETED, TERMINATED = "pending", "in_progress", "completed", "terminated"
FINAL = (COMPLETED, TERMINATED)


class Rule(Struct, frozen=True):
    before: tuple[str, ...]
    after: str
    by_owner: bool = False
    """Only the owner may."""
    names_owner: bool = False
    """It says who owns the document from now on."""
    counts: bool = False
    """It is an interaction."""


RULES = {
    "assign": Rule((PENDING,), PENDING, names_owner=True),
    "accept": Rule((PENDING,), IN_PROGRESS, by_owner=True, counts=True),
    "pass": Rule((IN_PROGRESS,), PENDING, by_owner=True, names_owner=True, counts=True),
    "complete": Rule((IN_PROGRESS,), COMPLETED, by_owner=True, counts=True),
    "terminate": Rule((PENDING, IN_PROGRESS), TERMINATED),
}


def why_not(paper: HandoffDocument, action: str, by: str, to: str = "") -> str:
    """Why an action is not legal now; empty if it is."""
    rule = RULES.get(action)
    if rule is None:
        return f"there is no action {action!r}; there are: {', '.join(RULES)}"
    if paper.status not in rule.before:
        return f"{paper.status}→{rule.after} ({action}) is not legal; from {paper.status} one may: {_may(paper.status)}"
    if rule.by_owner and by != paper.owner:
        return f"{by!r} may not {action} it, because it belongs to {paper.owner!r}"
    if rule.names_owner and not to.strip():
        return f"{action} needs the name of the new owner"
    # who owns it already was let in by an older version, perhaps, and must be able to pass it on
    for name in (to, by if by != paper.owner else ""):
        if problem := name_problem(name):
            return problem
    return ""


def check_names(paper: HandoffDocument) -> None:
    """Refuse a new document that names somebody who cannot have that name. Raises `Malformed`."""
    for header, name in (("Current_Owner", paper.owner), ("Previous_Owner", paper.previous)):
        if problem := name_problem(name):
            raise Malformed(line_of(paper, header), f"{problem}.")


def action_for(before: str, after: str, new_owner: bool) -> str:
    """The action that leads from one status to another; empty if none does."""
    for action, rule in RULES.items():
        if before in rule.before and after == rule.after and (action != "assign" or new_owner):
            return action
    return ""


def legal_from(status: str) -> str:
    """The changes that are legal from a status, as they are written."""
    return ", ".join(f"{status}→{after}" for after in LEGAL[status]) or f"none, because {status} is final"


def _may(status: str) -> str:
    return ", ".join(action for action, rule in RULES.items() if status in rule.before) or "nothing; it is final"
