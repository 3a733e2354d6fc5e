"""What styles say is known in Chinese, and nothing else is changed."""

import pytest

from ripstop.faces.web.words.style_words import in_language
from ripstop.kernel.doubts import DOUBT_CHOICES
from ripstop.styles.conversation import passes as desk
from ripstop.styles.handoff.transitions import TRANSITIONS
from ripstop.styles.pipeline import flow

LABELS = [
    *DOUBT_CHOICES.values(),
    *desk.CHOICES.values(),
    *flow.CHOICES.values(),
    *(field.label for field in flow.FIELDS.values()),
    *(action.label for action in TRANSITIONS.values()),
    *(action.confirm for action in TRANSITIONS.values() if action.confirm),
    *(field.label for action in TRANSITIONS.values() for field in action.fields.values()),
]


@pytest.mark.parametrize("label", sorted(set(LABELS)))
def test_every_label_of_a_style_is_known_in_chinese(label: str) -> None:
    assert in_language("zh", label) != label
    assert in_language("en", label) == label


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Review the draft of the stage 'Requirements'.", "请审阅“Requirements”阶段的草稿。"),
        ("turn 5 of at most 40", "第 5 轮，最多 40 轮"),
        (
            "Answer the user of session 's1', or give the conversation back.",
            "请回答会话“s1”的用户，或将对话交还机器人。",
        ),
        ("Decisions of {0}", "{0} 的决定"),
        ("an agent's own words", "an agent's own words"),
    ],
)
def test_sentences_of_styles_are_known_with_what_they_name(said: str, told: str) -> None:
    assert in_language("zh", said) == told
