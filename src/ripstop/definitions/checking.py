"""Checking definitions without running them: their errors, or the warnings if there are none."""

from pathlib import Path

from .graph import read_written
from .graph_lint import lint_graph
from .problems import Problem, WrongDefinition


def check_graph(path: Path, goal: str = "", any_name: bool = False) -> list[Problem]:
    """Everything that is wrong with a graph; if nothing is, what its author would want to know."""
    try:
        written = read_written(path, goal, any_name)
    except WrongDefinition as error:
        return error.problems
    return lint_graph(written)
