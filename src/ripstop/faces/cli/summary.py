"""How a run stands or has ended: its summary, and the exit code that says the same."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ripstop.kernel.run import Run
    from ripstop.runtime.engine import Engine, View

EXIT = {"completed": 0, "failed": 1, "limit": 3, "stopped": 3, "restart": 5, "transferred": 4, "stuck": 1}
WAITING = 4
GRACE = 3.0
"""Seconds that calls under way get to finish when the process is interrupted."""


def exit_code(status: str) -> int:
    """The exit code of a command that followed a run until it settled."""
    return WAITING if status in ("waiting", "listening") else EXIT[status]


def _guard_of(run: "Run[Any]") -> dict[str, Any]:
    """The guard that stopped a run, if one did, with its evidence and how the run can go on."""
    from ripstop.kernel.resuming import ways_on

    if run.verdict is None:
        return {}
    verdict = run.verdict
    shown = {
        "name": verdict.guard,
        "text": verdict.text,
        "evidence": list(verdict.evidence),
        "progress": verdict.progress or None,
        "ways_on": ways_on(run.id, verdict),
    }
    return {"guard": shown}


async def summary(engine: "Engine", view: "View") -> dict[str, Any]:
    """How a run stands, as `--json` prints it."""
    from ripstop.kernel.events import Warned
    from ripstop.runtime.timeline import path, timeline, ways_after_failure

    run = view.run
    story = await timeline(engine, run.id)
    usage = run.spent.usage
    ways = ways_after_failure(engine, story)
    questions = [q for q in await engine.desk() if q.run_id == run.id or q.run_id.startswith(f"{run.id}.")]
    return {
        "run": run.id,
        "style": run.started.style,
        "outcome": view.status,
        "because": run.ended.because if run.ended else "",
        "turns": run.spent.turns,
        "path": path(engine, story),
        "usage": {
            "calls": run.spent.calls,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "money": usage.money,
        },
        "waiting": [
            {
                "id": f"{q.run_id}/{q.number}",
                "question": q.command.question,
                "choices": list(q.command.choices),
            }
            for q in questions
        ],
        "warnings": [one.record.event.text for one in story if isinstance(one.record.event, Warned)],
        **_guard_of(run),
        **({"ways_on": ways} if ways else {}),
    }
