"""Small bots with answers that lead a run of each to its end, for tests that go over all styles."""

from typing import Any

import msgspec

from ripstop.kernel.effects import AgentReplied, Failed, ToolReturned, Usage
from ripstop.kernel.style import Sample

from .definition import Bot, BotFlow, BotTool, config_hash

USAGE = Usage(input_tokens=30, output_tokens=12)


def _bot() -> Bot:
    config = {"name": "Shop", "tone": "friendly", "sop": "Answer.", "greeting": "Welcome!"}
    return Bot(
        "shop",
        config_hash(config),
        config,
        greeting="Welcome!",
        tools=(BotTool("opening_hours", "When the shop is open."),),
        flows=(BotFlow("hours", match="contains", patterns=("open",), tool="opening_hours"),),
    )


def samples() -> tuple[Sample, ...]:
    """A flow answers by itself; and what can neither be planned nor answered ends in an apology."""
    flow = Sample("flow", _bot(), (ToolReturned(value="From 9 to 5."),), input="When are you open?")
    failed = Sample("unplanned", _bot(), (Failed(reason="no model"), Failed(reason="no model")), input="Hello")
    return flow, failed


def planning_samples() -> tuple[Sample, ...]:
    plan: dict[str, Any] = {"name": "Shop", "tone": "friendly", "greeting": None, "sop": "1. Answer.", "timers": []}
    decision = {"next_status": "typing", "action": None, "response": "Hello!"}
    wrong = AgentReplied(text="I cannot.", usage=USAGE)
    text = msgspec.json.encode({"plan": plan, "decision": decision}).decode()
    right = AgentReplied(text=text, usage=USAGE)
    arguments = {"message": "Hello", "asker": "s/2"}
    return (
        Sample("plan", _bot(), (right,), arguments=arguments),
        Sample("plan again", _bot(), (wrong, right), arguments=arguments),
    )
