"""Checking definitions without running them: their errors, or the warnings if there are none."""

from pathlib import Path

from msgspec.structs import replace

from ripstop.kernel.errors import DefinitionError, UsageError

from .cycles import Children, cycle_through
from .loading import Located, find_all, locate_child
from .problems import Position, Problem
from .reader import Environment, Readers


def check(
    readers: Readers,
    named: str,
    environment: Environment,
    beside: Path | None = None,
    children: Children = lambda _: (),
) -> dict[str, list[Problem]]:
    """The problems of every definition that a name means, by file. A name that means nothing is a problem as well.

    `children` says which workflows a definition starts, so that one that reaches itself is found.
    """
    try:
        found = find_all(readers, named, beside)
        inside = {one.path: _inside(readers, environment, one, beside, children) for one in found}
        return {str(one.path): one.reader.check(one.path, inside[one.path]) for one in found}
    except UsageError as error:
        return {named: [Problem(Position(named), str(error).rstrip("."))]}


def _inside(
    readers: Readers, environment: Environment, one: Located, beside: Path | None, children: Children
) -> Environment:
    """What a definition is checked in: workflows that it names are looked up next to it first, as when it runs."""

    def why_missing(workflow: str) -> str:
        try:
            locate_child(readers, workflow, one.path, beside)
        except (UsageError, DefinitionError) as error:
            return str(error).rstrip(".")
        return ""

    def cycle(workflow: str) -> tuple[str, ...]:
        return cycle_through(readers, children, one, workflow, beside)

    return replace(environment, about_workflow=why_missing, cycle_through=cycle)
