"""Where the user's own files are: settings for every project, the consents that ripstop remembers, and caches.

The folders follow the XDG base directory rules; a relative path in those variables is ignored, as they demand. It
would otherwise be a folder inside whatever project the user works in.
"""

import os
from collections.abc import Mapping
from pathlib import Path

NAME = "ripstop"


def config_folder(environment: Mapping[str, str] | None = None) -> Path | None:
    """The folder of the user's settings; `None` if the user has no home."""
    return _folder("XDG_CONFIG_HOME", ".config", os.environ if environment is None else environment)


def state_folder(environment: Mapping[str, str] | None = None) -> Path | None:
    """The folder of what ripstop remembers about the user's choices; `None` if the user has no home."""
    return _folder("XDG_STATE_HOME", ".local/state", os.environ if environment is None else environment)


def cache_folder(environment: Mapping[str, str] | None = None) -> Path | None:
    """The folder of what can be deleted at any time and is made again; `None` if the user has no home."""
    return _folder("XDG_CACHE_HOME", ".cache", os.environ if environment is None else environment)


def _folder(variable: str, below_home: str, environment: Mapping[str, str]) -> Path | None:
    chosen, home = environment.get(variable, ""), environment.get("HOME", "")
    if os.path.isabs(chosen):
        return Path(chosen) / NAME
    return Path(home) / below_home / NAME if os.path.isabs(home) else None
