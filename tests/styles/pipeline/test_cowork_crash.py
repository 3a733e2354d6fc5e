"""A process that is killed anywhere while it works on a project leaves files that the next one completes."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ripstop.styles import pipeline
from ripstop.styles.pipeline.plugin import PLUGIN

SOURCES = Path(pipeline.__file__).parent.glob("*.py")
REACHED = {name for path in SOURCES for name in re.findall(r'failpoint\("([\w.]+)"\)', path.read_text())}


def kill(root: Path, every: int) -> dict[str, int]:
    command = [sys.executable, "-m", "tests.styles.pipeline.cowork_kills", str(root), str(every)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    kills: dict[str, int] = json.loads(done.stdout)
    return kills


@pytest.mark.req("S3-25", "S3-64")
def test_a_killed_process_leaves_files_that_the_next_one_completes(tmp_path: Path) -> None:
    assert sum(kill(tmp_path, 83).values()) >= 2


@pytest.mark.soak
def test_kills_at_every_fail_point_change_neither_files_nor_answers(tmp_path: Path) -> None:
    assert kill(tmp_path, 1).keys() == set(PLUGIN.failpoints)


@pytest.mark.long
def test_kills_here_and_there_change_neither_files_nor_answers(tmp_path: Path) -> None:
    assert sum(kill(tmp_path, 7).values()) >= 20


def test_every_fail_point_of_a_project_can_be_named() -> None:
    assert set(PLUGIN.failpoints) == REACHED
