"""One pass: what was said is planned for, greeted, decided on, acted on and answered, until the session is ready.

Everything is a function of a step. The order of statuses is acknowledged (a new plan) → processing → typing → ready,
or transferred, or cancelled.
"""

from typing import Any

from ripstop.kernel.budget import allows_no_child
from ripstop.kernel.effects import (
    AgentReplied,
    AskAgent,
    AskPerson,
    CallTool,
    Failed,
    Limits,
    RunFinished,
    SetTimer,
    StartRun,
    ToolReturned,
    text_of,
)
from ripstop.kernel.result import Result
from ripstop.kernel.step import Step

from .. import turn as turns
from ..shortening import cut
from .actions import ASSISTANT, HTTP, Target, UnknownTarget, call_key, flow_for, is_without_words, target_of, words_in
from .calls import SEARCH
from .configuration import procedure_of
from .decision import BrokenContract, IterationDecision, as_system, decision_in, purpose_of
from .definition import CLOSE, HANDOFF, UPDATE_PROFILE, BotAction, BotFlow
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
    StatusChanged,
)
from .folding import HANDOFF_QUESTION, PLAN, RELEASE, REPLY, doubt_line, timer_rule
from .planning import CALLS_OF_PLAN
from .prompts import LEAST_HISTORY, MOST_HISTORY, spoken
from .session_timers import cancel_timers, set_again, set_timers
from .state import DoubtedAction, PassCall, SessionState

# What the bot says, on the channel of its session.


GREETING, ANSWER, NOTE, APOLOGY, CHECKING = "greeting", "answer", "note", "apology", "checking"
FLOW, TIMER, DESK, HANDED_OVER = "flow", "timer", "desk", "transfer"
"""What kind of message it is; recorded with it."""


def say(step: Step[SessionState], text: str, purpose: str = ANSWER) -> None:
    chat = step.state.chat
    step.say(text, channel=chat.channel, to=chat.user, purpose=purpose)


def pass_on(step: Step[SessionState], number: int, purpose: str) -> None:
    """Say what a record holds: the words of a flow, or of a person at the desk."""
    chat = step.state.chat
    step.say(about=number, channel=chat.channel, to=chat.user, purpose=purpose)


# A person has the conversation: the bot is silent, and one question on the desk stays open until it is given back.


MOST_SHOWN = 20
"""Lines of the conversation that the question on the desk names."""
LONGEST_NEWS = 1_000
RUNS_OF_FLOW = 500
"""Runs that a workflow which a session calls can start: one that starts itself would never end."""
CHOICES = {REPLY: "Answer the user", RELEASE: "Give the conversation back to the bot"}
Chat = Step[SessionState]


def transfer(step: Chat) -> None:
    """The user has been told: hand the conversation over."""
    step.record(StatusChanged("transferred"))
    cancel_timers(step, "a person has the conversation")
    ask_person(step)


def ask_person(step: Chat, news: str = "") -> None:
    """`news`: what the person has to know who has the conversation."""
    state = step.state
    taken = f"{state.taken_by} has it. " if state.taken_by else ""
    step.ask_unguarded(
        AskPerson(
            question=f"{taken}{news}Answer the user of session {state.chat.session!r}, or give the conversation back.",
            purpose=HANDOFF_QUESTION,
            title=f"{state.definition.name}: {state.chat.session}",
            to=state.definition.handoff_to,
            about=tuple(line.number for line in state.lines[-MOST_SHOWN:]),
            choices=CHOICES,
            other=REPLY,
        )
    )


def tell_person(step: Chat) -> None:
    """Tell the person who has the conversation what the last line says: it came of a call, or of a flow."""
    state = step.state
    line = state.lines[-1] if state.lines else None
    if state.desk and line and (line.speaker, line.number) == ("result", step.number):
        step.withdraw(state.desk, "there is something new to know, so it is asked again")
        ask_person(step, f"{cut(line.text, LONGEST_NEWS)}\n")


PLAN_TIMER = "plan"
PLAN_PATIENCE = 60.0
"""Seconds for which a session waits for the plan; then it does without."""
FLOW_TIMER = "flow"
FLOW_PATIENCE = 60.0
"""Seconds for which a user waits for a workflow that works, is paused, or needs somebody else, before he is told so."""
IDLE_ROUNDS = 2
"""Decisions to go on without an action, in a row, that end a pass."""


def begin(step: Chat) -> None:
    """Take up what was said and not answered, once what is at work has ended: all of it, or the next in a queue."""
    state = step.state
    if state.waits_for_effect:
        if not state.superseded:
            step.record(PassSuperseded())
        return None
    step.record(PassBegan(heard=_next_messages(state) or state.heard))
    state = step.state
    flow = flow_of(state, state.heard[0]) if len(state.heard) == 1 else None
    if flow:
        return _begin_flow(step, flow)
    if state.definition.knowledge:
        step.ask(CallTool(tool=SEARCH))
        return None
    return plan_or_go(step)


def _begin_flow(step: Chat, flow: BotFlow) -> None:
    """A keyword starts a flow, before any model is asked. Its tool can be a built-in action."""
    bot = step.state.definition
    action = as_system(BotAction("FLOW", flow.id), bot)
    is_hand_over = purpose_of(action, bot) == HANDOFF
    step.record(StatusChanged("processing"))
    if is_hand_over:
        say(step, spoken(step.state, bot.handover), HANDED_OVER)
    step.record(
        IterationDecided(
            reply=0,
            next_status="transferred" if is_hand_over else "processing",
            action=action.type,
            target=action.target,
            visible=action.type != "SYSTEM",
        )
    )
    return _transfer(step) if is_hand_over else _carry_out(step)


def _next_messages(state: SessionState) -> tuple[int, ...]:
    """Those that wait and are answered together. One that starts a flow by its keyword is always alone."""
    waiting = state.unanswered
    if state.definition.on_new_message == "queue":
        return waiting[:1]
    with_flow = next((at for at, number in enumerate(waiting) if flow_of(state, number)), len(waiting))
    return waiting[: max(with_flow, 1)]


def flow_of(state: SessionState, message: int) -> BotFlow | None:
    """The flow that a message starts by a keyword. What nobody knows the outcome of is not started again."""
    words = next((line.text for line in reversed(state.lines) if line.number == message), "")
    flow = flow_for(words, state.definition) if message not in state.kept_from_flows else None
    return flow if flow and not _in_doubt(state, BotAction("FLOW", flow.id)) else None


def plan_or_go(step: Chat) -> None:
    state = step.state
    if state.is_planned:
        return _greet_and_decide(step)
    step.ask(StartRun(workflow=PLAN, name=state.definition.plan_name, limits=Limits(calls=CALLS_OF_PLAN)))
    if state.is_session:
        step.ask(SetTimer(name=PLAN_TIMER, after=PLAN_PATIENCE))
    return None


def after_plan(step: Chat, answer: Any, is_shared: bool) -> None:
    step.cancel_timer(PLAN_TIMER, "the planning has ended")
    if isinstance(answer, RunFinished) and answer.outcome == "completed" and step.state.is_planned:
        step.record(StatusChanged("acknowledged"))
        return begin(step) if step.state.superseded else _greet_and_decide(step)
    if step.state.superseded:
        return begin(step)
    if is_shared and not step.state.is_session and isinstance(answer, RunFinished) and answer.refused:
        # an outage fails the plan that sessions wait for, too; one of its own is paused until it is over
        step.ask(StartRun(workflow=PLAN, limits=Limits(calls=CALLS_OF_PLAN)))
        return None
    return _go_without_plan(step, f"the configuration could not be planned: {text_of(answer)}")


def plan_is_late(step: Chat) -> None:
    """The planner, or its model, takes too long: the user hears something, and the plan is used once it is there."""
    state = step.state
    if not state.planning:
        return None
    step.withdraw(state.planning, "the user has waited long enough")
    if state.status == "transferred":
        return None
    say(step, spoken(state, state.definition.checking), CHECKING)
    if state.superseded:
        return begin(step)
    return _go_without_plan(step, "the configuration is still being planned")


def _go_without_plan(step: Chat, because: str) -> None:
    """Use the old plan, else the procedure as it is written."""
    state = step.state
    step.record(PlanMissing(because=because))
    if state.plan is None and not procedure_of(state.definition.config):
        return cancel(step, because)
    return _greet_and_decide(step)


def _greet_and_decide(step: Chat) -> None:
    state = step.state
    greeting = state.plan.greeting if state.plan and state.is_planned else state.definition.greeting
    if state.need_greeting and greeting:
        say(step, spoken(state, greeting), GREETING)
        step.record(Greeted())
    step.record(StatusChanged("processing"))
    state = step.state
    if state.first_problem:
        return cancel(step, f"the decision breaks the contract: {state.first_problem}")
    if state.first:
        return act(step, state.first, step.number)
    return decide(step)


def decide(step: Chat) -> None:
    """Ask the model what comes next."""
    state = step.state
    bot = state.definition
    if state.iterations >= bot.max_iterations:
        return cancel(step, f"the pass reached its limit of {bot.max_iterations} decisions")
    return _ask(step, state.history or MOST_HISTORY)


def _ask(step: Chat, history: int) -> None:
    context = tuple(line.number for line in step.state.said)
    step.ask(AskAgent(agent=ASSISTANT, model=step.state.definition.model, context=context, longest=history))


def after_reply(step: Chat, answer: Any) -> None:
    state = step.state
    turn = state.turn
    if turn is None:
        return None
    if isinstance(answer, Failed):
        return _after_failure(step, answer)
    if isinstance(answer, AgentReplied) and turns.is_cut(answer):
        finished = turns.ask_for_rest(step, turn)
        return cancel(step, f"the model failed: {finished.failure.reason}") if finished and finished.failure else None
    last = turn.exchanges[-1]
    try:
        decision = decision_in(last.reply.text, state.definition)
    except BrokenContract as error:
        return _decide_again(step, str(error), f"the decision breaks the contract: {error}")
    return act(step, decision, last.number)


def _after_failure(step: Chat, failed: Failed) -> None:
    """A prompt that the model cannot take is made again with less of the conversation; nothing else can be left out."""
    history = (step.state.history or MOST_HISTORY) // 2
    if not failed.too_long or history < LEAST_HISTORY:
        return cancel(step, f"the model failed: {failed.reason}")
    size = f"about {failed.too_long:,} tokens"
    step.warn(
        f"the model could not take a prompt of {size}; it gets {history:,} characters of the conversation at most"
    )
    return _ask(step, history)


def _decide_again(step: Chat, problem: str, because: str) -> None:
    """Ask the model once more, and say what was wrong; break the pass off if it was asked once more before."""
    turn = step.state.turn
    assert turn is not None
    last = turn.exchanges[-1]
    if last.reply.recorded or any(exchange.correction for exchange in turn.exchanges):
        return cancel(step, because)
    said = f"Your reply cannot be used: {problem}. Reply again with one JSON object that keeps the rules."
    return turns.correct(step, turn, turns.FinishedTurn(last.number, last.reply.text), said)


def act(step: Chat, decision: IterationDecision, reply: int) -> None:
    """Carry a decision out."""
    action, status = decision.action, decision.next_status
    if action and (known := _made_before(step.state, action)):
        if status == "processing" or known.failed:
            return _tell_again(step, action, known, reply)
        step.warn(f"{action.target!r} was decided on twice with the same parameters; it was not called again")
        action = None
    if status == "transferred" and action is None:
        action = BotAction("SYSTEM", HANDOFF)  # what the configuration calls for it is called
    if decision.response and (status == "processing" or (status == "typing" and action and action.type == "FLOW")):
        say(step, decision.response, NOTE)  # before the action that it announces
        status = "processing"
    step.record(
        IterationDecided(
            reply=reply,
            next_status=status,
            action=action.type if action else "",
            target=action.target if action else "",
            visible=action is None or action.type != "SYSTEM",
        )
    )
    return _say_and_do(step, status, decision.response)


def _made_before(state: SessionState, action: BotAction) -> PassCall | None:
    """The same call, if this pass has made it, or if nobody knows whether an earlier one took effect."""
    key = call_key(action, state.definition)
    if not key or purpose_of(action, state.definition) == HANDOFF:
        return None
    for one in state.calls:
        if one.key == key:
            return one
    return PassCall(key, doubt_line(action), failed=True) if _in_doubt(state, action) else None


def _in_doubt(state: SessionState, action: BotAction) -> bool:
    """Whether nobody knows what became of the same call."""
    key = call_key(action, state.definition)
    return bool(key) and any(call_key(one.action, state.definition) == key for one in state.in_doubt.values())


def _tell_again(step: Chat, action: BotAction, known: PassCall, reply: int) -> None:
    """The model repeats itself: it is told once more what came of the call; after that the pass is over."""
    if known.repeats:
        return cancel(step, f"{action.target!r} was decided on three times with the same parameters")
    visible = action.type != "SYSTEM"
    said = f"{action.target} was not called again with the same parameters. {known.result}" if visible else known.result
    step.record(CallRepeated(reply=reply, action=action.type, target=action.target, text=said, visible=visible))
    return decide(step)


def _say_and_do(step: Chat, status: str, response: str) -> None:
    """Say and do what was decided on. An answer waits for the action beside it, which may fail."""
    action = step.state.action
    if status == "transferred":
        say(step, response, HANDED_OVER)
        return _transfer(step)
    if action:
        return _carry_out(step)
    if status == "typing":
        answer(step, response)
    if status != "processing":
        return finish(step)
    if step.state.idle_rounds >= IDLE_ROUNDS:
        return cancel(step, f"{IDLE_ROUNDS} decisions in a row to go on without an action")
    return decide(step)


def answer(step: Chat, response: str) -> None:
    step.record(StatusChanged("typing"))
    say(step, response)


def _transfer(step: Chat) -> None:
    """Hand over to a person: first what was decided on besides, then what the configuration calls, then the desk."""
    state, action = step.state, step.state.action
    try:
        target = target_of(action, state.definition) if action else None
    except UnknownTarget as error:
        step.warn(str(error))
        _note_failure(step)
        target = None
    if target and target.tool:
        step.record(StatusChanged("transferred"))
        return _call(step, target)
    _note_profile(step, action)
    return transfer(step) if target is None or not _calls_hand_over(step) else None


def _calls_hand_over(step: Chat) -> bool:
    """Call what the configuration has for handing over, if it has something and the action was another one."""
    state, wanted = step.state, BotAction("SYSTEM", HANDOFF)
    target = target_of(wanted, state.definition)
    if not target.tool or (state.action and purpose_of(state.action, state.definition) == HANDOFF):
        return False
    step.record(
        IterationDecided(reply=0, next_status="transferred", action=wanted.type, target=wanted.target, visible=False)
    )
    if state.status != "transferred":
        step.record(StatusChanged("transferred"))
    _call(step, target)
    return True


def _note_profile(step: Chat, action: BotAction | None) -> None:
    """What the user has said of himself counts from now on: nothing had to be called for it, or the call succeeded."""
    if action and action.params and purpose_of(action, step.state.definition) == UPDATE_PROFILE:
        step.record(ProfileUpdated(values=action.params))


def _carry_out(step: Chat) -> None:
    """Perform the action that was decided on."""
    state, action = step.state, step.state.action
    assert action is not None
    try:
        target = target_of(action, state.definition)
    except UnknownTarget as error:
        step.warn(str(error))
        return _after_unknown(step, str(error))
    if target.workflow:
        # a session has no end, and so no limit of runs of its own
        limits = Limits(runs=RUNS_OF_FLOW, depth=step.run.limits.depth)
        step.ask(StartRun(workflow=target.workflow, name=state.continued, surface=True, limits=limits))
        return await_flow(step)
    if target.tool:
        return _call(step, target)
    _note_profile(step, action)
    return _after_action(step, target.text)


def _call(step: Chat, target: Target) -> None:
    if target.endpoint:
        step.ask(CallTool(tool=HTTP, effect=target.endpoint.kind))
    else:
        step.ask(CallTool(tool=target.tool, agent=ASSISTANT))


def _after_unknown(step: Chat, problem: str) -> None:
    """There is nothing of that name: the model is told, as of any other failure."""
    _note_failure(step)
    if step.state.timer:
        return _next(step)
    step.record(ResultNoted(text=problem))
    return decide(step)


def _note_failure(step: Chat) -> None:
    action = step.state.action
    if action:
        step.record(ActionFailed(action=action.type, target=action.target, visible=step.state.visible))


def _after_action(step: Chat, text: str = "") -> None:
    """`text`: what the model learns, where nothing was called."""
    if text:
        step.record(ResultNoted(text=text))
    action = step.state.action
    if step.state.response:
        answer(step, step.state.response)
    if action and purpose_of(action, step.state.definition) == CLOSE:
        return close(step)
    return _next(step)


def _next(step: Chat) -> None:
    match step.state.then:
        case "iterate":
            return decide(step)
        case "transfer":
            return transfer(step)
    return finish(step)


def after_call(step: Chat, answer: Any) -> None:
    """A tool or an endpoint has answered."""
    state = step.state
    action, failed = state.action, isinstance(answer, Failed)
    if failed:
        _note_failure(step)
    else:
        _note_profile(step, action)
    if state.status == "transferred":  # by this very action, or because a person has taken the conversation
        if state.then == "flow":
            return tell_person(step)
        if state.desk or state.then != "transfer" or _calls_hand_over(step):
            return None
        return ask_person(step)
    if isinstance(answer, Failed) and (not state.visible or state.timer):
        step.warn(f"{action.target if action else 'the action'} failed: {answer.reason}")
    if state.then == "flow":
        return _after_flow_call(step, answer)
    if state.superseded:
        return begin(step)
    if failed and state.then == "finish" and not state.timer:
        return decide(step)  # what was to be said now may not be true
    return _after_action(step)


def after_doubt(step: Chat, doubted: DoubtedAction) -> None:
    """Nobody knows whether the action took effect. A person finds out, and the user can go on talking."""
    state = step.state
    if doubted.is_renewed:
        return None  # the user knows that it is being checked
    if state.status == "transferred":  # what became of the call does not matter to the user who waits
        return None if state.desk else ask_person(step)
    if state.superseded and doubted.action.type != "FLOW":
        return begin(step)
    if state.timer:
        return finish(step)
    if not doubted.visible:
        return decide(step)
    say(step, spoken(state, state.definition.checking), CHECKING)
    return finish(step)


def after_resolution(step: Chat, doubted: DoubtedAction, answer: Any) -> None:
    """It is known now what became of an action that was in doubt: what the user was to hear of it is said."""
    if isinstance(answer, Failed):
        step.record(ActionFailed(action=doubted.action.type, target=doubted.action.target, visible=doubted.visible))
    else:
        _note_profile(step, doubted.action)
    if step.state.status == "transferred":
        return tell_person(step)
    if doubted.action.type == "FLOW":
        for text in words_in(answer.value if isinstance(answer, ToolReturned) else None):
            say(step, text, FLOW)
    is_at_work = step.state.waits_for_effect or any(type(one.command) is AskAgent for one in step.run.open.values())
    if step.state.unanswered and not is_at_work and not step.state.asking:
        cancel_timers(step, "a call that was in doubt is resolved")
        return begin(step)
    return None


def _after_flow_call(step: Chat, answer: Any) -> None:
    if isinstance(answer, Failed):
        return cancel(step, f"the flow failed: {answer.reason}")
    value = answer.value if isinstance(answer, ToolReturned) else None
    words = words_in(value)
    for text in words:
        say(step, text, FLOW)
    if not words and not is_without_words(value):
        return _without_words(step)
    if not words:
        step.warn("the flow has said nothing to the user")
    return finish(step)


def await_flow(step: Chat) -> None:
    """A workflow is at work, if one is: have the user told later that it is, if he waits for it."""
    state = step.state
    at_work = step.run.open.get(state.acting)
    if at_work and type(at_work.command) is StartRun and state.is_session and not state.timer:
        step.cancel_timer(FLOW_TIMER, "the user has said something")
        step.ask(SetTimer(name=FLOW_TIMER, after=FLOW_PATIENCE))


def flow_is_late(step: Chat) -> None:
    state = step.state
    if state.acting and not state.asking and state.status != "transferred":
        say(step, spoken(state, state.definition.checking), CHECKING)


def after_flow(step: Chat, workflow: str, answer: Any) -> None:
    """A workflow that had taken over has ended."""
    state = step.state
    if state.status == "transferred":
        tell_person(step)
    step.cancel_timer(FLOW_TIMER, "the flow has ended")
    if state.status == "transferred":
        return None
    again = StartRun(workflow=workflow, surface=True)
    is_at_limit = isinstance(answer, RunFinished) and answer.outcome == "limit"
    if is_at_limit and allows_no_child(step.run, again):
        step.ask(again)  # it is the limit of this run, so a guard says so
        return None
    if not isinstance(answer, RunFinished) or answer.outcome != "completed":
        _note_failure(step)
        return cancel(step, f"the flow did not complete: {text_of(answer)}")
    if not (state.flow_spoke or state.flow_words):
        return _without_words(step)
    for text in () if state.flow_spoke else state.flow_words:
        say(step, text, FLOW)
    return finish(step)


def continue_flow(step: Chat) -> None:
    """The limit is raised that had ended the workflow, and with it this run: the workflow goes on where it was."""
    step.record(PassBegan(heard=step.state.heard, timer=step.state.timer, continues=True))
    step.record(StatusChanged("processing"))
    _carry_out(step)


def _without_words(step: Chat) -> None:
    """A flow has taken over, and leaves the user with nothing."""
    _note_failure(step)
    return cancel(step, "what the flow returned has no words for the user")


def close(step: Chat) -> None:
    cancel_timers(step, "the conversation was closed")
    step.record(SessionClosed())
    finish(step)


def finish(step: Chat) -> None:
    """The pass is over: what was said meanwhile begins the next one; otherwise the timers run."""
    timer = step.state.timer
    step.record(StatusChanged("ready"))
    if not _goes_on(step) and not step.state.is_session:
        return end(step)
    return _set_timers(step, timer)


def end(step: Chat) -> None:
    """What is not a session ends when its message is answered."""
    step.end("completed", "The message is answered.", result=Result(_answer(step.state)))


def cancel(step: Chat, because: str) -> None:
    """Break the pass off: the user gets the apology instead of silence."""
    step.warn(because)
    state = step.state
    if not state.superseded or state.then == "flow":  # the messages of a flow are in no other pass
        say(step, spoken(state, state.definition.apology), APOLOGY)
    timer = state.timer
    step.record(StatusChanged("cancelled", because=because))
    if not _goes_on(step) and not step.state.is_session:
        return step.end("failed", because)
    return _set_timers(step, timer)


def _goes_on(step: Chat) -> bool:
    """Begin what has come meanwhile: a message, or a timer."""
    state = step.state
    if state.unanswered:
        begin(step)
    elif state.due and not state.closed:
        fire(step, state.due[0])
    return step.state.in_pass or step.state.status == "transferred"


def _set_timers(step: Chat, timer: str) -> None:
    state = step.state
    if state.in_pass or state.status == "transferred" or state.closed:
        return
    if timer:
        set_again(step, timer)
    else:
        set_timers(step)


def _answer(state: SessionState) -> str:
    """What was said in answer to the input; that something is checked only if nothing came of it."""
    since = state.heard[0] if state.heard else 0
    said = [line.text for line in state.lines if line.number > since and line.speaker in ("assistant", "flow", "desk")]
    checking = spoken(state, state.definition.checking)
    return "\n".join([text for text in said if text != checking] or said)


def fire(step: Chat, name: str) -> None:
    """A timer has expired: it says its message and runs its action, and nothing else."""
    state = step.state
    rule = timer_rule(state, name)
    if rule is None or state.in_pass or state.status == "transferred":
        return None
    step.record(PassBegan(timer=name))
    step.record(StatusChanged("processing"))
    if rule.message:
        say(step, spoken(state, rule.message), TIMER)
    if rule.action is None:
        return finish(step)
    action = as_system(rule.action, state.definition)
    status = "transferred" if purpose_of(action, state.definition) == HANDOFF else "ready"
    step.record(
        IterationDecided(
            reply=0, next_status=status, action=action.type, target=action.target, visible=action.type != "SYSTEM"
        )
    )
    return _transfer(step) if status == "transferred" else _carry_out(step)
