"""How long it takes to begin: `import ripstop` and `ripstop --help`, beside a bare Python; and what is installed.

The commands take turns, so that a busy moment of the machine meets all of them.
"""

import re
import statistics
import subprocess
import sys
import time
import tomllib
from importlib import metadata
from pathlib import Path

COMMANDS = {
    "bare": ("-c", "pass"),
    "import": ("-c", "import ripstop"),
    "help": ("-m", "ripstop", "--help"),
}
REQUIREMENT = re.compile(r"^\s*([A-Za-z0-9._-]+)\s*(?:\[([^\]]*)\])?[^;]*(?:;(.*))?$")
EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")


class NotThere(Exception):
    """A command that should be timed does not work."""


def measure(python: str, times: int) -> dict[str, float]:
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for turn in range(times + 1):
        for name, command in COMMANDS.items():
            began = time.perf_counter()
            finished = subprocess.run([python, *command], capture_output=True, text=True, check=False)
            if finished.returncode:
                raise NotThere(f"python {' '.join(command)}: {finished.stderr[-500:]}")
            if turn:  # the first round only fills the caches
                taken[name].append(time.perf_counter() - began)
    figures = {name: statistics.median(seconds) for name, seconds in taken.items()}
    return {**figures, **installed()}


def installed() -> dict[str, float]:
    """How many distributions a plain install brings, itself included, and their size. None if it is not known."""
    found: dict[str, set[str]] = {}
    wanted = [("ripstop", frozenset[str]())]
    while wanted:
        name, extras = wanted.pop()
        if name in found and extras <= found[name]:
            continue
        requirements = _requirements(name)
        if requirements is None:
            continue  # its marker excludes it here, or else the install would have brought it
        found.setdefault(name, set()).update(extras)
        wanted.extend(_apply(requirements, extras))
    return {"distributions": float(len(found)), "installed_bytes": float(sum(map(_size, found)))}


def _apply(requirements: list[str], extras: frozenset[str]) -> list[tuple[str, frozenset[str]]]:
    wanted = []
    for requirement in requirements:
        match = REQUIREMENT.match(requirement)
        assert match, requirement
        name, own_extras, marker = match.groups()
        needed = EXTRA.findall(marker or "")
        if not needed or extras & set(needed):
            chosen = frozenset(extra.strip() for extra in (own_extras or "").split(",") if extra.strip())
            wanted.append((_canonical(name), chosen))
    return wanted


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _requirements(name: str) -> list[str] | None:
    try:
        return metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        if name != "ripstop":
            return None
    project = Path(__file__).resolve().parent.parent / "pyproject.toml"  # used from the source tree
    if not project.exists():
        return None
    listed: list[str] = tomllib.loads(project.read_text(encoding="utf-8"))["project"].get("dependencies", [])
    return listed


def _size(name: str) -> int:
    """Bytes of what a distribution brings, without what Python compiles out of it."""
    if name == "ripstop":  # installed or used from the source tree, the package is the same
        package = Path(__file__).resolve().parent.parent / "src" / "ripstop"
        paths = list(package.rglob("*"))
    else:
        paths = [Path(str(file.locate())) for file in metadata.files(name) or []]
    return sum(path.stat().st_size for path in paths if path.is_file() and "__pycache__" not in path.parts)


if __name__ == "__main__":
    print(measure(sys.executable, 5))
