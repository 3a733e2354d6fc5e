"""Writing an example: all its files, and nothing over a file that is there already.

Scenarios are examples that are shipped as folders, copied as they are. What is there is what can be chosen.
"""

from collections.abc import Iterable, Iterator, Mapping
from importlib.resources.abc import Traversable
from pathlib import Path

from ripstop.kernel.errors import UsageError

FIRST = "first"
"""A file among the scenarios that names the one which is written if none is asked for."""


def write_files(folder: Path, files: Mapping[str, str], folders: Iterable[str] = ()) -> list[Path]:
    """Write texts by their paths in a folder, and make some folders as well. Raises `UsageError`."""
    for file in files:
        if (folder / file).exists():
            raise UsageError(f"There is a file {folder / file} already. Choose a new folder.")
    try:
        for name in folders:
            (folder / name).mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            with (folder / file).open("x", encoding="utf-8", newline="\n") as opened:
                opened.write(text)
    except OSError as error:
        raise UsageError(f"The example cannot be written to {folder}: {error.strerror}.") from error
    return [folder / file for file in files]


def scenarios_in(shipped: Traversable) -> tuple[str, ...]:
    """The names of the scenarios in a shipped folder; first the one that is written if none is named."""
    first = (shipped / FIRST).read_text(encoding="utf-8").strip()
    return (first, *sorted(one.name for one in shipped.iterdir() if one.is_dir() and one.name != first))


def scenario_files(shipped: Traversable, scenario: str = "") -> dict[str, str]:
    """The texts of a scenario's files, by their paths."""
    return dict(_files(shipped / (scenario or scenarios_in(shipped)[0]), ""))


def _files(source: Traversable, inside: str) -> Iterator[tuple[str, str]]:
    for one in sorted(source.iterdir(), key=lambda found: found.name):
        if one.name == "__pycache__":
            continue
        if one.is_dir():
            yield from _files(one, f"{inside}{one.name}/")
        elif not one.name.startswith("."):
            yield inside + one.name, one.read_text(encoding="utf-8")
