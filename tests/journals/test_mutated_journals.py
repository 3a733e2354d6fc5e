"""Journals that were spoilt at random: no traceback, no hang, nothing written elsewhere."""

import os
from pathlib import Path

import pytest

from tests.harness.mutate_journals import try_all


@pytest.mark.parametrize("count", [25, pytest.param(400, marks=pytest.mark.soak)])
def test_no_spoilt_journal_makes_a_command_fall_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    for name in ("HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, os.environ.get(name, ""))  # which the tester changes; put back afterwards
    monkeypatch.chdir(tmp_path)
    (tmp_path / "work").mkdir()
    tally = try_all(count, seed=count, folder=tmp_path / "work", keep=tmp_path / "kept")
    assert tally.failures == []
    assert tally.codes.total() == 7 * count
