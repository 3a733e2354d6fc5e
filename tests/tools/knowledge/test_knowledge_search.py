"""Questions in English and Chinese find the passage that answers them, and no question is an error."""

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripstop.tools.knowledge.index import MOST_PASSAGES, KnowledgeBases, terms_of

FILES = {
    "returns.md": """# Returns

Unworn shoes can be returned within 30 days. The parcel label is in the box.

## Refunds

Money is paid back to the original card within five working days.
""",
    "shipping.md": """# Shipping

Orders leave our warehouse in Berlin on the same day.

## Abroad

We deliver to Austria and Switzerland in three days. Customs duties are paid by the buyer.

## Costs

Free above 50 euro, otherwise 4.90. The Rückgaberecht is not affected.
""",
    "products/tv.txt": "A TV is picked up at home if it is broken. Call us first.",
    "售后.md": """# 售后服务

## 退货

收到商品七天内可以无理由退货，寄回的运费由买家承担。

## 发票

下单时可以申请电子发票，发货后发送到您的邮箱。

## 会员积分

积分在每年年底清零，茶叶和酒类不参加积分活动。
""",
}
ODD = ["", '"', "title:x", "a OR", "NEAR(a b)", "*", "a*", "^a", "-a", "{title}:b", "' --", "\0", "a" * 9999]
WORDS = ["shoe", "Refunds", "the", "TV", "é", "50", "退货", "积分", "茶", "무료", "ありがとう", "ไทย", "x1", "何", "a"]
ASKED = [
    ("How do I get my money back?", "returns.md#Refunds"),
    ("Could you please tell me when I will receive a refund?", "returns.md#Refunds"),
    ("Can I return a shoe that I have not worn?", "returns.md#Returns"),
    ("do you ship to switzerland", "shipping.md#Abroad"),
    ("What does shipping cost?", "shipping.md#Costs"),
    ("Which duty is there?", "shipping.md#Abroad"),
    ("my tv is broken!!", "products/tv.txt"),
    ("Rückgabe", "shipping.md#Costs"),
    ("RUCKGABERECHT", "shipping.md#Costs"),
    ("怎么退货？", "售后.md#退货"),
    ("我想问一下退货的运费是谁付", "售后.md#退货"),
    ("退货", "售后.md#退货"),
    ("请问可以开发票吗", "售后.md#发票"),
    ("邮箱", "售后.md#发票"),
    ("积分什么时候过期", "售后.md#会员积分"),
    ("茶", "售后.md#会员积分"),
    ("ＴＶ", "products/tv.txt"),
]


@pytest.fixture(scope="module")
def shop() -> Iterator[tuple[KnowledgeBases, Path]]:
    with tempfile.TemporaryDirectory() as above:
        folder = Path(above) / "knowledge"
        for path, text in FILES.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
        yield KnowledgeBases(Path(above) / "cache"), folder


@pytest.mark.parametrize(("question", "source"), ASKED)
@pytest.mark.req("S2-12")
def test_a_question_finds_the_passage_that_answers_it(
    shop: tuple[KnowledgeBases, Path], question: str, source: str
) -> None:
    bases, folder = shop
    found = bases.search(folder, question, 3).passages
    assert found and found[0].source == source, [passage.source for passage in found]


@given(
    st.text(max_size=200)
    | st.text(alphabet="\"'()*^-+:{}\x00 \ud800 NEAR OR AND NOT title退货ab", max_size=40)
    | st.sampled_from(
        ["", '"', "title:x", "a OR", "NEAR(a b)", "*", "a*", "^a", "-a", "{title}:b", "' --", "\0", "a" * 9999]
    )
)
def test_no_text_is_an_error_as_a_question(shop: tuple[KnowledgeBases, Path], question: str) -> None:
    bases, folder = shop
    assert len(bases.search(folder, question, 3).passages) <= 3


def test_the_syntax_of_queries_is_only_words_to_it(shop: tuple[KnowledgeBases, Path]) -> None:
    bases, folder = shop
    plain = bases.search(folder, "shoes not cards", 5).passages
    assert plain == bases.search(folder, '("shoes" NOT -cards*)', 5).passages
    assert any("shoes" in passage.text for passage in plain)


@settings(max_examples=20)
@given(
    st.lists(
        st.lists(
            st.sampled_from(
                [
                    "shoe",
                    "Refunds",
                    "the",
                    "TV",
                    "é",
                    "50",
                    "退货",
                    "积分",
                    "茶",
                    "무료",
                    "ありがとう",
                    "ไทย",
                    "x1",
                    "何",
                    "a",
                ]
            ),
            min_size=1,
            max_size=12,
        ),
        min_size=1,
        max_size=5,
    )
)
def test_every_passage_is_found_by_each_of_its_words(paragraphs: list[list[str]]) -> None:
    with tempfile.TemporaryDirectory() as above:
        folder = Path(above) / "k"
        folder.mkdir()
        for number, words in enumerate(paragraphs):
            (folder / f"{number}.md").write_text(" ".join(words), encoding="utf-8")
        bases = KnowledgeBases(Path(above) / "cache")
        for number, words in enumerate(paragraphs):
            for word in [*words, " ".join(words)]:
                found = bases.search(folder, word, MOST_PASSAGES).passages
                assert f"{number}.md" in [passage.source for passage in found], word


@settings(max_examples=25)
@given(st.text(alphabet="退货政策运费会员积分发票邮箱", min_size=2, max_size=20))
def test_every_two_neighbouring_characters_are_found(text: str) -> None:
    with tempfile.TemporaryDirectory() as above:
        folder = Path(above) / "k"
        folder.mkdir()
        (folder / "a.txt").write_text(f"前{text}后", encoding="utf-8")
        bases = KnowledgeBases(Path(above) / "cache")
        for at in range(len(text) - 1):
            assert bases.search(folder, text[at : at + 2], 1).passages, text[at : at + 2]


def test_a_long_question_is_searched_for_by_its_beginning_and_its_end(shop: tuple[KnowledgeBases, Path]) -> None:
    bases, folder = shop
    story = "blah " * 5_000
    assert bases.search(folder, f"{story} Switzerland?", 1).passages[0].source == "shipping.md#Abroad"
    assert bases.search(folder, f"Switzerland? {story}", 1).passages[0].source == "shipping.md#Abroad"


@given(st.text())
def test_a_query_has_only_quoted_words(question: str) -> None:
    terms = terms_of(question)
    if terms is not None:
        for query in filter(None, (terms.words, terms.pieces)):
            assert re.fullmatch(r'"[^"\s]+"\*?( OR "[^"\s]+"\*?)*', query), query
