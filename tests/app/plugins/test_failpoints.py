"""Every fail-point is listed where it belongs: a style's in its plug-in, all others by the engine."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ripstop
from ripstop.app.plugin import Plugin
from ripstop.app.plugins import BUILT_IN
from ripstop.engine.failpoints import FAILPOINTS

ROOT = Path(ripstop.__file__).parent
ROOMS = [ROOT / "styles" / plugin.name for plugin in BUILT_IN]


def passed_in(paths: list[Path]) -> set[str]:
    """The fail-points that the code of these files gets to."""
    return {name for path in paths for name in re.findall(r'failpoint\("([\w.]+)"\)', path.read_text("utf-8"))}


@pytest.mark.parametrize("plugin", BUILT_IN, ids=lambda plugin: plugin.name)
def test_a_style_lists_its_own(plugin: Plugin) -> None:
    assert passed_in(sorted((ROOT / "styles" / plugin.name).rglob("*.py"))) == set(plugin.failpoints)


def test_the_engine_lists_all_others() -> None:
    others = [path for path in ROOT.rglob("*.py") if not any(path.is_relative_to(room) for room in ROOMS)]
    assert passed_in(others) == set(FAILPOINTS)


@pytest.mark.parametrize(
    ("name", "is_known"),
    [("board.after_write", True), ("sqlite.after_commit", True), ("board.nowhere", False), ("nowhere", False)],
)
def test_a_process_with_styles_refuses_a_name_that_none_has(name: str, is_known: bool) -> None:
    command = [sys.executable, "-c", "from ripstop.app.plugins import installed; installed()"]
    ended = subprocess.run(command, env={**os.environ, "RIPSTOP_FAILPOINT": name}, capture_output=True, text=True)
    assert (ended.returncode == 0) is is_known
    assert (f"RIPSTOP_FAILPOINT names {name!r}; known are engine.before_append" in ended.stderr) is not is_known
