"""Whether turns still change anything, and how a run goes on after a guard's verdict."""

from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from ripstop.kernel import progress
from ripstop.kernel.effects import AgentReplied, AskAgent, AskPerson, Guards, Limits, PersonAnswered
from ripstop.kernel.errors import RunHasEnded, UsageError
from ripstop.kernel.events import GuardTripped, Ordered, Started, TurnResult, Withdrawn
from ripstop.kernel.progress import LONGEST_CIRCLE, NOTHING, TurnDigest, follow, mark, review
from ripstop.kernel.resuming import (
    AMOUNTS,
    GO_ON,
    RAISABLE,
    STOP,
    limit_of,
    outcome_of,
    override_guards,
    raised,
    raises_of,
    ways_on,
)
from ripstop.testing import Errands, ErrandStyle, Given, given
from tests.styles.loops import NEXT, counting, document, handled, play, ring, round_of, same, says, settle_views

Step = tuple[str, str]  # who did what


def walked(steps: list[Step], guards: Guards = Guards(), trail: tuple[TurnDigest, ...] = ()) -> tuple[TurnDigest, ...]:
    """The trail of these steps; a step's number is ten times its place, counted from 1."""
    for place, (agent, did) in enumerate(steps, 1):
        trail = follow(trail, 10 * place, TurnResult(agent=agent, deed=did), guards)
    return trail


def around(*agents: str, times: int) -> list[Step]:
    return [(agent, "same") for agent in agents] * times


def polite(agent: str, number: int, did: str = NOTHING) -> TurnDigest:
    return TurnDigest(agent, did, number, courteous=True)


# Marks


def test_a_mark_tells_what_was_changed_and_not_in_which_order_it_was_written() -> None:
    assert mark({"a": 1, "b": [2]}, []) == mark({"b": [2], "a": 1}, [])
    assert len({mark(), mark({}), mark({"a": 1}), mark({"a": True}), mark({"a": "1"}), mark({"b": 1})}) == 6
    assert mark() == NOTHING


@pytest.mark.req("S0-46")
def test_the_end_marker_counts_wherever_it_stands() -> None:
    guards = Guards(end_marker="[END]")
    for text in ("[END]", "so [END] it is", "好[END]", "\n\n[END]\n"):
        assert progress.marked(text, guards)
        assert not progress.marked(text, Guards())
    assert not progress.marked("[end]", guards)


# The trail


def test_a_turn_of_which_nobody_knows_what_it_did_leaves_no_deed() -> None:
    trail = walked([("ann", "x")])
    assert follow(trail, 99, TurnResult(), Guards()) is trail
    assert review((), Guards()) is None


@pytest.mark.req("S0-36", "S0-37", "S0-38")
@pytest.mark.parametrize("patience", [2, 3, 5, 9])
@pytest.mark.parametrize("agents", ["a", "ab", "abc", "abcd", "abcde", "abcdef", "abcdefg"])
def test_a_circle_is_stopped_in_the_last_turn_that_patience_allows(agents: str, patience: int) -> None:
    guards = Guards(patience=patience)
    steps = around(*agents, times=patience)
    assert review(walked(steps[:-1], guards), guards) is None
    verdict = review(walked(steps, guards), guards)
    assert verdict is not None
    assert verdict.guard == ("no_progress" if len(agents) == 1 else "circle")
    assert verdict.evidence == tuple(10 * place for place in range(1, len(steps) + 1))
    assert verdict.progress == 10 * len(agents), "what the first round did, the others only did again"
    assert str(verdict.progress) in verdict.text and " → ".join(agents) in verdict.text


def test_a_circle_of_more_than_seven_is_nobodys_circle() -> None:
    assert review(walked(around(*"abcdefgh", times=20)), Guards()) is None


def test_the_same_deed_by_another_agent_is_another_deed() -> None:
    guards = Guards(patience=2)
    assert review(walked([("ann", "x"), ("bob", "x")], guards), guards) is None
    assert review(walked([("ann", "x"), ("ann", "x")], guards), guards) is not None


def test_patience_of_none_lets_a_circle_go_on_for_ever() -> None:
    guards = Guards(patience=0)
    assert review(walked(around("a", times=500), guards), guards) is None


def test_patience_of_one_does_not_take_a_first_deed_for_a_repeated_one() -> None:
    guards = Guards(patience=1)
    assert review(walked([("ann", "x")], guards), guards) is None


def test_turns_that_did_nothing_at_all_are_no_progress() -> None:
    trail = walked([("ann", "x"), ("ann", "y"), *[("ann", NOTHING)] * 5])
    verdict = review(trail, Guards())
    assert verdict is not None and verdict.progress == 20, "the last turn that did something"


def test_the_end_marker_comes_before_every_other_verdict() -> None:
    guards = Guards(end_marker="[END]")
    trail = (*walked(around("ann", times=4)), TurnDigest("ann", "same", 50, courteous=True, marked=True))
    verdict = review(trail, guards)
    assert verdict is not None
    assert (verdict.guard, verdict.evidence) == ("end_marker", (50,))


@pytest.mark.req("S0-43")
def test_courtesy_is_stopped_when_it_is_answered_with_courtesy() -> None:
    work = TurnDigest("ann", "x", 10)
    assert review((work, polite("bob", 20)), Guards()) is None
    assert review((polite("bob", 10), work, polite("bob", 20)), Guards()) is None
    verdict = review((work, polite("bob", 20), polite("ann", 30)), Guards())
    assert verdict is not None
    assert (verdict.guard, verdict.evidence, verdict.progress) == ("courtesy", (20, 30), 10)
    assert "bob and ann" in verdict.text
    assert review((work, polite("bob", 20), polite("ann", 30)), Guards(courtesy="ignore")) is None


def test_courtesy_that_comes_with_a_new_deed_is_work() -> None:
    work = (TurnDigest("ann", "x", 10), TurnDigest("bob", "y", 20))
    assert review((*work, polite("ann", 30, "new"), polite("bob", 40, "y")), Guards()) is None
    assert review((*work, polite("ann", 30, "x"), polite("bob", 40, "new")), Guards()) is None
    assert review((*work, polite("ann", 30, "x"), polite("bob", 40, "y")), Guards()) is not None


def test_the_last_progress_before_courtesies_is_the_last_turn_that_changed_something() -> None:
    again = (
        TurnDigest("ann", "x", 10),
        TurnDigest("bob", "y", 20),
        TurnDigest("ann", "x", 30),
        TurnDigest("bob", "y", 40),
    )
    verdict = review((*again, polite("ann", 50, "x"), polite("bob", 60, "y")), Guards())
    assert verdict is not None and verdict.progress == 20


steps = st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"))
patiences = st.integers(2, 7)


@for_all(st.lists(steps, max_size=60), patiences, st.data())
def test_deeds_that_are_all_distinct_are_never_stopped(before: list[Step], patience: int, data: st.DataObject) -> None:
    guards = Guards(patience=patience)
    names = data.draw(st.lists(st.sampled_from("ab"), min_size=7 * patience, max_size=7 * patience))
    distinct = [(name, f"new {place}") for place, name in enumerate(names)]
    assert review(walked(before + distinct, guards), guards) is None


@pytest.mark.req("S0-37")
@for_all(st.lists(steps, max_size=60), st.lists(steps, min_size=1, max_size=LONGEST_CIRCLE), patiences)
def test_whatever_came_before_a_circle_is_stopped_in_time(before: list[Step], turn: list[Step], patience: int) -> None:
    guards = Guards(patience=patience)
    verdict = review(walked(before + turn * patience, guards), guards)
    assert verdict is not None
    assert verdict.progress in verdict.evidence
    assert verdict.evidence[-1] == 10 * (len(before) + patience * len(turn))


@for_all(st.lists(steps, max_size=80), st.integers(0, 7))
def test_the_trail_is_as_short_as_can_be_and_leads_to_the_same_verdict(taken: list[Step], patience: int) -> None:
    guards = Guards(patience=patience)
    trail = walked(taken, guards)
    whole = tuple(TurnDigest(agent, did, 10 * place) for place, (agent, did) in enumerate(taken, 1))
    assert len(trail) <= LONGEST_CIRCLE * max(patience, 1) + 2, "the longest circle, and two courtesies after it"
    assert trail == whole[len(whole) - len(trail) :]
    assert review(trail, guards) == review(whole, guards)


@for_all(st.lists(steps, max_size=40), patiences)
def test_a_verdict_is_given_exactly_when_the_end_repeats_itself(taken: list[Step], patience: int) -> None:
    guards = Guards(patience=patience)
    repeats = [
        period
        for period in range(1, LONGEST_CIRCLE + 1)
        if len(taken) >= period * patience and taken[-period * patience :] == taken[-period:] * patience
    ]
    verdict = review(walked(taken, guards), guards)
    assert (verdict is not None) == bool(repeats)
    assert verdict is None or len(verdict.evidence) == min(repeats) * patience


# Ways on


def verdict_of(guard: str, limit: float = 10, at: int = 0) -> GuardTripped:
    return GuardTripped(guard=guard, limit=limit, value=limit, text="So it is.", progress=at)


@pytest.mark.parametrize(
    ("verdict", "outcome", "limit", "ways"),
    [
        (verdict_of("circle", 5, 7), "stopped", "", ["resume r --raise patience=5", "fork r --at 7"]),
        (verdict_of("no_progress", 2), "stopped", "", ["resume r"]),
        (verdict_of("courtesy", 1, 7), "stopped", "", ["resume r", "fork r --at 7"]),
        (verdict_of("end_marker", 0), "stopped", "", ["resume r"]),
        (verdict_of("max_turns"), "limit", "turns", ["resume r --raise turns=5"]),
        (verdict_of("budget.turns", 1), "limit", "turns", ["resume r --raise turns=1"]),
        (verdict_of("budget.calls", 0), "limit", "calls", ["resume r --raise calls=1"]),
        (verdict_of("budget.tokens", 9000), "limit", "tokens", ["resume r --raise tokens=4500"]),
        (verdict_of("budget.seconds", 60), "limit", "seconds", ["resume r --raise seconds=30"]),
        (verdict_of("depth", 8), "limit", "depth", ["resume r --raise depth=4"]),
        (verdict_of("interactions"), "limit", "interactions", ["resume r --raise interactions=5"]),
    ],
    ids=lambda value: value.guard if isinstance(value, GuardTripped) else "",
)
def test_every_verdict_says_how_the_run_can_go_on(
    verdict: GuardTripped, outcome: str, limit: str, ways: list[str]
) -> None:
    assert (outcome_of(verdict), limit_of(verdict)) == (outcome, limit)
    assert ways_on("r", verdict) == [f"ripstop {way}" for way in ways]
    assert not limit or raises_of({"raise": {limit: 1}}, verdict) == {limit: 1}


@pytest.mark.parametrize("amount", [0, -1, float("inf"), float("nan"), True, "5", None])
def test_a_limit_is_raised_by_a_number_above_nothing(amount: Any) -> None:
    with pytest.raises(UsageError, match="a number above 0"):
        raises_of({"raise": {"turns": amount}})


@pytest.mark.parametrize("name", [name for name in RAISABLE if name not in ("money", "seconds")])
def test_what_is_counted_in_whole_numbers_is_not_raised_by_less_than_one(name: str) -> None:
    with pytest.raises(UsageError):
        raises_of({"raise": {name: 0.5}})


def test_a_run_does_not_go_on_into_the_limit_that_it_has_reached() -> None:
    with pytest.raises(UsageError, match="--raise turns=N"):
        raises_of({}, verdict_of("max_turns"))
    with pytest.raises(UsageError, match="--raise tokens=N"):
        raises_of({"raise": {"turns": 5}}, verdict_of("budget.tokens"))
    with pytest.raises(UsageError, match="no limit 'luck'"):
        raises_of({"raise": {"luck": 5}})
    assert raises_of({}, verdict_of("circle")) == {}


def test_what_is_raised_is_raised_and_nothing_else() -> None:
    limits = Limits(tokens=10, money=1.5, calls=10, seconds=10, turns=10, depth=10)
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


ASKING: dict[str, Any] = {"guards": {"then": "ask"}}


def asked(story: Given) -> AskPerson:
    """The question, which is all that is open."""
    assert story.run is not None and story.run.ended is None
    (opened,) = story.run.open.values()
    assert isinstance(opened.command, AskPerson)
    assert opened.command.choices == (GO_ON, STOP)
    return opened.command


def test_a_person_is_asked_about_a_circle_and_sees_the_evidence() -> None:
    story = ring(2, **ASKING)()
    assert play(story, same(go=True), 20) == 10
    question = asked(story)
    (verdict,) = [record.event for record in story.records if isinstance(record.event, GuardTripped)]
    assert question.about == verdict.evidence
    assert question.question.startswith(verdict.text)
    story.when(PersonAnswered(choice=GO_ON)).then_asks(AskAgent)
    assert play(story, same(go=True), 20) == 10, "with the same patience again"
    told = story.when(PersonAnswered(choice=STOP)).then_ends("stopped", "gone round 5 times")
    assert told.commands == []
    story.when(Ordered("resume")).then_asks(AskAgent)


@pytest.mark.parametrize(("words", "more"), [("3", 3), (" 3 ", 3), ("", 10)])
@pytest.mark.parametrize("limits", [Limits(), Limits(turns=10)], ids=["max_turns", "budget.turns"])
def test_a_person_says_by_how_much_a_limit_is_raised(limits: Limits, words: str, more: int) -> None:
    story = ring(2, limits, max_turns=20 if limits.turns else 10, **ASKING)()
    assert play(story, counting, 50) == 10
    assert "by how much turns is raised" in asked(story).question
    story.when(PersonAnswered(choice=GO_ON, text=words)).then_asks(AskAgent)
    assert play(story, lambda n: counting(n + 10), 50) == more


@pytest.mark.parametrize("words", ["a few", "-1", "0", "nan", "inf", "0.5"])
def test_refuses_words_that_are_not_an_amount(words: str) -> None:
    story = ring(2, max_turns=10, **ASKING)()
    play(story, counting, 50)
    story.when(PersonAnswered(choice=GO_ON, text=words)).then_refused(UsageError)
    story.when(PersonAnswered(choice=GO_ON, text="2")).then_asks(AskAgent)


def test_a_person_raises_the_patience_of_a_run_that_makes_no_progress() -> None:
    story = ring(2, **ASKING)()
    play(story, same(go=True), 50)
    assert "by how much patience is raised" in asked(story).question
    story.when(PersonAnswered(choice=GO_ON, text="2")).then_asks(AskAgent)
    assert play(story, same(go=True), 50) == 14, "seven rounds of two instead of five"


def test_an_order_to_go_on_answers_the_question_too() -> None:
    story = ring(2, max_turns=10, **ASKING)()
    play(story, counting, 50)
    story.when(Ordered("resume")).then_refused(UsageError)
    asked(story)
    told = story.when(Ordered("resume", {"raise": {"turns": 1}})).then_asks(AskAgent)
    assert isinstance(told.decided[0], Withdrawn)
    story.when(Ordered("resume")).then_nothing()


def test_a_run_that_waits_for_a_verdict_can_be_cancelled() -> None:
    story = ring(2, **ASKING)()
    play(story, same(go=True), 20)
    story.when(Ordered("cancel", by="zoe")).then_ends("stopped", "cancelled by zoe")


def errands(limits: Limits, **guards: Any) -> Given:
    rounds = Errands(rounds=((AskAgent("ann"),),) * 5)
    return given(ErrandStyle(), rounds, Started("errands", "definition", limits=limits, guards=guards))


def test_whatever_the_style_a_person_lets_it_go_on() -> None:
    story = errands(Limits(calls=2), then="ask")
    story.tell(AgentReplied(text="one"))
    story.when(AgentReplied(text="two")).then_asks(AskPerson)
    assert "calls" in asked(story).question
    told = story.when(PersonAnswered(choice=GO_ON, text="3")).then_asks(AskAgent)
    assert told.run.limits.calls == 5


# An order to go on


@pytest.mark.parametrize("limits", [Limits(calls=2), Limits(turns=2)])
def test_whatever_the_style_a_run_goes_on_once_its_limit_is_raised(limits: Limits) -> None:
    story = errands(limits)
    story.tell(AgentReplied(text="one"))
    story.when(AgentReplied(text="two")).then_ends("limit")
    story.when(Ordered("resume")).then_refused(UsageError)
    name = "calls" if limits.calls else "turns"
    story.when(Ordered("resume", {"raise": {name: 1}})).then_asks(AskAgent)
    story.when(AgentReplied(text="three")).then_ends("limit")


def test_a_run_that_no_guard_stopped_is_over() -> None:
    story = ring(1)()
    story.when(says(done=True)).then_ends("completed")
    story.when(Ordered("resume", {"raise": {"turns": 5}})).then_refused(RunHasEnded)


def test_a_resumed_graph_begins_a_new_trail() -> None:
    story = ring(2)()
    play(story, same(go=True), 20)
    story.when(Ordered("resume")).then_asks(AskAgent)
    assert play(story, same(go=True), 20) == 10, "the same patience again"
    assert [record.event.guard for record in story.records if isinstance(record.event, GuardTripped)] == [
        "circle",
        "circle",
    ]
    story.when(Ordered("resume", {"raise": {"patience": 5}})).then_asks(AskAgent)
    assert play(story, same(go=True), 30) == 20, "and twice as much once it is raised"


@pytest.mark.req("S0-34")
def test_a_document_gets_as_many_more_interactions_as_the_limit_is_raised_by() -> None:
    story = document()()
    words = round_of(2, lambda by, to, n: handled(by, to, f"New idea {n}."))
    play(story, words, 10)
    story.tell(Ordered("resume", {"raise": {"interactions": 4}}, "zoe"))
    settle_views(story)
    assert story.run is not None and story.run.state.paper.status == "pending"
    assert play(story, lambda n: words(n + 5), 10) == 3
    assert story.run.state.count == 14
    assert [record.event.limit for record in story.records if isinstance(record.event, GuardTripped)] == [10, 14]


@pytest.mark.parametrize(("choice", "status"), [(STOP, "terminated"), (GO_ON, "pending")])
def test_a_person_may_be_asked_before_a_document_is_terminated(choice: str, status: str) -> None:
    story = document(guards={"then": "ask"})()
    around = round_of(2, lambda by, to, n: handled(by, to, "", NEXT))
    assert play(story, around, 9) == 4
    assert story.run is not None and story.run.ended is None and story.run.state.paper.status == "pending"
    story.tell(PersonAnswered(choice=choice, by="zoe"))
    settle_views(story)
    assert story.run.state.paper.status == status
    assert (story.run.ended is not None) == (choice == STOP)
    assert story.run.trail == () or choice == STOP
