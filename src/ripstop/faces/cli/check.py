"""`check`, `schema`, `styles` and `init`: the commands for those who write definitions."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ripstop.text.plurals import count

from .options import FolderPath, Options, shared_options
from .terminal import say, say_json, say_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ripstop.definitions.problems import Problem

WRONG = 2
COLOURS = {"error": "red", "warning": "yellow"}


@click.command(short_help="Find problems in workflows before they run.")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@click.option("--any-name", is_flag=True, help="A workflow need not have its folder's name.")
@shared_options
@click.pass_obj
def check(options: Options, paths: tuple[str, ...], strict: bool, any_name: bool) -> None:
    """Find problems in workflows before they run: files, folders, or names found in workflows/.

    Errors keep a workflow from running. If there are none, warnings tell what its author would want to know:
    cases that no transition covers, transitions that can never fire, states that can never be reached, workflows
    that reach themselves, tools that nothing brings (--tools, or [tools] and [mcp] in ripstop.toml), and more.

    \b
    Exit codes: 0 no errors, 2 errors (with --strict also warnings).
    Example:
      ripstop check examples/haiku
      ripstop check workflows --strict --json
    """
    brought = options.known_tools(options.settings())
    files: dict[str, list[Problem]] = {}
    for named in paths:
        files |= _checked(named, any_name, brought)
    problems = [problem for found in files.values() for problem in found]
    wrong = bool(problems) if strict else any(problem.severity == "error" for problem in problems)
    if options.as_json:
        document = {"ok": not wrong, "problems": [problem.as_json() for problem in problems]}
        say_json(document)
    else:
        _tell(files)
        _tell_unset(paths)
    sys.exit(WRONG if wrong else 0)


def _checked(named: str, any_name: bool, tools: "Sequence[str]") -> "dict[str, list[Problem]]":
    """The problems of every file that a name means. A name that means nothing is a problem like the others."""
    from msgspec.structs import replace

    from ripstop.app.plugins import installed
    from ripstop.app.start import children_of, environment
    from ripstop.definitions.families import check
    from ripstop.faces.next_steps import in_commands

    plugins = installed()
    known = environment(any_name=any_name, tools=(*tools, *plugins.agent_tools()))
    files = check(plugins.readers, named, known, children=lambda found: children_of(plugins, found))
    return {file: [replace(one, hint=in_commands(one.hint)) for one in problems] for file, problems in files.items()}


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
    counts = ", ".join(count(kinds.count(kind), kind) for kind in COLOURS if kind in kinds) or "nothing wrong"
    say(f"{count(len(files), 'file')} checked: {counts}.")


def _tell_unset(paths: tuple[str, ...]) -> None:
    """Name the secrets that this environment does not have: no problem of a definition, but its calls fail here."""
    from contextlib import suppress

    from ripstop.app.trust import unset_secrets
    from ripstop.kernel.errors import DefinitionError, UsageError

    from .trust import endpoints_of_workflow

    for named in paths:
        with suppress(UsageError, DefinitionError):  # which was told, or a folder of several workflows
            for warning in unset_secrets(endpoints_of_workflow(named) or ()):
                say((f"Here: {warning}", "yellow"))


@click.command(short_help="Print the JSON Schema of a style's definitions.")
@click.argument("style")
@shared_options
def schema(style: str) -> None:
    """Print the JSON Schema of a style's definitions, for editors that check and complete YAML.

    \b
    Example:
      ripstop schema graph > graph.schema.json
    and at the top of workflow.yaml:
      # yaml-language-server: $schema=graph.schema.json
    """
    from ripstop.app.plugins import installed

    say_json(installed().reader_of(style).schema(), indent=2)


@click.command(short_help="List the styles that are installed.")
@shared_options
@click.pass_obj
def styles(options: Options) -> None:
    """List the styles that are installed: ways for agents to work together. Other packages can bring more.

    \b
    Example:
      ripstop styles
    """
    from ripstop.app.plugins import installed

    plugins = installed()
    defined = {reader.style for reader in plugins.readers}
    listed: list[dict[str, Any]] = [
        {
            "plugin": plugin.name,
            "style": style,
            "summary": plugin.summaries.get(style, plugin.summary),
            "init": style in defined,
            # `serve` is a command of all styles, but only some can be served
            "commands": [command.name for command in plugin.commands] + (["serve"] if plugin.http else []),
        }
        for plugin in plugins.all
        for style in plugins.styles_of(plugin)
    ]
    if options.as_json:
        return say_json(listed)
    widest = max(len(one["style"]) for one in listed)
    for one in listed:
        say((f"{one['style']:{widest}}", "bold"), f"  {one['summary']}")
        ways = [f"ripstop init {one['style']} DIR"] if one["init"] else []
        ways += [f"ripstop {name}" for name in one["commands"]]
        say((f"{'':{widest}}  {'   ·   '.join(ways)}", "dim"))


@click.command(short_help="Write a ready example of a style.")
@click.argument("style")
@click.argument("folder", metavar="DIR", type=FolderPath())
@click.option("--scenario", metavar="NAME", help="Which example, for a style that has several.")
@shared_options
@click.pass_obj
def init(options: Options, style: str, folder: Path, scenario: str | None) -> None:
    """Write an example of a style into a folder, ready to run and to change. Nothing is overwritten.

    \b
    Example:
      ripstop init graph workflows/review && ripstop run review
    """
    from ripstop.app.plugins import installed
    from ripstop.definitions.reader import write_example

    files = [str(path) for path in write_example(installed().reader_of(style), folder, scenario)]
    if options.as_json:
        return say_json({"style": style, "files": files})
    for path in files:
        say(path)
    say((f"Try it:  {_how_to_try(style, folder, files)}", "dim"), err=True)


def _how_to_try(style: str, folder: Path, files: list[str]) -> str:
    """The command that runs an example, with its script if it has one."""
    from ripstop.app.plugins import installed

    reader, named = installed().reader_of(style), shlex.quote(str(folder))
    scripts = [path for path in files if path.endswith(".jsonl")]
    if getattr(reader, "starts_chats", False):
        # tools of the example are looked for in the current folder
        modules = "".join(f" --tools {Path(path).stem}" for path in files if path.endswith(".py"))
        return f"cd {named} && ripstop chat .{modules}" + "".join(f" --model script:{Path(p).name}" for p in scripts)
    model = f" --model script:{shlex.quote(scripts[0])}" if scripts else ""
    if getattr(reader, "starts_projects", False):
        return f'ripstop new "your idea" --flow {named}{model}'
    return f'ripstop run {named} --input "your task"{model}'
