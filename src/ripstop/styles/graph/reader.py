"""Graphs as files: what ripstop asks of them, as of the definitions of any style."""

import json
import os
from pathlib import Path
from typing import Any

import msgspec

from ripstop.definitions.example_files import write_files
from ripstop.definitions.loading import files_named
from ripstop.definitions.problems import ERROR, Problem, WrongDefinition, in_order
from ripstop.definitions.reader import Environment
from ripstop.definitions.references import check_references
from ripstop.kernel.errors import UsageError

from .definition import Graph
from .parsing import FILE, cannot_be_folder, read_graph, read_written

# A small graph that is ready to run, with replies to run it without a model.


SCRIPT = "script.jsonl"
WORKFLOW = """\
# A writer writes, and an editor judges. They go round until the editor approves.

name: {name}
description: A writer writes a paragraph; an editor approves it or sends it back.
initial_message: why the sea is salty
max_turns: 6

agents:
  - name: writer
    type: coder
  - name: editor
    type: ask

states:
  - name: write
    agent: writer
    start: true
    prompt: |
      {{{{COLLABORATION_GUIDE}}}}
      {{% if last_agent_name == "editor" %}}The editor said: {{{{last_agent_content}}}}
      {{% else %}}{{% endif %}}Write one paragraph about {{{{initial_message}}}}.
      Decide "done": true when it is written.
    transitions:
      - to: judge
        condition: done
      - to: write
        condition: NOT done

  - name: judge
    agent: editor
    prompt: |
      {{{{COLLABORATION_GUIDE}}}}
      Here is a paragraph: {{{{last_agent_content}}}}
      Judge it. Decide "approved": true if it is clear and correct.
    transitions:
      - to: END
        condition: approved
      - to: write
        condition: NOT approved

exit_conditions:
  - condition: max_turns_exceeded
    action: save_and_end
"""
REPLIES = (
    ("Rivers carry salt into the sea.", {"done": True}),
    ("Say why it stays there.", {"approved": False}),
    ("Rivers carry salt into the sea. Water evaporates, but the salt stays.", {"done": True}),
    ("Clear and correct.", {"approved": True}),
)


def write_example(folder: Path) -> list[Path]:
    """Write the graph and its script; the folder's name is the workflow's. Raises `UsageError`."""
    name = folder.resolve().name
    if not name or cannot_be_folder(name):
        raise UsageError(f"{str(folder)!r} cannot be the name of a workflow. Use letters, digits, - and _.")
    lines = [json.dumps({"reply": json.dumps({"content": text, "decisions": made})}) for text, made in REPLIES]
    files = {FILE: WORKFLOW.format(name=json.dumps(name, ensure_ascii=False)), SCRIPT: "\n".join(lines) + "\n"}
    return write_files(folder, files)


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
        from .parsing import references_of

        try:
            written = read_written(path, environment.goal, environment.any_name)
        except WrongDefinition as error:
            return error.problems
        named = list(check_references(references_of(written), environment))
        errors = [problem for problem in named if problem.severity == ERROR]
        return in_order(errors or [*named, *lint_graph(written)])

    def check_pinned(self, definition: Graph) -> None:
        from .parsing import check_pinned

        check_pinned(definition)

    def schema(self) -> dict[str, Any]:
        from .schema import GRAPH

        return GRAPH

    def example(self, folder: Path) -> list[Path]:

        return write_example(folder)


READER = GraphFiles()
