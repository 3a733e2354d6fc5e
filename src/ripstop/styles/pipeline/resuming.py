"""How a pipeline continues after a stop: it takes its last step again.

The style's own tools can be repeated. A turn in which an agent called tools continues behind them: begun again, it
could do things twice. Any other turn begins again.
"""

from ripstop.kernel.effects import CallTool
from ripstop.kernel.step import Step

from .. import turn as turns
from . import flow
from .state import PipelineState
from .tool_calls import BEGIN, CHECK, CLOSE, FINISH, OPEN

_TOOL_OF = {"open": OPEN, "begin": BEGIN, "facts": CHECK, "verify": CHECK, "close": CLOSE}


def resume(step: Step[PipelineState]) -> None:
    state, phase = step.state, step.state.phase
    if phase in ("draft", "formal", "critic"):
        _resume_turn(step)
    elif phase in _TOOL_OF:
        step.ask(CallTool(tool=_TOOL_OF[phase]))
    elif phase == "write_draft":
        flow.write(step, "draft")
    elif phase == "reset":
        flow.write(step, "reset")
    elif phase == "review":
        flow.ask_review(step)
    elif phase == "answer":
        flow.write(step, "answer")
    else:
        assert phase == "finish", state.phase
        step.ask(CallTool(tool=FINISH, arguments=flow.report_cost(step)))


def _resume_turn(step: Step[PipelineState]) -> None:
    state, turn = step.state, step.state.turn
    if turn is not None and turn.has_operations:
        finished = turns.resume(step, turn, flow.tools_for(state))
        if finished:
            flow.after_turn(step, finished)
        return
    if turn is not None:
        step.restart_turn(turn.number)
    if state.phase == "critic":
        flow.ask_critic(step)
    elif state.phase == "formal" and state.here.workflow:
        flow.start_workflow(step)
    else:
        flow.ask_actor(step)
