"""The pipeline style: from an idea to delivered files, stage by stage, with a person's review.

The flow is in `flow.py`, the folding of records in `folding.py`, what the style's own tools are asked in `asking.py`.
"""

from typing import Any

from msgspec import Struct

from ripstop.kernel.effects import (
    AgentReplied,
    AskAgent,
    AskPerson,
    CallTool,
    Guards,
    Limits,
    PersonAnswered,
    StartRun,
    ToolReturned,
)
from ripstop.kernel.errors import Unworkable
from ripstop.kernel.events import Answered, Event, Record, Resumed, Started
from ripstop.kernel.parts import Part
from ripstop.kernel.prompt import Prompt
from ripstop.kernel.run import Run
from ripstop.kernel.step import Step
from ripstop.kernel.style import AgentUse, CallPolicy, Child, Ending, Explanation, News, Picture, Settled, Uses

from .. import turn as turns
from ..turn import FinishedTurn, TurnStyle, TurnView
from . import calls, flow, folding, view
from .asking import call_of
from .definition import RATE_LIMIT, Pipeline
from .flow import draft_in
from .prompts import prompt_for, workflow_input
from .state import PipelineArguments, PipelineState

AFTER = {
    calls.OPEN: flow.after_opening,
    calls.BEGIN: flow.after_beginning,
    calls.WRITE: flow.after_writing,
    calls.SHOW: flow.after_showing,
    calls.FINISH: flow.after_finishing,
    calls.CLOSE: flow.after_closing,
}


class PipelineView(TurnView[PipelineState]):
    def document(self, record: Record) -> str:
        answer = getattr(record.event, "answer", None)
        if type(answer) is ToolReturned:
            return calls.answer_of(calls.ShownCode, answer.value).text
        text = super().document(record)
        return text if type(answer) is PersonAnswered else draft_in(text)

    def picture(self, run: Run[PipelineState]) -> Picture:
        return view.picture(run)

    def gist(self, run: Run[PipelineState]) -> str:
        return view.gist(run)

    def parts(self, run: Run[PipelineState]) -> tuple[Part, ...]:
        return view.parts(run)

    def explain(self, before: PipelineState, event: Event) -> Explanation:
        return view.explain(before, event)


class PipelineStyle(TurnStyle[PipelineState]):
    name = "pipeline"
    view = PipelineView()
    unforkable = "A project has one set of files, so its run cannot be forked. Restart it at a stage instead."
    default_guards = Guards(courtesy="ignore")
    default_limits = Limits(calls=500, seconds=14400.0, runs=500)
    arguments_type = PipelineArguments

    # Folding

    def begin(self, definition: Pipeline, started: Started) -> PipelineState:
        given: PipelineArguments = self.start_arguments(started)
        change = given.change if given.change or given.mode == "modify" else None
        return PipelineState(definition, given, started.input, given.stage or definition.stages[0].name, change)

    def evolve(self, state: PipelineState, number: int, event: Event) -> PipelineState:
        return folding.evolve(state, number, event)

    def joined(self, state: PipelineState, number: int, event: Answered, result: Any) -> PipelineState:
        return folding.joined(state, number, event.answer, result)

    # Deciding

    def decide(self, step: Step[PipelineState], news: News) -> None:
        match news:
            case Started():
                if step.state.definition.stage(step.state.first) is None:
                    raise Unworkable(f"Unknown stage {step.state.first!r}.")
                step.ask(CallTool(tool=calls.OPEN))
            case Resumed():
                flow.resume(step)
            case Settled(command=CallTool(tool=calls.CHECK, agent=""), answer=answer):
                (flow.after_facts if step.state.phase == "facts" else flow.after_verifying)(step, answer)
            case Settled(command=CallTool(tool=tool, agent=""), answer=answer):
                AFTER[tool](step, answer)
            case Settled(command=AskPerson(), answer=answer):
                flow.after_review(step, answer)
            case Settled(command=StartRun(), answer=answer):
                flow.after_workflow(step, answer)
            case Settled():
                finished = self._finished(step, news)
                if finished:
                    flow.after_turn(step, finished)

    def _finished(self, step: Step[PipelineState], news: Settled) -> FinishedTurn | None:
        state, answer = step.state, news.answer
        if state.phase == "draft" and type(answer) is AgentReplied and not answer.calls:
            # files in the text of a draft are part of the draft, and are not written
            assert state.turn is not None
            if turns.is_cut(answer):
                return turns.ask_for_rest(step, state.turn)
            corrections = sum(bool(one.correction) for one in state.turn.exchanges)
            whole = state.turn.exchanges[-1].reply.text
            return FinishedTurn(step.number, whole, None, corrections, recorded=answer.recorded)
        return turns.decide(step, state.turn, news, flow.tools_for(state))

    # What commands say

    def render(self, state: PipelineState, command: AskAgent) -> Prompt:
        return turns.render(state.turn, command, prompt_for(state, command.longest_given))

    def arguments(self, state: PipelineState, command: CallTool) -> Struct | dict[str, Any]:
        return super().arguments(state, command) if command.agent else call_of(state, command)

    def start_child(self, state: PipelineState, command: StartRun) -> Child:
        return Child(input=workflow_input(state))

    # What it depends on

    def uses(self, definition: Pipeline) -> Uses:
        return Uses(
            agents=_agents(definition),
            children={stage.workflow: "" for stage in definition.stages if stage.workflow},
            shares_workspace=True,
            calls=_call_policy(definition),
        )

    # Looking

    def ending(self, state: PipelineState) -> Ending:
        with_code = (stage.name for stage in state.definition.stages if stage.writes_code)
        return Ending(
            is_resumable=not (state.closed or state.cancelled),
            restarts=state.definition.restartable,
            restart_at=next(with_code, "") if state.lacks_code or (state.kept_back and not state.goto) else state.goto,
        )


def _agents(definition: Pipeline) -> tuple[AgentUse, ...]:
    found: dict[str, AgentUse] = {}
    for stage in definition.stages:
        used = [(stage.agent, stage.model, (*stage.draft_tools, *stage.tools))] if stage.agent else []
        used += [(stage.critic.agent, stage.critic.model, stage.critic.tools)] if stage.critic else []
        for name, model, tools in used:
            before = found[name].tools if name in found else ()
            found[name] = AgentUse(name, model, tuple(dict.fromkeys((*before, *tools))))
    return tuple(found.values())


def _call_policy(definition: Pipeline) -> CallPolicy:
    chosen = definition.rate_limit
    if chosen is None:
        return CallPolicy(RATE_LIMIT, "rate_limit", exempt=("script",))
    return CallPolicy(chosen, "rate_limit")
