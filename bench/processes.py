"""Runs one contestant once: a fresh process, a fresh folder on the repository's disk, one line of JSON back."""

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from machine import Disk
from plan import Arguments, Contestant

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
LIMIT = 900.0
"""Seconds after which a process counts as hung."""

Figures = dict[str, float]


class Crashed(Exception):
    """A contestant did not do its work."""


class Runner:
    def __init__(self, own_python: str, peers_python: str, disk: Disk) -> None:
        self._disk = disk
        self._own_python = own_python
        self._peers_python = peers_python

    def measure(self, contestant: Contestant, measure: str, arguments: Arguments) -> Figures:
        self._disk.settle()
        with scratch() as folder:
            if measure == "resume":
                return self._resume(contestant, folder, arguments)
            finished = self._finish(self._command(contestant, measure, folder, arguments), contestant)
            if finished.returncode:
                raise Crashed(_why(finished))
            figures: Figures = json.loads(finished.stdout.strip().splitlines()[-1])
            return figures

    def _resume(self, contestant: Contestant, folder: Path, arguments: Arguments) -> Figures:
        """Kill a process in the middle of a step, then time a new one from its start to its first durable step."""
        filled = self._finish(self._command(contestant, "fill", folder, arguments), contestant)
        if filled.returncode != -signal.SIGKILL:
            raise Crashed(_why(filled))
        command = self._command(contestant, "resume", folder, {})
        began = time.perf_counter()
        with subprocess.Popen(
            command, cwd=HERE, env=_environment(contestant), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout
            assert process.stderr
            said = process.stdout.readline().strip()
            seconds = time.perf_counter() - began
            if said != "durable":
                raise Crashed(process.stderr.read()[-2000:] or f"said {said!r}")
        return {"seconds": seconds}

    def _finish(self, command: list[str], contestant: Contestant) -> "subprocess.CompletedProcess[str]":
        try:
            return subprocess.run(
                command,
                cwd=HERE,
                env=_environment(contestant),
                capture_output=True,
                text=True,
                timeout=LIMIT,
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            raise Crashed(f"not done after {LIMIT:g} s") from late

    def _command(self, contestant: Contestant, measure: str, folder: Path, arguments: Arguments) -> list[str]:
        python = self._peers_python if contestant.peer else self._own_python
        name = measure + contestant.suffix
        return [python, "-m", f"contestants.{contestant.module}", name, str(folder), json.dumps(arguments)]


@contextmanager
def scratch() -> Iterator[Path]:
    RESULTS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="scratch-", dir=RESULTS) as folder:
        yield Path(folder)


def _environment(contestant: Contestant) -> dict[str, str]:
    environment = dict(os.environ)
    if contestant.peer:
        environment.pop("PYTHONPATH", None)
    return environment


def _why(finished: "subprocess.CompletedProcess[str]") -> str:
    return finished.stderr[-2000:] or f"ended with code {finished.returncode} and said nothing"
