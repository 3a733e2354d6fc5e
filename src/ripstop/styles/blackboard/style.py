"""The blackboard style: MAIN decides, specialists report, a policy verifies.

The flow is in `flow.py`, the folding of records in `folding.py`.
"""

from typing import Any

from msgspec import Struct

from ripstop.kernel.effects import AskAgent, AskPerson, CallTool, Guards, Limits, StartRun
from ripstop.kernel.events import Answered, Event, Redefined, Resumed, Started
from ripstop.kernel.parts import Part
from ripstop.kernel.prompt import Prompt
from ripstop.kernel.run import Run
from ripstop.kernel.step import Step
from ripstop.kernel.style import AgentUse, Child, Ending, Explanation, News, Picture, Settled, Uses

from .. import turn as turns
from ..turn import TurnStyle, TurnView
from . import flow, folding, resuming, view
from .calls import CHECK, OPEN, WRITE
from .definition import MAIN, Board
from .next_call import next_call
from .prompts import assignment, prompt_for_agent, prompt_for_main, report_format, tools_of
from .state import BoardArguments, BoardState


class BoardView(TurnView[BoardState]):
    def picture(self, run: Run[BoardState]) -> Picture:
        return view.picture(run)

    def gist(self, run: Run[BoardState]) -> str:
        return view.gist(run)

    def parts(self, run: Run[BoardState]) -> tuple[Part, ...]:
        return view.parts(run)

    def explain(self, before: BoardState, event: Event) -> Explanation:
        return view.explain(before, event)


class BlackboardStyle(TurnStyle[BoardState]):
    name = "blackboard"
    view = BoardView()
    unforkable = "A board has one set of files, so its run cannot be forked. Start a new run on a copy of the board."
    default_guards = Guards(patience=5)
    default_limits = Limits(calls=500, seconds=14400.0, runs=500)
    arguments_type = BoardArguments

    # Folding

    def begin(self, definition: Board, started: Started) -> BoardState:
        given: BoardArguments = self.start_arguments(started)
        most = given.max_iterations or definition.policy.max_iterations
        return BoardState(definition, started.input, most, is_child=started.parent is not None)

    def evolve(self, state: BoardState, number: int, event: Event) -> BoardState:
        return resuming.in_turn(folding.evolve(state, number, event), event)

    def joined(self, state: BoardState, number: int, event: Answered, result: Any) -> BoardState:
        return folding.joined(state, number, event.answer, result)

    # Deciding

    def decide(self, step: Step[BoardState], news: News) -> None:
        match news:
            case Started():
                step.ask(CallTool(tool=OPEN))
            case Resumed():
                resuming.resume(step)
            case Redefined() if step.state.phase == "open":
                resuming.open_again(step)
            case Settled(command=CallTool(tool=tool, agent=""), answer=answer) if tool == OPEN:
                flow.after_opening(step, answer)
            case Settled(command=CallTool(tool=tool, agent=""), answer=answer) if tool == CHECK:
                resuming.after_check(step, answer)
            case Settled(command=CallTool(tool=tool, agent=""), answer=answer) if tool == WRITE:
                resuming.after_writing(step, answer)
            case Settled(command=AskPerson(), answer=answer):
                flow.after_person(step, answer)
            case Settled(command=StartRun(), answer=answer):
                flow.after_workflow(step, answer)
            case Settled():
                finished = turns.decide(step, step.state.turn, news, flow.tools_for(step.state))
                if finished:
                    (flow.after_main if step.state.phase == "main" else flow.after_agent)(step, finished)

    # What commands say

    def render(self, state: BoardState, command: AskAgent) -> Prompt:
        agent = state.definition.agent(command.agent)
        longest = command.longest_given
        if command.agent == MAIN or agent is None:
            return turns.render(state.turn, command, prompt_for_main(state, longest))
        return turns.render(state.turn, command, prompt_for_agent(state, agent, longest))

    def arguments(self, state: BoardState, command: CallTool) -> Struct | dict[str, Any]:
        return super().arguments(state, command) if command.agent else next_call(state, command.tool)

    def start_child(self, state: BoardState, command: StartRun) -> Child:
        assert state.agent is not None
        told = report_format(state.definition.policy, state.agent.name)
        return Child(input="\n\n".join(filter(None, (state.agent.prompt.strip(), assignment(state), told))))

    # What it depends on

    def uses(self, definition: Board) -> Uses:
        others = (AgentUse(one.name, one.model, tools_of(one)) for one in definition.agents if not one.workflow)
        return Uses(
            agents=(AgentUse(MAIN, definition.main.model), *others),
            children={agent.workflow: "" for agent in definition.agents if agent.workflow},
            folders=(definition.folder,) if definition.folder else (),
            workspace=f"{definition.folder}/workspace" if definition.folder else "",
        )

    # Looking

    def ending(self, state: BoardState) -> Ending:
        return Ending(
            is_resumable=not state.finished and not state.cancelled, has_foreign_edits=bool(state.checked.changed)
        )
