"""The result of a run: what it is written as, and what is read again."""

from typing import Any

import pytest

from ripstop.kernel.effects import RunFinished
from ripstop.kernel.result import Result, handed_on, read_result


@pytest.mark.parametrize("data", [{"content": "mine"}, {"files": ["/etc/passwd"]}, [1, 2], "words", 0])
def test_data_takes_the_place_neither_of_the_text_nor_of_the_files(data: Any) -> None:
    written = Result("The text.", data, ("a.md",)).as_json()
    assert written == {"content": "The text.", "data": data, "files": ["a.md"]}
    assert read_result(Result("The text.", data).as_json()).files == ()


def test_the_keys_of_data_are_beside_the_text() -> None:
    result = Result("The text.", {"decisions": {"done": True}})
    assert result.as_json() == {"content": "The text.", "decisions": {"done": True}}
    assert read_result(result.as_json()) == result


@pytest.mark.parametrize(
    ("outcome", "text", "expected"),
    [("completed", "", ""), ("completed", "Salt.", "Salt."), ("failed", "Salt.", "Salt."), ("failed", "", "END: done")],
)
def test_why_a_child_ended_is_handed_on_only_if_it_did_not_complete(outcome: Any, text: str, expected: str) -> None:
    assert handed_on(text, RunFinished(run="r", outcome=outcome, because="END: done")) == expected
