"""Requests in the OpenAI chat format, in which llama.cpp and most servers are spoken to."""

import json
from typing import Any

from ripstop.engine.performers import ToolSpec
from ripstop.kernel.prompt import Message, Prompt


def messages_of(prompt: Prompt) -> list[dict[str, Any]]:
    return [_message(message) for message in prompt.messages]


def _message(message: Message) -> dict[str, Any]:
    told: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.calls:
        told["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.tool, "arguments": json.dumps(call.arguments, ensure_ascii=False)},
            }
            for call in message.calls
        ]
    if message.call_id:
        told["tool_call_id"] = message.call_id
    return told


def tools_of(specs: list[ToolSpec]) -> list[dict[str, Any]]:
    return [
        {
            "type": "function",
            "function": {"name": spec.name, "description": spec.description, "parameters": spec.parameters},
        }
        for spec in specs
    ]
