"""The tools of all servers that the user lets agents use: what they are like, and who performs calls to them.

- What agents are told is what the user has agreed to: the pinned cards. No server is started to know them.
- A connection is opened at the first call (or when a run starts that uses the server) and lists the tools again. A tool
  that is not what was agreed to is offered no more, and a call of it is refused; the others work on.
"""

import asyncio
import importlib
import logging
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct

from ripstop.engine.performers import Kind, Refused, Request, ToolSpec, TryAgain
from ripstop.kernel.advice import Advice, NextStep
from ripstop.kernel.effects import Answer, CallTool, Command
from ripstop.kernel.errors import UsageError
from ripstop.security.consent import UserFile
from ripstop.security.files import state_folder

from .card import ALL, SEPARATOR, ToolCard, Unusable, clean, read_card
from .forms import CannotAsk, approval, key_of
from .schema_check import wrong_arguments

if TYPE_CHECKING:
    from mcp.types import InputRequiredResult

    from .connection import Connection


# A server's list of tools, read leniently: what is wrong with one tool leaves out that tool, and is said.


MOST_PAGES = 20
MOST_TOOLS = 200
MOST_NOTES = 50


class ToolListing:
    def __init__(self, server: str) -> None:
        self._server = server
        self.cards: dict[str, ToolCard] = {}
        """By the name that the server uses."""
        self.notes: list[str] = []
        """What was left out, and why."""

    @property
    def is_full(self) -> bool:
        return len(self.cards) >= MOST_TOOLS

    def take(self, tools: Sequence[Any]) -> list[ToolCard]:
        """Read a page. Returns the tools of it that can be used."""
        taken = []
        for raw in tools:
            if self.is_full:
                self.note(f"it has more than {MOST_TOOLS} tools; the others are left out")
                break
            if card := self._read(raw):
                self.cards[card.tool] = card
                taken.append(card)
        return taken

    def note(self, text: str) -> None:
        if len(self.notes) < MOST_NOTES and text not in self.notes:
            self.notes.append(text)

    def _read(self, raw: Any) -> ToolCard | None:
        if not isinstance(raw, Mapping):
            self.note("an entry of its list is not a tool")
            return None
        shown = clean(str(raw.get("name")), 80)
        try:
            card = read_card(self._server, raw)
        except Unusable as error:
            self.note(f"{shown}: left out, because {error}")
            return None
        except RecursionError:
            self.note(f"{shown}: left out, because it is nested too deeply")
            return None
        if card.tool in self.cards or any(card.name == other.name for other in self.cards.values()):
            self.note(f"{shown}: listed twice; the first is used")
            return None
        return card


def server_of(name: str) -> str:
    """The server that a tool's name names; empty if it is not the name of a server's tool."""
    server, separator, _ = name.partition(SEPARATOR)
    return server if separator else ""


# An MCP server as the settings name it, and what its tools are like.


class ToolRule(Struct, frozen=True):
    """What the settings say about one tool; `None`: nothing."""

    kind: Kind | None = None
    approve: bool | None = None


class ServerSpec(Struct, frozen=True, kw_only=True):
    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    env: tuple[str, ...] = ()
    """Names of variables that the server gets."""
    hints: bool = False
    """Whether the user believes what the server says about the effects of its tools."""
    timeout: float = 60.0
    rules: Mapping[str, ToolRule] = {}
    project: str = ""
    """The folder of the project whose file names it; empty: the user's own choice."""
    allow_private: bool = False
    """Whether its `url` may lead to a private address."""

    @property
    def identity(self) -> tuple[str, str, str]:
        """What makes it the same server: another command, or the same one in another project, is another server."""
        return self.name, self.project, self.url or "\0".join(self.command)

    def kind(self, card: ToolCard) -> Kind:
        """What a crash in the middle of a call means. A hint is a claim, so it counts only if the user believes it."""
        said = self._rule(card).kind
        if said is not None:
            return said
        if self.hints and card.hint("readOnlyHint"):
            return Kind.PURE
        return Kind.KEYED if self.hints and card.hint("idempotentHint") else Kind.UNSAFE

    def needs_approval(self, card: ToolCard) -> bool:
        """Whether a person agrees before each call. A server that says nothing may destroy, by the specification."""
        said = self._rule(card).approve
        if said is not None:
            return said
        return self.hints and not card.hint("readOnlyHint") and card.annotations.get("destructiveHint") is not False

    def _rule(self, card: ToolCard) -> ToolRule:
        return self.rules.get(card.tool, ToolRule())


# Tools that the user has agreed to, as they were then: one file per user, `tool_pins.json`.
#
# The whole card is kept, so that what agents may call is known without starting a server, and a change can be shown.


FILE = "tool_pins.json"


class _Pinned(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    project: str
    started: str
    """The server's address, or its command with NUL between its parts."""
    cards: tuple[ToolCard, ...]
    pins: tuple[str, ...]

    @property
    def identity(self) -> tuple[str, str, str]:
        return self.name, self.project, self.started


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: Literal[1] = 1
    servers: tuple[_Pinned, ...] = ()


class Pins:
    def __init__(self, folder: Path | None = None) -> None:
        """`folder`: where the file is, if not in the user's own state folder."""
        where = folder or state_folder()
        self._file = (
            UserFile(where / FILE, NextStep("trust_server", "agree again", "agree again: {}", "SERVER"))
            if where
            else None
        )

    def cards(self, server: ServerSpec) -> dict[str, ToolCard]:
        """The tools of a server that the user has agreed to, by the server's name for them.

        Raises `UsageError` if the file cannot be trusted. A pin by what an earlier version declared counts no more.
        """
        known = next((one for one in self._servers() if one.identity == server.identity), None)
        pairs = zip(known.cards, known.pins, strict=False) if known else ()
        return {card.tool: card for card, pin in pairs if card.pin == pin}

    def remember(self, server: ServerSpec, cards: Iterable[ToolCard]) -> None:
        """Let these be the tools of a server that the user agrees to. Raises `UsageError`."""
        if self._file is None:
            raise UsageError("Tools that you agree to are remembered in your home, but HOME is not set.")
        agreed = tuple(cards)
        pinned = _Pinned(*server.identity, agreed, tuple(card.pin for card in agreed))
        try:
            with self._file.locked():
                others = [one for one in self._servers() if one.identity != server.identity]
                self._file.write(_File(servers=(*others, pinned)))
        except OSError as error:
            raise UsageError(f"{self._file.path} cannot be written: {error.strerror}.") from error

    def _servers(self) -> tuple[_Pinned, ...]:
        found = self._file.read(_File) if self._file else None
        return found.servers if found else ()


log = logging.getLogger("ripstop.mcp")

MOST_WAITING = 1_000
"""Parked calls whose state is remembered; the others begin again."""
PREPARING = 10.0
"""Seconds that the start of a run waits for its servers."""
_EXTRA = "MCP servers need the extra `mcp`: pip install 'ripstop[mcp]'"


class NotConnected(UsageError):
    """Raised if a server cannot be used now."""


class Server:
    """One server, its pinned tools, and the connection of this process to it."""

    def __init__(self, spec: ServerSpec, pins: Pins) -> None:
        self.spec = spec
        self._pins = pins
        self.pinned = pins.cards(spec)
        self._listed: dict[str, ToolCard] | None = None
        self._connection: Connection | None = None
        self._opening = asyncio.Lock()

    @property
    def offered(self) -> dict[str, ToolCard]:
        """The tools that agents can be told of."""
        return {tool: card for tool, card in self.pinned.items() if not self.why_not(card)}

    def why_not(self, card: ToolCard) -> str:
        """Why a pinned tool cannot be called now; empty if it can, as far as that is known."""
        if self._listed is None:
            return ""
        found = self._listed.get(card.tool)
        if found is None:
            return f"The MCP server {self.spec.name!r} does not have the tool {card.tool!r} any more."
        if found.pin != card.pin:
            look = NextStep("trust_server", "Look at it, and agree again", "Look at it: {}", self.spec.name)
            return Advice(f"{card.name} has changed since you agreed to it. ", look, ".")
        return ""

    async def connection(self) -> "Connection":
        """Connected, and its tools listed. Raises `NotConnected`."""
        async with self._opening:
            if self._connection is None or not self._connection.is_open:
                self._connection = await connect(self.spec)
                self._listed = self._connection.listing.cards
                self.reload()
                for card in self.pinned.values():
                    if problem := self.why_not(card):
                        log.warning("%s", problem)
            return self._connection

    def reload(self) -> None:
        """Read again which tools the user has agreed to."""
        self.pinned = self._pins.cards(self.spec)

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()


async def connect(spec: ServerSpec) -> "Connection":
    """Connect to a server and list its tools. Raises `NotConnected`."""
    try:
        # importing the SDK takes more than a second, in which the others would wait
        module = await asyncio.to_thread(importlib.import_module, f"{__package__}.connection")
    except ModuleNotFoundError as error:
        if error.name and error.name.partition(".")[0] not in ("mcp", "mcp_types", "anyio", "jsonschema"):
            raise
        raise NotConnected(f"The MCP server {spec.name!r} cannot be used. {_EXTRA}.") from error
    made: Connection = module.Connection(spec)
    try:
        await made.open()
    except module.CannotConnect as error:
        raise NotConnected(f"The MCP server {spec.name!r} cannot be used: {error}.") from error
    return made


async def list_tools(spec: ServerSpec) -> ToolListing:
    """The tools that a server has now. Raises `NotConnected`."""
    connection = await connect(spec)
    try:
        return connection.listing
    finally:
        await connection.close()


class ServerTools:
    """Performs calls of servers' tools; one for each `Toolbox`."""

    def __init__(self, servers: Iterable[ServerSpec], pins: Pins, not_agreed: Mapping[str, str] = {}) -> None:
        """`not_agreed`: why servers that the settings name are left out, by their names."""
        self._servers = {spec.name: Server(spec, pins) for spec in servers}
        self._not_agreed = not_agreed
        self._waiting: OrderedDict[str, InputRequiredResult] = OrderedDict()
        self._preparing: set[asyncio.Task[None]] = set()
        """Connections that are being opened, although the start of a run has stopped waiting for them."""
        self._calls: Any = None
        """The module `call`, once it is needed."""

    @property
    def names(self) -> tuple[str, ...]:
        """Every tool that calls can be performed of; a changed one is refused when it is called."""
        return tuple(card.name for server in self._servers.values() for card in server.pinned.values())

    def handles(self, name: str) -> bool:
        return self._find(name) is not None

    def specs(self, names: Sequence[str]) -> list[ToolSpec]:
        """Of the tools that are offered; `git__*` means all of a server."""
        found = [
            card.spec for server in self._servers.values() for card in server.offered.values() if _is_named(card, names)
        ]
        return sorted(found, key=lambda spec: spec.name)

    def kind(self, command: Command) -> Kind:
        assert isinstance(command, CallTool)
        found = self._find(command.tool)
        return found[0].spec.kind(found[1]) if found else Kind.UNSAFE

    async def perform(self, request: Request) -> Answer | None:
        command = request.command
        assert isinstance(command, CallTool)
        found = self._find(command.tool)
        if found is None:
            why = self.why_missing(command.tool)
            raise Refused(Advice(f"There is no tool {command.tool!r} here.", *((" ", why) if why else ())))
        server, card = found
        module = await asyncio.to_thread(_import_sdk) if self._calls is None else self._calls
        self._calls = module
        _check(card, request.arguments)
        if server.spec.needs_approval(card) and not await _approved(card, request):
            return None
        call = module.ServerCall(request, server.spec, card, self._waiting)
        answer: Answer | None = None
        parked = False
        try:
            answer = await call.make(lambda: self._connection_for(server, card))
            parked = answer is None
        finally:
            if not parked:
                self._waiting.pop(request.key, None)
        while len(self._waiting) > MOST_WAITING:
            self._waiting.popitem(last=False)
        return answer

    async def probe(self, request: Request) -> Answer | None:
        return None

    def why_missing(self, name: str) -> str:
        """Why agents cannot call a tool, or the tools of a server; empty if there is nothing to say."""
        server = server_of(name)
        if server in self._not_agreed:
            return self._not_agreed[server]
        if server not in self._servers:
            return ""
        known = self._servers[server]
        card = next((card for card in known.pinned.values() if card.name == name), None)
        if card is not None:
            return known.why_not(card)
        agree = NextStep("trust_server", "", ": {}", server)
        return Advice(f"You have not agreed to {'any tool' if name.endswith(ALL) else name!r}", agree, ".")

    async def prepare(self, names: Iterable[str]) -> None:
        """Connect to the servers of these tools, so that a change is known before a run needs them."""
        wanted = {server_of(name) for name in names}
        servers = [server for name, server in self._servers.items() if name in wanted and server.pinned]
        tasks = [asyncio.create_task(_connected(server)) for server in servers]
        self._preparing.update(tasks)
        if tasks:
            await asyncio.wait(tasks, timeout=PREPARING)
        self._preparing = {task for task in self._preparing if not task.done()}

    async def close(self) -> None:
        for task in self._preparing:
            task.cancel()
        await asyncio.gather(*self._preparing, return_exceptions=True)
        await asyncio.gather(*(server.close() for server in self._servers.values()))

    def _find(self, name: str) -> tuple[Server, ToolCard] | None:
        server = self._servers.get(server_of(name))
        cards = server.pinned.values() if server else ()
        return next(((server, card) for card in cards if server and card.name == name), None)

    async def _connection_for(self, server: Server, card: ToolCard) -> "Connection":
        try:
            connection = await server.connection()
        except NotConnected as error:
            raise TryAgain(str(error)) from error  # nothing was sent
        if server.why_not(card):
            server.reload()  # the user may have agreed to the change meanwhile
        if problem := server.why_not(server.pinned.get(card.tool, card)):
            raise Refused(problem)
        return connection


def _import_sdk() -> Any:
    """Import what calls need, which takes more than a second."""
    try:
        importlib.import_module("jsonschema")
        return importlib.import_module(f"{__package__}.call")
    except ModuleNotFoundError as error:
        raise Refused(f"{_EXTRA}.") from error


def _is_named(card: ToolCard, names: Sequence[str]) -> bool:
    return card.name in names or f"{card.server}{ALL}" in names


async def _connected(server: Server) -> None:
    try:
        await server.connection()
    except NotConnected as error:
        log.warning("%s", error)


def _check(card: ToolCard, arguments: Mapping[str, Any]) -> None:
    """Raise `Refused` for wrong arguments, before anything is sent."""
    problem = wrong_arguments(card.schema, arguments)
    if problem:
        takes = ", ".join(card.schema.get("properties", {})) or "nothing"
        raise Refused(f"{card.name} was called wrongly: {problem.rstrip('.')}. It takes: {takes}.", "agent")


async def _approved(card: ToolCard, request: Request) -> bool:
    """Whether a person has agreed to this call; false: nobody has answered yet. Raises `Refused`."""
    assert isinstance(request.command, CallTool)
    try:
        question = approval(card, request.command.agent, request.arguments)
    except CannotAsk as error:
        raise Refused(f"{card.name} needs a person's approval, which cannot be asked for: {error}.", "agent") from error
    answer = await request.ask(key_of(question, 0), question)
    if answer is None:
        return False
    if answer.choice != "approve":
        who, why = answer.by or "A person", f": {answer.text}" if answer.text else ""
        raise Refused(f"{who} did not approve the call of {card.name}{why}.", "person")
    return True
