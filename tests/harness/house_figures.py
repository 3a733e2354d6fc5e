"""How large the house is, and how much of it a command opens: one column for each source tree.

    python -m tests.harness.house_figures TREE…

A tree is a folder with `src/ripstop` and `pyproject.toml`. Commands are run by the tree's own `.venv/bin/python` if it
has one, else by this interpreter. Figures depend on the source alone, not on the machine or its load.
"""

import argparse
import ast
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HAIKU = Path(__file__).parents[2] / "examples" / "haiku"
STORE = ("--store", "sqlite:journal.db")
COMMANDS: dict[str, tuple[str, ...]] = {
    "--help": ("--help",),
    "check": ("check", "haiku"),
    "run": (*STORE, "--model", "script:haiku/script.jsonl", "run", "haiku"),
    "runs": (*STORE, "runs"),
    "desk": (*STORE, "desk"),
    "log": (*STORE, "log"),
    "why": (*STORE, "why"),
    "verify": (*STORE, "verify"),
    "graph": ("graph", "haiku"),
}
"""In this order, in one folder: those after `run` look at its journal. `log` and `why` get the run's name."""
ABOUT_A_RUN = ("log", "why")
COUNT = """
import atexit, os, sys
def count():
    names = [name for name in sys.modules if name == "ripstop" or name.startswith("ripstop.")]
    with open(os.environ["HOUSE_FIGURES"], "w") as file:
        file.write(str(len(names)))
atexit.register(count)
from ripstop.__main__ import main
main()
"""


def source_figures(tree: Path) -> dict[str, str]:
    package = tree / "src" / "ripstop"
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(package.rglob("*.py"))}
    lines = {path: text.count("\n") for path, text in texts.items()}
    coded = [lines[path] for path, text in texts.items() if _has_code(text)]
    imports = sum(_import_lines(text) for text in texts.values())
    rooms = [path for path in package.iterdir() if (path / "__init__.py").exists()]
    loose = [path for path in package.glob("*.py") if not path.name.startswith("__")]
    contracts = _contracts(tree)
    return {
        "modules": str(len(texts)),
        "… with code": str(len(coded)),
        "median lines of those": f"{statistics.median(coded):g}",
        "longest module": str(max(lines.values())),
        "lines": str(sum(lines.values())),
        "import lines": f"{imports} ({100 * imports / sum(lines.values()):.1f} %)",
        "rooms + loose modules": f"{len(rooms)} + {len(loose)}",
        "layers": "/".join(str(len(contract["layers"])) for contract in contracts if contract["type"] == "layers"),
        "contracts": str(len(contracts)),
        "ignored imports": str(sum(len(contract.get("ignore_imports", ())) for contract in contracts)),
    }


def _has_code(text: str) -> bool:
    """Whether a module has more than its docstring."""
    return any(not isinstance(node, ast.Expr) for node in ast.parse(text).body)


def _import_lines(text: str) -> int:
    imports = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom))
    return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in imports)


def _contracts(tree: Path) -> list[dict[str, Any]]:
    project = tomllib.loads((tree / "pyproject.toml").read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = project["tool"]["importlinter"]["contracts"]
    return found


def loaded_modules(tree: Path) -> Iterator[tuple[str, str]]:
    """How many modules of ripstop each command has imported when it ends."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(HAIKU, folder / "haiku")
        for command, arguments in COMMANDS.items():
            given = (*arguments, _run_in(tree, folder)) if command in ABOUT_A_RUN else arguments
            yield f"modules loaded by `{command}`", _loaded(tree, folder, given)


def _run_in(tree: Path, folder: Path) -> str:
    (run,) = json.loads(_call(tree, folder, ("--json", *STORE, "runs")))
    return str(run["run"])


def _loaded(tree: Path, folder: Path, arguments: tuple[str, ...]) -> str:
    _call(tree, folder, arguments)
    return (folder / "count").read_text()


def _call(tree: Path, folder: Path, arguments: tuple[str, ...]) -> str:
    own = tree / ".venv" / "bin" / "python"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("RIPSTOP_", "XDG_"))}
    finished = subprocess.run(
        [own if own.exists() else sys.executable, "-c", COUNT, *arguments],
        cwd=folder,
        env={
            **environment,
            "HOME": str(folder),
            "HOUSE_FIGURES": str(folder / "count"),
            "PYTHONPATH": str(tree / "src"),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if finished.returncode:
        raise SystemExit(f"{tree}: ripstop {' '.join(arguments)}: {finished.stderr[-500:]}")
    return finished.stdout


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.harness.house_figures", description=__doc__.splitlines()[0])
    parser.add_argument("trees", nargs="+", type=Path, metavar="TREE")
    trees: list[Path] = [tree.absolute() for tree in parser.parse_args().trees]
    columns = [source_figures(tree) | dict(loaded_modules(tree)) for tree in trees]
    print(f"{'':34}" + "".join(f"{tree.name:>18}" for tree in trees))
    for figure in columns[0]:
        print(f"{figure:34}" + "".join(f"{column[figure]:>18}" for column in columns))


if __name__ == "__main__":
    main()
