"""Tools are plain typed functions with a decorator; a toolbox carries out calls to them.

    @tool(kind="pure")
    def add(a: int, b: int) -> int:
        "Add two whole numbers."
        return a + b

The signature is the schema: a call with wrong arguments is answered with what is wrong, so that the
agent can mend it. `kind` says what a crash in the middle means (see `runtime.ports.Kind`); a tool
that does not say is `unsafe`. An exception of an unsafe tool leaves its effect in doubt, and a person
is asked; with `Refused` and `TryAgain` the tool says that nothing happened, with `InDoubt` what is known.

A `keyed` tool takes our key as its parameter `key`, which agents do not see. A `probeable` one brings
`probe`, a function of the same arguments that returns what the call returned if it happened, and `None`
if it did not.
"""

import asyncio
import inspect
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, get_type_hints

import msgspec

from ripstop.kernel.effects import Answer, CallTool, Command, ToolReturned
from ripstop.kernel.errors import DefinitionError
from ripstop.kernel.plain import plain
from ripstop.performers.own_thread import start_thread
from ripstop.runtime.doubts import done_but_unreadable
from ripstop.runtime.ports import Kind, Performer, Refused, Request

from .spec import ToolSpec

log = logging.getLogger("ripstop.tools")

KEY = "key"
THREAD_GRACE = 2.0
"""Seconds that a tool in a thread has to finish after its call was cancelled: its run has ended or its time is up."""


class Tool:
    """A function that agents may call."""

    def __init__(self, function: Callable[..., Any], kind: Kind, probe: Callable[..., Any] | None) -> None:
        self.name = function.__name__
        self.kind = kind
        self._function = function
        self._probe = probe
        if kind is Kind.PROBEABLE and probe is None:
            raise DefinitionError(f"The tool {self.name!r} is probeable, so it needs probe=….")
        takes_key = KEY in inspect.signature(function).parameters
        if (kind is Kind.KEYED) is not takes_key:
            raise DefinitionError(f"A keyed tool, and only such a one, has a parameter {KEY!r}; see {self.name!r}.")
        self._arguments = _arguments_type(function)
        self.spec = ToolSpec(
            name=self.name, description=inspect.getdoc(function) or "", parameters=_schema(self._arguments)
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    async def call(self, arguments: Mapping[str, Any], key: str) -> Any:
        return await _run(self._function, self._checked(arguments, key))

    async def probe(self, arguments: Mapping[str, Any]) -> Any:
        assert self._probe is not None
        return await _run(self._probe, self._checked(arguments, ""))

    def _checked(self, arguments: Mapping[str, Any], key: str) -> dict[str, Any]:
        try:
            given = msgspec.convert(dict(arguments), self._arguments)
        except msgspec.ValidationError as error:
            wanted = ", ".join(self.spec.parameters.get("properties", {}))
            raise Refused(f"{self.name} was called wrongly: {error}. It takes: {wanted}.", "agent") from error
        found = msgspec.structs.asdict(given)
        return {**found, KEY: key} if self.kind is Kind.KEYED else found


def tool(kind: str = "unsafe", probe: Callable[..., Any] | None = None) -> Callable[[Callable[..., Any]], Tool]:
    """Make a function a tool. `kind`: pure, keyed, probeable or unsafe."""
    try:
        chosen = Kind(kind)
    except ValueError:
        raise DefinitionError(
            f"There is no kind of effect {kind!r}; choose from {', '.join(k.value for k in Kind)}."
        ) from None
    return lambda function: Tool(function, chosen, probe)


class FileToolbox(Protocol):
    """Tools that work on the files of the agent that calls them (`file_tools.FileTools`)."""

    names: tuple[str, ...]

    def handles(self, name: str) -> bool: ...

    def specs(self, names: tuple[str, ...]) -> list[ToolSpec]: ...

    async def perform(self, request: Request) -> Answer | None: ...

    async def probe(self, request: Request) -> Answer | None: ...

    def kind(self, command: Command) -> Kind: ...


class Toolbox:
    """The performer of `CallTool`. A tool that is given takes the place of a file tool of the same name.

    `own`: tools that only the engine calls; agents never hear of them.
    """

    def __init__(
        self, tools: Iterable[Tool] = (), files: FileToolbox | None = None, own: Mapping[str, Performer] | None = None
    ) -> None:
        self._tools = {one.name: one for one in tools}
        self._files = files
        self._own = own or {}

    def specs(self, names: tuple[str, ...]) -> list[ToolSpec]:
        found: list[ToolSpec] = []
        for name in names:
            if name in self._tools:
                found.append(self._tools[name].spec)
            elif self._files:
                found += self._files.specs((name,))
        return found

    async def perform(self, request: Request) -> Answer | None:
        if own := self._own_tool(request.command):
            return await own.perform(request)
        if files := self._file_tools(request.command):
            return await files.perform(request)
        found = self._find(request.command)
        return _returned(found, await found.call(request.arguments, request.key))

    async def probe(self, request: Request) -> Answer | None:
        if own := self._own_tool(request.command):
            return await own.probe(request)
        if files := self._file_tools(request.command):
            return await files.probe(request)
        found = self._find(request.command)
        value = await found.probe(request.arguments)
        return None if value is None else _returned(found, value)

    def kind(self, command: Command) -> Kind:
        assert isinstance(command, CallTool)
        if own := self._own_tool(command):
            return own.kind(command)
        if files := self._file_tools(command):
            return files.kind(command)
        known = self._tools.get(command.tool)
        # a process that has the tool may have begun the call: what is not known here counts as the worst it can be
        return known.kind if known else Kind.UNSAFE

    def has(self, name: str) -> bool:
        """Whether this process can carry out calls to a tool of agents."""
        return name in self._tools or (self._files is not None and self._files.handles(name))

    def takes(self, command: Command) -> bool:
        """Whether a command that another process left can be carried out here."""
        return not isinstance(command, CallTool) or not command.agent or self.has(command.tool)

    def provider(self, request: Request) -> str:
        return ""

    def _own_tool(self, command: Command) -> Performer | None:
        assert isinstance(command, CallTool)
        return None if command.agent else self._own.get(command.tool)

    def _file_tools(self, command: Command) -> FileToolbox | None:
        assert isinstance(command, CallTool)
        ours = self._files is not None and command.tool not in self._tools and self._files.handles(command.tool)
        return self._files if ours else None

    def _find(self, command: Command) -> Tool:
        assert isinstance(command, CallTool)
        known = self._tools.get(command.tool)
        if known is None:
            names = ", ".join(sorted({*self._tools, *(self._files.names if self._files else ())})) or "none"
            raise Refused(f"There is no tool {command.tool!r}; there are: {names}.", "agent")
        return known


async def _run(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    if inspect.iscoroutinefunction(function):
        return await function(**arguments)
    working = start_thread(function, **arguments)
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        # a thread cannot be stopped; giving the command back while it still acts would invite a repeat
        _, pending = await asyncio.wait([working], timeout=THREAD_GRACE)
        if pending:
            log.warning("The tool %s does not stop; its thread is left to itself", function.__name__)
        raise


def _arguments_type(function: Callable[..., Any]) -> type[msgspec.Struct]:
    hints = get_type_hints(function)
    fields: list[Any] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name == KEY:
            continue
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY) or name not in hints:
            raise DefinitionError(f"Parameter {name!r} of the tool {function.__name__!r} needs a name and a type.")
        field = (name, hints[name])
        fields.append(field if parameter.default is parameter.empty else (*field, parameter.default))
    return msgspec.defstruct(function.__name__, fields, kw_only=True, forbid_unknown_fields=True)


def _schema(arguments: type[msgspec.Struct]) -> dict[str, Any]:
    (reference,), components = msgspec.json.schema_components([arguments])
    name = reference["$ref"].rpartition("/")[2]
    schema = dict(components.pop(name))
    schema.pop("title", None)
    if components:
        schema["$defs"] = components
    return schema


def _returned(called: Tool, value: Any) -> ToolReturned:
    try:
        return ToolReturned(value=plain(value))
    except Exception as error:  # objects of the tool's own may raise anything
        problem = f"A tool must return what JSON can hold, but {called.name} returned {type(value).__name__}."
        if called.kind is Kind.PURE:
            raise Refused(problem) from error
        return ToolReturned(value=done_but_unreadable(problem))
