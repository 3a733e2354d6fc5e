"""Runs commands of the command line in this process, which is much quicker than starting one for each."""

import io
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import NamedTuple

from ripstop.faces.cli.main import cli


class Done(NamedTuple):
    """What came of a command."""

    code: int
    out: str
    err: str


def command(*args: str) -> Done:
    """Run a command in the current folder. Raises `AssertionError` where a person would see a traceback."""
    code = 0
    with _caught() as (out, err):
        try:
            cli.main(list(args), prog_name="ripstop")
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
    if "Traceback (most recent call last)" in err.getvalue():
        raise AssertionError(err.getvalue())
    return Done(code, out.getvalue(), err.getvalue())


@contextmanager
def _caught() -> Iterator[tuple[io.StringIO, io.StringIO]]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        yield out, err
