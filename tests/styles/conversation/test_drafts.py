"""Words of a decision that is still being written: shown once it is sure that the user gets them."""

import json

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from ripstop.styles.conversation.drafts import DecisionDraft
from tests.styles.conversation.chat_story import action, decision


def drafted(text: str, size: int = 3) -> str:
    draft = DecisionDraft()
    return "".join(draft.add(text[at : at + size]) for at in range(0, len(text), size))


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (decision("typing", 'She said "hi".\n再见'), 'She said "hi".\n再见'),
        (decision("processing", "One moment.", action("TOOL", "refund")), "One moment."),
        (decision("transferred", "A colleague comes.", action("SYSTEM", "handoff")), "A colleague comes."),
        (decision("ready", "Not for you."), ""),
        (decision("typing", "It is paid.", action("TOOL", "refund")), ""),
        ({"response": "First.", "next_status": "typing", "action": None}, "First."),
        ({"response": "First.", "action": None, "next_status": "ready"}, ""),
        ({"next_status": "typing", "response": "Paid.", "action": action("TOOL", "refund")}, ""),
        ({"next_status": "typing", "action": None, "response": '{"next_status": "x", "response": "y"}'}, None),
    ],
)
def test_words_are_shown_only_if_the_decision_allows_them(said: dict[str, object], shown: str | None) -> None:
    expected = said["response"] if shown is None else shown
    for size in (1, 3, 1000):
        assert drafted(json.dumps(said, ensure_ascii=False), size) == expected


def test_prose_before_a_decision_is_not_for_the_user() -> None:
    assert drafted("He wants money. " + json.dumps(decision("typing", "Yes."))) == "Yes."


@for_all(st.text(), st.integers(1, 20))
def test_an_answer_is_shown_whole_however_it_comes(words: str, size: int) -> None:
    assert drafted(json.dumps(decision("typing", words), ensure_ascii=False), size) == words
