"""How runs of graphs and documents continue after a guard's verdict; the kernel's half is in tests/kernel."""

import pytest

from ripstop.kernel.effects import AskAgent, PersonAnswered
from ripstop.kernel.errors import RunHasEnded
from ripstop.kernel.events import GuardTripped, ResumeRequested
from ripstop.kernel.resuming import CONTINUE, STOP
from tests.styles.handoff.loops import NEXT, document, handled, round_of, settle_views
from tests.styles.loops import counting, play, ring, same, says


@pytest.mark.parametrize(("words", "more"), [("3", 3), ("", 10)])
def test_a_person_says_by_how_much_the_turns_of_a_graph_are_raised(words: str, more: int) -> None:
    story = ring(2, max_turns=10, guards={"then": "ask"})()
    assert play(story, counting, 50) == 10
    story.when(PersonAnswered(choice=CONTINUE, text=words)).then_asks(AskAgent)
    assert play(story, lambda n: counting(n + 10), 50) == more


def test_a_run_that_no_guard_stopped_is_over() -> None:
    story = ring(1)()
    story.when(says(done=True)).then_ends("completed")
    story.when(ResumeRequested(raises={"turns": 5})).then_refused(RunHasEnded)


def test_a_resumed_graph_begins_a_new_trail() -> None:
    story = ring(2)()
    play(story, same(go=True), 20)
    story.when(ResumeRequested()).then_asks(AskAgent)
    assert play(story, same(go=True), 20) == 10, "the same patience again"
    assert [record.event.guard for record in story.records if isinstance(record.event, GuardTripped)] == [
        "circle",
        "circle",
    ]
    story.when(ResumeRequested(raises={"patience": 5})).then_asks(AskAgent)
    assert play(story, same(go=True), 30) == 20, "and twice as much once it is raised"


@pytest.mark.req("S0-34")
def test_a_document_gets_as_many_more_interactions_as_the_limit_is_raised_by() -> None:
    story = document()()
    words = round_of(2, lambda by, to, n: handled(by, to, f"New idea {n}."))
    play(story, words, 10, settle_views)
    story.tell(ResumeRequested(raises={"interactions": 4}, by="zoe"))
    settle_views(story)
    assert story.run is not None and story.run.state.document.status == "pending"
    assert play(story, lambda n: words(n + 5), 10, settle_views) == 3
    assert story.run.state.count == 14
    assert [record.event.limit for record in story.records if isinstance(record.event, GuardTripped)] == [10, 14]


@pytest.mark.parametrize(("choice", "status"), [(STOP, "terminated"), (CONTINUE, "pending")])
def test_a_person_may_be_asked_before_a_document_is_terminated(choice: str, status: str) -> None:
    story = document(guards={"then": "ask"})()
    around = round_of(2, lambda by, to, n: handled(by, to, "", NEXT))
    assert play(story, around, 9, settle_views) == 4
    assert story.run is not None and story.run.ended is None and story.run.state.document.status == "pending"
    story.tell(PersonAnswered(choice=choice, by="zoe"))
    settle_views(story)
    assert story.run.state.document.status == status
    assert (story.run.ended is not None) == (choice == STOP)
    assert story.run.trail == () or choice == STOP
