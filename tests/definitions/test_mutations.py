"""Spoilt files are read or refused, and nothing else ever happens."""

from pathlib import Path

import pytest

from tests.harness.mutate import spoilt, try_all


@pytest.mark.long
@pytest.mark.parametrize("seed", [11, 12, 13])
def test_a_spoilt_file_is_a_graph_or_is_refused(tmp_path: Path, seed: int) -> None:
    tally = try_all(spoilt(500, seed), tmp_path)
    assert tally.count == 500
    assert tally.refused > 100 and tally.right + tally.warned > 10, "the files are neither all wrong nor all right"
