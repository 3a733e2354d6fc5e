"""Tools are plain typed functions with a decorator; a toolbox performs calls to them.

    @tool("pure")
    def add(a: int, b: int) -> int:
        "Add two whole numbers."
        return a + b

The signature is the schema: a call with wrong arguments is answered with what is wrong, so that the
agent can mend it. `kind` says what a crash in the middle means (see `runtime.ports.Kind`); a tool
that does not say is `unsafe`. An exception of an unsafe tool leaves its effect in doubt, and a person
is asked; with `Refused` and `TryAgain` the tool says that nothing happened, with `InDoubt` what is known.

A `keyed` tool takes our key as its parameter `key`, which agents do not see. A `probeable` one brings
`probe`, a function of the same arguments that returns what the call returned if it happened, and `None`
if it did not. A parameter of type `ToolContext` gets what the call is part of; agents do not see it either.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from typing import Any, Protocol, overload

import msgspec

from ripstop.kernel.effects import Answer, CallTool, Command, ToolReturned
from ripstop.kernel.errors import DefinitionError
from ripstop.kernel.plain import plain
from ripstop.runtime.doubts import done_but_unreadable
from ripstop.runtime.performers import InDoubt, Kind, Performer, Refused, Request

from .calling import TimedOut, call
from .context import context_of
from .signature import KEY, context_parameter, read_signature
from .spec import ToolSpec


class Tool:
    """A function that agents may call."""

    def __init__(
        self,
        function: Callable[..., Any],
        kind: Kind = Kind.UNSAFE,
        probe: Callable[..., Any] | None = None,
        timeout: float | None = None,
    ) -> None:
        self.name = function.__name__
        self.kind = kind
        self._function = function
        self._probe = probe
        self._timeout = timeout
        self._signature = read_signature(function)
        self._probe_context = context_parameter(probe) if probe else ""
        self._check()
        self.spec = ToolSpec(
            name=self.name, description=inspect.getdoc(function) or "", parameters=self._signature.schema
        )

    def _check(self) -> None:
        takes_key, context = self._signature.takes_key, self._signature.context
        if self.kind is Kind.PROBEABLE and self._probe is None:
            raise DefinitionError(f"The tool {self.name!r} is probeable, so it needs probe=….")
        if self.kind is Kind.KEYED and not (takes_key or context):
            raise DefinitionError(f"The tool {self.name!r} is keyed, so it must take `key: str` or a ToolContext.")
        if self.kind is not Kind.KEYED and takes_key:
            raise DefinitionError(f"The tool {self.name!r} takes `{KEY}`; declare it with kind='keyed'.")
        limit = self._timeout
        if limit is not None and not (isinstance(limit, int | float) and isfinite(limit) and limit > 0):
            raise DefinitionError(f"The time limit of the tool {self.name!r} must be seconds above 0, not {limit!r}.")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    async def call(self, request: Request) -> Any:
        arguments = self._checked(request)
        if self._signature.takes_key:
            arguments[KEY] = request.key
        if self._signature.context:
            arguments[self._signature.context] = context_of(request)
        return await call(self._function, arguments, self._timeout)

    async def probe(self, request: Request) -> Any:
        assert self._probe is not None
        arguments = self._checked(request)
        if self._probe_context:
            arguments[self._probe_context] = context_of(request)
        return await call(self._probe, arguments, self._timeout)

    def _checked(self, request: Request) -> dict[str, Any]:
        try:
            given = msgspec.convert(dict(request.arguments), self._signature.arguments)
        except msgspec.ValidationError as error:
            wanted = ", ".join(self.spec.parameters.get("properties", {}))
            raise Refused(f"{self.name} was called wrongly: {error}. It takes: {wanted}.", "agent") from error
        return msgspec.structs.asdict(given)


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(
    kind: str = "unsafe", probe: Callable[..., Any] | None = None, timeout: float | None = None
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    kind: str | Callable[..., Any] = "unsafe",
    probe: Callable[..., Any] | None = None,
    timeout: float | None = None,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a function a tool: `@tool`, or `@tool("pure", timeout=30)`.

    Args:
        kind: pure, keyed, probeable or unsafe; left out: unsafe.
        probe: For a probeable tool: returns what the call returned if it happened, and `None` if it did not.
        timeout: Seconds that a call can take. One that takes longer broke off, as its kind says.
    """
    if not isinstance(kind, str):
        return Tool(kind)
    try:
        chosen = Kind(kind)
    except ValueError:
        raise DefinitionError(
            f"There is no kind of effect {kind!r}; choose from {', '.join(k.value for k in Kind)}."
        ) from None
    return lambda function: Tool(function, chosen, probe, timeout)


class ToolSource(Protocol):
    """Tools that are more than functions: on the files of the agent that calls them, or of MCP servers."""

    @property
    def names(self) -> tuple[str, ...]: ...

    def handles(self, name: str) -> bool: ...

    def specs(self, names: tuple[str, ...]) -> list[ToolSpec]: ...

    async def perform(self, request: Request) -> Answer | None: ...

    async def probe(self, request: Request) -> Answer | None: ...

    def kind(self, command: Command) -> Kind: ...


class Toolbox:
    """The performer of `CallTool`. A tool that is given takes the place of one of a source that has the same name.

    `own`: tools that only the engine calls; agents never hear of them.
    """

    def __init__(
        self,
        tools: Iterable[Tool] = (),
        files: ToolSource | None = None,
        own: Mapping[str, Performer] | None = None,
        servers: ToolSource | None = None,
    ) -> None:
        self._tools = {one.name: one for one in tools}
        self._sources = tuple(source for source in (files, servers) if source)
        self._own = own or {}
        self._unfinished: set[str] = set()
        """Keys of calls that did not end when their time was up, and can still take effect."""

    def specs(self, names: tuple[str, ...]) -> list[ToolSpec]:
        found: dict[str, ToolSpec] = {}
        for name in names:
            if name in self._tools:
                found[name] = self._tools[name].spec
                continue
            for source in self._sources:
                for spec in source.specs((name,)):
                    found.setdefault(spec.name, spec)
        return list(found.values())

    async def perform(self, request: Request) -> Answer | None:
        if own := self._own_tool(request.command):
            return await own.perform(request)
        if source := self._source_of(request.command):
            return await source.perform(request)
        found = self._find(request.command)
        try:
            return _returned(found, await found.call(request))
        except TimedOut as error:
            if error.left:
                self._unfinished.add(request.key)
                error.left.add_done_callback(lambda _: self._unfinished.discard(request.key))
            raise

    async def probe(self, request: Request) -> Answer | None:
        if own := self._own_tool(request.command):
            return await own.probe(request)
        if source := self._source_of(request.command):
            return await source.probe(request)
        found = self._find(request.command)
        if request.key in self._unfinished:
            raise InDoubt("The call may still be at work here, so a probe cannot tell what becomes of it.")
        value = await found.probe(request)
        return None if value is None else _returned(found, value)

    def kind(self, command: Command) -> Kind:
        assert isinstance(command, CallTool)
        if own := self._own_tool(command):
            return own.kind(command)
        if source := self._source_of(command):
            return source.kind(command)
        known = self._tools.get(command.tool)
        # a process that has the tool may have begun the call: what is not known here counts as the worst it can be
        return known.kind if known else Kind.UNSAFE

    def has(self, name: str) -> bool:
        """Whether agents can be told of a tool, or of the tools of a server (`git__*`)."""
        return bool(self.specs((name,)))

    def offers(self) -> tuple[str, ...]:
        """`tool:NAME` of everything that this process can perform."""
        return tuple(f"tool:{name}" for name in dict.fromkeys((*self._names(), *self._own)))

    def provider(self, request: Request) -> str:
        return ""

    def _own_tool(self, command: Command) -> Performer | None:
        assert isinstance(command, CallTool)
        return None if command.agent else self._own.get(command.tool)

    def _names(self) -> list[str]:
        return [*self._tools, *(name for source in self._sources for name in source.names)]

    def _source_of(self, command: Command) -> ToolSource | None:
        assert isinstance(command, CallTool)
        if command.tool in self._tools:
            return None
        return next((source for source in self._sources if source.handles(command.tool)), None)

    def _find(self, command: Command) -> Tool:
        assert isinstance(command, CallTool)
        known = self._tools.get(command.tool)
        if known is None:
            names = ", ".join(sorted(set(self._names()))) or "none"
            raise Refused(f"There is no tool {command.tool!r}; there are: {names}.", "agent")
        return known


def _returned(called: Tool, value: Any) -> ToolReturned:
    try:
        return ToolReturned(value=plain(value))
    except Exception as error:  # objects of the tool's own may raise anything
        problem = f"A tool must return what JSON can hold, but {called.name} returned {type(value).__name__}."
        if called.kind is Kind.PURE:
            raise Refused(problem) from error
        return ToolReturned(value=done_but_unreadable(problem))
