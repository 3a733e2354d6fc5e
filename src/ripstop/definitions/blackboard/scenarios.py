"""Boards that are ready to run: a folder of files for each, copied as they are. What is there is what can be chosen."""

from collections.abc import Iterator
from importlib.resources import files as resources
from importlib.resources.abc import Traversable
from pathlib import Path

from ripstop.definitions.example_files import write_files
from ripstop.styles.blackboard.definition import REPORTS

FIRST = "first"
"""A file that names the scenario which is written if none is asked for."""


def scenarios() -> tuple[str, ...]:
    """Their names; first the one that is written if none is named."""
    folder = _folder()
    first = (folder / FIRST).read_text(encoding="utf-8").strip()
    return (first, *sorted(one.name for one in folder.iterdir() if one.is_dir() and one.name != first))


def write_scenario(folder: Path, scenario: str = "") -> list[Path]:
    """Write the files of a scenario into a folder. Raises `UsageError` if one of them is there already."""
    files = dict(_files(_folder() / (scenario or scenarios()[0]), ""))
    return write_files(folder, files, (REPORTS,))


def _folder() -> Traversable:
    return resources(__package__) / "scenarios"


def _files(source: Traversable, inside: str) -> Iterator[tuple[str, str]]:
    for one in sorted(source.iterdir(), key=lambda found: found.name):
        if one.is_dir():
            yield from _files(one, f"{inside}{one.name}/")
        elif not one.name.startswith("."):
            yield inside + one.name, one.read_text(encoding="utf-8")
