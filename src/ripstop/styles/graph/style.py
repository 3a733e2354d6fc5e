"""The graph style: which state is next, and when it ends.

After every turn, in this order:

1. The reply is read ("files first, JSON last"). One without `decisions` breaks the protocol: the agent is
   asked once more and told what was wrong, then the run has an error.
2. Exit conditions are checked, the turn limit always among them. After the last allowed turn a
   transition to `END` that holds still counts as completed.
3. Transitions are tried in order; the first that holds is taken. None at all, or none that holds: the end.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ripstop.kernel.effects import AskAgent, CallTool
from ripstop.kernel.errors import Unworkable
from ripstop.kernel.events import Asked, Event, Forked, Guarded, Started
from ripstop.kernel.prompt import Message, Prompt
from ripstop.kernel.run import Run
from ripstop.kernel.step import News, Picture, Settled, Step

from .. import condition, reply, template
from .. import turn as turns
from ..turn import Finished, Turn
from .definition import END, Graph, State, Transition
from .guide import GUIDE
from .schema import reply_schema

REASKS = 1
"""How often an agent is asked again when its reply cannot be read."""

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


class Spoke(Event, tag="graph.spoke"):
    """A turn is over: the reply in record `number` holds its decisions."""

    number: int


class Moved(Event, tag="graph.moved"):
    to: str
    via: int
    """Index of the transition in the state that was left."""


GRAPH_EVENTS: tuple[type[Event], ...] = (Spoke, Moved, *turns.TURN_EVENTS)


class Word(Struct, frozen=True):
    """What the agent before said."""

    agent: str = ""
    content: str = ""
    decisions: dict[str, Any] = {}
    number: int = 0


class Position(Struct, frozen=True):
    graph: Graph
    goal: str
    at: str
    turns: int = 0
    counts: dict[str, int] = {}
    last: Word = Word()
    turn: Turn | None = None


class GraphStyle:
    name = "graph"

    # Folding

    def begin(self, definition: Graph, started: Started) -> Position:
        return Position(definition, started.input or definition.initial_message, definition.start)

    def rebase(self, state: Position, definition: Graph) -> Position:
        return replace(state, graph=definition)

    def evolve(self, state: Position, number: int, event: Event) -> Position:
        turn = turns.evolve(state.turn, number, event)
        match event:
            case Asked(command=AskAgent(continues=None)):
                counts = {**state.counts, state.at: state.counts.get(state.at, 0) + 1}
                return replace(state, turn=turn, turns=state.turns + 1, counts=counts)
            case Spoke(number=spoken) if turn is not None:
                content, decisions = read_reply(turn.exchanges[-1].reply.text)
                return replace(state, turn=None, last=Word(turn.ask.agent, content, decisions, spoken))
            case Moved(to=to):
                return replace(state, at=to, turn=turn)
        return state if turn is state.turn else replace(state, turn=turn)

    # Deciding

    def decide(self, step: Step[Position], news: News) -> None:
        match news:
            case Started():
                _give_turn(step)
            case Forked():
                if step.state.graph.state(step.state.at) is None:
                    raise Unworkable(
                        f"the new definition has no state {step.state.at!r}, in which the forked run stands"
                    )
                _give_turn(step)
            case Settled():
                finished = turns.decide(step, step.state.turn, news)
                if finished:
                    _after_turn(step, finished)

    # Looking

    def render(self, state: Position, command: AskAgent) -> Prompt:
        here = _here(state)
        text = template.render(template.parse(here.prompt, VARIABLES), _values(state))
        first = Prompt(messages=(Message(role="user", text=text),), schema=reply_schema(here))
        return turns.render(state.turn, command, first)

    def arguments(self, state: Position, command: CallTool) -> dict[str, Any]:
        return turns.arguments(state.turn, command)

    def listens(self, state: Position) -> bool:
        return False

    def picture(self, run: Run[Position]) -> Picture:
        state = run.state
        return Picture(
            where=state.at,
            whose_turn="" if run.ended else _here(state).agent,
            progress=f"turn {state.turns} of at most {state.graph.max_turns}",
            document=state.last.content,
        )


@lru_cache(maxsize=64)
def read_reply(text: str) -> tuple[str, dict[str, Any]]:
    """What an agent said and decided. Raises `reply.NoReply`."""
    found, rest = reply.last(text, "decisions")
    decisions = found["decisions"]
    if not isinstance(decisions, dict):
        raise reply.NoReply(f"\"decisions\" is {_kind(decisions)}; it must be an object such as {{\"approved\": true}}")
    content = found.get("content", rest)
    return (content if isinstance(content, str) else msgspec.json.encode(content).decode()), decisions


def _kind(value: Any) -> str:
    return {list: "a list", str: "a text", bool: "a boolean", type(None): "null"}.get(type(value), "a number")


def _here(state: Position) -> State:
    here = state.graph.state(state.at)
    assert here is not None, state.at
    return here


def _values(state: Position) -> Mapping[str, str]:
    return {
        "initial_message": state.goal,
        "last_agent_name": state.last.agent,
        "last_agent_content": state.last.content,
        "last_agent_decisions": msgspec.json.encode(state.last.decisions).decode(),
        "COLLABORATION_GUIDE": state.graph.guide or GUIDE,
        "turn_count": str(state.turns),
    }


def _give_turn(step: Step[Position]) -> None:
    here = _here(step.state)
    agent = step.state.graph.agent(here.agent)
    last = step.state.last.number
    step.ask(AskAgent(agent=here.agent, kind=agent.type if agent else "", context=(1, last) if last else (1,)))


def _after_turn(step: Step[Position], finished: Finished) -> None:
    if finished.failure:
        return _error(step, finished.failure.reason)
    try:
        read_reply(finished.text)
    except reply.NoReply as problem:
        turn = step.state.turn
        assert turn is not None
        if finished.corrections < REASKS:
            return turns.correct(step, turn, finished, _correction(str(problem)))
        return _error(step, f"agent {turn.ask.agent!r} broke the protocol: {problem}")
    step.record(Spoke(number=finished.number))
    _follow(step)


def _correction(problem: str) -> str:
    return (
        f"Your reply could not be used: {problem}. Answer again. End with one JSON object and nothing after it, "
        'like {"content": "what you did", "decisions": {…}}, with the decision fields that the task asks for.'
    )


def _follow(step: Step[Position]) -> None:
    graph, here = step.state.graph, _here(step.state)
    taken = _first_that_holds(step, here)
    exceeded = step.state.turns >= graph.max_turns
    for exit_condition in graph.exit_conditions:
        if _holds(step, exit_condition.condition) and not exceeded:
            return step.end("stopped", f"exit condition {exit_condition.condition!r} holds ({exit_condition.action})")
    if taken is None:
        return step.end("completed", _why_no_transition(here))
    index, transition = taken
    if transition.to == END:
        return step.end("completed", f"{here.name} → END: {transition.condition or 'always'}")
    if exceeded:
        text = f"{step.state.turns} turns were taken, which is all that max_turns allows."
        return step.stop(Guarded(guard="max_turns", limit=graph.max_turns, value=step.state.turns, text=text))
    step.record(Moved(to=transition.to, via=index))
    _give_turn(step)


def _first_that_holds(step: Step[Position], here: State) -> tuple[int, Transition] | None:
    for index, transition in enumerate(here.transitions):
        if _holds(step, transition.condition):
            return index, transition
    return None


def _why_no_transition(here: State) -> str:
    if not here.transitions:
        return f"{here.name} has no transitions, so it leads to END"
    return f"none of the {len(here.transitions)} transitions of {here.name} holds"


def _holds(step: Step[Position], source: str) -> bool:
    missing: list[str] = []
    value = bool(condition.evaluate(condition.parse(source), lookup(step.state, missing)))
    for name in missing:
        step.warn(f"decision {name!r} is missing; {source!r} takes it as false")
    return value


def lookup(state: Position, missing: list[str] | None = None, error: bool = False) -> Callable[[str], Any]:
    """Names in conditions: the agent's decisions first, then what the engine knows."""

    def value(name: str) -> Any:
        if name in state.last.decisions:
            return state.last.decisions[name]
        match name:
            case "max_turns_exceeded":
                return state.turns >= state.graph.max_turns
            case "error_occurred":
                return error
            case "turns" | "turn_count":
                return state.turns
        if name.startswith("turn_count_"):
            return state.counts.get(name.removeprefix("turn_count_"), 0)
        if missing is not None:
            missing.append(name)
        return condition.MISSING

    return value


def _error(step: Step[Position], reason: str) -> None:
    """Something went wrong that nobody handles: the exit conditions are told, and the run fails."""
    for exit_condition in step.state.graph.exit_conditions:
        if condition.evaluate(condition.parse(exit_condition.condition), lookup(step.state, error=True)):
            return step.end("failed", f"{reason} (error_occurred → {exit_condition.action})")
    step.end("failed", reason)
