"""The SQL of the SQLite journal: numbered scripts that make or change its tables, and queries by name."""

from functools import cache
from importlib.resources import files

from ripstop.engine.ports import LISTED, RunInfo

RUN_COLUMNS = ("id", *(name for name in RunInfo.__struct_fields__ if name != "run_id"))
"""The columns of `runs` that a `RunInfo` is made of, in the order of its fields."""
_COLUMNS = {
    "/* run columns */": ", ".join(RUN_COLUMNS),
    "/* listed columns */": ", ".join(f"{name} = ?" for name in LISTED),
}


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
    text = (files(__name__) / "queries.sql").read_text(encoding="utf-8")
    for mark, columns in _COLUMNS.items():
        text = text.replace(mark, columns)
    for part in text.split("-- name: ")[1:]:
        name, _, statement = part.partition("\n")
        found[name.strip()] = statement.strip().rstrip(";")
    return found
