"""`ripstop`: the group of commands, what they share, and how an error becomes an exit code.

Commands import what they need when they run, so that `--help` answers at once.
"""

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from ripstop import __version__
from ripstop.app.plugin import PluginCommand
from ripstop.app.plugins import imported, installed
from ripstop.kernel.errors import UsageError

from .errors import error_report, tell_person, tell_program
from .options import Options
from .signals import finishing, take_signals, wants_json
from .terminal import OutputLost, discard_output, log_to_stderr, say, use_output

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
            return self._asking(arguments, *more, **{**kwargs, "standalone_mode": False})
        except (BrokenPipeError, OutputLost):
            raise
        except Exception as error:  # noqa: BLE001  # a bug in ripstop is also reported
            about = error_report(error)
            if wants_json(arguments):
                tell_program(error)
            tell_person(error)
            return about.exit_code

    def _asking(self, arguments: list[str], *more: Any, **kwargs: Any) -> Any:
        """Run the command; if it would act on a journal that the user has not agreed to, ask for that and run it again.

        Such a journal takes nothing, so nothing was done yet.
        """
        while True:
            try:
                return super().main(list(arguments), *more, **kwargs)
            except UsageError as error:
                from ripstop.app.journal_trust import ForeignJournal

                from .trust import agrees_to

                if not isinstance(error, ForeignJournal) or wants_json(arguments) or not agrees_to([error]):
                    raise
                error.agree()

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*COMMANDS, *self.commands, *installed().commands})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command, or one that a style brings; imported when it is called."""
        found = super().get_command(ctx, cmd_name)
        if found is not None:
            return found
        own = COMMANDS.get(cmd_name)
        command: click.Command | None = imported(own.target) if own else installed().command(cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        brought = [one for one in installed().commands.values() if one.name not in COMMANDS]
        widest = max(len(one.name) for one in (*COMMANDS.values(), *brought))
        for section, commands in SECTIONS.items():
            rows = (*commands, *brought) if section == "Work" else commands
            with formatter.section(section):
                formatter.write_dl([(f"{one.name:{widest}}", one.help) for one in rows])


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
@click.option("-v", "--verbose", count=True, help="Show ripstop's own log: what workers do; -vv: all of it.")
@click.version_option(__version__, prog_name="ripstop")
@click.pass_context
def cli(
    context: click.Context,
    store: str | None,
    model: str | None,
    base_url: str | None,
    as_json: bool,
    tools: tuple[str, ...],
    verbose: int,
) -> None:
    """Run teams of AI agents so that nothing tears: durable, loop-proof, watched by people.

    \b
    Try it:
      ripstop run examples/haiku    with the local model: no key, no network
      ripstop log RUN               what happened, record by record
      ripstop why RUN               why it ended as it did
    """
    context.obj = Options(store, model, base_url, as_json, verbose, tools)


def _own(name: str, module: str, help: str) -> PluginCommand:
    """A command of a module of the faces, which calls it by the same name."""
    return PluginCommand(name, f"ripstop.faces.{module}:{name}", help)


SECTIONS = {
    "Work": (
        _own("run", "cli.run", "Run a workflow."),
        _own("resume", "cli.run", "Resume an interrupted or stopped run."),
        _own("work", "cli.work", "Work on every run of the journal, until stopped."),
        _own("serve", "serve", "Serve bots over HTTP, and work on the journal."),
        _own("web", "serve_web", "Open the web desk, and work on the journal."),
    ),
    "Look": (
        _own("runs", "cli.log", "List the runs of the journal."),
        _own("show", "cli.log", "Show the state of a run."),
        _own("log", "cli.log", "Show what happened, record by record."),
        _own("why", "cli.log", "Explain a decision, a stop or an end."),
        _own("graph", "cli.draw", "Draw a workflow, or the path of a run."),
    ),
    "Steer": (
        _own("desk", "cli.desk", "List what waits for a person, over all runs."),
        _own("answer", "cli.desk", "Answer a question on the desk."),
        _own("act", "cli.resume", "Perform an action that a run's style offers."),
        _own("retry", "cli.resume", "Make the calls again that a model server refused."),
        _own("cancel", "cli.resume", "End a run at once."),
        _own("fork", "cli.resume", "Start a new run from any record of another."),
        PluginCommand(
            "undo-files", "ripstop.faces.cli.files:undo_files", "Bring back files that a run removed or changed."
        ),
    ),
    "Prepare": (
        _own("styles", "cli.check", "List the styles that are installed."),
        _own("init", "cli.check", "Write a ready example of a style."),
        _own("check", "cli.check", "Find problems in workflows before they run."),
        _own("schema", "cli.check", "Print the JSON Schema of a style's definitions."),
        _own("model", "cli.doctor", "The local model: where it is, and how to get it."),
        PluginCommand("trust", "ripstop.faces.cli.trust:trust", "Agree to a journal, and to what this project names."),
        _own("tools", "cli.tools", "Look at the tools of MCP servers, and agree to them."),
        PluginCommand(
            "doctor", "ripstop.faces.cli.doctor:doctor", "Say what this machine can do, and what is missing."
        ),
    ),
    "Keep": (
        _own("verify", "cli.log", "Check that the journal is what was written."),
        _own("backup", "cli.work", "Copy the journal while others work on it."),
        _own("restore", "cli.restore", "Put a backup in place, and ask what happened since."),
        _own("forget", "cli.work", "Remove runs that have ended."),
    ),
}
"""All commands but those of styles, imported when they are called."""
COMMANDS = {one.name: one for section in SECTIONS.values() for one in section}


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
    log_to_stderr()
    try:
        cli(prog_name="ripstop")
    except SystemExit as end:
        finishing(end.code if isinstance(end.code, int) else 0)
        raise
