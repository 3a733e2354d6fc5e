"""Forking, cancelling, resuming and acting on runs. Each form can be sent twice, and acts once:

| form   | why                                                                             |
|--------|---------------------------------------------------------------------------------|
| fork   | the new id is made of the form's intent; if that run exists, it is shown        |
| resume | the run must be as long as the page showed it; one that goes on already is shown |
| cancel | a run that has ended stays as it ended                                          |
| retry  | the run must be as long as the page showed it; of all, those paused by then      |
| use    | the same model changes nothing                                                  |
| act    | the run must be as long as the page showed it, where the form says how long     |

What makes agents work is checked by `App`, as for `ripstop resume`: a journal can come from somebody else.
"""

from pathlib import Path
from typing import Any

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from ripstop.app.fork import fork_id
from ripstop.app.plugin import StyleProjects
from ripstop.app.resume import all_runs
from ripstop.engine.engine import View
from ripstop.engine.ports import RunQuery
from ripstop.kernel.errors import DefinitionError, RipstopError, RunNotFound, UsageError
from ripstop.kernel.run import Run
from ripstop.kernel.style import Action
from ripstop.text.visible_text import visible_line

from ..errors import PageOutdated, status_of
from ..forms import Form
from ..rendering import address
from ..site import Site, inside, language_of, query_of, wants_json
from ..words import word
from .run import PAUSED_STATUS, RunAbout, about_run
from .start import find_inside, offered_workflows, refuse_model_outside
from .timeline import number_in

# Restarting the project of a run at one of its stages: what is removed is listed before anybody agrees.
#
# The form can be sent twice: the new run is named by its intent, so the project is restarted once.


LONGEST_CHANGE = 20_000


async def restart_page(site: Site, request: Request) -> Response:
    if stage := query_of(request, "stage")["stage"]:
        return await _form(site, request, stage)
    about = await about_run(site, request.path_params["run"])
    if not about.restarts:
        raise UsageError(f"{about.run.id} has no stages to restart at, or has not ended.")
    title = word(language_of(request), "restart.choose")
    return await site.render(request, "restart.html", title=title, section="runs", about=about, plan=None)


async def restart(site: Site, request: Request) -> Response:
    form = await site.form(request)
    stage, change = form.text("stage"), form.text("text").strip()
    run = (await site.engine.look(request.path_params["run"])).run
    try:
        if len(change) > LONGEST_CHANGE:
            raise UsageError(f"What should change has at most {LONGEST_CHANGE:,} characters.")
        projects, folder = await _project_of(site, run)
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
    await site.app.admit(run)
    folder = Path(run.settings.workspace)
    found = site.app.plugins.project_in(folder) if run.settings.workspace else None
    if found is None:
        raise UsageError(f"There is no project in {str(folder)!r} any more, so {run.id} cannot be restarted there.")
    return found, folder


LONGEST_REASON = 500
FIELD, RAISE = "field.", "raise."
"""What the names of an action's own fields, and of limits that are raised, begin with."""


# Forking


async def fork_page(site: Site, request: Request) -> Response:
    return await _fork_form(site, request, query_of(request, "at")["at"])


async def _fork_form(
    site: Site, request: Request, at: str, definition: str = "", error: Exception | None = None
) -> Response:
    """The form; with what was typed, and what is wrong with it."""
    about = await about_run(site, request.path_params["run"])
    if about.style.unforkable:
        raise UsageError(about.style.unforkable)
    return await site.render(
        request,
        "fork.html",
        title=word(language_of(request), "fork.title", run=about.run.id),
        section="runs",
        status=status_of(error) if error else 200,
        about=about,
        at=min(number_in(at), about.outline.records),
        definition=definition,
        wrong=str(error) if error else "",
        offered=offered_workflows(site),
    )


async def fork(site: Site, request: Request) -> Response:
    form = await site.form(request)
    try:
        return await _forked(site, request, form)
    except (DefinitionError, UsageError) as error:
        if wants_json(request) or isinstance(error, RunNotFound):
            raise
        return await _fork_form(site, request, form.text("at"), form.text("definition"), error)


async def _forked(site: Site, request: Request, form: Form) -> Response:
    run_id, name = request.path_params["run"], fork_id(request.path_params["run"], form.intent)
    if await site.engine.journal.run(name) is None:
        run, named = (await site.engine.look(run_id)).run, form.text("definition").strip()
        workflow = find_inside(site, named, run.started.input or run_id) if named else None
        await site.app.fork(run, form.number("at"), workflow=workflow, key=form.intent)
    return site.done(request, address(f"/runs/{name}"), word(language_of(request), "fork.done", run=run_id), run=name)


# Cancelling


async def cancel_page(site: Site, request: Request) -> Response:
    about = await about_run(site, request.path_params["run"])
    if about.run.ended:
        return _shown(site, request, about.run, "cancel.ended")
    title = word(language_of(request), "cancel.title", run=about.run.id)
    return await site.render(request, "cancel.html", title=title, section="runs", about=about)


async def cancel(site: Site, request: Request) -> Response:
    form, run_id = await site.form(request), request.path_params["run"]
    run = (await site.engine.look(run_id)).run
    if run.ended:
        return _shown(site, request, run, "cancel.ended")
    run = await site.app.cancel(run, by=site.by(request), because=form.text("because").strip()[:LONGEST_REASON])
    return _shown(site, request, run, "cancel.done")


# Resuming


async def resume(site: Site, request: Request) -> Response:
    """Resume a run that has ended and can be resumed, or that workers leave alone."""
    form, run_id = await site.form(request), request.path_params["run"]
    view, info = await site.engine.look(run_id), await site.engine.journal.run(run_id)
    run = view.run
    if info is not None and info.set_aside:
        await site.app.resume(run, by=site.by(request))
        return _shown(site, request, run, "resume.put_back")
    if run.ended is None and not run.asks_about_verdict:
        goes_on = view.status != "working" or await site.engine.has_workers()
        return _shown(site, request, run, "resume.goes_on" if goes_on else "resume.no_worker")
    _check_length(form, "length", view)
    raises = {name: _amount(form, f"{RAISE}{name}") for name, text in form.starting(RAISE).items() if text.strip()}
    accept = form.text("accept_edits") == "true"
    resumed = await site.app.resume(run, raises=raises, accept_edits=accept, by=site.by(request))
    return _shown(site, request, resumed.run, "resume.done")


# Trying again what a model server refused


async def retry(site: Site, request: Request) -> Response:
    """Have the refused calls of a run made again. What the page did not show yet is left alone."""
    form, run_id = await site.form(request), request.path_params["run"]
    about = await about_run(site, run_id)
    if not about.can_be_retried or form.number("length") != about.run.length:
        return _shown(site, request, about.run, "retry.goes_on")
    run = await site.app.retry(about.run, by=site.by(request))
    return _shown(site, request, run, "retry.done")


async def retry_all(site: Site, request: Request) -> Response:
    """Have every run retried that was paused when the page was made; one that cannot be is left as it is."""
    form, lang = await site.form(request), language_of(request)
    until = form.number("until") or 0
    paused = await all_runs(site.engine, RunQuery(statuses=(PAUSED_STATUS,)))
    retried, refused = list[str](), list[str]()
    for root in dict.fromkeys(info.root for info in reversed(paused) if info.updated <= until):
        try:
            await site.app.retry(root, by=site.by(request))
        except RipstopError as error:
            refused.append(str(error))
        else:
            retried.append(root)
    said = word(lang, "retry.all.done", n=len(retried)) if retried or refused else word(lang, "retry.all.none")
    if refused:
        said = f"{said} {word(lang, 'retry.all.refused', n=len(refused), reason=refused[0])}"
    return site.done(request, inside(form.text("then")), visible_line(said), runs=retried, refused=len(refused))


def _amount(form: Form, name: str) -> float:
    amount = form.amount(name) or 0.0
    return int(amount) if amount.is_integer() else amount


async def use_model(site: Site, request: Request) -> Response:
    """Have the agents of a run use another model from now on, also in calls under way."""
    form, run_id = await site.form(request), request.path_params["run"]
    model = form.text("model").strip()
    if not model:
        raise UsageError("Name a model, such as local, openai:NAME or script:PATH.")
    refuse_model_outside(model)
    run = (await site.engine.look(run_id)).run
    if run.ended:
        return _shown(site, request, run, "cancel.ended")
    await site.app.use_model(run, model)
    return _shown(site, request, run, "use.done")


# What a style lets people do


async def act_page(site: Site, request: Request) -> Response:
    about = await about_run(site, request.path_params["run"])
    action = _action(about, request.path_params["action"])
    fields = {f"{FIELD}{name}": replace(field, label=field.label or name) for name, field in action.fields.items()}
    then = query_of(request, "then")["then"]
    return await site.render(
        request,
        "act.html",
        title=action.label,
        section="runs",
        about=about,
        action=action,
        fields=fields,
        then=inside(then) if then else "",
    )


def _action(about: RunAbout, name: str) -> Action:
    actions = {action.name: action for action in about.actions}
    if name not in actions:
        can = f"possible now: {', '.join(actions)}" if actions else "nothing can be done with it now"
        raise UsageError(f"{name[:80]!r} is not possible with {about.run.id}; {can}.")
    return actions[name]


async def act(site: Site, request: Request) -> Response:
    form, run_id = await site.form(request), request.path_params["run"]
    view = await site.engine.look(run_id)
    seen = None
    if form.text("seen"):  # what names a state, such as taking a conversation over, is the same however it got there
        _check_length(form, "seen", view)
        seen = view.run.length
    fields = {name: text for name, text in form.starting(FIELD).items() if text}
    run = await site.app.act(run_id, request.path_params["action"], fields, site.by(request), seen=seen)
    if form.text("then"):
        return site.done(request, inside(form.text("then")), run=run.id)
    return _shown(site, request, run, "act.done")


def _check_length(form: Form, name: str, view: View) -> None:
    seen = form.number(name)
    if seen != view.run.length:
        raise PageOutdated(
            f"{view.run.id} has changed since this page was made: it had {seen or 'an unknown number of'} records, and "
            f"has {view.run.length} now."
        )


def _shown(site: Site, request: Request, run: Run[Any], key: str) -> Response:
    """After something was done with a run: its page, with a notice."""
    said = word(language_of(request), key, run=run.id)
    return site.done(request, address(f"/runs/{run.id}"), said, run=run.id)
