"""A state that runs another workflow: what it gets, what its end decides, and what becomes of its failure."""

import hashlib
import json
from typing import Any

import pytest
from msgspec.structs import replace

from ripstop.kernel.budget import time_is_up
from ripstop.kernel.effects import (
    AgentReplied,
    AskAgent,
    Failed,
    Limits,
    RunFinished,
    StartRun,
    Usage,
)
from ripstop.kernel.events import (
    Answered,
    Asked,
    CancelRequested,
    Ended,
    Forked,
    GuardTripped,
    ResumeRequested,
    SettingsChanged,
    Warned,
    Withdrawn,
)
from ripstop.kernel.folding import replay
from ripstop.kernel.resuming import question_about_verdict
from ripstop.kernel.run import SECOND, WorkTime, fingerprint
from ripstop.kernel.step import Step
from ripstop.styles.graph.definition import END, SAVE, Agent, ExitCondition, Graph, State, Transition
from ripstop.styles.graph.kit import KIT
from ripstop.styles.graph.state import TurnFinished
from ripstop.testing import Given, given

STYLE = KIT.style


def nested(*transitions: tuple[str, str], input: str = "", limits: Limits | None = None, **more: Any) -> Graph:
    """An agent writes, then the workflow `review` is run; its transitions lead on."""
    ways = tuple(Transition(to, condition) for to, condition in transitions)
    write = State("write", "ann", "Write. {{last_agent_content}}", (Transition("check"),))
    check = State("check", transitions=ways, workflow="review", input=input, limits=limits)
    return Graph("g", "write", (Agent("ann"),), (write, check), initial_message="the goal", **more)


APPROVED = nested((END, "approved"), ("write", "NOT approved"))


def says(content: str = "A draft.", **decisions: Any) -> AgentReplied:
    return AgentReplied(text=json.dumps({"content": content, "decisions": decisions}))


def ended(story: Given, outcome: str = "completed", result: Any = None, because: str = "so", **of: Any) -> RunFinished:
    """The end of the child, whose result the journal has."""
    digest = ""
    if result is not None:
        digest = hashlib.sha256(json.dumps(result).encode()).hexdigest()
        story.contents.results[digest] = result
    return RunFinished(run=f"story.{story.opened(StartRun)}", outcome=outcome, because=because, result=digest, **of)


def child(story: Given) -> StartRun:
    assert story.run is not None
    command = story.run.open[story.opened(StartRun)].command
    assert isinstance(command, StartRun)
    return command


def given_to_child(story: Given) -> str:
    assert story.run is not None
    opened = story.run.open[story.opened(StartRun)]
    assert isinstance(opened.command, StartRun)
    return STYLE.start_child(opened.state, opened.command).input


def test_a_state_with_a_workflow_starts_it() -> None:
    given(STYLE, APPROVED).when(says()).then(TurnFinished, Asked).then_asks(StartRun)
    story = given(STYLE, APPROVED, says())
    assert (child(story).workflow, child(story).name, child(story).context) == ("review", "", (1, 3))
    assert STYLE.uses(APPROVED).children == {"review": ""}


def test_a_child_gets_what_was_said_last_or_the_goal() -> None:
    assert given_to_child(given(STYLE, APPROVED, says("A draft."))) == "A draft."
    first = replace(APPROVED, start="check")
    assert given_to_child(given(STYLE, first)) == "the goal"


def test_a_child_gets_its_input_template_filled_in() -> None:
    asks = nested((END, ""), input="Check {{last_agent_content}} for {{who}}.", values={"who": "Ms Ito"})
    assert given_to_child(given(STYLE, asks, says("A draft."))) == "Check A draft. for Ms Ito."


def test_the_result_of_a_child_decides_like_an_agent() -> None:
    story = given(STYLE, APPROVED, says())
    told = story.when(ended(story, result={"approved": True, "content": "Fine."})).then(TurnFinished, Ended)
    told.then_ends("completed", "approved")
    last = told.run.state.last
    assert (last.agent, last.content) == ("review", "Fine.")
    assert last.decisions == {"approved": True, "outcome": "completed"}


def test_the_decisions_in_the_result_of_a_graph_count_too() -> None:
    story = given(STYLE, APPROVED, says())
    result = {"content": "No.", "decisions": {"approved": False}}
    told = story.when(ended(story, result=result)).then(TurnFinished, Asked).then_asks(AskAgent)
    (ask,) = told.commands
    assert isinstance(ask, AskAgent)
    assert STYLE.render(told.run.open[told.run.length].state, ask).text == "Write. No."


@pytest.mark.parametrize("result", ["text", 3, [1], None])
def test_a_result_that_is_not_an_object_leaves_the_outcome(result: Any) -> None:
    story = given(STYLE, nested((END, 'outcome == "completed"')), says())
    told = story.when(ended(story, result=result)).then_ends("completed")
    assert told.run.state.last.decisions == {"outcome": "completed"}


def test_a_result_cannot_claim_another_outcome() -> None:
    story = given(STYLE, nested(("write", 'outcome == "completed"'), (END, "")), says())
    told = story.when(ended(story, "failed", {"outcome": "completed"})).then_ends("completed", "always")
    assert told.run.state.last.decisions["outcome"] == "failed"


@pytest.mark.parametrize(
    ("result", "files"),
    [
        ({"content": "", "decisions": {"files": ["/etc/passwd"]}}, None),
        ({"content": "", "files": "/etc/passwd"}, None),
        ({"content": "", "decisions": {"files": ["/etc/passwd"]}, "files": ["a.md"]}, ["a.md"]),
    ],
)
def test_a_decision_of_a_child_cannot_name_its_files(result: Any, files: Any) -> None:
    """They are what the engine knows that it wrote; a parent passes them on."""
    story = given(STYLE, nested((END, 'outcome == "completed"')), says())
    told = story.when(ended(story, result=result)).then_ends("completed", 'outcome == "completed"')
    assert told.run.state.last.decisions.get("files") == files


@pytest.mark.parametrize("outcome", ["failed", "stopped", "limit"])
def test_a_child_that_does_not_complete_fails_the_run(outcome: str) -> None:
    for graph in (nested(), nested((END, "")), nested(("write", "NOT approved"))):
        story = given(STYLE, graph, says())
        told = story.when(ended(story, outcome, because="no key")).then(Ended)
        told.then_ends("failed", f"'review' ended as {outcome} (story.5): no key")


def test_a_condition_on_the_outcome_leads_on_after_a_failure() -> None:
    handled = nested(("write", 'outcome == "failed"'), (END, 'outcome == "completed"'))
    story = given(STYLE, handled, says())
    story.when(ended(story, "failed")).then(TurnFinished, Asked).then_asks(AskAgent)
    story.tell(says("Another draft."))
    story.when(ended(story)).then_ends("completed")


def test_a_last_transition_catches_what_outcomes_left() -> None:
    story = given(STYLE, nested((END, 'outcome == "completed"'), ("write", "")), says())
    story.when(ended(story, "stopped")).then_asks(AskAgent)


def test_a_failure_that_no_condition_takes_fails_the_run() -> None:
    story = given(STYLE, nested((END, 'outcome == "completed"')), says())
    story.when(ended(story, "failed", because="no key")).then_ends("failed", "no key")


def test_a_completed_child_after_which_nothing_holds_ends_the_run_with_a_warning() -> None:
    story = given(STYLE, nested((END, "approved")), says())
    story.when(ended(story)).then(TurnFinished, Warned, Ended).then_ends("completed", "the only transition of")


def test_a_child_that_could_not_be_started_fails_the_run() -> None:
    story = given(STYLE, APPROVED, says())
    story.when(Failed(reason="no such workflow")).then_ends("failed", "no such workflow")


def test_children_count_as_turns() -> None:
    story = given(STYLE, replace(APPROVED, max_turns=2), says())
    told = story.when(ended(story, result={"approved": False})).then_ends("limit", "2 turns")
    assert told.run.state.counts == {"write": 1, "check": 1}


def test_a_child_gets_at_most_the_limits_of_its_state() -> None:
    story = given(STYLE, nested((END, ""), limits=Limits(calls=5, turns=3)), says(), limits=Limits(calls=4))
    limits = child(story).limits
    assert limits is not None and (limits.calls, limits.turns) == (3, 3)


def test_a_fork_starts_a_child_of_its_own_and_counts_it_once() -> None:
    story = given(STYLE, APPROVED, says())
    told = story.when(Forked(run="story", at=5)).then(Withdrawn, Asked).then_asks(StartRun)
    assert (told.run.state.turns, told.run.state.counts) == (2, {"write": 1, "check": 1})


def test_a_child_at_the_limit_of_the_family_continues_when_the_limit_is_raised() -> None:
    story = given(STYLE, APPROVED, says(), limits=Limits(calls=3))
    told = story.when(ended(story, "limit", calls=2)).then(GuardTripped, Ended).then_ends("limit", "calls")
    assert told.run.state.turns == 2
    told = story.when(ResumeRequested(raises={"calls": 2})).then_asks(StartRun)
    assert (child(story).name, told.run.state.turns) == ("story.5", 2)
    story.when(ended(story, result={"approved": True})).then_ends("completed")


def test_a_child_at_its_own_limit_fails_the_run() -> None:
    story = given(STYLE, APPROVED, says(), limits=Limits(calls=30))
    story.when(ended(story, "limit", calls=2)).then_ends("failed", "ended as limit")


def test_a_fork_does_not_continue_the_child_of_the_other_run() -> None:
    story = given(STYLE, APPROVED, says(), limits=Limits(calls=3))
    story.tell(ended(story, "limit", calls=2))
    story.when(Forked(run="story", at=6, limits=Limits(calls=9))).then_asks(StartRun)
    assert child(story).name == ""


def broken_off(story: Given) -> int:
    """The child, after a guard has stopped the run, as a deadline did in version 0.2 while a child was at work."""
    run, number = story.run, story.opened(StartRun)
    assert run is not None
    step = Step(STYLE, story.contents, run, "story", SettingsChanged(settings=run.settings), story.now)
    verdict = time_is_up(9.0, WorkTime(9 * SECOND))
    step.record(verdict)
    if run.guards.then == "ask":
        step.withdraw(number, "stopped by a guard")
        step.ask_unguarded(question_about_verdict(verdict))
    else:
        STYLE.stopped(step, verdict)
    story.run = step.run
    story.records += step.records
    assert [*step.run.late] == [number]
    return number


@pytest.mark.parametrize("then", ["ask", "end"])
def test_a_child_that_a_guard_broke_off_is_started_again_and_counts_once(then: str) -> None:
    story = given(STYLE, replace(APPROVED, guards={"then": then}), says(), limits=Limits(seconds=9.0))
    number = broken_off(story)
    story.when(ResumeRequested(raises={"seconds": 9.0})).then_asks()
    stopped = Answered(to=number, answer=RunFinished(run=f"story.{number}", outcome="stopped"))
    told = story.when(stopped).then_asks(StartRun)
    assert (child(story).name, told.run.state.turns) == ("", 2)
    story.when(ended(story, result={"approved": True})).then_ends("completed")


def test_a_workflow_is_a_turn_for_the_limit_of_turns() -> None:
    story = given(STYLE, APPROVED, limits=Limits(turns=1))
    verdict = story.when(says()).then_ends("limit", "turns to 2; the limit is 1").run.verdict
    assert verdict is not None and verdict.guard == "budget.turns"
    told = story.when(ResumeRequested(raises={"turns": 1})).then_asks(StartRun)
    assert STYLE.view.turns(told.run) == 2


def test_a_workflow_that_is_started_again_is_within_the_limit_of_turns() -> None:
    story = given(STYLE, APPROVED, says(), limits=Limits(turns=2, seconds=9.0))
    number = broken_off(story)
    story.tell(ResumeRequested(raises={"seconds": 9.0}))
    told = story.when(Answered(to=number, answer=RunFinished(run="x", outcome="stopped")))
    told.then_asks(StartRun)
    assert STYLE.view.turns(told.run) == 2


def test_a_child_too_deep_is_stopped_by_the_guard() -> None:
    given(STYLE, APPROVED, depth=8).when(says()).then_ends("limit", "deep")


def test_cancelling_ends_the_run_with_what_was_said() -> None:
    story = given(STYLE, APPROVED, says("A draft."))
    told = story.when(CancelRequested(by="zoe")).then_ends("stopped", "zoe")
    assert told.run.ended is not None and story.contents.results[told.run.ended.result]["content"] == "A draft."
    assert not told.run.is_settled, "its child is still to be cancelled"


def test_a_saved_failure_runs_the_workflow_again_when_resumed() -> None:
    saves = (ExitCondition("error_occurred", SAVE),)
    story = given(STYLE, replace(APPROVED, exit_conditions=saves), says())
    story.when(ended(story, "failed")).then_ends("failed", "Saved")
    told = story.when(ResumeRequested()).then_asks(StartRun)
    assert child(story).name == "" and told.run.state.turns == 3


def test_the_same_result_again_and_again_is_a_circle() -> None:
    story = given(STYLE, replace(APPROVED, max_turns=100), limits=Limits())
    for _ in range(5):
        story.tell(says())
        story.tell(ended(story, result={"approved": False}))
    assert story.run is not None and story.run.verdict is not None and story.run.verdict.guard == "circle"


def test_what_a_child_spent_counts() -> None:
    story = given(STYLE, APPROVED, says())
    told = story.when(ended(story, result={"approved": True}, calls=4, usage=Usage(input_tokens=9)))
    assert (told.run.spent.calls, told.run.spent.usage.input_tokens) == (5, 9)


def test_a_run_with_children_folds_to_the_same_state() -> None:
    story = given(STYLE, APPROVED, says())
    story.tell(ended(story, result={"approved": False, "content": "Again."}))
    story.tell(says())
    folded = replay(STYLE, story.contents, story.run_id, story.records)
    assert folded is not None and story.run is not None and fingerprint(folded) == fingerprint(story.run)


def test_explains_a_child_by_its_outcome() -> None:
    story = given(STYLE, nested((END, 'outcome == "completed"')), says())
    before = story.run
    assert before is not None
    answered, finished, *_ = story.when(ended(story)).events
    (reason,) = STYLE.view.explain(STYLE.evolve(before.state, before.length + 1, answered), finished).reasons
    assert (reason.holds, reason.taken) == (True, True)
    assert reason.tree == ("outcome ['completed'] == 'completed' = true",)


def test_the_picture_names_the_workflow_at_work() -> None:
    story = given(STYLE, APPROVED, says())
    assert story.run is not None and STYLE.view.picture(story.run).whose_turn == "review"
