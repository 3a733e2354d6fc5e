"""The border where what a chat server says becomes typed values. Nothing in it is believed.

- Odd but clear shapes, which real servers send, are understood: content in parts, arguments as an object, numbers as
  text, a call without an index. Anything else is `TryAgain` with a message that names what was wrong.
- Arguments that cannot be read are the agent's mistake, not the server's: the call says so, and the agent is told.
- Only the first of several choices is read.
- A count of tokens that makes no sense (negative, fractional below 0, a boolean, absurdly large) counts as missing.
- Text that comes in pieces is joined once, at the end, so that a reply costs time in proportion to its length.
"""

import json
import math
import re
from typing import Any

import msgspec

from ripstop.engine.performers import TryAgain
from ripstop.kernel.effects import AgentReplied, ToolCall, Usage
from ripstop.kernel.errors import Unwritable
from ripstop.kernel.text_limits import plain, whole_characters
from ripstop.security.redaction import HIDDEN, maybe_escaped

CALL_SECONDS = 900.0
"""For one call from its beginning to its end, however alive the server is."""
LONGEST_REPLY = 4 * 2**20
"""Bytes of one reply: its text, its thoughts and the arguments of its calls."""
LONGEST_TEXT = 2 * 2**20
"""Bytes of its text alone, which is read several times; about four times as much as models can write."""
MOST_CALLS = 1000
LONGEST_NAME = 256
"""Characters of the name or the id of a call."""
MOST_TOKENS = 2**53
"""A count of tokens above this cannot be meant."""
SHORTEST_SECRET = 16
QUOTED = 60
"""Characters of a wrong value that a message quotes."""


AT_LIMIT = ("length", "max_tokens", "model_length", "max_output_tokens")
"""How servers say that a reply ended at its limit of length."""
BROKEN_OFF = ("error", "abort", "insufficient_system_resource")
"""How servers say that they have failed in the middle of a reply."""
FILTERED = ("content_filter", "content-filter", "safety")
"""How servers say that a filter of theirs has left something out of a reply, or ended it."""
MOST_WITHHELD = 3
"""Refusals of a call after which a reply that is withheld is final: the filter may not like what was asked."""
SHORTER = " The reply was cut off at its limit of length: write less in one call."


class UnreadableArguments(Exception):
    """Says what is wrong with the arguments of a call, for the agent that made it."""


class _PartOfCall:
    def __init__(self, position: int) -> None:
        self.position = position
        self.id = ""
        self.tool = ""
        self.pieces: list[str] = []
        self.whole: dict[str, Any] | None = None
        """The arguments, from a server that sends them as an object."""


class Reply:
    """A reply as it comes in, chunk by chunk."""

    def __init__(self, secret: str = "") -> None:
        """`secret`: a key that must not be in the answer. One that is short may be an ordinary word, and is left."""
        self.finish = ""
        """Why it ended: `stop`, `length`, `tool_calls`; empty while it has not."""
        self.usage = Usage()
        """What the server says that the reply cost; 0 where it says nothing sensible."""
        self.received = 0
        """Bytes of text, thoughts and arguments so far."""
        self.model = ""
        """The model that replies, as the server says."""
        self.started = False
        """Whether there was a choice at all."""
        self._text_size = 0
        self._secret = maybe_escaped(secret) if len(secret) >= SHORTEST_SECRET else None
        self._pieces: list[str] = []
        self._refusals: list[str] = []
        self._choice: int | None = None
        self._calls: list[_PartOfCall] = []
        self._by_index: dict[int, _PartOfCall] = {}

    @property
    def text(self) -> str:
        return "".join(self._pieces) or "".join(self._refusals)

    @property
    def is_cut(self) -> bool:
        return self.finish.lower() in AT_LIMIT

    def add(self, chunk: object) -> str:
        """Take a chunk in; returns the text that is new in it. Raises `TryAgain`."""
        try:
            return self._add(chunk)
        except RecursionError:
            raise TryAgain("The server sent a value that is nested too deeply.") from None

    def _add(self, chunk: object) -> str:
        if not isinstance(chunk, dict):
            raise _odd("a reply", chunk, "an object")
        self._add_usage(chunk.get("usage"))
        if not self.model and isinstance(model := chunk.get("model"), str):
            self.model = self._without_secret(whole_characters(model[:LONGEST_NAME]))
        new = ""
        for position, choice in enumerate(_choices(chunk.get("choices"))):
            index = _index(choice.get("index"), position)
            if self._choice is None:
                self._choice = index
            if index == self._choice:
                self.started = True
                new += self._add_choice(choice)
        return new

    def answer(self) -> AgentReplied:
        """The reply, typed, and in a form that a journal reads back. Raises `TryAgain`."""
        if self.finish.lower() in BROKEN_OFF:
            raise TryAgain(f"The server broke off its reply ({self.finish}).")
        is_filtered = self.finish.lower() in FILTERED
        if is_filtered and not self._calls and not self.text.strip():
            raise TryAgain(f"the server's filter withheld the reply ({self.finish})", most=MOST_WITHHELD)
        taken: set[str] = set()
        calls = tuple(self._call(call, taken) for call in sorted(self._calls, key=lambda call: call.position))
        return AgentReplied(
            text=self._without_secret(self.text),
            calls=calls,
            usage=self.usage,
            cut=self.is_cut or (not self.finish and _ends_within_an_object(self.text)),
            says=self.model,
            filtered=is_filtered,
        )

    def _add_usage(self, usage: object) -> None:
        if isinstance(usage, dict):
            sent = _tokens(usage.get("prompt_tokens", usage.get("input_tokens")))
            received = _tokens(usage.get("completion_tokens", usage.get("output_tokens")))
            self.usage = Usage(
                input_tokens=self.usage.input_tokens if sent is None else sent,
                output_tokens=self.usage.output_tokens if received is None else received,
            )

    def _add_choice(self, choice: dict[str, Any]) -> str:
        reason = choice.get("finish_reason")
        if isinstance(reason, str):
            self.finish = whole_characters(reason[:LONGEST_NAME]) or self.finish
        elif type(reason) is int or type(reason) is float:
            self.finish = _quoted(reason)
        elif reason is not None:
            raise _odd("finish_reason", reason, "text")
        new = ""
        for said in _said(choice):
            new += self._add_words(said)
            calls = said.get("tool_calls")
            if calls is None and isinstance(said.get("function_call"), dict):  # the older form, for one call
                calls = [{"index": 0, "function": said["function_call"]}]
            for position, part in enumerate(_list_of_objects("tool_calls", calls)):
                self._add_call(position, part)
        return new

    def _add_words(self, said: dict[str, Any]) -> str:
        for name in ("reasoning_content", "reasoning"):
            if isinstance(said.get(name), str):
                self._count(said[name])
        new = whole_characters(_text("content", said.get("content")))
        refusal = said.get("refusal")
        if isinstance(refusal, str) and refusal:
            self._count(refusal, is_text=True)
            self._refusals.append(whole_characters(refusal))
        if new:
            self._count(new, is_text=True)
            self._pieces.append(new)
        return new

    def _count(self, piece: str, is_text: bool = False) -> None:
        size = len(piece) if piece.isascii() else len(piece.encode("utf-8", "replace"))
        self.received += size
        self._text_size += size if is_text else 0
        for what, length, limit in (
            ("text", self._text_size, LONGEST_TEXT),
            ("reply with its thoughts and calls", self.received, LONGEST_REPLY),
        ):
            if length > limit:
                raise TryAgain(f"The server's {what} is longer than {limit // 2**20} MiB, which is all it can be.")

    def _add_call(self, position: int, part: dict[str, Any]) -> None:
        function = part.get("function")
        if function is None:
            function = {}
        elif not isinstance(function, dict):
            raise _odd("the function of a tool call", function, "an object")
        id, tool = _id(part.get("id")), _name(function.get("name"))
        call = self._part(_index(part.get("index"), position), id, tool)
        call.id = call.id or id
        call.tool = call.tool or tool
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            self._count(json.dumps(arguments))
            call.whole = {**(call.whole or {}), **arguments}
        elif isinstance(arguments, str):
            self._count(arguments)
            call.pieces.append(arguments)
        elif arguments is not None:
            raise _odd(f"the arguments of {call.tool!r}", arguments, "an object")

    def _part(self, index: int, id: str, tool: str) -> _PartOfCall:
        """The call that a piece belongs to. Some servers give every call the same index, or none, but an id each."""
        call = self._by_index.get(index)
        if call is not None and not (id and tool and call.id and id != call.id):
            return call
        if len(self._calls) == MOST_CALLS:
            raise TryAgain(f"The server's reply has more than {MOST_CALLS} tool calls.")
        call = self._by_index[index] = _PartOfCall(max(index, len(self._calls)) if call else index)
        self._calls.append(call)
        return call

    def _call(self, call: _PartOfCall, taken: set[str]) -> ToolCall:
        if not call.tool:
            raise TryAgain("The server's reply has a tool call without the name of a tool.")
        id = _unused(call.id or f"call_{call.position}", taken)
        arguments, malformed = dict[str, Any](), ""
        try:
            if self.is_cut and call is self._calls[-1] and call.whole is None and not "".join(call.pieces).strip():
                raise UnreadableArguments("the reply ended before the arguments")
            arguments = self._redacted(self._arguments(call))
        except UnreadableArguments as error:
            malformed = self._without_secret(str(error)) + (SHORTER if self.is_cut else "")
        return ToolCall(
            id=self._without_secret(id),
            tool=self._without_secret(call.tool),
            arguments=arguments,
            malformed=malformed,
        )

    def _arguments(self, call: _PartOfCall) -> dict[str, Any]:
        text = "".join(call.pieces)
        if call.whole is None:
            return arguments_in(text)
        if text.strip() not in ("", "{}"):
            raise UnreadableArguments("the arguments came both as an object and as text")
        return _kept(call.whole)

    def _without_secret(self, text: str) -> str:
        return self._secret.sub(HIDDEN, text) if self._secret else text

    def _redacted(self, value: Any) -> Any:
        """The same for a value that was decoded, in which no text is a part of an escape."""
        if isinstance(value, str):
            return self._without_secret(value)
        if isinstance(value, dict):
            return {self._without_secret(key): self._redacted(one) for key, one in value.items()}
        return [self._redacted(one) for one in value] if isinstance(value, list) else value


_OBJECT = re.compile(r'\{\s*"')
_json = json.JSONDecoder(strict=False)


def _ends_within_an_object(text: str) -> bool:
    """Whether a reply ends before an object in it does. Servers that never say why a reply ended send whole ones, too;
    so only what cannot be whole counts as cut."""
    at = 0
    while opening := _OBJECT.search(text, at):
        try:
            _, at = _json.raw_decode(text, opening.start())
        except json.JSONDecodeError as error:
            return error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
        except (RecursionError, ValueError):
            return False
    return False


def arguments_in(text: str) -> dict[str, Any]:
    """The arguments that a model wrote for a call. Raises `UnreadableArguments`."""
    try:
        found = _parsed(text or "{}")
        if isinstance(found, str):  # encoded twice
            found = _parsed(found or "{}")
    except ValueError as error:
        raise UnreadableArguments(f"the arguments are not JSON ({error}): {_quoted(text)}") from error
    except RecursionError:
        raise UnreadableArguments("the arguments are nested too deeply") from None
    return _kept(found)


def _kept(found: Any) -> dict[str, Any]:
    """Arguments in a form that a journal reads back."""
    try:
        kept = plain({} if found is None else found)
    except (Unwritable, RecursionError) as error:
        raise UnreadableArguments(f"the arguments cannot be kept: {error}") from error
    if not isinstance(kept, dict):
        raise UnreadableArguments(f"the arguments are {_quoted(kept)} instead of an object")
    return kept


def decoded(data: bytes) -> Any:
    """What JSON a server sent. Raises `TryAgain`."""
    text = data.decode("utf-8", "replace")
    try:
        return _parsed(text.removeprefix("\ufeff"))
    except ValueError as error:
        raise TryAgain(f"The server sent something that is not a JSON object ({error}): {_quoted(text)}.") from error
    except RecursionError:
        raise TryAgain("The server sent JSON that is nested too deeply.") from None


def _parsed(text: str) -> Any:
    """Raises `ValueError` for what is not JSON, or has numbers that JSON has not."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError):
        # lone surrogates, which msgspec refuses, are worth a second look
        return json.loads(text, parse_constant=_no_constant, parse_float=_finite)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number in JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:QUOTED]} is out of range")
    return value


def _choices(found: object) -> list[dict[str, Any]]:
    if isinstance(found, dict) and not ({"delta", "message", "text"} & found.keys()):
        raise _odd("choices", found, "a list")
    return _list_of_objects("choices", found)


def _said(choice: dict[str, Any]) -> list[dict[str, Any]]:
    for name in ("delta", "message"):
        if choice.get(name):
            return _list_of_objects(name, choice[name])
    if isinstance(choice.get("text"), str):  # of the older completions
        return [{"content": choice["text"]}]
    return []


def _list_of_objects(name: str, found: object) -> list[dict[str, Any]]:
    """A list of objects, or one object without its list; nothing for null."""
    if found is None:
        return []
    items = [found] if isinstance(found, dict) else found
    if not isinstance(items, list):
        raise _odd(name, found, "a list")
    for item in items:
        if not isinstance(item, dict):
            raise _odd(f"one of {name}", item, "an object")
    return items


def _text(name: str, content: object) -> str:
    """Text, or a list of parts that are text, or an object, which is returned as JSON."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, list):
        return "".join(_part_text(part) for part in content)
    if isinstance(content, dict):
        if "type" in content or "text" in content:
            return _part_text(content)
        return json.dumps(content, ensure_ascii=False)
    raise _odd(name, content, "text")


THOUGHTS = ("thinking", "reasoning", "redacted_thinking")


def _part_text(part: object) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict):
        if part.get("type") in THOUGHTS:
            return ""
        for name in ("text", "refusal"):
            words = part.get(name)
            words = words.get("value") if isinstance(words, dict) else words
            if isinstance(words, str):
                return words
    raise _odd("a part of the content", part, "text")


def _tokens(value: object) -> int | None:
    """A count of tokens, or `None` if it makes no sense. A fraction of a token counts as a whole one."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 17:
        value = int(value)
    if isinstance(value, float) and math.isfinite(value):
        value = math.ceil(value) if value >= 0 else None
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST_TOKENS:
        return value
    return None


def _index(value: object, position: int) -> int:
    if value is None:
        return position
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < MOST_TOKENS:
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < MOST_TOKENS:
        return value
    raise _odd("an index", value, "a whole number")


def _id(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**20:
        value = str(value)
    if isinstance(value, str) and len(value) <= LONGEST_NAME:
        return whole_characters(value)
    raise _odd("the id of a tool call", value, f"text of at most {LONGEST_NAME} characters")


def _name(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str) and len(value) <= LONGEST_NAME:
        return whole_characters(value)
    raise _odd("the name of a tool", value, f"text of at most {LONGEST_NAME} characters")


def _unused(id: str, taken: set[str]) -> str:
    """Results are matched with calls by their ids, so no two calls can have the same."""
    unique, count = id, 1
    while unique in taken:
        count += 1
        unique = f"{id}_{count}"
    taken.add(unique)
    return unique


def _odd(name: str, value: object, wanted: str) -> TryAgain:
    return TryAgain(f"The server sent {_quoted(value)} as {name}; expected {wanted}.")


def _quoted(value: object) -> str:
    """A wrong value as a message shows it: short, however large or deep it is."""
    if isinstance(value, str):
        return repr(value if len(value) <= QUOTED else f"{value[:QUOTED]}…")
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int | float):
        return f"{value:.6g}" if abs(value) < MOST_TOKENS else "a huge number"
    return "an object" if isinstance(value, dict) else "a list"
