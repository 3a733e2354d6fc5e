"""How a turn goes into a prompt: results in bounds, and older texts shortened when the window of the model is near.

- A result of a tool is JSON, and has at most `LONGEST_RESULT` characters; what is left out is said where it was.
- A turn near the window is shortened from its beginning: results, replies and the arguments of calls keep their
  first and last characters. What the agent has asked for last is shortened only if nothing else is enough.
- If that is not enough either, or nothing was said yet, the texts that the turn was given in its first prompt are
  shortened in the same way: what agents and people said, files, data. What a definition says is never shortened.
- What is shortened is decided once, when the next call is asked for, and recorded. Prompts follow from the record.
- How many tokens a text has is estimated, rather too high (`kernel/prompt.py`).
"""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ripstop.kernel.effects import ToolCall
from ripstop.kernel.prompt import Message, tokens_in

from .reply_operations import ERROR, MAX_TOOL_CALLS, Exchange, calls_beyond
from .undelivered_files import correction, failed_files

LONGEST_RESULT = 40_000
"""Characters of one result of a tool."""
NEAR = 0.75
"""Of the window. The rest of it is for the reply."""
WANTED = 0.5
"""Of the window, or of a prompt that was too long: what is left after shortening, so that it is not done every time."""
LEAST_SAVED = 0.02
"""Of the prompt. Saving less is not worth a record."""
OLDER, ALL = (4000, 1000, 200), (8000, 2000, 400, 100)
"""Characters that each text keeps: of all but the last exchange, and of all of them."""
GIVEN = (20_000, 5000, 1000, 200)
"""Characters that each text of a first prompt keeps."""
LEAST_LEFT_OUT = 100
"""Characters. To leave out fewer would save nothing, because it has to be said."""


class Shortening(Struct, frozen=True):
    """A way to shorten a turn: what each text keeps, up to and with an exchange."""

    through: int
    """The number of the exchange."""
    longest: int
    tokens: int
    """What the prompt has afterwards."""


def cut(text: str, most: int) -> str:
    """The beginning and the end of a text that is too long."""
    left_out = len(text) - most
    if most <= 0 or left_out < LEAST_LEFT_OUT:
        return text
    head = most - most // 4
    tail = text[-(most // 4) :] if most >= 4 else ""
    return f"{text[:head]}\n[… {left_out:,} of {len(text):,} characters are left out here …]\n{tail}"


def as_text(value: Any) -> tuple[str, bool]:
    """What an agent is told of a result, and whether that is JSON; a text is told as it is."""
    if isinstance(value, str):
        return value, False
    return msgspec.json.encode(value).decode(), True


def messages_of(exchanges: tuple[Exchange, ...], longest: int) -> list[Message]:
    """What was said in a turn. `longest`: of the call that asks for it (`AskAgent.longest`)."""
    messages: list[Message] = []
    for exchange in exchanges:
        reply, most = exchange.reply, exchange.longest
        calls = tuple(_shorter_call(call, most) for call in reply.calls) if most else reply.calls
        messages.append(Message(role="assistant", text=cut(reply.text, most), calls=calls))
        if reply.calls:
            messages += _results_of(exchange, longest)
        if exchange.correction:
            messages.append(Message(role="user", text=exchange.correction))
    return messages


def _results_of(exchange: Exchange, longest: int) -> list[Message]:
    """What came back to a reply with tool calls: a message for every call, and one about files in its text."""
    calls, results = exchange.reply.calls, dict(exchange.results)
    beyond, most = f"{ERROR}{calls_beyond(len(calls))}", min(longest, exchange.longest or longest)
    if not longest:  # as the journals of 0.2 have it
        results.update((index, repr(msgspec.json.decode(results[index]))) for index in exchange.as_json)
    messages = [
        Message(role="tool", text=cut(results.get(index, beyond), most), call_id=call.id)
        for index, call in enumerate(calls)
        if index in results or index > MAX_TOOL_CALLS
    ]
    if failed := failed_files(exchange):
        messages.append(Message(role="user", text=correction(failed, ())))
    return messages


def _shorter_call(call: ToolCall, most: int) -> ToolCall:
    return replace(call, arguments=_shorter(call.arguments, most))


def _shorter(value: Any, most: int) -> Any:
    if isinstance(value, str):
        return cut(value, most)
    if isinstance(value, dict):
        return {key: _shorter(one, most) for key, one in value.items()}
    return [_shorter(one, most) for one in value] if isinstance(value, list) else value


def shortened(exchanges: tuple[Exchange, ...], through: int, longest: int) -> tuple[Exchange, ...]:
    """The exchanges, those up to and with `through` shortened. What is shorter already stays so."""
    return tuple(
        replace(one, longest=min(longest, one.longest or longest)) if one.number <= through else one
        for one in exchanges
    )


def near_window(exchanges: tuple[Exchange, ...], longest: int, tokens: int, window: int) -> Shortening | None:
    """How to shorten a turn whose prompt would have so many tokens; `None`: it need not, or cannot, be shortened.

    What the agent has asked for last stays whole if the prompt may fit into the window with it.
    """
    if tokens <= window * NEAR:
        return None
    wanted = round(window * WANTED)
    older = _mildest(_ways(exchanges, longest, tokens, OLDER, is_all=False), tokens, wanted)
    if (older.tokens if older else tokens) <= window:
        return older
    return _mildest(_ways(exchanges, longest, tokens, ALL, is_all=True), tokens, wanted) or older


def after_refusal(exchanges: tuple[Exchange, ...], longest: int, tokens: int) -> Shortening | None:
    """How to shorten a turn whose prompt was too long for the model; `None`: it cannot be shortened any more."""
    wanted = round(tokens * WANTED)
    older = _mildest(_ways(exchanges, longest, tokens, OLDER, is_all=False), tokens, wanted)
    if older and older.tokens <= wanted:
        return older
    return _mildest(_ways(exchanges, longest, tokens, ALL, is_all=True), tokens, wanted) or older


def first_prompt(tokens_with: Callable[[int], int], tokens: int, most: int) -> Shortening | None:
    """How to shorten what a turn was given in its first prompt; `None`: that does not help (any more).

    Args:
        tokens_with: The size of the prompt, if each text keeps so many characters.
        most: Tokens, of which the prompt is to have half.
    """
    return _mildest((Shortening(0, kept, tokens_with(kept)) for kept in GIVEN), tokens, round(most * WANTED))


def _ways(
    exchanges: tuple[Exchange, ...], longest: int, tokens: int, kept: tuple[int, ...], is_all: bool
) -> Iterator[Shortening]:
    """The mildest first."""
    concerned = exchanges if is_all else exchanges[:-1]
    if not concerned:
        return
    now, through = tokens_in(messages_of(exchanges, longest)), concerned[-1].number
    for most in kept:
        then = tokens_in(messages_of(shortened(exchanges, through, most), longest))
        yield Shortening(through, most, tokens - now + then)


def _mildest(ways: Iterator[Shortening], tokens: int, wanted: int) -> Shortening | None:
    """The first way that is enough, else the one that saves most; `None` if none saves anything to speak of."""
    found = None
    for way in ways:
        found = way
        if way.tokens <= wanted:
            break
    return found if found and tokens - found.tokens >= max(1.0, tokens * LEAST_SAVED) else None
