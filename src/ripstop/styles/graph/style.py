"""The graph style: how a run is folded from its records, what its commands say, and what is shown of it.

Which turn is next, and when the run ends, is in `flow.py`.
"""

import difflib
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from ripstop.kernel.effects import AskAgent, Limits, RunFinished, StartRun
from ripstop.kernel.errors import Unworkable, UsageError, ValuesMissing
from ripstop.kernel.events import (
    Answered,
    Asked,
    Event,
    Forked,
    GuardTripped,
    Redefined,
    Resumed,
    SettingsChanged,
    Started,
    TurnRestarted,
)
from ripstop.kernel.parts import Part
from ripstop.kernel.prompt import Message, Prompt
from ripstop.kernel.resuming import outcome_of
from ripstop.kernel.run import Run, end_line
from ripstop.kernel.step import Step
from ripstop.kernel.style import AgentUse, Child, Ending, Explanation, Lead, News, Picture, Settled, Uses

from .. import reply
from .. import turn as turns
from ..turn import Turn, TurnStyle, TurnView
from .definition import END, Graph, instructions_for
from .flow import (
    after_child,
    after_turn,
    child_of,
    end_run,
    give_turn,
    give_turn_again,
    joined,
    need_values,
    refuse_undeclared,
    resume_turn,
    task_of,
)
from .state import GraphArguments, GraphState, Known, Saved, TurnFinished, Word
from .view import explain_turn, graph_parts

NOT_THERE = -1
"""The line of a state that a new definition no longer has."""


class GraphView(TurnView[GraphState]):
    def picture(self, run: Run[GraphState]) -> Picture:
        state = run.state
        return Picture(
            where=state.here.name,
            whose_turn="" if run.ended else state.here.worker,
            progress=f"turn {state.turns} of at most {state.most_turns}",
            document=state.last.content,
        )

    def turns(self, run: Run[GraphState]) -> int:
        return run.state.turns

    def gist(self, run: Run[GraphState]) -> str:
        return end_line(run) or run.state.here.name

    def parts(self, run: Run[GraphState]) -> tuple[Part, ...]:
        return graph_parts(run)

    def explain(self, before: GraphState, event: Event) -> Explanation:
        if not isinstance(event, TurnFinished):
            return Explanation()
        word = before.joined or (_word(before.turn, event.reply) if before.turn else Word())
        known = Known(before, word.decisions)
        return Explanation(explain_turn(before.definition, before.here, event, known.value))

    def transition(self, before: GraphState, event: Event) -> Lead | None:
        if type(event) is not TurnFinished:
            return None
        ways = before.here.transitions
        condition = ways[event.via].condition if 0 <= event.via < len(ways) else ""
        return Lead(event.to or END, " ".join(condition.split()))


class GraphStyle(TurnStyle[GraphState]):
    name = "graph"
    view = GraphView()
    arguments_type = GraphArguments
    default_limits = Limits(calls=200, seconds=3600.0, runs=500)

    # What it depends on

    def uses(self, definition: Graph) -> Uses:
        # the model with the role of its type, where an agent names none
        agents = (AgentUse(agent.name, agent.question.model, agent.may_call) for agent in definition.agents)
        return Uses(agents=tuple(agents), children=definition.workflows)

    def arguments_from(self, definition: Graph, pairs: Mapping[str, str]) -> dict[str, Any]:
        for name, value in pairs.items():
            if name not in definition.values:
                near = difflib.get_close_matches(name[:80], definition.values, n=1)
                hint = f" Did you mean {near[0]!r}?" if near else ""
                have = "it declares " + (", ".join(definition.values) or "none (`values:`)")
                raise UsageError(f"The workflow {definition.name!r} does not declare the value {name!r}; {have}.{hint}")
            try:
                value.encode()
            except UnicodeEncodeError as error:
                raise UsageError(f"The value of {name!r} is not UTF-8 text.") from error
        if unset := definition.unset(pairs):
            raise ValuesMissing(definition.name, unset)
        return {"values": dict(pairs)} if pairs else {}

    # Folding

    def begin(self, definition: Graph, started: Started) -> GraphState:
        start, agent = definition.places[definition.start]
        given: GraphArguments = self.start_arguments(started)
        return GraphState(
            definition,
            started.input or definition.initial_message,
            start,
            agent,
            given=given.values,
            small_model=started.settings.small_model,
        )

    def rebase(self, state: GraphState, definition: Graph) -> GraphState:
        here, agent = definition.places.get(state.here.name, (replace(state.here, line=NOT_THERE), state.agent))
        return replace(state, definition=definition, here=here, agent=agent)

    def evolve(self, state: GraphState, number: int, event: Event) -> GraphState:
        if type(event) is TurnFinished:
            word = state.joined
            if word is None:
                assert state.turn is not None
                word = _word(state.turn, event.reply)
            here, agent = state.here, state.agent
            if event.to and event.to != END:
                here, agent = state.definition.places[event.to]
            return replace(state, turn=None, child=0, joined=None, continued="", last=word, here=here, agent=agent)
        turn = turns.evolve(state.turn, number, event)
        if turn is not state.turn:
            if turn is None or turn.number != number:
                return replace(state, turn=turn)
            return _with_turn(state, 1, turn)
        if type(event) is Asked:
            return _with_child(state, number) if type(event.command) is StartRun else state
        if type(event) is Answered:
            return self.joined(state, number, event, None) if type(event.answer) is RunFinished else state
        if type(event) is TurnRestarted:
            return _with_turn(state, -1)
        if type(event) is SettingsChanged:
            return replace(state, small_model=event.settings.small_model)
        if type(event) is Forked:
            small = event.settings.small_model if event.settings else state.small_model
            return replace(state, small_model=small, continued="")  # the child is the other run's
        if type(event) is Saved:
            return replace(state, saved=True)
        return _resumed(state, event.raises) if type(event) is Resumed else state

    def joined(self, state: GraphState, number: int, event: Answered, result: Any) -> GraphState:
        finished = event.answer
        assert isinstance(finished, RunFinished)
        continued = finished.run if finished.outcome == "limit" else ""
        return replace(state, joined=joined(state.here, number, finished, result), continued=continued)

    # Deciding

    def decide(self, step: Step[GraphState], news: News) -> None:
        if type(news) is Settled:  # by far the most frequent
            if type(news.command) is StartRun:
                return after_child(step, news.answer)
            state = step.state
            finished = turns.decide(step, state.turn, news, state.agent.may_call if state.agent else ())
            if finished:
                after_turn(step, finished)
            return None
        match news:
            case Started():
                refuse_undeclared(step.state)
                need_values(step.state)
                give_turn(step)
            case Forked() | Redefined():
                name = step.state.here.name
                if step.state.here.line == NOT_THERE:
                    raise Unworkable(f"The new definition has no state {name!r}, in which the run is.")
                need_values(step.state)
                if type(news) is Forked:
                    give_turn_again(step)
            case Resumed():
                resume_turn(step)
        return None

    def cancelled(self, step: Step[GraphState], because: str) -> None:
        end_run(step, "stopped", because)

    def stopped(self, step: Step[GraphState], verdict: GuardTripped) -> None:
        end_run(step, outcome_of(verdict), verdict.text)

    # What commands say

    def render(self, state: GraphState, command: AskAgent) -> Prompt:
        brief, agent = state.here.brief, state.agent
        assert agent is not None  # a workflow's state asks no agent
        task = Message("user", task_of(state, brief.template, command.longest_given))
        told = instructions_for(agent.type, state.definition.language, state.small_model)
        return turns.render(state.turn, command, Prompt((told, task), agent.may_call, brief.reply_schema))

    def start_child(self, state: GraphState, command: StartRun) -> Child:
        return child_of(state)

    # Looking

    def ending(self, state: GraphState) -> Ending:
        return Ending(is_resumable=state.saved and state.here.line != NOT_THERE)


# Folding


def _with_turn(state: GraphState, more: int, turn: Turn | None = None) -> GraphState:
    """One turn in `here` more, or less."""
    counts, name = state.counts.copy(), state.here.name
    counts[name] = counts.get(name, 0) + more
    return replace(state, turn=turn, turns=state.turns + more, counts=counts)


def _with_child(state: GraphState, number: int) -> GraphState:
    """A workflow that is started again, because the turn was not over, counts once."""
    return replace(state if state.child else _with_turn(state, 1), child=number, joined=None)


def _resumed(state: GraphState, raises: Mapping[str, float]) -> GraphState:
    more = int(raises.get("turns", 0))
    if not state.saved:  # a turn that a guard broke off is continued, or taken again
        return replace(state, allowance=state.most_turns + more, joined=None)
    allowance = state.turns + (more or state.definition.max_turns)
    # what failed was a turn all the same
    turn = state.turn if state.turn and state.turn.has_operations else None
    return replace(state, saved=False, turn=turn, child=0, joined=None, continued="", allowance=allowance)


def _word(turn: Turn, number: int) -> Word:
    """What the agent says in this turn; its last reply is record `number`."""
    content, decisions = reply.decided(turn.exchanges[-1].reply.text)
    return Word(turn.ask.agent, content, decisions, number)
