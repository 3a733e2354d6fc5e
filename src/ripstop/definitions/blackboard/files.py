"""Boards as folders: what ripstop asks of them, as of the definitions of any style.

A folder is one if it has `memory/verification_policy.json` or `memory/prompts/`, and is not a workflow of another style
(`workflow.yaml`, `pipeline.yaml`). The folder `memory` and the policy's file mean the folder that they are in.
"""

import os
from pathlib import Path
from typing import Any

import msgspec

from ripstop.definitions.folders import WORKFLOW_FILES, files_named
from ripstop.definitions.problems import Problem, WrongDefinition
from ripstop.definitions.reader import Environment
from ripstop.definitions.references import check_references
from ripstop.styles.blackboard.definition import Board

from .layout import MEMORY, POLICY, POLICY_FILE, PROMPTS
from .reader import read_board, references_of
from .schema import POLICY_SCHEMA


class BoardFolders:
    style = "blackboard"
    looks_like = f"a folder with {POLICY}"
    greedy = False

    def find(self, path: Path) -> Path | None:
        if path.name == POLICY_FILE and os.path.isfile(path):
            path = path.parent
        if _is_board(path):
            return path
        inside = path.name == MEMORY or os.path.basename(os.path.realpath(path)) == MEMORY
        folder = path.parent if path.name == MEMORY else path / ".."
        return folder if inside and os.path.isdir(path) and _is_board(folder) else None

    def find_all(self, folder: Path) -> list[Path]:
        """Those with a policy: any folder can have `memory/prompts/`, whatever that is for."""
        return [path.parent.parent for path in files_named(POLICY_FILE, folder) if path.parent.name == MEMORY]

    def read(self, path: Path, environment: Environment) -> tuple[str, bytes]:
        board = read_board(path).board
        return board.name, msgspec.json.encode(board, order="deterministic")

    def check(self, path: Path, environment: Environment) -> list[Problem]:
        try:
            read = read_board(path)
        except WrongDefinition as error:
            return error.problems
        return [*read.warnings, *check_references(references_of(read), environment)]

    def check_pinned(self, definition: Board) -> None:
        from .pinned import check_pinned

        check_pinned(definition)

    def schema(self) -> dict[str, Any]:
        return POLICY_SCHEMA

    @property
    def scenarios(self) -> tuple[str, ...]:
        from .scenarios import scenarios

        return scenarios()

    def example(self, folder: Path, scenario: str = "") -> list[Path]:
        from .scenarios import write_scenario

        return write_scenario(folder, scenario)


def _is_board(folder: Path) -> bool:
    if any(os.path.lexists(folder / name) for name in WORKFLOW_FILES):
        return False
    return os.path.lexists(folder / POLICY) or os.path.isdir(folder / PROMPTS)


READER = BoardFolders()
