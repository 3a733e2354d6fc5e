"""Checking a pipeline that comes from a journal, which somebody else may have made.

It is written out as its author would have written it, and read again by the same reader. Flows in JSON become pipelines
in the same way.
"""

from typing import Any

from ripstop.definitions.plain_tree import set_fields, tree_of
from ripstop.definitions.problems import Position
from ripstop.styles.pipeline.definition import Pipeline, PipelineStage

from .reader import FILE, PipelineReader, read_tree


def check_pinned(pipeline: Pipeline) -> None:
    """Raise `WrongDefinition` unless a pipeline could have been read from a file."""
    written = {
        "name": pipeline.name,
        "description": pipeline.description,
        "rate_limit": pipeline.rate_limit,
        "max_reviews": pipeline.max_reviews,
        "auto_goto": pipeline.auto_goto,
        "guards": pipeline.guards,
        "stages": [written_stage(stage) for stage in pipeline.stages],
    }
    read_tree(tree_of(written, Position(FILE)), PipelineReader([], None))


def written_stage(stage: PipelineStage) -> dict[str, Any]:
    """A stage as a mapping, with the fields that a file has. What is not set is left out."""
    written = set_fields(stage)
    return {**written, "critic": set_fields(stage.critic)} if stage.critic else written
