"""ripstop: run teams of AI agents so that nothing tears.

The names below are for users, and for authors of tools. Beside them are public: `ripstop.events` for those who follow
runs, `ripstop.style_api` and `ripstop.store_api` for authors of styles and stores, and `ripstop.testing`. Everything
else is free to change.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.2.0.dev0"

_WHERE = {
    # Running
    "App": "ripstop.app.application",
    "run_sync": "ripstop.app.run_sync",
    "RunResult": "ripstop.app.run_sync",
    "CheckedStart": "ripstop.app.start",
    "ResumedRun": "ripstop.app.resume",
    "open_engine": "ripstop.app.stores",
    "Settings": "ripstop.app.settings.settings_file",
    "read_settings": "ripstop.app.settings.settings_file",
    "View": "ripstop.engine.engine",
    "Attachment": "ripstop.engine.engine",
    "DeliveredMessage": "ripstop.engine.messages",
    # What to work on, and what to ask for
    "ALL": "ripstop.engine.ports",
    "NOTHING": "ripstop.engine.ports",
    "All": "ripstop.engine.ports",
    "Nothing": "ripstop.engine.ports",
    "Tree": "ripstop.engine.ports",
    "Prefixed": "ripstop.engine.ports",
    "RunQuery": "ripstop.engine.ports",
    "DeskQuery": "ripstop.engine.ports",
    "Question": "ripstop.engine.ports",
    "RunInfo": "ripstop.engine.ports",
    "Page": "ripstop.engine.ports",
    "until_settled": "ripstop.engine.following",
    # Definitions
    "find": "ripstop.app.plugins",
    "Workflow": "ripstop.definitions.loading",
    # Tools
    "tool": "ripstop.tools.toolbox",
    "ToolContext": "ripstop.tools.toolbox",
    "InDoubt": "ripstop.engine.performers",
    "Refused": "ripstop.engine.performers",
    "TryAgain": "ripstop.engine.performers",
    # Styles
    "Plugin": "ripstop.app.plugin",
    "PluginCommand": "ripstop.app.plugin",
    "Plugins": "ripstop.app.plugins",
    "BUILT_IN": "ripstop.app.plugins",
    "Style": "ripstop.kernel.style",
    "StyleKit": "ripstop.kernel.style",
    "Step": "ripstop.kernel.step",
    "Sample": "ripstop.kernel.style",
    # What a run is made of
    "Engine": "ripstop.engine.engine",
    "Run": "ripstop.kernel.run",
    "Record": "ripstop.kernel.events",
    "Limits": "ripstop.kernel.effects",
    "Usage": "ripstop.kernel.effects",
    # Errors
    "RipstopError": "ripstop.kernel.errors",
    "UsageError": "ripstop.kernel.errors",
    "DefinitionError": "ripstop.kernel.errors",
    "JournalError": "ripstop.kernel.errors",
    "RunNotFound": "ripstop.kernel.errors",
    "RunHasEnded": "ripstop.kernel.errors",
    "RunAlreadyStarted": "ripstop.kernel.errors",
    "AlreadyAnswered": "ripstop.kernel.errors",
    "MessageIdUsed": "ripstop.kernel.errors",
    "JournalNotFound": "ripstop.kernel.errors",
    "RunDamaged": "ripstop.kernel.errors",
    "UntrustedFolder": "ripstop.kernel.errors",
    "NotTrusted": "ripstop.app.trust",
    "ForeignJournal": "ripstop.app.journal_trust",
}

__all__ = ["__version__", *_WHERE]

if TYPE_CHECKING:
    from ripstop.app.application import App as App
    from ripstop.app.journal_trust import ForeignJournal as ForeignJournal
    from ripstop.app.plugin import Plugin as Plugin
    from ripstop.app.plugin import PluginCommand as PluginCommand
    from ripstop.app.plugins import BUILT_IN as BUILT_IN
    from ripstop.app.plugins import Plugins as Plugins
    from ripstop.app.plugins import find as find
    from ripstop.app.resume import ResumedRun as ResumedRun
    from ripstop.app.run_sync import RunResult as RunResult
    from ripstop.app.run_sync import run_sync as run_sync
    from ripstop.app.settings.settings_file import Settings as Settings
    from ripstop.app.settings.settings_file import read_settings as read_settings
    from ripstop.app.start import CheckedStart as CheckedStart
    from ripstop.app.stores import open_engine as open_engine
    from ripstop.app.trust import NotTrusted as NotTrusted
    from ripstop.definitions.loading import Workflow as Workflow
    from ripstop.engine.engine import Attachment as Attachment
    from ripstop.engine.engine import Engine as Engine
    from ripstop.engine.engine import View as View
    from ripstop.engine.following import until_settled as until_settled
    from ripstop.engine.messages import DeliveredMessage as DeliveredMessage
    from ripstop.engine.performers import InDoubt as InDoubt
    from ripstop.engine.performers import Refused as Refused
    from ripstop.engine.performers import TryAgain as TryAgain
    from ripstop.engine.ports import ALL as ALL
    from ripstop.engine.ports import NOTHING as NOTHING
    from ripstop.engine.ports import All as All
    from ripstop.engine.ports import DeskQuery as DeskQuery
    from ripstop.engine.ports import Nothing as Nothing
    from ripstop.engine.ports import Page as Page
    from ripstop.engine.ports import Prefixed as Prefixed
    from ripstop.engine.ports import Question as Question
    from ripstop.engine.ports import RunInfo as RunInfo
    from ripstop.engine.ports import RunQuery as RunQuery
    from ripstop.engine.ports import Tree as Tree
    from ripstop.kernel.effects import Limits as Limits
    from ripstop.kernel.effects import Usage as Usage
    from ripstop.kernel.errors import AlreadyAnswered as AlreadyAnswered
    from ripstop.kernel.errors import DefinitionError as DefinitionError
    from ripstop.kernel.errors import JournalError as JournalError
    from ripstop.kernel.errors import JournalNotFound as JournalNotFound
    from ripstop.kernel.errors import MessageIdUsed as MessageIdUsed
    from ripstop.kernel.errors import RipstopError as RipstopError
    from ripstop.kernel.errors import RunAlreadyStarted as RunAlreadyStarted
    from ripstop.kernel.errors import RunDamaged as RunDamaged
    from ripstop.kernel.errors import RunHasEnded as RunHasEnded
    from ripstop.kernel.errors import RunNotFound as RunNotFound
    from ripstop.kernel.errors import UntrustedFolder as UntrustedFolder
    from ripstop.kernel.errors import UsageError as UsageError
    from ripstop.kernel.events import Record as Record
    from ripstop.kernel.run import Run as Run
    from ripstop.kernel.step import Step as Step
    from ripstop.kernel.style import Sample as Sample
    from ripstop.kernel.style import Style as Style
    from ripstop.kernel.style import StyleKit as StyleKit
    from ripstop.tools.toolbox import ToolContext as ToolContext
    from ripstop.tools.toolbox import tool as tool

if not TYPE_CHECKING:  # for a type checker there are the names above, and no others

    def __getattr__(name: str) -> Any:
        """Import a public name when it is first used, so that `import ripstop` costs next to nothing."""
        if name not in _WHERE:
            raise AttributeError(f"module 'ripstop' has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(_WHERE[name]), name)

    def __dir__() -> list[str]:
        """All public names, imported or not."""
        return sorted({*globals(), *__all__})
