"""The styles that are plugged in, and all that belongs to each: the only module that knows styles by name.

A `Plugin` names things by import strings (`module:NAME`), imported when they are needed, so that `ripstop --help`
imports no style. Others bring their own with an entry point of the group `ripstop.styles` that names a `Plugin`. What
is wrong with one of theirs never keeps the others from working.

For the same reason this module imports next to nothing, and its types are plain tuples: every command imports it.
"""

import os
import sys
from collections.abc import Iterable, Mapping
from functools import cache, cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from ripstop.kernel.errors import UsageError

from .plugin import OpenHttpFace, Plugin, PluginCommand, StyleProjects, StyleService

if TYPE_CHECKING:
    from pathlib import Path

    from ripstop.definitions.loading import Workflow
    from ripstop.definitions.reader import DefinitionReader
    from ripstop.engine.performers import Performer
    from ripstop.kernel.registry import Registry
    from ripstop.kernel.style import StyleKit
    from ripstop.tools.commands.runner import CommandRunner
    from ripstop.tools.toolbox import Tool

GROUP = "ripstop.styles"
DISTRIBUTIONS = (".dist-info", ".egg-info")
DEFINITION_READER = (
    "style",
    "looks_like",
    "greedy",
    "find",
    "find_all",
    "read",
    "check",
    "check_pinned",
    "schema",
    "example",
)


BUILT_IN = (
    Plugin(
        name="graph",
        summary="Agents take turns along the edges of a state graph in YAML.",
        kits=("ripstop.styles.graph.kit:KIT",),
        reader="ripstop.styles.graph.reader:READER",
    ),
    Plugin(
        name="blackboard",
        summary="MAIN decides, specialists report, and a policy verifies; all of it is files in one folder.",
        kits=("ripstop.styles.blackboard.kit:KIT",),
        reader="ripstop.styles.blackboard.reader:READER",
        tools="ripstop.styles.blackboard.tools:own_tools",
        commands=(PluginCommand("board", "ripstop.styles.blackboard.cli:board", "Read reports by a policy."),),
    ),
    Plugin(
        name="handoff",
        summary="Markdown documents pass from owner to owner; people and programs work in the same folder.",
        kits=("ripstop.styles.handoff.kit:KIT",),
        reader="ripstop.styles.handoff.reader:READER",
        tools="ripstop.styles.handoff.publisher:own_tools",
        service="ripstop.styles.handoff.service:SERVICE",
        commands=(PluginCommand("docs", "ripstop.styles.handoff.cli:docs", "Work with hand-off documents."),),
    ),
    Plugin(
        name="conversation",
        summary="A bot answers users in sessions: it plans, acts, waits, and hands over to a person.",
        summaries={"planning": "Makes the plan of a bot, once for all of its sessions."},
        kits=("ripstop.styles.conversation.kit:KIT", "ripstop.styles.conversation.kit:PLANNING"),
        reader="ripstop.styles.conversation.reader:READER",
        http="ripstop.styles.conversation.http.application:open_face",
        commands=(
            PluginCommand("chat", "ripstop.styles.conversation.cli.chat:chat", "Talk to a bot."),
            PluginCommand("sessions", "ripstop.styles.conversation.cli.sessions:sessions", "Look at sessions."),
            PluginCommand("serve", "ripstop.faces.serve:serve", "Serve bots over HTTP, and work on the journal."),
            PluginCommand("kb", "ripstop.styles.conversation.cli.knowledge:kb", "Search knowledge bases."),
        ),
    ),
    Plugin(
        name="pipeline",
        summary="From an idea to delivered files, stage by stage, with a person's review.",
        kits=("ripstop.styles.pipeline.kit:KIT",),
        reader="ripstop.styles.pipeline.reader:READER",
        tools="ripstop.styles.pipeline.stages:own_tools",
        agent_tools="ripstop.styles.pipeline.agent_tools:agent_tools",
        projects="ripstop.styles.pipeline.project_runs:PROJECTS",
        commands=(
            PluginCommand("new", "ripstop.styles.pipeline.cli:new", "Start a delivery project in this folder."),
            PluginCommand("modify", "ripstop.styles.pipeline.cli:modify", "Restart a project at a stage."),
            PluginCommand("status", "ripstop.styles.pipeline.cli:status", "Show how far a project is."),
        ),
    ),
)


COMMANDS = (PluginCommand("web", "ripstop.faces.serve_web:web", "Open the web desk, and work on the journal."),)
"""Commands that belong to no style, and are imported only when they are called."""


class PluginProblem(NamedTuple):
    """A third-party plug-in that cannot be used, and is left out."""

    name: str
    reason: str


def imported(target: str) -> Any:
    """What an import string names."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


class Plugins:
    def __init__(
        self, plugins: Iterable[Plugin] = BUILT_IN, lenient: bool = False, problems: Iterable[PluginProblem] = ()
    ) -> None:
        """Args:
        lenient: Leave out plug-ins that cannot be used, but no built-in one, and say so in `problems`. Otherwise they
            raise `UsageError`.
        problems: What was left out before.
        """
        self.all = tuple(plugins)
        self.problems = list(problems)
        self._lenient = lenient

    # What is plugged in

    @cached_property
    def kits_of(self) -> "Mapping[str, tuple[StyleKit, ...]]":
        """The kits of every plug-in that can be used, by the plug-in's name."""
        from ripstop.kernel.registry import Registry

        found: dict[str, tuple[StyleKit, ...]] = {}
        for plugin in self.all:
            try:
                if plugin.name in found:
                    raise ValueError(f"there is another plug-in named {plugin.name!r}")
                kits = tuple(imported(kit) for kit in plugin.kits)
                if plugin not in BUILT_IN:
                    others = (kit for name in found for kit in found[name])
                    Registry([*others, *kits])
            except (Exception, SystemExit) as error:  # third-party code
                self._refuse(plugin, error)
            else:
                found[plugin.name] = kits
        return found

    @cached_property
    def kits(self) -> "tuple[StyleKit, ...]":
        return tuple(kit for kits in self.kits_of.values() for kit in kits)

    @cached_property
    def registry(self) -> "Registry":
        from ripstop.kernel.registry import Registry

        return Registry(self.kits)

    @cached_property
    def readers(self) -> "tuple[DefinitionReader, ...]":
        found: tuple[DefinitionReader, ...] = self._imported("reader", DEFINITION_READER)
        return found

    def reader_of(self, style: str) -> "DefinitionReader":
        """Raises `UsageError` for a style that has none."""
        for reader in self.readers:
            if reader.style == style:
                return reader
        known = ", ".join(reader.style for reader in self.readers)
        raise UsageError(f"There is no style {style!r} that is defined in files; there are: {known}.")

    @cached_property
    def services(self) -> tuple[StyleService, ...]:
        found: tuple[StyleService, ...] = self._imported("service", ("attach", "run_named", "draw"))
        return found

    def project_in(self, folder: "Path") -> StyleProjects | None:
        """What knows the project that a folder is; none if it is not one."""
        found: tuple[StyleProjects, ...] = self._imported(
            "projects", ("is_project", "resume", "plan_restart", "restart")
        )
        return next((one for one in found if one.is_project(folder)), None)

    @property
    def open_http_face(self) -> OpenHttpFace | None:
        """What opens the HTTP face of the first style that has one. Its libraries are in the extra `web`."""
        target = next((plugin.http for plugin in self.all if plugin.http and plugin.name in self.kits_of), "")
        found: OpenHttpFace | None = imported(target) if target else None
        return found

    def own_tools(self, runner: "CommandRunner | None" = None) -> "dict[str, Performer]":
        """The performers that only styles call, by tool."""
        found: dict[str, Performer] = {}
        for plugin in self.all:
            if not plugin.tools or plugin.name not in self.kits_of:
                continue
            try:
                make = imported(plugin.tools)
                made: Mapping[str, Performer] = make(runner=runner) if _takes_runner(make) else make()
                for name in made:
                    if name in found:
                        raise ValueError(f"another style has a tool {name!r} of its own")
            except (Exception, SystemExit) as error:  # third-party code
                self._refuse(plugin, error)
            else:
                found |= made
        return found

    def agent_tools(self) -> "list[Tool]":
        """The tools that agents of any workflow can be given."""
        found: dict[str, Tool] = {}
        for plugin in self.all:
            if not plugin.agent_tools or plugin.name not in self.kits_of:
                continue
            try:
                made: Iterable[Tool] = imported(plugin.agent_tools)()
                named = {tool.name: tool for tool in made}
                for name in named:
                    if name in found:
                        raise ValueError(f"another style brings a tool {name!r}")
            except (Exception, SystemExit) as error:  # third-party code
                self._refuse(plugin, error)
            else:
                found |= named
        return list(found.values())

    @property
    def commands(self) -> dict[str, PluginCommand]:
        """The commands that styles bring, and a few more, by name; of two with one name the first."""
        every = [*COMMANDS, *(command for plugin in self.all for command in plugin.commands)]
        return {command.name: command for command in reversed(every)}

    def command(self, name: str) -> Any:
        """The click command of that name that a style brings, or `None`. Raises `UsageError` if it is broken."""
        if name not in self.commands:
            return None
        target = self.commands[name].target
        try:
            return imported(target)
        except (Exception, SystemExit) as error:
            built_in = (*COMMANDS, *(command for plugin in BUILT_IN for command in plugin.commands))
            if any(target == command.target for command in built_in):
                raise
            raise UsageError(f"The command {name!r} ({target}) cannot be loaded: {_reason(error)}.") from error

    def check_pinned(self, style: str, definition: Any) -> None:
        """Check a definition from a journal as if its author had written it now. Raises `DefinitionError`."""
        for reader in self.readers:
            if reader.style == style:
                reader.check_pinned(definition)

    # What cannot be used

    def _imported(self, part: str, members: tuple[str, ...]) -> tuple[Any, ...]:
        """This part of every plug-in that has it."""
        found = []
        for plugin in self.all:
            target = getattr(plugin, part)
            if not target or plugin.name not in self.kits_of:
                continue
            try:
                one = imported(target)
                if missing := [name for name in members if not hasattr(one, name)]:
                    raise TypeError(f"its {part} ({target}) has no {', '.join(missing)}")
            except (Exception, SystemExit) as error:  # third-party code
                self._refuse(plugin, error)
            else:
                found.append(one)
        return tuple(found)

    def _refuse(self, plugin: Plugin, error: BaseException) -> None:
        if plugin in BUILT_IN:
            raise error
        if not self._lenient:
            raise UsageError(f"The plug-in {plugin.name!r} cannot be used: {_reason(error)}.") from error
        self._leave_out(plugin.name, _reason(error))

    def _leave_out(self, name: str, reason: str) -> None:
        problem = PluginProblem(name, reason)
        if problem not in self.problems:
            self.problems.append(problem)
            _warn(name, reason)


def _reason(error: BaseException) -> str:
    """What went wrong in third-party code, in a line."""
    text = " ".join(str(error).split())[:300].rstrip(".")
    return text if isinstance(error, ValueError | UsageError) else f"{type(error).__name__}: {text}"


def _takes_runner(function: Any) -> bool:
    code = getattr(function, "__code__", None)
    return code is not None and "runner" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def find(named: str, goal: str = "", any_name: bool = False) -> "Workflow":
    """Read the workflow that a path, or a name in `workflows/`, means to the styles that are installed.

    Args:
        goal: What the run is to do, for a definition that does not say it.
        any_name: The workflow need not have its folder's name.

    Raises `UsageError` or `DefinitionError`.
    """
    from ripstop.definitions.loading import find
    from ripstop.definitions.reader import Environment

    return find(installed().readers, named, Environment(goal=goal, any_name=any_name))


@cache
def installed() -> Plugins:
    """The built-in plug-ins, and those that other packages bring.

    One that is broken is left out with a warning: the others, and runs of other styles, work as ever.
    """
    if not _others_bring_styles():
        return Plugins(BUILT_IN)
    from importlib.metadata import entry_points

    found, problems = list(BUILT_IN), list[PluginProblem]()
    for point in entry_points(group=GROUP):
        try:
            plugin = point.load()
            if not isinstance(plugin, Plugin):
                raise TypeError(f"{point.value} is not a Plugin")
            if any(plugin.name == other.name for other in found):
                raise ValueError(f"there is another plug-in named {plugin.name!r}; uninstall one of them")
        except (Exception, SystemExit) as error:  # third-party code
            problems.append(PluginProblem(point.name, _reason(error)))
            _warn(point.name, _reason(error))
        else:
            found.append(plugin)
    return Plugins(found, lenient=True, problems=problems)


def _warn(name: str, reason: str) -> None:
    import logging

    logging.getLogger("ripstop.plugins").warning("The plug-in %r is left out: %s.", name, reason)


def _others_bring_styles() -> bool:
    """Whether a style's entry point can be installed. Importing `importlib.metadata` to ask takes a tenth of `--help`.

    What is not a plain folder of packages (a zip file, a finder with its own distributions) is left to it.
    """
    from importlib.machinery import PathFinder

    if any(hasattr(finder, "find_distributions") and finder is not PathFinder for finder in sys.meta_path):
        return True
    return any(_may_bring_styles(folder or ".") for folder in sys.path)


def _may_bring_styles(folder: str) -> bool:
    try:
        packages = [name for name in os.listdir(folder) if name.endswith(DISTRIBUTIONS)]
    except NotADirectoryError:
        return True
    except OSError:  # it is not there, or not for us; nor can Python import from it
        return False
    return any(_names_our_group(os.path.join(folder, name, "entry_points.txt")) for name in packages)


def _names_our_group(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return GROUP.encode() in file.read()
    except OSError:  # most packages have none
        return False
