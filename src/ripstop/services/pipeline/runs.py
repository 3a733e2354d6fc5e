"""The runs of a project: which one continues it, and which workflow a new one is of.

A run in the journal that has not ended, or can be resumed, is continued. Otherwise the project's marks and files choose
the first stage of a new run.
"""

from typing import TYPE_CHECKING

from ripstop.definitions.loading import Workflow, find
from ripstop.definitions.pipeline.flows import default_flow
from ripstop.definitions.reader import Environment
from ripstop.kernel.errors import UsageError
from ripstop.styles.pipeline.definition import Pipeline

if TYPE_CHECKING:
    from ripstop.plugins import Plugins

STYLE = "pipeline"


class ProjectFlow:
    """The workflow of a project, and the pipeline in it."""

    def __init__(self, plugins: "Plugins", named: str = "") -> None:
        """`named`: a file or folder; empty: the flow that is shipped. Raises `UsageError` if it is not a pipeline."""
        self.workflow: Workflow = find(plugins.readers, named or str(default_flow()), Environment(goal="kept"))
        if self.workflow.style != STYLE:
            raise UsageError(f"{named} is a workflow of the style {self.workflow.style!r}, not a pipeline.")
        self.pipeline: Pipeline = plugins.registry.load(STYLE, self.workflow.content)
