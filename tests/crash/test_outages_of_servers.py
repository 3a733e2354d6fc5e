"""Outages of a model server under runs that pay, with killed workers; `make soak-outages` does it with 50 runs."""

import asyncio
from pathlib import Path

import pytest

from tests.harness.outage_account import Calls, Counted, differences
from tests.harness.outages import soak


@pytest.mark.long
def test_outages_fail_no_run_and_every_refusal_is_on_record_once(tmp_path: Path) -> None:
    told = asyncio.run(soak(tmp_path.resolve(), runs=5, away=4.0, limited=3.0, seed=1))
    assert "handoff" in told


@pytest.mark.parametrize(
    ("on_record", "counted", "is_right"),
    [
        (Calls(answered=2, refused=3), Counted(answered=2, refused=3), True),
        (Calls(answered=2, refused=3, uncounted=4), Counted(answered=2, refused=3), True),
        (Calls(answered=2, refused=3, gaps=1), Counted(answered=2, refused=4), True),
        (Calls(answered=2, refused=3), Counted(answered=2, refused=4), False),
        (Calls(answered=2, refused=4, gaps=1), Counted(answered=2, refused=3), False),
        (Calls(answered=2, refused=3, gaps=1), Counted(answered=3, refused=4), False),
        (Calls(answered=2, refused=3, twice=1, gaps=1), Counted(answered=2, refused=3), False),
    ],
)
def test_the_harness_notices_refusals_that_are_missing_or_counted_twice(
    on_record: Calls, counted: Counted, is_right: bool
) -> None:
    assert (differences(on_record, counted) == []) is is_right
