"""How a session is folded from its records. Nothing here decides."""

from typing import Any

import msgspec
from msgspec.structs import replace

from ripstop.kernel.effects import (
    AnswerChild,
    AskAgent,
    AskPerson,
    CallTool,
    Failed,
    PersonAnswered,
    RunFinished,
    Said,
    Say,
    StartRun,
    ToolReturned,
    text_of,
)
from ripstop.kernel.events import (
    Answered,
    Asked,
    ChildSpoke,
    Doubted,
    DoubtResolved,
    Ended,
    Event,
    Heard,
    Resumed,
    SettingsChanged,
    Withdrawn,
)
from ripstop.kernel.result import CONTENT, read_result

from .. import turn as turns
from .actions import call_key, words_in
from .calls import SEARCH, KnowledgeFound
from .decision import BrokenContract, IterationDecision, as_system, decision_in, read_decision
from .definition import HANDOFF, BotAction, TimerRule
from .events import (
    ActionFailed,
    CallRepeated,
    Greeted,
    IterationDecided,
    PassBegan,
    PassSuperseded,
    PlanMissing,
    ProfileUpdated,
    ResultNoted,
    SessionClosed,
    SessionTaken,
    StatusChanged,
    TimerQueued,
)
from .plan import CachedPlan
from .state import LONGEST_LINE, LONGEST_OF_MANY, MOST_UNANSWERED, DoubtedAction, PassCall, SessionState, asker

DESK_CHANNEL = "desk"
"""The channel of messages that a person at the desk sends."""
HANDOFF_QUESTION, REPLY, RELEASE = HANDOFF, "reply", "release"
LONGEST_PASSAGE = 4_000
LONGEST_RESULT = 4_000
"""Characters of a call's result that the model is told again."""
MOST_CALLS = 100
SYSTEM_ACTION_DONE = "This system action is done. Answer the user, or decide on another one."
PLAN = ":plan"
"""The name under which the planning run is pinned."""
TIMER_PREFIX = "timer-"
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
    "in_doubt": {},
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
        case Doubted(to=to):
            return _doubted(state, number, to)
        case Resumed() | Ended():
            cut_off = call_key(state.action, state.definition) if state.acting and state.action else ""
            return replace(state, **IDLE, calls=tuple(one for one in state.calls if one.key != cut_off))
        case SettingsChanged():
            return replace(state, history=0)  # another model may take more
    own = _own(state, number, event)
    return _in_turn(state, number, event) if own is None else own


def _own(state: SessionState, number: int, event: Event) -> SessionState | None:
    """The style's own events; none for any other."""
    match event:
        case StatusChanged(status=status):
            over = status in ("ready", "cancelled", "transferred")
            said = "" if over or status == "typing" else state.response
            return replace(state, status=status, in_pass=state.in_pass and not over, response=said)
        case IterationDecided():
            return _decided(state, event)
        case PassBegan(continues=True):
            return replace(state, in_pass=True, superseded=False, flow_spoke=False, flow_words=())
        case PassBegan(heard=heard, timer=timer):
            return _pass_began(state, heard, timer)
        case ActionFailed():
            return replace(state, continued="")
        case CallRepeated(text=text):
            return _repeated(state, number, event, text)
        case PassSuperseded():
            # what the pass was about is answered with what came meanwhile; after a pass that is over, and by a flow
            # at work, it is answered already
            is_open = (state.in_pass or state.status == "cancelled") and not state.is_in_flow
            again = state.heard if is_open else ()
            waiting = tuple(dict.fromkeys((*again, *state.unanswered)))
            return replace(state, in_pass=True, superseded=True, unanswered=waiting)
        case ResultNoted(text=text):
            noted = state.with_line("result", number, text)
            return _with_result(noted, text)
        case TimerQueued(name=name):
            return replace(state, due=(*state.due, name))
    return _own_of_session(state, event)


def _own_of_session(state: SessionState, event: Event) -> SessionState | None:
    """Those that are not about a pass."""
    match event:
        case PlanMissing():
            return replace(state, served=state.definition.hash, need_greeting=_needs_greeting(state))
        case Greeted():
            return replace(state, need_greeting=False)
        case SessionTaken(by=by):
            return _taken(replace(state, taken_by=by))
        case SessionClosed():
            return replace(state, closed=True)
        case ProfileUpdated(values=values):
            return replace(state, profile={**state.profile, **values})
    return None


def _withdrawn(state: SessionState, number: int) -> SessionState:
    if number == state.desk:
        return replace(state, desk=0)
    if number == state.planning:
        return replace(state, planning=0)
    if state.turn and not state.in_pass:
        return replace(state, turn=None)
    return state


def _in_turn(state: SessionState, number: int, event: Event) -> SessionState:
    turn = turns.evolve(state.turn, number, event)
    return state if turn is state.turn else replace(state, turn=turn)


def _heard(state: SessionState, number: int, heard: Heard) -> SessionState:
    if heard.channel == DESK_CHANNEL:
        return _answered_by_person(state.with_line("desk", number, heard.text, heard.by))
    longest = LONGEST_LINE if len(state.unanswered) < MOST_UNANSWERED else LONGEST_OF_MANY
    told = replace(state.with_line("user", number, heard.text, heard.by, longest), closed=False, fired={})
    if state.status == "transferred":
        return _for_person(told, (number,))
    # what is said while a flow asks is for the flow
    return told if state.asking else replace(told, unanswered=(*state.unanswered, number))


def _for_person(state: SessionState, messages: tuple[int, ...]) -> SessionState:
    """Messages that are to be answered by the person who has the conversation, or by the model after him."""
    waiting = tuple(sorted({*state.unanswered, *messages}))
    kept = tuple(sorted({*state.kept_from_flows, *messages}))
    return replace(state, unanswered=waiting, kept_from_flows=kept)


def _answered_by_person(state: SessionState) -> SessionState:
    """What was written while a person has the conversation is answered by what he says; what waited before is not."""
    left = tuple(number for number in state.unanswered if number not in state.kept_from_flows)
    return replace(state, unanswered=left if state.status == "transferred" else ())


def _taken(state: SessionState) -> SessionState:
    """A person takes over from the bot: all that it has not answered is for him, with the pass that is broken off."""
    if state.status == "transferred":
        return state
    broken_off = state.heard if state.in_pass else ()
    return _for_person(state, (*broken_off, *state.unanswered))


def _asked(state: SessionState, number: int, event: Asked) -> SessionState:
    match event.command:
        case Say(text=text) if text:
            return state.with_line("assistant", number, text)
        case AskPerson(purpose=purpose) if purpose == HANDOFF_QUESTION:
            return replace(state, desk=number)
        case AnswerChild(about=about):
            return replace(state, asking=0, asks=None, answering=(number, about))
        case CallTool(tool=tool, agent=""):
            return replace(state, searching=number) if tool == SEARCH else replace(state, acting=number)
        case CallTool():
            return replace(state, acting=number)
        case StartRun(workflow=workflow):
            return replace(state, planning=number) if workflow == PLAN else replace(state, acting=number)
        case AskAgent(longest=longest) if longest != state.history:
            state = replace(state, history=longest)
    return _in_turn(state, number, event)


def _answered(state: SessionState, number: int, event: Event, to: int, answer: Any) -> SessionState:
    if to == state.desk:
        return _answered_at_desk(replace(state, desk=0), number, answer)
    if to == state.acting:
        return _acted(replace(state, acting=0, continued=_run_at_limit(answer)), number, answer)
    if to in state.in_doubt:
        return _resolved(state, number, to, answer)
    if to == state.searching:
        return replace(state, searching=0, passages=_passages(answer))
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
        state = _answered_by_person(state.with_line("desk", number, answer.text, answer.by))
    return replace(state, taken_by=(answer.by or state.taken_by) if answer.choice == REPLY else "")


def _acted(state: SessionState, number: int, answer: Any) -> SessionState:
    """What came of an action. The context of the model gets it if the action is visible, or has failed."""
    action = state.action
    if action is None:
        return state
    if state.then == "flow":
        return _flow_ended(state, number, action, answer)
    failed = isinstance(answer, Failed)
    is_visible = state.visible or failed
    said = result_line(action, answer) if is_visible else SYSTEM_ACTION_DONE
    state = _with_result(state, said, failed=failed, visible=is_visible)
    return state.with_line("result", number, said) if is_visible else state


def _flow_ended(state: SessionState, number: int, action: BotAction, answer: Any) -> SessionState:
    """What a flow comes to is the answer to its messages; while a person has the conversation, it waits with them."""
    spoke = state.flow_spoke and isinstance(answer, RunFinished) and answer.outcome == "completed"
    if state.status == "transferred" and not spoke:
        said = "\n".join(state.flow_words) or text_of(answer)
        line = f"{action.target}: {said}" if isinstance(answer, RunFinished) else result_line(action, answer)
        return _for_person(state.with_line("result", number, line), state.heard)
    return replace(state, unanswered=tuple(one for one in state.unanswered if one not in state.heard))


def _with_result(state: SessionState, said: str, **more: bool) -> SessionState:
    """With what came of the call that was decided on last."""
    key = call_key(state.action, state.definition) if state.action else ""
    found = (replace(one, result=said[:LONGEST_RESULT], **more) if one.key == key else one for one in state.calls)
    return replace(state, calls=tuple(found)) if key else state


def result_line(action: BotAction, answer: Any) -> str:
    """What the model is told of a call."""
    if isinstance(answer, Failed):
        return f"{action.target} failed: {answer.reason}"
    value = getattr(answer, "value", None)
    return f"{action.target} returned: {value if isinstance(value, str) else msgspec.json.encode(value).decode()}"


def _doubted(state: SessionState, number: int, to: int) -> SessionState:
    """A session does not wait for what a person finds out; what answers a single message does."""
    if known := state.in_doubt.get(to):
        return replace(state, in_doubt={**state.in_doubt, to: replace(known, is_renewed=True)})
    if to != state.acting or not state.is_session or state.action is None:
        return state
    doubted = DoubtedAction(state.action, state.visible, state.heard, state.timer, to, number)
    key = call_key(doubted.action, state.definition)
    calls = tuple(one for one in state.calls if one.key != key)
    state = replace(state, acting=0, in_doubt={**state.in_doubt, to: doubted}, calls=calls)
    return state.with_line("result", number, doubt_line(doubted.action))


def doubt_line(action: BotAction) -> str:
    return (
        f"It is not known whether {action.target} took effect. A colleague is checking it. "
        "Do not call it again, and do not say that it was done or that it was not."
    )


def _resolved(state: SessionState, number: int, to: int, answer: Any) -> SessionState:
    """It is known now what became of an action: what its pass was to answer is answered, if the user may know of it."""
    doubted = state.in_doubt[to]
    others = {number: other for number, other in state.in_doubt.items() if number != to}
    lines = tuple(line for line in state.lines if (line.speaker, line.number) != ("result", doubted.noted))
    state = replace(state, in_doubt=others, resolved=doubted, lines=lines)
    if isinstance(answer, RunFinished):
        return state
    failed, key = isinstance(answer, Failed), call_key(doubted.action, state.definition)
    is_visible = doubted.visible or failed
    said = result_line(doubted.action, answer) if is_visible else SYSTEM_ACTION_DONE
    if key:
        known = PassCall(key, said[:LONGEST_RESULT], failed, visible=is_visible, heard=doubted.heard, is_earlier=True)
        state = replace(state, calls=(known, *(one for one in state.calls if one.key != key)))
    if is_visible:
        state = state.with_line("result", number, said)
    return _to_be_told(state, doubted, failed) if doubted.visible and not doubted.timer else state


def _to_be_told(state: SessionState, doubted: DoubtedAction, failed: bool) -> SessionState:
    """With the messages for which the call was made among those that wait: the user is promised to hear of it."""
    is_flow = doubted.action.type == "FLOW"
    if state.status == "transferred" or (is_flow and failed):
        return _for_person(state, doubted.heard)
    if is_flow:
        return state  # its words are said at once
    # a pass that has not begun to decide will know of it
    known = state.heard if state.in_pass and state.is_preparing else ()
    return replace(state, unanswered=tuple(sorted({*doubted.heard, *state.unanswered} - {*known})))


def _repeated(state: SessionState, number: int, repeated: CallRepeated, text: str) -> SessionState:
    action = action_of(state, repeated.action, repeated.target)
    key = call_key(action, state.definition)
    calls = tuple(replace(one, repeats=one.repeats + 1) if one.key == key else one for one in state.calls)
    if all(one.key != key for one in calls):  # of another pass, in doubt
        calls = (*calls, PassCall(key, text, failed=True, repeats=1))
    told = state.with_line("result", number, text)
    return replace(
        told, calls=calls, iterations=state.iterations + 1, idle_rounds=0, turn=None, first=None, first_problem=""
    )


def _passages(answer: Any) -> tuple[tuple[str, str], ...]:
    """What was found; nothing if the search has failed, or is not needed any more."""
    if not isinstance(answer, ToolReturned):
        return ()
    found = msgspec.convert(answer.value, KnowledgeFound)
    return tuple((passage.source, passage.text[:LONGEST_PASSAGE]) for passage in found.passages)


def _decided(state: SessionState, decided: IterationDecided) -> SessionState:
    idle = decided.next_status == "processing" and not decided.target
    action, response = None, ""
    calls = state.calls
    if decided.target:
        action = action_of(state, decided.action, decided.target)
        whole = _decision(state)
        response = whole.response if whole and decided.next_status == "typing" else ""
        key = call_key(action, state.definition)
        if key and action.type != "FLOW":  # a flow ends its pass
            made = PassCall(key, SYSTEM_ACTION_DONE, visible=decided.visible, heard=state.heard)
            calls = (*(one for one in calls[-MOST_CALLS:] if one.key != key), made)
    return replace(
        state,
        iterations=state.iterations + 1,
        idle_rounds=state.idle_rounds + 1 if idle else 0,
        action=action,
        next_status=decided.next_status,
        response=response,
        visible=decided.visible,
        calls=calls,
        turn=None,
        first=None,
        first_problem="",
    )


def _decision(state: SessionState) -> IterationDecision | None:
    """The decision that is carried out, as the model has made it; none if a timer or a pattern has."""
    if state.timer:
        return None
    if state.first:
        return state.first
    if state.turn and state.turn.exchanges:
        return decision_in(state.turn.exchanges[-1].reply.text, state.definition)
    return None


def action_of(state: SessionState, kind: str, target: str) -> BotAction:
    """An action with the params that its reply, or its timer, has."""
    whole: BotAction | None = None
    if state.timer:
        rule = timer_rule(state, state.timer)
        whole = as_system(rule.action, state.definition) if rule and rule.action else None
    elif decision := _decision(state):
        whole = decision.action
    if whole is None:
        return BotAction(kind, target)  # type: ignore[arg-type]
    found = BotAction(kind, target, whole.params)  # type: ignore[arg-type]
    # older journals name the skill where newer ones name its system tool
    return found if whole.target in (target, as_system(found, state.definition).target) else replace(found, params={})


def timer_rules(state: SessionState) -> tuple[TimerRule, ...]:
    return (state.plan.timers if state.plan else state.definition.timers) or ()


def timer_rule(state: SessionState, name: str) -> TimerRule | None:
    rules = timer_rules(state)
    index = name.removeprefix(TIMER_PREFIX).partition(":")[0]
    return rules[int(index)] if index.isdigit() and int(index) < len(rules) else None


def _pass_began(state: SessionState, heard: tuple[int, ...], timer: str) -> SessionState:
    fired = {**state.fired, timer: state.fired.get(timer, 0) + 1} if timer else state.fired
    unanswered = tuple(number for number in state.unanswered if number not in heard)
    open_ones = {*heard, *unanswered}
    calls = (one for one in state.calls if not open_ones.isdisjoint(one.heard))
    return replace(
        state,
        in_pass=True,
        superseded=False,
        heard=heard,
        unanswered=unanswered,
        kept_from_flows=tuple(number for number in state.kept_from_flows if number in open_ones),
        timer=timer,
        due=tuple(one for one in state.due if one != timer),
        fired=fired,
        iterations=0,
        idle_rounds=0,
        calls=tuple(replace(one, repeats=0, is_earlier=True) for one in calls),
        action=None,
        next_status="",
        response="",
        passages=(),
        flow_spoke=False,
        flow_words=(),
        continued="",
        turn=None,
        first=None,
        first_problem="",
    )


def joined(state: SessionState, number: int, event: Answered, result: Any) -> SessionState:
    """The end of a child: the plan, or a flow."""
    if event.to == state.acting:
        done = replace(state, acting=0, flow_words=_flow_words(result), continued=_run_at_limit(event.answer))
        return _acted(done, number, event.answer)
    if event.to != state.planning or not isinstance(result, dict) or "plan" not in result:
        return evolve(state, number, event)
    bot = state.definition
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
        served=bot.hash,
        generation=bot.generation,
        need_greeting=_needs_greeting(state),
        first=first,
        first_problem=problem,
    )


def _run_at_limit(answer: Any) -> str:
    """The run of a flow that a limit has ended; empty if it ended otherwise."""
    return answer.run if isinstance(answer, RunFinished) and answer.outcome == "limit" else ""


def _flow_words(result: Any) -> tuple[str, ...]:
    """What a workflow came to, for a person. Data and files beside an empty text are not for customers."""
    is_result = isinstance(result, dict) and CONTENT in result
    return tuple(words_in(read_result(result).text if is_result else result))


def _needs_greeting(state: SessionState) -> bool:
    """Whether the user is to be greeted: he was not, or the configuration has changed since."""
    bot = state.definition
    return state.need_greeting or (bot.hash != state.served and not (bot.greet_once and bool(state.served)))


_latest: list[tuple[Any, CachedPlan | None]] = [(None, None)]
"""The result that was converted last: a hundred sessions get the same object, and then share one plan."""


def _plan(found: Any) -> CachedPlan:
    known, plan = _latest[0]
    if plan is None or known is not found:
        plan = msgspec.convert(found, CachedPlan)
        _latest[0] = (found, plan)
    return plan
