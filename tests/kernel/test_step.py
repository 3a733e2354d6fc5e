"""One step of a run: what the kernel itself decides, whatever the style."""

from typing import Any

import pytest

from ripstop.kernel.codec import Codec
from ripstop.kernel.effects import (
    ANSWER_TO,
    AgentReplied,
    AskAgent,
    AskPerson,
    CallTool,
    Command,
    Failed,
    Limits,
    PersonAnswered,
    Say,
    SetTimer,
    StartRun,
    TimerFired,
    ToolReturned,
)
from ripstop.kernel.errors import RunAlreadyStarted, RunHasEnded, RunNotFound, Unworkable
from ripstop.kernel.events import (
    Answered,
    Asked,
    Doubted,
    Ended,
    Forked,
    GuardTripped,
    Heard,
    Ordered,
    Record,
    Repeated,
    Started,
    Warned,
    Withdrawn,
)
from ripstop.kernel.run import fingerprint, replay
from ripstop.kernel.step import AGAIN, GIVE_UP, HAPPENED, News, Step
from ripstop.kernel.work_time import DEADLINE
from ripstop.testing import ERRAND_EVENTS, Errands, ErrandStyle, Given, given
from ripstop.testing.stub_style import RoundBegan, StubState

STYLE = ErrandStyle()
AGENT, TOOL, PERSON = AskAgent(agent="ada"), CallTool(tool="hammer"), AskPerson(question="Well?")
START = Started(style="errands", definition="definition")


def errands(*rounds: tuple[object, ...], **more: object) -> Errands:
    return Errands(rounds=rounds, **more)  # type: ignore[arg-type]  # rounds of commands


def test_asks_answers_and_ends() -> None:
    story = given(STYLE, errands((AGENT,), (TOOL, PERSON)))
    story.when(AgentReplied(text="hello")).then(RoundBegan(index=1), Asked(command=TOOL), Asked(command=PERSON))
    story.when(ToolReturned(value=1)).then()
    story.when(PersonAnswered(choice="yes")).then(Ended).then_ends("completed", "all errands are done")


def test_a_second_answer_to_the_same_command_leads_to_nothing() -> None:
    story = given(STYLE, errands((AGENT,), (TOOL,)), AgentReplied(text="first"))
    story.when(Answered(to=3, answer=AgentReplied(text="second"))).then_nothing()


def test_an_answer_to_what_was_never_asked_leads_to_nothing() -> None:
    story = given(STYLE, errands((AGENT,)))
    story.when(Answered(to=99, answer=ToolReturned(value=1))).then_nothing()
    story.when(Doubted(to=99, evidence="?")).then_nothing()


def test_an_answer_after_the_end_leads_to_nothing() -> None:
    story = given(STYLE, errands((AGENT,)), Ordered(order="cancel"))
    story.when(Answered(to=3, answer=AgentReplied(text="late"))).then_nothing()


def test_a_run_starts_once() -> None:
    given(STYLE, errands((AGENT,))).when(START).then_refused(RunAlreadyStarted)


@pytest.mark.parametrize("fact", [Heard(text="hello"), Ordered(order="cancel"), Answered(to=1, answer=TimerFired())])
def test_an_unknown_run_takes_nothing_but_a_start(fact: Heard | Ordered | Answered) -> None:
    Given(STYLE, {}).when(fact).then_refused(RunNotFound)


@pytest.mark.parametrize("fact", [Heard(text="hello"), Ordered(order="cancel")])
def test_an_ended_run_refuses_and_names_the_way_on(fact: Heard | Ordered) -> None:
    told = given(STYLE, errands()).when(fact).then_refused(RunHasEnded)
    assert "completed" in str(told.error) and "ripstop fork" in str(told.error)


class Fussy(ErrandStyle):
    """Cannot work with the word "no"."""

    def decide(self, step: Step[StubState], news: News) -> None:
        if step.state.answers[-1:] == ("no",):
            step.warn("that was a no")
            raise Unworkable("the agent said no")
        super().decide(step, news)


def test_what_a_style_cannot_work_with_ends_the_run_as_failed() -> None:
    story = given(Fussy(), errands((AGENT, TOOL)))
    story.when(AgentReplied(text="no")).then(Warned, Ended).then_ends("failed", "the agent said no")


def test_stuck_is_visible() -> None:
    story = given(STYLE, errands((AGENT,), outcome=""))
    assert story.when(AgentReplied(text="hello")).status == "stuck"


def test_a_deadline_alone_does_not_hide_that_a_run_is_stuck() -> None:
    story = given(STYLE, errands((AGENT,), outcome=""), limits=Limits(seconds=60))
    assert story.when(AgentReplied(text="hello")).status == "stuck"


@pytest.mark.parametrize(
    ("command", "expected"),
    [(AGENT, "working"), (TOOL, "working"), (PERSON, "waiting"), (SetTimer(name="t", after=9), "waiting"),
     (StartRun(workflow="w"), "waiting")],
)  # fmt: skip
def test_the_status_says_who_has_to_act(command: object, expected: str) -> None:
    assert given(STYLE, errands(())).when(Heard(text="x")).status == "stuck"
    assert given(STYLE, errands((), listens=True)).when(Heard(text="x")).status == "listening"
    story = Given(STYLE, {"definition": errands((command,))})
    assert story.when(START).status == expected


def test_cancel_ends_the_run_and_closes_all_that_was_open() -> None:
    told = given(STYLE, errands((AGENT, TOOL, PERSON))).when(Ordered(order="cancel", by="ada"))
    told.then(Ended).then_ends("stopped", "cancelled by ada")
    assert told.run.open == {}


def test_an_order_that_nobody_knows_changes_nothing_but_is_on_record() -> None:
    told = given(STYLE, errands((AGENT,))).when(Ordered(order="dance"))
    assert told.events == [Ordered(order="dance")]


def test_what_a_run_uses_can_be_changed_and_what_is_open_stays_open() -> None:
    story = given(STYLE, errands((AGENT,)))
    asked = story.opened()
    told = story.when(Ordered(order="use", arguments={"model_for_all": "local"}, by="ada"))
    assert told.decided == []
    assert list(told.run.open) == [asked]
    assert told.run.settings == {**told.run.started.settings, "model_for_all": "local"}
    story.when(Ordered(order="use", arguments={"model_for_all": "local"})).then_nothing()


def test_a_run_that_is_over_uses_nothing() -> None:
    story = given(STYLE, errands((AGENT,)), Ordered(order="cancel"))
    story.when(Ordered(order="use", arguments={"model_for_all": "local"})).then_refused(RunHasEnded)


def test_a_run_that_a_guard_stopped_can_be_told_what_to_use_before_it_goes_on() -> None:
    story = given(STYLE, errands((AGENT,), (AGENT,)), AgentReplied(text="one"), limits=Limits(calls=1))
    assert story.run is not None
    assert story.run.ended
    told = story.when(Ordered(order="use", arguments={"model_for_all": "local"}))
    assert told.run.ended, "it goes on when it is resumed, not before"
    assert told.run.settings["model_for_all"] == "local"


# Deadlines


def test_the_deadline_is_a_timer_set_with_the_first_call() -> None:
    story = Given(STYLE, {"definition": errands((AGENT,))})
    limits = Limits(seconds=60)
    told = story.when(Started(style="errands", definition="definition", limits=limits))
    told.then_asks(AGENT, SetTimer(name=DEADLINE, after=60))


def test_the_deadline_ends_the_run_as_limit_with_its_evidence() -> None:
    story = given(STYLE, errands((AGENT,)), limits=Limits(seconds=60))
    told = story.when(TimerFired(), after=60).then(GuardTripped, Ended).then_ends("limit", "60 s")
    verdict = told.decided[0]
    assert isinstance(verdict, GuardTripped)
    assert (verdict.guard, verdict.limit, verdict.evidence) == ("budget.seconds", 60, (4,))


def test_a_timer_of_the_style_is_not_the_deadline() -> None:
    story = given(STYLE, errands((SetTimer(name="tea", after=5),)), limits=Limits(seconds=60))
    tea = max(story.run.open)  # type: ignore[union-attr]  # it was started
    story.when(Answered(to=tea, answer=TimerFired())).then_ends("completed")


# Effects in doubt


def doubted() -> Given:
    return given(STYLE, errands((TOOL,), (AGENT,)), Doubted(to=3, evidence="It was begun."))


def test_an_effect_in_doubt_becomes_a_question_with_its_evidence() -> None:
    story = given(STYLE, errands((TOOL,), (AGENT,)))
    told = story.when(Doubted(to=3, evidence="It was begun."))
    (ask,) = told.commands
    assert isinstance(ask, AskPerson)
    assert "It was begun." in ask.question
    assert ask.choices == (HAPPENED, AGAIN, GIVE_UP)
    assert ask.about == (3,)
    assert told.status == "waiting"


def test_it_happened_settles_the_command_with_the_persons_words() -> None:
    told = doubted().when(PersonAnswered(choice=HAPPENED, text="I saw it"))
    told.then(Answered(to=3, answer=ToolReturned(value="I saw it")), RoundBegan, Asked(command=AGENT))
    assert told.run.state.answers[-1] == "I saw it"


@pytest.mark.parametrize("command", [AGENT, TOOL, Say(text="hello"), StartRun(workflow="w")])
def test_it_happened_gives_the_command_an_answer_of_its_own_kind(command: Command) -> None:
    story = given(STYLE, errands((command,)), Doubted(to=3, evidence="?"))
    first = story.when(PersonAnswered(choice=HAPPENED, text="I saw it")).decided[0]
    assert isinstance(first, Answered)
    assert isinstance(first.answer, ANSWER_TO[type(command)])


def test_again_keeps_the_command_open_to_be_carried_out_again() -> None:
    told = doubted().when(PersonAnswered(choice=AGAIN)).then(Repeated)
    assert list(told.run.open) == [3]
    assert told.run.doubts == {}
    assert told.status == "working"
    told.story.when(ToolReturned(value="at last")).then_asks(AGENT)


def test_giving_up_settles_it_as_our_failure() -> None:
    told = doubted().when(PersonAnswered(choice=GIVE_UP))
    first = told.decided[0]
    assert isinstance(first, Answered) and isinstance(first.answer, Failed)
    assert (first.to, first.answer.fault) == (3, "ours")
    assert told.run.state.failures == 1


def test_a_command_may_be_doubted_again_after_it_was_repeated() -> None:
    story = doubted()
    story.tell(PersonAnswered(choice=AGAIN))
    story.when(Doubted(to=3, evidence="Again.")).then_asks(AskPerson)
    story.when(PersonAnswered(choice=HAPPENED)).then_asks(AGENT)


class Changeable(ErrandStyle):
    """Withdraws its first command when it hears anything."""

    def decide(self, step: Step[StubState], news: News) -> None:
        if isinstance(news, Heard):
            step.withdraw(3, "changed my mind")
        else:
            super().decide(step, news)


@pytest.mark.parametrize("choice", [HAPPENED, AGAIN, GIVE_UP])
def test_an_answer_about_a_doubt_that_was_withdrawn_does_no_harm(choice: str) -> None:
    story = given(Changeable(), errands((TOOL, PERSON)), Doubted(to=3, evidence="?"), Heard(text="stop"))
    told = story.when(Answered(to=6, answer=PersonAnswered(choice=choice)))
    assert told.error is None
    assert 3 not in told.run.open
    assert not any(isinstance(event, Answered | Repeated) for event in told.decided)


# Folding


def test_replay_gives_the_run_that_deciding_gave() -> None:
    story = doubted()
    story.tell(PersonAnswered(choice=AGAIN))
    story.tell(ToolReturned(value="x"))
    story.tell(AgentReplied(text="y"))
    folded = replay(STYLE, story.definitions, story.run_id, story.records)
    assert folded == story.run


def test_equal_standing_has_an_equal_fingerprint_whatever_the_clock_and_the_id() -> None:
    one, two = (
        given(STYLE, errands((AGENT,), (TOOL,))),
        Given(STYLE, {"definition": errands((AGENT,), (TOOL,))}, "other"),
    )
    two.tell(START, after=77)
    for story, pause in ((one, 1.0), (two, 1000.0)):
        story.tell(AgentReplied(text="same"), after=pause)
    assert one.run is not None and two.run is not None
    assert fingerprint(one.run) == fingerprint(two.run)
    two.tell(ToolReturned(value=1))
    assert fingerprint(one.run) != fingerprint(two.run)


def test_a_whole_number_of_seconds_stands_as_it_is_read_back() -> None:
    codec = Codec(ERRAND_EVENTS)
    story = given(STYLE, errands((SetTimer(name="tea", after=5),)), limits=Limits(seconds=60, money=1))
    read = [Record(record.number, record.at, codec.load(codec.dump(record.event))) for record in story.records]
    folded = replay(STYLE, story.definitions, story.run_id, read)
    assert story.run is not None and folded is not None
    assert fingerprint(folded) == fingerprint(story.run)


@pytest.mark.parametrize("text", ["hello ", "Hello", ""])
def test_another_standing_has_another_fingerprint(text: str) -> None:
    one = given(STYLE, errands((AGENT,), (TOOL,)), AgentReplied(text="hello"))
    two = given(STYLE, errands((AGENT,), (TOOL,)), AgentReplied(text=text))
    assert one.run is not None and two.run is not None
    assert fingerprint(one.run) != fingerprint(two.run)


# Forks (the kernel's half; the engine's is in tests/runtime)


def test_a_fork_withdraws_what_was_open_and_asks_anew() -> None:
    story = given(STYLE, errands((AGENT, TOOL)))
    told = story.when(Forked(run="story", at=4))
    told.then(Withdrawn, Withdrawn, RoundBegan(index=0), Asked(command=AGENT), Asked(command=TOOL))


def test_an_ended_run_goes_on_by_a_fork_only() -> None:
    story = given(STYLE, errands((AGENT,)), AgentReplied(text="done"))
    told = story.when(Forked(run="story", at=5))
    told.then_asks(AGENT)
    assert told.run.ended is None


class Faulty(ErrandStyle):
    """A style with a bug in it."""

    def decide(self, step: Step[Any], news: News) -> None:
        if not isinstance(news, Started):
            raise ZeroDivisionError("of all things")
        super().decide(step, news)


def test_a_fault_of_ours_ends_the_run_with_the_answer_on_record() -> None:
    told = given(Faulty(), errands((AGENT,))).when(AgentReplied(text="paid for"))
    told.then_ends("failed", "a fault of ripstop, not of the workflow: ZeroDivisionError: of all things")
    assert isinstance(told.events[0], Answered)
