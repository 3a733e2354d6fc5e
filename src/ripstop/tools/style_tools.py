"""Tools that only a style calls: each is a function of a request, and can be repeated.

- The style and its tool share one type for the call and one for the answer, in the style's `calls.py`.
- A field of a call has no default, so that mypy finds a style that forgets one. A field of an answer can have one:
  answers are in journals, and what was recorded without it must be read still.
"""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from ripstop.engine.performers import Kind, Refused, Request
from ripstop.kernel.effects import Answer, CallTool, Command, ToolReturned
from ripstop.kernel.text_limits import plain

Call = TypeVar("Call", bound=Struct)


class OwnTool:
    """The performer of one of them."""

    def __init__(self, tool: str, call: Callable[[Request], Awaitable[dict[str, Any]]]) -> None:
        self._tool = tool
        self._call = call

    async def perform(self, request: Request) -> Answer | None:
        assert isinstance(request.command, CallTool)
        return ToolReturned(value=await self._call(request))

    def kind(self, command: Command) -> Kind:
        return Kind.PURE

    def offers(self) -> tuple[str, ...]:
        return (f"tool:{self._tool}",)

    def provider(self, request: Request) -> str:
        return ""

    async def probe(self, request: Request) -> Answer | None:
        return None


def arguments_of(request: Request, kind: type[Call]) -> Call:
    """What the style has given. Raises `Refused`: a wrong call is a mistake in ripstop."""
    assert isinstance(request.command, CallTool)
    try:
        return msgspec.convert(dict(request.arguments), kind)
    except msgspec.ValidationError as error:
        raise Refused(f"{request.command.tool} was called wrongly: {error}.", "ours") from error


def typed_tool(name: str, call_type: type[Call], perform: Callable[[Request, Call], Awaitable[Struct]]) -> OwnTool:
    """The performer of a tool whose call and answer are Structs.

    The answer is made what it will be when it is read from a journal (lists rather than tuples, say), so a style sees
    the same in the first process and after a replay. It reads the answer with `msgspec.convert(value, AnswerType)`.

    Args:
        perform: Given the request and its call. It can raise whatever a performer can.
    """

    async def call(request: Request) -> dict[str, Any]:
        answer: dict[str, Any] = plain(await perform(request, arguments_of(request, call_type)))
        return answer

    return OwnTool(name, call)
