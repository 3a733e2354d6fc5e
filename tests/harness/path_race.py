"""Tries to get an agent's file tools out of their roots, with hostile paths and with swapped symbolic links.

    python -m tests.harness.path_race --paths 100000 --swaps 5000

- *Paths*: random and nasty ones go through every file tool, in a workspace that has links to the outside in it.
- *Swaps*: while files are written, edited and read, another process swaps a folder on the way, and a file, with
  a link to the outside and back, again and again. The swap is atomic, so every moment shows the one or the other.

Beside the workspace stands a tree of canaries. Afterwards it must be as it was, nothing may have been added
next to it, and no answer of a tool may contain what the canaries say.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ripstop.engine.performers import Refused
from ripstop.tools.files import Files

SECRET = "the canary sings"  # nobody's password
AGENT = "writer"
SWAPPER = """
import ctypes, os, random, sys, time
count, outside = int(sys.argv[1]), sys.argv[2]
HERE, EXCHANGE = -100, 2
library = ctypes.CDLL(None, use_errno=True)
for number in range(count):
    if library.renameat2(HERE, b"swapped", HERE, b"link", EXCHANGE):
        raise OSError(ctypes.get_errno(), "renameat2")
    os.symlink(outside + "/secret.txt", "new")
    os.rename("new", "target.txt")
    time.sleep(random.random() / 2000)
    if number % 2:
        open("new", "w").close()
        os.rename("new", "target.txt")
"""
_PIECES = (
    *("..", ".", "", "/", "//", "~", "C:", "\\", "..\\", "%2e%2e", "a..b.txt", "collab", AGENT, "workspaces", "flow"),
    *("out", "deep", "file.txt", "gone", "secret.txt", "canary", "outside", "loop", "hard.txt", "pipe", "a b", " "),
    *(
        "\0",
        "\n",
        "\x1b[2J",
        "\u202e",
        "菜单.md",
        "x" * 300,
        "é",
        "e\u0301",
        "\ud800",
        "．．",
        "∕",
        "-rf",
        "$HOME",
        "*",
    ),
    *("etc", "passwd", "proc", "self", "root", "cwd", "fd", ".ripstop-1", ".git", "CON", "aux.txt"),
)


def make_tree(folder: Path) -> Path:
    """A workspace with traps in it, and the canaries beside it; returns the workspace."""
    outside, workspace = folder / "outside", folder / "workspace"
    (outside / "deep").mkdir(parents=True)
    for place in (outside, outside / "deep", folder):
        for name in ("secret.txt", "file.txt"):
            (place / name).write_text(f"{SECRET} in {place.name}\n", encoding="utf-8")
    for root in (workspace / AGENT, workspace / "collab"):
        (root / "deep").mkdir(parents=True)
        (root / "file.txt").write_text("an ordinary file\n", encoding="utf-8")
        (root / "out").symlink_to(outside)
        (root / "deep" / "out").symlink_to("../../../outside")
        (root / "gone").symlink_to(outside / "new.txt")
        (root / "secret.txt").symlink_to(outside / "secret.txt")
        (root / "loop").symlink_to("loop")
        os.link(outside / "file.txt", root / "hard.txt")
        os.mkfifo(root / "pipe")
    other = workspace / "reviewer"
    other.mkdir()
    (other / "secret.txt").write_text(f"{SECRET} to another agent\n", encoding="utf-8")
    return workspace


def snapshot(folder: Path, workspace: Path) -> dict[str, str]:
    """Everything that is none of the agent's business, by name: what it is and what it holds."""
    roots = (workspace / AGENT, workspace / "collab")
    seen = {}
    for path in sorted(folder.rglob("*")):
        if not any(path.is_relative_to(root) for root in roots):
            state = path.lstat()
            held = path.read_text(encoding="utf-8") if path.is_file() else ""
            seen[str(path.relative_to(folder))] = f"{state.st_mode:o} {state.st_mtime_ns if held else ''} {held}"
    return seen


def nasty_paths(rng: random.Random, workspace: Path) -> Iterator[str]:
    """Paths without end, most of which should be refused."""
    absolute = (str(workspace.parent / "outside" / "secret.txt"), str(workspace), "/etc/passwd", "//etc/passwd")
    while True:
        pieces = rng.choices(_PIECES, k=rng.randint(1, 6))
        path = rng.choice(("/", "/", "/", "", "\\")).join(pieces)
        match rng.randint(0, 9):
            case 0:
                path = rng.choice(absolute) + rng.choice(("", "/" + path))
            case 1:
                path = "../" * rng.randint(1, 40) + path
            case 2:
                path = "".join(chr(rng.choice((rng.randint(1, 127), rng.randint(1, 0x2FFF)))) for _ in range(12))
            case 3:
                path = path[::-1]
        yield path


class Attack:
    """Calls the tools and counts what came of it."""

    def __init__(self, workspace: Path) -> None:
        self._files = Files(workspace, AGENT)
        self._calls: tuple[Callable[[str], Any], ...] = (
            lambda path: self._files.write(path, "written by the agent\n"),
            self._files.read,
            lambda path: self._files.edit(path, "", "made by the agent\n"),
            lambda path: self._files.edit(path, "canary", "cat"),
            lambda path: self._files.was_edited(path, "cat", "canary"),
            self._files.list,
            lambda path: self._files.search("canary", path),
        )
        self.figures: Counter[str] = Counter()
        self.escapes: list[str] = []

    def call(self, path: str, number: int) -> None:
        try:
            answer = json.dumps(self._calls[number % len(self._calls)](path))
        except Refused as refusal:
            answer = str(refusal)
            self.figures["refused_as_a_link" if "link" in answer else "refused"] += 1
        else:
            self.figures["carried_out"] += 1
        if SECRET in answer:
            self.escapes.append(f"call {number % len(self._calls)} with {path!r} gave {answer[:200]!r}")


def try_paths(folder: Path, count: int, seed: int) -> tuple[Counter[str], list[str]]:
    """`count` hostile paths; what came of them, and every way out that was found."""
    workspace = make_tree(folder)
    before = snapshot(folder, workspace)
    attack = Attack(workspace)
    paths = nasty_paths(random.Random(seed), workspace)  # repeatable, not secret
    for number in range(count):
        attack.call(next(paths), number)
    return attack.figures, attack.escapes + changes(before, snapshot(folder, workspace))


def try_swaps(folder: Path, count: int) -> tuple[Counter[str], list[str]]:
    """`count` swaps of a folder with a link to the outside, while the tools are at work below it."""
    workspace = make_tree(folder)
    swapped = workspace / "collab" / "swapped"
    (swapped / "deep").mkdir(parents=True)
    (workspace / "collab" / "link").symlink_to(folder / "outside")
    before = snapshot(folder, workspace)
    attack = Attack(workspace)
    command = [sys.executable, "-c", SWAPPER, str(count), str(folder / "outside")]
    with subprocess.Popen(command, cwd=swapped.parent) as swapper:  # our own program
        number = 0
        while swapper.poll() is None:
            number += 1
            names = ("swapped/file.txt", "swapped/secret.txt", f"swapped/{number % 50}.txt", "swapped/deep/file.txt")
            attack.call("collab/" + (*names, "swapped/", "target.txt")[number // 7 % 6], number)
    if swapper.returncode:
        attack.escapes.append(f"the swapping process ended with {swapper.returncode}")
    return attack.figures, attack.escapes + changes(before, snapshot(folder, workspace))


def changes(before: dict[str, str], after: dict[str, str]) -> list[str]:
    return [
        f"{name} was {before.get(name, 'not there')!r} and is {after.get(name, 'not there')!r}"
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.harness.path_race", description="Try to get out.")
    parser.add_argument("--paths", type=int, default=100_000, help="hostile paths (100000)")
    parser.add_argument("--swaps", type=int, default=5_000, help="swaps of a folder with a link (5000)")
    parser.add_argument("--seed", type=int, default=1, help="where the choices start (1)")
    chosen = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="ripstop-paths-"))
    paths, out_by_path = try_paths(folder / "paths", chosen.paths, chosen.seed)
    swaps, out_by_swap = try_swaps(folder / "swaps", chosen.swaps)
    escapes = out_by_path + out_by_swap
    report = {
        "paths": {"tried": chosen.paths, **paths},
        "swaps": {"swapped": chosen.swaps, "calls": swaps.total(), **swaps},
        "escapes": escapes,
    }
    print(json.dumps(report, indent=2, ensure_ascii=False))  # a program
    shutil.rmtree(folder)
    return 1 if escapes else 0


if __name__ == "__main__":
    sys.exit(main())
