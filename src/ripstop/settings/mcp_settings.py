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
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec

from ripstop.kernel.errors import UsageError
from ripstop.security.addresses import parse_address

MOST_PARTS = 100
_NAME = re.compile(r"(?!.{33})[A-Za-z0-9](?:_?[A-Za-z0-9-])*")
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
    if not _NAME.fullmatch(name):
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
