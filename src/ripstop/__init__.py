"""ripstop: run teams of AI agents so that nothing tears.

The names below are the public ones; everything else is free to change.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_WHERE = {
    # Running
    "open_app": "ripstop.app",
    "open_engine": "ripstop.app",
    "App": "ripstop.app",
    "Settings": "ripstop.settings.settings_file",
    "read_settings": "ripstop.settings.settings_file",
    "until_settled": "ripstop.runtime.following",
    # Definitions
    "find": "ripstop.definitions.loading",
    "Workflow": "ripstop.definitions.loading",
    # Tools
    "tool": "ripstop.performers.tools.toolbox",
    "InDoubt": "ripstop.runtime.ports",
    "Refused": "ripstop.runtime.ports",
    "TryAgain": "ripstop.runtime.ports",
    # What a run is made of
    "Engine": "ripstop.runtime.engine",
    "Limits": "ripstop.kernel.effects",
    "Usage": "ripstop.kernel.effects",
    "Run": "ripstop.kernel.run",
    "Record": "ripstop.kernel.events",
    # Errors
    "RipstopError": "ripstop.kernel.errors",
    "UsageError": "ripstop.kernel.errors",
    "DefinitionError": "ripstop.kernel.errors",
    "JournalError": "ripstop.kernel.errors",
}

__all__ = ["__version__", *_WHERE]

if TYPE_CHECKING:
    from ripstop.app import App as App
    from ripstop.app import open_app as open_app
    from ripstop.app import open_engine as open_engine
    from ripstop.definitions.loading import Workflow as Workflow
    from ripstop.definitions.loading import find as find
    from ripstop.kernel.effects import Limits as Limits
    from ripstop.kernel.effects import Usage as Usage
    from ripstop.kernel.errors import DefinitionError as DefinitionError
    from ripstop.kernel.errors import JournalError as JournalError
    from ripstop.kernel.errors import RipstopError as RipstopError
    from ripstop.kernel.errors import UsageError as UsageError
    from ripstop.kernel.events import Record as Record
    from ripstop.kernel.run import Run as Run
    from ripstop.performers.tools.toolbox import tool as tool
    from ripstop.runtime.engine import Engine as Engine
    from ripstop.runtime.following import until_settled as until_settled
    from ripstop.runtime.ports import InDoubt as InDoubt
    from ripstop.runtime.ports import Refused as Refused
    from ripstop.runtime.ports import TryAgain as TryAgain
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
