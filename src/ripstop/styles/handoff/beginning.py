"""How a run begins: with a whole document, or with a task.

From a task a document is drafted in the run's first step, because its id, its file and its time follow from the run.
Every argument has a default, so any other workflow can start one with a task.
"""

import hashlib
import re

from msgspec import Struct

from ripstop.kernel.errors import Unworkable
from ripstop.kernel.events import Started
from ripstop.kernel.person_names import name_problem
from ripstop.kernel.step import Step

from .document import read
from .drafts import draft
from .events import DocumentDrafted
from .language import language_of
from .policy import Policy
from .state import HandoffState, sha
from .texts import ENGINE, timestamp

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
        paper, over = read(started.input).gathered(), sha(started.input)
        language = policy.language or language_of(paper.task, paper.next_action)
    else:
        creator = given.creator.strip() or (started.parent[0] if started.parent else ENGINE)
        owner = given.owner.strip() or next((role.name for role in policy.roles), ENGINE)
        paper, over = draft("draft", creator, owner, started.input, NO_TIME), ""
        language = policy.language or language_of(started.input)
    return HandoffState(policy, paper, given.file, language, given.utc_offset, over=over, reply_to=given.reply_to)


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
