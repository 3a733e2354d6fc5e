"""What the command line says of a refused call."""

from typing import Any

import pytest

from ripstop.faces.cli.words import outage_words

SINCE, NEXT = "2026-11-18T20:50:00.000000Z", "2026-11-18T20:52:37.000000Z"


@pytest.mark.parametrize(
    ("next_attempt", "has_workers", "words"),
    [
        (NEXT, True, "; a worker tries again from "),
        (NEXT, False, "; no worker is running: `ripstop work` tries again from "),
        ("", True, "; it waits for you, and is not tried again by itself"),
        ("", False, "; it waits for you, and is not tried again by itself"),
    ],
)
def test_a_refused_call_says_for_whom_it_waits(next_attempt: str, has_workers: bool, words: str) -> None:
    outage: dict[str, Any] = {"refusals": 2, "since": SINCE, "next_attempt": next_attempt, "has_workers": has_workers}
    said = outage_words(outage)
    assert said.startswith("refused 2 times since ") and words in said
