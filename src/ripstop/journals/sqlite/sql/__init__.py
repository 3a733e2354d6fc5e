"""The SQL of the SQLite journal: numbered migrations, and queries by name."""

from functools import cache
from importlib.resources import files


@cache
def migrations() -> tuple[str, ...]:
    """Scripts `0001_….sql`, `0002_….sql`, … in order; the n-th brings a file to version n."""
    here = files(__name__)
    names = sorted(p.name for p in here.iterdir() if p.name[:4].isdigit())
    return tuple((here / name).read_text(encoding="utf-8") for name in names)


@cache
def queries() -> dict[str, str]:
    """The statements of `queries.sql`, each under the name in the line `-- name:` above it."""
    found: dict[str, str] = {}
    for part in (files(__name__) / "queries.sql").read_text(encoding="utf-8").split("-- name: ")[1:]:
        name, _, statement = part.partition("\n")
        found[name.strip()] = statement.strip().rstrip(";")
    return found
