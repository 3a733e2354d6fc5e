"""Tools from modules that a user names: `--tools shop.tools`, or `[tools] modules` in the settings.

Only modules that were named are imported. The current folder can be somebody else's: what the user named for every
folder must not be looked for in it.
"""

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from ripstop.kernel.errors import UsageError

from .toolbox import Tool


def load_tools(here: Sequence[str] = (), installed: Sequence[str] = ()) -> list[Tool]:
    """The tools that modules define, in order. Raises `UsageError` for a module that cannot be used.

    Args:
        here: Modules that are looked for in the current folder, and then where Python looks.
        installed: Modules that are looked for only where Python looks.
    """
    found: dict[str, Tool] = {}
    for name in dict.fromkeys((*here, *installed)):
        tools = _tools_in(name, [str(Path.cwd())] if name in here else [])
        if not tools:
            raise UsageError(f"The module {name!r} has no tools. A tool is a function with @ripstop.tool.")
        for tool in tools:
            if found.get(tool.name, tool) is not tool:
                raise UsageError(f"Two modules have a tool {tool.name!r}; the second is {name!r}. Rename one of them.")
            found[tool.name] = tool
    return list(found.values())


def _where(folders: list[str]) -> str:
    """Where a module was looked for."""
    if folders:
        return f"It is not in {folders[0]}, and not where Python looks."
    return "It is not where Python looks; the current folder is not searched for what your own settings name."


def _tools_in(name: str, folders: list[str]) -> list[Tool]:
    sys.path[:0] = folders
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            raise UsageError(
                f"There is no module {name!r} to take tools from. {_where(folders)} Expected a module's name, such as "
                "shop_tools for shop_tools.py."
            ) from error
        raise UsageError(f"The module {name!r} cannot be imported: {error}.") from error
    except (Exception, SystemExit) as error:
        raise UsageError(f"The module {name!r} cannot be imported: {type(error).__name__}: {error}.") from error
    finally:
        for folder in folders:
            sys.path.remove(folder)
    return [value for value in vars(module).values() if isinstance(value, Tool)]
