"""A bank for runs whose journal is lost and restored: what was asked of it, by every kind of tool, and what it did.

- `pay` (keyed): the bank acts once per key, whatever the amount, and says "paid" to a key that it knows.
- `book` (probeable): the bank can be asked whether a key was booked.
- `wire` (unsafe): the bank acts each time.

The files say what was done: a line for each thing that the bank did, and one for each request that it took for a
repetition. The purpose of a payment is in its arguments, so both can be compared with what was meant.
"""

import json
from collections import Counter
from pathlib import Path

TOOLS = """\
import json
import os
import time
from pathlib import Path

import ripstop
from ripstop import ToolContext

BANK = Path(os.environ["BANK"])


def told() -> list[dict[str, str]]:
    return [json.loads(line) for line in BANK.read_text().splitlines()]


def act(tool: str, purpose: str, key: str) -> str:
    known = next((one for one in told() if tool == "pay" and one["key"] == key and one["did"]), None)
    with BANK.open("a") as bank:
        bank.write(json.dumps({"tool": tool, "purpose": purpose, "key": key, "did": "" if known else "1"}) + "\\n")
    time.sleep(0.05)
    return "paid"


@ripstop.tool("keyed")
def pay(purpose: str, key: str) -> str:
    "Pay an amount."
    return act("pay", purpose, key)


def booked(purpose: str, context: ToolContext) -> str | None:
    return "booked" if any(one["tool"] == "book" and one["key"] == context.key for one in told()) else None


@ripstop.tool("probeable", probe=booked)
def book(purpose: str, context: ToolContext) -> str:
    "Book an amount."
    return act("book", purpose, context.key)


@ripstop.tool("unsafe")
def wire(purpose: str) -> str:
    "Wire an amount."
    return act("wire", purpose, "")
"""


class Bank:
    """What the bank has done."""

    def __init__(self, file: Path) -> None:
        self._file = file

    @property
    def done(self) -> Counter[str]:
        """How often it acted, by the purpose."""
        return Counter(one["purpose"] for one in self._requests() if one["did"])

    @property
    def denied(self) -> list[str]:
        """Purposes for which it said "paid" and did nothing, because another payment had this key."""
        requests = self._requests()
        by_key = {(one["tool"], one["key"]): one["purpose"] for one in reversed(requests) if one["did"]}
        return [
            one["purpose"] for one in requests if not one["did"] and by_key[one["tool"], one["key"]] != one["purpose"]
        ]

    def _requests(self) -> list[dict[str, str]]:
        return [json.loads(line) for line in self._file.read_text(encoding="utf-8").splitlines()]
