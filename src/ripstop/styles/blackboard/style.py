"""The blackboard style: MAIN decides, specialists report, a policy verifies.

The flow is in `flow.py`, the folding of records in `folding.py`.
"""

from collections.abc import Mapping
from typing import Any

from ripstop.kernel.effects import AskAgent, AskPerson, CallTool, Guards, Limits, StartRun
from ripstop.kernel.events import Answered, Event, Redefined, Resumed, Started
from ripstop.kernel.parts import Part
from ripstop.kernel.prompt import Prompt
from ripstop.kernel.run import Run
from ripstop.kernel.step import Step
from ripstop.kernel.style import AgentUse, Child, Explanation, News, Picture, Settled

from .. import turn as turns
from ..turn import TurnStyle
from . import flow, folding, resuming, view
from . import report as verification
from .definition import HISTORY, MAIN, PROMPTS, Board
from .history import ITERATION, TAIL
from .prompts import assignment, prompt_for_agent, prompt_for_main, report_format, tools_of
from .state import BoardArguments, BoardState, Writing

OWN = (flow.OPEN, flow.CHECK, flow.WRITE)


class BlackboardStyle(TurnStyle[BoardState]):
    name = "blackboard"
    unforkable = "A board has one set of files, so its run cannot be forked. Start a new run on a copy of the board."
    default_guards = Guards(patience=5)
    default_limits = Limits(calls=500, seconds=14400.0)
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
                step.ask(CallTool(tool=flow.OPEN))
            case Resumed():
                resuming.resume(step)
            case Redefined() if step.state.phase == "open":
                resuming.open_again(step)
            case Settled(command=CallTool(tool=tool, agent=""), answer=answer) if tool in OWN:
                after = {
                    flow.OPEN: flow.after_opening,
                    flow.CHECK: resuming.after_check,
                    flow.WRITE: resuming.after_writing,
                }
                after[tool](step, answer)
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
        first = prompt_for_main(state) if command.agent == MAIN or agent is None else prompt_for_agent(state, agent)
        return turns.render(state.turn, command, first)

    def arguments(self, state: BoardState, command: CallTool) -> dict[str, Any]:
        if command.agent:
            return super().arguments(state, command)
        board = state.definition
        common = {"folder": board.folder, "copy": state.is_child, "plan": board.plan, "history": HISTORY}
        if command.tool == flow.OPEN:
            return {**common, "iteration_pattern": ITERATION, "tail": TAIL}
        common["digest"] = state.known.digest
        if command.tool == flow.CHECK:
            agent, text = state.agent, state.report
            assert agent is not None
            verdict = verification.read(state, text).verdict
            evidence = [look for _, look in verification.wanted(board, agent.name, text, verdict)]
            return {**common, "own": agent.report, "evidence": evidence}
        writing = Writing(reports=folding.report_file(state)) if state.phase == "check" else state.writing
        return {
            **common,
            "plan_text": writing.plan,
            "append": writing.append,
            "reports": writing.reports,
            "definition_files": [*board.files, PROMPTS],
            "iteration_pattern": ITERATION,
            "tail": TAIL,
            "close": writing.close,
        }

    def children(self, definition: Board) -> Mapping[str, str]:
        return {agent.workflow: "" for agent in definition.agents if agent.workflow}

    def start_child(self, state: BoardState, command: StartRun) -> Child:
        assert state.agent is not None
        told = report_format(state.definition.policy.report_rules, state.agent.name)
        return Child(input="\n\n".join(filter(None, (state.agent.prompt.strip(), assignment(state), told))))

    # What it depends on

    def agents(self, definition: Board) -> tuple[AgentUse, ...]:
        main = AgentUse(MAIN, definition.main.model)
        others = (AgentUse(one.name, one.model, tools_of(one)) for one in definition.agents if not one.workflow)
        return (main, *others)

    def workspace(self, definition: Board) -> str:
        return f"{definition.folder}/workspace" if definition.folder else ""

    def folders(self, definition: Board) -> tuple[str, ...]:
        return (definition.folder,) if definition.folder else ()

    # Looking

    def resumable(self, state: BoardState) -> bool:
        return not state.finished and not state.cancelled

    def has_foreign_edits(self, state: BoardState) -> bool:
        return bool(state.found.get("changed"))

    def picture(self, run: Run[BoardState]) -> Picture:
        return view.picture(run)

    def gist(self, run: Run[BoardState]) -> str:
        return view.gist(run)

    def parts(self, run: Run[BoardState]) -> tuple[Part, ...]:
        return view.parts(run)

    def explain(self, before: BoardState, event: Event) -> Explanation:
        return view.explain(before, event)
