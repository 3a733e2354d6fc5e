"""Whether turns still change anything."""

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from ripstop.kernel import progress
from ripstop.kernel.effects import Guards
from ripstop.kernel.events import TurnResult
from ripstop.kernel.progress import LONGEST_CYCLE, NOTHING, TurnDigest, digest, follow, review

Step = tuple[str, str]  # who did what


def walked(steps: list[Step], guards: Guards = Guards(), trail: tuple[TurnDigest, ...] = ()) -> tuple[TurnDigest, ...]:
    """The trail of these steps; a step's number is ten times its place, counted from 1."""
    for place, (agent, did) in enumerate(steps, 1):
        trail = follow(trail, 10 * place, TurnResult(agent=agent, digest=did), guards)
    return trail


def around(*agents: str, times: int) -> list[Step]:
    return [(agent, "same") for agent in agents] * times


def polite(agent: str, number: int, did: str = NOTHING) -> TurnDigest:
    return TurnDigest(agent, did, number, courteous=True)


# Digests


def test_a_digest_tells_what_was_changed_and_not_in_which_order_it_was_written() -> None:
    assert digest({"a": 1, "b": [2]}, []) == digest({"b": [2], "a": 1}, [])
    assert len({digest(), digest({}), digest({"a": 1}), digest({"a": True}), digest({"a": "1"}), digest({"b": 1})}) == 6
    assert digest() == NOTHING


@pytest.mark.req("S0-46")
def test_the_end_marker_counts_wherever_it_stands() -> None:
    guards = Guards(end_marker="[END]")
    for text in ("[END]", "so [END] it is", "好[END]", "\n\n[END]\n"):
        assert progress.has_end_marker(text, guards)
        assert not progress.has_end_marker(text, Guards())
    assert not progress.has_end_marker("[end]", guards)


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


def test_patience_of_one_stops_the_longest_circle_in_its_second_round() -> None:
    guards = Guards(patience=1)
    steps = around(*"abcdefg", times=2)
    assert review(walked(steps[:-1], guards), guards) is None
    assert review(walked(steps, guards), guards) is not None


def test_turns_that_did_nothing_at_all_are_no_progress() -> None:
    trail = walked([("ann", "x"), ("ann", "y"), *[("ann", NOTHING)] * 5])
    verdict = review(trail, Guards())
    assert verdict is not None and verdict.progress == 20, "the last turn that did something"


def test_the_end_marker_comes_before_every_other_verdict() -> None:
    guards = Guards(end_marker="[END]")
    trail = (*walked(around("ann", times=4)), TurnDigest("ann", "same", 50, courteous=True, end_marker=True))
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
@for_all(st.lists(steps, max_size=60), st.lists(steps, min_size=1, max_size=LONGEST_CYCLE), patiences)
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
    assert len(trail) <= LONGEST_CYCLE * max(patience, 2) + 2, "the longest circle, and two courtesies after it"
    assert trail == whole[len(whole) - len(trail) :]
    assert review(trail, guards) == review(whole, guards)


@for_all(st.lists(steps, max_size=40), patiences)
def test_a_verdict_is_given_exactly_when_the_end_repeats_itself(taken: list[Step], patience: int) -> None:
    guards = Guards(patience=patience)
    repeats = [
        period
        for period in range(1, LONGEST_CYCLE + 1)
        if len(taken) >= period * patience and taken[-period * patience :] == taken[-period:] * patience
    ]
    verdict = review(walked(taken, guards), guards)
    assert (verdict is not None) == bool(repeats)
    assert verdict is None or len(verdict.evidence) == min(repeats) * patience
