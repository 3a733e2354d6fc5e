"""How a run on a board continues after a stop.

A turn in which an agent called tools continues behind them: begun again, it could do things twice. If its report was
refused, the report is checked once more, because a person may have mended it on disk; then the agent is told what is
wrong with it. Any other turn begins again.
"""

from msgspec.structs import replace

from ripstop.kernel.effects import Answer, AskAgent, CallTool, ToolReturned
from ripstop.kernel.errors import Unworkable
from ripstop.kernel.events import Asked, Event
from ripstop.kernel.step import Step

from .. import turn as turns
from ..turn import FinishedTurn
from . import flow
from .calls import OPEN, CheckedBoard
from .prompts import tools_of
from .state import BoardState


def resume(step: Step[BoardState]) -> None:
    state = step.state
    if state.turn is not None and not state.report_number and not _has_operations(state):
        step.restart_turn(state.turn.number)
    if state.phase == "open":
        step.ask(CallTool(tool=OPEN))
    elif state.phase == "agent" and _has_operations(state):
        _continue_turn(step)
    elif state.phase in ("agent", "check"):  # whatever changed meanwhile, the agent may have done it
        flow.check(step)
    else:
        flow.write(step)


def open_again(step: Step[BoardState]) -> None:
    """The definition was read again before the board was opened, so the plan may be another."""
    for number, opened in list(step.run.open.items()):
        if isinstance(opened.command, CallTool) and opened.command.tool == OPEN:
            step.withdraw(number, "the definition was mended")
    step.ask(CallTool(tool=OPEN))


def after_writing(step: Step[BoardState], answer: Answer) -> None:
    state = step.state
    accepted = isinstance(answer, ToolReturned) and not state.written.edited
    if accepted and state.phase == "sync" and not state.report_number and _has_operations(state):
        return _continue_turn(step)
    return flow.after_writing(step, answer)


def after_check(step: Step[BoardState], answer: Answer) -> None:
    state, turn = step.state, step.state.turn
    try:
        flow.after_check(step, answer)
    except Unworkable as refusal:
        said_before = turn is not None and turn.has_operations and turn.exchanges[-1].number < step.run.resumed
        if not said_before or not isinstance(answer, ToolReturned) or state.checked.changed:
            raise
        assert turn is not None
        last = FinishedTurn(turn.exchanges[-1].number)
        turns.correct(step, turn, last, f"Your report could not be used: {refusal}. Report again.")


def in_turn(state: BoardState, event: Event) -> BoardState:
    """With a command of its turn, an agent whose report was refused, or whose board was edited, is at work again."""
    if state.phase not in ("check", "sync") or type(event) is not Asked:
        return state
    command = event.command
    continues = type(command) is AskAgent and command.continues is not None
    if continues or (type(command) is CallTool and command.agent):
        return replace(state, phase="agent", report="", report_number=0, report_kept=False, checked=CheckedBoard())
    return state


def _has_operations(state: BoardState) -> bool:
    return state.turn is not None and state.agent is not None and state.turn.has_operations


def _continue_turn(step: Step[BoardState]) -> None:
    state = step.state
    assert state.turn is not None and state.agent is not None
    if turns.resume(step, state.turn, tools_of(state.agent)):
        flow.check(step)
