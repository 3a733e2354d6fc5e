"""What is killed in `conversation_crash`: `ripstop serve` with two bots, tools that leave traces, and their users.

- `calm`: every user waits for an answer before the next message. The decisions call tools of every kind, break the
  contract once, act silently, and hand over at the end.
- `hasty`: users send two messages at a time, so that passes are superseded.
- Timers are short, and users pause now and then, so that some fire and some are withdrawn.
- Tools append to `effects.jsonl` before they return; nothing that knows the journal writes it.
"""

import asyncio
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import msgspec
from msgspec import Struct, field

DELAY = 0.02
"""Seconds that the model takes."""
TIMER = 1.0
PAUSE = 1.3
"""Seconds that a user pauses now and then: longer than the timer."""
WAIT = 5
"""Seconds that a request waits for its answer."""
RETRY = 0.2
ANSWERS = ("answer", "apology", "transfer")
"""Kinds of messages that answer a user."""
CALLED = ("look_up", "pay", "note", "ring")
"""The tools."""
TIMER_WORDS = "Are you still there?"

TOOLS = """
import json, os, ripstop, time
from ripstop.tools.toolbox import ToolContext

def done(kind, context):
    time.sleep(0.05)  # so that it is killed before its effect …
    line = {"kind": kind, "key": context.key, "attempt": context.attempt}
    file = os.open("effects.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.write(file, json.dumps(line).encode() + b"\\n")
    os.fsync(file)
    os.close(file)
    time.sleep(0.05)  # … and after it
    return f"{kind} done"

@ripstop.tool("pure")
def look_up(context: ToolContext) -> str:
    "Look something up."
    return done("pure", context)

@ripstop.tool("keyed")
def pay(context: ToolContext) -> str:
    "Pay. The other side knows the key."
    return done("keyed", context)

@ripstop.tool("keyed")
def note(context: ToolContext) -> str:
    "Make a note. The user does not see it."
    return done("keyed", context)

@ripstop.tool("unsafe")
def ring(context: ToolContext) -> str:
    "Ring a bell."
    return done("unsafe", context)
"""


class ToolEffect(Struct, frozen=True):
    """A trace that a tool was really at work."""

    kind: str
    key: str
    attempt: int


def effects_in(folder: Path) -> list[ToolEffect]:
    path = folder / "effects.jsonl"
    lines = path.read_bytes().splitlines() if path.exists() else []
    return [msgspec.json.decode(line, type=ToolEffect) for line in lines]


def _decides(status: str, response: str | None = None, action: Any = None) -> dict[str, Any]:
    return {"next_status": status, "response": response, "action": action}


def _calls(kind: str, target: str) -> dict[str, Any]:
    return {"type": kind, "target": target, "params": {}}


def _plan() -> dict[str, Any]:
    return {"plan": {"name": "Bot", "tone": "calm", "sop": "Help."}, "decision": _decides("typing", "Planned.")}


CALM = [
    _decides("typing", "Hello to you."),
    _decides("processing", None, _calls("TOOL", "look_up")),
    _decides("typing", "I looked it up."),
    _decides("processing", "One moment.", _calls("TOOL", "pay")),
    _decides("typing", "It is paid."),
    _decides("processing", None, _calls("TOOL", "ring")),
    _decides("typing", "The bell has rung."),
    _decides("typing", "Noted.", _calls("SYSTEM", "note")),
    {"next_status": "dancing"},
    {"next_status": "dancing"},  # asked again, it is no better: the user gets the apology
    _decides("transferred", "A colleague takes over.", _calls("SYSTEM", "handoff")),
]
MESSAGES = {"calm": 7, "hasty": 8}
"""Of one user."""


def write_world(folder: Path) -> None:
    folder.mkdir()
    (folder / "bell_tools.py").write_text(TOOLS, encoding="utf-8")
    scripts = {"calm": CALM, "hasty": [_decides("typing", f"Answer {number}.") for number in range(60)]}
    for name, decisions in scripts.items():
        lines = [{"agent": "planner", "reply": json.dumps(_plan()), "delay": 0.2}]
        lines += [{"agent": "assistant", "reply": json.dumps(one), "delay": DELAY} for one in decisions]
        script = folder / f"{name}.jsonl"
        script.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
        config = {
            "name": name,
            "greeting": "Welcome!",
            "sop": "Help.",
            "tools": [{"name": tool, "description": tool} for tool in CALLED],
            "system_actions": ["note"],
            "timers": [{"delay": TIMER, "message": TIMER_WORDS}],
            "options": {"model": f"script:{script}"},
        }
        (folder / name).mkdir()
        (folder / name / "bot.yaml").write_text(json.dumps(config), encoding="utf-8")


class Server:
    """`ripstop serve` in a folder."""

    def __init__(self, folder: Path, failpoint: str = "") -> None:
        around = {name: value for name, value in os.environ.items() if name != "RIPSTOP_FAILPOINT"}
        home = str(folder.with_name(f"home-of-{folder.name}"))
        around |= {"HOME": home, "XDG_STATE_HOME": home, "XDG_CONFIG_HOME": home, "RIPSTOP_TOKEN": "t" * 40}
        around["PYTHONPATH"] = f"{folder}:{os.environ.get('PYTHONPATH', '')}"
        if failpoint:
            around["RIPSTOP_FAILPOINT"] = failpoint
        named = [*sorted(MESSAGES), "--port", "0", "--json"]
        with (folder / "stderr.txt").open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "ripstop", "--tools", "bell_tools", "serve", *named],
                cwd=folder,
                env=around,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
            )

    async def ready(self) -> str:
        """Where it listens; empty if it died before that."""
        assert self.process.stdout is not None
        line = await asyncio.to_thread(self.process.stdout.readline)
        return str(json.loads(line)["address"]) if line else ""

    def end(self, number: int) -> int:
        """Send it a signal; returns how it ended."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(60)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


class User(Struct):
    """Somebody who talks to a bot, whatever happens to its process."""

    bot: str
    name: str
    chance: random.Random
    sent: int = 0
    """Messages that were answered, or, of a hasty user, sent."""

    @property
    def is_done(self) -> bool:
        return self.sent >= MESSAGES[self.bot]

    def ids(self) -> list[str]:
        """The messages to send next, at the same time."""
        together = 2 if self.bot == "hasty" else 1
        return [f"{self.name}-{number}" for number in range(self.sent, min(self.sent + together, MESSAGES[self.bot]))]

    async def talk(self, client: httpx2.AsyncClient, dead: asyncio.Event) -> None:
        """Until all is said, or the server is `dead`."""
        while not self.is_done and not dead.is_set():
            ids = self.ids()
            for id in ids[:-1]:
                await self._tell(client, id, 0)
            while not await self._tell(client, ids[-1], WAIT):
                await _pause(RETRY, dead)
            self.sent += len(ids)
            if self.chance.random() < 0.25:
                await _pause(PAUSE, dead)

    async def _tell(self, client: httpx2.AsyncClient, id: str, wait: int) -> bool:
        """Send a message, again if need be; whether it is answered."""
        path = f"/conversations/{self.bot}/{self.name}/messages"
        query = {"wait": wait} if wait else None
        answer = await client.post(path, json={"text": f"Message {id}", "id": id}, params=query)
        if answer.status_code in (429, 503):
            return False
        assert answer.status_code in (200, 202), (answer.status_code, answer.text)
        said = answer.json().get("messages", [])
        return not wait or any(one["kind"] in ANSWERS for one in said)


class World(Struct):
    folder: Path
    users: list[User] = field(default_factory=list)

    @property
    def is_done(self) -> bool:
        return all(user.is_done for user in self.users)

    async def talk(self, address: str, dead: asyncio.Event) -> None:
        """Everybody talks until all is said, or the server is `dead`."""
        headers = {"authorization": f"Bearer {'t' * 40}"}
        limits = httpx2.Limits(max_connections=200)
        async with httpx2.AsyncClient(base_url=address, headers=headers, timeout=60, limits=limits) as client:
            await asyncio.gather(*(self._survive(user, client, dead) for user in self.users))

    async def _survive(self, user: User, client: httpx2.AsyncClient, dead: asyncio.Event) -> None:
        with suppress(httpx2.TransportError):  # the server was killed; this user goes on with the next one
            await user.talk(client, dead)


async def _pause(seconds: float, dead: asyncio.Event) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await dead.wait()


def make_world(folder: Path, users: int, chance: random.Random) -> World:
    write_world(folder)
    return World(folder, list(_users(users, chance)))


def _users(count: int, chance: random.Random) -> Iterator[User]:
    for number in range(count):
        bot = "hasty" if number % 3 == 2 else "calm"
        yield User(bot, f"{bot}-{number}", random.Random(chance.random()))
