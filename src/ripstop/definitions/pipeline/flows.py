"""Pipelines that are shipped. The first one is the default: idea, PRD, design, plan, coding, check, delivery."""

from functools import cache
from importlib.resources import files as resources
from importlib.resources.abc import Traversable
from pathlib import Path

from ripstop.definitions.example_files import scenario_files, scenarios_in, write_files
from ripstop.styles.pipeline.definition import Pipeline

from .reader import FILE, read_pipeline


def scenarios() -> tuple[str, ...]:
    """Their names; first the default flow."""
    return scenarios_in(_shipped())


def write_scenario(folder: Path, scenario: str = "") -> list[Path]:
    """Write a copy of a shipped pipeline into a folder. Raises `UsageError` if there is one already."""
    return write_files(folder, scenario_files(_shipped(), scenario))


def default_flow() -> Path:
    """The file of the default flow."""
    return Path(str(_shipped() / scenarios()[0] / FILE))


@cache
def default_pipeline() -> Pipeline:
    return read_pipeline(default_flow()).pipeline


def _shipped() -> Traversable:
    return resources(__package__) / "flows"
