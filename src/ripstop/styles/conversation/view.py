"""What faces show of a session: who said what, where it is, which timers run."""

from typing import Any

from ripstop.kernel.effects import Say, SetTimer
from ripstop.kernel.events import Asked, Record
from ripstop.kernel.parts import Facts, Line, Part, Talk, Timer, Timers
from ripstop.kernel.run import Run
from ripstop.kernel.style import Document, Notice, Picture

from .events import SUPERSEDED, ActionFailed, IterationDecided, SessionClosed, SessionTaken, StatusChanged
from .folding import TIMER_PREFIX, timer_rule
from .state import SessionState

SESSIONS = "sessions"
MICROSECONDS = 1_000_000
BROKEN_OFF = "broken_off"


def session_document(state: SessionState) -> Document:
    bot, chat = state.definition, state.chat
    body: dict[str, Any] = {
        "id": chat.session,
        "workflow_id": bot.name,
        "workflow_state": {"hash": state.hash, "need_greeting": state.need_greeting, "status": state.status},
        "closed": state.closed,
        "taken_by": state.taken_by,
        "profile": state.profile,
    }
    return Document(SESSIONS, f"{bot.name}:{chat.session}", body)


def picture(run: Run[SessionState]) -> Picture:
    state = run.state
    said = [line for line in state.lines if line.speaker != "result"]
    return Picture(where=state.status, whose_turn=whose_turn(state), document=said[-1].text if said else "")


def whose_turn(state: SessionState) -> str:
    if state.status == "transferred":
        return state.taken_by or state.definition.handoff_to
    return "assistant" if state.in_pass else ""


def gist(state: SessionState) -> str:
    status = "closed" if state.closed else state.status
    return f"{state.chat.session}: {status}" if state.chat.session else status


def parts(run: Run[SessionState]) -> tuple[Part, ...]:
    state = run.state
    rows: list[tuple[str, Any]] = [
        ("Session", state.chat.session),
        ("Status", "closed" if state.closed else state.status),
        ("Taken by", state.taken_by),
        ("Configuration", state.definition.hash),
        *((f"Profile: {name}", value) for name, value in state.profile.items()),
    ]
    names = {"user": "user", "assistant": "bot", "desk": "desk", "flow": "flow", "result": "result"}
    lines = tuple(
        Line(line.number, line.by or names[line.speaker], line.text, is_reply=line.speaker != "user")
        for line in state.lines
        if line.speaker != "result"
    )
    found: list[Part] = [Facts(tuple(row for row in rows if row[1]), state.definition.name)]
    if lines:
        found.append(Talk(lines, "Conversation", user=_user(state), taken_by=state.taken_by, closed=state.closed))
    timers = timers_of(run)
    if timers:
        found.append(Timers(timers))
    return tuple(found)


def _user(state: SessionState) -> str:
    """Who the user is, if the bot has been told. Who sent the messages can be a program that speaks for all users."""
    return str(state.profile.get("name") or "")


def notices(record: Record) -> tuple[Notice, ...]:
    """Messages, statuses, visible actions, timers, and that it was taken or closed.

    What is silent is in the journal, and nowhere else.
    """
    match record.event:
        case Asked(command=Say(text=text, about=about, purpose=purpose)):
            return (Notice("message", {"kind": purpose, **({"text": text} if text else {})}, about),)
        case StatusChanged(status=status, because=because):
            return (Notice("status", {"status": status, **({"because": _short(because)} if because else {})}),)
        case IterationDecided(action=action, target=target, visible=True) if target:
            return (Notice("action", {"type": action, "target": target, "visible": True}),)
        case ActionFailed(action=action, target=target, visible=True):
            return (Notice("action_failed", {"type": action, "target": target, "visible": True}),)
        case SessionClosed():
            return (Notice("closed", {}),)
        case Asked(command=SetTimer(name=name, after=after)) if name.startswith(TIMER_PREFIX):
            return (Notice("timer", {"name": name.partition(": ")[2] or name, "seconds": after}),)
        case SessionTaken(by=by):
            return (Notice("taken", {"by": by}),)
    return ()


def remarks(record: Record) -> tuple[Notice, ...]:
    """Silent actions, for those who operate the bot."""
    match record.event:
        case IterationDecided(action=action, target=target, visible=False) if target:
            return (Notice("action", {"type": action, "target": target, "visible": False}),)
        case ActionFailed(action=action, target=target, visible=False):
            return (Notice("action_failed", {"type": action, "target": target, "visible": False}),)
    return ()


def _short(because: str) -> str:
    """Why a pass was cancelled, for those who do not operate the bot: what was wrong is in the journal."""
    return SUPERSEDED if because == SUPERSEDED else BROKEN_OFF


def timers_of(run: Run[SessionState]) -> tuple[Timer, ...]:
    """The timers that run now: what each will say or do, and when."""
    found: list[Timer] = []
    for opened in run.open.values():
        command = opened.command
        if type(command) is SetTimer and command.name.startswith(TIMER_PREFIX):
            rule = timer_rule(run.state, command.name)
            said = rule.message or (rule.action.target if rule and rule.action else "") if rule else ""
            found.append(Timer(said or command.name, opened.at + int(command.after * MICROSECONDS)))
    return tuple(found)
