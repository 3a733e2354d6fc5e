"""Reading JSON out of what agents really say."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripstop.styles.reply import NoReply, decided, fenced, last, meant, strict

CONTROL = '{"content": "ok", "decisions": {"approved": true}}'


@pytest.mark.req("S1-45", "S1-47", "S1-48", "S1-53")
@pytest.mark.parametrize(
    "text",
    [
        CONTROL,
        f"Here you are:\n\n{CONTROL}\n",
        f"```json\n{CONTROL}\n```",
        f"index.html\n```html\n<style>body {{ color: red; }}</style><script>if (a) {{ b(); }}</script>\n```\n{CONTROL}",
        f'{{"decisions": {{"approved": false}}}}\nNo, wait.\n{CONTROL}',
        f'<think>{{"decisions": {{"approved": false}}}}</think>{CONTROL}',
        f'{CONTROL}<thinking-content-7b>{{"decisions": {{}}}}</thinking-content-7b>',
        '{\n  "content": "ok", // what I did\n  "decisions": {\n    "approved": true, // boolean: http://x\n  }\n}',
        '{"content": "ok", // not {this} one\n "decisions": {"approved": true, // see {it}\n // [or not]\n }}',
        f'He said "{{" and left. {CONTROL} Bye.',
        f"{{ not json }} {CONTROL} {{}}",
    ],
)
def test_finds_the_last_object_that_decides(text: str) -> None:
    found, _ = last(text, "decisions")
    assert (found["content"], found["decisions"]) == ("ok", {"approved": True})


def test_a_thought_that_is_never_closed_inside_a_file_swallows_nothing() -> None:
    text = f'tags.py\n```python\nOPEN = "<think>"\n```\n{CONTROL}'
    assert last(text, "decisions")[0]["content"] == "ok"
    with pytest.raises(NoReply):
        last(f"<think>{CONTROL}", "decisions")


@pytest.mark.parametrize(
    "text",
    [
        'Perhaps {"decisions": {"approved": false}}.\n</think>\n\n# It',
        "```python\nmaybe()\n```\nNo.\n</think>\n# It",
        "One </think>\nor two\n</think>  \n# It",
        "<think>a<think>b</think> c</think>\n# It",
        "# It\n<think>\nShould there be more? And",
        "# It\r\n  <THINK>\r\nno",
        "[THINK]hm[/THINK]# It",
        "\n<reasoning>hm</reasoning>\n# It",
        "◁think▷hm◁/think▷# It",
        "<|channel|>analysis<|message|>No.<|end|><|start|>assistant<|channel|>final<|message|># It<|return|>",
        "<|start|>assistant<|channel|>commentary <|constrain|>json<|message|>1<|call|><|channel|>final<|message|># It",
    ],
)
def test_what_was_only_thought_is_left_out_also_where_one_of_its_tags_is_missing(text: str) -> None:
    assert meant(text).strip() == "# It"


@pytest.mark.parametrize(
    "text",
    [
        'tags.py\n```python\nCLOSE = """\n</think>\n"""\n```\nDone.',
        "tags.py\n```\n<think>\n```\nDone.",
        "Write `</think>` at the end, and <think> before.",
        '{"content": "the tag </think> is the end"}',
        "The answer has <reasoning>x</reasoning> in it.",
        "It writes <|channel|>analysis<|message|> first.",
    ],
)
def test_a_tag_that_is_part_of_a_file_or_of_a_line_swallows_nothing(text: str) -> None:
    assert meant(text) == text


def test_a_reply_that_is_only_analysis_says_nothing() -> None:
    assert meant("<|channel|>analysis<|message|>结论：PASS") == ""


def test_a_decision_behind_a_thought_without_a_beginning_is_the_decision() -> None:
    assert strict('Is it {"approved": false}?\n</think>\n\n{"next_agent": "DEV"}') == {"next_agent": "DEV"}


@pytest.mark.parametrize("before", ["", "ok "])
def test_what_was_only_thought_is_left_out_of_the_fields_of_an_object(before: str) -> None:
    fields = {"content": "<think>no</think>yes", "decisions": {"all": ["[THINK]hm[/THINK]42", {"n": "<think>no"}]}}
    said = before + json.dumps(fields, ensure_ascii=False)
    assert last(said, "decisions")[0] == {"content": "yes", "decisions": {"all": ["42", {"n": ""}]}}
    assert decided(said) == ("yes", {"all": ["42", {"n": ""}]})
    if not before:
        assert strict(said)["content"] == "yes"


def test_a_tag_within_a_field_is_part_of_it() -> None:
    said = '{"content": "a < b, [1], <b>bold</b>", "decisions": {"tag": "Write <think> before it"}}'
    assert decided(said) == ("a < b, [1], <b>bold</b>", {"tag": "Write <think> before it"})


@pytest.mark.parametrize(
    "odd",
    ["9" * 5000, "[" * 3000 + "]" * 3000, '{"a":' * 3000 + "1" + "}" * 3000],
    ids=["a huge number", "deep lists", "deep objects"],
)
def test_a_reply_that_no_parser_likes_is_refused_not_fatal(odd: str) -> None:
    with pytest.raises(NoReply):
        last('{"decisions": {"n": ' + odd + "}}", "decisions")


def test_a_thought_deep_in_an_object_is_left_out_or_the_object_refused() -> None:
    try:
        at: Any = last('{"decisions": ' + '{"a":' * 900 + '"<think>no</think>"' + "}" * 901, "decisions")[0][
            "decisions"
        ]
    except NoReply:
        return
    while isinstance(at, dict):
        at = at["a"]
    assert at == ""


def test_half_a_character_does_not_get_through() -> None:
    found, _ = last('So: {"content": "x\\ud800", "decisions": {"a\\udfff": ["\\ud83d\\ude00"]}}', "decisions")
    assert found == {"content": "x\ufffd", "decisions": {"a\ufffd": ["😀"]}}


def test_comments_inside_strings_are_text() -> None:
    found, _ = last('{"decisions": {"url": "http://a//b", }, "content": "a // b"}', "decisions")
    assert found == {"decisions": {"url": "http://a//b"}, "content": "a // b"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("All done!", "no JSON object"),
        ("", "the reply is empty"),
        ('{"content": "x"}', "no 'decisions'"),
        ('{"decisions": {"a": 1}', "no 'decisions'"),
        ("{ oh well", "no complete JSON object"),
    ],
)
def test_says_what_is_missing(text: str, why: str) -> None:
    with pytest.raises(NoReply, match=why):
        last(text, "decisions")


def test_the_rest_of_the_text_is_what_stands_around_it() -> None:
    _, rest = last(f"Before.\n```json\n{CONTROL}\n```\nAfter.", "decisions")
    assert rest.split() == ["Before.", "After."]


def test_strict_takes_the_whole_text_or_nothing() -> None:
    assert strict(f" {CONTROL}\n") == json.loads(CONTROL)
    for text in (f"So: {CONTROL}", f"{CONTROL} so", "[1]", ""):
        with pytest.raises(NoReply):
            strict(text)


def test_fenced_takes_the_last_fence() -> None:
    assert fenced(f"```json\n{{}}\n```\n```\n{CONTROL}\n```") == json.loads(CONTROL)
    with pytest.raises(NoReply):
        fenced(CONTROL)


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{CONTROL}\n`````",
        f"~~~~\n{CONTROL}\n~~~~",
        f"```json\n{CONTROL}\n```\nDone.\n```",
        f"- so:\n\n    ```json\n    {CONTROL}\n    ```",
    ],
)
def test_a_fence_is_closed_by_one_that_is_as_long(text: str) -> None:
    assert fenced(text) == json.loads(CONTROL)


def test_fences_that_nothing_closes_are_read_once() -> None:
    with pytest.raises(NoReply, match="there is no fenced block"):
        fenced("```a\n" * 200_000)


@pytest.mark.parametrize("fence", ["```", "````", "~~~"])
def test_the_fence_around_the_object_is_left_out(fence: str) -> None:
    assert last(f"Before.\n{fence}json\n{CONTROL}\n{fence}\nAfter.", "decisions")[1] == "Before.\n\nAfter."


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.text(max_size=80), st.dictionaries(st.text(max_size=8), _values, max_size=4), st.text("ab\n `.!", max_size=20)
)
def test_any_object_survives_any_text_before_it(before: str, decisions: dict[str, Any], after: str) -> None:
    wanted = {"content": before, "decisions": decisions}
    text = before.replace("<", "") + "\n" + json.dumps(wanted, ensure_ascii=False) + "\n" + after
    found, _ = last(text, "decisions")
    # an object inside the decisions may have the key as well; it is the last one then
    assert found == wanted or "decisions" in json.dumps(decisions)


@given(st.text(alphabet='{}[]":,/\\ ad1<think>\n`', max_size=200))
def test_any_text_gives_an_object_or_a_reason(text: str) -> None:
    try:
        assert "d" in last(text, "d")[0]
    except NoReply as error:
        assert str(error)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("null", ""),
        ("[]", ""),
        ("{}", ""),
        ("[null]", ""),
        ("NaN", ""),
        ('["first", "second"]', "first\nsecond"),
        ('[{"type": "text", "text": "a part"}, null]', "a part"),
        ('{"did": "this"}', '{"did":"this"}'),
        ('[{"text": 1}]', '[{"text":1}]'),
        ("7", "7"),
        ("true", "true"),
        ('""', ""),
    ],
)
def test_content_that_is_not_text_becomes_words(content: str, words: str) -> None:
    object_ = f'{{"content": {content}, "decisions": {{}}}}'
    assert decided(object_) == (words, {})
    said = words or ("" if content == '""' else "I did it.")
    assert decided(f"I did it.\n{object_}") == (said, {})


def test_numbers_that_are_not_json_are_read_as_null() -> None:
    _, decisions = decided('{"content": "x", "decisions": {"score": NaN, "most": [-Infinity], "n": 1.5}}')
    assert decisions == {"score": None, "most": [None], "n": 1.5}
