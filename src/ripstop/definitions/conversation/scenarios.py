"""Bots that are ready to talk: a shop assistant, in English and in Chinese."""

from importlib.resources import files as resources
from importlib.resources.abc import Traversable
from pathlib import Path

from ripstop.definitions.example_files import scenario_files, scenarios_in, write_files


def scenarios() -> tuple[str, ...]:
    """Their names; first the one that is written if none is named."""
    return scenarios_in(_shipped())


def write_scenario(folder: Path, scenario: str = "") -> list[Path]:
    """Write the files of a scenario into a folder. Raises `UsageError` if one of them is there already."""
    return write_files(folder, scenario_files(_shipped(), scenario))


def _shipped() -> Traversable:
    return resources(__package__) / "scenarios"
