"""Checking definitions without running them: their errors, or the warnings if there are none."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from ripstop.kernel.errors import DefinitionError, UsageError

from .loading import WORKFLOW_FILES, Located, find_all, locate_child, refuse_unnamed_link
from .problems import Position, Problem, WrongDefinition
from .reader import Environment, Readers

# Whether a workflow reaches itself: it names itself, or one that it starts, directly or not, names it again.
#
# Such a workflow can be meant, because a run starts a child only where its decisions lead there. If it is not, only the
# limits of depth and of calls end it.


Children = Callable[[Located], Sequence[str]]
"""The names of the workflows that a definition starts. Can raise `UsageError` or `DefinitionError`."""
MAX_DEFINITIONS = 200
"""Definitions that are read to find out."""


def cycle_through(
    readers: Readers, children: Children, start: Located, named: str, beside: Path | None
) -> tuple[str, ...]:
    """The names on the way round, if the workflow that `start` names leads into a cycle; empty if it does not."""
    way: list[Path] = [_key(start)]
    names: list[str] = [_name(start.path)]
    seen: set[Path] = set()
    pending: list[Iterator[tuple[str, Located]]] = [_located(readers, (named,), start, beside)]
    while pending:
        step = next(pending[-1], None)
        if step is None:
            pending.pop()
            way.pop()
            names.pop()
            continue
        name, found = step
        key = _key(found)
        if key in way:
            return (*names[way.index(key) :], name)
        if key in seen or len(seen) >= MAX_DEFINITIONS:
            continue
        seen.add(key)
        way.append(key)
        names.append(name)
        pending.append(_located(readers, _children(children, found), found, beside))
    return ()


def _located(
    readers: Readers, named: Sequence[str], parent: Located, beside: Path | None
) -> Iterator[tuple[str, Located]]:
    for name in named:
        try:
            yield name, locate_child(readers, name, parent.path, beside)
        except (UsageError, DefinitionError):
            continue  # checking that definition says so


def _children(children: Children, found: Located) -> Sequence[str]:
    try:
        return children(found)
    except (UsageError, DefinitionError):
        return ()  # checking that definition says what is wrong with it


def _key(found: Located) -> Path:
    return found.path.resolve()


def _name(path: Path) -> str:
    """What a person calls the definition in a file: its folder, if the file has the same name as all others."""
    absolute = path.resolve()
    return absolute.parent.name if absolute.name in WORKFLOW_FILES else absolute.stem


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
        return {str(one.path): _problems(one, inside[one.path]) for one in found}
    except UsageError as error:
        return {named: [Problem(Position(named), str(error).rstrip("."))]}


def _problems(one: Located, environment: Environment) -> list[Problem]:
    try:
        refuse_unnamed_link(one)
    except WrongDefinition as error:
        return error.problems
    return one.reader.check(one.path, environment)


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
