"""Which names people and agents can have."""

import unicodedata

import pytest
from hypothesis import given, strategies

from ripstop.kernel.effects import AskPerson
from ripstop.kernel.errors import UsageError
from ripstop.kernel.questions import MAX_NAME, checked_name, name_problem, read_answer


@pytest.mark.parametrize(
    "name", ["", "ann", "李四", "Dr. O'Neil (QA)", "نرم\u200cافزار", "👩\u200d💻", "office-k3f9x.3"]
)
def test_ordinary_names_of_any_language_can_be_used(name: str) -> None:
    assert checked_name(name) == name


@pytest.mark.parametrize(
    "name", ["a\nb", "a\tb", "\x1b[31mann", "ann\x00", "a\u202eb", "a\u2028b", "a\udc80", "\ufeffann"]
)
def test_a_name_with_a_character_that_is_not_shown_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be a name: U\\+"):
        checked_name(name)


def test_a_name_has_a_longest_length() -> None:
    assert not name_problem("n" * MAX_NAME)
    assert "too long for a name: 5,000 characters, at most 200" in name_problem("n" * 5000)


def test_an_answer_is_not_taken_from_such_a_name() -> None:
    with pytest.raises(UsageError, match="cannot be a name"):
        read_answer(AskPerson(question="Well?"), "yes", by="ann\x1b]0;x\x07")


@given(strategies.text(max_size=250))
def test_a_name_that_is_taken_prints_on_one_line(name: str) -> None:
    if not name_problem(name):
        assert len(name) <= MAX_NAME and len(name.splitlines()) <= 1
        assert not any(unicodedata.category(char) == "Cc" for char in name)
    else:
        assert "\n" not in name_problem(name) and "\x1b" not in name_problem(name)
