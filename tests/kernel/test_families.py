"""A family cannot grow without end, and a call that was cut off is not forgotten."""

import pytest

from ripstop.kernel.effects import (
    Answer,
    AskAgent,
    AskPerson,
    CallTool,
    Command,
    CutOff,
    Failed,
    Limits,
    PersonAnswered,
    RunFinished,
    StartRun,
)
from ripstop.kernel.events import Answered, CancelRequested, Doubted, Forked, Heard, ResumeRequested, Warned
from ripstop.kernel.folding import replay
from ripstop.kernel.resuming import CONTINUE, STOP
from ripstop.kernel.run import status
from ripstop.kernel.step import decide_again
from ripstop.testing import Errands, ErrandStyle, Given, given
from ripstop.testing.scenarios import ScenarioOutcome

AGENT, CHILD = AskAgent(agent="ada"), StartRun(workflow="w", limits=Limits(calls=1))


MANY = RunFinished(run="x", outcome="limit", runs=500)


def test_a_limit_of_runs_is_held_before_the_child_that_would_exceed_it() -> None:
    story = given(ErrandStyle(), Errands(rounds=((CHILD,), (CHILD,))), limits=Limits(runs=500))
    told = story.when(MANY).then_ends("limit", "The next workflow would bring runs to 501; the limit is 500.")
    assert told.run.verdict is not None and told.run.verdict.guard == "budget.runs"


def test_a_run_without_a_limit_of_runs_has_as_many_as_it_starts() -> None:
    story = given(ErrandStyle(), Errands(rounds=((CHILD,), (CHILD,))))
    assert story.when(MANY).then_asks(StartRun).run.spent.runs == 500


def test_children_that_have_not_ended_count_for_the_limit_of_runs() -> None:
    story = given(ErrandStyle(), Errands(rounds=((CHILD, CHILD, CHILD),)), limits=Limits(runs=2))
    assert story.run is not None and story.run.ended is not None
    assert story.run.ended.because == "The next workflow would bring runs to 3; the limit is 2."


def test_a_child_can_start_what_is_left_of_the_limit_of_runs() -> None:
    story = given(ErrandStyle(), Errands(rounds=((CHILD,), (CHILD,), (CHILD,))), limits=Limits(runs=6))
    assert slice_of(story) == 5
    story.tell(RunFinished(run="x", outcome="completed", runs=3))
    assert slice_of(story) == 2
    story.tell(RunFinished(run="y", outcome="completed", runs=2))
    assert slice_of(story) == 0, "itself, and no other"


def test_a_limit_of_runs_can_be_raised() -> None:
    story = given(ErrandStyle(), Errands(rounds=((CHILD,), (CHILD,))), limits=Limits(runs=1))
    story.tell(RunFinished(run="x", outcome="completed"))
    told = story.when(ResumeRequested(raises={"runs": 2.0})).then_asks(StartRun)
    assert told.run.limits.runs == 3


def slice_of(story: Given) -> int | None:
    assert story.run is not None
    command = story.run.open[story.opened(StartRun)].command
    assert isinstance(command, StartRun) and command.limits is not None
    return command.limits.runs


def test_a_child_counts_itself_and_its_descendants() -> None:
    story = given(ErrandStyle(), Errands(rounds=((CHILD,), (CHILD,), (CHILD,))))
    story.tell(RunFinished(run="x", outcome="completed"))
    told = story.when(RunFinished(run="y", outcome="completed", runs=4))
    assert told.run.spent.runs == 5


def cut_off(*commands: Command) -> Given:
    """A run that its limit stopped while the commands were at work; the first of them is record 3."""
    story = given(ErrandStyle(), Errands(rounds=((*commands, AGENT),)), limits=Limits(turns=0))
    assert story.run is not None and story.run.ended
    return story


def question_in(told: ScenarioOutcome) -> str:
    (command,) = told.then_asks(AskPerson).commands
    assert isinstance(command, AskPerson)
    return command.question


UNKNOWN = Failed(reason="cut off", uncertain=True)
PAID_BELOW = RunFinished(run="story.3", outcome="stopped", uncertain=(CutOff(number=7, run="story.3", what="pay"),))
MORE = ResumeRequested(raises={"turns": 9.0})
CUT_OFF = [(CallTool(tool="pay"), UNKNOWN, "pay (story/3)"), (CHILD, PAID_BELOW, "pay (story.3/7)")]


@pytest.mark.parametrize(("command", "answer", "named"), CUT_OFF, ids=["own", "child"])
def test_a_person_is_asked_before_a_cut_off_call_can_be_repeated(command: Command, answer: Answer, named: str) -> None:
    story = cut_off(command)
    story.tell(Answered(to=3, answer=answer))
    asked = question_in(story.when(MORE))
    assert named in asked and "may have taken effect" in asked
    story.when(MORE).then_nothing()
    story.when(PersonAnswered(choice=CONTINUE)).then_asks(type(command), AskAgent)
    assert story.run is not None and story.run.uncertain == (), "it is asked once"


@pytest.mark.parametrize(("command", "answer", "named"), CUT_OFF, ids=["own", "child"])
def test_a_person_can_stop_a_run_that_may_repeat_a_call(command: Command, answer: Answer, named: str) -> None:
    story = cut_off(command)
    story.tell(Answered(to=3, answer=answer))
    story.tell(MORE)
    story.when(PersonAnswered(choice=STOP)).then_ends("stopped", named)
    story.when(ResumeRequested()).then_asks(type(command), AskAgent)


@pytest.mark.parametrize("choice", [CONTINUE, STOP])
def test_a_run_that_was_resumed_too_early_asks_when_a_call_reports(choice: str) -> None:
    story = cut_off(CallTool(tool="pay"))
    story.when(MORE).then_asks(CallTool, AskAgent)
    assert "pay (story/3)" in question_in(story.when(Answered(to=3, answer=UNKNOWN)))
    told = story.when(PersonAnswered(choice=choice))
    assert bool(told.run.ended) is (choice == STOP)


def test_a_resumed_run_waits_for_the_children_that_were_stopped_with_it() -> None:
    story = cut_off(CHILD, CHILD)
    told = story.when(MORE)
    assert (told.run.ended, told.run.open, told.run.limits.turns) == (None, {}, 9)
    assert status(told.run, listening=False) == "waiting"
    story.when(MORE).then_nothing()
    assert story.when(Answered(to=4, answer=RunFinished(run="story.4", outcome="stopped"))).run.resuming
    story.when(Answered(to=3, answer=RunFinished(run="story.3", outcome="stopped"))).then_asks(
        StartRun, StartRun, AskAgent
    )
    assert story.run is not None and not story.run.resuming


def test_a_run_that_waits_for_its_children_asks_what_they_were_doing() -> None:
    story = cut_off(CHILD)
    story.tell(MORE)
    assert "pay (story.3/7)" in question_in(story.when(Answered(to=3, answer=PAID_BELOW)))


def test_a_run_that_waits_for_its_children_can_be_cancelled() -> None:
    story = cut_off(CHILD)
    story.tell(MORE)
    story.when(CancelRequested()).then_ends("stopped")
    assert not story.when(Answered(to=3, answer=PAID_BELOW)).decided


def test_a_fork_where_the_children_had_reported_continues() -> None:
    story = cut_off(CHILD)
    story.tell(MORE)
    story.tell(Answered(to=3, answer=PAID_BELOW))
    at = next(record.number for record in story.records if isinstance(record.event, Answered))
    before = replay(story.style, story.contents, "story", story.records[: at - 1])
    forked = Forked(run="story", at=at)
    step = decide_again(story.style, story.contents, before, story.records[at - 1], forked, "fork", 1)
    assert any(type(opened.command) is AskPerson for opened in step.run.open.values())


def test_a_call_in_doubt_when_its_run_stopped_is_asked_about_again() -> None:
    errands = Errands(rounds=((CallTool(tool="pay"),), (AGENT,)), listens=True)
    story = given(ErrandStyle(), errands, Doubted(to=3, evidence="Its worker died."), limits=Limits(turns=0))
    story.when(Heard(text="go on")).then_ends("limit")
    assert "pay (story/3)" in question_in(story.when(MORE))
    story.when(PersonAnswered(choice=CONTINUE)).then_asks(AskAgent)


def test_a_parent_is_warned_of_a_call_that_its_child_had_cut_off() -> None:
    story = given(ErrandStyle(), Errands(rounds=((CHILD,), (AGENT,))))
    told = story.when(PAID_BELOW)
    warned = [event.text for event in told.decided if isinstance(event, Warned)]
    assert len(warned) == 1 and "pay (story.3/7)" in warned[0]
