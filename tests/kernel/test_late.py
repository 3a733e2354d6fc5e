"""Answers that nobody needs any more: recorded once, for what they cost, and for nothing else."""

from collections.abc import Callable

import pytest

from ripstop.kernel.effects import (
    AgentReplied,
    Answer,
    AskAgent,
    AskPerson,
    CallTool,
    Command,
    Failed,
    Limits,
    PersonAnswered,
    RunFinished,
    Said,
    Say,
    SetTimer,
    StartRun,
    TimerFired,
    ToolReturned,
    Usage,
)
from ripstop.kernel.events import Answered, CancelRequested, Heard, ResumeRequested, Warned
from ripstop.kernel.folding import KNOWN_LATE
from ripstop.kernel.step import Step
from ripstop.kernel.style import News
from ripstop.testing import Errands, ErrandStyle, Given, given
from ripstop.testing.stub_style import StubState

AGENT, TOOL, PERSON = AskAgent(agent="ada"), CallTool(tool="hammer"), AskPerson(question="Well?")
CHILD = StartRun(workflow="w")
COST = Usage(30, 12, 0.5)
Begin = Callable[[Command], Given]


class Hasty(ErrandStyle):
    """Withdraws what it hears the number of, or asks an agent once more."""

    def decide(self, step: Step[StubState], news: News) -> None:
        if not isinstance(news, Heard):
            super().decide(step, news)
        elif news.text:
            step.withdraw(int(news.text), "something newer came")
        else:
            step.ask(AGENT)


def withdrawn(*commands: Command, limits: Limits | None = None) -> Given:
    """The first command, which is record 3, is withdrawn."""
    errands = Errands(rounds=((*commands, PERSON), (PERSON,)))
    return given(Hasty(), errands, Heard(text="3"), limits=limits or Limits())


def ended(*commands: Command) -> Given:
    return given(Hasty(), Errands(rounds=((*commands, PERSON),)), CancelRequested())


PAID = [
    (AGENT, AgentReplied(text="late", usage=COST), COST, 1),
    (AGENT, Failed(reason="cut off", usage=COST), COST, 1),
    (TOOL, ToolReturned(value=1), Usage(), 0),
    (TOOL, Failed(reason="broke", usage=COST), COST, 0),
    (CHILD, RunFinished(run="story.3", outcome="stopped", usage=COST, calls=4), COST, 4),
]


@pytest.mark.parametrize("begin", [withdrawn, ended])
@pytest.mark.parametrize(("command", "answer", "cost", "calls"), PAID)
def test_a_late_answer_is_recorded_once_and_its_cost_counts(
    begin: Begin, command: Command, answer: Answer, cost: Usage, calls: int
) -> None:
    story = begin(command)
    assert story.run is not None
    state, open_before = story.run.state, story.run.open
    told = story.when(Answered(to=3, answer=answer)).then()
    assert told.run.spent.usage == cost
    assert told.run.spent.calls == calls
    assert (told.run.state, told.run.open, told.run.late) == (state, open_before, {}), "no style sees it"
    story.when(Answered(to=3, answer=answer)).then_nothing()


@pytest.mark.parametrize("begin", [withdrawn, ended])
@pytest.mark.parametrize(
    ("command", "answer"),
    [(PERSON, PersonAnswered(choice="yes")), (SetTimer(name="t", after=1), TimerFired())],
)
def test_what_costs_nothing_is_not_recorded_late(begin: Begin, command: Command, answer: Answer) -> None:
    story = begin(command)
    story.when(Answered(to=3, answer=answer)).then_nothing()


def test_a_withdrawn_message_is_not_recorded_late() -> None:
    withdrawn(Say(text="x", channel="mail")).when(Answered(to=3, answer=Said())).then_nothing()


def test_a_late_answer_counts_against_the_limits() -> None:
    story = withdrawn(AGENT, limits=Limits(tokens=500))
    story.tell(Answered(to=3, answer=AgentReplied(usage=Usage(output_tokens=495))))
    story.when(Heard(text="")).then_ends("limit", "tokens")


def test_a_late_answer_counts_in_a_run_that_was_resumed() -> None:
    story = given(Hasty(), Errands(rounds=((AGENT, TOOL), (AGENT,))), limits=Limits(calls=1, tokens=10_000))
    story.tell(ToolReturned(value=1))
    story.when(AgentReplied(text="one")).then_ends("limit")
    story.when(ResumeRequested(raises={"calls": 2})).then_asks(AskAgent)
    story.tell(CancelRequested())
    told = story.when(Answered(to=max(story.run.late) if story.run else 0, answer=AgentReplied(usage=COST))).then()
    assert told.run.spent.usage == COST


def test_only_the_last_hundred_calls_are_remembered_but_every_child() -> None:
    story = given(Hasty(), Errands(rounds=((CHILD, CHILD, PERSON),)), Heard(text="3"), Heard(text="4"))
    calls = []
    for _ in range(KNOWN_LATE + 5):
        story.tell(Heard(text=""))
        calls.append(story.opened(AskAgent))
        story.tell(Heard(text=str(calls[-1])))
    assert story.run is not None
    assert list(story.run.late) == [3, 4, *calls[5:]]
    story.when(Answered(to=calls[4], answer=AgentReplied(usage=COST))).then_nothing()
    story.when(Answered(to=calls[5], answer=AgentReplied(usage=COST))).then()


def test_a_run_is_settled_when_the_last_of_its_children_has_reported() -> None:
    story = ended(CHILD, AGENT, CHILD)
    assert story.run is not None and not story.run.is_settled
    for number, settled in ((4, False), (3, False), (5, True)):
        answer = AgentReplied() if number == 4 else RunFinished(run=f"story.{number}", outcome="stopped")
        assert story.when(Answered(to=number, answer=answer)).run.is_settled is settled


def test_a_run_that_is_resumed_is_not_settled_before_it_ends_again() -> None:
    story = given(Hasty(), Errands(rounds=((CHILD,), (AGENT,))), limits=Limits(calls=0))
    assert story.run is not None and story.run.ended and story.run.is_settled
    assert not story.when(ResumeRequested(raises={"calls": 1})).run.is_settled


def test_a_gap_in_a_late_reply_is_said_with_the_next_one() -> None:
    story = withdrawn(AGENT)
    gap = AgentReplied(text="x", model="m", usage=Usage(unreported_output=900))
    story.when(Answered(to=3, answer=gap)).then()
    story.tell(Heard(text=""))
    assert Warned in [type(event) for event in story.when(gap).decided]
