"""Reading replies, beside a plain way of doing it that tries every opening brace and takes its time."""

import json
import re
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from ripstop.styles.reply import NoReply, last, strict, without_thinking

TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|[{}]')
LOOSE = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|,(?=\s*(?://[^\n]*\n\s*)*[}\]])')
PIECES = [
    *('{"', '":', '{"decisions":', '"decisions"', "{", "}", "}}", "[", "]", ",", ":", '"', "\\", '\\"', "\n", " ", "1"),
    *("//", "/", "x", "true", "{}", '{"a":{"b":[1,2,],},}', '{"decisions":{}}', '{"\\u0064ecisions":1}', '"{"', "\\u"),
]
texts = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)
thoughts = st.lists(
    st.sampled_from(
        ["<think>", "</think>", "<thinking>", "</THINKING>", "<Think-1>", "</think-1>", "a", " ", "<", "\n"]
    ),
    max_size=15,
).map("".join)


def _object_at(text: str, start: int) -> tuple[dict[str, Any], int] | None:
    try:
        return json.JSONDecoder().raw_decode(text, start)
    except ValueError:
        pass
    depth = 0
    for token in TOKEN.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(token[0], 0)
        if depth == 0 and token[0] == "}":
            part = text[start : token.end()]
            try:
                return json.loads(LOOSE.sub(lambda m: m[0] if m[0][0] == '"' else "", part)), token.end()
            except ValueError:
                return None
    return None


def _said(read: Any, *given: Any) -> Any:
    try:
        return read(*given)
    except NoReply as error:
        return str(error)


def _plain_last(text: str) -> Any:
    """The object, or what is wrong."""
    nearest, last_one = "", None
    for start in reversed([place.start() for place in re.finditer("{", text)]):
        found = _object_at(text, start)
        if found and "decisions" in found[0] and (last_one is None or found[1] > last_one[1]):
            last_one = found
        if found and not nearest:
            nearest = ", ".join(map(repr, list(found[0])[:8])) or "nothing"
    if last_one:
        return last_one[0]
    if nearest:
        return f"the last JSON object has {nearest}, but no 'decisions'"
    if not text.strip():
        return "the reply is empty"
    return "there is no complete JSON object in it" if "{" in text else "there is no JSON object in it"


@settings(max_examples=1500)
@given(texts)
@example('{"a":"\\"{"decisions":1}')
@example('"{"\n"{"\n{"decisions": 1, // x\n}')
@example('\\"\\"{"decisions":"\\""}\\"')
def test_finds_the_object_that_trying_every_brace_finds(text: str) -> None:
    found = _said(last, text, "decisions")
    assert (found if isinstance(found, str) else found[0]) == _plain_last(text)


@settings(max_examples=1000)
@given(texts)
def test_the_whole_text_is_the_object_or_it_is_refused(text: str) -> None:
    text = text.strip()
    found = _object_at(text, 0) if text.startswith("{") else None
    whole = found is not None and not text[found[1] :]
    said = _said(strict, text)
    assert said == (found[0] if found and whole else "it is not one JSON object and nothing else")


@settings(max_examples=1000)
@given(thoughts)
def test_leaves_out_the_thoughts_that_a_pattern_leaves_out(text: str) -> None:
    closed = re.compile(r"<(think[\w-]*)>.*?</\1>", re.DOTALL | re.IGNORECASE)
    first = closed.match(text.lstrip())
    opens = re.match(r"\s*<think[\w-]*>", text, re.IGNORECASE)
    rest = "" if opens and not first else closed.sub("", text)
    assume(not re.search(r"</think|^\s*<think", rest, re.IGNORECASE | re.MULTILINE))  # a tag without the other one
    assert without_thinking(text) == rest


def test_a_thought_after_a_blank_line_does_not_swallow_the_reply() -> None:
    assert last('\n<think>hm</think>\n{"decisions": {"a": 1}}', "decisions")[0] == {"decisions": {"a": 1}}


SIZE = 280_000
HOSTILE = {
    "braces": "{" * SIZE,
    "objects never closed": '{"a":' * (SIZE // 5),
    "a list in objects never closed": '{"a":' * 900 + "[" + "1," * (SIZE // 2),
    "a list in many objects": '{"a":' * 900 + "[" + "1," * (SIZE // 2) + "1]" + "}" * 900,
    "the key where it is none": '{"a":["decisions"],"b":' * 900 + "[" + "1," * (SIZE // 2) + "1]" + "}" * 900,
    "quotes with backslashes": "{" + '\\"' * (SIZE // 2) + "}",
    "strings in lines": '"{"\n' * (SIZE // 8) + "{}" * (SIZE // 4),
    "comments": "//{" * (SIZE // 3),
    "thoughts never closed": "x" + "<think>" * (SIZE // 7),
    "thoughts of many names": "x" + "".join(f"<think{n}>" for n in range(SIZE // 12)),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_reply_is_refused_before_anybody_notices(text: str) -> None:
    """Each of these took from half a second to hours when every brace was tried on its own."""
    with pytest.raises(NoReply):
        last(text, "decisions")
