"""How a document stands: the paper, who works on it, and what was found in its file."""

import hashlib
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ripstop.kernel.effects import AgentReplied, AskAgent, AskPerson, CallTool, ToolReturned
from ripstop.kernel.events import RESUME, Answered, Asked, Event, Heard, Ordered, Started, Withdrawn

from .. import reply
from .. import turn as turns
from ..turn import Turn
from .document import HandoffDocument, interactions, read, write
from .events import AgentFailed, Edited, Moved, TransitionRefused
from .policy import Policy
from .rules import IN_PROGRESS, RULES
from .texts import next_words

PUBLISH = "publish_document"
"""The tool that writes the document into its file."""
SEND = "send_reply"
"""The tool that tells whoever sent the document in that it is finished."""
RESULT = "Result"
"""The section that holds what came out of the task."""
_TOOLS = {PUBLISH: "publish", SEND: "reply"}
OWED = tuple(_TOOLS.values())
"""What kinds of things the engine itself owes the world."""
UNWRITTEN = ("retry", "terminate")
"""What a person may say when the file cannot be written."""
LONGEST_RESULT = 100_000
"""Characters of last words that are kept as a result: a document must fit into its file."""
VIEWS = 20
"""How many of the last views of the document are remembered, for edits that were made in an older one."""


class Statement(Struct, frozen=True, gc=False):
    """What somebody said with a transition."""

    message: str = ""
    next_action: str = ""
    result: str = ""
    number: int = 0
    """The record that it stands in."""
    text: str = ""
    """All of an agent's reply."""


class Assignment(Struct, frozen=True, gc=False):
    """How an agent of ours is told to work."""

    prompt: str = ""
    model: str = ""
    team: tuple[str, ...] = ()


class HandoffState(Struct, frozen=True, gc=False):
    policy: Policy
    paper: HandoffDocument
    file: str
    offset: int
    """Seconds east of Greenwich, for the times in the document."""
    said: Statement = Statement()
    """What came with the last fact."""
    turn: Turn | None = None
    briefs: dict[str, Assignment] = {}
    failures: int = 0
    """How often in a row an agent has failed at it."""
    views: tuple[tuple[int, HandoffDocument], ...] = ()
    """The papers that were published, by the number of the command."""
    found: str = ""
    """The text that was last found in the file and is not ours."""
    found_key: tuple[int, str] = (0, "")
    """The number of the view in which that edit was made, and the text's SHA-256."""
    sender: str = ""
    """Who sent that text in a message; empty if it was in the file."""
    judged: tuple[tuple[int, str], ...] = ()
    """The keys of the last edits that were taken over or refused. Two processes can find the same edit."""
    repeated: bool = False
    """The edit that was reported last has its verdict already."""
    notes: tuple[str, ...] = ()
    """What was put right in the last edit that was taken over."""
    over: str = ""
    """SHA-256 of the text in the file that may be replaced though it is not ours."""
    keep: str = ""
    """Set when that text was refused and is to be kept beside the file."""
    refusal: TransitionRefused | None = None
    """The last thing that was refused, and where that is recorded."""
    refused_at: int = 0
    edited_since_asked: bool = False
    """The document was edited while an agent worked on it."""
    before_end: str = IN_PROGRESS
    """The status before the document was terminated."""
    more_interactions: int = 0
    """By how much the limit was raised."""
    wish: tuple[str, str, str] | None = None
    """What was ordered last and not done yet: action, by whom, new owner."""
    unwritten: int = 0
    """The question to a person why the file cannot be written, if that is open."""
    reply_to: str = ""
    """Who is told when it is finished; empty for nobody."""
    reply: int = 0
    """The command that tells them."""

    @property
    def count(self) -> int:
        return interactions(self.paper)

    @property
    def most_interactions(self) -> int:
        return self.policy.max_interactions + self.more_interactions


def begin(policy: Policy, started: Started) -> HandoffState:
    settings = started.settings
    file, offset = settings.get("file", ""), settings.get("utc_offset", 0)
    reply_to = settings.get("reply_to", "")
    paper = read(started.input).gathered()
    return HandoffState(policy, paper, file, offset, over=sha(started.input), reply_to=reply_to)


def sha(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def evolve(state: HandoffState, number: int, event: Event) -> HandoffState:
    if isinstance(event, Moved):
        return _moved(state, event)
    if isinstance(event, TransitionRefused):
        state = replace(state, refusal=event, refused_at=number, wish=None)
        return _judged(replace(state, keep=_tag(number, event))) if event.order == "edit" else state
    if isinstance(event, Edited):
        return _edited(state, event)
    if isinstance(event, Ordered):
        return _ordered(state, event)
    if isinstance(event, Heard):
        return replace(state, said=Statement(message=event.text))
    if isinstance(event, AgentFailed):
        return replace(state, failures=state.failures + 1)
    if isinstance(event, Asked):
        return _asked(state, number, event)
    if isinstance(event, Answered):
        state = _answered(state, number, event)
    if isinstance(event, (Withdrawn, Answered)):
        state = _settled(state, event)
    turn = turns.evolve(state.turn, number, event)
    return state if turn is state.turn else replace(state, turn=turn)


def _tag(number: int, refused: TransitionRefused) -> str:
    """What the file is called that keeps a refused edit: when that was, and the line that was wrong."""
    if not refused.at:
        return str(number)
    return f"{refused.at.replace('-', '').replace(':', '').replace(' ', '-')}-line-{refused.line}"


def _judged(state: HandoffState) -> HandoffState:
    return replace(state, judged=(*state.judged[-VIEWS + 1 :], state.found_key))


def _asked(state: HandoffState, number: int, event: Asked) -> HandoffState:
    command = event.command
    if asked_of(command) == "publish":
        return replace(state, views=(*state.views[-VIEWS + 1 :], (number, state.paper)))
    if asked_of(command) == "reply":
        return replace(state, reply=number)
    if isinstance(command, AskPerson) and command.choices == UNWRITTEN:
        return replace(state, unwritten=number)
    turn = turns.evolve(state.turn, number, event)
    if isinstance(command, AskAgent):
        return replace(state, turn=turn, edited_since_asked=False)
    return state if turn is state.turn else replace(state, turn=turn)


def _settled(state: HandoffState, event: Withdrawn | Answered) -> HandoffState:
    """A command of ours is no longer open."""
    number = event.number if isinstance(event, Withdrawn) else event.to
    if number == state.unwritten:
        return replace(state, unwritten=0)
    if number == state.reply and isinstance(event, Withdrawn):
        return replace(state, reply=0)
    return state


def _edited(state: HandoffState, event: Edited) -> HandoffState:
    found, was = read(event.text or state.found).gathered(), state.paper
    paper = _as_kept(state, found).with_header("Updated_At", event.at)
    new = found.history[len(was.history) :]
    said = Statement(
        next_action=paper.next_action if paper.next_action != was.next_action else "",
        text="\n".join(bullet.action for bullet in new),
    )
    state = _judged(replace(state, refusal=None, keep="", notes=event.notes))
    return replace(state, paper=paper, said=said, edited_since_asked=state.turn is not None)


def _as_kept(state: HandoffState, edited: HandoffDocument) -> HandoffDocument:
    """An edited paper with the headers that only a transition changes as they were; the transition comes next."""
    was = state.paper
    kept = {"Status": was.status, "Current_Owner": was.owner}
    if edited.previous != was.previous:
        kept["Previous_Owner"] = was.previous
    if edited.created != was.created:
        kept["Created_At"] = was.created
    if edited.count is not None:
        kept["Interaction_Count"] = str(state.count)
    return edited.with_headers(kept)


def _answered(state: HandoffState, number: int, event: Answered) -> HandoffState:
    answer = event.answer
    if isinstance(answer, AgentReplied):
        return replace(state, said=replace(said_by_agent(answer.text), number=number, text=answer.text))
    if isinstance(answer, ToolReturned) and any(event.to == view for view, _ in state.views):
        if "found" not in answer.value:
            return replace(state, over="", keep="")
        # an edit that has its verdict may be replaced: it was taken over, or it is kept
        return replace(_found(state, answer.value), over=sha(answer.value["found"]))
    return state


def _ordered(state: HandoffState, order: Ordered) -> HandoffState:
    given = order.arguments
    if order.order == "edit":
        return _found(state, given)
    if order.order == "renamed":
        return replace(state, file=given["file"])
    if order.order == "work":
        state = replace(state, said=Statement())
        if "brief" not in given:
            return state
        brief = Assignment(given["brief"], given.get("model", ""), tuple(given.get("team", ())))
        return replace(state, briefs={**state.briefs, order.by: brief})
    if order.order == RESUME:
        more = int(given.get("raise", {}).get("interactions", 0))
        return replace(state, more_interactions=state.more_interactions + more)
    if order.order not in RULES:
        return state
    said = Statement(given.get("message", ""), given.get("next_action", ""), given.get("result", ""))
    wish = (order.order, order.by or state.paper.owner, given.get("to", ""))
    return replace(state, said=said, wish=wish)


def _found(state: HandoffState, given: dict[str, Any]) -> HandoffState:
    text = given.get("found", "")
    key = (given.get("base", 0), sha(text))
    if key in state.judged:
        return replace(state, repeated=True)
    sender = given.get("sender", "")
    return replace(
        state,
        found=text,
        found_key=key,
        sender=sender,
        repeated=False,
        over=sha(text),
        keep="",
        notes=(),
        said=Statement(),
    )


def said_by_agent(text: str) -> Statement:
    """What an agent's reply says with its transition; nothing if it cannot be read."""
    try:
        content, decisions = reply.decided(text)
    except reply.NoReply:
        return Statement()
    return Statement(content, _text(decisions.get("next_action")), _text(decisions.get("result")))


def _text(value: object) -> str:
    return "" if value is None else value if isinstance(value, str) else repr(value)


def _moved(state: HandoffState, event: Moved) -> HandoffState:
    paper = after_move(state, event)
    over = event.after == event.before == "pending"
    return replace(
        state,
        paper=paper,
        turn=state.turn if over else None,
        failures=0,
        refusal=None,
        wish=None,
        reply=0,
        before_end=event.before if event.after == "terminated" else state.before_end,
    )


def after_move(state: HandoffState, event: Moved) -> HandoffDocument:
    """The document after a transition. Only the lines that it is about change."""
    paper, said = state.paper, state.said
    if not event.written:
        paper = paper.with_bullet(event.at, event.by, event.words, event.before, event.after)
        upcoming = said.next_action or (said.message if event.action in ("pass", "assign") else "")
        upcoming = upcoming or next_words(state.policy.language, event.action, event.to)
        if upcoming.strip():
            paper = paper.with_next_action(upcoming)
        result = event.result or said.result or (said.message if event.action == "complete" else "")
        if result.strip():
            paper = paper.with_section(RESULT, result)
    changes = {"Status": event.after, "Updated_At": event.at}
    if event.to:
        changes |= {"Current_Owner": event.to, "Previous_Owner": event.by}
    if event.counts or paper.count is None:
        changes["Interaction_Count"] = str(state.count + event.counts)
    return paper.with_headers(changes)


def last_words(state: HandoffState, end_marker: str) -> str:
    """What was said with the end marker, below what had come out of the document before; empty if nothing was."""
    said = state.said
    texts = [text for text in (said.message, said.next_action, said.result) if text.strip()]
    texts = texts or [reply.without_thinking(said.text)]
    words = [text.replace(end_marker, "").strip() for text in texts]
    before = state.paper.section(RESULT)
    kept = [before] if before and before not in words else []
    return "\n\n".join(text for text in dict.fromkeys([*kept, *words]) if text)[:LONGEST_RESULT]


def publishing(state: HandoffState) -> dict[str, Any]:
    """What the document's file is to hold, and which text it may replace."""
    number, paper = state.views[-1]
    return {"number": number, "file": state.file, "text": write(paper), "over": state.over, "keep": state.keep}


def asked_of(command: object) -> str:
    """What kind of thing a command is to this style; empty for the kernel's own timer."""
    if isinstance(command, CallTool) and not command.agent and command.tool in _TOOLS:
        return _TOOLS[command.tool]
    if isinstance(command, (AskAgent, CallTool)):
        return "agent"
    return "person" if isinstance(command, AskPerson) else ""
