"""Where the tools of a process come from: styles, modules, the program itself, MCP servers, and ripstop's own."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Literal

from msgspec import Struct

from ripstop.app.settings.settings_file import Settings
from ripstop.app.settings.tables import McpServer
from ripstop.engine.performers import Kind, Performer
from ripstop.kernel.errors import UsageError
from ripstop.security.addresses import parse_address
from ripstop.tools.commands.allow_list import ALLOWED, CommandRules
from ripstop.tools.commands.runner import SandboxedPrograms
from ripstop.tools.mcp.card import ToolCard
from ripstop.tools.mcp.servers import NotConnected, Pins, ServerSpec, ServerTools, ToolListing, ToolRule, list_tools
from ripstop.tools.toolbox import Tool, Toolbox, ToolSource, load_tools
from ripstop.tools.workspace_tools import FileTools

from .plugins import OnDemand, Plugins
from .trust import Trust

# The rules for commands of agents, from the settings.


def command_rules(settings: Settings) -> CommandRules:
    """The user's rules: `allow` takes the place of the built-in list, `also` adds to either."""
    chosen = settings.commands
    allowed = ALLOWED if chosen.allow is None else chosen.allow
    return CommandRules(
        allowed=tuple(dict.fromkeys((*allowed, *chosen.also))),
        seconds=chosen.seconds,
        read=chosen.read,
        unconfined=chosen.unconfined,
    )


# MCP servers of the settings: which of them agents can use, what the user has agreed to, and what has changed.


class ToolView(Struct, frozen=True, kw_only=True):
    """A tool of a server, and whether agents can call it."""

    card: ToolCard
    before: ToolCard | None
    """As the user agreed to it, if the server describes it otherwise now."""
    kind: str
    approve: bool
    status: Literal["pinned", "changed", "new", "gone"]


class ServerView(Struct, frozen=True, kw_only=True):
    name: str
    server: McpServer
    problem: str = ""
    """Why it was not looked at, or could not be."""
    tools: tuple[ToolView, ...] = ()
    notes: tuple[str, ...] = ()
    """What its list has that cannot be used."""


def server_tools(settings: Settings, trust: Trust) -> ServerTools | None:
    """The tools of the servers that the user chose or has agreed to; none if the settings name no server."""
    if not settings.mcp:
        return None
    refused = {name: refusal.message for name, refusal in trust.unagreed_servers().items()}
    specs = [spec_of(settings, trust, name) for name in settings.mcp if name not in refused]
    return ServerTools(specs, Pins(), refused)


def pinned_tools(settings: Settings) -> list[str]:
    """The names of the tools of servers that the user has agreed to; nothing is started to know them."""
    tools = server_tools(settings, Trust(settings)) if settings.mcp else None
    return list(tools.names) if tools else []


def spec_of(settings: Settings, trust: Trust, name: str) -> ServerSpec:
    server, is_projects = settings.mcp[name], name in settings.project_servers
    rules = {
        tool: ToolRule(kind=Kind(rule.kind) if rule.kind else None, approve=rule.approve)
        for tool, rule in server.tools.items()
    }
    return ServerSpec(
        name=name,
        command=server.command,
        url=server.url,
        env=server.env,
        hints=server.hints,
        timeout=server.timeout,
        rules=rules,
        project=trust.project if is_projects else "",
        allow_private=bool(server.url)
        and (not is_projects or trust.endpoints.allow_private(parse_address(server.url).origin)),
    )


def named_server(settings: Settings, name: str) -> McpServer:
    """Raises `UsageError` if the settings have no such server."""
    if name not in settings.mcp:
        known = ", ".join(settings.mcp) or "none"
        raise UsageError(f"There is no MCP server {name!r} in the settings; there are: {known}. Add [mcp.{name[:40]}].")
    return settings.mcp[name]


async def look_at(settings: Settings, name: str) -> ServerView:
    """Start a server and compare its tools with those that the user has agreed to; one without consent is not started.

    Raises `UsageError` if there is no such server.
    """
    server, trust = named_server(settings, name), Trust(settings)
    spec, pins = spec_of(settings, trust, name), Pins()
    pinned = pins.cards(spec)
    refusal = trust.unagreed_servers().get(name)
    try:
        listing = None if refusal else await list_tools(spec)
        problem = refusal.message if refusal else ""
    except NotConnected as error:
        listing, problem = None, error.message
    if listing is None:
        known = tuple(_view(spec, card, card) for card in pinned.values())
        return ServerView(name=name, server=server, problem=problem, tools=known)
    return ServerView(
        name=name, server=server, tools=_compared(spec, pinned.values(), listing), notes=tuple(listing.notes)
    )


def pin(settings: Settings, name: str, cards: Sequence[ToolCard]) -> None:
    """Remember that the user agrees to these tools of a server, and to no others of it. Raises `UsageError`."""
    Pins().remember(spec_of(settings, Trust(settings), name), cards)


def _compared(spec: ServerSpec, pinned: Iterable[ToolCard], listing: ToolListing) -> tuple[ToolView, ...]:
    before = {card.tool: card for card in pinned}
    now = [_view(spec, card, before.get(card.tool)) for card in listing.cards.values()]
    gone = [_view(spec, card, card, gone=True) for tool, card in before.items() if tool not in listing.cards]
    return (*now, *gone)


def _view(spec: ServerSpec, card: ToolCard, before: ToolCard | None, gone: bool = False) -> ToolView:
    changed = before is not None and before.pin != card.pin
    status: Literal["pinned", "changed", "new", "gone"]
    status = "gone" if gone else "new" if before is None else "changed" if changed else "pinned"
    return ToolView(
        card=card,
        before=before if changed else None,
        kind=spec.kind(card).value,
        approve=spec.needs_approval(card),
        status=status,
    )


HTTP_REQUEST = "http_request"
"""The tool for endpoints that a definition names. Its module is imported when a style calls it."""


def _http_request(trust: Trust) -> Performer:
    from ripstop.tools.http.tool import HttpEndpoints

    return HttpEndpoints(trust.endpoints)


def make_toolbox(
    settings: Settings, plugins: Plugins, trust: Trust, given: Iterable[Tool], servers: ToolSource | None = None
) -> Toolbox:
    """The tools of a process; of two with one name, the later in this order: of a style, of a module, `given`.

    Raises `NotTrusted` for a module that a project names.
    """
    runner = SandboxedPrograms(command_rules(settings))
    loaded = {tool.name: tool for tool in (*tools_of_modules(settings, trust), *given)}
    tools: dict[str, Callable[[], Tool]] = {**plugins.agent_tools().makers}
    tools |= {name: partial(loaded.__getitem__, name) for name in loaded}
    own: dict[str, Callable[[], Performer]] = {**plugins.own_tools(runner).makers}
    own[HTTP_REQUEST] = partial(_http_request, trust)
    return Toolbox(OnDemand(tools), files=FileTools(runner), own=OnDemand(own), servers=servers)


def tools_of_modules(settings: Settings, trust: Trust, chosen: Sequence[str] = ()) -> list[Tool]:
    """The tools of modules that the user names now, and of those that the settings name.

    Raises `NotTrusted` for a module that only a project names.
    """
    modules = settings.tools.modules
    if not settings.tools_from:
        return load_tools(chosen, modules)
    trust.check_tools(chosen)
    return load_tools((*chosen, *modules))
