"""What a child may spend, what its parent may spend meanwhile, and who pays."""

import pytest

from ripstop.kernel.budget import committed
from ripstop.kernel.effects import AgentReplied, AskAgent, AskPerson, Command, Limits, RunFinished, StartRun, Usage
from ripstop.kernel.events import (
    FORMAT,
    Answered,
    CancelRequested,
    ChildSpoke,
    GuardTripped,
    Heard,
    ResumeRequested,
    Started,
)
from ripstop.kernel.run import Spent
from ripstop.kernel.step import Step
from ripstop.kernel.style import News
from ripstop.testing import Errands, ErrandStyle, Given, given
from ripstop.testing.stub_style import StubState

AGENT, PERSON, CHILD = AskAgent(agent="ada"), AskPerson(question="Well?"), StartRun(workflow="w")
ALL = Limits(tokens=1000, money=2.0, calls=10, seconds=60, turns=5, input_price=1.0, output_price=2.0)


def asking(*rounds: tuple[Command, ...], limits: Limits) -> Given:
    return given(ErrandStyle(), Errands(rounds=rounds), limits=limits)


def slice_of(story: Given, number: int) -> Limits | None:
    assert story.run is not None
    command = story.run.open[number].command
    assert isinstance(command, StartRun)
    return command.limits


def finished(calls: int = 0, **usage: int) -> RunFinished:
    return RunFinished(run="story.3", outcome="completed", calls=calls, usage=Usage(**usage))


# The slice


def test_a_child_gets_what_is_left_and_its_parents_prices() -> None:
    story = asking((AGENT,), (CHILD,), limits=ALL)
    story.tell(AgentReplied(usage=Usage(100, 50, 0.5)), after=6)
    expected = Limits(tokens=850, money=1.5, calls=9, seconds=54, input_price=1.0, output_price=2.0)
    assert slice_of(story, story.opened(StartRun)) == expected


def test_a_child_gets_at_most_what_is_asked_for() -> None:
    wish = Limits(tokens=100, money=0.5, calls=3, seconds=5, turns=2, depth=4)
    story = asking((StartRun(workflow="w", limits=wish),), limits=ALL)
    expected = Limits(tokens=100, money=0.5, calls=3, seconds=5, turns=2, depth=4, input_price=1.0, output_price=2.0)
    assert slice_of(story, 3) == expected
    more = Limits(tokens=5000, money=50, calls=300, seconds=500, depth=40)
    got = slice_of(asking((StartRun(workflow="w", limits=more),), limits=ALL), 3)
    assert got == Limits(tokens=1000, money=2.0, calls=10, seconds=60, input_price=1.0, output_price=2.0)


def test_a_parent_without_limits_gives_what_is_asked_for_and_else_none() -> None:
    assert slice_of(asking((CHILD,), limits=Limits()), 3) == Limits()
    assert slice_of(asking((StartRun(workflow="w", limits=Limits(calls=3)),), limits=Limits()), 3) == Limits(calls=3)


def test_a_parents_own_depth_limit_holds_for_its_children() -> None:
    assert slice_of(asking((CHILD,), limits=Limits(depth=20)), 3) == Limits(depth=20)
    assert slice_of(asking((CHILD,), limits=Limits(depth=2)), 3) == Limits(depth=2)


@pytest.mark.parametrize(
    ("limits", "guard"),
    [(Limits(calls=1), "budget.calls"), (Limits(tokens=200), "budget.tokens"), (Limits(money=0.5), "budget.money")],
)
def test_a_child_that_would_have_nothing_is_not_started(limits: Limits, guard: str) -> None:
    story = asking((AGENT,), (CHILD,), limits=limits)
    told = story.when(AgentReplied(usage=Usage(100, 100, 0.5))).then_ends("limit")
    assert told.commands == []
    (verdict,) = [event for event in told.decided if isinstance(event, GuardTripped)]
    assert verdict.guard == guard


# Set aside


def test_what_a_child_was_given_is_set_aside_while_it_runs() -> None:
    wish = StartRun(workflow="w", limits=Limits(calls=3, tokens=400, money=0.5))
    story = asking((wish, wish), (CHILD,), limits=ALL)
    assert story.run is not None
    assert committed(story.run) == Spent(0, 6, Usage(800, 0, 1.0))
    assert story.run.spent == Spent()


def test_a_parent_cannot_spend_what_it_set_aside() -> None:
    wish = StartRun(workflow="w", limits=Limits(calls=4))
    story = asking((wish, AGENT, AGENT, PERSON), limits=Limits(calls=5))
    assert story.run is not None and (story.run.spent.calls, story.run.waiting) == (1, (5,))


def test_a_child_without_wishes_leaves_its_parent_nothing_meanwhile() -> None:
    story = asking((CHILD, AGENT), limits=Limits(calls=5))
    assert story.run is not None and (story.run.spent.calls, story.run.waiting) == (0, (4,))


def because(story: Given) -> str:
    assert story.run is not None and story.run.ended is not None
    return story.run.ended.because


def test_a_verdict_says_what_is_set_aside_for_children() -> None:
    two = StartRun(workflow="w", limits=Limits(calls=2))
    story = asking((two, AGENT, AGENT, AGENT, AGENT, AGENT), limits=Limits(calls=4))
    story.tell(Answered(to=4, answer=AgentReplied()))
    assert story.run is not None and story.run.waiting == (6, 7, 8), "two calls would fit if the child used none"
    story = asking((CHILD,), (two, AGENT), limits=Limits(calls=4))
    story.tell(finished(calls=2))
    story.tell(ChildSpoke(command=6, run="story.6", number=9, ask=PERSON))
    assert because(story) == (
        "The next call would bring calls to 5; the limit is 4. 2 of it is set aside for workflows that have not "
        "reported yet."
    )


def test_a_verdict_on_a_child_says_that_nothing_is_left_for_it() -> None:
    story = asking((CHILD, CHILD), limits=Limits(calls=4))
    assert story.run is not None and story.run.waiting == (4,)
    story.tell(Answered(to=3, answer=finished(calls=4)))
    assert because(story) == "Nothing is left of the limit of 4 calls for the workflow 'w'."
    assert story.run.verdict is not None
    assert (story.run.verdict.limit, story.run.verdict.value) == (4, 4)


def test_a_verdict_in_a_child_says_which_run_gave_it_the_limit() -> None:
    started = Started("errands", "definition", FORMAT, limits=Limits(calls=0), parent=("above", 7), depth=1)
    story = given(ErrandStyle(), Errands(rounds=((AGENT,),)), started)
    assert because(story).endswith("the limit is 0. It is what above gave this run.")
    story = given(ErrandStyle(), Errands(rounds=((AGENT,), (AGENT,))), started, ResumeRequested(raises={"calls": 1}))
    story.tell(AgentReplied())
    assert because(story).endswith("the limit is 1."), "it was raised since"


def test_what_a_child_did_not_use_comes_back_with_its_end() -> None:
    story = asking((CHILD,), (CHILD,), limits=ALL)
    told = story.when(finished(calls=4, input_tokens=150))
    assert told.run.spent == Spent(0, 4, Usage(150), runs=1)
    got = slice_of(story, story.opened(StartRun))
    assert got is not None and (got.calls, got.tokens) == (6, 850)


def test_a_negative_report_gives_nothing_back() -> None:
    story = asking((AGENT,), (CHILD,), (PERSON,), limits=Limits(calls=5))
    story.tell(AgentReplied(usage=Usage(10)))
    assert story.when(finished(calls=-4, input_tokens=-5)).run.spent == Spent(1, 1, Usage(10), runs=1)


class Restart(ErrandStyle):
    """Hears "withdraw" and withdraws its child, or a name and starts a child of that name."""

    def decide(self, step: Step[StubState], news: News) -> None:
        if not isinstance(news, Heard):
            super().decide(step, news)
        elif news.text == "withdraw":
            step.withdraw(3, "not needed")
        else:
            step.ask(StartRun(workflow="w", name=news.text))


def test_the_slice_of_a_withdrawn_child_is_set_aside_until_it_reports() -> None:
    story = given(Restart(), Errands(rounds=((CHILD, PERSON),)), Heard(text="withdraw"), limits=Limits(calls=5))
    assert story.run is not None and committed(story.run).calls == 5
    told = story.when(Answered(to=3, answer=finished(calls=2)))
    assert committed(told.run).calls == 2


# Names


def test_a_shared_child_has_limits_of_its_own() -> None:
    wish = StartRun(workflow="plan", name="plan:1", limits=Limits(calls=3))
    story = asking((wish, AGENT), limits=Limits(calls=1))
    assert story.run is not None and story.run.ended is None
    assert story.run.open[3].command == wish
    assert committed(story.run).calls == 1


def test_a_shared_child_may_be_asked_for_with_nothing_left() -> None:
    story = asking((AGENT,), (StartRun(workflow="plan", name="plan:1"),), limits=Limits(calls=1))
    story.when(AgentReplied()).then_asks(StartRun)


def test_a_former_child_gets_a_slice_again() -> None:
    story = given(Restart(), Errands(rounds=((CHILD,), (PERSON,))), limits=Limits(calls=10))
    story.tell(finished(calls=4))
    story.tell(Heard(text="story.3"))
    got = slice_of(story, story.opened(StartRun))
    assert got is not None and got.calls == 6
    assert story.run is not None and committed(story.run).calls == 10


def test_a_family_at_its_limit_continues_with_the_same_child() -> None:
    """The parent asks for its former child; with nothing left the guard stops it, and a raise lets it continue."""
    errands = Errands(rounds=((CHILD,), (StartRun(workflow="w", name="story.3"),), (PERSON,)))
    story = given(ErrandStyle(), errands, limits=Limits(calls=3))
    story.when(RunFinished(run="story.3", outcome="limit", calls=3)).then_ends("limit", "calls")
    told = story.when(ResumeRequested(raises={"calls": 2}))
    got = slice_of(story, told.story.opened(StartRun))
    assert got is not None and got.calls == 2
    assert story.when(RunFinished(run="story.3", outcome="completed", calls=2)).run.spent.calls == 5


def test_another_runs_children_are_shared_ones_whatever_their_names_begin_with() -> None:
    story = given(Restart(), Errands(rounds=((PERSON,),)), Heard(text="story2.3"), limits=Limits(calls=10))
    assert slice_of(story, story.opened(StartRun)) is None


def test_a_child_too_deep_is_not_started_whether_shared_or_not() -> None:
    for child in (CHILD, StartRun(workflow="w", name="plan:1")):
        story = given(ErrandStyle(), Errands(rounds=((child,),)), limits=Limits(depth=1), depth=1)
        assert story.run is not None and story.run.ended is not None
        assert "2 deep; the limit is 1" in story.run.ended.because


# Who pays


def child_of(parent: tuple[str, int] | None) -> Given:
    limits = Limits(calls=1)
    started = Started("errands", "definition", FORMAT, limits=limits, parent=parent)
    return given(ErrandStyle(), Errands(rounds=((AGENT,),) * 5), started)


def test_the_command_that_started_a_child_pays_for_it() -> None:
    assert child_of(("above", 7)).run.payer == "above/7"  # type: ignore[union-attr]
    assert child_of(None).run.payer == ""  # type: ignore[union-attr]


def test_the_command_that_resumes_a_child_pays_for_what_is_spent_from_then_on() -> None:
    story = child_of(("above", 7))
    story.when(AgentReplied(usage=Usage(10, 5, 0.5))).then_ends("limit")
    told = story.when(ResumeRequested(raises={"calls": 1}, by="above/12"))
    assert told.run.payer == "above/12"
    assert told.run.paid == Spent(1, 1, Usage(10, 5, 0.5))
    told = story.when(AgentReplied(usage=Usage(3, 1, 0.25)))
    assert told.run.spent.usage.minus(told.run.paid.usage) == Usage(3, 1, 0.25)
    assert told.run.spent.calls - told.run.paid.calls == 1


def test_nobody_above_pays_for_what_a_person_resumes() -> None:
    story = child_of(("above", 7))
    story.tell(AgentReplied(usage=Usage(10)))
    told = story.when(ResumeRequested(raises={"calls": 1}, by="ann"))
    assert (told.run.payer, told.run.paid.calls) == ("", 1)


def test_a_resume_of_a_child_at_work_changes_nothing() -> None:
    story = child_of(("above", 7))
    story.when(ResumeRequested(raises={"calls": 1}, by="above/12")).then_nothing()


def test_a_cancelled_child_reports_late_and_its_calls_count() -> None:
    story = asking((CHILD,), limits=Limits(calls=9))
    story.tell(CancelRequested())
    told = story.when(Answered(to=3, answer=finished(calls=4, output_tokens=7))).then()
    assert told.run.spent == Spent(0, 4, Usage(0, 7), runs=1)
