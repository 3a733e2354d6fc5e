"""One step of a run: what the kernel itself decides, whatever the style."""

from typing import Any

import pytest

from ripstop.kernel.codec import Codec
from ripstop.kernel.doubts import AGAIN
from ripstop.kernel.effects import (
    AgentReplied,
    AskAgent,
    AskPerson,
    CallTool,
    Limits,
    PersonAnswered,
    SetTimer,
    StartRun,
    TimerFired,
    ToolReturned,
)
from ripstop.kernel.errors import RunAlreadyStarted, RunHasEnded, RunNotFound, Unworkable
from ripstop.kernel.events import (
    FORMAT,
    Answered,
    Asked,
    CancelRequested,
    Doubted,
    Ended,
    Fact,
    GuardTripped,
    Heard,
    Record,
    RunSettings,
    SettingsChanged,
    Started,
    Warned,
)
from ripstop.kernel.folding import replay
from ripstop.kernel.run import DEADLINE, fingerprint
from ripstop.kernel.step import Step
from ripstop.kernel.style import News
from ripstop.testing import ERRANDS, Errands, ErrandStyle, Given, given
from ripstop.testing.stub_style import RoundBegan, StubState

STYLE = ErrandStyle()
LOCAL = RunSettings(model_for_all="local")
AGENT, TOOL, PERSON = AskAgent(agent="ada"), CallTool(tool="hammer"), AskPerson(question="Well?")
START = Started(style="errands", definition="definition", format=FORMAT)


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


def test_a_run_starts_once() -> None:
    given(STYLE, errands((AGENT,))).when(START).then_refused(RunAlreadyStarted)


@pytest.mark.parametrize("fact", [Heard(text="hello"), CancelRequested(), Answered(to=1, answer=TimerFired())])
def test_an_unknown_run_takes_nothing_but_a_start(fact: Fact) -> None:
    Given(STYLE, {}).when(fact).then_refused(RunNotFound)


@pytest.mark.parametrize("fact", [Heard(text="hello"), CancelRequested()])
def test_an_ended_run_refuses_and_names_the_way_on(fact: Fact) -> None:
    told = given(STYLE, errands()).when(fact).then_refused(RunHasEnded)
    assert "completed" in str(told.error) and "Fork it" in str(told.error)


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


class Late(ErrandStyle):
    """Finds out that it cannot work with an answer when it has ended already."""

    def decide(self, step: Step[StubState], news: News) -> None:
        super().decide(step, news)
        if step.run.ended:
            raise Unworkable("too late")


def test_a_run_ends_once_whatever_its_style_raises_after_the_end() -> None:
    told = given(Late(), errands((AGENT,))).when(AgentReplied(text="done"))
    told.then(Ended).then_ends("completed")


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
    assert given(STYLE, errands((), outcome="")).when(Heard(text="x")).status == "stuck"
    assert given(STYLE, errands((), outcome="", listens=True)).when(Heard(text="x")).status == "listening"
    story = Given(STYLE, {"definition": errands((command,))})
    assert story.when(START).status == expected


def test_cancel_ends_the_run_and_closes_all_that_was_open() -> None:
    told = given(STYLE, errands((AGENT, TOOL, PERSON))).when(CancelRequested(by="ada"))
    told.then(Ended).then_ends("stopped", "cancelled by ada")
    assert told.run.open == {}


def test_settings_can_be_changed_and_what_is_open_stays_open() -> None:
    story = given(STYLE, errands((AGENT,)), settings=RunSettings(model="big"))
    asked = story.opened()
    told = story.when(SettingsChanged(settings=LOCAL, by="ada"))
    assert told.decided == []
    assert list(told.run.open) == [asked]
    assert told.run.settings == LOCAL and told.run.started.settings == RunSettings(model="big")


def test_equal_settings_change_nothing() -> None:
    story = given(STYLE, errands((AGENT,)), SettingsChanged(settings=LOCAL))
    story.when(SettingsChanged(settings=RunSettings(model_for_all="local"), by="bob")).then_nothing()


def test_a_cancelled_run_refuses_new_settings() -> None:
    story = given(STYLE, errands((AGENT,)), CancelRequested())
    story.when(SettingsChanged(settings=LOCAL)).then_refused(RunHasEnded)


def test_a_run_that_a_guard_stopped_takes_settings_before_it_is_resumed() -> None:
    story = given(STYLE, errands((AGENT,), (AGENT,)), AgentReplied(text="one"), limits=Limits(calls=1))
    assert story.run is not None
    assert story.run.ended
    told = story.when(SettingsChanged(settings=LOCAL))
    assert told.run.ended, "it continues when it is resumed, not before"
    assert told.run.settings == LOCAL


# Deadlines


def test_the_deadline_is_a_timer_set_with_the_first_call() -> None:
    story = Given(STYLE, {"definition": errands((AGENT,))})
    limits = Limits(seconds=60)
    told = story.when(Started(style="errands", definition="definition", format=FORMAT, limits=limits))
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


# Folding


def test_replay_gives_the_run_that_deciding_gave() -> None:
    story = given(STYLE, errands((TOOL,), (AGENT,)), Doubted(to=3, evidence="It was begun."))
    story.tell(PersonAnswered(choice=AGAIN))
    story.tell(ToolReturned(value="x"))
    story.tell(AgentReplied(text="y"))
    folded = replay(STYLE, story.contents, story.run_id, story.records)
    assert folded == story.run


def test_the_fingerprint_depends_on_neither_clock_nor_id() -> None:
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


def test_a_whole_number_of_seconds_is_read_back_as_it_was() -> None:
    codec = Codec(ERRANDS.events)
    story = given(STYLE, errands((SetTimer(name="tea", after=5),)), limits=Limits(seconds=60, money=1))
    read = [Record(record.number, record.at, codec.load(codec.dump(record.event))) for record in story.records]
    folded = replay(STYLE, story.contents, story.run_id, read)
    assert story.run is not None and folded is not None
    assert fingerprint(folded) == fingerprint(story.run)


@pytest.mark.parametrize("text", ["hello ", "Hello", ""])
def test_another_answer_gives_another_fingerprint(text: str) -> None:
    one = given(STYLE, errands((AGENT,), (TOOL,)), AgentReplied(text="hello"))
    two = given(STYLE, errands((AGENT,), (TOOL,)), AgentReplied(text=text))
    assert one.run is not None and two.run is not None
    assert fingerprint(one.run) != fingerprint(two.run)


class Faulty(ErrandStyle):
    """A style with a bug in it."""

    def decide(self, step: Step[Any], news: News) -> None:
        if not isinstance(news, Started):
            raise ZeroDivisionError("of all things")
        super().decide(step, news)


def test_a_fault_of_ours_ends_the_run_with_the_answer_on_record() -> None:
    told = given(Faulty(), errands((AGENT,))).when(AgentReplied(text="paid for"))
    told.then_ends("failed", "a bug in ripstop, not in the workflow: ZeroDivisionError: of all things")
    assert isinstance(told.events[0], Answered)
