"""How a run is or has ended: its summary, and the exit code that says the same."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ripstop.runtime.engine import Engine, View

EXIT = {"completed": 0, "failed": 1, "limit": 3, "stopped": 3, "restart": 5, "stuck": 1}
WAITING = 4
GRACE = 3.0
"""Seconds that calls under way get to finish when the process is interrupted."""


def exit_code(status: str) -> int:
    """The exit code of a command that followed a run until it settled: `working` waits for another process."""
    return WAITING if status in ("waiting", "listening", "working") else EXIT[status]


async def seen_status(engine: "Engine", run_id: str, status: str) -> str:
    """The status of a run as people see it, with regard to whether anybody works on it."""
    from ripstop.views import shown_status

    return shown_status(status, await engine.has_workers(), run_id in await engine.left_waiting())


async def summary(engine: "Engine", view: "View") -> dict[str, Any]:
    """How a run is, as `--json` prints it: with its ways to continue as commands, too."""
    from ripstop.views import run_document

    document = await run_document(engine, view)
    if "guard" in document:
        document["guard"]["ways_on"] = [way_command(view.run.id, way) for way in document["guard"]["ways"]]
    if "ways" in document:
        document["ways_on"] = [way_command(view.run.id, way) for way in document["ways"]]
    return document


def way_command(run_id: str, way: dict[str, Any]) -> str:
    """A way to continue, as a command."""
    if way["action"] == "fork":
        return f"ripstop fork {run_id}" + (f" --at {way['at']}" if "at" in way else "")
    if way["action"] == "restart":
        return f"ripstop modify --from {way['stage']}"
    raises = "".join(f" --raise {name}={amount:g}" for name, amount in way.get("raise", {}).items())
    accept = " --accept-edits" if way.get("accept_edits") else ""
    return f"ripstop resume {run_id}{raises}{accept}"
