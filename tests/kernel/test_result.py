"""The result of a run: what a parent makes of it."""

from typing import Any

import pytest

from ripstop.kernel.effects import RunFinished
from ripstop.kernel.result import handed_on


@pytest.mark.parametrize(
    ("outcome", "text", "expected"),
    [("completed", "", ""), ("completed", "Salt.", "Salt."), ("failed", "Salt.", "Salt."), ("failed", "", "END: done")],
)
def test_why_a_child_ended_is_handed_on_only_if_it_did_not_complete(outcome: Any, text: str, expected: str) -> None:
    assert handed_on(text, RunFinished(run="r", outcome=outcome, because="END: done")) == expected
