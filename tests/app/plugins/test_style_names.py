"""Only the registry knows styles by name: everything else goes over what is plugged in."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import ripstop
from ripstop.app.plugins import BUILT_IN

ROOT = Path(ripstop.__file__).parent
NAMES = [plugin.name for plugin in BUILT_IN]
REGISTRY = ROOT / "app" / "plugins.py"
SHARED_NAMES = {
    # the format of Graphviz and the name of a picture without one
    ("text/diagrams/formats.py", "graph"),
    # the command that draws a workflow of any style
    ("faces/cli/main.py", "graph"),
    # a conversation that is handed over to a person
    ("kernel/desk_kinds.py", "handoff"),
    ("faces/demo/world.py", "handoff"),
    ("styles/conversation/definition.py", "handoff"),
}
"""A style's name that is another word there."""


def own(name: str, path: Path) -> bool:
    """Whether a module belongs to the style: it is in the style's room."""
    return path.is_relative_to(ROOT / "styles" / name)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def mentions(name: str, path: Path, root: Path = ROOT) -> Iterator[str]:
    """Imports of the style's modules, and the style's name as a text that the program uses."""
    if name not in path.read_text(encoding="utf-8"):
        return
    tree = parsed(path)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = [alias.name for alias in node.names]
            if isinstance(node, ast.ImportFrom):
                # `from .drawing import graph` imports a command of that name, which is not a style's
                modules = [node.module or "", *modules] if _is_package(node, path, root) else [node.module or ""]
            if any(name in module.split(".") for module in modules):
                yield f"{path.relative_to(root)}:{node.lineno}: import of {name}"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            parts = re.split(r"[.:]", node.value)
            if node.value == name or (len(parts) > 2 and name in parts):
                yield f"{path.relative_to(root)}:{node.lineno}: {node.value!r}"


def _is_package(node: ast.ImportFrom, path: Path, root: Path) -> bool:
    """Whether what an import takes its names from is a package, so that the names may be modules."""
    base = path.parents[node.level - 1] if node.level else root.parent
    return base.joinpath(*(node.module or "").split(".")).is_dir()


@pytest.mark.parametrize("name", NAMES)
def test_only_the_registry_and_its_own_modules_name_a_style(name: str) -> None:
    paths = [path for path in ROOT.rglob("*.py") if path != REGISTRY and not own(name, path)]
    found = [
        line
        for path in paths
        if (str(path.relative_to(ROOT)), name) not in SHARED_NAMES
        for line in mentions(name, path)
    ]
    assert found == []


def test_styles_do_not_import_one_another() -> None:
    for name in NAMES:
        others = [path for other in NAMES if other != name for path in ROOT.rglob("*.py") if own(other, path)]
        assert [line for path in others for line in mentions(name, path) if ": import of" in line] == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from ripstop.styles.graph.kit import KIT", True),
        ("import ripstop.styles.graph.reader", True),
        ("from ripstop.styles import graph", True),
        ("from .drawing import graph", False),
        ("STYLE = 'graph'", True),
        ('"""A graph."""\nword = "digraph"', False),
        ("TARGET = 'ripstop.faces.cli.graph.commands:cli'", True),
    ],
)
def test_a_mention_is_recognised(text: str, found: bool, tmp_path: Path) -> None:
    package = tmp_path / "ripstop"
    (package / "styles").mkdir(parents=True)
    path = package / "module.py"
    path.write_text(text)
    assert bool(list(mentions("graph", path, package))) is found
