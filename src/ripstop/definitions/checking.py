"""Checking definitions without running them: their errors, or the warnings if there are none."""

from pathlib import Path

from ripstop.definitions.graph.lint import lint_graph
from ripstop.definitions.graph.reader import read_written
from ripstop.definitions.graph.references import Environment, check_outside

from .problems import ERROR, Problem, WrongDefinition, in_order


def check_graph(
    path: Path, goal: str = "", any_name: bool = False, outside: Environment | None = None
) -> list[Problem]:
    """Everything that is wrong with a graph; if nothing is, what its author would want to know.

    `outside`: which models and tools there are; without it they are not looked at.
    """
    try:
        written = read_written(path, goal, any_name)
    except WrongDefinition as error:
        return error.problems
    named = list(check_outside(written, outside)) if outside else []
    errors = [problem for problem in named if problem.severity == ERROR]
    return in_order(errors or [*named, *lint_graph(written)])
