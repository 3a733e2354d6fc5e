"""The border for servers' replies: odd but clear shapes are understood, the rest is tried again."""

import json
import re

import pytest

from ripstop.app.plugins import installed
from ripstop.engine.performers import TryAgain
from ripstop.kernel.effects import ToolCall, Usage
from ripstop.kernel.events import Answered
from ripstop.models.chat_reply import LONGEST_REPLY, LONGEST_TEXT, MOST_CALLS, Reply, decoded

CODEC = installed().registry.codec


def answer(*chunks, secret=""):
    """The answer, which must also survive a journal."""
    reply = Reply(secret)
    for chunk in chunks:
        reply.add(decoded(chunk if isinstance(chunk, bytes) else json.dumps(chunk).encode()))
    found = reply.answer()
    event = Answered(to=1, answer=found)
    assert CODEC.load(CODEC.dump(event)) == event
    return found


def said(**delta):
    return {"choices": [{"index": 0, "delta": delta}]}


def call(**fields):
    function = {name: fields.pop(name) for name in ("name", "arguments") if name in fields}
    return said(tool_calls=[{"function": {"name": "read", **function}, **fields}])


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ({"prompt_tokens": 3, "completion_tokens": 4}, Usage(3, 4)),
        ({"input_tokens": 3, "output_tokens": 4}, Usage(3, 4)),
        ({"prompt_tokens": "9", "completion_tokens": 4.0}, Usage(9, 4)),
        ({"prompt_tokens": 1.5, "completion_tokens": 4}, Usage(2, 4)),
        ({"prompt_tokens": True, "completion_tokens": 4}, Usage(0, 4)),
        ({"prompt_tokens": -5, "completion_tokens": 4}, Usage(0, 4)),
        ({"prompt_tokens": -0.5, "completion_tokens": 4}, Usage(0, 4)),
        ({"prompt_tokens": 2**63 + 1, "completion_tokens": 4}, Usage(0, 4)),
        ({"prompt_tokens": 10**300, "completion_tokens": "nine"}, Usage()),
        ({"prompt_tokens": {}, "completion_tokens": [1]}, Usage()),
        ("many", Usage()),
        ([1, 2], Usage()),
        (7, Usage()),
    ],
)
def test_usage_that_makes_no_sense_counts_as_missing(usage, counted):
    assert answer({**said(content="x"), "usage": usage}).usage == counted


def test_a_later_chunk_without_usage_keeps_the_earlier_one():
    assert answer({"usage": {"prompt_tokens": 3, "completion_tokens": 4}}, {"usage": {}}).usage == Usage(3, 4)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("hi", "hi"),
        (None, ""),
        ([], ""),
        ([{"type": "text", "text": "h"}, {"type": "text", "text": "i"}], "hi"),
        ([{"type": "output_text", "text": "hi"}], "hi"),
        ([{"type": "text", "text": {"value": "hi"}}], "hi"),
        (["h", "i"], "hi"),
        ([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "hi"}], "hi"),
        ({"type": "text", "text": "hi"}, "hi"),
        ({"decisions": {"ok": True}}, '{"decisions": {"ok": true}}'),
        ("a\ud800b", "a\ufffdb"),
        ("😀", "😀"),
    ],
)
def test_content_is_understood_in_every_clear_shape(content, text):
    assert answer(said(content=content)).text == text


@pytest.mark.parametrize(
    "shape",
    [
        {"choices": {"index": 0, "delta": {"content": "hi"}}},
        {"choices": [{"delta": [{"content": "h"}, {"content": "i"}]}]},
        {"choices": [{"index": "0", "delta": {"role": ["assistant"], "content": "hi"}, "finish_reason": 1}]},
        {"choices": [{"text": "hi"}]},
        {"choices": [{"message": {"content": None, "refusal": "hi"}}]},
        {"choices": [{"message": {"content": "hi", "reasoning_content": "well", "reasoning": "hm"}}]},
        {"choices": [{"message": {"content": "hi"}}, {"index": 1, "message": {"content": "other"}}]},
    ],
)
def test_odd_but_clear_replies_are_understood(shape):
    assert answer(shape).text == "hi"


@pytest.mark.parametrize(
    ("chunk", "named"),
    [
        ([], "reply"),
        ("text", "reply"),
        ({"choices": {}}, "choices"),
        ({"choices": 5}, "choices"),
        ({"choices": ["x"]}, "choices"),
        ({"choices": [{"delta": "x"}]}, "delta"),
        ({"choices": [{"delta": {}, "index": "first"}]}, "index"),
        ({"choices": [{"delta": {}, "index": True}]}, "index"),
        ({"choices": [{"delta": {}, "finish_reason": {}}]}, "finish_reason"),
        (said(content=7), "content"),
        (said(content=True), "content"),
        (said(content=[{"type": "image_url", "image_url": "x"}]), "part of the content"),
        (said(tool_calls="read"), "tool_calls"),
        (said(tool_calls=[7]), "tool_calls"),
        (said(tool_calls=[{"function": "read"}]), "function"),
        (call(name={}), "name of a tool"),
        (call(name=7), "name of a tool"),
        (call(name="x" * 1000), "name of a tool"),
        (call(name=""), "without the name"),
        (call(id={}), "id of a tool call"),
        (call(id=True), "id of a tool call"),
        (call(id="x" * 1000), "id of a tool call"),
        (call(index=1.5), "index"),
        (call(index={}), "index"),
        (call(arguments=[1]), "arguments of 'read'"),
        (call(arguments=7), "arguments of 'read'"),
        (b"[" * 5000 + b"]" * 5000, "nested too deeply"),
        (b'{"choices": ' + b"[" * 900 + b"]" * 900 + b"}", "choices"),
        (b"<html>", "not a JSON object"),
        (b"", "not a JSON object"),
        (b'{"choices": [NaN]}', "NaN"),
    ],
)
def test_other_shapes_are_tried_again_and_named(chunk, named):
    with pytest.raises(TryAgain, match=named) as trouble:
        answer(chunk)
    assert len(str(trouble.value)) < 400


@pytest.mark.parametrize(
    ("chunk", "named"),
    [
        (call(arguments="{"), "the arguments are not JSON"),
        (call(arguments='{"a": NaN}'), "NaN"),
        (call(arguments='{"a": 1e999}'), "out of range"),
        (call(arguments="[1]"), "a list instead of an object"),
        (call(arguments='"text"'), "not JSON"),
        (call(arguments='{"a":' * 5000 + "1" + "}" * 5000), "too deep"),
        (call(arguments='{"a":' * 200 + "1" + "}" * 200), "more than 100 levels"),
        (call(arguments='{"a": ' + "9" * 5000 + "}"), "not JSON"),
    ],
)
def test_arguments_that_cannot_be_read_are_the_agents_mistake_and_named(chunk, named):
    (called,) = answer(chunk).calls
    assert called.tool == "read" and called.arguments == {}
    assert re.search(named, called.malformed) and len(called.malformed) < 400


def test_a_call_that_was_cut_off_before_its_arguments_is_not_made():
    (called,) = answer(call(arguments=""), {"choices": [{"delta": {}, "finish_reason": "length"}]}).calls
    assert "before the arguments" in called.malformed


def test_bad_utf8_and_a_byte_order_mark_are_read():
    data = json.dumps(said(content="hXi")).encode().replace(b"X", b"\xff")
    assert answer(b"\xef\xbb\xbf" + data).text == "h\ufffdi"


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"id": 7}, ToolCall(id="7", tool="read")),
        ({"index": "3", "id": "c"}, ToolCall(id="c", tool="read")),
        ({"index": -1}, ToolCall(id="call_-1", tool="read")),
        ({"index": 10**9}, ToolCall(id="call_1000000000", tool="read")),
        ({"id": "c", "arguments": None}, ToolCall(id="c", tool="read")),
        ({"id": "c", "arguments": ""}, ToolCall(id="c", tool="read")),
        ({"id": "c", "arguments": "null"}, ToolCall(id="c", tool="read")),
        ({"id": "c", "arguments": {"path": "a"}}, ToolCall(id="c", tool="read", arguments={"path": "a"})),
        ({"id": "c", "arguments": '"{\\"path\\": \\"a\\"}"'}, ToolCall(id="c", tool="read", arguments={"path": "a"})),
        ({"id": "c", "arguments": '{"path": "\\ud800"}'}, ToolCall(id="c", tool="read", arguments={"path": "\ufffd"})),
        ({"id": "\ud800", "name": "\udfff"}, ToolCall(id="\ufffd", tool="\ufffd")),
    ],
)
def test_calls_are_understood_in_every_clear_shape(fields, found):
    assert answer(call(**fields)).calls == (found,)


def test_the_older_form_of_a_call_is_understood():
    assert answer(said(function_call={"name": "read", "arguments": "{}"})).calls == (ToolCall("call_0", "read"),)


def test_calls_that_share_an_index_are_told_apart_by_id():
    calls = answer(call(index=0, id="a"), call(index=0, id="b", name="list"), call(id="c")).calls
    assert [(c.id, c.tool) for c in calls] == [("a", "read"), ("b", "list"), ("c", "read")]


def test_calls_with_the_same_id_get_ids_of_their_own():
    calls = answer(said(tool_calls=[{"index": i, "id": "c", "function": {"name": "read"}} for i in range(3)])).calls
    assert [c.id for c in calls] == ["c", "c_2", "c_3"]


def test_a_generated_id_does_not_collide_with_a_given_one():
    parts = [{"index": 0, "id": "call_1", "function": {"name": "a"}}, {"index": 1, "function": {"name": "b"}}]
    assert [c.id for c in answer(said(tool_calls=parts)).calls] == ["call_1", "call_1_2"]


def test_a_flood_of_calls_and_an_endless_text_are_refused():
    flood = said(tool_calls=[{"index": i, "function": {"name": "read"}} for i in range(MOST_CALLS + 1)])
    with pytest.raises(TryAgain, match="1000 tool calls"):
        answer(flood)
    with pytest.raises(TryAgain, match="4 MiB"):
        answer(*[said(reasoning="x" * 2**20)] * (LONGEST_REPLY // 2**20 + 1))
    with pytest.raises(TryAgain, match="2 MiB"):
        answer(*[said(content="x" * 2**20)] * (LONGEST_TEXT // 2**20), said(content="x"))


@pytest.mark.parametrize("key", ["sk-0123456789abcdef", 'sk-0123/45"6789\\abcdef', "näher-0123456789-\U0001f600"])
@pytest.mark.parametrize("levels", [1, 2, 3])
def test_a_key_that_the_server_says_back_in_json_of_its_own_is_not_kept(key, levels):
    every = "".join(f"\\u{int.from_bytes(unit):04X}" for unit in _units(key))
    for content in (every, json.dumps(key)[1:-1], f"{every[:6]}{key[1:]}"):
        text = f'{{"content":"{content}"}}'
        for _ in range(levels - 1):
            text = json.dumps({"inner": text})
        found = answer(said(content=text), call(id="c", arguments=json.dumps({"a": [{text: text}]})), secret=key)
        for kept in (found.text, *found.calls[0].arguments["a"][0], *found.calls[0].arguments["a"][0].values()):
            assert "…" in kept and key not in kept
            inner = json.loads(kept)
            while "inner" in inner:
                inner = json.loads(inner["inner"])
            assert inner == {"content": "…"}


def _units(text):
    data = text.encode("utf-16-be")
    return [data[at : at + 2] for at in range(0, len(data), 2)]


def test_a_key_that_the_server_says_back_is_not_kept():
    key = "sk-0123456789abcdef"
    found = answer(said(content=f"it is {key}"), call(id="c", arguments=json.dumps({"a": key})), secret=key)
    assert key not in CODEC.dump(Answered(to=1, answer=found)).decode()
    assert answer(said(content="a test"), secret="test").text == "a test"  # a word, as local servers take
