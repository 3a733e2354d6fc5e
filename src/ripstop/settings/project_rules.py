"""What a project's settings must not say, because it is the user's to choose."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ripstop.kernel.errors import UsageError

ONLY_IN_USERS_FILE = {
    "commands": "choose what agents run on your machine",
    "http": "choose which addresses tools can reach from your machine",
    "serve.hosts": "choose under which names your machine answers",
}
"""Tables and keys, each with what the project must not do."""


def check_project(table: Mapping[str, Any], file: Path, users_file: Path | None) -> None:
    """Check the table of a project's file. Raises `UsageError`."""
    for keys, harm in ONLY_IN_USERS_FILE.items():
        name, _, key = keys.partition(".")
        if key in table.get(name, ()) if key else name in table:
            raise UsageError(
                f"{file}: `{keys}`: a project must not {harm}. Only your own settings file can have this: "
                f"{users_file or 'ripstop.toml in your configuration folder'}."
            )
