"""The names that are public: they exist, a style of one's own needs no others, and a type checker knows them."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

PUBLIC = ("ripstop", "ripstop.events", "ripstop.style_api", "ripstop.store_api", "ripstop.testing")
TOY = Path(__file__).parents[2] / "toy_style"


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_exists_and_is_documented(module: str) -> None:
    found = import_module(module)
    for name in found.__all__:
        one = getattr(found, name)
        if isinstance(one, type):
            assert one.__doc__, name


def test_a_style_of_ones_own_needs_public_names_only() -> None:
    for path in TOY.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                assert all(alias.name.partition(".")[0] != "ripstop" for alias in node.names), path.name
            elif isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").startswith("ripstop"):
                assert node.module in PUBLIC, f"{path.name}: {node.module}"
                known = import_module(node.module).__all__
                assert [alias.name for alias in node.names if alias.name not in known] == [], path.name


@pytest.mark.long
def test_a_type_checker_sees_a_name_that_is_not_there(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import ripstop\nripstop.App\nripstop.NoSuchName\n")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--config-file=",
            "--cache-dir",
            str(tmp_path / "cache"),
            str(program),
        ],
        capture_output=True,
        text=True,
    )
    assert 'Module has no attribute "NoSuchName"' in done.stdout and "Found 1 error" in done.stdout
