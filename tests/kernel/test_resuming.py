"""What comes after a guard's verdict: how a run ends, and how it continues."""

from collections.abc import Callable
from typing import Any

import pytest

from ripstop.kernel.effects import (
    AgentReplied,
    AskAgent,
    AskPerson,
    CallTool,
    Failed,
    Guards,
    Limits,
    PersonAnswered,
    ToolReturned,
)
from ripstop.kernel.errors import UsageError
from ripstop.kernel.events import (
    FORMAT,
    Answered,
    Asked,
    CancelRequested,
    Ended,
    GuardTripped,
    Heard,
    Redefined,
    Resumed,
    ResumeRequested,
    Started,
    TurnResult,
    Withdrawn,
)
from ripstop.kernel.limits import AMOUNTS, RAISABLE
from ripstop.kernel.resuming import (
    CONTINUE,
    GUARD_CHOICES,
    STOP,
    Way,
    check_raises,
    limit_of,
    outcome_of,
    override_guards,
    raised,
    ways_on,
)
from ripstop.kernel.run import GUARD
from ripstop.kernel.step import Step
from ripstop.kernel.style import News, Settled
from ripstop.testing import Errands, ErrandStyle, Given, given
from ripstop.testing.scenarios import NO_LIMITS
from ripstop.testing.stub_style import StubState


def verdict_of(guard: str, limit: float = 10, at: int = 0) -> GuardTripped:
    return GuardTripped(guard=guard, limit=limit, value=limit, text="So it is.", progress=at)


def resume(**raises: float) -> Way:
    return Way("resume", raises)


def fork(at: int) -> Way:
    return Way("fork", at=at)


@pytest.mark.parametrize(
    ("verdict", "outcome", "limit", "ways"),
    [
        (verdict_of("circle", 5, 7), "stopped", "", [resume(patience=5), fork(7)]),
        (verdict_of("no_progress", 2), "stopped", "", [resume()]),
        (verdict_of("courtesy", 1, 7), "stopped", "", [resume(), fork(7)]),
        (verdict_of("end_marker", 0), "stopped", "", [resume()]),
        (verdict_of("max_turns"), "limit", "turns", [resume(turns=5)]),
        (verdict_of("budget.turns", 1), "limit", "turns", [resume(turns=1)]),
        (verdict_of("budget.calls", 0), "limit", "calls", [resume(calls=1)]),
        (verdict_of("budget.tokens", 9000), "limit", "tokens", [resume(tokens=4500)]),
        (verdict_of("budget.seconds", 60), "limit", "seconds", [resume(seconds=30)]),
        (verdict_of("depth", 8), "limit", "depth", [resume(depth=4)]),
        (verdict_of("interactions"), "limit", "interactions", [resume(interactions=5)]),
    ],
    ids=lambda value: value.guard if isinstance(value, GuardTripped) else "",
)
def test_every_verdict_says_how_the_run_can_continue(
    verdict: GuardTripped, outcome: str, limit: str, ways: list[Way]
) -> None:
    assert (outcome_of(verdict), limit_of(verdict)) == (outcome, limit)
    assert ways_on(verdict) == ways
    check_raises({limit: 1} if limit else {}, verdict)


@pytest.mark.parametrize("amount", [0, -1, float("inf"), float("nan"), 1e300, 10**400, True, "5", None])
def test_a_limit_is_raised_by_a_number_above_nothing(amount: Any) -> None:
    with pytest.raises(UsageError, match="a number above 0"):
        check_raises({"turns": amount})


@pytest.mark.parametrize("name", [name for name in RAISABLE if name not in ("money", "seconds")])
def test_what_is_counted_in_whole_numbers_is_not_raised_by_less_than_one(name: str) -> None:
    with pytest.raises(UsageError):
        check_raises({name: 0.5})


def test_a_limit_that_was_reached_has_to_be_raised() -> None:
    with pytest.raises(UsageError, match=r"Raise turns\."):
        check_raises({}, verdict_of("max_turns"))
    with pytest.raises(UsageError, match=r"Raise tokens\."):
        check_raises({"turns": 5}, verdict_of("budget.tokens"))
    with pytest.raises(UsageError, match="no limit 'luck'"):
        check_raises({"luck": 5})
    check_raises({}, verdict_of("circle"))


def test_what_is_raised_is_raised_and_nothing_else() -> None:
    limits = Limits(tokens=10, money=1.5, calls=10, seconds=10, turns=10, runs=10, depth=10)
    for name in AMOUNTS:
        after, guards = raised(limits, Guards(), {name: 2})
        changed = {other: getattr(after, other) for other in AMOUNTS if getattr(after, other) != getattr(limits, other)}
        assert changed == {name: getattr(limits, name) + 2}
        assert guards == Guards()
    assert raised(limits, Guards(patience=5), {"patience": 3}) == (limits, Guards(patience=8))


def test_what_has_no_limit_stays_without_one() -> None:
    none = Limits()
    assert raised(none, Guards(), {name: 5 for name in AMOUNTS if name != "depth"}) == (none, Guards())
    assert raised(none, Guards(patience=0), {"patience": 5}) == (none, Guards(patience=0))


@pytest.mark.req("S0-34")
def test_the_later_wish_wins() -> None:
    wished = override_guards(Guards(), {"patience": 3, "courtesy": "ignore"}, {"patience": 4, "phrases": ["aye"]})
    assert wished == Guards(patience=4, courtesy="ignore", phrases=("aye",))
    assert override_guards(Guards()) == Guards()


@pytest.mark.parametrize(
    "wish",
    [
        *({"patiense": 3}, {"patience": -1}, {"patience": 1001}, {"patience": "5"}, {"patience": True}),
        *({"courtesy": "sometimes"}, {"then": "cry"}, {"phrases": "aye"}, {"end_marker": 3}),
    ],
    ids=str,
)
def test_a_wish_that_makes_no_sense_is_refused(wish: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        override_guards(Guards(), wish)


# A person is asked


class Talking(ErrandStyle):
    """Every reply ends a turn of ann's or bob's, whose digest is what was said."""

    def decide(self, step: Step[StubState], news: News) -> None:
        if isinstance(news, Settled) and isinstance(news.command, AskAgent):
            said = step.state.answers[-1]
            agent = ("ann", "bob")[len(step.state.answers) % 2]
            step.record(TurnTaken(agent=agent, digest=said))
            step.ask(AskAgent(agent=agent))
        elif isinstance(news, Started | Resumed):
            step.ask(AskAgent(agent="ann"))


class TurnTaken(TurnResult, tag="talking.turn_taken", frozen=True, kw_only=True):
    pass


def talk(limits: Limits = NO_LIMITS, **guards: Any) -> Given:
    started = Started("errands", "definition", FORMAT, limits=limits, guards={"then": "ask", **guards})
    return given(Talking(), Errands(), started)


def play(story: Given, said: Callable[[int], str], most: int) -> int:
    """Answer agents until no agent is asked; returns how often."""
    for turn in range(most):
        if story.run is None or not any(isinstance(o.command, AskAgent) for o in story.run.open.values()):
            return turn
        story.tell(AgentReplied(text=said(turn)))
    return most


def asked(story: Given) -> AskPerson:
    """The question, which is all that is open."""
    assert story.run is not None and story.run.ended is None
    (opened,) = story.run.open.values()
    assert isinstance(opened.command, AskPerson)
    assert (opened.command.purpose, opened.command.choices) == (GUARD, GUARD_CHOICES)
    return opened.command


def test_a_person_is_asked_about_a_cycle_and_sees_the_evidence() -> None:
    story = talk()
    assert play(story, lambda _: "same", 20) == 10
    question = asked(story)
    (verdict,) = [record.event for record in story.records if isinstance(record.event, GuardTripped)]
    assert question.about == verdict.evidence
    assert question.question.startswith(verdict.text)
    story.when(PersonAnswered(choice=CONTINUE)).then_asks(AskAgent)
    assert play(story, lambda _: "same", 20) == 10, "with the same patience again"
    told = story.when(PersonAnswered(choice=STOP)).then_ends("stopped", "gone round 5 times")
    assert told.commands == []
    story.when(ResumeRequested()).then_asks(AskAgent)


@pytest.mark.parametrize(
    ("answer", "more"),
    [
        (PersonAnswered(choice=CONTINUE, text="3"), 3),
        (PersonAnswered(choice=CONTINUE, text=" 3 "), 3),
        (PersonAnswered(choice=CONTINUE, fields={"raise": 3}), 3),
        (PersonAnswered(choice=CONTINUE), 10),
    ],
    ids=["text", "spaces", "field", "nothing"],
)
def test_a_person_says_by_how_much_a_limit_is_raised(answer: PersonAnswered, more: int) -> None:
    story = talk(Limits(turns=10))
    assert play(story, str, 50) == 10
    assert asked(story).fields["raise"].label == "Raise turns by"
    story.when(answer).then_asks(AskAgent)
    assert play(story, str, 50) == more


@pytest.mark.parametrize("words", ["a few", "-1", "0", "nan", "inf", "0.5", "1e400"])
def test_refuses_words_that_are_not_an_amount(words: str) -> None:
    story = talk(Limits(turns=10))
    play(story, str, 50)
    story.when(PersonAnswered(choice=CONTINUE, text=words)).then_refused(UsageError)
    story.when(PersonAnswered(choice=CONTINUE, text="2")).then_asks(AskAgent)


@pytest.mark.parametrize("amount", [10**400, [1], None, {}, float("nan")], ids=type)
def test_refuses_a_field_that_is_not_an_amount(amount: object) -> None:
    story = talk(Limits(turns=1))
    play(story, str, 50)
    story.when(PersonAnswered(choice=CONTINUE, fields={"raise": amount})).then_refused(UsageError)


def test_a_person_raises_the_patience_of_a_run_that_makes_no_progress() -> None:
    story = talk()
    play(story, lambda _: "same", 50)
    assert asked(story).fields["raise"].label == "Raise patience by"
    story.when(PersonAnswered(choice=CONTINUE, text="2")).then_asks(AskAgent)
    assert play(story, lambda _: "same", 50) == 14, "seven rounds of two instead of five"


def test_a_new_definition_keeps_patience_that_was_raised() -> None:
    story = talk()
    play(story, lambda _: "same", 50)
    story.tell(PersonAnswered(choice=CONTINUE, text="2"))
    story.contents.definitions["other"] = Errands(prompt="Go on, please.")
    assert story.when(Redefined(definition="other")).run.guards.patience == 7
    play(story, lambda _: "same", 50)
    story.tell(PersonAnswered(choice=CONTINUE, text="1"))
    assert story.when(Redefined(definition="definition")).run.guards.patience == 8


def test_a_resume_answers_the_question_too() -> None:
    story = talk(Limits(turns=10))
    play(story, str, 50)
    story.when(ResumeRequested()).then_refused(UsageError)
    asked(story)
    told = story.when(ResumeRequested(raises={"turns": 1})).then_asks(AskAgent)
    assert isinstance(told.decided[0], Withdrawn)
    assert told.decided[1] == Resumed(raises={"turns": 1})
    story.when(ResumeRequested()).then_nothing()


def test_a_run_that_waits_for_a_verdict_can_be_cancelled() -> None:
    story = talk()
    play(story, lambda _: "same", 20)
    story.when(CancelRequested(by="zoe")).then_ends("stopped", "cancelled by zoe")


class Duty(Talking):
    """Has something to do before it ends, and asks again about every message."""

    def cancelled(self, step: Step[StubState], because: str) -> None:
        step.ask_unguarded(CallTool(tool="tidy"))

    def decide(self, step: Step[StubState], news: News) -> None:
        if isinstance(news, Heard):
            step.ask(AskAgent(agent="ann"))
        else:
            super().decide(step, news)


def test_a_second_verdict_replaces_the_question_about_the_first() -> None:
    story = talk(Limits(turns=1))
    story.style = Duty()
    play(story, str, 50)
    first = story.opened(AskPerson)
    told = story.when(Heard(text="and now?"))
    told.then(Withdrawn(number=first, because="a new verdict takes its place"), GuardTripped, Asked)
    assert asked(story).title == "budget.turns"
    story.when(PersonAnswered(choice=CONTINUE)).then_asks(AskAgent)


def test_an_answer_about_a_cancelled_verdict_decides_nothing() -> None:
    story = talk(Limits(turns=1))
    story.style = Duty()
    play(story, str, 50)
    story.when(CancelRequested()).then_asks(CallTool(tool="tidy"))
    story.when(PersonAnswered(choice=CONTINUE)).then()


@pytest.mark.parametrize("answer", [Failed(reason="nobody is there"), ToolReturned(value=CONTINUE)])
def test_a_question_about_a_verdict_that_failed_stops_the_run(answer: Failed | ToolReturned) -> None:
    story = talk(Limits(turns=1))
    play(story, str, 50)
    question = story.opened(AskPerson)
    story.when(Answered(to=question, answer=answer)).then(Ended).then_ends("limit", "turns")


def errands(limits: Limits, **guards: Any) -> Given:
    rounds = Errands(rounds=((AskAgent("ann"),),) * 5)
    return given(ErrandStyle(), rounds, Started("errands", "definition", FORMAT, limits=limits, guards=guards))


def test_a_person_lets_a_run_of_any_style_continue() -> None:
    story = errands(Limits(calls=2), then="ask")
    story.tell(AgentReplied(text="one"))
    story.when(AgentReplied(text="two")).then_asks(AskPerson)
    assert "calls" in asked(story).question
    told = story.when(PersonAnswered(choice=CONTINUE, text="3")).then_asks(AskAgent)
    assert told.run.limits.calls == 5


# Resuming


@pytest.mark.parametrize("limits", [Limits(calls=2), Limits(turns=2)])
def test_a_run_of_any_style_continues_once_its_limit_is_raised(limits: Limits) -> None:
    story = errands(limits)
    story.tell(AgentReplied(text="one"))
    story.when(AgentReplied(text="two")).then_ends("limit")
    story.when(ResumeRequested()).then_refused(UsageError)
    name = "calls" if limits.calls else "turns"
    story.when(ResumeRequested(raises={name: 1})).then_asks(AskAgent)
    story.when(AgentReplied(text="three")).then_ends("limit")
