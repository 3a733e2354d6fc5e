"""A bot in a folder, and what its scripted model decides, for walks through chats."""

import json
from pathlib import Path
from typing import Any

GREETING = "Hello! I am Mina."


def decision(
    response: str | None = None, status: str = "typing", action: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    return {"next_status": status, "action": action, "response": response, **more}


HANDOFF = decision("A colleague will write to you.", "transferred", {"type": "SYSTEM", "target": "handoff"})
BROKEN = decision(None, "typing")


def write_bot(folder: Path, *decisions: dict[str, Any], timers: Any = None, **config: Any) -> Path:
    """Write a bot, and a script with its plan and the decisions that follow; those can have a `delay`."""
    bot = folder / "shop"
    bot.mkdir(exist_ok=True)
    written = {"name": "Mina", "greeting": GREETING, "sop": "Help.", **config}
    (bot / "bot.json").write_text(json.dumps(written), encoding="utf-8")
    plan = {"name": "Mina", "tone": "", "greeting": GREETING, "sop": "Help.", "timers": timers, "constraints": ""}
    first, *others = (dict(one) for one in decisions)
    delays = [one.pop("delay", 0) for one in (first, *others)]
    replies = [{"plan": plan, "decision": first}, *others]
    lines = [
        {"agent": "assistant" if index else "planner", "reply": json.dumps(reply), "delay": delay}
        for index, (reply, delay) in enumerate(zip(replies, delays, strict=True))
    ]
    (bot / "script.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return bot


def script(bot: Path) -> str:
    return f"script:{bot / 'script.jsonl'}"
