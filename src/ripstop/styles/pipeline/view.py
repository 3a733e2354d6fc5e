"""What faces show of a pipeline: where it is, what people decided, the draft under review."""

from typing import Literal

from ripstop.kernel.events import Event
from ripstop.kernel.parts import Claim, Claims, Facts, Ledger, LedgerEntry, Paper, Part, Rail, Stage
from ripstop.kernel.run import Run, end_line
from ripstop.kernel.style import Explanation, Picture, Reason

from ..checks import as_reason
from .flow import turn_phase
from .judging import as_list
from .state import CriticFinished, DraftReviewed, GotoRequested, OutputFinished, PipelineState, ProductJudged, Review

WHAT = {
    "open": "opening the project",
    "begin": "reading what is there",
    "facts": "looking for facts",
    "read": "reading what is there",
    "draft": "writing the draft",
    "write_draft": "writing the draft",
    "review": "review",
    "answer": "taking the answer",
    "reset": "making the output",
    "formal": "making the output",
    "verify": "verifying the output",
    "critic": "checking the output",
    "show": "comparing the code",
    "review_code": "review of the code",
    "finish": "finishing the stage",
    "close": "closing the project",
}


def picture(run: Run[PipelineState]) -> Picture:
    state = run.state
    done = sum(stage.name in state.finished for stage in state.definition.stages)
    return Picture(
        where=state.stage,
        whose_turn="" if run.ended else whose_turn(state),
        progress=f"{done} of {len(state.definition.stages)} stages finished",
        document=state.prose if run.ended and state.prose else state.words,
    )


def whose_turn(state: PipelineState) -> str:
    if not state.stage or state.phase not in ("review", "review_code", "draft", "formal", "critic"):
        return ""
    if state.phase in ("review", "review_code"):
        return "a person"
    stage = state.here
    if turn_phase(state) == "critic" and stage.critic:
        return stage.critic.agent
    return stage.agent or stage.workflow


def gist(run: Run[PipelineState]) -> str:
    if reason := end_line(run):
        return reason
    state = run.state
    return f"{state.stage}: {WHAT[state.phase]}" if state.stage else WHAT[state.phase]


def parts(run: Run[PipelineState]) -> tuple[Part, ...]:
    state = run.state
    stages = tuple(Stage(one.name, _state_of(run, one.name), _note(state, one.name)) for one in state.definition.stages)
    facts = [
        ("Stage", state.stage),
        ("Now", "" if run.ended else WHAT[state.phase]),
        ("Iteration", str(state.iteration) if state.iteration > 1 else ""),
        ("Reviews of this stage", f"{state.reviews} of at most {state.most_reviews}" if state.reviews else ""),
        ("Change", state.change or ""),
        ("Restart wanted", f"{state.goto}: {state.goto_reason}" if state.goto else ""),
        ("Sent back", f"{state.returns} of at most {state.definition.max_returns}" if state.returns else ""),
    ]
    found: list[Part] = [Rail(stages, state.definition.name), Facts(tuple(row for row in facts if row[1]))]
    if state.reviewed:
        entries = (
            LedgerEntry(one.number, one.by or "a person", one.text or one.choice, _about(one)) for one in state.reviewed
        )
        found.append(Ledger(tuple(entries), "Reviews"))
    if state.shown:
        claims = tuple(Claim(state.shown_at, one.by, one.claimed, one.shown, one.holds) for one in state.shown)
        found.append(Claims(claims, "Claimed and shown"))
    if state.phase == "review_code" and not run.ended:
        found.append(Paper(state.shown_code.text, "The code"))
    elif state.draft and not run.ended:
        found.append(Paper(state.draft, state.here.draft))
    return tuple(found)


def _about(review: Review) -> str:
    return f"{review.stage}{' (code)' if review.code else ''}: {review.choice}"


def _state_of(run: Run[PipelineState], name: str) -> Literal["done", "now", "next", "failed"]:
    state = run.state
    if name in state.finished:
        return "done"
    if name != state.stage:
        return "next"
    return "failed" if run.ended and run.ended.outcome in ("failed", "restart") else "now"


def _note(state: PipelineState, name: str) -> str:
    reviews = sum(one.stage == name for one in state.reviewed)
    return f"{reviews} reviews" if reviews > 1 else "1 review" if reviews else ""


def explain(before: PipelineState, event: Event) -> Explanation:
    match event:
        case DraftReviewed(choice=choice):
            return Explanation((Reason(f"the person who reviewed it said: {choice}", taken=True),))
        case OutputFinished(stage=stage) if before.definition.stage(stage):
            outputs = before.here.outputs
            said = f"valid: {', '.join(outputs)}" if outputs else "the agent is done; there is no data to verify"
            return Explanation((Reason(said, taken=True),))
        case CriticFinished(findings=findings):
            most = before.here.max_iterations
            again = f"iteration {before.iteration} of at most {most}"
            found = "1 critical or major finding" if findings == 1 else f"{findings} critical or major findings"
            return Explanation((Reason(f"{found}, {again}", taken=True),))
        case ProductJudged(shown=shown, reasons=reasons, back=back):
            how = f"it goes back to {back}" if back else "it cannot be delivered"
            kept = (Reason(f"{how}:\n{as_list(reasons)}", taken=True),) if reasons else ()
            return Explanation((*map(as_reason, shown), *kept))
        case GotoRequested(goto=goto, reason=reason, jumps=jumps):
            how = "this run goes there itself" if jumps else "a person has to restart it there"
            return Explanation((Reason(f"restart at {goto}: {reason}; {how}", taken=True),))
    return Explanation()
