"""Sentences that are recorded in English are found by their words, whatever is filled in."""

import pytest

from ripstop.text.translation import MAX_SENTENCE, Translation

TEXTS = {
    "Assign": "分派",
    "Decisions of {agent}": "{agent} 的决定",
    "{n:d} of {all:d} tasks, {agent}": "{agent}：{n}/{all}",
}


def test_a_sentence_is_translated_with_what_it_names() -> None:
    translation = Translation(TEXTS)
    assert translation.of("Assign") == "分派"
    assert translation.of("Decisions of ada\nbyron") == "ada\nbyron 的决定"
    assert translation.of("3 of 4 tasks, bob") == "bob：3/4"


def test_braces_in_what_is_filled_in_are_only_text() -> None:
    assert Translation(TEXTS).of("Decisions of {agent}{n}") == "{agent}{n} 的决定"


@pytest.mark.parametrize(
    "text",
    ["assign", "Decisions of ", "x of 4 tasks, bob", "Say: Decisions of ada", f"Decisions of {'a' * MAX_SENTENCE}", ""],
)
def test_any_other_text_stays_as_it_is(text: str) -> None:
    assert Translation(TEXTS).of(text) == text


@pytest.mark.parametrize(
    ("key", "text", "reason"),
    [
        ("Hello {a}", "{b}", "has b, which the key has not"),
        ("{a} and {a}", "{a}", "has two places of the same name"),
    ],
)
def test_a_translation_that_cannot_be_filled_in_is_refused(key: str, text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Translation({key: text})
