"""A short version of `make soak-projects`: a delivery is killed, and its files are those of an unharmed one."""

from pathlib import Path

import pytest

from ripstop.styles.pipeline.plugin import PLUGIN
from tests.harness.killed_runs import AT_RANDOM, crash, table
from tests.harness.project_crash import ProjectWork

pytestmark = pytest.mark.long


@pytest.mark.req("S3-25", "S3-64")
def test_a_delivery_that_is_killed_anywhere_leaves_the_same_files(tmp_path: Path) -> None:
    points = PLUGIN.failpoints[:1]
    tally = crash(ProjectWork(), 1, 5, tmp_path, points, say=lambda _: None)
    assert not tally.trouble, table(tally)
    assert tally.kills[AT_RANDOM] >= 1 and {*points} <= {*tally.kills}
