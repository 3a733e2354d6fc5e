"""How a pipeline's run is folded from its records."""

from typing import Any

from msgspec.structs import replace

from ripstop.kernel.effects import (
    Answer,
    AskAgent,
    AskPerson,
    CallTool,
    Command,
    Failed,
    PersonAnswered,
    RunFinished,
    StartRun,
    ToolReturned,
)
from ripstop.kernel.events import Answered, Asked, CancelRequested, Event, Resumed, TurnRestarted
from ripstop.kernel.result import handed_on, read_result

from .. import turn as turns
from ..reply import meant
from ..reply_operations import EDIT as EDIT_FILE
from ..reply_operations import WRITE as WRITE_FILE
from ..reply_operations import operation
from .calls import (
    BEGIN,
    CHECK,
    CLOSE,
    FINISH,
    OPEN,
    SHOW,
    WRITE,
    BegunStage,
    CheckedStage,
    FinishedStage,
    OpenedProject,
    ShownCode,
    WrittenFiles,
    answer_of,
)
from .flow import OF_CODE, REVIEWS, draft_in, turn_phase
from .judging import as_list, code_in
from .state import (
    EDIT,
    PASS,
    CommandRun,
    CriticFinished,
    DraftFinished,
    DraftReviewed,
    GotoRequested,
    OutputFinished,
    Phase,
    PipelineState,
    ProductJudged,
    Review,
    StageBegan,
    StageFinished,
)

REPORTS = ("save_delivery_report", "save_check_report")
RUNS, WRITES = "run_command", (WRITE_FILE, EDIT_FILE)
CHANGED = "changed_files"
"""In the result of a command: files that are others after it; null if that is not known."""
MAX_COMMANDS = 50
"""Different commands whose end is known."""
MAX_WORDS, MAX_WORD, MAX_WHY = 50, 200, 300
"""Words of a command, characters of one, and of the reason why it has no exit code."""
WRITING: dict[str, Phase] = {"draft": "write_draft", "answer": "answer", "reset": "reset"}
CALLING: dict[str, Phase] = {OPEN: "open", BEGIN: "begin", SHOW: "show", FINISH: "finish", CLOSE: "close"}


def evolve(state: PipelineState, number: int, event: Event) -> PipelineState:
    match event:
        case Asked(command=command):
            return _asked(state, number, event, command)
        case Answered(answer=PersonAnswered() as said) if state.phase in ("review", "review_code"):
            return replace(state, said=said)
        case Answered(answer=RunFinished() as finished):
            return joined(state, number, finished, None)
        case Answered(to=to, answer=ToolReturned(value=value)) if not (state.turn and to in state.turn.pending):
            return _looked(state, number, value)
        case Resumed(raises=raises):
            return replace(state, most_reviews=state.most_reviews + int(raises.get("reviews", 0)))
        case TurnRestarted():
            return replace(state, turn=None)
        case CancelRequested():
            return replace(state, cancelled=True)
    decided = _decided(state, number, event)
    if decided is not state:
        return decided
    if type(event) is Answered and state.turn is not None and event.to in state.turn.pending:
        state = _called(state, event.to, event.answer)
    turn = turns.evolve(state.turn, number, event)
    return state if turn is state.turn else replace(state, turn=turn)


def joined(state: PipelineState, number: int, finished: Answer, result: Any) -> PipelineState:
    """The end of a workflow that took the actor's place."""
    assert isinstance(finished, RunFinished)
    prose = handed_on(read_result(result).whole_text, finished).strip()
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
            return replace(state, phase="review_code" if purpose.endswith(OF_CODE) else "review")
        case CallTool(tool=tool, agent="") if tool == CHECK:
            return replace(state, phase="facts" if state.phase in ("begin", "facts") else "verify")
        case CallTool(tool=tool, agent="", arguments=arguments) if tool == WRITE:
            return replace(state, phase=WRITING[str((arguments or {}).get("what"))])
        case CallTool(tool=tool, agent="", arguments={"for": phase}) if tool == BEGIN:
            return replace(state, phase="read", read_for=phase, turn=None)
        case CallTool(tool=tool, agent=""):
            return replace(state, phase=CALLING[tool])
    turn = turns.evolve(state.turn, number, event)
    return state if turn is state.turn else replace(state, turn=turn)


def _looked(state: PipelineState, number: int, value: Any) -> PipelineState:
    match state.phase:
        case "open":
            opened = answer_of(OpenedProject, value)
            names = tuple(one.name for one in state.definition.stages if one.name in opened.completed)
            state = replace(state, finished=names, idea=opened.idea or state.idea, code_before=opened.code_before)
            if opened.change is not None:  # none in a journal of an older version
                state = replace(state, change=opened.change)
            return state if state.stage else replace(state, code_at_start=opened.code_at_start)
        case "begin" | "read":
            return replace(state, given=_given(state, answer_of(BegunStage, value)), given_number=number)
        case "facts" | "verify":
            return replace(state, found=answer_of(CheckedStage, value), kept_back=())
        case "answer":
            edited = answer_of(WrittenFiles, value).edited.get(state.here.draft)
            return state if edited is None else replace(state, draft=edited, draft_number=number)
        case "show":
            return replace(state, shown_code=answer_of(ShownCode, value), shown_code_number=number)
        case "finish":
            return replace(state, report=answer_of(FinishedStage, value).report)
        case "close":
            return replace(state, closed=True)
    return state


def _called(state: PipelineState, to: int, answer: Answer) -> PipelineState:
    """What an agent's tool has shown: how a command ended, or that files are others now."""
    assert state.turn is not None
    reply, index = state.turn.pending[to]
    made = operation(next(one for one in state.turn.exchanges if one.number == reply), index)
    if made.tool == RUNS:
        return replace(state, commands=_with_command(state, made.arguments, answer))
    if made.tool in WRITES and type(answer) is ToolReturned and not all(one.is_stale for one in state.commands):
        return replace(state, commands=_stale(state.commands))
    return state


def _stale(commands: tuple[CommandRun, ...]) -> tuple[CommandRun, ...]:
    return tuple(replace(one, is_stale=True) for one in commands)


def _wrote(result: dict[str, Any]) -> bool:
    """Whether files are others after a command, or may be. What is hidden is no part of the product: caches, say."""
    changed = result.get(CHANGED, ())
    return changed is None or any(not _is_hidden(path) for path in changed)


def _is_hidden(path: str) -> bool:
    return any(part.startswith(".") for part in path.split("/"))


def _with_command(state: PipelineState, arguments: dict[str, Any], answer: Answer) -> tuple[CommandRun, ...]:
    given = arguments.get("command")
    words = (
        tuple(str(one)[:MAX_WORD] for one in given[:MAX_WORDS]) if isinstance(given, list) else (str(given)[:MAX_WORD],)
    )
    value = answer.value if isinstance(answer, ToolReturned) and isinstance(answer.value, dict) else {}
    code = value.get("exit_code")
    why = answer.reason if isinstance(answer, Failed) else str(value.get("stopped") or "")
    same = next((one for one in state.commands if (one.stage, one.command) == (state.stage, words)), None)
    run = CommandRun(
        stage=state.stage,
        command=words,
        exit_code=code if isinstance(code, int) else None,
        more=why[:MAX_WHY],
        times=same.times + 1 if same else 1,
    )
    others = tuple(one for one in state.commands if one is not same)
    return (*(_stale(others) if _wrote(value) else others), run)[-MAX_COMMANDS:]


def _given(state: PipelineState, read: BegunStage) -> BegunStage:
    """What was read, with the texts that are as they were."""
    texts = {**{path: state.given.inputs.get(path, "") for path in read.same}, **read.inputs}
    order = dict.fromkeys((*state.here.inputs, *texts))
    return replace(read, inputs={path: texts[path] for path in order if path in texts}, same=())


# Decisions


def _decided(state: PipelineState, number: int, event: Event) -> PipelineState:
    match event:
        case StageBegan(stage=stage, iteration=iteration):
            begun = _begun(state, stage, iteration)
            return replace(begun, coded_in=stage) if begun.here.writes_code else begun
        case DraftFinished(reply=reply):
            assert state.turn is not None
            text = draft_in(state.turn.exchanges[-1].reply.text)
            return replace(state, phase="write_draft", draft=text, draft_number=reply, words=text, turn=None)
        case DraftReviewed():
            return _reviewed(state, event)
        case OutputFinished(reply=reply):
            prose = _prose(state) if state.turn else state.prose
            phase: Phase = "critic" if state.here.critic else "finish"
            words = meant(state.turn.exchanges[-1].reply.text) if state.turn else prose
            return replace(state, phase=phase, output_number=reply, turn=None, prose=prose, words=words)
        case CriticFinished():
            words = meant(state.turn.exchanges[-1].reply.text) if state.turn else state.words
            return replace(state, phase="finish", turn=None, words=words)
        case GotoRequested(goto=goto, reason=reason, jumps=jumps):
            first, gotos = (goto, state.gotos + 1) if jumps else (state.first, state.gotos)
            return replace(state, goto=goto, goto_reason=reason, jumps=jumps, first=first, gotos=gotos)
        case ProductJudged(shown=shown, reasons=reasons, back=back):
            state = replace(state, shown=shown, shown_at=number, kept_back=reasons)
            if reasons:
                state = replace(state, code_kept_back=code_in(state))
            if not back:
                return state
            why = as_list(reasons)
            return replace(state, goto=back, goto_reason=why, jumps=True, first=back, returns=state.returns + 1)
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
        code_reviews=0,
        most_reviews=state.definition.max_reviews,
        given=BegunStage(),
        given_number=0,
        turn=None,
        draft="",
        draft_number=0,
        found=None,
        output_number=0,
        prose="",
        child="",
        goto="",
        kept_back=(),
        finished=tuple(name for name in state.finished if name in before),
    )


def _reviewed(state: PipelineState, event: DraftReviewed) -> PipelineState:
    said = state.said
    assert said is not None
    review = Review(
        event.stage,
        event.choice,
        event.answer,
        at=event.at,
        by=said.by,
        text=said.text,
        fields=said.fields,
        code=event.code,
    )
    state = replace(state, phase="answer", reviewed=(*state.reviewed, review), said=None)
    if event.code:
        taken = state.shown_code.code if event.choice == PASS else state.code_reviewed
        return replace(state, code_reviews=state.code_reviews + 1, code_reviewed=taken)
    state = replace(state, reviews=state.reviews + 1)
    if event.choice != EDIT or said.document is None:
        return state
    return replace(state, draft=said.document, draft_number=event.answer)


def _prose(state: PipelineState) -> str:
    """What the actor wants a report to say: what it gave a tool for it, or else its last words."""
    assert state.turn is not None
    saved = [str(given.get("content", "")) for tool, given in turns.effects_of(state.turn) if tool in REPORTS]
    return meant(saved[-1] if saved else state.turn.exchanges[-1].reply.text)
