"""Forks: what a run takes over from the run whose records it shares; the engine's half is in tests/runtime."""

from ripstop.kernel.budget import committed
from ripstop.kernel.doubts import AGAIN
from ripstop.kernel.effects import (
    AgentReplied,
    AskAgent,
    AskPerson,
    CallTool,
    Limits,
    PersonAnswered,
    RunFinished,
    Say,
    StartRun,
    ToolReturned,
    Usage,
)
from ripstop.kernel.events import (
    FORMAT,
    Answered,
    Asked,
    CancelRequested,
    Doubted,
    Fact,
    Forked,
    Record,
    RunSettings,
    Started,
    Withdrawn,
)
from ripstop.kernel.folding import replay
from ripstop.kernel.run import Run, Spent
from ripstop.kernel.step import decide_again
from ripstop.testing import Errands, ErrandStyle, Given, given
from ripstop.testing.stub_style import RoundBegan, StubState
from tests.kernel.followed import Followed, followed

STYLE = ErrandStyle()
START = Started(style="errands", definition="definition", format=FORMAT)
AGENT, TOOL, PERSON = AskAgent(agent="ada"), CallTool(tool="hammer"), AskPerson(question="Well?")
CHILD = StartRun(workflow="w")
LATE = AgentReplied(text="late", usage=Usage(9))


def story_of(*rounds: tuple[object, ...], started: Started = START, told: tuple[Fact, ...] = ()) -> Followed:
    return followed(STYLE, Errands(rounds=rounds), started, *told)  # type: ignore[arg-type]  # rounds of commands


def forked(story: Followed, at: int, fact: Forked | None = None) -> Followed:
    fork = story.fork(at)
    fork.tell(fact or Forked(run="story", at=at))
    return fork


def test_a_fork_withdraws_what_was_open_and_asks_again() -> None:
    fork = story_of((AGENT, TOOL)).fork(4)
    told = fork.when(Forked(run="story", at=4))
    told.then(Withdrawn, Withdrawn, RoundBegan(index=0), Asked(command=AGENT), Asked(command=TOOL))
    assert all(event.unmade for event in told.decided if isinstance(event, Withdrawn))


def test_an_ended_run_continues_by_a_fork_only() -> None:
    story = given(STYLE, Errands(rounds=((AGENT,),)), AgentReplied(text="done"))
    told = story.when(Forked(run="story", at=5))
    told.then_asks(AGENT)
    assert told.run.ended is None


def test_a_call_that_a_fork_did_not_make_does_not_count() -> None:
    fork = forked(story_of((AGENT, AGENT, TOOL)), 5)
    assert fork.run is not None and fork.run.spent.calls == 2, "only those that it makes itself"


def test_answers_to_what_a_fork_withdrew_are_not_its_own() -> None:
    fork = forked(story_of((AGENT, CHILD)), 4)
    assert fork.run is not None and fork.run.late == {}
    fork.when(Answered(to=3, answer=LATE)).then_nothing()
    fork.when(Answered(to=4, answer=RunFinished(run="story.4", outcome="completed", calls=5))).then_nothing()


def test_nothing_is_set_aside_in_a_fork_for_the_children_of_the_run_it_left() -> None:
    story = story_of((CHILD,), started=Started("errands", "definition", FORMAT, limits=Limits(calls=5)))
    fork = story.fork(3)
    assert fork.run is not None and committed(fork.run).calls == 5
    fork.when(Forked(run="story", at=3)).then_asks(StartRun)


def test_late_answers_belong_to_the_run_that_was_left() -> None:
    story = story_of((AGENT, PERSON), told=(CancelRequested(),))
    fork = forked(story, story.records[-1].number)
    fork.when(Answered(to=3, answer=LATE)).then_nothing()
    story.when(Answered(to=3, answer=LATE)).then()


def test_messages_on_their_way_belong_to_the_run_that_was_left() -> None:
    fork = forked(story_of((Say(text="hello", channel="mail"), AGENT)), 4)
    assert fork.run is not None
    assert [type(record.event) for record in fork.records[4:]].count(Withdrawn) == 1
    assert 3 not in fork.run.open


def test_a_fork_of_a_child_is_a_run_of_its_own() -> None:
    started = Started("errands", "definition", FORMAT, parent=("above", 7), surface=("above", 7), depth=2)
    fork = forked(story_of((Say(text="hello"), PERSON), started=started), 4)
    assert fork.run is not None
    assert (fork.run.started.parent, fork.run.started.surface, fork.run.payer) == (None, None, "")
    assert fork.run.started.depth == 2
    assert fork.outbox.due == [], "nobody above hears of it"


def test_a_fork_may_change_limits_settings_and_pins() -> None:
    settings, limits = RunSettings(model="small"), Limits(calls=7)
    fork = forked(story_of((AGENT,)), 3, Forked(run="story", at=3, limits=limits, settings=settings, pinned="abc"))
    assert fork.run is not None
    assert (fork.run.limits, fork.run.settings, fork.run.pinned) == (limits, settings, "abc")
    kept = forked(fork, fork.records[-1].number, Forked(run="fork", at=6))
    assert kept.run is not None
    assert (kept.run.limits, kept.run.settings, kept.run.pinned) == (limits, settings, "abc")


def test_a_fork_forgets_a_verdict_and_its_question() -> None:
    started = Started("errands", "definition", FORMAT, limits=Limits(calls=1), guards={"then": "ask"})
    story = story_of((AGENT,), (AGENT,), started=started)
    story.tell(AgentReplied())
    assert story.run is not None and story.run.verdict is not None
    fork = forked(story, story.run.length, Forked(run="story", at=story.run.length, limits=Limits(calls=5)))
    assert fork.run is not None and fork.run.verdict is None and fork.run.asks_about_verdict == 0
    assert fork.opened(AskAgent)


# Right after a fact


def again(story: Given, number: int, style: ErrandStyle = STYLE) -> tuple[Run[StubState], list[Record]]:
    """A fork right after the fact with this number: its decisions are made again."""
    before = replay(style, story.contents, "fork", story.records[: number - 1])
    forked = Forked(run="story", at=number)
    step = decide_again(style, story.contents, before, story.records[number - 1], forked, "fork", story.now)
    return step.run, step.records


def test_a_fork_right_after_a_fact_decides_on_it_again() -> None:
    story = story_of((AGENT,), (TOOL,))
    story.tell(AgentReplied(text="hello"))
    run, records = again(story, 4)
    assert [type(record.event) for record in records] == [Forked, RoundBegan, Asked]
    assert run.state.answers == ("hello",) and list(run.open) == [7]


def test_what_was_open_beside_the_fact_stays_open_in_the_fork() -> None:
    story = story_of((AGENT, TOOL), (PERSON,))
    story.tell(AgentReplied(text="hello"))
    run, records = again(story, 5)
    assert list(run.open) == [4] and len(records) == 1


def test_a_fork_right_after_a_late_answer_continues() -> None:
    story = story_of((TOOL, PERSON), told=(CancelRequested(), Answered(to=3, answer=ToolReturned(value=1))))
    run, _ = again(story, story.records[-1].number)
    assert run.ended is None
    assert [opened.command for opened in run.open.values()] == [TOOL, PERSON]


def test_a_doubt_that_a_fork_inherits_can_be_resolved() -> None:
    story = story_of((TOOL, AGENT), (PERSON,))
    story.tell(Doubted(to=3, evidence="?"))
    story.tell(Answered(to=4, answer=AgentReplied(text="x")))
    run, records = again(story, story.records[-1].number)
    (question,) = run.doubts
    fork = Given(STYLE, story.contents.definitions, "fork")
    fork.run, fork.records = run, [*story.records, *records]
    told = fork.when(Answered(to=question, answer=PersonAnswered(choice=AGAIN)))
    assert told.run.doubts == {} and 3 in told.run.open


def test_a_fork_of_a_fork_shares_what_both_shared() -> None:
    story = story_of((AGENT,), (TOOL,))
    story.tell(AgentReplied(text="one", usage=Usage(5)))
    first = forked(story, story.records[-1].number)
    second = first.fork(first.records[-1].number, "second")
    second.tell(Forked(run="fork", at=first.records[-1].number))
    assert second.run is not None and second.run.id == "second"
    assert second.run.spent == Spent(1, 1, Usage(5))
    assert second.outbox.open.keys() == second.run.open.keys()
