"""Texts are cut into passages by headings and paragraphs; no words are lost, and none is too long."""

from hypothesis import given, settings
from hypothesis import strategies as st

from ripstop.tools.knowledge.index import words_of
from ripstop.tools.knowledge.passages import MAX_PASSAGE, Passage, passages_of

HARD = ["# One", "## Two two", "Setext", "===", "---", "```", "~~~ py", "", "", "- item", "| a | b |", "#", "> x"]
LINES = st.lists(
    st.sampled_from(HARD) | st.text(alphabet="ab 退货。.#`\t\r", max_size=60),
    max_size=30,
)


def test_a_passage_has_its_heading_and_those_above_it() -> None:
    text = "Before.\n\n# Shop\n\nOpen daily.\n\n## Returns ##\n\nWithin 30 days.\n\n# Other\n\nText."
    assert passages_of(text) == [
        Passage("Before."),
        Passage("Open daily.", "Shop", "Shop"),
        Passage("Within 30 days.", "Returns", "Shop / Returns"),
        Passage("Text.", "Other", "Other"),
    ]


def test_underlined_headings_are_headings() -> None:
    found = passages_of("Shop\n====\n\nOpen.\n\nReturns\n-------\n30 days.\n\n- item\n---\n")
    assert [(passage.heading, passage.text) for passage in found] == [
        ("Shop", "Open."),
        ("Returns", "30 days.\n\n- item\n---"),
    ]


def test_a_heading_in_fenced_code_is_text() -> None:
    (passage,) = passages_of("# Setup\n\n```sh\n# not a heading\nmake\n```\n\nDone.")
    assert passage.heading == "Setup" and "# not a heading" in passage.text and "Done." in passage.text


def test_front_matter_is_text_and_not_a_heading() -> None:
    found = passages_of("---\ntitle: Returns\n---\n# Shop\n\nOpen.")
    assert [(passage.heading, passage.text) for passage in found] == [("", "title: Returns"), ("Shop", "Open.")]


def test_a_section_that_is_only_a_heading_is_a_passage_unless_deeper_ones_follow() -> None:
    found = passages_of("# FAQ\n\n## We are closed on Sunday\n\n## Parking\n\nBehind the house.")
    assert [passage.text for passage in found] == ["We are closed on Sunday", "Behind the house."]


def test_plain_text_has_no_headings() -> None:
    assert passages_of("# Shop\n\nOpen.", is_markdown=False) == [Passage("# Shop\n\nOpen.")]


def test_long_paragraphs_are_cut_where_sentences_end() -> None:
    english = passages_of("This is a sentence about shoes. " * 100)
    assert len(english) > 2 and all(passage.text.endswith("shoes.") for passage in english)
    chinese = passages_of("收到商品七天内可以无理由退货。" * 200)
    assert len(chinese) > 2 and all(passage.text.endswith("。") for passage in chinese)


@given(LINES, st.booleans())
def test_no_word_is_lost_and_no_passage_is_too_long(lines: list[str], is_markdown: bool) -> None:
    text = "\n".join(lines)
    found = passages_of(text, is_markdown)
    kept = set(words_of(" ".join(f"{passage.title} {passage.text}" for passage in found)).split())
    assert {word for line in lines for word in words_of(line.replace("\r", "\n")).split()} - kept - {"py"} == set()
    assert all(0 < len(passage.text) <= MAX_PASSAGE for passage in found)


@settings(max_examples=25)
@given(st.text(alphabet="ab 。. \n", min_size=MAX_PASSAGE, max_size=3 * MAX_PASSAGE))
def test_cutting_long_texts_keeps_every_letter(text: str) -> None:
    found = passages_of(text)
    assert "".join("".join(passage.text.split()) for passage in found) == "".join(text.split())
    assert all(0 < len(passage.text) <= MAX_PASSAGE for passage in found)
