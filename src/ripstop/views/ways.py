"""How a run can be continued, as data that a face turns into a command or a button."""

from typing import Any

from ripstop.kernel.resuming import Way


def way(one: Way) -> dict[str, Any]:
    """A way to continue."""
    more = {"raise": one.raises, "at": one.at, "stage": one.stage, "accept_edits": one.accept_edits}
    return {"action": one.action, **{name: value for name, value in more.items() if value}}
