"""`ripstop`: the group of commands, what they share, and how an error becomes an exit code.

Commands import what they need when they run, so that `--help` answers at once.
"""

import io
import sys
from typing import Any

import click

from ripstop import __version__
from ripstop.kernel.errors import DefinitionError, JournalError, RipstopError, UsageError

from .checking import check, schema
from .documents import docs
from .drawing import graph
from .looking import log, runs, show, verify, why
from .models import model
from .options import Options
from .running import resume, run
from .steering import answer, cancel, desk, fork

FAILED, WRONG, INTERRUPTED = 1, 2, 130


class _Commands(click.Group):
    """Runs a command and says what went wrong in one way for all of them."""

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except KeyboardInterrupt:  # a second Ctrl-C: whoever presses it does not want to wait
            click.echo(err=True)  # behind the terminal's ^C
            sys.exit(INTERRUPTED)

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


for _command in (
    *(run, resume, check, graph, schema, runs, show, log, why),
    *(desk, answer, cancel, fork, verify, docs, model),
):
    cli.add_command(_command)


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # a terminal that cannot show a character must not stop the story
            stream.reconfigure(errors="backslashreplace")
    cli()
