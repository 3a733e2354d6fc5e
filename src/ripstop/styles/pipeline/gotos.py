"""The way back: an agent asks for a restart at an earlier stage."""

from typing import Any

from ripstop.kernel.step import Step

from .definition import MAX_GOTOS
from .events import GotoRequested
from .state import PipelineState

GOTO = "goto_stage"
"""The tool that agents go back with."""


def note_goto(step: Step[PipelineState], deeds: list[tuple[str, Any]]) -> None:
    """Record the restart that the agent of a turn has asked for last, if it did."""
    calls = [arguments for tool, arguments in deeds if tool == GOTO]
    if not calls:
        return
    wanted, reason = str(calls[-1].get("stage", "")), str(calls[-1].get("reason", ""))
    stage, pipeline = step.state.stage, step.state.definition
    goto = next((name for name in pipeline.restartable if name.casefold() == wanted.strip().casefold()), wanted)
    if goto not in pipeline.restartable or pipeline.index(goto) >= pipeline.index(stage):
        step.warn(f"{stage!r} asked for a restart at {goto!r}, which is not an earlier stage")
        return
    jumps = pipeline.auto_goto and step.state.gotos < MAX_GOTOS
    step.record(GotoRequested(stage=stage, goto=goto, reason=reason, jumps=jumps))
