"""A short version of `make crash`: a working process is killed at every fail-point and at random."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

from ripstop.engine.failpoints import FAILPOINTS
from tests.harness import crash


@pytest.mark.long
def test_loses_nothing_and_repeats_nothing_silently_wherever_it_is_killed(tmp_path: Path) -> None:
    report = crash.crash(kills=len(FAILPOINTS) + 7, seed=1, seconds=None, folder=tmp_path, say=lambda text: None)
    assert not crash.failed(report), crash.table(report)
    assert report["kills"] >= len(FAILPOINTS) + 7
    assert all(report["failpoints"][name]["kills"] for name in FAILPOINTS)
    assert report["chains"]
    assert report["acknowledged"]


def test_a_fail_point_that_is_never_reached_is_a_failure(tmp_path: Path) -> None:
    tally = crash.Tally(1000, None, random.Random(1))
    report = tally.report()
    assert report["unreached"] == list(FAILPOINTS)
    assert crash.failed(report)
    assert f"never reached: {FAILPOINTS[0]}" in crash.table(report)


def test_refuses_a_fail_point_that_does_not_exist() -> None:
    command = [sys.executable, "-c", "import ripstop.engine.failpoints"]
    ended = subprocess.run(command, env={"RIPSTOP_FAILPOINT": "sqlite.nowhere"}, capture_output=True, text=True)
    assert ended.returncode == 1
    assert "'sqlite.nowhere'; known are engine.before_append" in ended.stderr
