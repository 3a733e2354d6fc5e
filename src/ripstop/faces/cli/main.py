"""`ripstop`: the group of commands, what they share, and how an error becomes an exit code.

Commands import what they need when they run, so that `--help` answers at once.
"""

import sys
from typing import Any

import click

from ripstop import __version__
from ripstop.kernel.errors import DefinitionError, JournalError, RipstopError, UsageError

FAILED, WRONG = 1, 2


class _Commands(click.Group):
    """Runs a command and says what went wrong in one way for all of them."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().main(*args, **kwargs)
        except (UsageError, DefinitionError) as error:
            _complain(error, WRONG)
        except RipstopError as error:
            _complain(error, FAILED)
        except BrokenPipeError:
            # whoever read our output has gone (`ripstop log | head`); nothing is left to say
            sys.stderr.close()
            sys.exit(FAILED)


def _complain(error: RipstopError, code: int) -> None:
    prefix = "" if isinstance(error, DefinitionError) else "ripstop: "
    click.echo(f"{prefix}{error}", err=True)
    if isinstance(error, JournalError) and not str(error).endswith("."):
        click.echo("Nothing that was acknowledged is lost.", err=True)
    sys.exit(code)


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 completed, 1 failed, 2 bad usage or definition, 3 limit or stopped, "
    "4 waiting for a person or a timer, 5 restart required.",
)
@click.option("--store", metavar="sqlite:PATH", help="The journal. Default: sqlite:.ripstop/journal.db")
@click.option("--model", metavar="SPEC", help="local, script:PATH, openai:NAME or PROVIDER:NAME. Default: local")
@click.option("--base-url", metavar="URL", help="Where openai:NAME is served, for anything compatible.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document; everything else goes to stderr.")
@click.option("-v", "--verbose", is_flag=True, help="Show what goes on inside.")
@click.version_option(__version__, prog_name="ripstop")
@click.pass_context
def cli(
    context: click.Context, store: str | None, model: str | None, base_url: str | None, as_json: bool, verbose: bool
) -> None:
    """Run teams of AI agents so that nothing tears: durable, loop-proof, watched by people.

    \b
    Try it:
      ripstop run examples/haiku                     with the local model, no key, no network
      ripstop run examples/haiku --model script:examples/haiku/script.jsonl
      ripstop log RUN                                what happened, record by record
      ripstop why RUN                                why it ended as it did
    """
    context.obj = Options(store, model, base_url, as_json, verbose)


class Options:
    """What is common to all commands. The same flags may stand before or after the command."""

    def __init__(
        self, store: str | None, model: str | None, base_url: str | None, as_json: bool, verbose: bool
    ) -> None:
        self.store = store
        self.model = model
        self.base_url = base_url
        self.as_json = as_json
        self.verbose = verbose

    def settings(self) -> Any:
        from pathlib import Path

        from ripstop.settings import read_settings

        if self.verbose:
            import logging

            logging.basicConfig(level=logging.DEBUG, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
        return read_settings(Path.cwd(), store=self.store, model=self.model, base_url=self.base_url)


def shared_options(command: Any) -> Any:
    """Lets `--store`, `--model`, `--base-url`, `--json` and `-v` stand after the command, too."""

    def take(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
        if value and context.obj is not None:
            setattr(context.obj, parameter.name or "", value)
        return value

    for option in (
        click.option("--store", hidden=True, expose_value=False, callback=take),
        click.option("--model", hidden=True, expose_value=False, callback=take),
        click.option("--base-url", hidden=True, expose_value=False, callback=take),
        click.option("--json", "as_json", is_flag=True, hidden=True, expose_value=False, callback=take),
        click.option("-v", "--verbose", is_flag=True, hidden=True, expose_value=False, callback=take),
    ):
        command = option(command)
    return command


def _register() -> None:
    from .looking import log, runs, show, verify, why
    from .models import model
    from .running import resume, run
    from .steering import answer, cancel, desk, fork

    for command in (run, resume, runs, show, log, why, desk, answer, cancel, fork, verify, model):
        cli.add_command(command)


def main() -> None:
    _register()
    cli()
