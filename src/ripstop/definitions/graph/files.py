"""Graphs as files: what ripstop asks of them, as of the definitions of any style."""

import os
from pathlib import Path
from typing import Any

import msgspec

from ripstop.definitions.folders import files_named
from ripstop.definitions.problems import ERROR, Problem, WrongDefinition, in_order
from ripstop.definitions.reader import Environment
from ripstop.definitions.references import check_references
from ripstop.styles.graph.definition import Graph

from .reader import FILE, read_graph, read_written

OTHERS = (".md", ".json", ".toml", ".py")
"""Suffixes of files that are never a graph."""


class GraphFiles:
    style = "graph"
    looks_like = "a YAML file, or a folder with workflow.yaml"
    greedy = True

    def find(self, path: Path) -> Path | None:
        """A folder with a `workflow.yaml`, or any file that is not plainly something else."""
        if os.path.isdir(path):
            return path / FILE if os.path.exists(path / FILE) else None
        return path if path.suffix.lower() not in OTHERS and os.path.exists(path) else None

    def find_all(self, folder: Path) -> list[Path]:
        return files_named(FILE, folder)

    def read(self, path: Path, environment: Environment) -> tuple[str, bytes]:
        graph = read_graph(path, environment.goal, environment.any_name)
        return graph.name, msgspec.json.encode(graph, order="deterministic")

    def check(self, path: Path, environment: Environment) -> list[Problem]:
        from .lint import lint_graph
        from .references import references_of

        try:
            written = read_written(path, environment.goal, environment.any_name)
        except WrongDefinition as error:
            return error.problems
        named = list(check_references(references_of(written), environment))
        errors = [problem for problem in named if problem.severity == ERROR]
        return in_order(errors or [*named, *lint_graph(written)])

    def check_pinned(self, definition: Graph) -> None:
        from .pinned import check_pinned

        check_pinned(definition)

    def schema(self) -> dict[str, Any]:
        from .schema import GRAPH

        return GRAPH

    def example(self, folder: Path) -> list[Path]:
        from .example import write_example

        return write_example(folder)


READER = GraphFiles()
