"""Agents that lie do not make a run succeed; the short form of `make soak-lies`."""

from pathlib import Path

import pytest

from tests.harness.lie_table import LIES, Lie
from tests.harness.lies import TRUTHS, tell, truth

EVERY = 4


@pytest.mark.long
@pytest.mark.parametrize("lie", LIES[::EVERY], ids=lambda lie: lie.name)
def test_a_lie_does_not_end_as_a_success(tmp_path: Path, lie: Lie) -> None:
    told = tell(lie, tmp_path)
    assert told.is_caught, told


@pytest.mark.long
@pytest.mark.parametrize("script", TRUTHS)
def test_the_same_script_without_a_lie_succeeds(tmp_path: Path, script: str) -> None:
    assert tell(truth(script), tmp_path).outcome == "completed"


def test_the_table_has_lies_at_every_point() -> None:
    assert len(LIES) >= 25 and {lie.script for lie in LIES} == {*TRUTHS}
    assert len({(lie.script, lie.name) for lie in LIES}) == len(LIES)
