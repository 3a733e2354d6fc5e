"""What a plug-in is made of: plain tuples and protocols. Every command imports it, so it imports next to nothing."""

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ripstop.faces.http.asgi import AsgiApp
    from ripstop.text.diagrams.diagram import Diagram

    from .application import App


class PluginCommand(NamedTuple):
    """A command, or a group of them, that a style adds to the command line."""

    name: str
    target: str
    """`module:NAME` of the click command."""
    help: str
    """One line for the list of commands."""


class Plugin(NamedTuple):
    """What a style brings, as import strings.

    `styles`, `files`, `tool_names` and `agent_tool_names` let a process import less. They are used where all plug-ins
    are ripstop's own; beside others everything is imported at once, and checked.
    """

    name: str
    kits: tuple[str, ...]
    """`module:NAME` of each `StyleKit`; several, where styles belong together."""
    styles: tuple[str, ...] = ()
    """The styles of the kits, in their order: a kit is imported when a run needs it."""
    summary: str = ""
    """What the style is for, in one line."""
    summaries: "Mapping[str, str]" = MappingProxyType({})
    """The same of its other styles, by their names; one that is not named has `summary`."""
    reader: str = ""
    """`module:NAME` of a `DefinitionReader`."""
    files: tuple[str, ...] = ()
    """Names of files that are always definitions of this style, so that no other reader has to be asked."""
    tools: str = ""
    """`module:NAME` of a function that makes the style's own performers, by the names of their tools.

    One with a parameter `runner` gets what runs commands in their sandbox (`SandboxedPrograms`).
    """
    tool_names: tuple[str, ...] = ()
    """What `tools` makes: it is called when one of them is."""
    agent_tools: str = ""
    """`module:NAME` of a function that makes a list of `Tool`s, which agents of any workflow can be given."""
    agent_tool_names: tuple[str, ...] = ()
    """What `agent_tools` makes: it is called when an agent is given one of them."""
    service: str = ""
    """`module:NAME` of a `StyleService`."""
    projects: str = ""
    """`module:NAME` of a `StyleProjects`."""
    http: str = ""
    """`module:NAME` of an `OpenHttpFace`: what `ripstop serve` answers with."""
    commands: tuple[PluginCommand, ...] = ()
    demo: str = ""
    """`module:NAME` of the scenes that it plays in `ripstop web --demo`."""
    steps: "Mapping[str, str]" = MappingProxyType({})
    """The commands, without `ripstop`, for next steps that only this style's messages name (`NextStep`), by the action.

    `{}` stands for the step's subject.
    """
    failpoints: tuple[str, ...] = ()
    """Places in its own code where a test may kill the process (`ripstop.testing.failpoint`)."""
    texts: str = ""
    """`package:NAME` of translations of what the style says: `NAME.zh.json` in that package has those into Chinese.

    Each is a JSON object of English sentences and their translations, as `ripstop.text.translation` reads them.
    """


class StyleService(Protocol):
    """What an application does with a style's own files, above engine and worker."""

    def attach(self, app: "App", folder: "Path") -> None:
        """The process works in this folder: documents in it that were moved are found again."""

    def run_named(self, named: str, folder: "Path") -> str:
        """The id of the run that a name or file in a folder means; empty if it means none."""

    def draw(self, path: "Path") -> "Diagram | None":
        """A drawing of one of its files or folders; none if it is not one."""


class StyleHttpFace(Protocol):
    """What answers HTTP requests about a style's runs."""

    @property
    def asgi(self) -> "AsgiApp": ...

    @property
    def served(self) -> "Sequence[str]":
        """The names of the workflows in addresses."""

    @property
    def stopping(self) -> "asyncio.Event":
        """Set when the server stops: streams end, and requests that wait are answered."""


class OpenHttpFace(Protocol):
    async def __call__(self, app: "App", named: "Mapping[str, str]", paths: "Sequence[str]") -> StyleHttpFace:
        """Open the face for workflows: paths by name, and others, which have names of their own.

        Raises `UsageError` or `DefinitionError`.
        """


class FoundWork(NamedTuple):
    """The run that a folder's own work continues with."""

    run_id: str
    notes: tuple[str, ...] = ()
    """What the person should know about it."""


class RestartPlan(NamedTuple):
    """What restarting a project at a stage does. Paths are those that people see in its folder."""

    stage: str
    removed: tuple[str, ...]
    """What is made again; it is kept in a backup."""
    kept: tuple[str, ...]
    repeated: tuple[str, ...]
    """The stages that run again."""
    missing: tuple[str, ...]
    """What the stage reads and is not there."""


class StyleProjects(Protocol):
    """Work that belongs to a folder rather than to a run: `ripstop resume` there means it."""

    def is_project(self, folder: "Path") -> bool: ...

    async def plan_restart(self, app: "App", folder: "Path", stage: str) -> RestartPlan:
        """Say what `restart` would do; nothing is changed. Raises `UsageError`."""

    async def restart(self, app: "App", folder: "Path", stage: str, change: str, key: str) -> str:
        """Restart the project at a stage; returns the run that does it.

        With the same key it is restarted once, however often this is called. Raises `UsageError`.
        """

    async def resume(self, app: "App", folder: "Path") -> FoundWork:
        """Find the run that the project continues with; start one if there is none. Raises `UsageError`."""
