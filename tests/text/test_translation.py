"""Sentences that are recorded in English are found by their words, whatever is filled in."""

import pytest

from ripstop.text.translation import MAX_SENTENCE, Phrase, Translation, joined, phrase

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


SEVERAL = Translation(
    {
        "It has spent {n} of {what:t}.": "{what}已用 {n}。",
        "calls": "调用次数",
        "Continue?": "要继续吗？",
        "reason|to {state} always": "到 {state}，无条件",
        "why: {reason:reason}": "原因：{reason}",
        "event|done": "完成",
    },
    {"{who} said{after}": "{who} 说{after}", ": {text}": "：{text}", "a person": "有人"},
)


def test_of_several_sentences_all_are_translated_or_none() -> None:
    assert SEVERAL.of("It has spent 2.5 of calls. Continue?") == "调用次数已用 2.5。要继续吗？"
    assert SEVERAL.of("It has spent 2.5 of calls. Go on?") == "It has spent 2.5 of calls. Go on?"


def test_a_sentence_of_a_kind_is_only_found_as_one() -> None:
    assert SEVERAL.of("to bed always") == "to bed always"
    assert SEVERAL.of("to bed always", "reason") == "到 bed，无条件"
    assert SEVERAL.of("why: to bed always") == "原因：到 bed，无条件"
    assert SEVERAL.of("Continue?", "reason") == "要继续吗？", "what is said elsewhere can also be a reason"
    assert SEVERAL.tell(Phrase("done", kind="event")) == "完成" and SEVERAL.tell(Phrase("done")) == "done"


def test_a_phrase_is_told_with_its_parts_and_is_english_by_itself() -> None:
    told = phrase("{who} said{after}", who=Phrase("a person"), after=phrase(": {text}", text="{who} a person"))
    assert str(told) == "a person said: {who} a person"
    assert SEVERAL.tell(told) == "有人 说：{who} a person"
    assert SEVERAL.of("Ann said: no") == "Ann said: no", "a phrase is not looked for in texts"
    assert str(joined([Phrase("a"), Phrase("b"), Phrase("c")])) == "a, b, c" and joined([]) == ""


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
