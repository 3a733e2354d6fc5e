"""A small board for tests, in a field of work that nobody ships."""

import json
from pathlib import Path
from typing import Any

import pytest

from ripstop.definitions.problems import Problem, WrongDefinition
from ripstop.definitions.reader import Environment
from ripstop.kernel.registry import Registry
from ripstop.styles.blackboard.definition import Board
from ripstop.styles.blackboard.kit import KIT
from ripstop.styles.blackboard.reader import READER

RULES: dict[str, Any] = {
    "apply_to": ["COOK", "TASTER"],
    "require_verdict": True,
    "verdict_prefix": "Verdict:",
    "verdict_allowed": ["GOOD", "BAD"],
    "blocker_prefix": "Blockers:",
    "blocker_clear_value": "none",
}


def policy(**others: Any) -> dict[str, Any]:
    return {"report_rules": RULES, **others}


def board(
    root: Path, written: Any = None, agents: tuple[str, ...] = ("main", "cook", "taster"), plan: str = "dev_plan.md"
) -> Path:
    """A folder that is a board; `written`: its policy, as data or as text."""
    prompts = root / "memory" / "prompts"
    prompts.mkdir(parents=True, exist_ok=True)
    for name in agents:
        (prompts / f"subagent_prompt_{name}.md").write_text(f"You are {name}.\n", encoding="utf-8")
    (root / "memory" / plan).write_text("# Plan\n", encoding="utf-8")
    text = written if isinstance(written, str) else json.dumps(policy() if written is None else written, indent=1)
    (root / "memory" / "verification_policy.json").write_text(text, encoding="utf-8")
    return root


def read(root: Path) -> Board:
    """The board as a run gets it: read, pinned, and loaded again."""
    content = READER.read(root, Environment())[1]
    found: Board = Registry([KIT]).load(KIT.name, content)
    READER.check_pinned(found)
    return found


def wrong(root: Path) -> str:
    with pytest.raises(WrongDefinition) as raised:
        READER.read(root, Environment())
    return str(raised.value)


def checked(root: Path, environment: Environment = Environment()) -> list[Problem]:
    return READER.check(root, environment)
