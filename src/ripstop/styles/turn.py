"""A turn of an agent: one question, and as many model calls and tool calls as it takes to answer it.

Every model call and every tool call is a command of its own, so each is durable. A style begins a
turn, hands every event and every settled command to it, and sees only the finished turn.
"""

from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ripstop.kernel.effects import AgentReplied, Answer, AskAgent, CallTool, Failed, ToolCall, text_of
from ripstop.kernel.events import Answered, Asked, Event
from ripstop.kernel.prompt import Message, Prompt
from ripstop.kernel.step import Settled, Step

S = TypeVar("S")

MAX_CALLS = 40
"""Model calls in one turn. An agent that has not finished by then never will."""


class Exchange(Struct, frozen=True, gc=False):
    """A reply that did not end the turn, and what came back to the agent."""

    number: int
    """Of the record that holds the reply."""
    reply: AgentReplied
    results: tuple[tuple[int, str], ...] = ()
    """(index of the call, its result as text), in the order in which they came."""
    correction: str = ""
    """What was wrong with the reply, if the agent was asked again."""


class Turn(Struct, frozen=True, gc=False):
    """A turn under way. Its first command is `number`."""

    number: int
    ask: AskAgent
    exchanges: tuple[Exchange, ...] = ()
    pending: dict[int, tuple[int, int]] = {}
    """Open tool commands → (exchange, index of the call)."""


class Finished(Struct, frozen=True):
    """The agent has spoken its last word in this turn, or the turn failed."""

    number: int
    """Of the record that holds the last reply, or the failure."""
    text: str = ""
    failure: Failed | None = None
    corrections: int = 0


class Corrected(Event, tag="corrected", frozen=True):
    """A reply broke the protocol; the agent is asked once more and told what was wrong."""

    number: int
    """Of the record that holds the reply."""
    problem: str


TURN_EVENTS = (Corrected,)


def evolve(turn: Turn | None, number: int, event: Event) -> Turn | None:
    if isinstance(event, Asked):
        command = event.command
        if isinstance(command, AskAgent) and command.continues is None:
            return Turn(number, command)
        if isinstance(command, CallTool) and turn is not None and command.source is not None:
            return replace(turn, pending={**turn.pending, number: command.source})
    elif turn is None:
        return None
    elif isinstance(event, Answered):
        if isinstance(event.answer, AgentReplied):
            return replace(turn, exchanges=(*turn.exchanges, Exchange(number, event.answer)))
        if event.to in turn.pending:
            return _with_result(turn, event.to, event.answer)
    elif isinstance(event, Corrected):
        last = replace(turn.exchanges[-1], correction=event.problem)
        return replace(turn, exchanges=(*turn.exchanges[:-1], last))
    return turn


def _with_result(turn: Turn, to: int, answer: Answer) -> Turn:
    reply, index = turn.pending[to]
    said = f"Error: {answer.reason}" if isinstance(answer, Failed) else text_of(answer)
    exchanges = tuple(
        replace(e, results=(*e.results, (index, said))) if e.number == reply else e for e in turn.exchanges
    )
    pending = {number: source for number, source in turn.pending.items() if number != to}
    return replace(turn, exchanges=exchanges, pending=pending)


def decide(step: Step[S], turn: Turn | None, news: Settled) -> Finished | None:
    """Go on with the turn; returns it when it is finished. `turn` is the one that `news` led to."""
    if turn is None:
        return None
    reply = news.answer
    if isinstance(reply, AgentReplied) and not reply.calls:
        return Finished(step.number, reply.text, corrections=_corrections(turn))
    match news:
        case Settled(command=AskAgent(), answer=AgentReplied() as reply):
            if len(turn.exchanges) >= MAX_CALLS:
                problem = f"agent {turn.ask.agent!r} has made {MAX_CALLS} calls in one turn and is not done"
                return Finished(step.number, failure=Failed(reason=problem, fault="agent"))
            number = step.number
            for index, call in enumerate(reply.calls):
                step.ask(CallTool(tool=call.tool, agent=turn.ask.agent, source=(number, index)))
        case Settled(command=AskAgent(), answer=Failed() as failure):
            return Finished(step.number, failure=failure)
        case Settled(command=CallTool()) if not turn.pending:
            ask_on(step, turn)
    return None


def correct(step: Step[S], turn: Turn, finished: Finished, problem: str) -> None:
    """Ask the agent once more, saying what was wrong."""
    step.record(Corrected(number=finished.number, problem=problem))
    ask_on(step, turn)


def ask_on(step: Step[S], turn: Turn) -> None:
    context = (turn.number, *(exchange.number for exchange in turn.exchanges))
    step.ask(replace(turn.ask, context=context, continues=turn.number, max_tokens=None))


def _corrections(turn: Turn) -> int:
    return sum(bool(exchange.correction) for exchange in turn.exchanges)


def render(turn: Turn | None, ask: AskAgent, first: Prompt) -> Prompt:
    """The prompt of a call: the turn's first prompt, and all that was said since."""
    if turn is None or ask.continues is None:
        return first
    messages = list(first.messages)
    for exchange in turn.exchanges:
        messages.append(Message(role="assistant", text=exchange.reply.text, calls=exchange.reply.calls))
        for index, result in sorted(exchange.results):
            messages.append(Message(role="tool", text=result, call_id=exchange.reply.calls[index].id))
        if exchange.correction:
            messages.append(Message(role="user", text=exchange.correction))
    return replace(first, messages=tuple(messages))


def arguments(turn: Turn | None, command: CallTool) -> dict[str, Any]:
    """What a tool is called with: the command's own arguments, or those in the reply it names."""
    if command.arguments is not None:
        return command.arguments
    return _call(turn, command).arguments


def _call(turn: Turn | None, command: CallTool) -> ToolCall:
    assert turn is not None
    assert command.source is not None
    number, index = command.source
    return next(e.reply.calls[index] for e in turn.exchanges if e.number == number)
