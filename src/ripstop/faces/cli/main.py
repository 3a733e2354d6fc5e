"""`ripstop`: the group of commands, what they share, and how an error becomes an exit code.

Commands import what they need when they run, so that `--help` answers at once.
"""

import contextlib
import logging
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from ripstop import __version__

from .check import check, init, schema, styles
from .desk import answer, desk
from .doctor import doctor, model
from .draw import graph
from .errors import complaint_about, tell_person, tell_program
from .log import log, runs, show, verify, why
from .options import Options
from .resume import act, cancel, fork
from .run import resume, run
from .signals import finishing, take_signals, wants_json
from .terminal import OutputLost, discard_output, log_to_stderr, say, use_output
from .tools import tools
from .trust import trust
from .work import backup, forget, work

FAILED = 1


class _Commands(click.Group):
    """Runs a command and says what went wrong in one way for all of them."""

    def main(self, args: Sequence[str] | None = None, *more: Any, **kwargs: Any) -> Any:
        arguments = sys.argv[1:] if args is None else list(args)
        try:
            try:
                code = self._run(arguments, *more, **kwargs)
            finally:
                if sys.stdout is not None:  # as it is where a program was started without one
                    sys.stdout.flush()  # now, while an error can still be reported
        except BrokenPipeError:
            # the reader of our output has gone (`ripstop log | head`); nothing is left to say
            discard_output()
            sys.exit(FAILED)
        except OutputLost as error:
            _tell_of_lost_output(error)
            sys.exit(FAILED)
        sys.exit(code if isinstance(code, int) else 0)

    def _run(self, arguments: list[str], *more: Any, **kwargs: Any) -> Any:
        try:
            _check_encoding(arguments)
            return super().main(arguments, *more, **{**kwargs, "standalone_mode": False})
        except (BrokenPipeError, OutputLost):
            raise
        except Exception as error:  # noqa: BLE001  # a bug in ripstop is also reported
            about = complaint_about(error)
            if wants_json(arguments):
                tell_program(error)
            tell_person(error)
            return about.exit_code

    def list_commands(self, ctx: click.Context) -> list[str]:
        from ripstop.app.plugins import installed

        return sorted({*self.commands, *installed().commands})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A built-in command, or one that a style brings; imported when it is called."""
        found = super().get_command(ctx, cmd_name)
        if found is not None:
            return found
        from ripstop.app.plugins import installed

        command: click.Command | None = installed().command(cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from ripstop.app.plugins import installed

        brought = [(one.name, one.help) for one in installed().commands.values() if one.name not in self.commands]
        widest = max(map(len, (*self.commands, *(name for name, _ in brought))))
        for section, commands in SECTIONS.items():
            rows = [(str(one.name), one.get_short_help_str(80)) for one in commands]
            with formatter.section(section):
                rows += brought if section == "Work" else []
                formatter.write_dl([(f"{name:{widest}}", help) for name, help in rows])


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 completed, 1 failed, 2 bad usage or definition, 3 limit or stopped, "
    "4 waiting for a person or a timer, 5 restart required, 129, 130 or 143 interrupted.",
)
@click.option("--store", metavar="sqlite:PATH", help="The journal. Default: sqlite:.ripstop/journal.db")
@click.option("--model", metavar="SPEC", help="local, script:PATH, openai:NAME or PROVIDER:NAME. Default: local")
@click.option("--base-url", metavar="URL", help="Where openai:NAME is served, for anything compatible.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document (`log`: one a line), also for an error.")
@click.option(
    "--tools", multiple=True, metavar="MODULE", help="Let agents call the tools of a Python module; repeatable."
)
@click.option("-v", "--verbose", is_flag=True, help="Show ripstop's own log messages.")
@click.version_option(__version__, prog_name="ripstop")
@click.pass_context
def cli(
    context: click.Context,
    store: str | None,
    model: str | None,
    base_url: str | None,
    as_json: bool,
    tools: tuple[str, ...],
    verbose: bool,
) -> None:
    """Run teams of AI agents so that nothing tears: durable, loop-proof, watched by people.

    \b
    Try it:
      ripstop run examples/haiku    with the local model: no key, no network
      ripstop log RUN               what happened, record by record
      ripstop why RUN               why it ended as it did
    """
    context.obj = Options(store, model, base_url, as_json, verbose, tools)


SECTIONS: dict[str, tuple[click.Command, ...]] = {
    "Work": (run, resume, work),
    "Look": (runs, show, log, why, graph),
    "Steer": (desk, answer, act, cancel, fork),
    "Prepare": (styles, init, check, schema, model, trust, tools, doctor),
    "Keep": (verify, backup, forget),
}
for _section in SECTIONS.values():
    for _command in _section:
        cli.add_command(_command)


def _check_encoding(arguments: list[str]) -> None:
    """Names of runs and all that is recorded is text. Only a file can have a name that is not."""
    for argument in arguments:
        if not argument.isprintable() and not os.path.lexists(argument):
            try:
                argument.encode()
            except UnicodeEncodeError:
                raise click.UsageError(f"The argument {argument!r} is not UTF-8 text.") from None


def _tell_of_lost_output(error: OutputLost) -> None:
    """Say so on stderr, unless that has gone the same way."""
    lost = f"ripstop: The output cannot be written: {error.strerror}. The journal is not affected."
    with contextlib.suppress(OSError):
        say(lost, err=True)
    discard_output()


def main() -> None:
    take_signals()
    use_output()
    log_to_stderr(logging.WARNING)
    try:
        cli(prog_name="ripstop")
    except SystemExit as end:
        finishing(end.code if isinstance(end.code, int) else 0)
        raise
