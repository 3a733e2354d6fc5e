"""The words of a reply that is still coming."""

import json
import re
from itertools import pairwise

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from ripstop.styles.partial_reply import UnfinishedReply, words
from ripstop.styles.reply import AT_BEGINNING, decided, without_thinking

contents = st.text(max_size=60) | st.text(alphabet='{}[]"\\`<>,:\n日😀\u2028 a', max_size=60)
envelopes = st.builds(
    lambda content, decisions, escaped, first: json.dumps(
        {"content": content, "decisions": decisions} if first else {"decisions": decisions, "content": content},
        ensure_ascii=escaped,
    ),
    contents,
    st.dictionaries(st.text(max_size=8), st.text(max_size=8) | st.lists(st.booleans(), max_size=3), max_size=3),
    st.booleans(),
    st.booleans(),
)
prose = st.text(alphabet="abc d.\n", max_size=30)


@for_all(envelopes)
def test_shows_the_content_of_an_envelope_and_nothing_else(envelope: str) -> None:
    assert words(envelope) == decided(envelope)[0]


@for_all(prose, envelopes, st.booleans())
def test_shows_prose_before_the_content(before: str, envelope: str, fenced: bool) -> None:
    text = f"{before}\n```json\n{envelope}\n```\n" if fenced else f"{before}\n{envelope}"
    assert words(text).strip() == f"{before}\n{decided(envelope)[0]}".strip()


@for_all(prose)
def test_shows_prose_alone_as_the_reply_without_its_object(before: str) -> None:
    text = f'{before}\n{{"decisions": {{"done": true}}}}'
    assert words(text).strip() == decided(text)[0]


@for_all(
    st.text(alphabet='{}"\\`<think>/ucontent:,\n d8', max_size=80) | envelopes, st.lists(st.integers(1, 7), max_size=60)
)
def test_pieces_change_nothing_and_nothing_is_taken_back(text: str, cuts: list[int]) -> None:
    reply, shown, rest = UnfinishedReply(), "", text
    for cut in cuts:
        shown += reply.add(rest[:cut])
        rest = rest[cut:]
        assert words(text).startswith(shown)
    assert shown + reply.add(rest) == words(text)


@pytest.mark.parametrize(
    ("so_far", "shown"),
    [
        ("", ""),
        ("Hel", "Hel"),
        ('{"con', ""),
        ('{"content": "Hel', "Hel"),
        ('{"content": "Hel\\', "Hel"),
        ('{"content": "Hel\\u00', "Hel"),
        ('{"content": "Hel\\ud83d', "Hel"),
        ('{"content": "Hel\\ud83d\\ude00', "Hel😀"),
        ('{"content": "a\\ud83db', "a\ufffdb"),
        ('{"content": "a\\nb", "decisions": {"content": "no"}}', "a\nb"),
        ('{"decisions": {"a": ["}", {"b": 1}]}, "content": "x"}', "x"),
        ('{"a": {"content": "no"}, "b": 1}', ""),
        ('{"content": ["no"]}', ""),
        ('{"content": "x", "content": "y"}', "xy"),
        ('{"cont\\u0065nt": "x"}', "x"),
        ('{"content": "a\nb"}', "a\nb"),
        ('{"content": "\\ud800"}', "\ufffd"),
        ("if (a) { return }", "if (a) { return }"),
        ("a < b and `c`.", "a < b and `c`."),
        ("<think>hm {", ""),
        ("<think>hm</think>Yes", "Yes"),
        ("```python\nprint()\n```\n.", "```python\nprint()\n```\n."),
        ('```json\n{"content": "x"}\n``` ok', "x ok"),
    ],
)
def test_holds_back_only_what_cannot_be_told_yet(so_far: str, shown: str) -> None:
    assert words(so_far) == shown


TAGS = (
    *AT_BEGINNING,
    ("<think>", "</think>"),
    ("<Thinking>", "</thinking>"),
    ("<think-more>", "</think-more>"),
    ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    ("<|start|>assistant<|channel|>analysis <|constrain|>json<|message|>", "<|end|><|channel|>final<|message|>"),
)
THOUGHTS = [
    "hm",
    'I say {"content": "no", "decisions": {}}, or not.',
    "a < b, [x] and ◁ or </thin or `code`\n\n```json\n{",
    "",
]
ANSWERS = ["Yes.", '{"content": "Yes.", "decisions": {}}', '```json\n{"content": "Yes.", "decisions": {}}\n```']


@pytest.mark.parametrize("tags", TAGS)
@pytest.mark.parametrize("before", ["", "\n  "])
def test_no_thought_is_shown_however_its_model_marks_it(tags: tuple[str, str], before: str) -> None:
    for thought in THOUGHTS:
        for answer in ANSWERS:
            text = f"{before}{tags[0]}{thought}{tags[1]}\n{answer}"
            for size in (1, 2, 7, len(text)):
                assert in_pieces(text, size).strip() == "Yes.", (text, size)
                inside = json.dumps({"content": f"{before}{tags[0]}{thought}{tags[1]}Yes.", "decisions": {}})
                assert in_pieces(inside, size).strip() == decided(inside)[0].strip() == "Yes.", (inside, size)


def in_pieces(text: str, size: int) -> str:
    reply = UnfinishedReply()
    return "".join(reply.add(text[at : at + size]) for at in range(0, len(text), size))


def test_a_thought_that_is_still_coming_is_not_shown() -> None:
    for opening, closing in TAGS:
        text = f"{opening}secret{closing.partition('final')[0]}"
        assert [words(text[:end]) for end in range(len(text))] == [""] * len(text)


@pytest.mark.parametrize(
    "text", ["Use <reasoning>x</reasoning>.", "[TH] or [THINK]", "◁", "<", "a <|channel|>b", "<thoughtful>", "<re"]
)
def test_what_only_looks_like_a_thought_is_shown(text: str) -> None:
    envelope = json.dumps({"content": text, "decisions": {}})
    for size in (1, 3, 1000):
        assert in_pieces(envelope, size) == decided(envelope)[0] == text


marks = st.sampled_from([mark for tags in TAGS for mark in tags] + ["<", "[", "◁", "<|", " ", "\n", "x", "words", '"'])


@for_all(st.lists(marks, max_size=8).map("".join), st.integers(1, 9))
def test_words_come_in_the_order_of_the_reply_without_thoughts(text: str, size: int) -> None:
    """Of a thought whose beginning was not sent, the words are shown: nobody can know it before its end."""
    envelope = json.dumps({"content": text, "decisions": {}})
    shown, said = in_pieces(envelope, size), without_thinking(text)
    if not re.search(r"</think", text, re.IGNORECASE):
        assert said.strip().startswith(shown.strip())


def test_a_long_reply_in_small_pieces_takes_linear_work() -> None:
    reply = UnfinishedReply()
    text = json.dumps({"content": "word \\ " * 20_000, "decisions": {}})
    assert sum(len(reply.add(text[i : i + 3])) for i in range(0, len(text), 3)) == 140_000
    assert len(reply._held) < 200


runs = st.builds(
    lambda what, times: what * times,
    st.sampled_from(
        ["`", "~", " ", "\n", "{", "<", "<t", "\\", '"', "}", "<think>", "```json", "```json ", "</think>"]
    ),
    st.sampled_from([1, 2, 3, 199, 200, 201, 300, 3000]),
)


@for_all(st.lists(runs | envelopes | prose, max_size=8), st.lists(st.integers(0, 4000), max_size=6))
def test_any_text_can_be_cut_into_any_pieces(parts: list[str], cuts: list[int]) -> None:
    text = "".join(parts)
    for pieces in (parts, [text[a:b] for a, b in pairwise([0, *sorted(cuts), len(text)])]):
        reply = UnfinishedReply()
        shown = [reply.add(piece) for piece in pieces]
        assert sum(map(len, shown)) <= len(text)


@pytest.mark.parametrize("fence", ["hi\n```json" + 300 * " ", "`" * 300, "hi " + "`" * 3000, "```json" + "\n" * 200])
def test_a_fence_too_long_to_hold_back_is_prose(fence: str) -> None:
    reply = UnfinishedReply()
    shown = reply.add(fence)
    assert shown == fence
    assert reply.add('\n{"content": "x"}').strip() == "x"


def test_a_long_run_of_backticks_is_read_once() -> None:
    assert words("`" * 2_000_000) == "`" * 2_000_000  # takes hours if each backtick is matched with all that follow
