"""Which turn of a graph is next, and when its run ends.

After every turn, in this order:

1. The reply is read ("files first, JSON last"). If it has no `decisions`, if it does not end with them, if one that
   has to be true or false is neither, or if files of it could not be written, the agent is asked again and told what
   was wrong; still so after `reasks` times, the run has an error. A recording cannot answer otherwise, so there files
   that are missing are warnings.
2. Exit conditions are checked, the turn limit always among them. After the last allowed turn a
   transition to `END` that holds still counts as completed.
3. Transitions are tried in order; the first that holds is taken. A state without transitions is the end. Where
   there are some and none holds because a decision is missing or of the wrong type, the agent is asked once more;
   otherwise, and after that, it is the end as well, with a warning.

A state can run another workflow instead: its end is a turn, and its result is what was said and decided
(`children.py`).
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ripstop.kernel import progress
from ripstop.kernel.budget import allows_no_child, before_turn
from ripstop.kernel.effects import Answer, Failed, RunFinished
from ripstop.kernel.errors import Unworkable
from ripstop.kernel.events import GuardTripped
from ripstop.kernel.result import FILES, Result, handed_on, read_result
from ripstop.kernel.step import Step
from ripstop.kernel.style import Child
from ripstop.text.courtesy import courteous
from ripstop.text.plurals import count

from .. import reply
from .. import turn as turns
from ..final_object import final_decisions
from ..shortening import cut
from ..turn import FinishedTurn, Turn
from . import condition, template
from .condition import MISSING, And, Compare, Expression, Literal, Name, Not, Or
from .definition import END, OUTCOME, SAVE, ExitCondition, Graph, State, Transition
from .prompts import is_engine_name
from .state import FROM_OUTSIDE, VALUES, GraphState, Known, Saved, TurnFinished, Word

# What a workflow that a state runs comes to, as if an agent had said it.
#
# - `outcome` is a decision like an agent's. So are the keys of the child's result, and those of its `decisions`, which
#   the result of a graph has.
# - A workflow that did not complete fails the run, unless a transition of the state asks for the outcome.


DECISIONS = "decisions"


def result_of(state: GraphState) -> Result | None:
    """The result of a run: what was said last, and the decisions in force."""
    last = state.last
    return Result(last.content, {DECISIONS: last.decisions}) if last.number else None


def joined(here: State, number: int, finished: RunFinished, value: Any) -> Word:
    """What a child came to: its text is said, or why it did not complete; its data and its files are decisions.

    A decision of its agents takes the place neither of its outcome nor of its files. `number` is the record of its end.
    """
    result = read_result(value)
    decisions = dict(result.data) if isinstance(result.data, dict) else {}
    made = decisions.pop(DECISIONS, None)
    decisions = {**(made if isinstance(made, dict) else {}), **decisions, OUTCOME: finished.outcome}
    decisions.pop(FILES, None)
    if result.files:
        decisions[FILES] = list(result.files)
    return Word(here.workflow, handed_on(result.text, finished), decisions, number)


def child_of(state: GraphState) -> Child:
    """What the workflow of the state gets."""
    here = state.here
    if not here.input:
        return Child(input=state.last.content or state.goal)
    return Child(input=template.render(here.input_template, VALUES, state, values_of(state)))


def task_of(state: GraphState, pieces: tuple[template.Piece, ...], longest: int) -> str:
    """What an agent is told to do. `longest`: characters of each text in it that is not the graph's own; 0: all."""
    if not longest:
        return template.render(pieces, VALUES, state, values_of(state))
    outside = {name: cut(VALUES[name](state), longest) for name in FROM_OUTSIDE}
    own = {name: value for name, value in VALUES.items() if name not in outside}
    values = {name: cut(text, longest) if name in state.given else text for name, text in values_of(state).items()}
    return template.render(pieces, own, state, {**values, **outside})


def values_of(state: GraphState) -> dict[str, str]:
    """The values of a run: as it was started with them, or as the graph says."""
    declared = state.definition.values
    return {name: state.given.get(name, default) or "" for name, default in declared.items()} if declared else {}


# Why no transition of a state holds: the values that its conditions saw, and which of them could not be compared.
#
# - A decision that is missing, or of another type than what it is compared with, makes a comparison false whatever
#   the agent meant. So each condition is evaluated once more with such comparisons as *unknown*.
# - A decision that is not compared with anything is false if it is missing, which is what the author can rely on. Only
#   if the agent decided something of almost the same name (`Approved`) is it unknown.
# - A condition that then is neither true nor false could hold if the agent decided properly: its decisions are worth
#   another question. If every condition is false either way, asking again would not help.


Lookup = Callable[[str], Any]

MOST_SHOWN = 60
"""Characters of a value that are shown: an agent can decide on a whole book."""
MOST_NAMED = 8
"""Decisions that are named in one message."""


class DeadEnd(Struct, frozen=True):
    problems: tuple[str, ...]
    """What was wrong with the decisions that kept a condition from holding; empty if nothing was."""
    values: tuple[str, ...]
    """Every decision that the conditions name, with the value it had."""

    def __str__(self) -> str:
        return "; ".join((self.problems or self.values)[:MOST_NAMED])


def explain_dead_end(here: State, decisions: Mapping[str, Any], lookup: Lookup) -> DeadEnd:
    """Why none of the transitions of `here` holds. `lookup` is what evaluated them."""
    unfit: dict[str, None] = {}
    compared: dict[str, dict[str, Any]] = {}
    for _, _, node in here.ways:
        found: dict[str, None] = {}
        if _holds(node, lookup, decisions, found) is None:
            unfit |= found
        _compared(node, lookup, compared)
    problems = tuple(_problem(name, lookup(name), compared[name], decisions) for name in unfit)
    values = tuple(_value(name, lookup(name), against) for name, against in compared.items())
    return DeadEnd(problems, values)


def wrongly_typed(here: State, decisions: Mapping[str, Any]) -> list[str]:
    """What is wrong with decisions that are of another type than all that the transitions compare them with."""
    return [
        _problem(name, decisions[name], {_shown(value): value for value in values}, decisions)
        for name, values in here.compared.items()
        if name in decisions and not any(condition.comparable(decisions[name], value) for value in values)
    ]


def not_boolean(here: State, graph: Graph, known: Known) -> tuple[str, ...]:
    """The decisions that a condition needed as true or false and that are neither; each as a message says it.

    A text such as "false" or "no" would be taken as true, and a refusal as an approval. What a transition behind the
    first one that holds would need does not matter.
    """
    unfit = [name for name, value in known.decisions.items() if type(value) is not bool]
    if not unfit or (here.flags.isdisjoint(unfit) and graph.exit_flags.isdisjoint(unfit)):
        return ()
    found: dict[str, Any] = {}
    exits = (condition.parse(one.condition) for one in graph.exit_conditions)
    for nodes in (exits, (node for _, _, node in here.ways)):
        for node in nodes:
            traced = condition.trace(node, known.value)
            found |= {flag.node.name: flag.value for flag in condition.flags(traced) if isinstance(flag.node, Name)}
            if traced.value:
                break
    mine = known.decisions.keys() - graph.engine_names - (set() if here.agent else {FILES, OUTCOME})
    wrong = (name for name, value in found.items() if name in mine and not isinstance(value, bool))
    return tuple(f"{name} must be true or false, and is {described(found[name])}" for name in wrong)


def _holds(node: Expression, lookup: Lookup, decisions: Mapping[str, Any], unfit: dict[str, None]) -> bool | None:
    """Whether a condition holds; none if that depends on decisions that are missing or of the wrong type."""
    match node:
        case Name(name=name):
            value = lookup(name)
            if value is MISSING and _misspelt(name, decisions):
                unfit[name] = None
                return None
            return bool(value)
        case Compare(operator=symbol, left=left, right=right):
            values = condition.evaluate(left, lookup), condition.evaluate(right, lookup)
            blamed = [] if condition.comparable(*values) else _blamed((left, right), lookup)
            unfit |= dict.fromkeys(blamed)
            return None if blamed else condition.compare(symbol, *values)
        case Not(operand=operand):
            inner = _holds(operand, lookup, decisions, unfit)
            return None if inner is None else not inner
        case And(left=left, right=right) | Or(left=left, right=right):
            decisive = isinstance(node, Or)
            first = _holds(left, lookup, decisions, unfit)
            if first is decisive:
                return decisive
            second = _holds(right, lookup, decisions, unfit)
            return decisive if second is decisive else None if first is None or second is None else not decisive
    return bool(condition.evaluate(node, lookup))


def _blamed(sides: tuple[Expression, Expression], lookup: Lookup) -> list[str]:
    """The decisions because of which two sides cannot be compared: those that are missing, else both."""
    names = [side.name for side in sides if isinstance(side, Name) and not is_engine_name(side.name)]
    return [name for name in names if lookup(name) is MISSING] or names


def _compared(node: Expression, lookup: Lookup, found: dict[str, dict[str, Any]]) -> None:
    """What each name of a condition is compared with: as it is written, and the value."""
    match node:
        case Name(name=name):
            found.setdefault(name, {})
        case Compare(left=left, right=right):
            for side, other in ((left, right), (right, left)):
                if isinstance(side, Name):
                    value = condition.evaluate(other, lookup)
                    written = other.name if isinstance(other, Name) else _shown(value)
                    found.setdefault(side.name, {})[written] = value
                elif not isinstance(side, Literal):
                    _compared(side, lookup, found)
        case Not(operand=operand):
            _compared(operand, lookup, found)
        case And(left=left, right=right) | Or(left=left, right=right):
            _compared(left, lookup, found)
            _compared(right, lookup, found)


def _problem(name: str, value: Any, against: Mapping[str, Any], decisions: Mapping[str, Any]) -> str:
    if value is MISSING:
        said = f"{name} is missing"
        wrong = _misspelt(name, decisions)
        if wrong:
            said += f", but {_shown(wrong)} is there (did you mean {_shown(name)}?)"
    else:
        wanted = type_name(next(iter(against.values()), True))
        said = f"{name} is {described(value)}" + (f", not {wanted}" if wanted not in ("", type_name(value)) else "")
    return f"{said}; the transitions compare it with {', '.join([*against][:MOST_NAMED])}" if against else said


def _misspelt(name: str, decisions: Mapping[str, Any]) -> str:
    """The decision that was perhaps meant: its name differs only in case, spaces, hyphens or underscores."""
    wanted = _plain(name)
    return next((given for given in decisions if len(given) < 2 * len(name) + 9 and _plain(given) == wanted), "")


def _plain(name: str) -> str:
    return "".join(name.casefold().replace("-", "").replace("_", "").split())


def _value(name: str, value: Any, against: Mapping[str, Any]) -> str:
    said = f"{name} is {described(value)}"
    near = _other_case(value, against.values())
    return f"{said} (did you mean {_shown(near)}?)" if near else said


def _other_case(value: Any, against: Any) -> str:
    """The text that a value is compared with and differs from only in case or in spaces around it."""
    if not isinstance(value, str) or len(value) > MOST_SHOWN or value in against:
        return ""
    texts = (other for other in against if isinstance(other, str))
    return next((text for text in texts if text.casefold().strip() == value.casefold().strip()), "")


def described(value: Any) -> str:
    """A value as a message names it: `the text "9"`, `true`, `a list`."""
    kind = type_name(value)
    if value is MISSING:
        return "missing"
    if value is None or isinstance(value, bool):
        return _shown(value)
    return f"{kind.replace('a ', 'the ', 1)} {_shown(value)}" if isinstance(value, str | int | float) else kind


def type_name(value: Any) -> str:
    """What a value is, with its article; nothing for a value that is missing."""
    if isinstance(value, bool):
        return "true or false"
    names = {int: "a number", float: "a number", str: "a text", list: "a list", dict: "an object", type(None): "null"}
    return names.get(type(value), "")


def _shown(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return str(value).lower().replace("none", "null")
    text = value if isinstance(value, str) else repr(value)
    text = text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"
    return json.dumps(text, ensure_ascii=False) if isinstance(value, str) else text


COMPLETED = "completed"


# Beginning a turn


def need_values(state: GraphState) -> None:
    unset = state.definition.unset(state.given)
    if unset:
        raise Unworkable(f"The workflow requires values that were not set: {', '.join(unset)}.")


def refuse_undeclared(state: GraphState) -> None:
    """A value of another name than any that the graph declares is a slip. After a fork it may be a former one."""
    unknown = [name for name in state.given if name not in state.definition.values]
    if unknown:
        have = ", ".join(state.definition.values) or "none"
        raise Unworkable(f"The workflow declares no value {unknown[0]!r}; it declares: {have}.")


def resume_turn(step: Step[GraphState]) -> None:
    """Continue a run that was stopped somewhere. A turn in which tools were called goes on, any other begins again."""
    state = step.state
    if state.turn is None or state.agent is None or not state.turn.has_operations:
        return give_turn_again(step)
    finished = turns.resume(step, state.turn, state.agent.may_call)
    if finished:  # its last reply was an error, or the turn would be over
        turns.correct(step, state.turn, finished, _what_was_wrong(step.state, finished))
    return None


def give_turn_again(step: Step[GraphState]) -> None:
    """Begin a turn again that was under way when the run was stopped or forked."""
    if step.state.turn is not None:
        step.restart_turn(step.state.turn.number)
    give_turn(step)


def give_turn(step: Step[GraphState]) -> None:
    state = step.state
    # the guard itself counts turns of agents only; a workflow that is started again is counted already
    verdict = before_turn(step.run.limits, state.turns - bool(state.child))
    if verdict:
        step.stop(verdict)
    last = state.last.number
    context = (1, last) if last else (1,)
    if state.agent is None:
        step.ask(replace(state.here.start_run, name=state.continued, context=context))
    else:
        step.ask(replace(state.agent.question, context=context))


# Ending a turn


def after_child(step: Step[GraphState], answer: Answer) -> None:
    state, here = step.state, step.state.here
    if not isinstance(answer, RunFinished) or state.joined is None:
        reason = answer.reason if isinstance(answer, Failed) else "its run has no end"
        return _error(step, f"the workflow {here.workflow!r} could not be run: {reason}")
    word = state.joined
    known = Known(state, word.decisions)
    handled = here.handles_failure and _first_that_holds(here, known)[1] is not None
    if answer.outcome == COMPLETED or handled:
        return _follow(step, word, None)
    if answer.outcome == "limit" and allows_no_child(step.run, here.start_run):
        return give_turn(step)  # it is the run's own limit, so a guard says so
    return _error(step, f"the workflow {here.workflow!r} ended as {answer.outcome} ({answer.run}): {answer.because}")


def after_turn(step: Step[GraphState], finished: FinishedTurn) -> None:
    if finished.failure:
        return _error(step, finished.failure.reason)
    turn = step.state.turn
    assert turn is not None
    try:
        content, decisions = final_decisions(finished.text)
    except reply.NoReply as problem:
        if finished.corrections < step.state.definition.reasks and not finished.recorded:
            return turns.correct(step, turn, finished, _correction(str(problem)) + finished.about_files())
        return _error(step, f"agent {turn.ask.agent!r} broke the protocol: {problem}")
    if finished.must_be_repeated:
        if finished.corrections < step.state.definition.reasks:
            return turns.correct(step, turn, finished, finished.about_files() + _JSON_AGAIN)
        return _error(step, finished.why_incomplete(turn.ask.agent))
    turns.warn_about_files(step, finished)
    _follow(step, Word(turn.ask.agent, content, decisions, finished.number), finished)


_JSON_AGAIN = "End with the same JSON object as before."


def _correction(problem: str) -> str:
    return (
        f"Your reply could not be used: {problem}. Answer again. End with one JSON object and nothing after it, "
        'like {"content": "what you did", "decisions": {…}}, with the decision fields that the task asks for.\n'
    )


def _follow(step: Step[GraphState], word: Word, finished: FinishedTurn | None) -> None:
    """Go where a turn leads. `finished` is the agent's turn; none after a workflow."""
    state = step.state
    graph, here, turn = state.definition, state.here, state.turn
    unfit = not_boolean(here, graph, Known(state, word.decisions))
    if unfit and turn and finished and finished.corrections < graph.reasks and not finished.recorded:
        return turns.correct(step, turn, finished, _not_used(unfit))
    if unfit:
        return _error(step, f"{_who(here, word)} broke the protocol: {'; '.join(unfit[:MOST_NAMED])}")
    known = Known(state, word.decisions)
    index, transition = _first_that_holds(here, known)
    exit_condition = _exit_that_holds(graph, known) if graph.exit_conditions else None
    if known.missing and graph.strict_decisions:
        names = ", ".join(repr(name) for name in known.missing)
        return _error(step, f"the decisions of {here.name} lack {names} (strict_decisions)")
    exceeded = state.turns >= state.most_turns
    leaves = exit_condition is not None and not exceeded
    dead_end = None
    if transition is None and here.transitions and not leaves:
        dead_end = explain_dead_end(here, word.decisions, known.value)
        asks_again = finished is not None and finished.corrections < graph.reasks and not finished.recorded
        if dead_end.problems and asks_again and turn and finished:
            return turns.correct(step, turn, finished, _undecided(dead_end))
    _finish_turn(step, word, turn, transition, index)
    _warn(step, known, dead_end)
    if exit_condition and leaves:
        reason = f"exit condition {exit_condition.condition!r} holds ({exit_condition.action})"
        return _leave(step, "stopped", reason, exit_condition)
    if transition is None:
        return end_run(step, COMPLETED, _why_no_transition(here))
    if transition.to == END:
        return end_run(step, COMPLETED, f"{here.name} → END: {transition.condition or 'always'}")
    if exceeded:
        return _leave_at_limit(step, state, exit_condition)
    give_turn(step)


def _who(here: State, word: Word) -> str:
    return f"agent {word.agent!r}" if here.agent else f"the workflow {here.workflow!r}"


def _finish_turn(
    step: Step[GraphState], word: Word, turn: Turn | None, transition: Transition | None, index: int
) -> None:
    decisions, guards = word.decisions, step.run.guards
    done = turns.effects_of(turn) if turn else []
    step.record(
        TurnFinished(
            reply=word.number,
            to=transition.to if transition else "",
            via=index,
            agent=word.agent,
            digest=progress.digest(decisions, done) if decisions or done else progress.NOTHING,
            courteous=turn is not None and courteous(word.content, guards),
            end_marker=turn is not None and progress.has_end_marker(word.content, guards),
        )
    )


def _what_was_wrong(state: GraphState, finished: FinishedTurn) -> str:
    """What an agent is told about a reply that made the run fail."""
    try:
        _, decisions = final_decisions(finished.text)
    except reply.NoReply as problem:
        return _correction(str(problem)) + finished.about_files()
    if finished.must_be_repeated:
        return finished.about_files() + _JSON_AGAIN
    unfit = not_boolean(state.here, state.definition, Known(state, decisions))
    if unfit:
        return _not_used(unfit)
    return _correction("a decision is missing")


_PUT_RIGHT = (
    "Answer again: the same JSON object with its decisions put right, and nothing after it. Files that you have "
    "delivered are kept; do not repeat them."
)


def _undecided(dead_end: DeadEnd) -> str:
    return f"Your decisions do not choose a next step: {dead_end}. {_PUT_RIGHT}"


def _not_used(unfit: Sequence[str]) -> str:
    return f"Your decisions cannot be used: {'; '.join(unfit[:MOST_NAMED])}. {_PUT_RIGHT}"


def _warn(step: Step[GraphState], known: Known, dead_end: DeadEnd | None) -> None:
    """Record what is odd about the decisions of a turn that has just ended."""
    here = known.state.here
    engine_names = known.state.definition.engine_names
    if not engine_names.isdisjoint(known.decisions):
        overruled = [name for name in known.decisions if name in engine_names]
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
        because = f"{because} Saved: it can be resumed from here."
    end_run(step, outcome, because)


def end_run(step: Step[GraphState], outcome: str, because: str) -> None:
    step.end(outcome, because, result_of(step.state))


def _leave_at_limit(step: Step[GraphState], state: GraphState, exit_condition: ExitCondition | None) -> None:
    text = f"{count(state.turns, 'turn')} taken, which is all that max_turns allows."
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
    if len(here.transitions) == 1:
        return f"the only transition of {here.name} does not hold"
    return f"none of the {len(here.transitions)} transitions of {here.name} holds"


def _error(step: Step[GraphState], reason: str) -> None:
    """An error that nothing handles: the exit conditions are checked, and the run fails."""
    state = step.state
    exit_condition = _exit_that_holds(state.definition, Known(state, state.last.decisions, error=True))
    if exit_condition:
        reason = f"{reason} (error_occurred → {exit_condition.action})."
    _leave(step, "failed", reason, exit_condition)
