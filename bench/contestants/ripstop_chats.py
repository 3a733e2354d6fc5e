"""ripstop: sessions of a bot through `Chats`, with an `App` as the HTTP face uses it, and its SQLite journal.

The model is a script (`script:PATH`) whose every reply takes 50 ms. Commands at a time are as many as sessions: the
model is not on this machine, so nothing is gained by letting its users wait.
"""

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from ripstop.app.application import App
from ripstop.app.settings.settings_file import Models, Settings
from ripstop.engine.live import Appended, LiveEvent
from ripstop.kernel.events import Heard
from ripstop.styles.conversation.chats import Chats
from ripstop.styles.conversation.events import StatusChanged

from .conversation import ANSWER, CONSTRAINTS, DELAY, IDLE, SOP, closed_loop, measured_open, question
from .work import Figures, bytes_in, main, resident

CONCURRENCY = 1000


def write_bot(folder: Path, replies: int) -> Path:
    """A bot and the script that it is answered by."""
    config = {
        "name": "Mina",
        "tone": "warm, brief and concrete",
        "greeting": "Hello! I am Mina. How can I help?",
        "sop": SOP,
        "constraints": CONSTRAINTS,
        "tools": [{"name": "order_status", "description": "Look up an order.", "parameters": {"type": "object"}}],
        "timers": [{"delay": seconds, "message": text} for seconds, text in IDLE],
    }
    decision = {"reasoning": "The order is known.", "next_status": "typing", "action": None, "response": ANSWER}
    plan = {"plan": {"name": "Mina", "tone": "warm", "sop": SOP, "constraints": CONSTRAINTS}, "decision": decision}
    lines = [{"agent": "planner", "reply": json.dumps(plan), "delay": DELAY}]
    lines += [{"agent": "assistant", "reply": json.dumps(decision), "delay": DELAY}] * replies
    (folder / "script.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    bot = folder / "mina"
    bot.mkdir()
    (bot / "bot.yaml").write_text(json.dumps(config), encoding="utf-8")
    return bot


class Answers:
    """Tells senders when their session is ready again."""

    def __init__(self, chats: Chats, bot: Path) -> None:
        self._chats = chats
        self._bot = bot
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}
        chats.app.live.watch(self._seen)

    async def tell(self, session: int, text: str) -> None:
        answered = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(f"chat:mina:{session}", []).append(answered)
        await self._chats.tell(self._bot, str(session), text, id=text)
        await answered

    def _seen(self, event: LiveEvent) -> None:
        if not isinstance(event, Appended) or event.run_id not in self._waiting:
            return
        if any(isinstance(one.event, StatusChanged) and one.event.status == "ready" for one in event.records):
            for waiting in self._waiting.pop(event.run_id):
                waiting.set_result(None)


def with_chats(folder: Path, replies: int, work: Callable[[Chats, Path], Awaitable[Figures]]) -> Figures:
    os.environ["XDG_STATE_HOME"] = os.environ["XDG_CONFIG_HOME"] = str(folder / "home")
    os.chdir(folder)
    bot = write_bot(folder, replies)
    settings = Settings(
        store=f"sqlite:{folder / 'journal.db'}",
        concurrency=CONCURRENCY,
        models=Models(default=f"script:{folder / 'script.jsonl'}"),
    )

    async def inside() -> Figures:
        async with App(settings) as app:
            return await work(Chats(app), bot)

    return asyncio.run(inside())


async def _check(chats: Chats, session: int, messages: int) -> None:
    """Every message was heard and answered, in the order in which they were sent."""
    records = await chats.app.engine.journal.read(f"chat:mina:{session}")
    heard = [one.event.text for one in records if isinstance(one.event, Heard)]
    assert heard == [question(session, turn) for turn in range(messages)], heard
    ready = sum(isinstance(one.event, StatusChanged) and one.event.status == "ready" for one in records)
    assert ready == messages, (session, ready)


def closed(folder: Path, sessions: int, messages: int) -> Figures:
    async def work(chats: Chats, bot: Path) -> Figures:
        figures = await closed_loop(Answers(chats, bot).tell, sessions, messages)
        for session in range(sessions):
            await _check(chats, session, messages)
        assert not await chats.app.engine.journal.verify()
        return figures

    figures = with_chats(folder, messages + 5, work)
    return {**figures, "bytes": bytes_in(folder)}


def open_(folder: Path, sessions: int, rate: float, seconds: float) -> Figures:
    async def work(chats: Chats, bot: Path) -> Figures:
        return await measured_open(Answers(chats, bot).tell, sessions, rate, seconds)

    return with_chats(folder, int(rate * seconds / sessions) + 10, work)


def idle(folder: Path, sessions: int, seconds: float) -> Figures:
    async def work(chats: Chats, bot: Path) -> Figures:
        tell = Answers(chats, bot).tell
        for first in range(0, sessions, 1000):
            await asyncio.gather(*(tell(n, question(n, 0)) for n in range(first, min(first + 1000, sessions))))
        await asyncio.sleep(1)
        used = time.process_time()
        await asyncio.sleep(seconds)
        share = (time.process_time() - used) / seconds
        return {"sessions": sessions, "resident": resident(), "cpu_share": share}

    return with_chats(folder, 5, work)


if __name__ == "__main__":
    main({"chats": closed, "chats-open": open_, "chats-idle": idle})
