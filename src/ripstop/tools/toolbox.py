"""Tools are plain typed functions with a decorator; a toolbox performs calls to them.

    @tool("pure")
    def add(a: int, b: int) -> int:
        "Add two whole numbers."
        return a + b

The signature is the schema: a call with wrong arguments is answered with what is wrong, so that the
agent can mend it. `kind` says what a crash in the middle means (see `engine.performers.Kind`); a tool
that does not say is `unsafe`. An exception of an unsafe tool leaves its effect in doubt, and a person
is asked; with `Refused` and `TryAgain` the tool says that nothing happened, with `InDoubt` what is known.

A `keyed` tool takes our key as its parameter `key`, which agents do not see. A `probeable` one brings
`probe`, a function of the same arguments that returns what the call returned if it happened, and `None`
if it did not. A parameter of type `ToolContext` gets what the call is part of; agents do not see it either.
"""

import asyncio
import importlib
import inspect
import logging
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite
from pathlib import Path
from types import NoneType
from typing import Any, Protocol, get_args, get_type_hints, overload

import msgspec
from msgspec import Struct

from ripstop.engine.doubts import done_but_unreadable
from ripstop.engine.performers import InDoubt, Kind, Performer, Refused, Request, ToolSpec, start_thread
from ripstop.kernel.effects import Answer, CallTool, Command, ToolReturned
from ripstop.kernel.errors import DefinitionError, UsageError
from ripstop.kernel.events import RunSettings
from ripstop.kernel.text_limits import plain
from ripstop.security.files import OURS

# Calls a tool's function: a coroutine in the loop, anything else in its own thread, within its time limit.
#
# A thread cannot be stopped, and a coroutine can refuse to be. Such a call is left to itself, and is then not known to
# have ended: what it does later is not reported.


log = logging.getLogger("ripstop.tools")

GRACE = 2.0
"""Seconds that a call has to end after it was cancelled: its run has ended, or its time is up."""
_left: set["asyncio.Future[Any]"] = set()
"""Calls that did not end in time; the loop itself keeps no reference to them."""


class TimedOut(InDoubt):
    """Raised for a call that took longer than its tool may."""

    def __init__(self, seconds: float | None, left: "asyncio.Future[Any] | None") -> None:
        super().__init__(f"It did not finish within its time limit of {seconds:g} s")
        self.left = left
        """The call, if it did not even end when its time was up: it can still take effect."""


async def call(function: Callable[..., Any], arguments: Mapping[str, Any], seconds: float | None = None) -> Any:
    """Call it, and return what it returns. `seconds`: its time limit. Raises `TimedOut`."""
    in_loop = inspect.iscoroutinefunction(function)
    if in_loop and seconds is None:
        return await function(**arguments)
    working: asyncio.Future[Any] = (
        asyncio.ensure_future(function(**arguments)) if in_loop else start_thread(function, **arguments)
    )
    try:
        await asyncio.wait([working], timeout=seconds)
    except asyncio.CancelledError:
        # giving the command back while it still acts would invite a repeat
        await _end(working, function, in_loop)
        raise
    in_time = working.done()
    if not in_time:
        await _end(working, function, in_loop, grace=GRACE if in_loop else 0.0)
    if not working.done() or (not in_time and working.cancelled()):
        raise TimedOut(seconds, None if working.done() else working)
    return working.result()


async def _end(
    working: "asyncio.Future[Any]", function: Callable[..., Any], in_loop: bool, grace: float = GRACE
) -> None:
    """Have a call end, and wait for it; one that does not is left to itself."""
    if in_loop:
        working.cancel()
    _, pending = await asyncio.wait([working], timeout=grace)
    if not pending:
        return
    log.warning("The tool %s does not stop; it is left to itself", function.__name__)
    _left.add(working)
    working.add_done_callback(_forget)


def _forget(ended: "asyncio.Future[Any]") -> None:
    _left.discard(ended)
    if not ended.cancelled():
        ended.exception()  # its caller has gone


# What a tool can learn about its own call.


class ToolContext(Struct, frozen=True, kw_only=True):
    """A tool gets it as the parameter that has this type, under any name; agents neither see nor set it."""

    run: str
    """The run's id."""
    agent: str
    """The agent that calls; empty for a call of the workflow itself."""
    workspace: Path
    """The run's folder of files; it does not exist before something is written there."""
    key: str
    """The idempotency key: the same for every attempt at this call, and for nothing else."""
    attempt: int
    """Counted from 1."""


def context_of(request: Request) -> ToolContext:
    assert isinstance(request.command, CallTool)
    return ToolContext(
        run=request.run_id,
        agent=request.command.agent,
        workspace=workspace_of(request),
        key=request.key,
        attempt=request.attempt,
    )


def workspace_of(request: Request) -> Path:
    """The workspace of the run whose request it is."""
    return run_workspace(request.run_id, request.settings)


def run_workspace(run_id: str, settings: RunSettings) -> Path:
    """The run's setting `workspace`, or a folder of its own below the current one."""
    # a run is named after its workflow, whose name may have a slash
    return Path(settings.workspace or Path.cwd() / OURS / "workspaces" / run_id.replace("/", "-"))


# A tool's signature: the parameters that agents give, and those that the engine fills in.


KEY = "key"
"""The parameter that gets the idempotency key."""


class Signature(msgspec.Struct, frozen=True):
    arguments: type[msgspec.Struct]
    """What an agent gives; nothing else is taken."""
    takes_key: bool
    context: str
    """The parameter that gets the `ToolContext`; empty if there is none."""

    @property
    def schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments: an object."""
        (reference,), components = msgspec.json.schema_components([self.arguments])
        name = reference["$ref"].rpartition("/")[2]
        schema = dict(components.pop(name))
        schema.pop("title", None)
        if components:
            schema["$defs"] = components
        return schema


def read_signature(function: Callable[..., Any]) -> Signature:
    """Raises `DefinitionError` for a function that cannot be a tool."""
    hints = get_type_hints(function, include_extras=True)
    fields: list[Any] = []
    contexts: list[str] = []
    takes_key = False
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY) or name not in hints:
            raise DefinitionError(f"Parameter {name!r} of the tool {function.__name__!r} needs a name and a type.")
        if _is_context(hints[name]):
            contexts.append(name)
        elif _mentions_context(hints[name]):
            # msgspec could make one from what an agent says
            raise DefinitionError(f"Parameter {name!r} of the tool {function.__name__!r}: write `{name}: ToolContext`.")
        elif name == KEY:
            takes_key = True
        else:
            default = () if parameter.default is parameter.empty else (parameter.default,)
            fields.append((name, hints[name], *default))
    if len(contexts) > 1:
        raise DefinitionError(f"The tool {function.__name__!r} takes the ToolContext twice; once is enough.")
    arguments = msgspec.defstruct(function.__name__, fields, kw_only=True, forbid_unknown_fields=True)
    return Signature(arguments, takes_key, contexts[0] if contexts else "")


def context_parameter(function: Callable[..., Any]) -> str:
    """The parameter of any function that gets the `ToolContext`; empty if there is none."""
    return next((name for name, hint in get_type_hints(function).items() if _is_context(hint)), "")


def _is_context(hint: Any) -> bool:
    """`ToolContext`, or `ToolContext | None` for a function that is also called without one."""
    return hint is ToolContext or set(get_args(hint)) == {ToolContext, NoneType}


def _mentions_context(hint: Any) -> bool:
    return hint is ToolContext or any(map(_mentions_context, get_args(hint)))


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
        tools: Iterable[Tool] | Mapping[str, Tool] = (),
        files: ToolSource | None = None,
        own: Mapping[str, Performer] | None = None,
        servers: ToolSource | None = None,
    ) -> None:
        self._tools = tools if isinstance(tools, Mapping) else {one.name: one for one in tools}
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


# Tools from modules that a user names: `--tools shop.tools`, or `[tools] modules` in the settings.
#
# Only modules that were named are imported. The current folder can be somebody else's: what the user named for every
# folder must not be looked for in it.


def load_tools(here: Sequence[str] = (), installed: Sequence[str] = ()) -> list[Tool]:
    """The tools that modules define, in order. Raises `UsageError` for a module that cannot be used.

    Args:
        here: Modules that are looked for in the current folder, and then where Python looks.
        installed: Modules that are looked for only where Python looks.
    """
    found: dict[str, Tool] = {}
    for name in dict.fromkeys((*here, *installed)):
        tools = _tools_in(name, [str(Path.cwd())] if name in here else [])
        if not tools:
            raise UsageError(f"The module {name!r} has no tools. A tool is a function with @ripstop.tool.")
        for tool in tools:
            if found.get(tool.name, tool) is not tool:
                raise UsageError(f"Two modules have a tool {tool.name!r}; the second is {name!r}. Rename one of them.")
            found[tool.name] = tool
    return list(found.values())


def _where(folders: list[str]) -> str:
    """Where a module was looked for."""
    if folders:
        return f"It is not in {folders[0]}, and not where Python looks."
    return "It is not where Python looks; the current folder is not searched for what your own settings name."


def _tools_in(name: str, folders: list[str]) -> list[Tool]:
    sys.path[:0] = folders
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            raise UsageError(
                f"There is no module {name!r} to take tools from. {_where(folders)} Expected a module's name, such as "
                "shop_tools for shop_tools.py."
            ) from error
        raise UsageError(f"The module {name!r} cannot be imported: {error}.") from error
    except (Exception, SystemExit) as error:
        raise UsageError(f"The module {name!r} cannot be imported: {type(error).__name__}: {error}.") from error
    finally:
        for folder in folders:
            sys.path.remove(folder)
    return [value for value in vars(module).values() if isinstance(value, Tool)]
