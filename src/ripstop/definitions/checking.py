"""Checking definitions without running them: their errors, or the warnings if there are none."""

from pathlib import Path

from msgspec.structs import replace

from ripstop.kernel.errors import DefinitionError, UsageError

from .loading import Located, find_all, locate_child
from .problems import Position, Problem
from .reader import Environment, Readers


def check(
    readers: Readers, named: str, environment: Environment, beside: Path | None = None
) -> dict[str, list[Problem]]:
    """The problems of every definition that a name means, by file. A name that means nothing is a problem as well."""
    try:
        found = find_all(readers, named, beside)
        return {str(one.path): one.reader.check(one.path, _inside(readers, environment, one, beside)) for one in found}
    except UsageError as error:
        return {named: [Problem(Position(named), str(error).rstrip("."))]}


def _inside(readers: Readers, environment: Environment, one: Located, beside: Path | None) -> Environment:
    """What a definition is checked in: workflows that it names are looked up next to it first, as when it runs."""

    def why_missing(workflow: str) -> str:
        try:
            locate_child(readers, workflow, one.path, beside)
        except (UsageError, DefinitionError) as error:
            return str(error).rstrip(".")
        return ""

    return replace(environment, about_workflow=why_missing)
