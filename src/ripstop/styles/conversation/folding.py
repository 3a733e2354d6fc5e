"""How a session is folded from its records. Nothing here decides."""

from typing import Any

import msgspec
from msgspec.structs import replace

from ripstop.kernel.effects import (
    AnswerChild,
    AskPerson,
    CallTool,
    Failed,
    PersonAnswered,
    RunFinished,
    Said,
    Say,
    StartRun,
    ToolReturned,
)
from ripstop.kernel.events import Answered, Asked, ChildSpoke, DoubtResolved, Ended, Event, Heard, Resumed, Withdrawn

from .. import turn as turns
from .actions import words_in
from .decision import BrokenContract, decision_in, read_decision
from .definition import HANDOFF, BotAction, TimerRule
from .events import (
    Greeted,
    IterationDecided,
    PassBegan,
    PassSuperseded,
    ProfileUpdated,
    ResultNoted,
    SessionClosed,
    SessionTaken,
    StatusChanged,
    TimerQueued,
)
from .plan import CachedPlan
from .state import MOST_UNANSWERED, SessionState, asker

DESK = "desk"
"""The channel of messages that a person at the desk sends."""
HANDOFF_QUESTION, REPLY, RELEASE = HANDOFF, "reply", "release"
KNOWLEDGE = "search_knowledge"
LONGEST_PASSAGE = 4_000
MOST_SILENT = 20
PLAN = ":plan"
"""The name under which the planning run is pinned."""
TIMER = "timer-"
"""What the name of a timer begins with: `timer-0: Are you still there?` is the first of the plan."""
IDLE: dict[str, Any] = {
    "turn": None,
    "in_pass": False,
    "superseded": False,
    "planning": 0,
    "searching": 0,
    "acting": 0,
    "answering": (0, 0),
    "asking": 0,
    "asks": None,
    "desk": 0,
}
"""Nothing is at work: the run has ended, or is resumed."""


def evolve(state: SessionState, number: int, event: Event) -> SessionState:
    match event:
        case Asked():
            return _asked(state, number, event)
        case Answered(to=to, answer=answer) | DoubtResolved(to=to, answer=answer):
            return _answered(state, number, event, to, answer)
        case Heard():
            return _heard(state, number, event)
        case ChildSpoke(ask=ask, text=text):
            spoken = state.with_line("flow", number, text or (ask.question if ask else ""))
            if ask is None:
                return replace(spoken, flow_spoke=True)
            return replace(spoken, flow_spoke=False, asking=number, asks=ask)
        case Withdrawn(number=withdrawn):
            return _withdrawn(state, withdrawn)
        case Resumed() | Ended():
            return replace(state, **IDLE)
    own = _own(state, number, event)
    return _in_turn(state, number, event) if own is None else own


def _own(state: SessionState, number: int, event: Event) -> SessionState | None:
    """The style's own events; none for any other."""
    match event:
        case StatusChanged(status=status):
            over = status in ("ready", "cancelled", "transferred")
            return replace(state, status=status, in_pass=state.in_pass and not over)
        case IterationDecided():
            return _decided(state, event)
        case PassBegan(heard=heard, timer=timer):
            return _pass_began(state, heard, timer)
        case Greeted():
            return replace(state, need_greeting=False)
        case PassSuperseded():
            # what the pass was about is answered with what came meanwhile; after a pass that is over it was answered
            again = state.heard if state.in_pass or state.status == "cancelled" else ()
            waiting = tuple(dict.fromkeys((*again, *state.unanswered)))
            return replace(state, in_pass=True, superseded=True, unanswered=waiting)
        case ResultNoted(text=text):
            return state.with_line("result", number, text)
        case TimerQueued(name=name):
            return replace(state, due=(*state.due, name))
        case SessionTaken(by=by):
            return replace(state, taken_by=by)
        case SessionClosed():
            return replace(state, closed=True)
        case ProfileUpdated(values=values):
            return replace(state, profile={**state.profile, **values})
    return None


def _withdrawn(state: SessionState, number: int) -> SessionState:
    if number == state.desk:
        return replace(state, desk=0)
    if state.turn and not state.in_pass:
        return replace(state, turn=None)
    return state


def _in_turn(state: SessionState, number: int, event: Event) -> SessionState:
    turn = turns.evolve(state.turn, number, event)
    return state if turn is state.turn else replace(state, turn=turn)


def _heard(state: SessionState, number: int, heard: Heard) -> SessionState:
    if heard.channel == DESK:
        # what a person has answered need not be answered again when the bot gets the conversation back
        return replace(state.with_line("desk", number, heard.text, heard.by), unanswered=())
    # what is said while a flow asks is for the flow
    waiting = state.unanswered if state.asking else (*state.unanswered[1 - MOST_UNANSWERED :], number)
    return replace(state.with_line("user", number, heard.text, heard.by), unanswered=waiting, closed=False, fired={})


def _asked(state: SessionState, number: int, event: Asked) -> SessionState:
    match event.command:
        case Say(text=text) if text:
            return state.with_line("assistant", number, text)
        case AskPerson(purpose=purpose) if purpose == HANDOFF_QUESTION:
            return replace(state, desk=number)
        case AnswerChild(about=about):
            return replace(state, asking=0, asks=None, answering=(number, about))
        case CallTool(tool=tool, agent=""):
            return replace(state, searching=number) if tool == KNOWLEDGE else replace(state, acting=number)
        case CallTool():
            return replace(state, acting=number)
        case StartRun(workflow=workflow):
            return replace(state, planning=number) if workflow == PLAN else replace(state, acting=number)
    return _in_turn(state, number, event)


def _answered(state: SessionState, number: int, event: Event, to: int, answer: Any) -> SessionState:
    if to == state.desk:
        return _answered_at_desk(replace(state, desk=0), number, answer)
    if to == state.acting:
        return _acted(replace(state, acting=0), number, answer)
    if to == state.searching:
        return replace(
            state, searching=0, passages=_passages(answer.value if isinstance(answer, ToolReturned) else None)
        )
    if to == state.planning:
        return replace(state, planning=0)
    if to == state.answering[0]:
        left = state.unanswered if isinstance(answer, Said) else (*state.unanswered, state.answering[1])
        return replace(state, answering=(0, 0), unanswered=left)
    return _in_turn(state, number, event)


def _answered_at_desk(state: SessionState, number: int, answer: Any) -> SessionState:
    if not isinstance(answer, PersonAnswered):
        return replace(state, taken_by="")
    if answer.text.strip():
        # what a person has answered need not be answered again when the bot gets the conversation back
        state = replace(state.with_line("desk", number, answer.text, answer.by), unanswered=())
    return replace(state, taken_by=(answer.by or state.taken_by) if answer.choice == REPLY else "")


def _acted(state: SessionState, number: int, answer: Any) -> SessionState:
    """What came of an action. The context of the model gets it only if the action is visible."""
    action = state.action
    if action is None or isinstance(answer, RunFinished) or not state.visible or state.then == "flow":
        return state
    if isinstance(answer, Failed):
        said = f"{action.target} failed: {answer.reason}"
    else:
        value = getattr(answer, "value", None)
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        said = f"{action.target} returned: {text}"
    return state.with_line("result", number, said)


def _passages(value: Any) -> tuple[tuple[str, str], ...]:
    found = value.get("passages") if isinstance(value, dict) else None
    listed = found if isinstance(found, list) else []
    texts = [(one.get("source"), one.get("text")) for one in listed if isinstance(one, dict)]
    return tuple(
        (source, text[:LONGEST_PASSAGE]) for source, text in texts if isinstance(source, str) and isinstance(text, str)
    )


def _decided(state: SessionState, decided: IterationDecided) -> SessionState:
    idle = decided.next_status == "processing" and not decided.target
    action = action_of(state, decided)
    silent = state.silent
    if action and not decided.visible:
        silent = (*silent[-MOST_SILENT:], silent_key(action))
    return replace(
        state,
        iterations=state.iterations + 1,
        idle_rounds=state.idle_rounds + 1 if idle else 0,
        action=action,
        next_status=decided.next_status,
        visible=decided.visible,
        silent=silent,
        turn=None,
        first=None,
        first_problem="",
    )


def action_of(state: SessionState, decided: IterationDecided) -> BotAction | None:
    """The action of a decision, with the params that its reply, or its timer, has."""
    if not decided.target:
        return None
    whole: BotAction | None = None
    if state.timer:
        rule = timer_rule(state, state.timer)
        whole = rule.action if rule else None
    elif state.first:
        whole = state.first.action
    elif state.turn and state.turn.exchanges:
        whole = decision_in(state.turn.exchanges[-1].reply.text, state.definition).action
    params = whole.params if whole and whole.target == decided.target else {}
    return BotAction(decided.action, decided.target, params)  # type: ignore[arg-type]


def silent_key(action: BotAction) -> str:
    return f"{action.target} {msgspec.json.encode(action.params, order='sorted').decode()}"


def timer_rule(state: SessionState, name: str) -> TimerRule | None:
    rules = (state.plan.timers if state.plan else None) or ()
    index = name.removeprefix(TIMER).partition(":")[0]
    return rules[int(index)] if index.isdigit() and int(index) < len(rules) else None


def _pass_began(state: SessionState, heard: tuple[int, ...], timer: str) -> SessionState:
    fired = {**state.fired, timer: state.fired.get(timer, 0) + 1} if timer else state.fired
    return replace(
        state,
        in_pass=True,
        superseded=False,
        heard=heard,
        unanswered=tuple(number for number in state.unanswered if number not in heard),
        timer=timer,
        due=tuple(one for one in state.due if one != timer),
        fired=fired,
        iterations=0,
        idle_rounds=0,
        silent=(),
        action=None,
        next_status="",
        passages=(),
        flow_spoke=False,
        flow_words=(),
        turn=None,
        first=None,
        first_problem="",
    )


def joined(state: SessionState, number: int, event: Answered, result: Any) -> SessionState:
    """The end of a child: the plan, or a flow."""
    if event.to == state.acting:
        return replace(state, acting=0, flow_words=tuple(words_in(result)))
    if event.to != state.planning or not isinstance(result, dict) or "plan" not in result:
        return evolve(state, number, event)
    bot = state.definition
    is_new = bot.hash != state.hash
    greets_again = is_new and not (bot.greet_once and state.hash)
    first, problem = None, ""
    if result.get("asker") == asker(state) and not state.superseded:
        problem = str(result.get("problem") or "")
        try:
            first = None if problem else read_decision(result.get("decision"), bot)
        except BrokenContract as error:  # only if the journal was made by others
            problem = str(error)
    return replace(
        state,
        planning=0,
        plan=_plan(result["plan"]),
        hash=bot.hash,
        generation=bot.generation,
        need_greeting=state.need_greeting or greets_again,
        first=first,
        first_problem=problem,
    )


_latest: list[tuple[Any, CachedPlan | None]] = [(None, None)]
"""The result that was converted last: a hundred sessions get the same object, and then share one plan."""


def _plan(found: Any) -> CachedPlan:
    known, plan = _latest[0]
    if plan is None or known is not found:
        plan = msgspec.convert(found, CachedPlan)
        _latest[0] = (found, plan)
    return plan
