"""Runs many commands as a person would, each in a process of its own, without the cost of starting Python for each.

A helper process imports ripstop once and forks for every command. It reads a JSON list of argument lists from stdin,
and whether they run on a terminal; it writes a list of [exit code, bytes as hex].
"""

import io
import json
import os
import pty
import subprocess
import sys
import tempfile
import traceback
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

IMPORTED = (
    "ripstop.app.application",
    "ripstop.definitions.families",
    "ripstop.text.diagrams.formats",
    "ripstop.styles.graph.drawing",
    "ripstop.styles.handoff.drawing",
    "ripstop.faces.cli.main",
    "ripstop.faces.cli.screen",
    "ripstop.faces.cli.blocks",
    "ripstop.styles.handoff.cli_watch",
    "ripstop.styles.handoff.service",
    "ripstop.styles.handoff.inbox",
)
"""What commands import when they run."""


class Shown(NamedTuple):
    arguments: tuple[str, ...]
    code: int
    text: bytes
    """Stdout and stderr, as they came."""


def run_commands(folder: Path, commands: list[tuple[str, ...]], terminal: bool) -> list[Shown]:
    told = json.dumps({"commands": commands, "terminal": terminal}).encode()
    script = [sys.executable, "-m", "tests.faces.cli.many_commands", str(folder)]
    root = Path(__file__).parents[3]
    paths = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH", ""), str(root)]))
    environment = {**os.environ, "COLUMNS": "100", "TERM": "xterm-256color", "PYTHONPATH": paths}
    done = subprocess.run(script, input=told, stdout=subprocess.PIPE, cwd=root, env=environment, timeout=600)
    assert done.returncode == 0
    results = json.loads(done.stdout)
    return [
        Shown(arguments, code, bytes.fromhex(text)) for arguments, (code, text) in zip(commands, results, strict=True)
    ]


def _run(arguments: list[str], terminal: bool) -> tuple[int, bytes]:
    if terminal:
        ours, theirs = pty.openpty()
        pid = os.fork()
        if not pid:
            _command(arguments, theirs)
        os.close(theirs)
        text = _read(ours)
        os.close(ours)
    else:
        with tempfile.TemporaryFile() as file:  # no pipe that could be full
            pid = os.fork()
            if not pid:
                _command(arguments, file.fileno())
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
            file.seek(0)
            text = file.read()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), text


def _command(arguments: list[str], output: int) -> None:
    code = 70
    try:
        os.setsid()
        for number in (1, 2):
            os.dup2(output, number)
        # those of the helper process remember whether their files could be sought in
        sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), encoding="utf-8", write_through=True)
        sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False), encoding="utf-8", write_through=True)
        from ripstop.faces.cli.main import main

        sys.argv = ["ripstop", *arguments]
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        os.write(output, traceback.format_exc().encode())
    finally:
        os._exit(code)


def _read(terminal: int) -> bytes:
    pieces = []
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # EIO: the other side is closed
            break
        if not piece:
            break
        pieces.append(piece)
    return b"".join(pieces)


def _main() -> None:
    for module in IMPORTED:
        import_module(module)
    told = json.load(sys.stdin)
    os.chdir(sys.argv[1])
    results = []
    for arguments in told["commands"]:
        code, text = _run(arguments, told["terminal"])
        results.append([code, text.hex()])
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    _main()
