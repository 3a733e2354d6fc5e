"""Pipelines as files: what ripstop asks of them, as of the definitions of any style.

- `pipeline.yaml`, or the folder that it is in, unless that is a graph (`workflow.yaml`).
- Any other YAML file with `stages` at the top that have names, and without the `states` and `agents` of a graph.
- JSON: a flow, whose stages have a `stage_id`. One stage is recognised as well, so that it can be checked.

Only here does a file's name not say what it is, so its text is looked at: with patterns, because a file that is not
right has to be recognised too.
"""

import os
import re
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from ripstop.definitions.loading import files_named, files_where
from ripstop.definitions.problems import ERROR, Problem, WrongDefinition, in_order
from ripstop.definitions.reader import Environment
from ripstop.definitions.references import check_references
from ripstop.definitions.yaml_tree import read_text

from .definition import Pipeline
from .parsing import FILE, PipelineRead, read_pipeline

GRAPH = "workflow.yaml"
YAML, JSON = (".yaml", ".yml"), ".json"
_STAGES = re.compile(r"""^(["']?)stages\1[ \t]*:(?=\s|\Z)""", re.MULTILINE)
_OF_GRAPHS = re.compile(r"""^(["']?)(?:states|agents)\1[ \t]*:(?=\s|\Z)""", re.MULTILINE)
_NAMED = re.compile(r"""^[ \t]*-?[ \t]*[{]?[ \t]*(["']?)name\1[ \t]*:""", re.MULTILINE)
_JSON_STAGES, _IN_FLOW = re.compile(r'"stages"\s*:'), re.compile(r'"(?:stage_id|start_stage)"\s*:')
_STAGE = re.compile(r'"(?:stage_type|actor_critic|needs_confirmation)"\s*:')


class PipelineFiles:
    style = "pipeline"
    looks_like = f"a folder with {FILE}, a YAML file with stages, or a flow in JSON"
    greedy = False
    starts_projects = True
    """A run of it is a project, which belongs to a folder."""

    def find(self, path: Path) -> Path | None:
        if os.path.isdir(path):
            inside = path / FILE
            return inside if os.path.lexists(inside) and not os.path.lexists(path / GRAPH) else None
        if path.name == FILE:
            return path if os.path.lexists(path) else None
        if path.name == GRAPH or path.suffix.lower() not in (*YAML, JSON):
            return None
        return path if _looks_like_one(path) else None

    def find_all(self, folder: Path) -> list[Path]:
        """Those called `pipeline.yaml`, and flows in folders called `flows`."""
        flows = files_where(lambda path: path.parent.name == "flows" and path.suffix.lower() == JSON, folder)
        return [*files_named(FILE, folder), *(path for path in flows if is_flow(path))]

    def read(self, path: Path, environment: Environment) -> tuple[str, bytes]:
        from .parsing import source_of

        pipeline = replace(_read(path).pipeline, source=source_of(path))
        return pipeline.name, msgspec.json.encode(pipeline, order="deterministic")

    def check(self, path: Path, environment: Environment) -> list[Problem]:
        if path.suffix.lower() == JSON and not is_flow(path):
            from .json_flows import check_stage_file

            return check_stage_file(path)
        try:
            read = _read(path)
        except WrongDefinition as error:
            return error.problems
        named = list(check_references(read.references, environment))
        errors = [problem for problem in named if problem.severity == ERROR]
        return in_order(errors or [*read.warnings, *named])

    def check_pinned(self, definition: Pipeline) -> None:
        from .parsing import check_pinned

        check_pinned(definition)

    def schema(self) -> dict[str, Any]:
        from .schema import PIPELINE

        return PIPELINE

    @property
    def scenarios(self) -> tuple[str, ...]:
        from .parsing import scenarios

        return scenarios()

    def example(self, folder: Path, scenario: str = "") -> list[Path]:
        from .parsing import write_scenario

        return write_scenario(folder, scenario)


def is_flow(path: Path) -> bool:
    text = _text(path)
    return _JSON_STAGES.search(text) is not None and _IN_FLOW.search(text) is not None


def _read(path: Path) -> PipelineRead:
    if path.suffix.lower() != JSON:
        return read_pipeline(path)
    from .json_flows import not_a_flow, read_flow

    if not is_flow(path):
        raise WrongDefinition([not_a_flow(path)])
    return read_flow(path)


def _looks_like_one(path: Path) -> bool:
    text = _text(path)
    if path.suffix.lower() == JSON:
        return is_flow(path) or _STAGE.search(text) is not None
    stages = _STAGES.search(text)
    return stages is not None and not _OF_GRAPHS.search(text) and _NAMED.search(text, stages.end()) is not None


def _text(path: Path) -> str:
    """Empty if it cannot be read: then the reader that gets the file says why."""
    try:
        return read_text(path, str(path))
    except WrongDefinition:
        return ""


READER = PipelineFiles()
