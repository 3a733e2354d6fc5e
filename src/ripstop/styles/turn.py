"""A turn of an agent: one question, and as many model calls and tool calls as it takes to answer it.

Every model call and every tool call is a command of its own, so each is durable. A style begins a
turn, hands every event and every settled command to it, and sees only the finished turn.
"""

from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ripstop.kernel.effects import AgentReplied, Answer, AskAgent, CallTool, Failed, text_of
from ripstop.kernel.events import Answered, Asked, Event
from ripstop.kernel.prompt import Message, Prompt
from ripstop.kernel.step import Settled, Step

from .deliveries import Delivery, Edit, WholeFile, deliveries

S = TypeVar("S")

WRITE, EDIT = "write_file", "edit_file"
"""The tools that write what a reply's text delivers."""
LOOKING = ("list_files", "read_file", "search_files")
"""The tools that change nothing."""
ERROR = "Error: "
"""How a result begins that tells an agent what went wrong."""
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


class Finished(Struct, frozen=True, gc=False):
    """The agent has spoken its last word in this turn, or the turn failed."""

    number: int
    """Of the record that holds the last reply; 0 if the turn failed."""
    text: str = ""
    failure: Failed | None = None
    corrections: int = 0
    undelivered: tuple[str, ...] = ()
    """What is wrong with files that the reply meant to deliver."""


class Corrected(Event, tag="corrected", frozen=True):
    """A reply broke the protocol; the agent is asked once more and told what was wrong."""

    number: int
    """Of the record that holds the reply."""
    problem: str


class Denied(Event, tag="denied", frozen=True):
    """A call that this agent may not make. It is not carried out; the agent is told."""

    reply: int
    """Number of the record that holds the reply."""
    index: int
    reason: str


TURN_EVENTS = (Corrected, Denied)


def evolve(turn: Turn | None, number: int, event: Event) -> Turn | None:
    if type(event) is Asked:
        command = event.command
        if type(command) is AskAgent and command.continues is None:
            return Turn(number, command)
        if type(command) is CallTool and turn is not None and command.source is not None:
            return replace(turn, pending={**turn.pending, number: command.source})
    elif turn is None:
        return None
    elif type(event) is Answered:
        if type(event.answer) is AgentReplied:
            said = (Exchange(number, event.answer),)
            return replace(turn, exchanges=turn.exchanges + said)
        if event.to in turn.pending:
            return _with_result(turn, event.to, event.answer)
    elif type(event) is Denied:
        return _with_text(turn, event.reply, event.index, f"{ERROR}{event.reason}")
    elif type(event) is Corrected:
        last = replace(turn.exchanges[-1], correction=event.problem)
        return replace(turn, exchanges=(*turn.exchanges[:-1], last))
    return turn


def _with_result(turn: Turn, to: int, answer: Answer) -> Turn:
    reply, index = turn.pending[to]
    said = f"{ERROR}{answer.reason}" if isinstance(answer, Failed) else text_of(answer)
    pending = {number: source for number, source in turn.pending.items() if number != to}
    return replace(_with_text(turn, reply, index, said), pending=pending)


def _with_text(turn: Turn, reply: int, index: int, said: str) -> Turn:
    exchanges = tuple(
        replace(e, results=(*e.results, (index, said))) if e.number == reply else e for e in turn.exchanges
    )
    return replace(turn, exchanges=exchanges)


def decide(step: Step[S], turn: Turn | None, news: Settled, tools: tuple[str, ...]) -> Finished | None:
    """Go on with the turn; returns it when it is finished. `turn` is the one that `news` led to.

    Files that the text of the last reply delivers are written first, then the turn is finished.
    """
    if turn is None:
        return None
    answer = news.answer
    if type(news.command) is CallTool:
        return None if turn.pending else _after_tools(step, turn)
    if type(answer) is Failed:
        return Finished(0, failure=answer)
    if type(answer) is not AgentReplied:
        return None
    if not answer.calls:
        found = deliveries(answer.text)
        return None if found and _deliver(step, turn, found, tools) else _finished(turn)
    if len(turn.exchanges) >= MAX_CALLS:
        problem = f"agent {turn.ask.agent!r} has made {MAX_CALLS} calls in one turn and is not done"
        return Finished(0, failure=Failed(reason=problem, fault="agent"))
    _call_tools(step, turn, answer, tools)
    return None


def _call_tools(step: Step[S], turn: Turn, reply: AgentReplied, tools: tuple[str, ...]) -> None:
    number = turn.exchanges[-1].number  # not the step's: a fork decides on a reply that stands before its own record
    asked = False
    for index, call in enumerate(reply.calls):
        if call.tool in tools:
            step.ask(CallTool(tool=call.tool, agent=turn.ask.agent, source=(number, index)))
            asked = True
        else:
            may = ", ".join(tools) or "none"
            reason = f"agent {turn.ask.agent!r} may not call {call.tool!r}; it may call: {may}"
            step.record(Denied(reply=number, index=index, reason=reason))
    if not asked:
        ask_on(step, turn)


def _deliver(step: Step[S], turn: Turn, found: list[Delivery], tools: tuple[str, ...]) -> bool:
    """Have the files written that a reply's text delivers; false if none of them may be."""
    number, asked = turn.exchanges[-1].number, False
    for index, item in enumerate(found):
        tool = WRITE if isinstance(item, WholeFile) else EDIT
        if not item.complete:
            step.warn(f"the reply ends in the middle of {item.path!r}")
        if isinstance(item, Edit) and not item.complete:
            reason = f"the edit of {item.path!r} is cut off, so it was not made"
            step.record(Denied(reply=number, index=index, reason=reason))
        elif tool in tools:
            step.ask(CallTool(tool=tool, agent=turn.ask.agent, source=(number, index)))
            asked = True
        else:
            reason = f"agent {turn.ask.agent!r} may not write files, so {item.path!r} was not written"
            step.record(Denied(reply=number, index=index, reason=reason))
            step.warn(reason)
    return asked


def _after_tools(step: Step[S], turn: Turn) -> Finished | None:
    if turn.exchanges[-1].reply.calls:
        ask_on(step, turn)
        return None
    return _finished(turn)


def _finished(turn: Turn) -> Finished:
    last = turn.exchanges[-1]
    wrong: tuple[str, ...] = ()
    if last.results:
        wrong = tuple([said.removeprefix(ERROR) for _, said in last.results if said.startswith(ERROR)])
    corrections = 0
    for exchange in turn.exchanges:
        if exchange.correction:
            corrections += 1
    return Finished(last.number, last.reply.text, None, corrections, wrong)


def correct(step: Step[S], turn: Turn, finished: Finished, problem: str) -> None:
    """Ask the agent once more, saying what was wrong."""
    step.record(Corrected(number=finished.number, problem=problem))
    ask_on(step, turn)


def deeds(turn: Turn) -> list[tuple[str, Any]]:
    """What a turn did: which tools it called with what. Calls that only read, or went wrong, are left out."""
    done: list[tuple[str, Any]] = []
    for exchange in turn.exchanges:
        if not exchange.results:
            continue
        for index, result in sorted(exchange.results):
            if result.startswith(ERROR):
                continue
            calls = exchange.reply.calls
            if not calls:
                done.append(_delivery(exchange.reply.text, index))
            elif calls[index].tool not in LOOKING:
                done.append((calls[index].tool, calls[index].arguments))
    return done


def ask_on(step: Step[S], turn: Turn) -> None:
    context = (turn.number, *(exchange.number for exchange in turn.exchanges))
    step.ask(replace(turn.ask, context=context, continues=turn.number, max_tokens=None))


def render(turn: Turn | None, ask: AskAgent, first: Prompt) -> Prompt:
    """The prompt of a call: the turn's first prompt, and all that was said since."""
    if turn is None or ask.continues is None:
        return first
    messages = list(first.messages)
    for exchange in turn.exchanges:
        messages.append(Message(role="assistant", text=exchange.reply.text, calls=exchange.reply.calls))
        if exchange.reply.calls:  # files in the text were written too, but nobody called a tool for them
            for index, result in sorted(exchange.results):
                messages.append(Message(role="tool", text=result, call_id=exchange.reply.calls[index].id))
        if exchange.correction:
            messages.append(Message(role="user", text=exchange.correction))
    return replace(first, messages=tuple(messages))


def arguments(turn: Turn | None, command: CallTool) -> dict[str, Any]:
    """What a tool is called with: the command's own arguments, or those in the reply it names."""
    if command.arguments is not None:
        return command.arguments
    assert turn is not None
    assert command.source is not None
    number, index = command.source
    reply = next(exchange.reply for exchange in turn.exchanges if exchange.number == number)
    if reply.calls:
        return reply.calls[index].arguments
    return _delivery(reply.text, index)[1]


def _delivery(text: str, index: int) -> tuple[str, dict[str, Any]]:
    """The tool that a file in the text of a reply is written with, and what with."""
    item = deliveries(text)[index]
    if isinstance(item, WholeFile):
        return WRITE, {"path": item.path, "content": item.content}
    return EDIT, {"path": item.path, "search": item.search, "replace": item.replace}
