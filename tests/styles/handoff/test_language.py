"""Which language a document is in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripstop.styles.handoff.texts import language_of


@pytest.mark.req("S0-19")
@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("What does 谢谢 mean?", "en"),
        ("Translate 你好 into English", "en"),
        ("Fix the 登录 page", "en"),
        ('Translate "请计算二加二等于几" into English', "en"),
        ("Ask 李四 to review it", "en"),
        ("请实现一个简单的add(a, b)函数", "zh"),
        ("请用Python写一个REST接口", "zh"),
        ("测试add", "zh"),
        ("请计算：2+2等于几？", "zh"),
        ("把 `def add(a, b): return a + b` 测一下", "zh"),
        ("2 + 2 = ?", "en"),
        ("", "en"),
    ],
)
def test_the_language_is_the_one_that_most_of_the_text_is_in(text: str, language: str) -> None:
    assert language_of(text) == language


@given(st.lists(st.text()))
def test_every_text_has_a_language(texts: list[str]) -> None:
    assert language_of(*texts) in ("en", "zh")
