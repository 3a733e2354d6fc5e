"""The styles that are plugged in: the only module that knows styles by name.

A `Plugin` names things by import strings (`module:NAME`), imported when they are needed, so that a command imports the
styles that it works with and no other. Others bring their own with an entry point of the group `ripstop.styles` that
names a `Plugin`. What is wrong with one of theirs never keeps the others from working.

For the same reason this module imports next to nothing, and its types are plain tuples: every command imports it.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ripstop.engine.failpoints import check_armed
from ripstop.kernel.errors import UsageError

from .plugin import OpenHttpFace, Plugin, PluginCommand, StyleProjects, StyleService

if TYPE_CHECKING:
    from pathlib import Path

    from ripstop.definitions.loading import Workflow
    from ripstop.definitions.reader import DefinitionReader, Readers
    from ripstop.engine.performers import Performer
    from ripstop.kernel.registry import LazyKit, Registry
    from ripstop.kernel.style import StyleKit
    from ripstop.text.translation import Translation
    from ripstop.tools.commands.runner import SandboxedPrograms
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


STYLES = ("graph", "blackboard", "handoff", "conversation", "pipeline")
"""The styles that ripstop comes with. Each says in its `plugin.py` what it brings."""


def imported(target: str) -> Any:
    """What an import string names."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


BUILT_IN: tuple[Plugin, ...] = tuple(imported(f"ripstop.styles.{style}.plugin:PLUGIN") for style in STYLES)

T = TypeVar("T")


class OnDemand(Mapping[str, T]):
    """Things by name, each made when it is first looked up."""

    def __init__(self, makers: Mapping[str, Callable[[], T]]) -> None:
        self.makers = makers
        self._made: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        if name not in self._made:
            self._made[name] = self.makers[name]()
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self.makers

    def __iter__(self) -> Iterator[str]:
        return iter(self.makers)

    def __len__(self) -> int:
        return len(self.makers)


SHARED_TEXTS = ("ripstop.kernel:texts", "ripstop.engine:texts", "ripstop.styles:texts")
"""Translations of what is said to people about runs of every style."""
HISTORY_TEXTS = "ripstop.history:texts"
"""Those of the phrases that tell what happened."""


class PluginProblem(NamedTuple):
    """A third-party plug-in that cannot be used, and is left out."""

    name: str
    reason: str


class Plugins:
    """The styles of a process, and all that they bring."""

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
    def _kits_by_plugin(self) -> "Mapping[str, tuple[StyleKit | LazyKit, ...]]":
        """The kits of every plug-in that can be used, by the plug-in's name.

        Where there are others than ours, all are imported: they are checked against one another.
        """
        from ripstop.kernel.registry import LazyKit, Registry

        found: dict[str, tuple[StyleKit | LazyKit, ...]] = {}
        for plugin in self.all:
            try:
                if plugin.name in found:
                    raise ValueError(f"there is another plug-in named {plugin.name!r}")
                if self._only_built_in:
                    named = zip(plugin.styles, plugin.kits, strict=True)
                    found[plugin.name] = tuple(LazyKit(style, partial(imported, kit)) for style, kit in named)
                    continue
                kits = tuple(imported(kit) for kit in plugin.kits)
                if plugin not in BUILT_IN:
                    others = (kit for name in found for kit in found[name])
                    Registry([*others, *kits])
            except (Exception, SystemExit) as error:  # third-party code
                self._refuse(plugin, error)
            else:
                found[plugin.name] = kits
        return found

    @property
    def _only_built_in(self) -> bool:
        return all(plugin in BUILT_IN for plugin in self.all)

    def styles_of(self, plugin: Plugin) -> tuple[str, ...]:
        """The names of a plug-in's styles; none if it cannot be used."""
        return tuple(kit.name for kit in self._kits_by_plugin.get(plugin.name, ()))

    @cached_property
    def kits(self) -> "tuple[StyleKit, ...]":
        every = (kit for kits in self._kits_by_plugin.values() for kit in kits)
        return tuple(self.registry.kits[kit.name] for kit in every)

    @cached_property
    def registry(self) -> "Registry":
        from ripstop.kernel.registry import Registry

        return Registry(kit for kits in self._kits_by_plugin.values() for kit in kits)

    @cached_property
    def readers(self) -> "Readers":
        if not self._only_built_in:
            found: Readers = self._imported("reader", DEFINITION_READER)
            return found
        from ripstop.definitions.loading import WORKFLOW_FILES
        from ripstop.definitions.reader import LazyReaders

        by_name = {plugin.name: plugin for plugin in self.all if plugin.reader}
        belongs = {file: plugin.name for plugin in by_name.values() for file in plugin.files}
        ours = {file: belongs[file] for file in WORKFLOW_FILES if file in belongs}
        return LazyReaders(lambda style: imported(by_name[style].reader), ours, tuple(by_name))

    def reader_of(self, style: str) -> "DefinitionReader":
        """Raises `UsageError` for a style that has none."""
        if reader := self._reader(style):
            return reader
        known = ", ".join(reader.style for reader in self.readers)
        raise UsageError(f"There is no style {style!r} that is defined in files; there are: {known}.")

    def _reader(self, style: str) -> "DefinitionReader | None":
        from ripstop.definitions.reader import LazyReaders

        if isinstance(self.readers, LazyReaders):
            return self.readers.of(style)
        return next((reader for reader in self.readers if reader.style == style), None)

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
        target = next((plugin.http for plugin in self.all if plugin.http and plugin.name in self._kits_by_plugin), "")
        found: OpenHttpFace | None = imported(target) if target else None
        return found

    def own_tools(self, runner: "SandboxedPrograms | None" = None) -> "OnDemand[Performer]":
        """The performers that only styles call, by tool."""

        def make(plugin: Plugin) -> "Mapping[str, Performer]":
            maker = imported(plugin.tools)
            made: Mapping[str, Performer] = maker(runner=runner) if _takes_runner(maker) else maker()
            return made

        plugins = [plugin for plugin in self.all if plugin.tools]
        return self._on_demand(plugins, "tool_names", make, "another style has a tool {name!r} of its own")

    def agent_tools(self) -> "OnDemand[Tool]":
        """The tools that agents of any workflow can be given, by name."""

        def make(plugin: Plugin) -> "Mapping[str, Tool]":
            tools: Iterable[Tool] = imported(plugin.agent_tools)()
            return {tool.name: tool for tool in tools}

        plugins = [plugin for plugin in self.all if plugin.agent_tools]
        return self._on_demand(plugins, "agent_tool_names", make, "another style brings a tool {name!r}")

    def _on_demand(
        self, plugins: Iterable[Plugin], names: str, make: Callable[[Plugin], Mapping[str, T]], taken: str
    ) -> OnDemand[T]:
        """What plug-ins make, by name. Where there are others than ours, it is made now: they may promise too much.

        `taken`: what is wrong with a name that another plug-in has.
        """
        found: dict[str, Callable[[], T]] = {}
        for plugin in plugins:
            if plugin.name not in self._kits_by_plugin:
                continue
            once = cache(partial(make, plugin))
            try:
                made = getattr(plugin, names) if self._only_built_in else tuple(once())
                for name in made:
                    if name in found:
                        raise ValueError(taken.format(name=name))
            except (Exception, SystemExit) as error:  # third-party code
                self._refuse(plugin, error)
            else:
                found |= {name: partial(_one_of, once, name) for name in made}
        return OnDemand(found)

    def translation(self, language: str) -> "Translation":
        """What the kernel and the styles say, in a language; of two translations of one sentence the first."""
        from ripstop.text.translation import Translation

        found: dict[str, str] = {}
        for target in SHARED_TEXTS:
            found |= _texts(target, language)
        for plugin in self.all:
            if not plugin.texts or plugin.name not in self._kits_by_plugin:
                continue
            try:
                texts = _texts(plugin.texts, language)
                Translation(texts)  # raises for one that could not be used
            except (Exception, SystemExit) as error:  # third-party code
                self._refuse(plugin, error)
            else:
                found = texts | found
        return Translation(found, _texts(HISTORY_TEXTS, language))

    @property
    def commands(self) -> dict[str, PluginCommand]:
        """The commands that styles bring, by name; of two with one name the first."""
        every = [command for plugin in self.all for command in plugin.commands]
        return {command.name: command for command in (*every, *reversed(every))}

    def command(self, name: str) -> Any:
        """The click command of that name that a style brings, or `None`. Raises `UsageError` if it is broken."""
        if name not in self.commands:
            return None
        target = self.commands[name].target
        try:
            return imported(target)
        except (Exception, SystemExit) as error:
            if any(target == command.target for plugin in BUILT_IN for command in plugin.commands):
                raise
            raise UsageError(f"The command {name!r} ({target}) cannot be loaded: {_reason(error)}.") from error

    def check_pinned(self, style: str, definition: Any) -> None:
        """Check a definition from a journal as if its author had written it now. Raises `DefinitionError`."""
        if reader := self._reader(style):
            reader.check_pinned(definition)

    # What cannot be used

    def _imported(self, part: str, members: tuple[str, ...]) -> tuple[Any, ...]:
        """This part of every plug-in that has it."""
        found = []
        for plugin in self.all:
            target = getattr(plugin, part)
            if not target or plugin.name not in self._kits_by_plugin:
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


def _one_of(made: Callable[[], Mapping[str, T]], name: str) -> T:
    return made()[name]


def _texts(target: str, language: str) -> dict[str, str]:
    """The translations that a plug-in's `texts` names; none if there are none into that language."""
    from importlib.resources import files

    import msgspec

    package, _, name = target.partition(":")
    path = files(package) / f"{name}.{language}.json"
    return msgspec.json.decode(path.read_bytes(), type=dict[str, str]) if path.is_file() else {}


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
    plugins = Plugins(BUILT_IN) if not _others_bring_styles() else _with_others()
    check_armed(name for plugin in plugins.all for name in plugin.failpoints)
    return plugins


def _with_others() -> Plugins:
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
