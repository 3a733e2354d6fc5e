"""Which workflows can be started from a page: those in `workflows/`, and others inside the server's folder.

A person at a browser names a path, so a path must not lead out of the folder that the server was started in.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from ripstop.checks.start import environment
from ripstop.definitions.checking import check
from ripstop.definitions.loading import FOLDER, Workflow, find, find_all, locate
from ripstop.definitions.problems import Problem
from ripstop.definitions.reader import Environment
from ripstop.kernel.errors import RipstopError, UsageError
from ripstop.pinning import children_of

if TYPE_CHECKING:
    from .site import Site

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
    if named in {str(path) for path in site.workflow_paths()}:
        return
    here = Path.cwd().resolve()
    for path in (here / named, here / FOLDER / named):
        try:
            found = path.resolve()
        except (OSError, RuntimeError):  # a loop of links
            continue
        if found != here and here not in found.parents:
            raise UsageError(f"The workflow {named!r} is not inside the folder of this server. Copy it to workflows/.")


def check_model(named: str) -> None:
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
    known = environment("given when it is started", tools=(*tools, *(tool.name for tool in plugins.agent_tools())))
    found = check(plugins.readers, named, known, children=lambda one: children_of(plugins, one))
    return [problem for problems in found.values() for problem in problems]
