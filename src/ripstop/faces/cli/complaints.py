"""How an error reaches people and programs: words on stderr, with `--json` one document on stdout, and an exit code.

| kind        | exit code | what it is                                                     |
|-------------|-----------|----------------------------------------------------------------|
| usage       | 2         | bad usage, or something that cannot be (there is no such run)  |
| definition  | 2         | a workflow's definition is wrong                               |
| journal     | 1         | the store cannot do its work                                   |
| failed      | 1         | anything else that was foreseen                                |
| internal    | 1         | a bug of ours; stderr has the traceback                        |
| interrupted | 130       | Ctrl-C                                                         |
"""

import json
from collections.abc import Sequence
from typing import NamedTuple

import click

from ripstop.kernel.errors import DefinitionError, JournalError, RipstopError, UsageError


class Complaint(NamedTuple):
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


def complaint_about(error: BaseException) -> Complaint:
    kind, code = next((kind, code) for known, kind, code in _KINDS if isinstance(error, known))
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        group = error.ctx.command
        commands = ", ".join(group.list_commands(error.ctx)) if isinstance(group, click.Group) else ""
        return Complaint(f"{error.ctx.command_path} needs a command: {commands}.", kind, code)
    if isinstance(error, click.ClickException):
        return Complaint(error.format_message(), kind, code)
    if kind == "interrupted":
        return Complaint(" ".join(["Interrupted.", *map(str, error.args)]), kind, code)
    return Complaint(f"{type(error).__name__}: {error}" if kind == "internal" else str(error), kind, code)


def tell_person(error: BaseException) -> None:
    if isinstance(error, click.ClickException):
        return error.show()
    prefix = "" if isinstance(error, DefinitionError) else "ripstop: "
    click.echo(f"{prefix}{complaint_about(error).error}", err=True)
    if isinstance(error, JournalError) and not str(error).endswith("."):
        click.echo("Nothing that was acknowledged is lost.", err=True)
    return None


def tell_program(error: BaseException) -> None:
    click.echo(json.dumps(complaint_about(error)._asdict(), ensure_ascii=False))


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether `--json` was asked for. The arguments may be the very thing that is wrong, so nobody has read them."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options
