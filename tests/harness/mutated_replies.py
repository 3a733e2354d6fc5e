"""Mutated server replies: each must become an answer that a journal reads back, or a clean retry or refusal.

`python -m tests.harness.mutated_replies --count 150000 [--seed N]` prints what came of them.
"""

import argparse
import json
import random
import sys
import time
from collections import Counter
from typing import Any

from ripstop.app.plugins import installed
from ripstop.engine.performers import Refused, TryAgain, priced, with_floor
from ripstop.kernel.effects import AgentReplied
from ripstop.kernel.events import Answered
from ripstop.models.chat_reply import Reply, decoded
from ripstop.models.openai_compatible import EventStream, TooLong

CODEC = installed().registry.codec

LONGEST = 2.0
"""Seconds of processor time for one reply."""
LIMIT = 100_000

ODD: list[Any] = [
    None, True, False, 0, -1, 7, 1.5, -0.5, 1e308, 10**9, 2**63, 2**70, -(2**63) - 1, "", "9", "x", "null", "{", "[1]",
    "\ud800", "\x00", "\u202e", "a" * 300, [], {}, [[]], [{}], {"a": []}, [1, "x", None], {"": ""}, {"text": "t"},
    {"type": "text", "text": "t"}, [{"type": "text", "text": 7}], {"value": {}}, "data: [DONE]", "\r\n\r\n", "\ufeff",
]  # fmt: skip
KEYS = [
    "choices", "delta", "message", "content", "tool_calls", "function", "name", "arguments", "id", "index", "usage",
    "prompt_tokens", "completion_tokens", "finish_reason", "role", "refusal", "reasoning_content", "text", "type",
    "error", "code", "function_call", "input_tokens",
]  # fmt: skip


def samples() -> list[list[Any]]:
    """Valid replies, each as its chunks."""
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a"}'}}
    part = {"index": 0, "function": {"arguments": '{"path": "b"}'}}
    usage = {"prompt_tokens": 5, "completion_tokens": 6, "total_tokens": 11}

    def delta(finish: str | None = None, **said: Any) -> dict[str, Any]:
        return {"id": "x", "choices": [{"index": 0, "delta": said, "finish_reason": finish}]}

    return [
        [delta(role="assistant", content=""), delta(content="Hello"), delta("stop"), {"choices": [], "usage": usage}],
        [delta(tool_calls=[call]), delta(tool_calls=[part]), delta("tool_calls"), {"usage": usage}],
        [{"choices": [{"message": {"role": "assistant", "content": "Hi", "tool_calls": [call]}}], "usage": usage}],
        [{"choices": [{"message": {"content": [{"type": "text", "text": "Hi"}]}, "finish_reason": "stop"}]}],
        [delta(content='{"content": "x", "decisions": {"done": true}}'), {"error": {"message": "m", "code": 503}}],
    ]


def mutated(value: Any, dice: random.Random, rate: float) -> Any:
    """The value with some of its parts changed for odd ones, dropped, doubled or wrapped."""
    if dice.random() < rate:
        kind = dice.randrange(6)
        if kind == 0 and isinstance(value, list):
            return value * dice.choice((0, 2, 50))
        if kind == 1:
            return nested(value, dice.choice((1, 3, 99, 101, 150)), dice)
        if kind == 2 and isinstance(value, str):
            cut = dice.randrange(len(value) + 1)
            return value[:cut] + dice.choice(("", "\ud83d", "\\", '"', "\x1b", "x" * 500)) + value[cut:]
        if kind == 3 and isinstance(value, dict):
            return {**value, dice.choice(KEYS): dice.choice(ODD)}
        return dice.choice(ODD)
    if isinstance(value, dict):
        return {
            key if dice.random() > rate / 4 else dice.choice(KEYS): mutated(item, dice, rate)
            for key, item in value.items()
            if dice.random() > rate / 4
        }
    if isinstance(value, list):
        return [mutated(item, dice, rate) for item in value]
    return value


def nested(value: Any, levels: int, dice: random.Random) -> Any:
    as_list = dice.random() < 0.5
    for _ in range(levels):
        value = [value] if as_list else {"a": value}
    return value


def as_bytes(chunks: list[Any], dice: random.Random) -> bytes:
    """The chunks as a stream of events, now and then with damage to its bytes."""
    end = dice.choice((b"\n\n", b"\r\n\r\n", b"\r\r"))
    data = b"".join(b"data: " + json.dumps(chunk).encode() + end for chunk in chunks) + b"data: [DONE]" + end
    if dice.random() < 0.3:
        damaged = bytearray(data)
        for _ in range(dice.randrange(1, 6)):
            at = dice.randrange(len(damaged) + 1)
            damaged[at : at + dice.choice((0, 1, 1, 20))] = dice.choice(
                (b"", b"\xff", b"\x00", b'"', b"{", b"\n\n", b"\\")
            )
        data = bytes(damaged)
    return data


def heard(data: bytes, dice: random.Random) -> AgentReplied:
    """What becomes of a reply, as the agent does it."""
    stream, reply, at = EventStream(LIMIT), Reply("sk-0123456789abcdef"), 0
    events: list[bytes] = []
    step = dice.choice((3, 100, 1000, 65536, 65536))
    while at < len(data):
        events += stream.feed(data[at : at + step])
        at += step
    for event in [*events, *stream.end()]:
        if event.strip() == b"[DONE]":
            break
        reply.add(decoded(event))
    answer = reply.answer()
    usage = priced(with_floor(answer.usage, 500, reply.received), (1.0, 2.0))
    return AgentReplied(text=answer.text, calls=answer.calls, usage=usage)


def check(data: bytes, dice: random.Random) -> str:
    """What came of a reply, in a word. Raises anything that must never come of one."""
    began = time.process_time()
    try:
        answer = heard(data, dice)
    except (TryAgain, Refused) as trouble:
        assert 0 < len(str(trouble)) < 1000, trouble
        str(trouble).encode()
        outcome = type(trouble).__name__
    except TooLong:
        outcome = "TooLong"
    else:
        event = Answered(to=1, answer=answer)
        assert CODEC.load_step(CODEC.dump_step([event])) == [event]
        assert min(answer.usage.input_tokens, answer.usage.output_tokens) >= 0
        assert len({call.id for call in answer.calls}) == len(answer.calls)
        outcome = "AgentReplied"
    took = time.process_time() - began
    assert took < LONGEST, f"{took:.1f} s"
    return outcome


def run(count: int, seed: int) -> Counter[str]:
    dice, originals, outcomes = random.Random(seed), samples(), Counter[str]()
    for number in range(count):
        chunks = mutated(dice.choice(originals), dice, dice.choice((0.02, 0.1, 0.3)))
        data = as_bytes(chunks if isinstance(chunks, list) else [chunks], dice)
        try:
            outcomes[check(data, dice)] += 1
        except Exception as error:
            raise AssertionError(f"reply {number} of seed {seed}: {error!r}: {data[:2000]!r}") from error
    return outcomes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=150_000)
    parser.add_argument("--seed", type=int, default=20)
    given = parser.parse_args()
    began = time.monotonic()
    outcomes = run(given.count, given.seed)
    print(
        f"{given.count:,} mutated replies in {time.monotonic() - began:.0f} s: {dict(outcomes)}; no traceback, no hang"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
