"""Tools that only a style calls: each is a function of a request, and can be repeated."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from ripstop.engine.performers import Kind, Refused, Request
from ripstop.kernel.effects import Answer, CallTool, Command, ToolReturned

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
