"""The OpenAI chat format, in which llama.cpp and most servers are spoken to: requests out, chunks in."""

import json
from typing import Any

from ripstop.kernel.effects import AgentReplied, ToolCall, Usage
from ripstop.kernel.prompt import Message, Prompt
from ripstop.performers.tools.spec import ToolSpec
from ripstop.runtime.ports import TryAgain


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


class _PartOfCall:
    def __init__(self) -> None:
        self.id = ""
        self.tool = ""
        self.arguments = ""


class Reply:
    """A reply as it comes in, chunk by chunk."""

    def __init__(self) -> None:
        self.text = ""
        self.finish = ""
        """Why it ended: `stop`, `length`, `tool_calls`; empty while it has not."""
        self.usage = Usage()
        self._calls: dict[int, _PartOfCall] = {}

    def add(self, chunk: dict[str, Any]) -> str:
        """Take a chunk in; returns the text that is new in it."""
        usage = chunk.get("usage")
        if usage:
            self.usage = Usage(
                input_tokens=usage.get("prompt_tokens") or 0, output_tokens=usage.get("completion_tokens") or 0
            )
        new = ""
        for choice in chunk.get("choices") or ():
            said = choice.get("delta") or choice.get("message") or {}
            new += said.get("content") or ""
            for position, part in enumerate(said.get("tool_calls") or ()):
                self._add_call(part.get("index", position), part)
            self.finish = choice.get("finish_reason") or self.finish
        self.text += new
        return new

    def _add_call(self, index: int, part: dict[str, Any]) -> None:
        call = self._calls.setdefault(index, _PartOfCall())
        function = part.get("function") or {}
        call.id = part.get("id") or call.id
        call.tool = call.tool or function.get("name") or ""
        call.arguments += function.get("arguments") or ""

    def answer(self) -> AgentReplied:
        calls = tuple(
            ToolCall(id=call.id or f"call_{index}", tool=call.tool, arguments=_arguments(call))
            for index, call in sorted(self._calls.items())
        )
        return AgentReplied(text=self.text, calls=calls, usage=self.usage)


def _arguments(call: _PartOfCall) -> dict[str, Any]:
    try:
        found = json.loads(call.arguments or "{}")
    except ValueError as error:
        raise TryAgain(f"The agent called {call.tool!r} with arguments that are not JSON ({error}).") from error
    if not isinstance(found, dict):
        raise TryAgain(f"The agent called {call.tool!r} with {found!r} instead of an object of arguments.")
    return found
