"""How an error reaches people and programs: words on stderr, with `--json` one document on stdout, and an exit code.

| kind        | exit code | what it is                                                     |
|-------------|-----------|----------------------------------------------------------------|
| usage       | 2         | bad usage, or something that cannot be (there is no such run)  |
| definition  | 2         | a workflow's definition is wrong                               |
| journal     | 1         | the store cannot do its work                                   |
| failed      | 1         | anything else that was foreseen                                |
| internal    | 1         | a bug in ripstop; stderr has the traceback                     |
| interrupted | 130       | Ctrl-C                                                         |
"""

import shlex
import traceback
from pathlib import Path
from typing import NamedTuple

import click

from ripstop.faces.next_steps import in_commands
from ripstop.kernel.errors import (
    AlreadyAnswered,
    DefinitionError,
    JournalError,
    JournalNotFound,
    QuestionWithdrawn,
    RipstopError,
    RunDamaged,
    RunNotFound,
    RunUnreadable,
    UntrustedFolder,
    UsageError,
    ValuesMissing,
)

from .terminal import say, say_json, say_text
from .words import local_time


class ErrorReport(NamedTuple):
    error: str
    kind: str
    exit_code: int


_KINDS: tuple[tuple[type[BaseException], str, int], ...] = (
    (click.UsageError, "usage", 2),
    (click.ClickException, "failed", 1),
    (click.Abort, "interrupted", 130),
    (UsageError, "usage", 2),
    (DefinitionError, "definition", 2),
    (JournalError, "journal", 1),
    (RipstopError, "failed", 1),
    (Exception, "internal", 1),
)


def error_report(error: BaseException) -> ErrorReport:
    kind, code = next((kind, code) for known, kind, code in _KINDS if isinstance(error, known))
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        group = error.ctx.command
        commands = ", ".join(group.list_commands(error.ctx)) if isinstance(group, click.Group) else ""
        return ErrorReport(f"{error.ctx.command_path} needs a command: {commands}.", kind, code)
    if isinstance(error, click.ClickException):
        return ErrorReport(error.format_message(), kind, code)
    if kind == "interrupted":
        return ErrorReport(" ".join(["Interrupted.", *map(str, error.args)]), kind, code)
    if kind == "internal":
        return ErrorReport(f"{type(error).__name__}: {error}", kind, code)
    said = in_commands(error.message) if isinstance(error, RipstopError) else str(error)
    return ErrorReport(" ".join(filter(None, (said, next_step(error)))), kind, code)


def next_step(error: BaseException) -> str:
    """What to type next, which an error itself does not know; empty where its text says all there is to say."""
    match error:
        case RunNotFound():
            return "`ripstop runs` lists the runs of this journal."
        case ValuesMissing(names=names):
            return f"Set them with {' '.join(f'--set {name}=…' for name in names)}"
        case AlreadyAnswered(at=at) | QuestionWithdrawn(at=at):
            return f"That was at {local_time(at)}."
        case UntrustedFolder(run_id=run_id, is_workspace=False):
            return f"`ripstop resume {run_id}` asks you, on a terminal."
        case UntrustedFolder(run_id=run_id, folder=folder):
            here = Path(Path(str(folder)).name)  # in a folder that was copied, `folder` is still the original's
            if here.is_dir() and here.resolve() != folder:
                return f"`ripstop resume {run_id} --workspace DIR` is for that one or {str(here)!r} in this folder."
            return f"`ripstop resume {run_id} --workspace {shlex.quote(str(folder))}` does so."
        case JournalNotFound():
            return "`ripstop run WORKFLOW` or `ripstop chat CONFIG` starts one; --store names another journal."
        case RunDamaged():
            return "`ripstop verify` shows more."
        case RunUnreadable():
            return "`ripstop verify` shows whether it was changed."
        case _:
            return ""


def tell_person(error: BaseException) -> None:
    about = error_report(error)
    if about.kind == "internal":
        say_text("".join(traceback.format_exception(error)), err=True)
        say("ripstop: This is a bug in ripstop, not in your workflow; please report it with the lines above.", err=True)
    elif isinstance(error, click.exceptions.NoArgsIsHelpError):
        say_text(error.format_message(), err=True)
    elif isinstance(error, click.ClickException):
        _tell_usage(error)
    elif isinstance(error, DefinitionError):
        say_text(about.error, err=True)  # a line for each problem, and its source
    else:
        first, *others = about.error.split("\n")
        say(f"ripstop: {first}", err=True)
        for line in others:
            say(f"  {line}", err=True)  # so that no text from outside begins a line as we do
    if isinstance(error, JournalError) and not str(error).endswith("."):
        say("Nothing that was acknowledged is lost.", err=True)


def _tell_usage(error: click.ClickException) -> None:
    """What click would print."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is not None:
        say_text(context.get_usage(), err=True)
        if context.command.get_help_option(context) is not None:
            say(f"Try '{context.command_path} {context.help_option_names[0]}' for help.", err=True)
        say(err=True)
    say(f"Error: {error.format_message()}", err=True)


def tell_program(error: BaseException) -> None:
    say_json(error_report(error)._asdict())
