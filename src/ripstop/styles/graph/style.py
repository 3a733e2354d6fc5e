"""The graph style: which state is next, and when it ends.

After every turn, in this order:

1. The reply is read ("files first, JSON last"). One without `decisions` breaks the protocol: the agent is
   asked once more and told what was wrong, then the run has an error.
2. Exit conditions are checked, the turn limit always among them. After the last allowed turn a
   transition to `END` that holds still counts as completed.
3. Transitions are tried in order; the first that holds is taken. None at all, or none that holds: the end.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ripstop.kernel import progress
from ripstop.kernel.effects import AskAgent, CallTool, Guards
from ripstop.kernel.errors import Unworkable
from ripstop.kernel.events import RESUME, Event, Forked, Guarded, Ordered, Started
from ripstop.kernel.going_on import with_wishes
from ripstop.kernel.prompt import Message, Prompt
from ripstop.kernel.run import Run
from ripstop.kernel.step import News, Picture, Settled, Step

from .. import condition, reply, template
from .. import turn as turns
from ..turn import Finished, Turn
from .definition import END, SAVE, Agent, ExitCondition, Graph, State, Transition
from .events import Saved, Turned
from .explanation import explain_turn
from .guide import GUIDES
from .roles import instructions_for, model_of, tools_of
from .schema import reply_schema

NOT_THERE = -1
"""The line of a state that a fork's new definition no longer has."""

VARIABLES = frozenset(
    {
        "initial_message",
        "last_agent_name",
        "last_agent_content",
        "last_agent_decisions",
        "COLLABORATION_GUIDE",
        "turn_count",
    }
)


class Word(Struct, frozen=True, gc=False):
    """What the agent before said."""

    agent: str = ""
    content: str = ""
    decisions: dict[str, Any] = {}
    number: int = 0


class Position(Struct, frozen=True, gc=False):
    graph: Graph
    goal: str
    here: State
    agent: Agent
    """Whose turn it is in `here`."""
    turns: int = 0
    counts: dict[str, int] = {}
    last: Word = Word()
    turn: Turn | None = None
    saved: bool = False
    allowance: int = 0
    """Turns that may have been taken in all, once a saved run was resumed; 0: as many as `max_turns`."""

    @property
    def most_turns(self) -> int:
        return self.allowance or self.graph.max_turns


class GraphStyle:
    name = "graph"
    unforkable = ""

    # Folding

    def guards(self, definition: Graph, wishes: Mapping[str, Any]) -> Guards:
        return with_wishes(Guards(), wishes, definition.guards)

    def begin(self, definition: Graph, started: Started) -> Position:
        start = definition.state(definition.start)
        assert start is not None, definition.start  # the definition was checked
        return Position(definition, started.input or definition.initial_message, start, _agent(definition, start))

    def rebase(self, state: Position, definition: Graph) -> Position:
        here = definition.state(state.here.name) or replace(state.here, line=NOT_THERE)
        agent = definition.agent(here.agent) or state.agent
        return replace(state, graph=definition, here=here, agent=agent)

    def evolve(self, state: Position, number: int, event: Event) -> Position:
        if type(event) is Turned:
            assert state.turn is not None
            word = _word(state.turn, event.reply)
            if event.to in ("", END):
                return replace(state, turn=None, last=word)
            here = state.graph.state(event.to)
            assert here is not None, event.to  # the definition was checked
            return replace(state, turn=None, last=word, here=here, agent=_agent(state.graph, here))
        if type(event) is Saved:
            return replace(state, saved=True)
        if type(event) is Ordered and event.order == RESUME:
            more = int(event.arguments.get("raise", {}).get("turns", 0))
            allowance = state.turns + (more or state.graph.max_turns) if state.saved else state.most_turns + more
            return replace(state, saved=False, turn=None, allowance=allowance)
        turn = turns.evolve(state.turn, number, event)
        if turn is state.turn:
            return state
        if turn is not None and turn.number == number:
            name = state.here.name
            counts = {**state.counts, name: state.counts.get(name, 0) + 1}
            return replace(state, turn=turn, turns=state.turns + 1, counts=counts)
        return replace(state, turn=turn)

    # Deciding

    def decide(self, step: Step[Position], news: News) -> None:
        match news:
            case Settled():
                finished = turns.decide(step, step.state.turn, news, tools_of(step.state.agent))
                if finished:
                    _after_turn(step, finished)
            case Started():
                _give_turn(step)
            case Forked():
                name = step.state.here.name
                if step.state.here.line == NOT_THERE:
                    raise Unworkable(f"The new definition has no state {name!r}, in which the forked run stands.")
                _give_turn(step)
            case Ordered(order=order) if order == RESUME:
                _give_turn(step)

    def cancelled(self, step: Step[Position], because: str) -> None:
        step.end("stopped", because)

    def stopped(self, step: Step[Position], verdict: Guarded) -> None:
        step.end_by_guard(verdict)

    # Looking

    def render(self, state: Position, command: AskAgent) -> Prompt:
        here = state.here
        text = template.render(template.parse(here.prompt, VARIABLES), _values(state))
        agent = state.agent
        told = Message(role="system", text=instructions_for(agent, state.graph.language))
        first = Prompt(
            messages=(told, Message(role="user", text=text)), tools=tools_of(agent), schema=reply_schema(here)
        )
        return turns.render(state.turn, command, first)

    def arguments(self, state: Position, command: CallTool) -> dict[str, Any]:
        return turns.arguments(state.turn, command)

    def listens(self, state: Position) -> bool:
        return False

    def resumable(self, state: Position) -> bool:
        return state.saved

    def picture(self, run: Run[Position]) -> Picture:
        state = run.state
        return Picture(
            where=state.here.name,
            whose_turn="" if run.ended else state.here.agent,
            progress=f"turn {state.turns} of at most {state.most_turns}",
            document=state.last.content,
        )

    def explain(self, before: Position, event: Event) -> list[str]:
        if not isinstance(event, Turned) or before.turn is None:
            return []
        return explain_turn(before.graph, before.here, event, lookup(_heard(before, event.reply)))


def _heard(state: Position, number: int) -> Position:
    """The position with the reply in record `number` as the last word, as conditions see it."""
    assert state.turn is not None
    return replace(state, last=_word(state.turn, number))


def _word(turn: Turn, number: int) -> Word:
    content, decisions = reply.decided(turn.exchanges[-1].reply.text)
    return Word(turn.ask.agent, content, decisions, number)


def _values(state: Position) -> Mapping[str, str]:
    return {
        "initial_message": state.goal,
        "last_agent_name": state.last.agent,
        "last_agent_content": state.last.content,
        "last_agent_decisions": msgspec.json.encode(state.last.decisions).decode(),
        "COLLABORATION_GUIDE": state.graph.guide or GUIDES[state.graph.language],
        "turn_count": str(state.turns),
    }


def _give_turn(step: Step[Position]) -> None:
    state = step.state
    agent, last = state.agent, state.last.number
    context = (1, last) if last else (1,)
    step.ask(AskAgent(agent=agent.name, kind=agent.type, model=model_of(agent), context=context))


def _agent(graph: Graph, here: State) -> Agent:
    agent = graph.agent(here.agent)
    assert agent is not None, here.agent  # the definition was checked
    return agent


def _after_turn(step: Step[Position], finished: Finished) -> None:
    if finished.failure:
        return _error(step, finished.failure.reason)
    try:
        reply.decided(finished.text)
    except reply.NoReply as problem:
        turn = step.state.turn
        assert turn is not None
        if finished.corrections < step.state.graph.reasks:
            return turns.correct(step, turn, finished, _correction(str(problem)))
        return _error(step, f"agent {turn.ask.agent!r} broke the protocol: {problem}")
    for reason in finished.undelivered:
        step.warn(f"a file was not delivered: {reason}")
    _follow(step, finished)


def _correction(problem: str) -> str:
    return (
        f"Your reply could not be used: {problem}. Answer again. End with one JSON object and nothing after it, "
        'like {"content": "what you did", "decisions": {…}}, with the decision fields that the task asks for.'
    )


def _follow(step: Step[Position], finished: Finished) -> None:
    state = step.state
    graph, here = state.graph, state.here
    heard = _heard(state, finished.number)
    missing: list[str] = []
    known = lookup(heard, missing)
    index, transition = _first_that_holds(here, known)
    exit_condition = _exit_that_holds(graph, known)
    if missing and graph.strict_decisions:
        names = ", ".join(repr(name) for name in dict.fromkeys(missing))
        return _error(step, f"the decisions of {here.name} lack {names} (strict_decisions)")
    step.record(_turned(step, finished, heard.last, transition.to if transition else "", index))
    for name in dict.fromkeys(missing):
        step.warn(f"decision {name!r} is missing; conditions of {here.name} take it as false")
    exceeded = heard.turns >= heard.most_turns
    if exit_condition and not exceeded:
        reason = f"exit condition {exit_condition.condition!r} holds ({exit_condition.action})"
        return _leave(step, "stopped", reason, exit_condition)
    if transition is None:
        return step.end("completed", _why_no_transition(here))
    if transition.to == END:
        return step.end("completed", f"{here.name} → END: {transition.condition or 'always'}")
    if exceeded:
        return _leave_at_limit(step, heard, exit_condition)
    _give_turn(step)


def _turned(step: Step[Position], finished: Finished, word: Word, to: str, via: int) -> Turned:
    turn, guards = step.state.turn, step.run.guards
    assert turn is not None
    done = turns.deeds(turn)
    deed = progress.mark(word.decisions, done) if word.decisions or done else progress.NOTHING
    return Turned(
        reply=finished.number,
        to=to,
        via=via,
        agent=word.agent,
        deed=deed,
        courteous=progress.courteous(word.content, guards),
        marked=progress.marked(word.content, guards),
    )


def _leave(step: Step[Position], outcome: str, because: str, exit_condition: ExitCondition | None) -> None:
    """End the run; saved, so that it can be resumed, if the exit condition says so."""
    if exit_condition and exit_condition.action == SAVE:
        step.record(Saved(because=because))
        because = f"{because} Saved: `ripstop resume {step.run.id}` goes on from here."
    step.end(outcome, because)


def _leave_at_limit(step: Step[Position], heard: Position, exit_condition: ExitCondition | None) -> None:
    text = f"{heard.turns} turns were taken, which is all that max_turns allows."
    verdict = Guarded(guard="max_turns", limit=heard.most_turns, value=heard.turns, text=text)
    if exit_condition is None:
        step.stop(verdict)
    step.record(verdict)
    _leave(step, "limit", text, exit_condition)


def _first_that_holds(here: State, known: Callable[[str], Any]) -> tuple[int, Transition | None]:
    for index, transition in enumerate(here.transitions):
        if _holds(transition.condition, known):
            return index, transition
    return -1, None


def _exit_that_holds(graph: Graph, known: Callable[[str], Any]) -> ExitCondition | None:
    for exit_condition in graph.exit_conditions:
        if _holds(exit_condition.condition, known):
            return exit_condition
    return None


def _why_no_transition(here: State) -> str:
    if not here.transitions:
        return f"{here.name} has no transitions, so it leads to END"
    return f"none of the {len(here.transitions)} transitions of {here.name} holds"


def _holds(source: str, known: Callable[[str], Any]) -> bool:
    return bool(condition.evaluate(condition.parse(source), known))


def lookup(state: Position, missing: list[str] | None = None, error: bool = False) -> Callable[[str], Any]:
    """Names in conditions: the agent's decisions first, then what the engine knows."""

    decisions = state.last.decisions

    def value(name: str) -> Any:
        return decisions[name] if name in decisions else _known(state, name, missing, error)

    return value


def _known(state: Position, name: str, missing: list[str] | None, error: bool) -> Any:
    match name:
        case "max_turns_exceeded":
            return state.turns >= state.most_turns
        case "error_occurred":
            return error
        case "turns" | "turn_count":
            return state.turns
    if name.startswith("turn_count_"):
        return state.counts.get(name.removeprefix("turn_count_"), 0)
    if missing is not None:
        missing.append(name)
    return condition.MISSING


def _error(step: Step[Position], reason: str) -> None:
    """Something went wrong that nobody handles: the exit conditions are told, and the run fails."""
    known = lookup(step.state, error=True)
    exit_condition = _exit_that_holds(step.state.graph, known)
    if exit_condition:
        reason = f"{reason} (error_occurred → {exit_condition.action})."
    _leave(step, "failed", reason, exit_condition)
