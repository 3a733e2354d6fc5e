"""The source keeps its own rules: a class name exists once, and modules and functions stay small enough to read."""

import ast
from collections import Counter
from pathlib import Path

import pytest

import ripstop

ROOT = Path(ripstop.__file__).parent
MODULES = {path.relative_to(ROOT): path.read_text(encoding="utf-8") for path in ROOT.rglob("*.py")}
CORE = ("flow", "style")
"""What an orchestrator does: call MAIN, carry out what it decides, check, write."""
LONGEST_MODULE, LONGEST_FUNCTION = 700, 60
"""Lines. 400 are normal for a module; at 700 it has a second noun."""


def test_a_public_class_name_exists_once() -> None:
    names = Counter(
        node.name
        for text in MODULES.values()
        for node in ast.parse(text).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.req("S4-67")
def test_the_core_of_the_blackboard_stays_under_500_lines() -> None:
    core = [text for path, text in MODULES.items() if str(path) in {f"styles/blackboard/{one}.py" for one in CORE}]
    assert len(core) == len(CORE) and sum(text.count("\n") for text in core) < 500


def test_modules_and_functions_are_short() -> None:
    long = [str(path) for path, text in MODULES.items() if text.count("\n") > LONGEST_MODULE]
    for path, text in MODULES.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > LONGEST_FUNCTION:
                    long.append(f"{path}:{node.lineno}: {node.name} has {lines} lines")
    assert long == []
