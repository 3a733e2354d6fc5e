"""Packages that are installed beside ripstop, each with an entry point, and the command line that finds them."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ripstop.app.plugins import installed
from ripstop.faces.cli.main import cli

ROOT = Path(__file__).parents[3]
TOY = "tests.toy_style:PLUGIN"
REPLIES = "".join(json.dumps({"agent": "helper", "reply": f"Done, {number}."}) + "\n" for number in range(1, 40))
MODEL = ("--model", "script:replies.jsonl")


def install(folder: Path, name: str, target: str) -> None:
    """What pip would leave of a package that brings a plug-in."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[ripstop.styles]\n{name} = {target}\n")


@contextmanager
def installed_packages(folder: Path) -> Iterator[None]:
    """This process finds the packages in a folder, as if it had been started with them."""
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(folder)
        installed.cache_clear()
        yield
    installed.cache_clear()


def ripstop(*args: str) -> Result:
    """A command, in this process."""
    return CliRunner().invoke(cli, list(args))


def as_json(*args: str, code: int = 0) -> Any:
    done = ripstop(*args, "--json")
    assert done.exit_code == code, (done.stdout, done.stderr)
    return json.loads(done.stdout)


def environment(*packages: Path, **more: str) -> dict[str, str]:
    """For a process that finds ripstop, the tests and some packages."""
    path = os.pathsep.join(map(str, (ROOT / "src", ROOT, *packages)))
    return {**os.environ, "PYTHONPATH": path, **more}


def process(folder: Path, packages: Path, *args: str, **more: str) -> "subprocess.CompletedProcess[str]":
    """A command, in a process of its own."""
    command = [sys.executable, "-m", "ripstop", *args]
    return subprocess.run(
        command, cwd=folder, env=environment(packages, **more), capture_output=True, text=True, timeout=120
    )


@contextmanager
def uninstalled_packages(folder: Path) -> Iterator[None]:
    """This process does not find the packages in a folder any more."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "path", [path for path in sys.path if path != str(folder)])
        installed.cache_clear()
        yield
    installed.cache_clear()
