"""Reads `NAME.chores`: a line for each field, `key: value`; `#` begins a comment."""

import os
from pathlib import Path
from typing import Any

import msgspec

from ripstop import UsageError
from ripstop.style_api import WARNING, Environment, Position, Problem, WrongDefinition, did_you_mean

from .definition import Chores

SUFFIX = ".chores"
KEYS = ("agent", "pause", "chore")
EXAMPLE = "# Saturday morning\nagent: helper\npause: 0.05\nchore: sweep the floor\nchore: wash the windows\n"
MAX_BYTES = 100_000


class ChoreReader:
    style = "chores"
    looks_like = "a file that ends with .chores, or a folder with one"
    greedy = False

    def find(self, path: Path) -> Path | None:
        if path.suffix == SUFFIX and os.path.isfile(path):
            return path
        found = sorted(path.glob(f"*{SUFFIX}")) if os.path.isdir(path) else []
        return found[0] if len(found) == 1 else None

    def find_all(self, folder: Path) -> list[Path]:
        return sorted(folder.rglob(f"*{SUFFIX}"))

    def read(self, path: Path, environment: Environment) -> tuple[str, bytes]:
        definition = _read(path)
        return definition.name, msgspec.json.encode(definition, order="deterministic")

    def check(self, path: Path, environment: Environment) -> list[Problem]:
        try:
            definition = _read(path)
        except WrongDefinition as error:
            return error.problems
        if len(set(definition.chores)) < len(definition.chores):
            return [Problem(Position(str(path)), "a chore is there twice", severity=WARNING)]
        return []

    def check_pinned(self, definition: Chores) -> None:
        if not definition.chores or definition.pause < 0:
            raise WrongDefinition([Problem(Position(definition.name), "there are no chores, or the pause is negative")])

    def schema(self) -> dict[str, Any]:
        return msgspec.json.schema(Chores)

    def example(self, folder: Path) -> list[Path]:
        file = folder / f"saturday{SUFFIX}"
        if file.exists():
            raise UsageError(f"There is a file {file} already. Choose a new folder.")
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(EXAMPLE, encoding="utf-8")
        return [file]


def _read(path: Path) -> Chores:
    fields: dict[str, Any] = {}
    chores: list[str] = []
    problems: list[Problem] = []
    text = path.read_bytes()[:MAX_BYTES].decode("utf-8", "replace")
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        key, colon, value = line.partition(":")
        place = Position(str(path), number, len(line) - len(line.lstrip()) + 1)
        if not colon or key.strip() not in KEYS:
            problems.append(Problem(place, f"there is no field {key.strip()!r}", did_you_mean(key.strip(), KEYS)))
            continue
        at = Position(str(path), number, len(key) + 2 + len(value) - len(value.lstrip()))
        if not value.strip():
            problems.append(Problem(at, f"{key.strip()!r} is empty"))
        elif key.strip() == "chore":
            chores.append(value.strip())
        elif key.strip() == "pause":
            try:
                fields["pause"] = float(value)
            except ValueError:
                problems.append(Problem(at, f"'pause' must be a number, but this is {value.strip()!r}", source=line))
        else:
            fields[key.strip()] = value.strip()
    if not chores and not problems:
        problems.append(Problem(Position(str(path)), "there is nothing to do", "write a line: chore: WHAT"))
    if problems:
        raise WrongDefinition(problems)
    return Chores(path.stem, tuple(chores), **fields)


READER = ChoreReader()
