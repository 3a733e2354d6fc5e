"""What the style's own tools are called with. They touch the project's `.cowork` folder; the style never does."""

from typing import Any

from ripstop.kernel.effects import CallTool, Usage
from ripstop.kernel.run import Run

from .definition import CHECK_REPORT, DELIVERY_REPORT
from .state import PipelineState

OPEN, BEGIN, WRITE, CHECK, FINISH, CLOSE = (
    "cowork_open",
    "cowork_begin",
    "cowork_write",
    "cowork_check",
    "cowork_finish",
    "cowork_close",
)
NO_WORDS = "Write it again. (No reason was given.)"
MAX_DETAILS = 19_000
"""Characters of one entry of the feedback history."""
MAX_TITLE = 100
MAX_DECISION = 300
"""Characters of a person's words that a report repeats."""


def arguments(state: PipelineState, command: CallTool) -> dict[str, Any]:
    given = dict(command.arguments or {})
    match command.tool:
        case "cowork_open":
            return {**given, **_open(state)}
        case "cowork_close":
            return given
    stage = state.here
    given["stage"] = stage.name
    match command.tool:
        case "cowork_begin":
            judges = stage.kind != "work"  # it says what it could not check
            files = stage.writes_code or judges
            return {**given, "inputs": list(stage.inputs), "may_miss": judges, "files": files}
        case "cowork_write":
            return {"stage": stage.name, **_write(state)}
        case "cowork_check":
            return {**given, "outputs": list(stage.outputs), "kind": stage.kind, "writes_code": stage.writes_code}
    return _finish(state, given.get("cost"))


def _open(state: PipelineState) -> dict[str, Any]:
    pipeline, wanted = state.definition, state.arguments
    return {
        "stages": [
            {"name": one.name, "products": list(one.products), "kind": one.kind, "writes_code": one.writes_code}
            for one in pipeline.stages
        ],
        "restartable": list(pipeline.restartable),
        "mode": "modify" if state.goto else wanted.mode,
        "stage": state.first,
        "idea": state.idea,
        "flow": pipeline.source,
    }


def _write(state: PipelineState) -> dict[str, Any]:
    stage, review = state.here, state.last_review
    nothing: dict[str, Any] = {"files": {}, "expected": {}, "reset": [], "feedback": None}
    match state.phase:
        case "write_draft":
            return {**nothing, "files": {stage.draft: _as_file(state.draft)}}
        case "reset":
            return {**nothing, "reset": list(stage.outputs)}
    assert review is not None
    if review.choice == "edit":  # as the person wrote it, to the last character
        return {**nothing, "files": {stage.draft: state.draft}}
    nothing["expected"] = {stage.draft: _as_file(state.draft)}
    if review.choice == "pass":
        return nothing
    entry = {
        "record": review.number,
        "feedback_type": review.fields.get("type", "suggestion"),
        "severity": review.fields.get("severity", "major"),
        "details": _details(review.text),
        "by": review.by,
        "source": "person",
    }
    return {**nothing, "feedback": entry}


def _finish(state: PipelineState, cost: Any) -> dict[str, Any]:
    stage = state.here
    report: dict[str, Any] | None = None
    if stage.kind != "work":
        path = CHECK_REPORT if stage.kind == "check" else DELIVERY_REPORT
        report = {
            "path": path,
            "title": _first_line(state.idea),
            "prose": state.prose,
            "cost": cost,
            "decisions": [
                {
                    "stage": one.stage,
                    "choice": one.choice,
                    "by": one.by,
                    "text": one.text[:MAX_DECISION],
                    "at": one.at,
                }
                for one in state.reviewed
            ],
        }
    return {
        "stage": stage.name,
        "products": list(stage.products),
        "writes_code": stage.writes_code,
        "report": report,
        "is_finished": not state.goto,
    }


def cost_of(run: Run[Any]) -> dict[str, Any]:
    """What a run has cost so far, for its report."""
    usage: Usage = run.spent.usage
    return {
        "calls": run.spent.calls,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "money": usage.money,
    }


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
