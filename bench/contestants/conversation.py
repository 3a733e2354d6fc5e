"""The conversation that every contestant has: a shop's assistant, a model that takes 50 ms, thousands of users.

- Closed loop: every user sends the next message as soon as the last one was answered.
- Open loop: messages come at a steady rate, whether or not earlier ones were answered. How late an answer is counts
  from when its message was to be sent, so a sender that is held up by the one before hides nothing.
- A message is answered when its answer is durable.
Standard library only: two environments use it.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from statistics import quantiles
from typing import Any

from .work import Figures

DELAY = 0.050
"""Seconds that the model takes."""
ANSWER = "Your order is on its way: the parcel left our warehouse on Monday, and should be with you in two days."
SOP = """\
1. Find out what the customer wants: an order, a refund, a size, or something about the shop.
2. An order: ask for its number if it is not known, look it up, and say where it is.
3. A refund: look the order up first. Only an order that has been delivered can be refunded.
4. If the customer asks for a person, or is still unhappy after two answers, hand over.
5. If the customer says goodbye, close the conversation."""
CONSTRAINTS = "Never promise a date that is not in the result of a tool. Never ask for card numbers or passwords."
IDLE = ((300.0, "Are you still there?"), (600.0, "I am closing this chat for now."))
"""The two-step rule: seconds without a message, and what is said then."""

Tell = Callable[[int, str], Awaitable[Any]]
"""Sends a session a message, and returns when the answer is durable."""


def question(session: int, turn: int) -> str:
    return f"Message {turn} of {session}: where is my order?"


async def closed_loop(tell: Tell, sessions: int, messages: int) -> Figures:
    async def user(session: int) -> None:
        for turn in range(messages):
            await tell(session, question(session, turn))

    used, began = time.process_time(), time.perf_counter()
    await asyncio.gather(*(user(session) for session in range(sessions)))
    seconds, count = time.perf_counter() - began, sessions * messages
    return {"messages_per_second": count / seconds, "cpu_per_message": (time.process_time() - used) / count}


async def open_loop(tell: Tell, sessions: int, rate: float, seconds: float) -> Figures:
    """Figures of how long answers took beyond what the model takes."""
    late: list[float] = []

    async def ask(session: int, turn: int, due: float) -> None:
        await tell(session, question(session, turn))
        late.append(time.perf_counter() - due - DELAY)

    count, asked = int(rate * seconds), set()
    used, began = time.process_time(), time.perf_counter()
    for number in range(count):
        due = began + number / rate
        pause = due - time.perf_counter()
        if pause > 0:
            await asyncio.sleep(pause)
        asked.add(asyncio.ensure_future(ask(number % sessions, number // sessions + 1_000, due)))
    await asyncio.gather(*asked)
    cuts = quantiles(late, n=100)
    return {
        "p50": cuts[49],
        "p99": cuts[98],
        "most": max(late),
        "cpu_share": (time.process_time() - used) / (time.perf_counter() - began),
        "messages": len(late),
    }


async def measured_open(tell: Tell, sessions: int, rate: float, seconds: float) -> Figures:
    """The open loop, once every session has begun."""
    await closed_loop(tell, sessions, 1)
    return await open_loop(tell, sessions, rate, seconds)
