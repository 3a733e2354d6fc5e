"""The conversation style: a message comes in, actions are carried out in the right order, an answer goes out.

One session is one run. It never ends by itself: it is ready, and the next message begins the next pass. The pass is in
`passes.py`, with the part that a person at the desk has in it; the folding of records in `folding.py`.
"""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ripstop.kernel.effects import (
    AnswerChild,
    AskAgent,
    AskPerson,
    CallTool,
    Guards,
    PersonAnswered,
    SetTimer,
    StartRun,
    TimerFired,
)
from ripstop.kernel.errors import UsageError
from ripstop.kernel.events import Answered, ChildSpoke, Event, Fact, GuardTripped, Heard, Record, Resumed, Started
from ripstop.kernel.parts import Part
from ripstop.kernel.prompt import Prompt
from ripstop.kernel.questions import read_answer
from ripstop.kernel.run import Run, end_line
from ripstop.kernel.step import Step
from ripstop.kernel.style import (
    Action,
    AgentUse,
    AudienceHooks,
    Child,
    Document,
    Ending,
    News,
    Notice,
    PersonHooks,
    Picture,
    Settled,
    Style,
    StyleView,
    Uses,
)

from .. import turn as turns
from . import folding, passes, view
from .actions import ASSISTANT, PLANNER, UnknownTarget, arguments_of, endpoints_of, known_of, target_of
from .calls import SEARCH, SearchCall
from .definition import Bot
from .drafts import DecisionDraft
from .events import SUPERSEDED, PassSuperseded, SessionTaken, StatusChanged, TimerQueued
from .folding import DESK_CHANNEL, HANDOFF_QUESTION, PLAN, REPLY
from .passes import DESK, pass_on, say
from .prompts import decision_prompt, spoken
from .session_timers import cancel_timers, set_timers
from .state import ChatArguments, SessionState, asker

# What people at the desk do with a conversation: answer the user, take it over, give it back.


def answered(step: Step[SessionState], answer: Any) -> None:
    """A person answered the question on the desk: with words for the user, or by giving the conversation back.

    Words that come with giving it back are said first.
    """
    if isinstance(answer, PersonAnswered) and answer.text.strip():
        pass_on(step, step.number, DESK)
    if isinstance(answer, PersonAnswered) and answer.choice == REPLY:
        return passes.ask_person(step)
    step.record(StatusChanged("ready"))
    if step.state.unanswered:
        return passes.begin(step)
    if not step.state.is_session:
        return passes.end(step)
    return set_timers(step)


def take(step: Step[SessionState]) -> None:
    """A person takes the conversation, from the bot or from another person."""
    state = step.state
    if state.desk:
        step.withdraw(state.desk, f"{state.taken_by} has taken the conversation")
        return passes.ask_person(step)
    for number, opened in list(step.run.open.items()):
        if type(opened.command) is AskAgent:
            step.withdraw(number, "a person has taken the conversation")
    return passes.transfer(step)


LONGEST_QUERY = 2_000
TAKE = "take"


class ConversationView(StyleView[SessionState]):
    def word_reader(self) -> Callable[[str], str]:
        return DecisionDraft().add

    def picture(self, run: Run[SessionState]) -> Picture:
        return view.picture(run)

    def gist(self, run: Run[SessionState]) -> str:
        return end_line(run) or view.gist(run.state)

    def parts(self, run: Run[SessionState]) -> tuple[Part, ...]:
        return view.parts(run)


class ConversationPeople(PersonHooks[SessionState]):
    def actions(self, run: Run[SessionState]) -> tuple[Action, ...]:
        if run.ended:
            return ()
        taken = run.state.taken_by
        confirm = f"{taken} has this conversation. Take it over?" if taken else ""
        return (Action(TAKE, "Take the conversation over", confirm=confirm),)

    def objection(self, run: Run[SessionState], number: int, by: str) -> str:
        taken = run.state.taken_by
        if number != run.state.desk or taken in ("", by):
            return ""
        return f"{taken} has this conversation. Take it over before you answer."

    def act(self, run: Run[SessionState], name: str, fields: Mapping[str, Any], by: str) -> Fact:
        if name != TAKE:
            raise UsageError(f"A conversation has no action {name!r}; it has: {TAKE}.")
        return SessionTaken(by=by)


class ConversationAudience(AudienceHooks[SessionState]):
    def doubted(self, step: Step[SessionState], number: int) -> None:
        state = step.state
        if number in state.in_doubt:
            passes.after_doubt(step, state.in_doubt[number])
        elif number == state.acting and state.visible:  # a single message, whose answer waits for the person
            say(step, spoken(state, state.definition.checking), passes.CHECKING)

    def public_events(self, record: Record) -> tuple[Notice, ...]:
        return view.notices(record)

    def operator_events(self, record: Record) -> tuple[Notice, ...]:
        return view.remarks(record)


class ConversationStyle(Style[SessionState]):
    name = "conversation"
    view = ConversationView()
    people = ConversationPeople()
    audience = ConversationAudience()
    unforkable = "A session is one conversation with one user, so it cannot be forked. Begin another session."
    default_guards = Guards(patience=0, courtesy="ignore")  # people repeat themselves and say thanks; a pass is bounded
    arguments_type = ChatArguments

    # Folding

    def begin(self, definition: Bot, started: Started) -> SessionState:
        state = SessionState(definition, self.start_arguments(started))
        return replace(state.with_line("user", 1, started.input), unanswered=(1,)) if started.input else state

    def evolve(self, state: SessionState, number: int, event: Event) -> SessionState:
        return folding.evolve(state, number, event)

    def joined(self, state: SessionState, number: int, event: Answered, result: Any) -> SessionState:
        return folding.joined(state, number, event, result)

    # Deciding

    def decide(self, step: Step[SessionState], news: News) -> None:
        match news:
            case Started() if step.state.unanswered:
                passes.begin(step)
            case Started() if not step.state.is_session:
                step.end("failed", "There is no message to answer. Give one as the input, or chat in a session.")
            case Heard(channel=channel):
                if channel == DESK_CHANNEL:
                    return pass_on(step, step.number, passes.DESK)
                return _heard(step, news)
            case Settled():
                return _settled(step, news)
            case ChildSpoke():
                _spoken(step, news)
            case SessionTaken():
                take(step)
            case Resumed() if step.state.continued:
                passes.continue_flow(step)
            case Resumed() if step.state.unanswered or _was_left(step.state):
                passes.begin(step)
        return None

    def cancelled(self, step: Step[SessionState], because: str) -> None:
        step.record(StatusChanged("cancelled", because=because))
        step.end("stopped", because)

    def stopped(self, step: Step[SessionState], verdict: GuardTripped) -> None:
        """A limit that an operator has set: the user hears of it as of any other failure."""
        say(step, step.state.definition.apology, passes.APOLOGY)
        step.record(StatusChanged("cancelled", because=verdict.text))
        step.end_by_guard(verdict)

    # What commands say

    def render(self, state: SessionState, command: AskAgent) -> Prompt:
        return turns.render(state.turn, command, decision_prompt(state, command.longest))

    def arguments(self, state: SessionState, command: CallTool) -> Struct | dict[str, Any]:
        if command.tool == SEARCH and not command.agent:
            bot = state.definition
            return SearchCall(folder=bot.knowledge, query=state.message()[:LONGEST_QUERY], most=bot.passages)
        assert state.action is not None
        try:
            return arguments_of(state, target_of(state.action, state.definition))
        except UnknownTarget:  # the configuration has changed since
            return state.action.params

    def start_child(self, state: SessionState, command: StartRun) -> Child:
        if command.workflow != PLAN:
            return Child(input=state.message() or " ".join(line.text for line in state.lines[-1:]))
        passages = [list(one) for one in state.passages]
        given: dict[str, Any] = {"message": state.message(), "asker": asker(state), "passages": passages}
        if known := known_of(state):
            given["known"] = known
        return Child(arguments=given)

    # What people do

    def listens(self, state: SessionState) -> bool:
        return True

    def pauses(self, run: Run[SessionState]) -> bool:
        return not run.state.is_session  # no user waits for the answer to a single message

    def ending(self, state: SessionState) -> Ending:
        # a single message that is answered stays so
        return Ending(is_resumable=state.is_session or state.status != "ready")

    # What it depends on

    def uses(self, definition: Bot) -> Uses:
        return Uses(
            agents=(AgentUse(ASSISTANT, definition.model), AgentUse(PLANNER, definition.model)),
            children={PLAN: "planning", **{flow.workflow: "" for flow in definition.flows if flow.workflow}},
            endpoints=endpoints_of(definition),
            # knowledge is read only where the user has named the bot: the passages go to a model
            folders=(definition.knowledge,) if definition.knowledge else (),
        )

    # Looking

    def documents(self, run: Run[SessionState]) -> tuple[Document, ...]:
        return (view.session_document(run.state),) if run.state.is_session else ()


def _was_left(state: SessionState) -> bool:
    """Whether the run ended before the message of its last pass was answered."""
    return bool(state.heard) and (state.status == "processing" or not state.is_session)


def _settled(step: Step[SessionState], news: Settled) -> None:
    answer = news.answer
    is_persons = step.state.status == "transferred"
    match news.command:
        case AskAgent():
            passes.after_reply(step, answer)
        case CallTool(tool=tool, agent=agent):
            if tool == SEARCH and not agent:
                if is_persons:
                    return None
                return passes.begin(step) if step.state.superseded else passes.plan_or_go(step)
            if (resolved := step.state.resolved) and resolved.number == news.number:
                return passes.after_resolution(step, resolved, answer)
            passes.after_call(step, answer)
        case StartRun(workflow=workflow, name=name):
            if workflow == PLAN:
                return None if is_persons else passes.after_plan(step, answer, is_shared=bool(name))
            passes.after_flow(step, workflow, answer)
        case SetTimer(name=name) if isinstance(answer, TimerFired):
            _expired(step, name)
        case AskPerson(purpose=purpose) if purpose == HANDOFF_QUESTION:
            answered(step, answer)
        case AnswerChild() if step.state.superseded and not step.state.waits_for_effect:
            passes.begin(step)
    return None


def _heard(step: Step[SessionState], heard: Heard) -> None:
    state = step.state
    cancel_timers(step, "the user said something")
    if state.status == "transferred":
        return None  # it is for the person at the desk
    if state.asking:
        return _answer_flow(step, heard.text)
    if not state.in_pass:
        return passes.begin(step)
    if state.superseded or state.definition.on_new_message == "queue" or passes.flow_of(state, step.number):
        return passes.await_flow(step)
    for number, opened in list(step.run.open.items()):
        if type(opened.command) is AskAgent:
            step.withdraw(number, "superseded by a new message")
    if not state.is_preparing:
        step.record(StatusChanged("cancelled", because=SUPERSEDED))
    step.record(PassSuperseded())
    # a tool or a flow at work is awaited: an effect that the next prompt does not know would be asked for again
    return passes.await_flow(step) if state.waits_for_effect else passes.begin(step)


def _answer_flow(step: Step[SessionState], words: str) -> None:
    state = step.state
    assert state.asks is not None
    try:
        choice = read_answer(state.asks, words).choice
    except UsageError as error:
        return say(step, str(error), passes.FLOW)
    step.ask(AnswerChild(asked=state.asking, choice=choice, about=step.number))
    return passes.await_flow(step)


def _spoken(step: Step[SessionState], spoke: ChildSpoke) -> None:
    ask = spoke.ask
    if ask and step.state.status == "cancelled":
        step.record(StatusChanged("processing"))  # what has superseded the flow's pass waits for its answer
    pass_on(step, step.number, passes.FLOW)
    if ask and ask.choices:
        # a document is edited on the desk, not in a chat
        choices = [(choice, label) for choice, label in ask.choices.items() if choice != ask.edit]
        say(
            step,
            "\n".join(f"- {choice}: {label}" if label else f"- {choice}" for choice, label in choices),
            passes.FLOW,
        )


def _expired(step: Step[SessionState], name: str) -> None:
    if name == passes.PLAN_TIMER:
        passes.plan_is_late(step)
    elif name == passes.FLOW_TIMER:
        passes.flow_is_late(step)
    elif step.state.in_pass:
        step.record(TimerQueued(name=name))
    else:
        passes.fire(step, name)
