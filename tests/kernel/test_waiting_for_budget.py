"""A budget that is set aside is not used up: what needs it waits until it comes back, and ends the run only if not."""

import pytest

from ripstop.kernel.effects import (
    AgentReplied,
    AnswerChild,
    AskAgent,
    AskPerson,
    Command,
    Failed,
    Limits,
    RunFinished,
    Said,
    StartRun,
    Usage,
)
from ripstop.kernel.events import (
    Allowed,
    Answered,
    Asked,
    CancelRequested,
    ChildSpoke,
    Forked,
    GuardTripped,
    Heard,
    Record,
    ResumeRequested,
)
from ripstop.kernel.folding import replay
from ripstop.kernel.outbox import Change, Closed, Opened, Released, plan
from ripstop.kernel.run import status
from ripstop.kernel.step import Step, advance
from ripstop.kernel.style import News
from ripstop.testing import Errands, ErrandStyle, Given, given
from ripstop.testing.stub_style import StubState

ADA, BOB = AskAgent(agent="ada"), AskAgent(agent="bob")
CHILD, QUESTION = StartRun(workflow="w"), AskPerson(question="Well?")
THREE = StartRun(workflow="w", limits=Limits(calls=3))


def asking(*commands: Command, limits: Limits, then: tuple[Command, ...] = ()) -> Given:
    """The first command is record 3."""
    rounds = (commands, then) if then else (commands,)
    return given(ErrandStyle(), Errands(rounds=rounds), limits=limits)


def finished(to: int, calls: int = 0, **usage: int) -> Answered:
    return Answered(
        to=to, answer=RunFinished(run=f"story.{to}", outcome="completed", calls=calls, usage=Usage(**usage))
    )


def waiting(story: Given) -> tuple[int, ...]:
    assert story.run is not None
    return story.run.waiting


def at_work(story: Given) -> list[int]:
    assert story.run is not None
    return [number for number in story.run.open if number not in story.run.waiting]


def changes(story: Given, told: Answered) -> list[Change]:
    before = story.run
    assert before is not None
    made = len(story.records)
    story.tell(told)
    assert story.run is not None
    return plan(before, story.run, story.records[made:])


def test_a_call_waits_for_what_a_child_has_and_is_made_when_it_has_come_back() -> None:
    story = asking(CHILD, ADA, limits=Limits(calls=5))
    assert story.run is not None and (waiting(story), story.run.ended, story.run.spent.calls) == ((4,), None, 0)
    told = story.when(finished(3, calls=2))
    assert told.decided == [Allowed(number=4, command=ADA)]
    assert (waiting(story), at_work(story), told.run.spent.calls) == ((), [4], 3)
    story.when(AgentReplied()).then_ends("completed")


def test_a_run_ends_if_what_it_waits_for_was_used_up() -> None:
    story = asking(CHILD, ADA, limits=Limits(calls=5))
    told = story.when(finished(3, calls=5)).then_ends("limit")
    (verdict,) = [event for event in told.decided if isinstance(event, GuardTripped)]
    assert (verdict.guard, verdict.value) == ("budget.calls", 6)


def test_a_run_whose_budget_is_spent_ends_at_once_whatever_is_set_aside() -> None:
    story = asking(THREE, ADA, ADA, ADA, ADA, limits=Limits(calls=4))
    assert waiting(story) == (5, 6, 7), "each of them could be made if the child needed nothing"
    story = asking(ADA, limits=Limits(calls=1), then=(BOB,))
    story.when(AgentReplied()).then_ends("limit")


def test_children_take_turns_where_each_gets_all_that_is_left() -> None:
    story = asking(CHILD, CHILD, CHILD, limits=Limits(calls=9))
    assert (at_work(story), waiting(story)) == ([3], (4, 5))
    story.tell(finished(3, calls=2))
    assert (at_work(story), waiting(story)) == ([4], (5,))
    story.tell(finished(4, calls=3))
    assert (at_work(story), waiting(story)) == ([5], ())
    assert story.run is not None
    last = story.run.open[5].command
    assert isinstance(last, StartRun) and last.limits is not None and last.limits.calls == 4
    story.when(finished(5, calls=4)).then_ends("completed")


def test_several_calls_at_once_never_promise_more_tokens_than_are_left() -> None:
    story = asking(ADA, BOB, limits=Limits(tokens=1000))
    assert (at_work(story), waiting(story)) == ([3], (4,))
    told = story.when(Answered(to=3, answer=AgentReplied(usage=Usage(20, 80))))
    (allowed,) = [event for event in told.decided if isinstance(event, Allowed)]
    assert isinstance(allowed.command, AskAgent) and allowed.command.max_tokens is not None
    assert 0 < allowed.command.max_tokens < 900
    story = asking(AskAgent(agent="ada", max_tokens=100), BOB, limits=Limits(tokens=1000))
    assert at_work(story) == [3, 4], "what they can use together is less than what there is"


def test_a_call_that_fails_gives_back_what_it_was_promised() -> None:
    story = asking(ADA, BOB, limits=Limits(money=1.0, input_price=1.0, output_price=1.0))
    assert waiting(story) == (4,)
    story.tell(Answered(to=3, answer=Failed(reason="no")))
    assert at_work(story) == [4]


class Changeable(ErrandStyle):
    """Does not need its children any more once it has heard something, and asks an agent instead."""

    def decide(self, step: Step[StubState], news: News) -> None:
        if not isinstance(news, Heard):
            return super().decide(step, news)
        for number, opened in list(step.run.open.items()):
            if isinstance(opened.command, StartRun):
                step.withdraw(number, "it is not needed any more")
        step.ask(ADA)
        return None


def test_a_child_that_is_not_needed_any_more_is_waited_for_until_it_has_reported() -> None:
    story = given(Changeable(), Errands(rounds=((CHILD,),)), Heard(text="stop that"), limits=Limits(calls=5))
    assert story.run is not None and (list(story.run.late), waiting(story)) == ([3], (6,))
    story.tell(Answered(to=3, answer=RunFinished(run="story.3", outcome="stopped", calls=4)))
    assert (waiting(story), at_work(story)) == ((), [6])


def test_a_child_that_waits_for_an_answer_of_the_run_is_not_waited_for() -> None:
    story = asking(StartRun(workflow="w", surface=True), ADA, limits=Limits(calls=5))
    assert waiting(story) == (4,)
    asks = ChildSpoke(command=3, run="story.3", number=7, ask=QUESTION)
    told = story.when(asks).then_ends("limit")
    (verdict,) = [event for event in told.decided if isinstance(event, GuardTripped)]
    assert "5 of it is set aside" in verdict.text


def test_a_child_whose_question_was_answered_is_waited_for_again() -> None:
    story = given(ErrandStyle(), Errands(rounds=((StartRun(workflow="w", surface=True),), (ADA,)), listens=True))
    story.tell(ChildSpoke(command=3, run="story.3", number=7, ask=QUESTION))
    assert story.run is not None and story.run.asked_here == ((4, 3),)
    spoken = Asked(command=AnswerChild(asked=4))
    run = replay(story.style, story.contents, "story", [Record(5, 1, spoken)], story.run)
    run = replay(story.style, story.contents, "story", [Record(6, 1, Answered(to=5, answer=Said()))], run)
    assert run is not None and run.asked_here == ()


def test_a_command_that_waits_is_due_when_it_is_allowed_and_not_before() -> None:
    story = asking(CHILD, ADA, limits=Limits(calls=5))
    assert story.run is not None
    rows = {one.number: one for one in plan(None, story.run, story.records) if isinstance(one, Opened)}
    assert rows[3].due is not None and rows[4].due is None
    assert changes(story, finished(3)) == [Closed(3), Released(4, story.now)]


def test_a_run_that_only_waits_for_its_budget_has_the_status_waiting() -> None:
    story = asking(CHILD, ADA, limits=Limits(calls=5))
    assert story.run is not None and status(story.run, listening=False) == "waiting"


def test_a_command_that_waited_and_is_no_longer_needed_leaves_nothing_behind() -> None:
    story = asking(CHILD, ADA, CHILD, limits=Limits(calls=5))
    before, made = story.run, len(story.records)
    story.when(CancelRequested()).then_ends("stopped")
    assert before is not None and story.run is not None
    assert story.run.waiting == () and list(story.run.late) == [3]
    found = plan(before, story.run, story.records[made:])
    assert [one for one in found if isinstance(one, Closed)] == [Closed(4), Closed(5)]


def test_time_in_which_a_run_waits_for_its_budget_is_not_time_at_work() -> None:
    story = given(ErrandStyle(), Errands(rounds=((CHILD, ADA),)), limits=Limits(calls=5, seconds=60))
    story.tell(finished(3), after=10)
    assert story.run is not None and story.run.work.counted == 10_000_000 and story.run.work.since == story.now


def test_a_fork_asks_again_for_what_waited_and_counts_nothing_twice() -> None:
    story = asking(CHILD, ADA, limits=Limits(calls=5))
    step = advance(story.style, story.contents, story.run, "fork", Forked(run="story", at=4), story.now + 1)
    assert step is not None
    assert (step.run.spent.calls, len(step.run.waiting), len(step.run.open)) == (0, 1, 2)


@pytest.mark.parametrize("told", [Heard(text="x"), ResumeRequested()])
def test_records_with_a_wait_are_folded_to_the_same_run(told: Heard | ResumeRequested) -> None:
    story = asking(CHILD, ADA, BOB, limits=Limits(calls=5, tokens=3000), then=(CHILD,))
    story.tell(told)
    story.tell(finished(3, calls=1, input_tokens=100))
    assert replay(story.style, story.contents, "story", story.records) == story.run
