"""The SQL of the SQLite journal: numbered scripts that make or change its tables, and queries by name."""

from functools import cache
from importlib.resources import files


@cache
def migrations() -> dict[int, str]:
    """Scripts `0003_….sql`, … by number: each brings a file to that version, the first one from nothing."""
    here = files(__name__)
    names = sorted(path.name for path in here.iterdir() if path.name[:4].isdigit())
    return {int(name[:4]): (here / name).read_text(encoding="utf-8") for name in names}


@cache
def queries() -> dict[str, str]:
    """The statements of `queries.sql`, each under the name in the line `-- name:` above it."""
    found: dict[str, str] = {}
    for part in (files(__name__) / "queries.sql").read_text(encoding="utf-8").split("-- name: ")[1:]:
        name, _, statement = part.partition("\n")
        found[name.strip()] = statement.strip().rstrip(";")
    return found
