"""Where the tools of a process come from: styles, modules, the program itself, MCP servers, and ripstop's own."""

from collections.abc import Iterable

from ripstop.checks.commands import command_rules
from ripstop.checks.trust import Trust
from ripstop.performers.knowledge.tools import own_tools as knowledge_tools
from ripstop.performers.tools.commands.runner import CommandRunner
from ripstop.performers.tools.file_tools import FileTools
from ripstop.performers.tools.http.tool import NAME as HTTP_REQUEST
from ripstop.performers.tools.http.tool import HttpEndpoints
from ripstop.performers.tools.modules import load_tools
from ripstop.performers.tools.toolbox import Tool, Toolbox, ToolSource
from ripstop.plugins import Plugins
from ripstop.runtime.performers import Performer
from ripstop.settings.settings_file import Settings


def make_toolbox(
    settings: Settings, plugins: Plugins, trust: Trust, given: Iterable[Tool], servers: ToolSource | None = None
) -> Toolbox:
    """The tools of a process; of two with one name, the later in this order: of a style, of a module, `given`.

    Raises `NotTrusted` for a module that a project names.
    """
    of_styles, runner = plugins.agent_tools(), CommandRunner(command_rules(settings))
    tools = {tool.name: tool for tool in (*of_styles, *_tools_of_settings(settings, trust), *given)}
    own: dict[str, Performer] = {
        **plugins.own_tools(runner),
        **knowledge_tools(),
        HTTP_REQUEST: HttpEndpoints(trust.endpoints),
    }
    return Toolbox(tools.values(), files=FileTools(runner), own=own, servers=servers)


def _tools_of_settings(settings: Settings, trust: Trust) -> list[Tool]:
    modules = settings.tools.modules
    if not settings.tools_from:
        return load_tools(installed=modules)
    trust.check_tools()
    return load_tools(modules)
