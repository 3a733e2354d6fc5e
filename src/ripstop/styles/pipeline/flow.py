"""One stage after the other: inputs → draft → review → formal output → critic → review of code → finished.

- The engine writes the files of a project, from what agents say and tools do; whether an output is there and valid is
  looked up, not believed.
- Every tool of the style can be repeated, so a run that was stopped takes its last step again (`resume`).
  A turn in which an agent called tools continues behind them: begun again, it could do things twice. Any other turn
  begins again.
- A prompt has what the files have when it is made: a person can edit them while a review waits, or a run is stopped.
  So the inputs of a stage are read, and what was read is recorded, before every turn.
- What is wrong with a formal output goes back to the actor, at most `MAX_CORRECTIONS` times. Any other failure fails
  the stage; the run can be resumed from there.
"""

import re
from typing import Any

from msgspec import to_builtins

from ripstop.kernel import progress
from ripstop.kernel.budget import allows_no_child
from ripstop.kernel.effects import (
    Answer,
    AskAgent,
    AskPerson,
    CallTool,
    Failed,
    Field,
    PersonAnswered,
    RunFinished,
    StartRun,
    ToolReturned,
)
from ripstop.kernel.errors import Unworkable
from ripstop.kernel.events import GuardTripped
from ripstop.kernel.result import Result
from ripstop.kernel.step import Step
from ripstop.text.plurals import count

from .. import turn as turns
from ..checks import Shown
from ..reply import meant
from ..reply_files import WholeFile, deliveries
from ..turn import FinishedTurn, Turn
from .asking import cost_of
from .calls import BEGIN, CHECK, CLOSE, FINISH, NO_CODE, OPEN, SHOW, WRITE, WrittenFiles, answer_of
from .definition import DELIVERY_REPORT, MAX_GOTOS, PipelineStage
from .judging import (
    FORM,
    MAX_REASONS,
    NoVerdict,
    as_list,
    change_of,
    checks_of,
    checks_of_commands,
    checks_of_files,
    checks_of_return,
    checks_of_review,
    read_verdict,
    stage_to_mend,
)
from .models import FEEDBACK_TYPES, SEVERITIES
from .state import (
    EDIT,
    FEEDBACK,
    PASS,
    CriticFinished,
    DraftFinished,
    DraftReviewed,
    GotoRequested,
    OutputFinished,
    PipelineState,
    ProductJudged,
    StageBegan,
    StageFinished,
    TurnPhase,
)

_CONTROL = dict.fromkeys((*range(9), 11, 12, *range(14, 32), *range(127, 160)))
_HAS_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""What would act on a terminal that shows the file: all control characters but tab, line feed and carriage return."""
RECORDS, ARTIFACTS = ".cowork/", "artifacts/"
FOR = "for"
"""The argument of a call to read the inputs of a stage again: what they are read for."""
GOTO = "goto_stage"
"""The tool that agents go back with."""
MAX_CORRECTIONS = 2
"""How often an actor is told what is wrong with one formal output."""
MAX_SHOWN = 10
"""Problems that are named."""
NOTHING_TO_DELIVER = (
    f"{NO_CODE}. Nothing was delivered: finished tasks alone are not a product. "
    "Restart at the stage that writes the code."
)
UNCHANGED = "Nothing was changed: the change that was asked for has left no trace in the code."
REVIEWS, OF_CODE = "review.", ".code"
"""How the purpose of a review begins, and how it ends if it is about code."""
CHOICES = {PASS: "Take it as it is", EDIT: "Take my edited text", FEEDBACK: "Write it again, with what I say"}
FIELDS = {
    "type": Field("Kind of feedback", "one_of", FEEDBACK_TYPES),
    "severity": Field("Severity", "one_of", SEVERITIES),
}
GRAVE = ("critical", "major")
_TOOL_OF = {"open": OPEN, "begin": BEGIN, "facts": CHECK, "verify": CHECK, "show": SHOW, "close": CLOSE}
"""What a run in a phase waits for, if that is all of it."""


# A stage begins


def begin_stage(step: Step[PipelineState], name: str, iteration: int = 1) -> None:
    step.record(StageBegan(stage=name, iteration=iteration))
    step.ask(CallTool(tool=BEGIN))


def after_opening(step: Step[PipelineState], answer: Answer) -> None:
    _check_tool(step.state, answer)
    begin_stage(step, step.state.first)


def after_beginning(step: Step[PipelineState], answer: Answer) -> None:
    if step.state.phase == "read":
        return after_reading(step, answer)
    _check_tool(step.state, answer)
    if step.state.here.kind == "work":
        return _begin_work(step)
    step.ask(CallTool(tool=CHECK))
    return None


def after_facts(step: Step[PipelineState], answer: Answer) -> None:
    state = step.state
    _check_tool(state, answer)
    if state.lacks_code:
        raise Unworkable(NOTHING_TO_DELIVER)
    if state.here.kind == "delivery":
        shown, reasons = checks_of_files(state.found.facts if state.found else None)
        if reasons:
            return keep_back(step, 0, tuple(shown), reasons)
    return _begin_work(step)


def _begin_work(step: Step[PipelineState]) -> None:
    if step.state.here.draft:
        ask_actor(step)
    else:
        make_output(step, is_read=True)


def read_for(step: Step[PipelineState], phase: TurnPhase) -> None:
    """Read the inputs of the stage for the turn that comes next."""
    step.ask(CallTool(tool=BEGIN, arguments={FOR: phase}))


def after_reading(step: Step[PipelineState], answer: Answer) -> None:
    _check_tool(step.state, answer)
    if step.state.read_for == "critic":
        ask_critic(step)
    elif step.state.read_for == "draft":
        ask_actor(step)
    else:
        _work(step)


def _check_tool(state: PipelineState, answer: Answer) -> None:
    if isinstance(answer, Failed):
        where = f"The stage {state.stage!r}" if state.stage else "The project"
        raise Unworkable(f"{where} cannot go on: {answer.reason}")


# The draft


def draft_in(text: str) -> str:
    """The draft in an agent's reply: all its words, unless it delivers them as a file of the project's records.

    Agents that know the name of the draft's file tend to write it above a fenced block with the draft in it.
    """
    text = meant(text)
    files = [one for one in deliveries(text) if isinstance(one, WholeFile)]
    if len(files) == 1 and files[0].complete and files[0].path.removeprefix(RECORDS).startswith(ARTIFACTS):
        text = files[0].content
    return text.translate(_CONTROL) if _HAS_CONTROL.search(text) else text


def turn_phase(state: PipelineState) -> TurnPhase:
    """What an agent that is asked now works on."""
    review = state.last_review
    match state.phase:
        case "draft" | "critic":
            return state.phase
        case "read":
            return state.read_for
        case "begin" | "facts":
            return "draft" if state.here.draft else "formal"
        case "answer" if review is not None and review.choice == FEEDBACK and not review.code:
            return "draft"
    return "formal"


def tools_for(state: PipelineState) -> tuple[str, ...]:
    """What the agent whose turn it is may call."""
    stage, phase = state.here, turn_phase(state)
    if phase == "critic":
        return stage.critic.tools if stage.critic else ()
    return stage.draft_tools if phase == "draft" else stage.tools


def ask_actor(step: Step[PipelineState]) -> None:
    state, stage = step.state, step.state.here
    review = state.last_review
    context = (1, state.given_number, state.draft_number, review.number if review else 0)
    step.ask(AskAgent(agent=stage.agent, model=stage.model, context=_context(context)))


def _context(numbers: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted({number for number in numbers if number}))


def after_draft(step: Step[PipelineState], turn: Turn, finished: FinishedTurn) -> None:
    stage, text = step.state.here, draft_in(finished.text)
    if not text.strip():
        if finished.corrections < MAX_CORRECTIONS and not finished.recorded:
            return turns.correct(step, turn, finished, "Your draft is empty. Reply with the whole draft.")
        raise Unworkable(f"The stage {stage.name!r} failed: the draft of {stage.agent!r} is empty.")
    digest = progress.digest(stage.name, step.state.reviews, text)
    step.record(DraftFinished(agent=stage.agent, digest=digest, stage=stage.name, reply=finished.number))
    return write(step, "draft")


def write(step: Step[PipelineState], what: str) -> None:
    """Write to the project: the `draft`, a person's `answer` to a review, or nothing but a `reset` of old output.

    With the answer it is also looked up whether the draft was edited in its file while the review waited.
    """
    step.ask(CallTool(tool=WRITE, arguments={"what": what}))


def after_writing(step: Step[PipelineState], answer: Answer) -> None:
    state = step.state
    _check_tool(state, answer)
    assert isinstance(answer, ToolReturned)
    if state.phase == "answer" and answer_of(WrittenFiles, answer.value).edited:
        step.warn(f"{state.here.draft} was edited while its review waited; it counts as it is now")
    match state.phase:
        case "write_draft" if state.here.review:
            ask_review(step)
        case "reset":
            read_for(step, "formal")
        case "answer" if turn_phase(state) == "draft":
            read_for(step, "draft")
        case _:
            make_output(step)


# The review


def ask_review(step: Step[PipelineState]) -> None:
    state, stage = step.state, step.state.here
    _check_reviews(step, state.reviews, "The stage")
    step.ask(
        AskPerson(
            question=f"Review the draft of the stage {stage.shown!r}.",
            purpose=f"{REVIEWS}{stage.name}",
            title=stage.draft,
            document=state.draft_number,
            choices=CHOICES,
            other=FEEDBACK,
            empty=PASS,
            edit=EDIT,
            fields=FIELDS,
        )
    )


def _check_reviews(step: Step[PipelineState], reviews: int, what: str) -> None:
    most = step.state.most_reviews
    if reviews >= most:
        times = count(reviews, "time")
        text = f"{what} {step.state.stage!r} was reviewed {times}, which is all that max_reviews allows."
        step.stop(GuardTripped(guard="max_reviews", limit=most, value=most, text=text))


def after_review(step: Step[PipelineState], answer: Answer) -> None:
    if not isinstance(answer, PersonAnswered):
        raise Unworkable(f"The review of the stage {step.state.stage!r} was not answered.")
    code, choice = step.state.phase == "review_code", answer.choice
    step.record(DraftReviewed(stage=step.state.stage, answer=step.number, choice=choice, at=step.at, code=code))
    if code and choice == PASS:
        finish_stage(step)
    else:
        write(step, "answer")


def end_work(step: Step[PipelineState]) -> None:
    """What a stage that writes code has written is shown to the person who reviewed its draft."""
    stage = step.state.here
    if stage.writes_code and stage.review and not step.state.goto:
        step.ask(CallTool(tool=SHOW))
    else:
        finish_stage(step)


def after_showing(step: Step[PipelineState], answer: Answer) -> None:
    state, stage = step.state, step.state.here
    _check_tool(state, answer)
    _check_reviews(step, state.code_reviews, "The code of the stage")
    step.ask(
        AskPerson(
            question=f"Review the code of the stage {stage.shown!r}.",
            purpose=f"{REVIEWS}{stage.name}{OF_CODE}",
            title=f"{stage.name}: {count(state.shown_code.files, 'file')}",
            document=state.shown_code_number,
            choices={PASS: CHOICES[PASS], FEEDBACK: CHOICES[FEEDBACK]},
            other=FEEDBACK,
            empty=PASS,
            fields=FIELDS,
        )
    )


# The formal output


def make_output(step: Step[PipelineState], is_read: bool = False) -> None:
    """`is_read`: what the stage works with was read just now."""
    stage = step.state.here
    if not stage.is_formal:
        finish_stage(step)
    elif stage.outputs and not stage.writes_code and stage.kind == "work":
        write(step, "reset")
    elif is_read:
        _work(step)
    else:
        read_for(step, "formal")


def _work(step: Step[PipelineState]) -> None:
    if step.state.here.workflow:
        start_workflow(step)
    else:
        ask_actor(step)


def start_workflow(step: Step[PipelineState]) -> None:
    state = step.state
    context = _context((1, state.given_number, state.draft_number))
    step.ask(StartRun(workflow=state.here.workflow, name=state.child, context=context))


def after_workflow(step: Step[PipelineState], answer: Answer) -> None:
    stage = step.state.here
    if not isinstance(answer, RunFinished):
        reason = answer.reason if isinstance(answer, Failed) else "its run has no end"
        raise Unworkable(f"The workflow of the stage {stage.name!r} could not be run: {reason}")
    start = StartRun(workflow=stage.workflow)
    if answer.outcome == "limit" and allows_no_child(step.run, start):
        return start_workflow(step)  # it is the limit of this run, so a guard says so
    if answer.outcome != "completed":
        ended = f"ended as {answer.outcome} ({answer.run}): {answer.because}"
        raise Unworkable(f"The workflow of the stage {stage.name!r} {ended}")
    return verify(step)


def after_output(step: Step[PipelineState], turn: Turn, finished: FinishedTurn) -> None:
    if finished.must_be_repeated and finished.corrections < MAX_CORRECTIONS:
        return turns.correct(step, turn, finished, finished.about_files())
    if finished.must_be_repeated:
        raise Unworkable(f"The stage {step.state.stage!r} failed: {finished.why_incomplete(turn.ask.agent)}")
    turns.warn_about_files(step, finished)
    if step.state.here.kind == "check":
        return after_judging(step, turn, finished)
    return verify(step)


def verify(step: Step[PipelineState]) -> None:
    """Have the engine look at what was made; a stage whose product is code is judged by critic, check and delivery."""
    if step.state.here.outputs and step.state.here.kind == "work":
        step.ask(CallTool(tool=CHECK))
    else:
        accept_output(step)


def after_verifying(step: Step[PipelineState], answer: Answer) -> None:
    state, turn = step.state, step.state.turn
    _check_tool(state, answer)
    problems = state.found.problems if state.found else ()
    if not problems:
        return accept_output(step)
    told = "\n".join(f"- {one}" for one in problems[:MAX_SHOWN])
    if turn is not None and turn.exchanges and not turn.exchanges[-1].reply.recorded:
        last = turn.exchanges[-1]
        corrections = sum(bool(one.correction) for one in turn.exchanges)
        if corrections < MAX_CORRECTIONS or last.number < step.run.resumed:
            wrong = f"Your output is not complete or not valid:\n{told}\nPut it right with your tools."
            return turns.correct(step, turn, FinishedTurn(last.number), wrong)
    raise Unworkable(f"The output of the stage {state.stage!r} is not valid:\n{told}")


def accept_output(step: Step[PipelineState]) -> None:
    state, stage, turn = step.state, step.state.here, step.state.turn
    effects_of = turns.effects_of(turn) if turn else []
    reply = turn.exchanges[-1].number if turn else state.output_number
    digest = progress.digest(stage.name, state.iteration, effects_of)
    step.record(OutputFinished(agent=stage.agent if turn else "", digest=digest, stage=stage.name, reply=reply))
    note_goto(step, effects_of)
    if stage.critic:
        read_for(step, "critic")
    else:
        end_work(step)


# The verdict of a check


def after_judging(step: Step[PipelineState], turn: Turn, finished: FinishedTurn) -> None:
    """A way back that the check asks for is taken, whatever its verdict; otherwise it has to have one."""
    state, effects_of = step.state, turns.effects_of(turn)
    if goto_of(state, effects_of):
        return accept_output(step)
    try:
        verdict = read_verdict(finished.text)
    except NoVerdict as error:
        if finished.corrections < MAX_CORRECTIONS and not finished.recorded:
            return turns.correct(step, turn, finished, f"Your verdict could not be read: {error}. {FORM}")
        raise Unworkable(f"The stage {state.stage!r} failed: {turn.ask.agent!r} gave no verdict: {error}.") from error
    shown, reasons = checks_of(verdict, turn.ask.agent, effects_of)
    facts = state.found.facts if state.found else None
    found, lacking = checks_of_files(facts)
    found += [*checks_of_commands(state), *checks_of_review(facts), *checks_of_return(state)]
    digest = progress.digest(state.stage, state.iteration, state.returns, effects_of)
    step.record(OutputFinished(agent=turn.ask.agent, digest=digest, stage=state.stage, reply=finished.number))
    note_goto(step, effects_of)
    if reasons or lacking:
        return keep_back(step, finished.number, (*shown, *found), [*reasons, *lacking])
    step.record(ProductJudged(stage=state.stage, reply=finished.number, shown=(*shown, *found)))
    return finish_stage(step)


def keep_back(step: Step[PipelineState], reply: int, shown: tuple[Shown, ...], reasons: list[str]) -> None:
    """Send the product to the stage that can mend it, or fail. A check has its report written first."""
    state = step.state
    back = stage_to_mend(state.definition, state.stage) if state.returns < state.definition.max_returns else ""
    kept = tuple(reasons[:MAX_REASONS])
    step.record(ProductJudged(stage=state.stage, reply=reply, shown=shown, reasons=kept, back=back))
    if state.here.kind == "check":
        finish_stage(step)
    elif back:
        step.ask(CallTool(tool=OPEN))
    else:
        raise _kept_back(step.state)


def _kept_back(state: PipelineState) -> Unworkable:
    times = f" It was sent back {'once' if state.returns == 1 else f'{state.returns} times'}." if state.returns else ""
    return Unworkable(f"The product cannot be delivered.{times} What keeps it back:\n{as_list(state.kept_back)}")


# The critic


def ask_critic(step: Step[PipelineState]) -> None:
    state, critic = step.state, step.state.here.critic
    assert critic is not None
    context = _context((1, state.given_number, state.draft_number, state.output_number))
    step.ask(AskAgent(agent=critic.agent, model=critic.model, context=context))


def after_critic(step: Step[PipelineState], turn: Turn, finished: FinishedTurn) -> None:
    stage = step.state.here
    effects_of = turns.effects_of(turn)
    grave = [arguments for tool, arguments in effects_of if tool == "provide_feedback" and _is_grave(arguments)]
    step.record(
        CriticFinished(
            agent=turn.ask.agent,
            digest=progress.digest(stage.name, step.state.iteration, effects_of),
            stage=stage.name,
            reply=finished.number,
            findings=len(grave),
        )
    )
    if grave and step.state.iteration < stage.max_iterations:
        return begin_stage(step, stage.name, step.state.iteration + 1)
    for one in grave[:MAX_SHOWN]:
        step.warn(f"{turn.ask.agent} found a {one.get('severity')} problem that is still open: {one.get('details')}")
    return end_work(step)


def _is_grave(arguments: dict[str, Any]) -> bool:
    return arguments.get("severity") in GRAVE


def after_turn(step: Step[PipelineState], finished: FinishedTurn) -> None:
    state, turn = step.state, step.state.turn
    assert turn is not None
    if finished.failure:
        corrected = turn.exchanges[-1].correction if turn.exchanges else ""
        before = f" It had been told: {corrected}" if corrected else ""
        raise Unworkable(f"The stage {state.stage!r} failed: {finished.failure.reason}{before}")
    after = {"draft": after_draft, "formal": after_output, "critic": after_critic}
    after[turn_phase(state)](step, turn, finished)


# The way back


def note_goto(step: Step[PipelineState], effects_of: list[tuple[str, Any]]) -> None:
    """Record the restart that the agent of a turn has asked for last, if it did."""
    calls = [arguments for tool, arguments in effects_of if tool == GOTO]
    if not calls:
        return
    stage, pipeline = step.state.stage, step.state.definition
    goto = goto_of(step.state, effects_of)
    if not goto:
        step.warn(f"{stage!r} asked for a restart at {calls[-1].get('stage')!r}, which is not an earlier stage")
        return
    jumps = pipeline.auto_goto and step.state.gotos < MAX_GOTOS
    step.record(GotoRequested(stage=stage, goto=goto, reason=str(calls[-1].get("reason", "")), jumps=jumps))


def goto_of(state: PipelineState, effects_of: list[tuple[str, Any]]) -> str:
    """The earlier stage that the agent of a turn wants to go back to; empty if there is none."""
    wanted = [str(arguments.get("stage", "")) for tool, arguments in effects_of if tool == GOTO][-1:]
    pipeline = state.definition
    before = [one.name for one in pipeline.stages[: pipeline.index(state.stage)]]
    named = (name for one in wanted for name in pipeline.restartable if name.casefold() == one.strip().casefold())
    return next((name for name in named if name in before), "")


# A stage ends


def finish_stage(step: Step[PipelineState]) -> None:
    step.ask(CallTool(tool=FINISH, arguments=report_cost(step)))


def report_cost(step: Step[PipelineState]) -> dict[str, Any] | None:
    """What a stage with a report has to know besides its state."""
    return {"cost": to_builtins(cost_of(step.run))} if step.state.here.kind != "work" else None


def after_finishing(step: Step[PipelineState], answer: Answer) -> None:
    state = step.state
    _check_tool(state, answer)
    if state.goto:
        if state.jumps:
            step.ask(CallTool(tool=OPEN))
        else:
            step.ask(CallTool(tool=CLOSE))
        return
    if state.kept_back:
        raise _kept_back(state)
    step.record(StageFinished(stage=state.stage))
    following = following_stage(step.state)
    if following:
        begin_stage(step, following.name)
    else:
        step.ask(CallTool(tool=CLOSE))


def following_stage(state: PipelineState) -> PipelineStage | None:
    stages = state.definition.stages
    after = state.definition.index(state.stage) + 1
    return stages[after] if after < len(stages) else None


def after_closing(step: Step[PipelineState], answer: Answer) -> None:
    state = step.state
    _check_tool(state, answer)
    if state.goto:
        because = f"The stage {state.stage!r} asks for a restart at {state.goto!r}: {state.goto_reason}"
        return step.end(state.outcome, because, {"goto": state.goto, "reason": state.goto_reason})
    return step.end(state.outcome, _how_delivered(state), result_of(state))


def _how_delivered(state: PipelineState) -> str:
    if state.here.kind == "delivery":
        change, how = change_of(state), "Delivered."
        if change:
            how = UNCHANGED if change.holds is False else f"Delivered. Since the change was asked for, {change.shown}."
        return f"{how} The report is .cowork/{DELIVERY_REPORT}."
    return "All stages are finished."


def result_of(state: PipelineState) -> Result:
    """The delivery report with what it delivers; of a pipeline without one, what its last stage said or drafted."""
    data = {"stages": list(state.finished)}
    if not state.report:
        return Result(state.prose or state.draft, data)
    facts = state.found.facts if state.found else None
    code = tuple(one.path for one in facts.files) if facts else ()
    return Result(state.report, data, (f".cowork/{DELIVERY_REPORT}", *code))


# Resuming


def resume(step: Step[PipelineState]) -> None:
    state, phase = step.state, step.state.phase
    if phase in ("draft", "formal", "critic"):
        _resume_turn(step)
    elif phase == "read":
        read_for(step, state.read_for)
    elif phase in _TOOL_OF:
        step.ask(CallTool(tool=_TOOL_OF[phase]))
    elif phase == "write_draft":
        write(step, "draft")
    elif phase == "reset":
        write(step, "reset")
    elif phase == "review":
        ask_review(step)
    elif phase == "review_code":
        step.ask(CallTool(tool=SHOW))  # it may have been changed meanwhile
    elif phase == "answer":
        write(step, "answer")
    elif state.kept_back and not state.goto:
        begin_stage(step, state.stage)  # somebody may have mended it, so it is judged again
    else:
        assert phase == "finish", state.phase
        step.ask(CallTool(tool=FINISH, arguments=report_cost(step)))


def _resume_turn(step: Step[PipelineState]) -> None:
    state, turn = step.state, step.state.turn
    if turn is not None and turn.has_operations:
        finished = turns.resume(step, turn, tools_for(state))
        if finished:
            after_turn(step, finished)
        return
    if turn is not None:
        step.restart_turn(turn.number)
    read_for(step, turn_phase(state))
