"""`[mcp.NAME]`: MCP servers whose tools agents may call.

    [mcp.git]                       # its tools are called git__NAME
    command = ["mcp-server-git"]    # or url = "https://…"
    env = ["GIT_TOKEN"]             # variables that the server gets: names, never values
    hints = false                   # true: believe what the server says about the effects of its tools
    timeout = 60                    # seconds for one call

    [mcp.git.tools.git_commit]
    kind = "unsafe"                 # pure, keyed or unsafe; beats every hint
    approve = true                  # a person agrees before each call

A server of a project's file takes the place of the user's own of that name as a whole: a table that is partly the
user's and partly the project's would be nobody's choice.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from ripstop.kernel.errors import UsageError
from ripstop.kernel.text_limits import shown
from ripstop.security.addresses import parse_address
from ripstop.security.consent import parse_allowed
from ripstop.security.endpoints import parse_endpoint

# The table `[http]`: what tools can reach.


VARIABLE = "RIPSTOP_HTTP_ALLOW"


class Http(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Only the user's own file has it."""

    allow: tuple[str, ...] = ()
    """Origins that need no consent, and that can be private addresses."""

    def check(self) -> None:
        """Raises `UsageError`."""
        for one in self.allow:
            parse_allowed(one, "the address")

    def also(self, variables: Mapping[str, str], chosen: Sequence[str]) -> "Http":
        """The same with what the environment and the command line allow. Raises `UsageError`."""
        named = [one for one in variables.get(VARIABLE, "").split(",") if one.strip()]
        more = [parse_allowed(one, VARIABLE) for one in named] + [parse_allowed(one, "--allow") for one in chosen]
        return Http(tuple(dict.fromkeys((*self.allow, *more))))


MOST_PARTS = 100
_SERVER_NAME = re.compile(r"(?!.{33})[A-Za-z0-9](?:_?[A-Za-z0-9-])*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class McpTool(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    kind: Literal["", "pure", "keyed", "unsafe"] = ""
    """Empty: as the server's hints say, if they are believed; otherwise unsafe."""
    approve: bool | None = None


class McpServer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    command: tuple[str, ...] = ()
    url: str = ""
    env: tuple[str, ...] = ()
    hints: bool = False
    timeout: float = 60.0
    tools: dict[str, McpTool] = {}

    @property
    def content(self) -> str:
        """The whole table, as JSON: what the user agrees to."""
        return msgspec.json.encode(self, order="deterministic").decode()


def replaced(users: Mapping[str, Any], projects: Mapping[str, Any]) -> dict[str, Any]:
    """The servers of both files; those of the project take the place of the user's."""
    return {**users.get("mcp", {}), **projects.get("mcp", {})}


def only_in_project(users: Mapping[str, Any], projects: Mapping[str, Any]) -> tuple[str, ...]:
    """The servers that are not just as the user's own file has them."""
    mine = users.get("mcp", {})
    return tuple(name for name, table in projects.get("mcp", {}).items() if mine.get(name) != table)


def wrong_servers(servers: Mapping[str, McpServer]) -> Iterator[tuple[tuple[str, ...], str]]:
    """What is wrong with them, each with the keys of the place."""
    for name, server in servers.items():
        for keys, problem in _wrong(name, server):
            yield ("mcp", name, *keys), problem


def _wrong(name: str, server: McpServer) -> Iterator[tuple[tuple[str, ...], str]]:
    if not _SERVER_NAME.fullmatch(name):
        yield (), "a server's name has at most 32 letters, digits, `-` and single `_`"
    if bool(server.command) == bool(server.url):
        yield (), 'a server has either a `command`, such as ["mcp-server-git"], or a `url`'
    if server.command and (not server.command[0] or len(server.command) > MOST_PARTS):
        yield ("command",), f"it is a program and its arguments, at most {MOST_PARTS} of them"
    if any("\0" in part for part in server.command):
        yield ("command",), "no program can get a NUL character"
    if server.url:
        if server.env:
            yield ("env",), "variables go to a server that is started by its `command`; one at a `url` gets none"
        try:
            parse_address(server.url, "the address")
        except UsageError as error:
            yield ("url",), str(error)
    for variable in server.env:
        if not _VARIABLE.fullmatch(variable):
            yield (
                ("env",),
                f"{variable.partition('=')[0][:80]!r} is not the name of a variable; values are not written here",
            )


# The table `[serve]`: what `ripstop serve` answers for, and under which names.
#
# [serve]
# hosts = ["bot.example.com"] # in the user's own file only
# [serve.workflows]
# shop = "bots/shop.json"     # http://127.0.0.1:8517/conversations/shop/…


NAME = re.compile("[A-Za-z0-9_-]{1,64}")
"""What a workflow is called in addresses."""


class Serve(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    workflows: dict[str, str] = {}
    """Paths of bots, by the names that they have in addresses."""
    hosts: tuple[str, ...] = ()
    """Names under which the server answers, besides the loopback ones. Only the user's own file has it."""

    @property
    def problem(self) -> tuple[tuple[str, ...], str] | None:
        """The keys of a value that is wrong, and why; none if all are right."""
        for name in self.workflows:
            if not NAME.fullmatch(name):
                return (
                    "serve",
                    "workflows",
                ), f"{shown(name)} cannot be in an address; use letters, digits, - and _"
        return None


# The tables `[webhooks.NAME]`: who is told what happens in conversations and other runs.


MAX_HOOKS = 20
_HOOK_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")


class Webhook(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    url: str
    secret: str
    """The environment variable with the secret that signs, `whsec_…`."""
    workflows: tuple[str, ...] = ()
    """Only runs of these; empty: of all."""
    kinds: tuple[str, ...] = ()
    """Only notices of these kinds, such as `message`; empty: all."""


def check_webhooks(webhooks: Mapping[str, Webhook]) -> tuple[tuple[str, ...], str] | None:
    """The keys of a setting that is wrong, and what is wrong with it; `None` if all are right."""
    if len(webhooks) > MAX_HOOKS:
        return ("webhooks",), f"there are {len(webhooks)} webhooks; at most {MAX_HOOKS} are possible"
    for name, hook in webhooks.items():
        if not _HOOK_NAME.fullmatch(name):
            return ("webhooks", name), "the name of a webhook has 1 to 40 letters, digits, '-' and '_'"
        try:
            parse_endpoint(hook.url, "the URL")
        except UsageError as error:
            return ("webhooks", name, "url"), str(error)
        if not _VARIABLE.fullmatch(hook.secret):  # not quoted: it may be the secret itself
            return ("webhooks", name, "secret"), (
                "this is not the name of an environment variable. The secret itself is not written here: put it into a "
                "variable, and name that"
            )
    return None


def named_by_project(merged: Mapping[str, Webhook], users: Mapping[str, object]) -> tuple[str, ...]:
    """The webhooks that are not exactly what the user's own file says."""
    return tuple(
        name for name, hook in merged.items() if name not in users or msgspec.convert(users[name], Webhook) != hook
    )
