"""What the project's tools are asked to do, from the state of the run."""

from typing import Any

import msgspec

from ripstop.kernel.effects import CallTool
from ripstop.kernel.run import Run

from ..checks import Shown
from . import calls
from .calls import (
    BeginStageCall,
    CheckStageCall,
    CloseProjectCall,
    FinishStageCall,
    OpenProjectCall,
    ProjectCall,
    ReportCall,
    ReportCost,
    ReviewDecision,
    ReviewFeedback,
    ShowCodeCall,
    StageProducts,
    WriteFilesCall,
    text_hash,
)
from .definition import CHECK_REPORT, DELIVERY_REPORT, Pipeline
from .judging import change_of, checks_of_commands, checks_of_files, checks_of_review
from .state import EDIT, PASS, PipelineState, Review

NO_WORDS = "Write it again. (No reason was given.)"
MAX_DETAILS = 19_000
"""Characters of one entry of the feedback history."""
MAX_TITLE = 100
MAX_DECISION = 300
"""Characters of a person's words that a report repeats."""


def call_of(state: PipelineState, command: CallTool) -> ProjectCall:
    match command.tool:
        case calls.OPEN:
            return _open(state)
        case calls.BEGIN:
            return _begin(state)
        case calls.WRITE:
            return _write(state)
        case calls.CHECK:
            stage = state.here
            return CheckStageCall(
                outputs=stage.outputs,
                kind=stage.kind,
                writes_code=stage.writes_code,
                code_before=state.code_before,
                code_at_start=state.code_at_start,
                code_reviewed=state.code_reviewed,
            )
        case calls.SHOW:
            return ShowCodeCall(stage=state.stage, code_before=state.code_before)
        case calls.FINISH:
            return _finish(state, command)
    assert command.tool == calls.CLOSE, command.tool
    return CloseProjectCall(outcome=state.outcome)


def _open(state: PipelineState) -> OpenProjectCall:
    pipeline = state.definition
    return OpenProjectCall(
        stages=stage_products(pipeline),
        restartable=pipeline.restartable,
        mode="modify" if state.goto else state.arguments.mode,
        stage=state.first,
        idea=state.idea,
        flow=pipeline.source,
        change=state.change,
    )


def _begin(state: PipelineState) -> BeginStageCall:
    stage, pipeline = state.here, state.definition
    before = pipeline.stages[: pipeline.index(stage.name)]
    made = dict.fromkeys(path for one in before if one.kind == "work" for path in one.results)
    return BeginStageCall(
        stage=stage.name,
        inputs=stage.inputs,
        may_miss=stage.kind != "work",  # it says what it could not check
        also=tuple(path for path in made if path not in stage.inputs),
        writes_code=stage.writes_code,
        known={path: text_hash(text) for path, text in state.given.inputs.items()},
    )


def stage_products(pipeline: Pipeline) -> tuple[StageProducts, ...]:
    return tuple(
        StageProducts(name=one.name, products=one.products, writes_code=one.writes_code) for one in pipeline.stages
    )


def _write(state: PipelineState) -> WriteFilesCall:
    stage, review = state.here, state.last_review
    files: dict[str, str] = {}
    expected: dict[str, str] = {}
    reset: tuple[str, ...] = ()
    feedback: ReviewFeedback | None = None
    if state.phase == "write_draft":
        files = {stage.draft: _as_file(state.draft)}
    elif state.phase == "reset":
        reset = stage.outputs
    else:
        assert review is not None
        if review.code:
            feedback = _feedback(review)
        elif review.choice == EDIT:  # as the person wrote it, to the last character
            files = {stage.draft: state.draft}
        else:
            expected = {stage.draft: _as_file(state.draft)}
            feedback = None if review.choice == PASS else _feedback(review)
    return WriteFilesCall(stage=stage.name, files=files, expected=expected, reset=reset, feedback=feedback)


def _feedback(review: Review) -> ReviewFeedback:
    return ReviewFeedback(
        record=review.number,
        feedback_type=review.fields.get("type", "suggestion"),
        severity=review.fields.get("severity", "major"),
        details=_details(review.text),
        by=review.by,
        source="person",
    )


def _finish(state: PipelineState, command: CallTool) -> FinishStageCall:
    stage, change = state.here, change_of(state)
    is_finished = not (state.goto or state.kept_back)
    is_refuted = change is not None and change.holds is False
    return FinishStageCall(
        stage=stage.name,
        products=stage.products,
        writes_code=stage.writes_code,
        report=None if stage.kind == "work" else _report(state, command),
        is_finished=is_finished,
        ends_change=is_finished and not is_refuted and stage == state.definition.stages[-1],
    )


def _report(state: PipelineState, command: CallTool) -> ReportCall:
    return ReportCall(
        path=CHECK_REPORT if state.here.kind == "check" else DELIVERY_REPORT,
        title=_first_line(state.idea),
        prose=state.prose,
        decisions=tuple(
            ReviewDecision(stage=_reviewed(one), choice=one.choice, by=one.by, text=one.text[:MAX_DECISION], at=one.at)
            for one in state.reviewed
        ),
        cost=msgspec.convert((command.arguments or {}).get("cost"), ReportCost | None),
        shown=_shown(state),
    )


def _reviewed(review: Review) -> str:
    return f"{review.stage} (the code)" if review.code else review.stage


def _shown(state: PipelineState) -> tuple[Shown, ...]:
    """For the check what it has judged; for the delivery that, and whether a change has left a trace."""
    if state.here.kind != "delivery":
        return state.shown
    facts = state.found.facts if state.found else None
    judged = state.shown or (*checks_of_files(facts)[0], *checks_of_commands(state))
    reviewed = checks_of_review(facts)  # anew: a check can run commands, which can change files
    again, change = {one.claimed for one in reviewed}, change_of(state)
    return (*(one for one in judged if one.claimed not in again), *reviewed, *([change] if change else []))


def cost_of(run: Run[Any]) -> ReportCost:
    """What a run has cost so far, for its report."""
    usage = run.spent.usage
    return ReportCost(
        calls=run.spent.calls,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        money=usage.money,
    )


def _details(text: str) -> str:
    """A person's words as the feedback history has them. The agent gets them whole."""
    if len(text) > MAX_DETAILS:
        return f"{text[:MAX_DETAILS]} … (cut here; the journal has all {len(text):,} characters)"
    return text if text.strip() else NO_WORDS


def _first_line(text: str) -> str:
    line = next((line.strip("# \t") for line in text.splitlines() if line.strip("# \t")), "")
    return line if len(line) <= MAX_TITLE else f"{line[: MAX_TITLE - 1]}…"


def _as_file(text: str) -> str:
    return f"{text.rstrip()}\n"
