"""A turn of an agent: one question, and as many model calls and tool calls as it takes to answer it.

Every model call and every tool call is a separate command, so each is durable. A style begins a
turn, hands every event and every settled command to it, and sees only the finished turn.

The operations of a reply (`reply_operations.py`) take effect in their order: the next one is asked for when the one
before is answered, however that went. Only adjacent calls of tools that change nothing are open side by side.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ripstop.kernel.effects import AgentReplied, Answer, AskAgent, CallTool, Failed, Guards, ToolReturned
from ripstop.kernel.events import Answered, Asked, Event, GuardTripped
from ripstop.kernel.prompt import Prompt, estimate, permits
from ripstop.kernel.step import Step
from ripstop.kernel.style import Settled, Style, StyleView
from ripstop.text.courtesy import check_phrases
from ripstop.text.plurals import count

from .partial_reply import UnfinishedReply
from .reply_files import Edit, Unclear, WholeFile, deliveries
from .reply_operations import (
    ERROR,
    WRITE,
    Exchange,
    Operation,
    in_order,
    operation,
    operation_after,
)
from .shortening import (
    LONGEST_RESULT,
    Shortening,
    after_refusal,
    as_text,
    first_prompt,
    messages_of,
    near_window,
    shortened,
)
from .undelivered_files import FileResults, correction, repeated_edit

S = TypeVar("S")

MAX_PARTS = 5
"""Parts of one reply. A model that reaches its limit of length so often does not come to an end."""
MAX_MALFORMED = 3
"""Replies in a row with calls whose arguments cannot be read."""
GO_ON = (
    "Your reply was cut off, because it had reached the limit of length. Go on exactly where it ends: "
    "repeat nothing, and explain nothing."
)

MAX_NAMED = 10
"""Missing files that the error of a turn names."""


class Turn(Struct, frozen=True, gc=False):
    """A turn under way. Its first command is `number`."""

    number: int
    ask: AskAgent
    exchanges: tuple[Exchange, ...] = ()
    pending: dict[int, tuple[int, int]] = {}
    """Tool commands without an answer → (exchange, index of the operation). A stop of the run cuts them off."""

    @property
    def has_operations(self) -> bool:
        """Whether a tool was called, or is to be. Such a turn is continued: begun again, it could do things twice."""
        return any(exchange.reply.calls or exchange.last >= 0 for exchange in self.exchanges)


class FinishedTurn(Struct, frozen=True, gc=False):
    """The agent has spoken its last word in this turn, or the turn failed."""

    number: int
    """Of the record that holds the last reply; 0 if the turn failed."""
    text: str = ""
    failure: Failed | None = None
    corrections: int = 0
    undelivered: tuple[str, ...] = ()
    """Files that could not be written, each with the reason."""
    written: tuple[str, ...] = ()
    """Paths of the files in the text of replies that were written."""
    left_undone: tuple[str, ...] = ()
    """Tool calls that were denied or failed, and that the agent has not made good although it knows."""
    recorded: bool = False
    """The reply comes from a recording, so asking again cannot change it."""

    @property
    def must_be_repeated(self) -> bool:
        """Whether files are missing that the agent can still send."""
        return bool(self.undelivered) and not self.recorded

    def about_files(self) -> str:
        """What the agent is told about its files if it is asked again; empty if it has sent none."""
        return correction(self.undelivered, self.written)

    def why_incomplete(self, agent: str) -> str:
        """The error of a turn whose files are still missing."""
        return f"agent {agent!r} did not deliver all its files: {'; '.join(self.undelivered[:MAX_NAMED])}"


class Corrected(Event, tag="turn.corrected", frozen=True):
    """A reply broke the protocol; the agent is asked once more and told what was wrong."""

    is_trouble: ClassVar[bool] = True
    number: int
    """Of the record that holds the reply."""
    problem: str
    goes_on: bool = False
    """The reply was only cut off: the next one is the rest of it."""


class Denied(Event, tag="turn.denied", frozen=True):
    """A call that this agent may not make. It is not performed; the agent is told."""

    is_trouble: ClassVar[bool] = True
    reply: int
    """Number of the record that holds the reply."""
    index: int
    reason: str


class Shortened(Event, tag="turn.shortened", frozen=True):
    """Older texts of the turn are shortened in its prompts from now on: results, replies, arguments of calls; or, if
    that is not enough, the texts that it was given in its first prompt."""

    is_trouble: ClassVar[bool] = True
    agent: str
    number: int
    """Of the record with the last reply that is concerned; all before it are, too. 0: of the first prompt."""
    because: str
    longest: int
    """Characters that each text keeps."""
    tokens: int
    """Of the prompt as it would have been, estimated."""
    left: int
    """Of the prompt as it is now."""
    given: bool = False
    """Whether it is the texts which the turn was given in its first prompt that are shortened."""


TURN_EVENTS = (Corrected, Denied, Shortened)
"""For the kit of every style that uses turns."""


def evolve(turn: Turn | None, number: int, event: Event) -> Turn | None:
    if type(event) is Asked:
        command = event.command
        if type(command) is AskAgent and command.continues is None:
            return Turn(number, command)
        if type(command) is CallTool and turn is not None and command.source is not None:
            reply, index = command.source
            others = {asked: source for asked, source in turn.pending.items() if source != command.source}
            if len(others) == len(turn.pending):  # else it was cut off, and is asked for again
                turn = _with_exchange(turn, reply, last=index)
            return replace(turn, pending={**others, number: command.source})
    elif turn is None:
        return None
    elif type(event) is Answered:
        if type(event.answer) is AgentReplied:
            return _with_reply(turn, number, event.answer)
        if event.to in turn.pending:
            return _with_answer(turn, event.to, event.answer)
    else:
        return _with_decision(turn, event)
    return turn


def _with_decision(turn: Turn, event: Event) -> Turn:
    if type(event) is Denied:
        return _with_denial(turn, event)
    if type(event) is Corrected:
        last = replace(turn.exchanges[-1], correction=event.problem, goes_on=event.goes_on)
        return replace(turn, exchanges=(*turn.exchanges[:-1], last))
    if type(event) is Shortened:
        if event.given:
            return replace(turn, ask=replace(turn.ask, longest_given=event.longest))
        return replace(turn, exchanges=shortened(turn.exchanges, event.number, event.longest))
    return turn


def _with_reply(turn: Turn, number: int, reply: AgentReplied) -> Turn:
    if turn.exchanges and turn.exchanges[-1].goes_on:
        return _with_rest(turn, number, reply)
    return replace(turn, exchanges=(*turn.exchanges, Exchange(number, reply)))


def _with_rest(turn: Turn, number: int, rest: AgentReplied) -> Turn:
    begun = turn.exchanges[-1]
    whole = replace(rest, text=begun.reply.text + rest.text)
    joined = Exchange(number, whole, parts=(*begun.parts, begun.number))
    return replace(turn, exchanges=(*turn.exchanges[:-1], joined))


def _with_answer(turn: Turn, to: int, answer: Answer) -> Turn:
    reply, index = turn.pending[to]
    exchange = _exchange(turn, reply)
    said, unable, as_json = "", exchange.unable, exchange.as_json
    if isinstance(answer, Failed):
        said = f"{ERROR}{answer.reason}"
        unable = unable if answer.fault == "agent" else (*unable, index)
    elif isinstance(answer, ToolReturned):
        said, is_json = as_text(answer.value)
        as_json = (*as_json, index) if is_json else as_json
    pending = {number: source for number, source in turn.pending.items() if number != to}
    turn = _with_exchange(turn, reply, results=(*exchange.results, (index, said)), unable=unable, as_json=as_json)
    return replace(turn, pending=pending)


def _with_denial(turn: Turn, denied: Denied) -> Turn:
    results = (*_exchange(turn, denied.reply).results, (denied.index, f"{ERROR}{denied.reason}"))
    return _with_exchange(turn, denied.reply, results=results, last=denied.index)


def _exchange(turn: Turn, number: int) -> Exchange:
    return next(exchange for exchange in reversed(turn.exchanges) if exchange.number == number)


def _with_exchange(turn: Turn, number: int, **changes: Any) -> Turn:
    exchanges = tuple([replace(e, **changes) if e.number == number else e for e in turn.exchanges])
    return replace(turn, exchanges=exchanges)


def decide(step: Step[S], turn: Turn | None, news: Settled, tools: tuple[str, ...]) -> FinishedTurn | None:
    """Go on with the turn; returns it when it is finished. `turn` is the one that `news` led to.

    Files that the text of the last reply delivers are written first, then the turn is finished.
    """
    if turn is None:
        return None
    answer = news.answer
    if type(news.command) is CallTool:
        return None if turn.pending else _carry_on(step, turn, tools)
    if type(answer) is Failed:
        failure = shorten(step, turn, answer)
        return FinishedTurn(0, failure=failure) if failure else None
    if type(answer) is not AgentReplied:
        return None
    if is_cut(answer):
        return ask_for_rest(step, turn)
    if answer.calls and _keeps_writing_malformed(turn):
        problem = f"agent {turn.ask.agent!r} has called tools with arguments that cannot be read, {MAX_MALFORMED} times"
        return FinishedTurn(0, failure=Failed(reason=f"{problem}: {_malformed(turn.exchanges[-1])}", fault="agent"))
    if answer.calls:
        _check_calls(step, turn)
    # of a reply in several parts, a file can begin in one and end in another
    if not answer.calls and not deliveries(turn.exchanges[-1].reply.text):  # the usual case
        return _finished(turn, tools)
    return _carry_on(step, turn, tools)


def _check_calls(step: Step[S], turn: Turn) -> None:
    """Have the guard stop a turn that does not come to an end; it continues where it is if the limit is raised."""
    most, made = step.run.guards.turn_calls, len(turn.exchanges)
    if most and made >= most:
        text = f"{turn.ask.agent} has called its model {count(made, 'time')} in one turn and is not done."
        evidence = (turn.number, turn.exchanges[-1].number)
        step.stop(GuardTripped(guard="turn_calls", limit=most, value=made, text=text, evidence=evidence))


def is_cut(answer: AgentReplied) -> bool:
    """Whether the rest of a reply has to be asked for. One with calls goes on by itself once they are answered."""
    return answer.cut and not answer.calls and not answer.recorded


def ask_for_rest(step: Step[S], turn: Turn) -> FinishedTurn | None:
    """Ask for the rest of a reply that was cut off; the turn has failed if that was done too often."""
    last = turn.exchanges[-1]
    if len(last.parts) + 1 >= MAX_PARTS:
        problem = f"agent {turn.ask.agent!r} reached its limit of length {MAX_PARTS} times and is not done"
        return FinishedTurn(0, failure=Failed(reason=problem, fault="agent"))
    step.record(Corrected(number=last.number, problem=GO_ON, goes_on=True))
    ask_on(step, turn)
    return None


def _keeps_writing_malformed(turn: Turn) -> bool:
    latest = turn.exchanges[-MAX_MALFORMED:]
    return len(latest) == MAX_MALFORMED and all(map(_malformed, latest))


def _malformed(exchange: Exchange) -> str:
    return next((call.malformed for call in exchange.reply.calls if call.malformed), "")


def resume(step: Step[S], turn: Turn, tools: tuple[str, ...]) -> FinishedTurn | None:
    """Continue a turn that was broken off after its first reply. Only what was cut off is asked for again.

    Returns the turn if its last reply was already complete.
    """
    for number, index in turn.pending.values():
        tool = operation(_exchange(turn, number), index).tool
        step.ask(CallTool(tool=tool, agent=turn.ask.agent, source=(number, index)))
    if turn.pending:
        return None
    if turn.exchanges[-1].correction:
        ask_on(step, turn)
        return None
    return _carry_on(step, turn, tools)


def _carry_on(step: Step[S], turn: Turn, tools: tuple[str, ...]) -> FinishedTurn | None:
    """Ask for what is next in the last reply. When nothing is left, the turn continues or is finished."""
    exchange = turn.exchanges[-1]
    last, asked = exchange.last, False
    while (following := operation_after(exchange, last)) and not (asked and not following.looks):
        last = following.index
        if isinstance(following.file, Unclear) and not following.beyond:
            if following.tool in tools:
                step.warn(following.file.reason)
            continue
        reason = _why_not(turn, following, tools)
        if reason:
            turn = _deny(step, turn, following, reason, warn=following.file is not None and following.tool not in tools)
        elif not (following.file and repeated_edit(turn.exchanges, following.file)):
            if isinstance(following.file, WholeFile) and not following.file.complete:
                step.warn(f"the reply ends in the middle of {following.file.path!r}")
            # the exchange's number, not the step's: a fork decides on a reply that is before its own record
            step.ask(CallTool(tool=following.tool, agent=turn.ask.agent, source=(exchange.number, last)))
            asked = True
            if not following.looks:
                break
    if asked:
        return None
    if exchange.reply.calls:
        ask_on(step, turn)
        return None
    return _finished(turn, tools)


def _why_not(turn: Turn, wanted: Operation, tools: tuple[str, ...]) -> str:
    """Why an operation is not performed; empty if it is."""
    agent, file = turn.ask.agent, wanted.file
    if not permits(tools, wanted.tool):
        if isinstance(file, Edit):
            instead = "; it may write the whole file" if permits(tools, WRITE) else ""
            return f"agent {agent!r} may not edit files, so the edit of {file.path!r} was not made{instead}"
        if file is not None:
            return f"agent {agent!r} may not write files, so {file.path!r} was not written"
        return f"agent {agent!r} may not call {wanted.tool!r}; it may call: {', '.join(tools) or 'none'}"
    if wanted.beyond or wanted.malformed:
        return wanted.beyond or f"{wanted.tool!r} was not called: {wanted.malformed}"
    if isinstance(file, Edit) and not file.complete:
        return f"the reply ends in the middle of the edit of {file.path!r}, so it was not made"
    return ""


def _deny(step: Step[S], turn: Turn, wanted: Operation, reason: str, warn: bool) -> Turn:
    denied = Denied(reply=turn.exchanges[-1].number, index=wanted.index, reason=reason)
    step.record(denied)
    if warn:
        step.warn(reason)
    return _with_denial(turn, denied)


def _finished(turn: Turn, tools: tuple[str, ...]) -> FinishedTurn:
    last = turn.exchanges[-1]
    corrections, operated = 0, False
    for exchange in turn.exchanges:
        if exchange.correction:
            corrections += 1
        if exchange.results:
            operated = True
    if not operated:  # the usual case
        return FinishedTurn(last.number, last.reply.text, None, corrections, recorded=last.reply.recorded)
    files = FileResults(turn.exchanges, tools)
    return FinishedTurn(
        last.number,
        last.reply.text,
        None,
        corrections,
        files.missing,
        tuple(files.written),
        files.left_undone,
        last.reply.recorded,
    )


def warn_about_files(step: Step[S], finished: FinishedTurn) -> None:
    """Record what is missing although the turn counts."""
    for reason in finished.undelivered:
        step.warn(f"a file was not delivered: {reason}")
    for reason in finished.left_undone:
        step.warn(reason)


def correct(step: Step[S], turn: Turn, finished: FinishedTurn, problem: str) -> None:
    """Ask the agent once more, saying what was wrong."""
    step.record(Corrected(number=finished.number, problem=problem))
    ask_on(step, turn)


def effects_of(turn: Turn) -> list[tuple[str, Any]]:
    """What a turn did: which tools it called with what. Calls that only read, or went wrong, are left out."""
    done: list[tuple[str, Any]] = []
    for exchange in turn.exchanges:
        if not exchange.results:
            continue
        for index, result in in_order(exchange):
            made = operation(exchange, index)
            if not made.looks and not result.startswith(ERROR):
                done.append((made.tool, made.arguments))
    return done


def ask_on(step: Step[S], turn: Turn) -> None:
    """Ask for the next reply. If the window of the model that replied last is near, older texts are shortened."""
    ask, window = _next_call(turn), turn.exchanges[-1].reply.window
    if window:
        tokens = estimate(step.render(ask))
        why = f"the prompt would have about {tokens:,} tokens, and the window of the model has {window:,}"
        if found := near_window(turn.exchanges, ask.longest, tokens, window):
            _shorten(step, ask, found, tokens, why)
        elif tokens > window and (found := first_prompt(_sizes(step, ask), tokens, window)):
            ask = _shorten_given(step, ask, found, tokens, why)
    step.ask(ask)


def shorten(step: Step[S], turn: Turn, failed: Failed) -> Failed | None:
    """Shorten a turn whose prompt was too long for the model, and ask again. Returns the failure if that is no help."""
    tokens = failed.too_long
    if not tokens:
        return failed
    ask, why = _next_call(turn), f"the model could not take the prompt of about {tokens:,} tokens"
    if found := after_refusal(turn.exchanges, ask.longest, tokens):
        _shorten(step, ask, found, tokens, why)
    elif found := first_prompt(_sizes(step, ask), tokens, tokens):
        ask = _shorten_given(step, ask, found, tokens, why)
    else:
        size = f"The prompt has about {tokens:,} tokens (estimated), and nothing more in it can be shortened."
        return replace(failed, reason=f"{failed.reason} {size} Choose a model with a larger window, or give it less.")
    step.ask(ask)
    return None


def _next_call(turn: Turn) -> AskAgent:
    context = (turn.number, *(number for one in turn.exchanges for number in (*one.parts, one.number)))
    return replace(
        turn.ask, context=context, continues=turn.number, max_tokens=None, longest=turn.ask.longest or LONGEST_RESULT
    )


def _shorten(step: Step[S], ask: AskAgent, found: Shortening, tokens: int, because: str, given: bool = False) -> None:
    event = Shortened(
        agent=ask.agent,
        number=found.through,
        because=because,
        longest=found.longest,
        tokens=tokens,
        left=found.tokens,
        given=given,
    )
    step.record(event)


def _sizes(step: Step[S], ask: AskAgent) -> Callable[[int], int]:
    """The tokens of the prompt of a call, by what each text keeps that its first prompt was given."""
    return lambda most: estimate(step.render(replace(ask, longest_given=most)))


def _shorten_given(step: Step[S], ask: AskAgent, found: Shortening, tokens: int, because: str) -> AskAgent:
    """Record that the texts of the first prompt are shortened; returns the call with it."""
    _shorten(step, ask, found, tokens, because, given=True)
    return replace(ask, longest_given=found.longest)


def render(turn: Turn | None, ask: AskAgent, first: Prompt) -> Prompt:
    """The prompt of a call: the turn's first prompt, and all that was said since.

    `first`: with the texts that are not the definition's own cut to `ask.longest_given` (`shortening.cut`).
    """
    if turn is None or ask.continues is None:
        return first
    return replace(first, messages=(*first.messages, *messages_of(turn.exchanges, ask.longest)))


def arguments(turn: Turn | None, command: CallTool) -> dict[str, Any]:
    """What a tool is called with: the command's own arguments, or those in the reply it names."""
    if command.arguments is not None:
        return command.arguments
    assert turn is not None
    assert command.source is not None
    number, index = command.source
    return operation(_exchange(turn, number), index).arguments


def waiting_calls(turn: Turn | None) -> tuple[CallTool, ...]:
    """What the last reply of a turn has and that was not asked for yet."""
    if turn is None or not turn.exchanges:
        return ()
    exchange, found = turn.exchanges[-1], []
    last = exchange.last
    while following := operation_after(exchange, last):
        last = following.index
        found.append(CallTool(tool=following.tool, agent=turn.ask.agent, arguments=following.arguments))
    return tuple(found)


class HasTurn(Protocol):
    @property
    def turn(self) -> Turn | None:
        """The turn under way, if one is."""


W = TypeVar("W", bound=HasTurn)


class TurnView(StyleView[W]):
    """What people see of a style whose agents take turns: their replies as words."""

    def word_reader(self) -> Callable[[str], str]:
        return UnfinishedReply().add


class TurnStyle(Style[W]):
    """A style whose agents take turns: what it needs of them, whatever else it does."""

    view: StyleView[Any] = TurnView()

    def guards(self, definition: Any, wishes: Mapping[str, Any]) -> Guards:
        return check_phrases(super().guards(definition, wishes))

    def arguments(self, state: W, command: CallTool) -> Struct | dict[str, Any]:
        return arguments(state.turn, command)

    def waiting_calls(self, state: W) -> tuple[CallTool, ...]:
        return waiting_calls(state.turn)
