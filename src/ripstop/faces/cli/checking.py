"""`check` and `schema`: the commands for those who write definitions."""

import sys
from typing import TYPE_CHECKING

import click

from .options import Options, shared_options
from .terminal import say, say_json, say_text

if TYPE_CHECKING:
    from ripstop.definitions.problems import Problem

WRONG = 2
COLOURS = {"error": "red", "warning": "yellow"}


@click.command(short_help="Find mistakes in workflows before they run.")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--strict", is_flag=True, help="Take warnings for errors.")
@click.option("--any-name", is_flag=True, help="A workflow need not have its folder's name.")
@shared_options
@click.pass_obj
def check(options: Options, paths: tuple[str, ...], strict: bool, any_name: bool) -> None:
    """Find mistakes in workflows before they run: files, folders, or names found in workflows/.

    Errors keep a workflow from running. If there are none, warnings tell what its author would want to know:
    cases that no transition covers, transitions that can never fire, states that can never be reached, and more.

    \b
    Exit codes: 0 no errors, 2 errors (with --strict also warnings).
    Example:
      ripstop check examples/haiku
      ripstop check workflows --strict --json
    """
    files: dict[str, list[Problem]] = {}
    for named in paths:
        files |= _checked(named, any_name)
    problems = [problem for found in files.values() for problem in found]
    wrong = bool(problems) if strict else any(problem.severity == "error" for problem in problems)
    if options.as_json:
        document = {"ok": not wrong, "problems": [problem.as_json() for problem in problems]}
        say_json(document)
    else:
        _tell(files)
    sys.exit(WRONG if wrong else 0)


def _checked(named: str, any_name: bool) -> "dict[str, list[Problem]]":
    """The problems of every file that a name means. A name that means nothing is a problem like the others."""
    from ripstop.checks.start import outside_of_definitions
    from ripstop.definitions.checking import check_graph
    from ripstop.definitions.loading import find_all
    from ripstop.definitions.problems import Position, Problem
    from ripstop.kernel.errors import UsageError

    outside = outside_of_definitions()
    try:
        return {str(path): check_graph(path, any_name=any_name, outside=outside) for path in find_all(named)}
    except UsageError as error:
        return {named: [Problem(Position(named), str(error).rstrip("."))]}


def _tell(files: "dict[str, list[Problem]]") -> None:
    for found in files.values():
        for problem in found:
            hint = f"; {problem.hint}" if problem.hint else ""
            severity = (problem.severity, f"{COLOURS[problem.severity]} bold")
            say(f"{problem.place}: ", severity, f": {problem.text}{hint}")
            if problem.source:
                say_text(problem.excerpt)
        if found:
            say()
    kinds = [problem.severity for found in files.values() for problem in found]
    counts = ", ".join(_count(kinds.count(kind), kind) for kind in COLOURS if kind in kinds) or "nothing wrong"
    say(f"{_count(len(files), 'file')} checked: {counts}.")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


@click.command(short_help="Print the JSON Schema of a style's definitions.")
@click.argument("style", type=click.Choice(["graph"]))
@shared_options
def schema(style: str) -> None:
    """Print the JSON Schema of a style's definitions, for editors that check and complete YAML.

    \b
    Example:
      ripstop schema graph > graph.schema.json
    and at the top of workflow.yaml:
      # yaml-language-server: $schema=graph.schema.json
    """
    from ripstop.definitions.graph.schema import GRAPH

    assert style == "graph", style
    say_json(GRAPH, indent=2)
