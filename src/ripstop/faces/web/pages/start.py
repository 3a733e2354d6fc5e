"""Starting a run from a page: the workflow is checked first, as `ripstop check` does, and its problems are shown."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from ripstop.app.settings.number_ranges import range_of
from ripstop.app.start import children_of, environment, new_id
from ripstop.definitions.families import check
from ripstop.definitions.loading import FOLDER, Workflow, find, find_all, locate, read
from ripstop.definitions.problems import Position, Problem
from ripstop.definitions.reader import Environment
from ripstop.engine.ports import RunInfo, RunQuery
from ripstop.faces.http.asgi import RequestRefused
from ripstop.kernel.effects import Limits
from ripstop.kernel.errors import DefinitionError, RipstopError, RunAlreadyStarted, UsageError
from ripstop.kernel.events import Started
from ripstop.kernel.limits import BY_RANK
from ripstop.kernel.style import AgentUse
from ripstop.text.diagrams.inline_svg import inline_svg

from ..errors import said_of, status_of
from ..forms import Form
from ..markup import hue
from ..rendering import address
from ..site import Site, language_of, query_of, wants_json
from ..words import word

if TYPE_CHECKING:
    from ..site import Site


# Which workflows can be started from a page: those in `workflows/`, and others inside the server's folder.
#
# A person at a browser names a path, so a path must not lead out of the folder that the server was started in.


EXAMPLES = "examples"
MOST_OFFERED = 24
LONGEST_NAME = 500


def offered_workflows(site: "Site") -> list[str]:
    """The workflows of the project, by path; if it has none, its examples."""
    found = site.workflow_paths() or _examples(site)
    return [_name_of(site, path) for path in found[:MOST_OFFERED]]


def _examples(site: "Site") -> tuple[Path, ...]:
    if not Path(EXAMPLES).is_dir():
        return ()
    try:
        return tuple(one.path for one in find_all(site.app.plugins.readers, EXAMPLES))
    except RipstopError:
        return ()


def _name_of(site: "Site", path: Path) -> str:
    """The shortest path that means a workflow: its folder, unless there are others in it."""
    try:
        is_meant = locate(site.app.plugins.readers, str(path.parent)).path == path
    except RipstopError:
        is_meant = False
    return str(path.parent if is_meant else path)


def check_inside(site: "Site", named: str) -> None:
    """Raise `UsageError` for a workflow that is neither in `workflows/` nor elsewhere in the server's folder."""
    if not named.strip() or len(named) > LONGEST_NAME or not named.isprintable():
        raise UsageError("Name a workflow: one in workflows/, or a path inside the folder of this server.")
    if named in {str(path) for path in site.workflow_paths() if not path.is_symlink()}:
        return
    here = Path.cwd().resolve()
    for path in (here / named, here / FOLDER / named):
        try:
            found = path.resolve()
        except (OSError, RuntimeError):  # a loop of links
            continue
        if found != here and here not in found.parents:
            raise UsageError(f"The workflow {named!r} is not inside the folder of this server. Copy it to workflows/.")


def refuse_model_outside(named: str) -> None:
    """Raise `UsageError` for a model that is a file outside of the server's folder."""
    kind, _, path = named.partition(":")
    if not named.isprintable() or len(named) > LONGEST_NAME:
        raise UsageError("That is not the name of a model. Name one like local or openai:NAME.")
    here = Path.cwd().resolve()
    if kind in ("script", "local") and path and here not in Path(here / path).resolve().parents:
        raise UsageError(f"The file of the model {named!r} is not inside the folder of this server.")


def find_inside(site: "Site", named: str, goal: str) -> Workflow:
    """The workflow that a person names. Raises `UsageError` or `DefinitionError`."""
    check_inside(site, named)
    return find(site.app.plugins.readers, named, Environment(goal=goal))


def problems_of(site: "Site", named: str) -> list[Problem]:
    """What `ripstop check` finds in a workflow. Raises `UsageError` for one outside of the server's folder."""
    check_inside(site, named)
    plugins = site.app.plugins
    tools = [offer.removeprefix("tool:") for offer in site.app.toolbox.offers()]
    known = environment("given when it is started", tools=(*tools, *plugins.agent_tools()))
    found = check(plugins.readers, named, known, children=lambda one: children_of(plugins, one))
    return [problem for problems in found.values() for problem in problems]


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
        limits={limit.name: form.text(f"limit.{limit.name}").strip() for limit in BY_RANK},
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
    refuse_model_outside(draft.model)
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
    lang = language_of(request)
    refused = said_of(error, lang) if isinstance(error, RipstopError) else str(error or "")
    problems, refused = _checked(site, draft.workflow, error, refused)
    return await site.render(
        request,
        "new_run.html",
        title=word(lang, "start.title"),
        section="runs",
        status=status_of(error) if error else 200,
        draft=draft,
        offered=offered_workflows(site),
        problems=problems,
        is_wrong=any(problem.severity == "error" for problem in problems),
        refused=refused,
        limits=BY_RANK,
        defaults=_defaults(site),
    )


def _checked(site: Site, named: str, error: Exception | None, refused: str) -> tuple[list[Problem], str]:
    """The problems of a workflow, and what else keeps it from being started. `refused`: what the error says."""
    if not named:
        return [], refused
    try:
        problems = problems_of(site, named)
    except UsageError as wrong:
        return [], refused or str(wrong)
    return problems, "" if isinstance(error, DefinitionError) and problems else refused


def _defaults(site: Site) -> dict[str, Any]:
    """The limits that the settings give every run."""
    return {limit.name: getattr(site.app.settings.limits, limit.name) for limit in BY_RANK}


def _limits(site: Site, form: Form) -> Limits:
    given: dict[str, Any] = {}
    for limit in BY_RANK:
        name, amount = limit.name, form.amount(f"limit.{limit.name}")
        if amount is None:
            continue
        range_ = range_of("limits", name)
        if (range_ and not range_.holds(amount)) or (limit.is_whole and not amount.is_integer()):
            raise UsageError(f"The limit of {name} is {amount:g}; expected a number {range_}.")
        given[name] = int(amount) if limit.is_whole else amount
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


# Workflows of the folder that the server was started in: what they look like, what is wrong, and their last runs.


LAST_RUNS = 10
MOST_SEARCHED = 200
"""Conversations or documents among which those of a workflow are looked for."""
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
    runs = await _last_runs(site, row.style, name) if name else []
    context: dict[str, Any] = {"row": row, "drawing": drawing, "agents": agents, "runs": runs}
    return await site.render(request, "workflow.html", title=row.name, section="workflows", **context)


async def _last_runs(site: Site, style: str, name: str) -> list[RunInfo]:
    """The last runs of a workflow. Conversations and documents have names of their own: their definition is asked."""
    if not site.engine.registry.kits[style].section:
        return (await site.engine.runs(RunQuery(text=f"{name}-", parent="", size=LAST_RUNS))).items
    names: dict[str, str] = {}
    found = []
    for info in (await site.engine.runs(RunQuery(styles=(style,), parent="", size=MOST_SEARCHED))).items:
        first = await site.engine.journal.read(info.run_id, most=1)
        if not first or not isinstance(started := first[0].event, Started):  # it was forgotten in between
            continue
        if started.definition not in names:
            names[started.definition] = await _name_in_journal(site, style, started.definition)
        if names[started.definition] == name:
            found.append(info)
    return found[:LAST_RUNS]


async def _name_in_journal(site: Site, style: str, digest: str) -> str:
    """The name that a pinned definition has; empty if it has none, or cannot be read here."""
    try:
        definition: Any = site.engine.registry.load(style, await site.engine.journal.blob(digest))
    except (UsageError, DefinitionError):
        return ""
    return str(getattr(definition, "name", ""))


def workflow_name(path: Path) -> str:
    """What a workflow is called in lists: its folder, or its file."""
    return path.parent.name if path.name.startswith(("workflow.", "bot.", "board.", "pipeline.")) else path.name


def _row(site: Site, path: Path) -> WorkflowRow:
    try:
        style = locate(site.app.plugins.readers, str(path)).reader.style
    except (UsageError, DefinitionError):
        style = ""
    try:
        problems = problems_of(site, str(path))
    except UsageError as error:  # a link that leads out of this folder
        problems = [Problem(Position(str(path)), str(error).rstrip("."))]
    return WorkflowRow(workflow_name(path), style, path.as_posix(), tuple(problems))


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
    return drawn, kit.style.uses(definition).agents, workflow.name
