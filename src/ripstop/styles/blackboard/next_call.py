"""What a tool of the board is called with, from the state of the run."""

from .calls import CHECK, OPEN, BoardCall, CheckBoard, OpenBoard, WriteBoard
from .definition import HISTORY, PROMPTS
from .folding import report_file
from .history import ITERATION, TAIL
from .report import current_report, evidence_claims
from .state import BoardState, Writing


def next_call(state: BoardState, tool: str) -> BoardCall:
    if tool == OPEN:
        return _open(state)
    return _check(state) if tool == CHECK else _write(state)


def _open(state: BoardState) -> OpenBoard:
    board = state.definition
    return OpenBoard(
        folder=board.folder,
        copy=state.is_child,
        plan=board.plan,
        history=HISTORY,
        iteration_pattern=ITERATION,
        tail=TAIL,
        reports=tuple(one.report for one in board.agents),
        blocker_prefix=board.policy.report_rules.blocker_prefix,
    )


def _check(state: BoardState) -> CheckBoard:
    board, agent = state.definition, state.agent
    assert agent is not None
    claims = evidence_claims(state, current_report(state).verdict)
    return CheckBoard(
        folder=board.folder,
        copy=state.is_child,
        plan=board.plan,
        history=HISTORY,
        digest=state.known.digest,
        own=agent.report,
        evidence=tuple(claim for _, claim in claims),
    )


def _write(state: BoardState) -> WriteBoard:
    """In a check, all that is written is a report that was refused."""
    board = state.definition
    writing = Writing(reports=report_file(state)) if state.phase == "check" else state.writing
    return WriteBoard(
        folder=board.folder,
        copy=state.is_child,
        plan=board.plan,
        history=HISTORY,
        digest=state.known.digest,
        plan_text=writing.plan,
        append=writing.append,
        reports=writing.reports,
        definition_files=(*board.files, f"{PROMPTS}/"),
        iteration_pattern=ITERATION,
        tail=TAIL,
        close=writing.close,
    )
