"""The tools of the demonstration. They touch nothing outside its folder: what a shop or a server says is in them."""

import asyncio
import csv
from pathlib import Path
from typing import Any

from ripstop.performers.tools.toolbox import tool
from ripstop.runtime.performers import Refused

DEPLOYMENT = 4.0
"""Seconds."""
BATCH = 5
"""Rows that one call imports."""
COLUMNS = 4

ORDERS = {
    "A-20931": "已于周三发出，目前在上海分拣中心，预计周五送达",
    "B-11760": "packed; the carrier collects it this afternoon",
    "B-11802": "delivered on Tuesday, signed for by a neighbour",
    "C-30418": "in production: the oak lid is made to order and leaves in nine days",
}


@tool("pure")
def release_checks(release: int) -> dict[str, Any]:
    """Run the checks of a release and say how they went."""
    return {"release": release, "tests": "214 of 214", "migrations": "none", "size": "3.1 MB"}


@tool("unsafe")
async def deploy(release: int, to: str) -> str:
    """Put a release into service."""
    await asyncio.sleep(DEPLOYMENT)
    return f"release {release} serves {to}"


@tool("pure")
def order_status(order: str) -> str:
    """Look up an order and say where it is."""
    if order not in ORDERS:
        raise Refused(f"There is no order {order!r}. Ask the customer for the number again.", fault="agent")
    return ORDERS[order]


@tool("keyed")
def reschedule(order: str, day: str, key: str) -> str:
    """Ask the carrier to deliver an order on another day."""
    if day.casefold() in ("saturday", "sunday", "周六", "周日"):
        raise Refused(f"The carrier takes no booking for {day} ({order}): it is closed at weekends.", fault="agent")
    return f"{order} comes on {day}; the carrier's number is {key[-4:]}"


@tool("pure")
def import_rows(file: str, after: int) -> dict[str, Any]:
    """Read the next rows of a file with old orders; stops before a row that is not whole."""
    with Path(file).open(encoding="utf-8", newline="") as opened:
        rows = list(csv.reader(opened))[1:]
    wanted = rows[after : after + BATCH]
    whole = next((n for n, row in enumerate(wanted) if len(row) != COLUMNS), len(wanted))
    return {"imported": whole, "left": len(rows) - after - whole}


TOOLS = (release_checks, deploy, order_status, reschedule, import_rows)
