"""Runs of a journal that was put back from a copy: a person says what became of them."""

from typing import Any

import pytest

from ripstop.kernel.effects import (
    AskAgent,
    AskPerson,
    CallTool,
    Limits,
    PersonAnswered,
    Say,
    SetTimer,
    StartRun,
    ToolReturned,
)
from ripstop.kernel.events import (
    Answered,
    Asked,
    CancelRequested,
    Doubted,
    DoubtResolved,
    Fact,
    Repeated,
    Restored,
    ResumeRequested,
    Withdrawn,
)
from ripstop.kernel.outbox import Change, Held, Opened, Released, plan
from ripstop.kernel.restoring import (
    ASK,
    CHOICES,
    CONTINUE,
    END,
    GO_ON,
    HAPPENED,
    has_happened,
    is_held,
    may_have_happened,
)
from ripstop.kernel.run import RESTORED, Run
from ripstop.kernel.step import advance
from ripstop.kernel.style import NO_CONTENTS
from ripstop.testing import Errands, ErrandStyle, Given, given

STYLE = ErrandStyle()
AGENT, TOOL, PERSON = AskAgent(agent="ada"), CallTool(tool="pay"), AskPerson(question="Well?")
LATER = 5_000_000
COPY = Restored(copy="a@1", evidence="It is a copy.")


def restored(*rounds: tuple[object, ...], fact: Restored = COPY, limits: Limits = Limits()) -> Given:
    return given(STYLE, Errands(rounds=rounds), fact, limits=limits)  # type: ignore[arg-type]


def answered(story: Given, choice: str, text: str = "") -> Given:
    assert story.run is not None and story.run.held is not None
    to = story.run.held.question
    story.tell(Answered(to=to, answer=PersonAnswered(choice=choice, text=text)))
    return story


def run_of(story: Given) -> Run[Any]:
    assert story.run is not None
    return story.run


def test_a_run_is_held_with_one_question_that_names_what_was_open() -> None:
    story = given(STYLE, Errands(rounds=((TOOL, AGENT),)))
    told = story.when(COPY)
    (ask,) = told.commands
    assert isinstance(ask, AskPerson) and ask.purpose == RESTORED and ask.choices == CHOICES
    assert "It is a copy." in ask.question and "pay" in ask.question and ask.about == (3,)
    assert told.status == "waiting" and is_held(told.run)


def test_the_same_copy_is_told_once_and_another_asks_anew() -> None:
    story = answered(restored((TOOL,)), CONTINUE)
    story.when(COPY).then_nothing()
    story.when(Restored(copy="b@2", evidence="Again.")).then_asks(AskPerson)
    assert run_of(story).held and run_of(story).held.said == ""  # type: ignore[union-attr]
    restored((TOOL,)).when(Restored(copy="b@2", evidence="Again.")).then(Withdrawn, Asked)


def test_a_run_that_has_ended_is_left_alone() -> None:
    given(STYLE, Errands(rounds=((TOOL,),)), CancelRequested()).when(COPY).then_nothing()


def test_resuming_does_not_go_round_the_question() -> None:
    restored((TOOL,)).when(ResumeRequested()).then_nothing()


@pytest.mark.parametrize("choice", [HAPPENED, ASK])
def test_calls_that_were_open_and_later_ones_may_have_happened(choice: str) -> None:
    story = answered(restored((TOOL,), (TOOL,)), choice)
    run = run_of(story)
    assert may_have_happened(run, 3) and may_have_happened(run, 99) and not is_held(run)
    assert has_happened(run, 3) is (choice == HAPPENED)
    assert not has_happened(run, 99), "only what was open in the copy"


def test_nothing_has_happened_but_what_a_worker_had_begun_stays_in_doubt() -> None:
    run = run_of(answered(restored((TOOL, TOOL), fact=Restored(copy="a", evidence="?", begun=(4,))), CONTINUE))
    assert not may_have_happened(run, 3) and not may_have_happened(run, 9) and may_have_happened(run, 4)


def test_what_a_person_said_of_all_that_was_open_settles_a_doubt_at_once() -> None:
    story = answered(restored((TOOL,), (TOOL,)), HAPPENED, "seen at the bank")
    told = story.when(Doubted(to=3, evidence="?"))
    assert isinstance(told.decided[0], DoubtResolved)
    assert told.decided[0].answer == ToolReturned(value="seen at the bank")
    later = max(run_of(story).open)
    (ask,) = story.when(Doubted(to=later, evidence="?")).commands
    assert isinstance(ask, AskPerson) and GO_ON in ask.choices


def test_again_makes_one_call_and_go_on_ends_the_questions() -> None:
    for choice, still in ((GO_ON, False), ("again", True)):
        story = answered(restored((TOOL, TOOL)), ASK)
        story.tell(Doubted(to=3, evidence="?"))
        asked = max(run_of(story).open)
        told = story.when(Answered(to=asked, answer=PersonAnswered(choice=choice)))
        assert told.decided == [Repeated(number=3, goes_on=not still)]
        assert not may_have_happened(run_of(story), 3)
        assert may_have_happened(run_of(story), 4) is still


def test_ending_it_ends_the_run() -> None:
    story = restored((TOOL,))
    held = run_of(story).held
    assert held is not None
    told = story.when(Answered(to=held.question, answer=PersonAnswered(choice=END, by="ann")))
    told.then_ends("stopped", "ended by ann")


def test_cancelling_takes_the_question_with_it() -> None:
    told = restored((TOOL,)).when(CancelRequested())
    told.then_ends("stopped")
    assert not is_held(told.run) and told.run.open == {}


def changes(before: Run[Any], fact: Fact, at: int = 50) -> tuple[Run[Any], list[Change]]:
    step = advance(STYLE, NO_CONTENTS, before, "r", fact, at)
    assert step is not None
    return step.run, plan(before, step.run, step.records)


def test_no_worker_takes_anything_of_a_held_run() -> None:
    timer, child, say = SetTimer(name="t", after=60.0), StartRun(workflow="w"), Say(text="hi", channel="mail")
    story = given(STYLE, Errands(rounds=((TOOL, AGENT, timer, child, say, say, PERSON),)))
    before = run_of(story)
    run, found = changes(before, COPY)
    assert {change.number for change in found if isinstance(change, Held)} == {3, 4, 5, 6, 7, 8}
    assert [change.waits for change in found if isinstance(change, Opened)] == ["person"]
    run, found = changes(run, Answered(to=max(n for n in run.open if n < 10), answer=PersonAnswered(text="yes")))
    assert not [change for change in found if isinstance(change, Released)]
    assert run.held is not None
    run, found = changes(run, Answered(to=run.held.question, answer=PersonAnswered(choice=CONTINUE)), at=LATER)
    due = {change.number: change.due for change in found if isinstance(change, Released)}
    began = before.open[5].at
    assert due.keys() == {3, 4, 5, 6, 7}, "a message behind another one is not due"
    assert due[5] == began + 60_000_000 and due[3] == LATER


def test_what_a_held_run_asks_for_waits_too() -> None:
    run, _ = changes(run_of(given(STYLE, Errands(rounds=((PERSON,), (TOOL,))))), COPY)
    run, found = changes(run, Answered(to=3, answer=PersonAnswered(text="yes")))
    (opened,) = [change for change in found if isinstance(change, Opened)]
    assert opened.due is None and Held(opened.number) in found
    assert run.held is not None
    run, found = changes(run, Answered(to=run.held.question, answer=PersonAnswered(choice=ASK)))
    assert [change.number for change in found if isinstance(change, Released)] == [opened.number]


def test_time_does_not_count_while_a_run_is_held() -> None:
    story = given(STYLE, Errands(rounds=((TOOL,),)), limits=Limits(seconds=60.0))
    assert run_of(story).work.since
    story.tell(COPY)
    assert not run_of(story).work.since and not run_of(story).work.deadline
    answered(story, CONTINUE)
    assert run_of(story).work.since and run_of(story).work.deadline


def test_a_journal_without_the_new_fields_folds_as_before() -> None:
    story = given(STYLE, Errands(rounds=((TOOL,),)), Doubted(to=3, evidence="?"))
    asked = max(run_of(story).open)
    told = story.when(Answered(to=asked, answer=PersonAnswered(choice="again")))
    assert told.decided == [Repeated(number=3)] and told.run.held is None
