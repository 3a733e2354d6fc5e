"""The tools of the shop assistant. A real shop would ask its own system here."""

import ripstop

ORDERS = {
    "1001": "on its way; the parcel left the warehouse on Monday",
    "1002": "delivered on Friday",
    "1003": "being packed",
}
REFUNDS: dict[str, tuple[str, str]] = {}
"""The number and the reason of every request, by idempotency key."""


@ripstop.tool("pure")
def order_status(order: str) -> str:
    "Look up an order and say where it is."
    if order not in ORDERS:
        raise ripstop.Refused(f"There is no order {order!r}. Ask the customer for the number again.", fault="agent")
    return ORDERS[order]


@ripstop.tool("keyed")
def request_refund(order: str, reason: str, key: str) -> str:
    "Ask the shop to pay an order back. Returns the number of the request."
    if not ORDERS.get(order, "").startswith("delivered"):
        raise ripstop.Refused(f"The order {order!r} has not been delivered, so it cannot be refunded.", fault="agent")
    number, _ = REFUNDS.setdefault(key, (f"R-{order}", reason))  # called again with the same key, nothing else happens
    return number
