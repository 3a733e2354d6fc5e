"""Commands in a folder, in this process: a story of a dozen commands takes a second instead of ten.

What depends on a process of its own (signals, environment, standard input) has one.
"""

import contextlib
import json
import subprocess
from pathlib import Path
from typing import Any

from ripstop.testing.commands import command
from tests.walks import test_command_line as processes
from tests.walks.test_command_line import HAIKU, SCRIPT


def ripstop(*args: str, cwd: Path, **more: Any) -> "subprocess.CompletedProcess[str]":
    """Run a command; with `more`, which is for `subprocess.run`, in a process of its own."""
    if more:
        return processes.ripstop(*args, cwd=cwd, **more)
    with contextlib.chdir(cwd):
        done = command(*args)
    return subprocess.CompletedProcess(args, done.code, done.out, done.err)


def succeed(*args: str, cwd: Path) -> str:
    done = ripstop(*args, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


def a_run(cwd: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(succeed("run", str(HAIKU), "--model", SCRIPT, "--json", cwd=cwd))
    return result


def log_of(run: str, cwd: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in succeed("log", run, "--json", cwd=cwd).splitlines()]
