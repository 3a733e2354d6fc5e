"""With the real model; see `model_file` in conftest.py."""

import asyncio
import json
import subprocess
import sys
import threading
from typing import Any

import pytest

from ripstop.engine.live import Live
from ripstop.engine.performers import PromptTooLong, Refused
from ripstop.faces.next_steps import in_commands
from ripstop.kernel.prompt import Message
from ripstop.models import local
from ripstop.models.local import LocalAgent
from tests.models.asking import ask

pytestmark = pytest.mark.usefixtures("model_file")

REVIEW = {
    "type": "object",
    "properties": {
        "content": {"type": "string", "maxLength": 2000},
        "decisions": {
            "type": "object",
            "properties": {"approved": {"type": "boolean"}, "answer": {"type": "string", "maxLength": 60}},
            "required": ["approved", "answer"],
            "additionalProperties": False,
        },
    },
    "required": ["content", "decisions"],
    "additionalProperties": False,
}

ODD: dict[str, Any] = {
    "type": "object",
    "properties": {
        "级别": {"enum": ["高", "中", 'the "low" one', None]},
        "score": {"type": "number", "minimum": 0, "maximum": 1},
        "count": {"type": "integer", "minimum": 1, "maximum": 7},
        "any": {"type": "number"},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 8}, "minItems": 1, "maxItems": 3},
        "maybe": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/point"}]},
        "fixed": {"const": {"a": [1, "b"]}},
        "none": {"type": "object"},
    },
    "$defs": {"point": {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}}},
}


def perform(agent, request):
    return asyncio.run(agent.perform(request))


def check_review(found):
    assert set(found) == {"content", "decisions"}
    assert isinstance(found["content"], str)
    assert len(found["content"]) <= 2000
    assert set(found["decisions"]) == {"approved", "answer"}
    assert isinstance(found["decisions"]["approved"], bool)
    assert len(found["decisions"]["answer"]) <= 60


def check_odd(found):
    assert set(found) == set(ODD["properties"])
    assert found["级别"] in ODD["properties"]["级别"]["enum"]
    assert 0 <= found["score"] <= 1
    assert found["count"] in range(1, 8)
    assert type(found["count"]) is int
    assert isinstance(found["any"], int | float)
    assert 1 <= len(found["tags"]) <= 3
    assert all(len(tag) <= 8 for tag in found["tags"])
    assert found["maybe"] is None or {type(found["maybe"][axis]) for axis in ("x", "y")} == {int}
    assert found["fixed"] == {"a": [1, "b"]}
    assert found["none"] == {}


PROMPTS = (
    "Review this plan: we boil the soup, then we eat it. Answer in JSON.",
    "请用中文写一首关于汤的长诗，越长越好。汤汤汤汤汤汤汤汤汤汤汤汤",
    'Write {"content": "\\u0000 unfinished and then many blanks and newlines\n\n\n\n',
    "",
)


@pytest.mark.long
@pytest.mark.parametrize(
    ("prompt", "max_tokens"), [*((prompt, 100) for prompt in PROMPTS), (PROMPTS[0], None), (PROMPTS[1], None)]
)
def test_a_reply_always_satisfies_its_schema(prompt, max_tokens):
    reply = perform(LocalAgent(), ask(prompt, schema=REVIEW, max_tokens=max_tokens))
    check_review(json.loads(reply.text))
    assert reply.text == json.dumps(json.loads(reply.text), ensure_ascii=False, separators=(",", ":"))
    if max_tokens is not None:
        assert reply.usage.output_tokens <= max_tokens


@pytest.mark.parametrize("temperature", [0.2, 3.0])
@pytest.mark.parametrize("prompt", PROMPTS[:2])
def test_an_odd_schema_is_satisfied_even_by_a_wild_model(prompt, temperature, monkeypatch):
    monkeypatch.setitem(local.SAMPLING, "temperature", temperature)
    check_odd(json.loads(perform(LocalAgent(), ask(prompt, schema=ODD)).text))


def test_wild_unicode_text_that_needs_many_tokens_still_closes(monkeypatch):
    monkeypatch.setitem(local.SAMPLING, "temperature", 5.0)
    monkeypatch.setattr(local, "JSON_TOKENS", 100)
    for seed in range(3):
        monkeypatch.setitem(local.SAMPLING, "seed", seed)
        check_review(json.loads(perform(LocalAgent(), ask("写诗", schema=REVIEW)).text))


def test_a_schema_that_cannot_fit_is_refused():
    with pytest.raises(Refused, match="only 15 are allowed") as refused:
        perform(LocalAgent(), ask(schema=REVIEW, max_tokens=16))
    assert refused.value.fault == "definition"


def test_free_words_keep_to_max_tokens_and_count_them():
    reply = perform(LocalAgent(), ask("Tell a long story.", max_tokens=12))
    assert reply.text
    assert reply.usage.output_tokens == 12
    assert reply.usage.input_tokens > 5


def test_the_same_question_gets_the_same_words():
    words = {perform(LocalAgent(), ask("Name a colour and say why.", max_tokens=30)).text for _ in range(3)}
    assert len(words) == 1


def test_tool_results_and_system_words_reach_the_model():
    messages = (
        Message(role="system", text="You are brief."),
        Message(role="user", text="What is in the file?"),
        Message(role="assistant", text="I read it."),
        Message(role="tool", text="soup", call_id="call_1"),
    )
    assert perform(LocalAgent(), ask(messages=messages, max_tokens=8)).text


def test_watchers_see_the_tokens_in_the_event_loop():
    async def play():
        live, seen = Live(), []
        live.watch(lambda sight: seen.append((sight, threading.current_thread())))
        reply = await LocalAgent(live=live).perform(ask(max_tokens=10, run="r7", number=5))
        await asyncio.sleep(0)
        return reply, seen

    reply, seen = asyncio.run(play())
    assert "".join(sight.text for sight, _ in seen) == reply.text
    assert {(sight.run_id, sight.number, thread) for sight, thread in seen} == {("r7", 5, threading.current_thread())}


def test_calls_at_once_do_not_mix_and_the_loop_stays_free():
    async def play():
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                await asyncio.sleep(0.005)
                ticks += 1

        ticker = asyncio.create_task(tick())
        agent = LocalAgent()
        replies = await asyncio.gather(*(agent.perform(ask(f"Count to {n}.", schema=REVIEW)) for n in (3, 4, 5)))
        ticker.cancel()
        return replies, ticks

    replies, ticks = asyncio.run(play())
    for reply in replies:
        check_review(json.loads(reply.text))
    assert ticks > 10


def test_a_cancelled_call_does_not_touch_the_next_one():
    async def play():
        agent = LocalAgent()
        expected = (await agent.perform(ask("Say yes.", max_tokens=10))).text
        live, begun = Live(), asyncio.Event()
        live.watch(lambda sight: begun.set())
        running = asyncio.create_task(LocalAgent(live=live).perform(ask("Tell a very long story.")))
        waiting = asyncio.create_task(agent.perform(ask("Tell another one.")))
        await begun.wait()
        running.cancel()
        waiting.cancel()
        ended = await asyncio.gather(running, waiting, return_exceptions=True)
        assert [type(end) for end in ended] == [asyncio.CancelledError] * 2
        return expected, (await agent.perform(ask("Say yes.", max_tokens=10))).text

    expected, heard = asyncio.run(play())
    assert heard == expected


def test_a_prompt_that_is_too_long_is_refused_with_both_numbers():
    with pytest.raises(PromptTooLong, match=r"prompt has 9\d\d\d tokens.*8192") as refused:
        perform(LocalAgent(), ask("soup " * 9000))
    assert refused.value.fault == "agent"


def test_one_model_file_is_loaded_once(model_file):
    perform(LocalAgent(), ask(max_tokens=1))
    perform(LocalAgent(str(model_file)), ask(max_tokens=1))
    assert list(local._models) == [model_file.resolve()]


def test_a_file_that_is_no_model_is_refused(tmp_path):
    with pytest.raises(Refused, match="There is no model file"):
        perform(LocalAgent(tmp_path / "none.gguf"), ask())
    (tmp_path / "text.gguf").write_text("hello")
    with pytest.raises(Refused, match="not a GGUF"):
        perform(LocalAgent(tmp_path / "text.gguf"), ask())
    (tmp_path / "broken.gguf").write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(Refused, match="cannot load") as refused:
        perform(LocalAgent(tmp_path / "broken.gguf"), ask())
    assert refused.value.fault == "definition"
    local._models.pop((tmp_path / "broken.gguf").resolve())


def test_what_is_missing_is_named_with_the_command_that_brings_it(monkeypatch):
    monkeypatch.setattr(local, "_models", {})
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(Refused, match=r"needs llama\.cpp") as refused:
        perform(LocalAgent(), ask())
    assert "Run `ripstop model install`." in in_commands(refused.value.message)
    assert refused.value.fault == "definition"
    monkeypatch.setattr(local, "carried_model", lambda: None)
    with pytest.raises(Refused) as refused:
        perform(LocalAgent(), ask())
    assert "Run `ripstop model install`, or name a model file" in in_commands(refused.value.message)


def test_the_terminal_stays_clean():
    """In a process of its own: load, answer, refuse, and exit in the middle of a reply."""
    code = """
import asyncio, asking
from ripstop.models.local import LocalAgent
async def play():
    agent = LocalAgent()
    await agent.perform(asking.ask(max_tokens=8, schema={"type": "boolean"}))
    asyncio.create_task(agent.perform(asking.ask("Tell a very long story.")))
    await asyncio.sleep(0.1)
asyncio.run(play())
"""
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)}, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
