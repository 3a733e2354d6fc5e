"""A model server for `outages`: a process of its own on loopback, in OpenAI's protocol, that can be taken away.

- It answers from the prompt alone, so it does not matter how often it was restarted: an order has to be paid in four
  steps, and the receipts in the prompt say which of them are done.
- `mode.json` in its folder says how it behaves: `each` answers for every order, then calls hang as those of a slow
  model do, or `refuse` (`reset`, `503` or `429`) for all.
- Every request leaves lines in `served.jsonl`, before anything is sent: that it came, and what became of it. Nothing
  that knows the journal writes it.

    python -m tests.harness.outage_server FOLDER PORT
"""

import asyncio
import contextlib
import json
import os
import re
import socket
import struct
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

STYLES = ("graph", "conversation", "pipeline", "blackboard", "handoff")
STEPS = (("pay", "deposit"), ("book", "deposit"), ("pay", "rest"), ("book", "rest"))
"""The calls of every order: `pay` must not be repeated blindly, `book` is keyed."""
ORDER = re.compile(r"ORDER-(\d+)-([a-z]+)")
POLL_INTERVAL = 0.02
RETRY_AFTER = 2


class Mode(Struct, frozen=True):
    each: int = 1_000
    """Answers for every order since the beginning; further calls hang until the mode changes."""
    refuse: str = ""


class Served(Struct, frozen=True, omit_defaults=True):
    """A line about a request."""

    request: str
    order: str
    became: str
    """`asked`, then `answered`, `refused` or `dropped` (the worker was gone); nothing more: this process was gone."""


def receipt(tool: str, part: str, order: str) -> str:
    return f"receipt:{tool}:{part}:{order}"


def order_name(number: int) -> str:
    return f"ORDER-{number}-{STYLES[number % len(STYLES)]}"


def served_in(folder: Path) -> list[Served]:
    path = folder / "served.jsonl"
    return [msgspec.json.decode(line, type=Served) for line in path.read_bytes().splitlines()] if path.exists() else []


def set_mode(folder: Path, mode: Mode) -> None:
    new = folder / "mode.new"
    new.write_bytes(msgspec.json.encode(mode))
    new.replace(folder / "mode.json")


# What the model says


def _missing(order: str, text: str) -> tuple[str, str] | None:
    """The first step that has no receipt in the prompt."""
    return next((step for step in STEPS if receipt(*step, order) not in text), None)


def _says(content: str) -> dict[str, Any]:
    return {"content": content}


def _calls(tool: str, part: str, order: str) -> dict[str, Any]:
    function = {"name": tool, "arguments": json.dumps({"order": order, "part": part})}
    return {"content": None, "tool_calls": [{"index": 0, "id": f"{tool}-{part}", "function": function}]}


def _decides(status: str, response: str | None, action: Any = None) -> dict[str, Any]:
    return {"next_status": status, "response": response, "action": action}


def _in_chat(order: str, text: str, plans: bool) -> dict[str, Any]:
    step = _missing(order, text)
    decision = _decides("typing", f"{order} is paid.")
    if step:
        action = {"type": "TOOL", "target": step[0], "params": {"order": order, "part": step[1]}}
        decision = _decides("processing", None, action)
    if not plans:
        return _says(json.dumps(decision))
    plan = {"name": "Cashier", "tone": "calm", "greeting": "Hello.", "sop": "Pay.", "timers": None, "constraints": ""}
    return _says(json.dumps({"plan": plan, "decision": decision}))


def reply_to(body: dict[str, Any], order: str, style: str) -> dict[str, Any]:
    """What the model says to a prompt."""
    text = json.dumps(body["messages"], ensure_ascii=False)
    settled = _says(json.dumps({"content": f"{order} is settled.", "decisions": {"done": True}}))
    if any(one["function"]["name"] == "pay" for one in body.get("tools", ())):
        step = _missing(order, text)
        if step:
            return _calls(*step, order)
        if style == "blackboard":
            return _says(f"iteration: 1\nVerdict: OK\nBlockers: none\n{order} is settled.")
        if style == "pipeline":
            return _says(f"{order} is settled.")
        return settled
    if style == "graph":
        return settled
    if style == "conversation":
        return _in_chat(order, text, plans='"plan"' in json.dumps(body.get("response_format")))
    if style == "handoff":
        decides = {"action": "pass", "to": "cashier", "next_action": f"Pay {order}.", "result": ""}
        if f"{order} is settled." in text:
            decides = {"action": "complete", "to": "", "next_action": "", "result": "It is paid."}
        return _says(json.dumps({"content": "I have looked at it.", "decisions": decides}))
    next_agent = "FINISH" if f"{order} is settled." in text else "CASHIER"
    return _says(json.dumps({"next_agent": next_agent, "reason": order, "task": f"Pay {order}."}))


# The server


class ModelServer:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._log = os.open(folder / "served.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        served = served_in(folder)
        self._requests = sum(one.became == "asked" for one in served)
        self._given = Counter(one.order for one in served if one.became == "answered")

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            body = json.loads(await reader.readexactly(int(head.partition("content-length:")[2].split("\r\n")[0])))
            await self._serve(body, reader, writer)
        writer.close()

    async def _serve(self, body: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        found = ORDER.search(json.dumps(body["messages"]))
        assert found, body
        self._requests += 1
        request, order, style = f"{self._requests}", found[0], found[2]
        self._note(request, order, "asked")
        mode = await self._turn(order, reader)
        if mode is None:
            self._note(request, order, "dropped")
        elif mode.refuse:
            self._note(request, order, "refused")
            await self._refuse(mode.refuse, writer)
        else:
            self._given[order] += 1
            self._note(request, order, "answered")
            message = reply_to(body, order, style)
            finish = "tool_calls" if "tool_calls" in message else "stop"
            usage = {"prompt_tokens": 10, "completion_tokens": 10}
            await _send(writer, "200 OK", {"choices": [{"message": message, "finish_reason": finish}], "usage": usage})

    async def _turn(self, order: str, reader: asyncio.StreamReader) -> Mode | None:
        """Wait until the order is answered or refused; `None`: the worker is gone."""
        while True:
            mode = msgspec.json.decode((self._folder / "mode.json").read_bytes(), type=Mode)
            if mode.refuse or self._given[order] < mode.each:
                return mode
            if reader.at_eof():
                return None
            await asyncio.sleep(POLL_INTERVAL)

    async def _refuse(self, how: str, writer: asyncio.StreamWriter) -> None:
        if how == "reset":
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            return writer.transport.abort()
        more = f"Retry-After: {RETRY_AFTER}\r\n" if how == "429" else ""
        await _send(writer, f"{how} No", {"error": {"message": "not now"}}, more)

    def _note(self, request: str, order: str, became: str) -> None:
        os.write(self._log, msgspec.json.encode(Served(request, order, became)) + b"\n")


async def _send(writer: asyncio.StreamWriter, status: str, body: Any, more: str = "") -> None:
    data = json.dumps(body).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n{more}"
    writer.write(f"{head}Connection: close\r\n\r\n".encode() + data)
    await writer.drain()


async def serve(folder: Path, port: int) -> None:
    server = await asyncio.start_server(ModelServer(folder).handle, "127.0.0.1", port)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), int(sys.argv[2])))
