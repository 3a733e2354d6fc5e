"""ripstop: run teams of AI agents so that nothing tears.

The names below are the public ones; everything else is free to change.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_WHERE = {
    # Running
    "App": "ripstop.app",
    "run_sync": "ripstop.scripting",
    "RunResult": "ripstop.scripting",
    "open_engine": "ripstop.opening",
    "Settings": "ripstop.settings.settings_file",
    "read_settings": "ripstop.settings.settings_file",
    "View": "ripstop.runtime.engine",
    "Attachment": "ripstop.runtime.engine",
    "DeliveredMessage": "ripstop.performers.messages",
    # What to work on, and what to ask for
    "ALL": "ripstop.runtime.ports",
    "NOTHING": "ripstop.runtime.ports",
    "All": "ripstop.runtime.ports",
    "Nothing": "ripstop.runtime.ports",
    "Tree": "ripstop.runtime.ports",
    "Prefixed": "ripstop.runtime.ports",
    "RunQuery": "ripstop.runtime.ports",
    "DeskQuery": "ripstop.runtime.ports",
    "Question": "ripstop.runtime.ports",
    "RunInfo": "ripstop.runtime.ports",
    "Page": "ripstop.runtime.ports",
    "until_settled": "ripstop.runtime.following",
    # Definitions
    "find": "ripstop.plugins",
    "Workflow": "ripstop.definitions.loading",
    # Tools
    "tool": "ripstop.performers.tools.toolbox",
    "ToolContext": "ripstop.performers.tools.context",
    "InDoubt": "ripstop.runtime.performers",
    "Refused": "ripstop.runtime.performers",
    "TryAgain": "ripstop.runtime.performers",
    # Styles
    "Plugin": "ripstop.plugins",
    "PluginCommand": "ripstop.plugins",
    "Plugins": "ripstop.plugins",
    "BUILT_IN": "ripstop.plugins",
    "Style": "ripstop.kernel.style",
    "StyleKit": "ripstop.kernel.style",
    "Step": "ripstop.kernel.step",
    "Sample": "ripstop.kernel.style",
    # What a run is made of
    "Engine": "ripstop.runtime.engine",
    "Run": "ripstop.kernel.run",
    "Record": "ripstop.kernel.events",
    "Limits": "ripstop.kernel.effects",
    "Usage": "ripstop.kernel.effects",
    # Errors
    "RipstopError": "ripstop.kernel.errors",
    "UsageError": "ripstop.kernel.errors",
    "DefinitionError": "ripstop.kernel.errors",
    "JournalError": "ripstop.kernel.errors",
}

__all__ = ["__version__", *_WHERE]

if TYPE_CHECKING:
    from ripstop.app import App as App
    from ripstop.definitions.loading import Workflow as Workflow
    from ripstop.kernel.effects import Limits as Limits
    from ripstop.kernel.effects import Usage as Usage
    from ripstop.kernel.errors import DefinitionError as DefinitionError
    from ripstop.kernel.errors import JournalError as JournalError
    from ripstop.kernel.errors import RipstopError as RipstopError
    from ripstop.kernel.errors import UsageError as UsageError
    from ripstop.kernel.events import Record as Record
    from ripstop.kernel.run import Run as Run
    from ripstop.kernel.step import Step as Step
    from ripstop.kernel.style import Sample as Sample
    from ripstop.kernel.style import Style as Style
    from ripstop.kernel.style import StyleKit as StyleKit
    from ripstop.opening import open_engine as open_engine
    from ripstop.performers.messages import DeliveredMessage as DeliveredMessage
    from ripstop.performers.tools.context import ToolContext as ToolContext
    from ripstop.performers.tools.toolbox import tool as tool
    from ripstop.plugin_types import Plugin as Plugin
    from ripstop.plugin_types import PluginCommand as PluginCommand
    from ripstop.plugins import BUILT_IN as BUILT_IN
    from ripstop.plugins import Plugins as Plugins
    from ripstop.plugins import find as find
    from ripstop.runtime.engine import Attachment as Attachment
    from ripstop.runtime.engine import Engine as Engine
    from ripstop.runtime.engine import View as View
    from ripstop.runtime.following import until_settled as until_settled
    from ripstop.runtime.performers import InDoubt as InDoubt
    from ripstop.runtime.performers import Refused as Refused
    from ripstop.runtime.performers import TryAgain as TryAgain
    from ripstop.runtime.ports import ALL as ALL
    from ripstop.runtime.ports import NOTHING as NOTHING
    from ripstop.runtime.ports import All as All
    from ripstop.runtime.ports import DeskQuery as DeskQuery
    from ripstop.runtime.ports import Nothing as Nothing
    from ripstop.runtime.ports import Page as Page
    from ripstop.runtime.ports import Prefixed as Prefixed
    from ripstop.runtime.ports import Question as Question
    from ripstop.runtime.ports import RunInfo as RunInfo
    from ripstop.runtime.ports import RunQuery as RunQuery
    from ripstop.runtime.ports import Tree as Tree
    from ripstop.scripting import RunResult as RunResult
    from ripstop.scripting import run_sync as run_sync
    from ripstop.settings.settings_file import Settings as Settings
    from ripstop.settings.settings_file import read_settings as read_settings


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import ripstop` costs next to nothing."""
    if name not in _WHERE:
        raise AttributeError(f"module 'ripstop' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    """All public names, imported or not."""
    return sorted({*globals(), *__all__})
