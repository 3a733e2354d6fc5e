"""Loops of graphs are stopped in time and with evidence; work that only looks like one goes on to its end."""

from typing import Any

import pytest

from ripstop.kernel.effects import AskAgent, CallTool, ToolReturned
from ripstop.kernel.events import Forked, ResumeRequested, TurnResult
from ripstop.kernel.folding import replay
from ripstop.kernel.step import advance
from ripstop.testing import Given
from tests.styles.loops import (
    COURTESIES,
    DONE_ALREADY,
    FAILS,
    FLIP,
    FLOP,
    GRAPH_LOOPS,
    MARKER,
    READ,
    Healthy,
    Loop,
    after,
    calls,
    completes,
    counting,
    evidence,
    in_turn,
    play,
    ring,
    rising,
    same,
    same_but,
    says,
    stopped,
    until,
    writes,
)


def forked(story: Given, at: int) -> Any:
    """The run that a fork at the end of this record's step leads to."""
    cut = next((record.number - 1 for record in story.records[at:] if record.event.is_fact), len(story.records))
    shared = replay(story.style, story.contents, story.run_id, story.records[:cut])
    step = advance(story.style, story.contents, shared, "fork", Forked(run=story.run_id, at=cut), story.now)
    assert step is not None
    return step.run


@pytest.mark.req("S0-32", "S0-36", "S0-37", "S0-43", "S0-45", "S0-46", "S0-47")
@pytest.mark.parametrize("loop", GRAPH_LOOPS, ids=lambda loop: loop.id)
def test_a_graph_that_goes_round_is_stopped(loop: Loop) -> None:
    story, verdict = stopped(loop)
    turns = [record.number for record in story.records if isinstance(record.event, TurnResult)]
    if loop.outcome == "stopped":
        assert all(isinstance(event, TurnResult) for event in evidence(story, verdict))
        assert verdict.evidence[-1] == turns[-1]
    if not loop.progress:
        assert verdict.progress == 0
        return
    assert verdict.progress == turns[loop.progress - 1]
    run = forked(story, verdict.progress)
    assert run.ended is None and [type(opened.command) for opened in run.open.values()] == [AskAgent]


# Healthy runs

# fmt: off
HEALTHY_GRAPHS = [
    Healthy("review-with-a-rising-score", ring(2), until(40, rising), 40),
    Healthy("review-with-a-falling-score", ring(2), until(30, lambda n: (says(score=100 - n),)), 30),
    Healthy("review-with-a-score-that-wavers", ring(2), until(40, lambda n: (says(score=n * n % 37),)), 40),
    Healthy("another-file-each-turn", ring(1), until(30, lambda n: writes(f"collab/{n}.md", "# A", go=True)), 30),
    Healthy("another-content-each-turn", ring(1), until(30, lambda n: writes("collab/a.md", f"# {n}", go=True)), 30),
    Healthy("another-edit-each-turn", ring(2), until(30, lambda n: calls(
        "edit_file", {"path": "a.md", "search": str(n), "replace": str(n + 1)}, ToolReturned(), go=True)), 30),
    Healthy("one-of-two-writes-something-new", ring(2),
            until(40, lambda n: writes("a.md", f"# {n}", go=True) if n % 2 else READ), 40),
    Healthy("sixty-turns-with-a-counter", ring(2), until(60, counting), 60),
    Healthy("ninety-nine-turns-with-a-counter", ring(3), until(99, counting), 99),
    Healthy("all-hundred-turns-with-a-counter", ring(1), until(100, counting), 100),
    Healthy("debate-of-eight-turns-with-the-same-decisions", ring(2), until(9, same(agree=False)), 9),
    *(Healthy(f"circle-of-{size}-gone-through-five-times-but-for-one-turn", ring(size),
              until(5 * size, same(go=True)), 5 * size) for size in range(1, 8)),
    *(Healthy(f"circle-of-{size}-broken-by-one-other-deed", ring(size), until(9 * size, same_but(5 * size)), 9 * size)
      for size in range(1, 8)),
    Healthy("one-who-breaks-every-circle-in-time", ring(1), until(50, lambda n: (says(go=n // 4),)), 50),
    Healthy("flip-flop-that-ends-in-time", ring(1), until(10, in_turn(FLIP, FLOP)), 10),
    Healthy("the-same-file-again-that-ends-in-time", ring(2), until(10, lambda n: DONE_ALREADY), 10),
    Healthy("reading-that-ends-in-time", ring(2), until(10, lambda n: READ), 10),
    Healthy("tools-that-fail-and-then-work", ring(1), until(10, after(4, counting, lambda n: FAILS)), 10),
    Healthy("patience-of-two", ring(2, guards={"patience": 2}), until(4, same(go=True)), 4),
    Healthy("patience-of-twenty", ring(1, guards={"patience": 20}), until(20, same(go=True)), 20),
    Healthy("patience-of-none", ring(2, guards={"patience": 0}), until(99, same(go=True)), 99),
    Healthy("polite-first-turn", ring(2), until(6, after(1, counting, in_turn((says("Thank you!"),)))), 6),
    Healthy("thanks-between-work", ring(2), until(40, lambda n: (says("Thanks!") if n % 2 else says(part=n),)), 40),
    Healthy("thanks-with-decisions-that-change", ring(2), until(30, lambda n: (says("Thanks!", step=n),)), 30),
    Healthy("thanks-with-files-that-change", ring(1),
            until(20, lambda n: writes("a.md", f"{n}", content="Thanks!", go=True)), 20),
    Healthy("thanks-while-courtesy-is-ignored", ring(2, guards={"courtesy": "ignore"}),
            until(8, same(lambda n: "Thanks!", go=True)), 8),
    Healthy("thanks-in-the-last-two-turns", ring(2),
            until(6, after(4, in_turn((says("Thanks!"),))), (says("You're welcome!", done=True),)), 6),
    Healthy("end-marker-that-nobody-set", ring(2), until(8, lambda n: (says(f"So {MARKER} it is.", step=n),)), 8),
    Healthy("end-marker-in-part-only", ring(2, guards={"end_marker": MARKER}),
            until(8, lambda n: (says("[WORKFLOW_END is what we want", step=n),)), 8),
    *(Healthy(f"report-that-begins-with-thanks-in-{language}", ring(2), until(5, in_turn((says(report),))), 5)
      for language, (*_, report) in COURTESIES.items()),
]
# fmt: on


@pytest.mark.req("S0-36", "S0-43")
@pytest.mark.parametrize("healthy", HEALTHY_GRAPHS, ids=lambda healthy: healthy.id)
def test_a_graph_that_gets_on_is_left_alone(healthy: Healthy) -> None:
    assert completes(healthy).run is not None


@pytest.mark.parametrize(("guards", "most"), [({}, 40), ({"turn_calls": 3}, 3)])
def test_an_agent_that_calls_tools_for_ever_is_stopped_within_its_turn(guards: dict[str, Any], most: int) -> None:
    story = ring(1, guards=guards)()
    assert play(story, in_turn(READ[:2]), 2 * most) == most
    assert story.run is not None and story.run.ended is not None and story.run.verdict is not None
    assert (story.run.ended.outcome, story.run.spent.calls) == ("limit", most)
    assert (story.run.verdict.guard, story.run.verdict.limit) == ("turn_calls", most)


def test_a_turn_goes_on_where_it_was_once_its_limit_of_calls_is_raised() -> None:
    story = ring(1, guards={"turn_calls": 3})()
    play(story, in_turn(READ[:2]), 6)
    assert story.run is not None and story.run.spent.turns == 1
    story.tell(ResumeRequested(raises={"turn_calls": 2}))
    (opened,) = story.run.open.values()
    assert type(opened.command) is CallTool, "the call that the last reply asks for, and not a new turn"
    story.tell(READ[1])
    assert play(story, in_turn(READ[:2]), 10) == 2
    assert story.run.verdict is not None and story.run.verdict.limit == 5
    assert (story.run.spent.calls, story.run.spent.turns) == (5, 1)


def test_no_limit_of_calls_stops_a_turn_if_it_is_0() -> None:
    story = ring(1, guards={"turn_calls": 0})()
    assert play(story, in_turn(READ[:2]), 60) == 60
