"""How a pipeline's run is folded from its records."""

from typing import Any

from msgspec.structs import replace

from ripstop.kernel.effects import (
    Answer,
    AskAgent,
    AskPerson,
    CallTool,
    Command,
    PersonAnswered,
    RunFinished,
    StartRun,
    ToolReturned,
)
from ripstop.kernel.events import Answered, Asked, CancelRequested, Event, Resumed, TurnRestarted

from .. import turn as turns
from .calls import BEGIN, CHECK, CLOSE, FINISH, OPEN, WRITE
from .flow import EDIT, REVIEWS, draft_in, turn_phase
from .state import (
    CriticFinished,
    DraftFinished,
    DraftReviewed,
    GotoRequested,
    OutputFinished,
    Phase,
    PipelineState,
    Review,
    StageBegan,
    StageFinished,
    StageInput,
)

REPORTS = ("save_delivery_report", "save_check_report")
WRITING: dict[str, Phase] = {"draft": "write_draft", "answer": "answer", "reset": "reset"}
CALLING: dict[str, Phase] = {OPEN: "open", BEGIN: "begin", FINISH: "finish", CLOSE: "close"}


def evolve(state: PipelineState, number: int, event: Event) -> PipelineState:
    match event:
        case Asked(command=command):
            return _asked(state, number, event, command)
        case Answered(answer=PersonAnswered()) if state.phase == "review":
            return replace(state, found={"answer": event.answer})
        case Answered(answer=RunFinished() as finished):
            return joined(state, number, finished, None)
        case Answered(to=to, answer=ToolReturned(value=value)) if not (state.turn and to in state.turn.pending):
            return _looked(state, number, value if isinstance(value, dict) else {})
        case Resumed(raises=raises):
            return replace(state, most_reviews=state.most_reviews + int(raises.get("reviews", 0)))
        case TurnRestarted():
            return replace(state, turn=None)
        case CancelRequested():
            return replace(state, cancelled=True)
    decided = _decided(state, event)
    if decided is not state:
        return decided
    turn = turns.evolve(state.turn, number, event)
    return state if turn is state.turn else replace(state, turn=turn)


def joined(state: PipelineState, number: int, finished: Answer, result: Any) -> PipelineState:
    """The end of a workflow that took the actor's place."""
    assert isinstance(finished, RunFinished)
    text = result.get("content") if isinstance(result, dict) else result
    prose = text if isinstance(text, str) and text.strip() else finished.because
    child = finished.run if finished.outcome == "limit" else ""
    return replace(state, prose=prose, output_number=number, child=child)


# Commands and their answers


def _asked(state: PipelineState, number: int, event: Asked, command: Command) -> PipelineState:
    match command:
        case AskAgent(continues=None):
            phase: Any = turn_phase(state)
            return replace(state, phase=phase, turn=turns.evolve(None, number, event))
        case AskAgent() if state.phase == "verify":
            return replace(state, phase="formal", turn=turns.evolve(state.turn, number, event))
        case StartRun():
            return replace(state, phase="formal", turn=None)
        case AskPerson(purpose=purpose) if purpose.startswith(REVIEWS):
            return replace(state, phase="review")
        case CallTool(tool=tool, agent="") if tool == CHECK:
            return replace(state, phase="facts" if state.phase in ("begin", "facts") else "verify")
        case CallTool(tool=tool, agent="", arguments=arguments) if tool == WRITE:
            return replace(state, phase=WRITING[str((arguments or {}).get("what"))])
        case CallTool(tool=tool, agent=""):
            return replace(state, phase=CALLING[tool])
    turn = turns.evolve(state.turn, number, event)
    return state if turn is state.turn else replace(state, turn=turn)


def _looked(state: PipelineState, number: int, value: dict[str, Any]) -> PipelineState:
    match state.phase:
        case "open":
            completed = value.get("completed") or ()
            idea = value.get("idea")
            names = tuple(one.name for one in state.definition.stages if one.name in completed)
            return replace(state, finished=names, idea=idea if isinstance(idea, str) and idea else state.idea)
        case "begin":
            texts = value.get("inputs") or {}
            given = StageInput(
                number,
                {str(path): str(text) for path, text in texts.items()},
                tuple(map(str, value.get("missing") or ())),
                tuple(value.get("feedback") or ()),
                tuple(value.get("files") or ()),
            )
            return replace(state, given=given)
        case "facts" | "verify":
            return replace(state, found=value)
        case "answer":
            edited = (value.get("edited") or {}).get(state.here.draft)
            return replace(state, draft=edited, draft_number=number) if isinstance(edited, str) else state
        case "close":
            return replace(state, closed=True)
    return state


# Decisions


def _decided(state: PipelineState, event: Event) -> PipelineState:
    match event:
        case StageBegan(stage=stage, iteration=iteration):
            return _begun(state, stage, iteration)
        case DraftFinished(reply=reply):
            assert state.turn is not None
            text = draft_in(state.turn.exchanges[-1].reply.text)
            return replace(state, phase="write_draft", draft=text, draft_number=reply, words=text, turn=None)
        case DraftReviewed():
            return _reviewed(state, event)
        case OutputFinished(reply=reply):
            prose = _prose(state) if state.turn else state.prose
            phase: Phase = "critic" if state.here.critic else "finish"
            words = state.turn.exchanges[-1].reply.text if state.turn else prose
            return replace(state, phase=phase, output_number=reply, turn=None, prose=prose, words=words)
        case CriticFinished():
            words = state.turn.exchanges[-1].reply.text if state.turn else state.words
            return replace(state, phase="finish", turn=None, words=words)
        case GotoRequested(goto=goto, reason=reason, jumps=jumps):
            first, gotos = (goto, state.gotos + 1) if jumps else (state.first, state.gotos)
            return replace(state, goto=goto, goto_reason=reason, jumps=jumps, first=first, gotos=gotos)
        case StageFinished(stage=stage):
            return replace(state, finished=(*(one for one in state.finished if one != stage), stage))
    return state


def _begun(state: PipelineState, stage: str, iteration: int) -> PipelineState:
    if iteration > 1:  # the same stage once more: its draft is what the critic spoke about
        return replace(state, phase="begin", iteration=iteration, turn=None)
    index = state.definition.index(stage)
    before = {one.name for one in state.definition.stages[:index]}
    return replace(
        state,
        phase="begin",
        stage=stage,
        iteration=1,
        reviews=0,
        most_reviews=state.definition.max_reviews,
        given=StageInput(),
        turn=None,
        draft="",
        draft_number=0,
        found={},
        output_number=0,
        prose="",
        child="",
        goto="",
        finished=tuple(name for name in state.finished if name in before),
    )


def _reviewed(state: PipelineState, event: DraftReviewed) -> PipelineState:
    said = state.found["answer"]
    assert isinstance(said, PersonAnswered)
    review = Review(
        event.stage, event.choice, event.answer, at=event.at, by=said.by, text=said.text, fields=said.fields
    )
    state = replace(state, phase="answer", reviews=state.reviews + 1, reviewed=(*state.reviewed, review), found={})
    if event.choice != EDIT or said.document is None:
        return state
    return replace(state, draft=said.document, draft_number=event.answer)


def _prose(state: PipelineState) -> str:
    """What the actor wants a report to say: what it gave a tool for it, or else its last words."""
    assert state.turn is not None
    saved = [str(given.get("content", "")) for tool, given in turns.deeds(state.turn) if tool in REPORTS]
    return saved[-1] if saved else state.turn.exchanges[-1].reply.text
