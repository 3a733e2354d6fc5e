"""Workflows of the folder that the server was started in: what they look like, what is wrong, and their last runs."""

from pathlib import Path
from typing import Any

from markupsafe import Markup
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from ripstop.definitions.loading import Workflow, locate, read
from ripstop.definitions.problems import Problem
from ripstop.definitions.reader import Environment
from ripstop.drawings.inline_svg import inline_svg
from ripstop.http.refusals import RequestRefused
from ripstop.kernel.errors import DefinitionError, UsageError
from ripstop.kernel.style import AgentUse
from ripstop.runtime.ports import RunQuery

from ..showing import hue
from ..site import Site, language_of
from ..words import word
from ..workflow_choice import problems_of

LAST_RUNS = 10
ANY = Environment(goal="-", any_name=True)


class WorkflowRow(Struct, frozen=True):
    name: str
    style: str
    path: str
    problems: tuple[Problem, ...]


async def workflows_page(site: Site, request: Request) -> Response:
    rows = [_row(site, path) for path in site.workflow_paths()]
    title = word(language_of(request), "workflows.title")
    return await site.render(request, "workflows.html", title=title, section="workflows", rows=rows)


async def workflow_page(site: Site, request: Request) -> Response:
    named = request.path_params["name"]
    path = next((one for one in site.workflow_paths() if named in (one.as_posix(), workflow_name(one))), None)
    if path is None:
        have = ", ".join(workflow_name(one) for one in site.workflow_paths()) or "none"
        raise RequestRefused(404, "There is no such workflow in this folder.", f"There are: {have}.")
    row = _row(site, path)
    drawing, agents, name = _read(site, path)
    runs = await site.engine.runs(RunQuery(text=f"{name}-", parent="", size=LAST_RUNS)) if name else None
    context: dict[str, Any] = {"row": row, "drawing": drawing, "agents": agents, "runs": runs.items if runs else []}
    return await site.render(request, "workflow.html", title=row.name, section="workflows", **context)


def workflow_name(path: Path) -> str:
    """What a workflow is called in lists: its folder, or its file."""
    return path.parent.name if path.name.startswith(("workflow.", "bot.", "board.", "pipeline.")) else path.name


def _row(site: Site, path: Path) -> WorkflowRow:
    try:
        style = locate(site.app.plugins.readers, str(path)).reader.style
    except (UsageError, DefinitionError):
        style = ""
    return WorkflowRow(workflow_name(path), style, path.as_posix(), tuple(problems_of(site, str(path))))


def _read(site: Site, path: Path) -> tuple[Markup, tuple[AgentUse, ...], str]:
    """The drawing, the agents and the name of a definition; none of them if it is wrong."""
    plugins = site.app.plugins
    try:
        workflow: Workflow = read(locate(plugins.readers, str(path)), ANY)
        definition: Any = plugins.registry.load(workflow.style, workflow.content)
    except (UsageError, DefinitionError):
        return Markup(""), (), ""
    kit = plugins.registry.kits[workflow.style]
    drawn = Markup(inline_svg(kit.draw_definition(definition), hue)) if kit.draw_definition else Markup("")  # noqa: S704
    return drawn, kit.style.agents(definition), workflow.name
