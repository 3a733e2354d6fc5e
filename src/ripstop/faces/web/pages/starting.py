"""Starting a run from a page: the workflow is checked first, as `ripstop check` does, and its problems are shown."""

from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from ripstop.app import new_id
from ripstop.definitions.problems import Problem
from ripstop.kernel.effects import Limits
from ripstop.kernel.errors import DefinitionError, RunAlreadyStarted, UsageError
from ripstop.settings.number_ranges import range_of

from ..error_pages import status_of
from ..forms import Form
from ..rendering import address
from ..site import Site, language_of, query_of, wants_json
from ..words import word
from ..workflow_choice import check_model, find_inside, offered_workflows, problems_of

LIMITS = ("turns", "calls", "tokens", "money", "seconds")
WHOLE = ("turns", "calls", "tokens")


class Draft(Struct, frozen=True):
    """What a person has filled in."""

    workflow: str = ""
    input: str = ""
    model: str = ""
    values: str = ""
    """KEY=VALUE, one on each line."""
    limits: dict[str, str] = {}


async def new_run_page(site: Site, request: Request) -> Response:
    given = query_of(request, "workflow", "input")
    return await _form(site, request, Draft(workflow=given["workflow"].strip(), input=given["input"]))


async def start(site: Site, request: Request) -> Response:
    form = await site.form(request)
    draft = Draft(
        workflow=form.text("workflow").strip(),
        input=form.text("input"),
        model=form.text("model").strip(),
        values=form.text("values"),
        limits={name: form.text(f"limit.{name}").strip() for name in LIMITS},
    )
    try:
        return await _started(site, request, form, draft)
    except (DefinitionError, UsageError) as error:
        if wants_json(request):
            raise
        return await _form(site, request, draft, error)


async def _started(site: Site, request: Request, form: Form, draft: Draft) -> Response:
    app, lang = site.app, language_of(request)
    workflow = find_inside(site, draft.workflow, draft.input)
    if app.plugins.registry.kits[workflow.style].section == "conversations" and not draft.input.strip():
        raise UsageError(word(lang, "start.needs_message"))
    check_model(draft.model)
    try:
        run = await app.start(
            workflow,
            draft.input,
            values=_pairs(draft.values),
            limits=_limits(site, form),
            key=form.intent,
            model=draft.model,
        )
    except RunAlreadyStarted:  # the form was changed and sent again: what it started is shown
        name = new_id(workflow.name, form.intent)
        return site.done(request, address(f"/runs/{name}"), word(lang, "start.was_sent"), run=name)
    missing = app.missing_tools(run)
    said = word(lang, "start.missing_tools", tools=", ".join(missing)) if missing else word(lang, "start.done")
    return site.done(request, address(f"/runs/{run.id}"), said, run=run.id)


async def _form(site: Site, request: Request, draft: Draft, error: Exception | None = None) -> Response:
    problems, refused = _checked(site, draft.workflow, error)
    return await site.render(
        request,
        "new_run.html",
        title=word(language_of(request), "start.title"),
        section="runs",
        status=status_of(error) if error else 200,
        draft=draft,
        offered=offered_workflows(site),
        problems=problems,
        is_wrong=any(problem.severity == "error" for problem in problems),
        refused=refused,
        limits=LIMITS,
        whole=WHOLE,
        defaults=_defaults(site),
    )


def _checked(site: Site, named: str, error: Exception | None) -> tuple[list[Problem], str]:
    """The problems of a workflow, and what else keeps it from being started."""
    refused = str(error) if error else ""
    if not named:
        return [], refused
    try:
        problems = problems_of(site, named)
    except UsageError as wrong:
        return [], refused or str(wrong)
    return problems, "" if isinstance(error, DefinitionError) and problems else refused


def _defaults(site: Site) -> dict[str, Any]:
    """The limits that the settings give every run."""
    return {name: getattr(site.app.settings.limits, name) for name in LIMITS}


def _limits(site: Site, form: Form) -> Limits:
    given: dict[str, Any] = {}
    for name in LIMITS:
        amount = form.amount(f"limit.{name}")
        if amount is None:
            continue
        range_ = range_of("limits", name)
        if (range_ and not range_.holds(amount)) or (name in WHOLE and not amount.is_integer()):
            raise UsageError(f"The limit of {name} is {amount:g}; expected a number {range_}.")
        given[name] = int(amount) if name in WHOLE else amount
    return replace(site.app.settings.limits, **given)


def _pairs(text: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, equals, value = line.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"{line[:80]!r} is not KEY=VALUE.")
        if name.strip() in pairs:
            raise UsageError(f"{name.strip()!r} is set twice. Set it once.")
        pairs[name.strip()] = value.strip()
    return pairs
