"""The graph style: which state is next, and when it ends.

After every turn, in this order:

1. The reply is read ("files first, JSON last"). If it has no `decisions`, or if files of it could not be written,
   the agent is asked again and told what was wrong; still so after `reasks` times, the run has an error. A recording
   cannot answer otherwise, so there files that are missing are warnings.
2. Exit conditions are checked, the turn limit always among them. After the last allowed turn a
   transition to `END` that holds still counts as completed.
3. Transitions are tried in order; the first that holds is taken. A state without transitions is the end. Where
   there are some and none holds because a decision is missing or of the wrong type, the agent is asked once more;
   otherwise, and after that, it is the end as well, with a warning.
"""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from ripstop.kernel import progress
from ripstop.kernel.effects import AskAgent, CallTool, Guards
from ripstop.kernel.errors import Unworkable
from ripstop.kernel.events import RESUME, USE, Event, Forked, GuardTripped, Ordered, Started, Withdrawn
from ripstop.kernel.prompt import Message, Prompt
from ripstop.kernel.resuming import override_guards
from ripstop.kernel.run import Run
from ripstop.kernel.step import News, Picture, Settled, Step

from .. import condition, reply, template
from .. import turn as turns
from ..courtesy import check_phrases, courteous
from ..turn import Finished, Turn
from .dead_end import MOST_NAMED, DeadEnd, explain_dead_end, wrongly_typed
from .definition import END, SAVE, ExitCondition, Graph, State, Transition
from .events import Saved, TurnFinished
from .explanation import explain_turn
from .position import SHORT, VALUES, GraphState, Known, Word, given_values
from .roles import instructions_for
from .schema import is_engine_name

NOT_THERE = -1
"""The line of a state that a fork's new definition no longer has."""


class GraphStyle:
    name = "graph"
    unforkable = ""

    # Folding

    def guards(self, definition: Graph, wishes: Mapping[str, Any]) -> Guards:
        return check_phrases(override_guards(Guards(), wishes, definition.guards))

    def begin(self, definition: Graph, started: Started) -> GraphState:
        start, agent = definition.places[definition.start]
        goal, given = started.input or definition.initial_message, given_values(started.settings)
        short = started.settings.get("guide") == SHORT
        return GraphState(definition, goal, start, agent, given=given, short_guide=short)

    def rebase(self, state: GraphState, definition: Graph) -> GraphState:
        here = definition.state(state.here.name) or replace(state.here, line=NOT_THERE)
        agent = definition.agent(here.agent) or state.agent
        return replace(state, graph=definition, here=here, agent=agent)

    def evolve(self, state: GraphState, number: int, event: Event) -> GraphState:
        if type(event) is TurnFinished:
            assert state.turn is not None
            word = _word(state.turn, event.reply)
            if not event.to or event.to == END:
                return replace(state, turn=None, last=word)
            here, agent = state.graph.places[event.to]
            return replace(state, turn=None, last=word, here=here, agent=agent)
        turn = turns.evolve(state.turn, number, event)
        if turn is not state.turn:
            if turn is None or turn.number != number:
                return replace(state, turn=turn)
            counts, name = state.counts.copy(), state.here.name
            counts[name] = counts.get(name, 0) + 1
            return replace(state, turn=turn, turns=state.turns + 1, counts=counts)
        if type(event) is Withdrawn and event.turn:
            counts, name = state.counts.copy(), state.here.name
            counts[name] -= 1
            return replace(state, turn=None, turns=state.turns - 1, counts=counts)
        if type(event) is Ordered and event.order == USE and "guide" in event.arguments:
            return replace(state, short_guide=event.arguments["guide"] == SHORT)
        if type(event) is Forked and "guide" in event.settings:
            return replace(state, short_guide=event.settings["guide"] == SHORT)
        if type(event) is Saved:
            return replace(state, saved=True)
        if type(event) is Ordered and event.order == RESUME:
            more = int(event.arguments.get("raise", {}).get("turns", 0))
            allowance = state.turns + (more or state.graph.max_turns) if state.saved else state.most_turns + more
            # a turn that a guard broke off is taken back, one that failed was taken
            return replace(state, saved=False, turn=None if state.saved else state.turn, allowance=allowance)
        return state

    # Deciding

    def decide(self, step: Step[GraphState], news: News) -> None:
        match news:
            case Settled():
                state = step.state
                finished = turns.decide(step, state.turn, news, state.agent.may_call)
                if finished:
                    _after_turn(step, finished)
            case Started():
                _need_values(step.state)
                _give_turn(step)
            case Forked():
                name = step.state.here.name
                if step.state.here.line == NOT_THERE:
                    raise Unworkable(f"The new definition has no state {name!r}, in which the forked run stands.")
                _need_values(step.state)
                _give_turn_anew(step)
            case Ordered(order=order) if order == RESUME:
                _give_turn_anew(step)

    def cancelled(self, step: Step[GraphState], because: str) -> None:
        step.end("stopped", because)

    def stopped(self, step: Step[GraphState], verdict: GuardTripped) -> None:
        step.end_by_guard(verdict)

    # Looking

    def render(self, state: GraphState, command: AskAgent) -> Prompt:
        brief, agent = state.here.brief, state.agent
        values = {name: state.given.get(name, default) or "" for name, default in state.graph.values.items()}
        task = Message("user", template.render(brief.template, VALUES, state, values))
        told = instructions_for(agent.type, state.graph.language, state.short_guide)
        return turns.render(state.turn, command, Prompt((told, task), agent.may_call, brief.reply_schema))

    def arguments(self, state: GraphState, command: CallTool) -> dict[str, Any]:
        return turns.arguments(state.turn, command)

    def listens(self, state: GraphState) -> bool:
        return False

    def resumable(self, state: GraphState) -> bool:
        return state.saved and state.here.line != NOT_THERE

    def picture(self, run: Run[GraphState]) -> Picture:
        state = run.state
        return Picture(
            where=state.here.name,
            whose_turn="" if run.ended else state.here.agent,
            progress=f"turn {state.turns} of at most {state.most_turns}",
            document=state.last.content,
        )

    def explain(self, before: GraphState, event: Event) -> list[str]:
        if not isinstance(event, TurnFinished) or before.turn is None:
            return []
        word = _word(before.turn, event.reply)
        return explain_turn(before.graph, before.here, event, Known(before, word.decisions).value)


def _need_values(state: GraphState) -> None:
    unset = state.graph.unset(state.given)
    if unset:
        raise Unworkable(f"The workflow requires values that were not set: {', '.join(unset)}.")


def _word(turn: Turn, number: int) -> Word:
    """What the agent says in this turn; its last reply is record `number`."""
    content, decisions = reply.decided(turn.exchanges[-1].reply.text)
    return Word(turn.ask.agent, content, decisions, number)


def _give_turn_anew(step: Step[GraphState]) -> None:
    """Go on with a run that was stopped somewhere: a turn that was under way there begins again."""
    if step.state.turn is not None:
        step.take_turn_back(step.state.turn.number)
    _give_turn(step)


def _give_turn(step: Step[GraphState]) -> None:
    state = step.state
    last = state.last.number
    step.ask(replace(state.agent.question, context=(1, last) if last else (1,)))


def _after_turn(step: Step[GraphState], finished: Finished) -> None:
    if finished.failure:
        return _error(step, finished.failure.reason)
    turn = step.state.turn
    assert turn is not None
    try:
        content, decisions = reply.decided(finished.text)
    except reply.NoReply as problem:
        if finished.corrections < step.state.graph.reasks and not finished.recorded:
            return turns.correct(step, turn, finished, _correction(str(problem)) + finished.about_files())
        return _error(step, f"agent {turn.ask.agent!r} broke the protocol: {problem}")
    if finished.must_be_repeated:
        if finished.corrections < step.state.graph.reasks:
            return turns.correct(step, turn, finished, finished.about_files() + _JSON_AGAIN)
        return _error(step, finished.why_incomplete(turn.ask.agent))
    turns.warn_about_files(step, finished)
    _follow(step, turn, finished, content, decisions)


_JSON_AGAIN = "End with the same JSON object as before."


def _correction(problem: str) -> str:
    return (
        f"Your reply could not be used: {problem}. Answer again. End with one JSON object and nothing after it, "
        'like {"content": "what you did", "decisions": {…}}, with the decision fields that the task asks for.\n'
    )


def _follow(step: Step[GraphState], turn: Turn, finished: Finished, content: str, decisions: dict[str, Any]) -> None:
    """Go where the turn leads."""
    state = step.state
    graph, here = state.graph, state.here
    known = Known(state, decisions)
    index, transition = _first_that_holds(here, known)
    exit_condition = _exit_that_holds(graph, known) if graph.exit_conditions else None
    if known.missing and graph.strict_decisions:
        names = ", ".join(repr(name) for name in known.missing)
        return _error(step, f"the decisions of {here.name} lack {names} (strict_decisions)")
    exceeded = state.turns >= state.most_turns
    leaves = exit_condition is not None and not exceeded
    dead_end = None
    if transition is None and here.transitions and not leaves:
        dead_end = explain_dead_end(here, decisions, known.value)
        asks_again = finished.corrections < graph.reasks and not turn.exchanges[-1].reply.recorded
        if dead_end.problems and asks_again:
            return turns.correct(step, turn, finished, _undecided(dead_end))
    done, guards = turns.deeds(turn), step.run.guards
    step.record(
        TurnFinished(
            reply=finished.number,
            to=transition.to if transition else "",
            via=index,
            agent=turn.ask.agent,
            deed=progress.mark(decisions, done) if decisions or done else progress.NOTHING,
            courteous=courteous(content, guards),
            marked=progress.marked(content, guards),
        )
    )
    _warn(step, known, dead_end)
    if exit_condition and leaves:
        reason = f"exit condition {exit_condition.condition!r} holds ({exit_condition.action})"
        return _leave(step, "stopped", reason, exit_condition)
    if transition is None:
        return step.end("completed", _why_no_transition(here))
    if transition.to == END:
        return step.end("completed", f"{here.name} → END: {transition.condition or 'always'}")
    if exceeded:
        return _leave_at_limit(step, state, exit_condition)
    _give_turn(step)


def _undecided(dead_end: DeadEnd) -> str:
    return (
        f"Your decisions do not choose a next step: {dead_end}. Answer again: the same JSON object with its decisions "
        "put right, and nothing after it. Files that you have delivered are kept; do not repeat them."
    )


def _warn(step: Step[GraphState], known: Known, dead_end: DeadEnd | None) -> None:
    """Record what is odd about the decisions of a turn that has just ended."""
    here = known.state.here
    overruled = [name for name in known.decisions if is_engine_name(name) and known.overrules(name)]
    if overruled:
        names = ", ".join(map(repr, overruled[:MOST_NAMED]))
        step.warn(f"a decision cannot have a name that the engine gives its own value: {names}; the engine's is used")
    if dead_end:
        step.warn(f"{_why_no_transition(here)}: {dead_end}")
    elif here.compared:
        for problem in wrongly_typed(here, known.decisions)[:MOST_NAMED]:
            step.warn(f"{problem}; the comparison is false")
    for name in known.missing:
        if dead_end is None or name not in here.names:
            step.warn(f"decision {name!r} is missing; conditions of {here.name} take it as false")


def _leave(step: Step[GraphState], outcome: str, because: str, exit_condition: ExitCondition | None) -> None:
    """End the run; saved, so that it can be resumed, if the exit condition says so."""
    if exit_condition and exit_condition.action == SAVE:
        step.record(Saved(because=because))
        because = f"{because} Saved: `ripstop resume {step.run.id}` goes on from here."
    step.end(outcome, because)


def _leave_at_limit(step: Step[GraphState], state: GraphState, exit_condition: ExitCondition | None) -> None:
    text = f"{state.turns} turns were taken, which is all that max_turns allows."
    verdict = GuardTripped(guard="max_turns", limit=state.most_turns, value=state.turns, text=text)
    if exit_condition is None:
        step.stop(verdict)
    step.record(verdict)
    _leave(step, "limit", text, exit_condition)


def _first_that_holds(here: State, known: Known) -> tuple[int, Transition | None]:
    for index, transition, node in here.ways:
        if condition.evaluate(node, known.value):
            return index, transition
    return -1, None


def _exit_that_holds(graph: Graph, known: Known) -> ExitCondition | None:
    for exit_condition in graph.exit_conditions:
        if condition.evaluate(condition.parse(exit_condition.condition), known.value):
            return exit_condition
    return None


def _why_no_transition(here: State) -> str:
    if not here.transitions:
        return f"{here.name} has no transitions, so it leads to END"
    return f"none of the {len(here.transitions)} transitions of {here.name} holds"


def _error(step: Step[GraphState], reason: str) -> None:
    """Something went wrong that nobody handles: the exit conditions are told, and the run fails."""
    state = step.state
    exit_condition = _exit_that_holds(state.graph, Known(state, state.last.decisions, error=True))
    if exit_condition:
        reason = f"{reason} (error_occurred → {exit_condition.action})."
    _leave(step, "failed", reason, exit_condition)
