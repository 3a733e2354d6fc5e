"""Restarting the project of a run at one of its stages: what is removed is listed before anybody agrees.

The form can be sent twice: the new run is named by its intent, so the project is restarted once.
"""

from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ripstop.kernel.errors import UsageError
from ripstop.kernel.run import Run
from ripstop.plugin_types import StyleProjects

from ..error_pages import status_of
from ..rendering import address
from ..run_about import about_run
from ..site import Site, language_of, query_of, wants_json
from ..words import word

LONGEST_CHANGE = 20_000


async def restart_page(site: Site, request: Request) -> Response:
    return await _form(site, request, query_of(request, "stage")["stage"])


async def restart(site: Site, request: Request) -> Response:
    form = await site.form(request)
    stage, change = form.text("stage"), form.text("text").strip()
    run = (await site.engine.look(request.path_params["run"])).run
    try:
        if len(change) > LONGEST_CHANGE:
            raise UsageError(f"What should change has at most {LONGEST_CHANGE:,} characters.")
        projects, folder = await _project_of(site, run)
        site.app.check_usable(run)
        name = await projects.restart(site.app, folder, stage, change, form.intent)
    except UsageError as error:
        if wants_json(request):
            raise
        return await _form(site, request, stage, change, error)
    return site.done(request, address(f"/runs/{name}"), word(language_of(request), "restart.done"), run=name)


async def _form(
    site: Site, request: Request, stage: str, change: str = "", error: UsageError | None = None
) -> Response:
    about = await about_run(site, request.path_params["run"])
    projects, folder = await _project_of(site, about.run)
    plan = await projects.plan_restart(site.app, folder, stage)
    return await site.render(
        request,
        "restart.html",
        title=word(language_of(request), "restart.title", stage=stage),
        section="runs",
        status=status_of(error) if error else 200,
        about=about,
        plan=plan,
        folder=str(folder),
        change=change,
        wrong=str(error) if error else "",
    )


async def _project_of(site: Site, run: Run[Any]) -> tuple[StyleProjects, Path]:
    """What knows the project that a run works in, and its folder.

    Raises `UsageError` if there is none, or if the user has not agreed to that folder: a journal can come from somebody
    else, so nothing in the folder is read before.
    """
    await site.app.check_allowed(run)
    folder = Path(run.settings.workspace)
    found = site.app.plugins.project_in(folder) if run.settings.workspace else None
    if found is None:
        raise UsageError(f"There is no project in {str(folder)!r} any more, so {run.id} cannot be restarted there.")
    return found, folder
