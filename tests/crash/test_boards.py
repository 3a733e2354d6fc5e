"""A short version of `make soak-boards`: runs on a board are killed, and the final board is that of an unharmed run."""

from pathlib import Path

import pytest

from ripstop.styles.blackboard.plugin import PLUGIN
from tests.harness.board_crash import BoardWork
from tests.harness.killed_runs import AT_RANDOM, crash, table

pytestmark = pytest.mark.long


def test_a_run_that_is_killed_anywhere_leaves_the_same_board(tmp_path: Path) -> None:
    """The short form of `make soak-boards`, which kills at all of them."""
    points = PLUGIN.failpoints[::3]
    tally = crash(BoardWork(), 2, 5, tmp_path, points, say=lambda _: None)
    assert not tally.trouble, table(tally)
    assert tally.kills[AT_RANDOM] >= 2 and {*points} <= {*tally.kills}
