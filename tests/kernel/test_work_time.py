"""`seconds` limits time at work: waiting for people, timers and other processes does not count."""

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from ripstop.kernel.doubts import AGAIN
from ripstop.kernel.effects import (
    AgentReplied,
    AskAgent,
    AskPerson,
    CallTool,
    Command,
    Failed,
    Limits,
    PersonAnswered,
    RunFinished,
    SetTimer,
    StartRun,
    TimerFired,
    ToolReturned,
)
from ripstop.kernel.events import Answered, Asked, CallRefused, CancelRequested, Doubted, ResumeRequested, Withdrawn
from ripstop.kernel.folding import replay
from ripstop.kernel.run import DEADLINE, SECOND
from ripstop.testing import Errands, ErrandStyle, Given, given

AGENT, TOOL, PERSON = AskAgent(agent="ada"), CallTool(tool="t"), AskPerson(question="?")
CHILD, TEA = StartRun(workflow="w"), SetTimer(name="tea", after=5)
STYLE = ErrandStyle()
WEEK = 7 * 24 * 3600.0


def begun(*rounds: tuple[Command, ...], seconds: float = 60) -> Given:
    return given(STYLE, Errands(rounds=rounds), limits=Limits(seconds=seconds))


def deadlines(story: Given) -> list[float]:
    """The seconds of each deadline that was set so far."""
    asked = [record.event.command for record in story.records if isinstance(record.event, Asked)]
    return [command.after for command in asked if isinstance(command, SetTimer) and command.name == DEADLINE]


def worked(story: Given) -> float:
    assert story.run is not None
    return story.run.work.counted / SECOND


@pytest.mark.parametrize(
    ("command", "answer"),
    [(AGENT, AgentReplied()), (TOOL, ToolReturned()), (CHILD, RunFinished(run="x", outcome="completed"))],
)
def test_time_counts_while_a_call_is_open(command: Command, answer: AgentReplied) -> None:
    story = begun((command,), (PERSON,))
    story.tell(answer, after=7)
    assert worked(story) == 7


@pytest.mark.parametrize(("wait", "answer"), [(PERSON, PersonAnswered(choice="yes")), (TEA, TimerFired())])
def test_a_run_that_waits_for_a_week_does_not_end_by_it(wait: Command, answer: PersonAnswered) -> None:
    story = begun((AGENT,), (wait,), (AGENT,), (PERSON,))
    story.tell(AgentReplied(), after=10)
    assert story.run is not None and story.run.work.deadline == 0
    told = story.when(Answered(to=max(story.run.open), answer=answer), after=WEEK)
    told.then_asks(AGENT, SetTimer(name=DEADLINE, after=50))
    story.tell(AgentReplied(), after=5)
    assert worked(story) == 15


def test_a_step_from_call_to_call_leaves_the_deadline_alone() -> None:
    story = begun((AGENT,), (TOOL,), (AGENT,))
    before = len(story.records)
    story.when(AgentReplied()).then_asks(TOOL)
    story.when(ToolReturned()).then_asks(AGENT)
    assert len(story.records) - before == 2 * 3, "an answer, a round and a call each"
    assert deadlines(story) == [60]


def test_the_deadline_is_withdrawn_when_nothing_is_at_work() -> None:
    story = begun((AGENT,), (PERSON,))
    told = story.when(AgentReplied())
    assert isinstance(told.decided[-1], Withdrawn)
    assert told.status == "waiting"


def test_calls_side_by_side_count_once() -> None:
    story = begun((AGENT, TOOL), (PERSON,))
    story.tell(AgentReplied(), after=3)
    story.tell(ToolReturned(), after=4)
    assert worked(story) == 7


def child_ended(worked: float | None, of: str = "x") -> RunFinished:
    return RunFinished(run=of, outcome="completed", worked=None if worked is None else round(worked * SECOND))


def test_a_child_counts_by_its_own_time_at_work() -> None:
    """It may have waited for a person for a week; it has a deadline of its own."""
    story = begun((CHILD,), (AGENT,), (PERSON,))
    assert deadlines(story) == []
    story.when(child_ended(10), after=WEEK).then_asks(AGENT, SetTimer(name=DEADLINE, after=50))
    assert worked(story) == 10


def test_children_side_by_side_count_once() -> None:
    story = begun((CHILD, CHILD), (PERSON,), seconds=600)
    assert story.run is not None
    first, second = story.run.open
    story.tell(Answered(to=first, answer=child_ended(100)), after=100)
    story.tell(Answered(to=second, answer=child_ended(100)), after=5)
    assert worked(story) == 105


def test_a_child_that_reports_after_its_parent_was_cancelled_counts() -> None:
    story = begun((CHILD,), (PERSON,), seconds=600)
    story.tell(CancelRequested())
    story.tell(Answered(to=3, answer=child_ended(30)))
    assert worked(story) == 30


@pytest.mark.parametrize(("child_worked", "counted"), [(100, 100), (70, 75), (3, 8), (None, 100)])
def test_a_call_and_a_child_side_by_side_count_no_longer_than_both_took(
    child_worked: float | None, counted: float
) -> None:
    story = begun((AGENT, CHILD), (PERSON,), seconds=600)
    story.tell(AgentReplied(), after=5)
    story.tell(child_ended(child_worked), after=95)
    assert worked(story) == counted


def test_of_a_refused_call_only_the_attempt_that_is_answered_counts() -> None:
    story = begun((AGENT,), (PERSON,), seconds=60)
    story.tell(CallRefused(to=3, reason="down", again=1), after=50)
    assert story.run is not None and story.run.work.deadline == 0
    story.tell(Answered(to=3, answer=AgentReplied(), took=7), after=WEEK)
    assert worked(story) == 7


def test_time_between_two_processes_does_not_count() -> None:
    story = begun((AGENT,), (AGENT,), (PERSON,))
    story.tell(AgentReplied(), after=10)
    later = story.now + round(WEEK * SECOND)
    story.tell(Answered(to=story.opened(AskAgent), answer=AgentReplied(), began=later), after=WEEK + 5)
    assert worked(story) == 15


def test_a_deadline_that_fires_after_a_restart_is_set_anew() -> None:
    story = begun((AGENT,), (PERSON,))
    later = story.now + round(WEEK * SECOND)
    told = story.when(Answered(to=4, answer=TimerFired(), began=later), after=WEEK + 2)
    told.then_asks(SetTimer(name=DEADLINE, after=58))
    story.when(TimerFired(), after=58).then_ends("limit", "60 s")


def test_a_deadline_that_cannot_fire_is_set_again_and_no_style_sees_it() -> None:
    story = begun((AGENT,), (PERSON,))
    told = story.when(Answered(to=4, answer=Failed(reason="no clock")), after=2)
    told.then_asks(SetTimer(name=DEADLINE, after=58))


def test_an_answer_of_a_person_does_not_count_what_was_interrupted() -> None:
    story = begun((AGENT, PERSON), (AGENT,), (PERSON,))
    story.tell(PersonAnswered(choice="yes"), after=WEEK)
    assert worked(story) == 0
    story.when(Answered(to=3, answer=AgentReplied(), began=story.now), after=5).then_asks(AGENT)
    assert worked(story) == 5


def test_a_call_in_doubt_is_not_at_work_until_it_is_repeated() -> None:
    story = begun((TOOL,), (PERSON,))
    story.tell(Doubted(to=3, evidence="?"), after=5)
    story.when(PersonAnswered(choice=AGAIN), after=WEEK).then_asks(SetTimer(name=DEADLINE, after=60))
    story.tell(ToolReturned(), after=8)
    assert worked(story) == 8


def test_raising_seconds_gives_exactly_so_many_more() -> None:
    story = begun((AGENT,), (PERSON,))
    story.when(TimerFired(), after=75).then_ends("limit", "60 s")  # a call that would not stop took longer
    told = story.when(ResumeRequested(raises={"seconds": 30}))
    told.then_asks(AGENT, SetTimer(name=DEADLINE, after=30))


@for_all(
    st.lists(st.tuples(st.booleans(), st.floats(0.001, 1000), st.floats(0, 1e6)), min_size=1, max_size=20),
)
def test_worked_time_is_the_sum_of_all_calls(turns: list[tuple[bool, float, float]]) -> None:
    """Turns of (interrupted, seconds at work, seconds of waiting before them), each call followed by a person."""
    rounds = tuple(((AGENT,), (PERSON,)) for _ in turns)
    story = begun(*(one for pair in rounds for one in pair), (PERSON,), seconds=1e9)
    total = 0
    for interrupted, at_work, waiting in turns:
        gap = waiting if interrupted else 0.0
        restarted = story.now + round(gap * SECOND) if interrupted else 0
        call = story.opened(AskAgent)
        before = story.now
        story.tell(Answered(to=call, answer=AgentReplied(), began=restarted), after=gap + at_work)
        total += story.now - max(before, restarted)
        story.tell(PersonAnswered(choice="yes"), after=waiting)
        assert story.run is not None and story.run.work.counted == total
    again = replay(STYLE, story.contents, "story", story.records)
    assert again is not None and story.run is not None and again.work == story.run.work
