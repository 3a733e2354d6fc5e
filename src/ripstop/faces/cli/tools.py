"""`tools list` and `tools trust`: the tools of MCP servers, and which of them you let agents use."""

import asyncio
import difflib
import sys
from typing import TYPE_CHECKING, Any

import click

from ripstop.faces.next_steps import in_commands
from ripstop.text.plurals import count

from .options import Family, Options, shared_options
from .terminal import can_ask, confirm, say, say_json, say_text

if TYPE_CHECKING:
    from ripstop.app.settings.settings_file import Settings
    from ripstop.app.toolbox import ServerView, ToolView

DECLINED = 1
COLOURS = {"pinned": "green", "changed": "red", "new": "yellow", "gone": "dim"}


@click.group(cls=Family, short_help="Look at the tools of MCP servers, and agree to them.")
@shared_options
def tools() -> None:
    """Look at the tools of the MCP servers that the settings name ([mcp.NAME]), and agree to them.

    A tool is offered to agents only as you agreed to it. If a server describes it otherwise later, it is not offered
    until you have agreed again; the others work on.

    \b
    Examples:
      ripstop tools list
      ripstop tools trust git
    """


@tools.command("list", short_help="List servers and their tools.")
@shared_options
@click.pass_obj
def list_(options: Options) -> None:
    """List the MCP servers of the settings with their tools. Servers that you have agreed to are started for it.

    \b
    pinned   you have agreed to it, and agents can call it
    changed  it is not what you agreed to any more, and not offered
    new      you have not agreed to it yet
    gone     the server does not have it any more
    Examples:
      ripstop tools list
      ripstop tools list --json
    """
    views = asyncio.run(_look_at_all(options.settings()))
    if options.as_json:
        return say_json({"servers": [_plain(view) for view in views]})
    if not views:
        say('The settings name no MCP server. Add one to ripstop.toml: [mcp.NAME] with command = ["…"] or url = "…".')
    for view in views:
        _tell(view)
    return None


@tools.command("trust", short_help="Agree to a server and its tools.")
@click.argument("server")
@click.option("--yes", is_flag=True, help="Agree without being asked.")
@shared_options
@click.pass_obj
def trust(options: Options, server: str, yes: bool) -> None:
    """Show the tools of an MCP SERVER and let agents use them as they are now.

    What has changed since you agreed is shown as a difference. A server that this project's ripstop.toml names is
    started only after you have agreed to that.

    \b
    Example:
      ripstop tools trust git
    """
    settings = options.settings()
    if not yes and (options.as_json or not can_ask()):
        raise click.UsageError(f"Agree to the tools of {server!r} on a terminal, or with --yes.")
    _agree_to_start(settings, server, yes)
    view = _view(settings, server)
    wanted = [tool for tool in view.tools if tool.status != "gone"]
    news = [tool for tool in view.tools if tool.status != "pinned"]
    if not options.as_json:
        for tool in news:
            _show(tool)
        for note in view.notes:
            say(f"not usable  {note}", err=True)
    if news and not yes and not confirm(f"Let agents use {count(len(wanted), 'tool')} of {server} as shown?"):
        say("Nothing was agreed to.", err=True)
        sys.exit(DECLINED)
    if news:
        from ripstop.app.toolbox import pin

        pin(settings, server, [tool.card for tool in wanted])
    if options.as_json:
        return say_json({"server": server, "agreed": [tool.card.name for tool in wanted], "notes": list(view.notes)})
    changed = f"You have agreed to {count(len(wanted), 'tool')} of {server}."
    return say(changed if news else f"Nothing has changed: {changed[0].lower()}{changed[1:]}")


def _agree_to_start(settings: "Settings", server: str, yes: bool) -> None:
    """Have the user agree that a project's server is started, if that is needed."""
    from ripstop.app.toolbox import named_server
    from ripstop.app.trust import Trust
    from ripstop.security.consent import Consents

    named_server(settings, server)
    refusal = Trust(settings).unagreed_servers().get(server)
    if refusal is None:
        return
    say(refusal.said, err=True)
    if not yes and not confirm("Do you agree?"):
        say("Nothing was agreed to.", err=True)
        sys.exit(DECLINED)
    Consents().remember([refusal.named])


def _view(settings: "Settings", server: str) -> "ServerView":
    from ripstop.app.toolbox import look_at
    from ripstop.kernel.errors import UsageError

    view = asyncio.run(look_at(settings, server))
    if view.problem:
        raise UsageError(view.problem)
    return view


async def _look_at_all(settings: "Settings") -> "list[ServerView]":
    from ripstop.app.toolbox import look_at

    return list(await asyncio.gather(*(look_at(settings, name) for name in settings.mcp)))


def _show(tool: "ToolView") -> None:
    """A tool in full, or what has changed of it."""
    say()
    approve = ", a person agrees before each call" if tool.approve else ""
    say((tool.status, COLOURS[tool.status]), f"  {tool.card.name}  ", (f"({tool.kind}{approve})", "dim"))
    if tool.before is None:
        return say_text(tool.card.as_text())
    before, now = tool.before.as_text().splitlines(), tool.card.as_text().splitlines()
    return say_text("\n".join(difflib.unified_diff(before, now, "agreed", "now", lineterm="")))


def _tell(view: "ServerView") -> None:
    where = view.server.url or " ".join(view.server.command)
    say((view.name, "bold"), f"  {where}")
    if view.problem:
        say(f"  {in_commands(view.problem)}")
    for tool in view.tools:
        approve = ", approve" if tool.approve else ""
        say("  ", (f"{tool.status:8}", COLOURS[tool.status]), f"{tool.card.name}  ", (f"({tool.kind}{approve})", "dim"))
    for note in view.notes:
        say(f"  not usable  {note}")
    if any(tool.status in ("new", "changed") for tool in view.tools):
        say(f"  Agree:  ripstop tools trust {view.name}")


def _plain(view: "ServerView") -> dict[str, Any]:
    return {
        "name": view.name,
        "command": list(view.server.command),
        "url": view.server.url,
        "problem": in_commands(view.problem),
        "tools": [
            {
                "name": tool.card.name,
                "status": tool.status,
                "kind": tool.kind,
                "approve": tool.approve,
                "description": tool.card.description,
                "pin": tool.card.pin,
            }
            for tool in view.tools
        ],
        "notes": list(view.notes),
    }
