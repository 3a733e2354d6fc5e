"""Words of a decision that is still being written: shown once it is sure that the user gets them."""

import json

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from ripstop.styles.conversation.drafts import DecisionDraft
from tests.styles.conversation.chat_story import Story, action, decision


def drafted(text: str, size: int = 3) -> str:
    draft = DecisionDraft()
    return "".join(draft.add(text[at : at + size]) for at in range(0, len(text), size))


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (decision("typing", 'She said "hi".\n再见'), 'She said "hi".\n再见'),
        (decision("processing", "One moment."), "One moment."),
        (decision("transferred", "A colleague comes."), "A colleague comes."),
        (decision("processing", "Refunding now.", action("TOOL", "refund")), ""),
        (decision("transferred", "A colleague comes.", action("FAX", "support")), ""),
        (decision("done", "Of no status."), ""),
        ({"next_status": "processing", "response": "Refunding.", "action": action("TOOL", "refund")}, ""),
        ({"response": "Refunding.", "next_status": "typing", "action": []}, ""),
        ({"next_status": "typing", "response": "Yes.", "action": None}, "Yes."),
        ({"next_status": "typing", "response": "Nobody knows what comes."}, ""),
        ({"action": {"next_status": "typing", "action": None}, "next_status": "ready", "response": "No."}, ""),
        ({"more": {"next_status": "typing", "action": None}, "next_status": "ready", "response": "No."}, ""),
        ({"reasoning": '"action": null', "action": {}, "next_status": "typing", "response": "No."}, ""),
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


def test_words_and_decisions_in_thoughts_are_not_for_the_user() -> None:
    thought = json.dumps(decision("typing", "Or so?"))
    assert drafted(f"<think>{thought}</think>" + json.dumps(decision("typing", "No.", action("TOOL", "refund")))) == ""
    assert drafted(f"<think>{thought}</think>" + json.dumps(decision("typing", "Yes."))) == "Yes."


def test_another_object_adds_nothing() -> None:
    both = json.dumps(decision("typing", "Yes.")) + json.dumps(decision("typing", "Paid.", action("TOOL", "refund")))
    assert [drafted(both, size) for size in (1, 3, 1000)] == ["Yes."] * 3


replies = st.builds(
    lambda fields, order: json.dumps({name: fields[name] for name in order if name in fields}),
    st.fixed_dictionaries(
        {
            "next_status": st.sampled_from(["processing", "typing", "transferred", "ready", "done"]),
            "action": st.sampled_from(
                [None, {}, action("TOOL", "refund", n={"action": None}), action("X", "y"), "none"]
            ),
            "response": st.text(min_size=1),
        },
        optional={"reasoning": st.text() | st.just('"action": null, "next_status": "typing"')},
    ),
    st.permutations(["next_status", "action", "response", "reasoning"]),
)


@for_all(replies, st.integers(1, 30))
def test_what_is_shown_is_said(reply: str, size: int) -> None:
    shown, said = drafted(reply, size), json.loads(reply)
    if not shown:
        return
    story = Story().ready().hear("Do it").says(reply)
    if said["response"].strip():
        assert said["response"].strip() in [one.strip() for one in story.said]
    assert shown == said["response"]
