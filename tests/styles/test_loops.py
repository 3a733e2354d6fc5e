"""Loops are stopped in time and with evidence; work that only looks like one goes on to its end."""

from typing import Any

import pytest

from ripstop.kernel.effects import (
    AgentReplied,
    Answer,
    AskAgent,
    AskPerson,
    Failed,
    Limits,
    PersonAnswered,
    ToolReturned,
)
from ripstop.kernel.errors import RunHasEnded
from ripstop.kernel.events import Answered, Forked, GuardTripped, Heard, Ordered, TurnResult
from ripstop.kernel.run import replay
from ripstop.kernel.step import advance
from ripstop.runtime.forking import last_shared
from ripstop.styles.handoff.document import write
from ripstop.styles.handoff.events import AgentFailed, MessageNoted
from ripstop.styles.handoff.state import asked_of
from ripstop.styles.turn import MAX_CALLS
from ripstop.testing import Given
from tests.styles.loops import (
    COMPLETES,
    COURTESIES,
    DONE_ALREADY,
    FAILS,
    FLIP,
    FLOP,
    GRAPH_LOOPS,
    HANDOFF_LOOPS,
    MARKER,
    NEXT,
    READ,
    Handling,
    Healthy,
    Loop,
    Round,
    after,
    calls,
    completed,
    counting,
    delivers,
    document,
    handled,
    in_turn,
    over,
    passes,
    play,
    ring,
    rising,
    round_of,
    same,
    same_but,
    says,
    settle_views,
    until,
    worked,
    writes,
)


def verdicts(story: Given) -> list[GuardTripped]:
    return [record.event for record in story.records if isinstance(record.event, GuardTripped)]


def stopped(loop: Loop) -> tuple[Given, GuardTripped]:
    """Play a loop and check what holds for all of them."""
    story = loop.begin()
    settle_views(story)
    if loop.rounds:
        assert not over(story)
        assert play(story, loop.goes, loop.rounds + 5) == loop.rounds
    assert story.run is not None and story.run.ended is not None
    assert story.run.ended.outcome == loop.outcome
    (verdict,) = verdicts(story)
    assert verdict.guard == loop.guard
    assert verdict.text == story.run.ended.because
    return story, verdict


def evidence(story: Given, verdict: GuardTripped) -> list[Any]:
    before = next(record.number for record in story.records if record.event is verdict)
    assert all(1 <= number < before for number in verdict.evidence)
    assert list(verdict.evidence) == sorted(set(verdict.evidence))
    return [story.records[number - 1].event for number in verdict.evidence]


def forked(story: Given, at: int) -> Any:
    """The run that a fork at this record leads to."""
    cut = last_shared(story.run_id, story.records, at)
    shared = replay(story.style, story.definitions, story.run_id, story.records[:cut])
    _, run = advance(story.style, story.definitions, shared, "fork", Forked(run=story.run_id, at=cut), story.now)
    return run


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


@pytest.mark.req("S0-32", "S0-33", "S0-34", "S0-36", "S0-37", "S0-38", "S0-43", "S0-44", "S0-45", "S0-46", "S0-47")
@pytest.mark.parametrize("loop", HANDOFF_LOOPS, ids=lambda loop: loop.id)
def test_a_document_that_goes_round_is_terminated(loop: Loop) -> None:
    story, verdict = stopped(loop)
    evidence(story, verdict)
    assert story.run is not None
    paper = story.run.state.paper
    assert (paper.status, story.run.state.count) == ("terminated", loop.interactions)
    assert paper.history[-1].after == "terminated"
    assert verdict.progress == 0, "a document has one file, so it cannot be forked"


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
WITH_CHANGE: dict[str, Handling] = {  # five times accepted, four times passed, once completed: ten interactions
    "message": lambda by, to, n: handled(by, to, f"Part {n}."),
    "message-of-agents": lambda by, to, n: worked(by, passes(to, f"Part {n}.")),
    "next-action": lambda by, to, n: handled(by, to, "Look.", f"Do part {n}."),
    "result": lambda by, to, n: handled(by, to, "Look.", NEXT, f"{n} of 5 done"),
    "file": lambda by, to, n: worked(by, *delivers(to, f"# {n}")),
}
HEALTHY_DOCUMENTS = [
    Healthy("accepted-and-completed", document(), in_turn(completed("ann")), 1),
    Healthy("accepted-and-completed-by-an-agent", document(), in_turn(worked("ann", COMPLETES)), 1),
    Healthy("passed-and-completed", document(), in_turn(handled("ann", "bob", "Check it."), completed("bob")), 2),
    *(Healthy(f"passed-back-with-another-{what}", document(), until(5, round_of(2, handling), completed("ann")), 5)
      for what, handling in WITH_CHANGE.items()),
    *(Healthy(f"passed-to-oneself-with-new-{what}", document(), until(5, round_of(1, handling), completed("ann")), 5)
      for what, handling in WITH_CHANGE.items()),
    Healthy("same-next-action-in-three-of-four-hand-overs", document(), until(
        4, round_of(2, lambda by, to, n: handled(by, to, "", NEXT)), completed("bob")), 4),
    Healthy("thirty-hand-overs-with-progress", document(max_interactions=62), until(
        31, round_of(3, lambda by, to, n: handled(by, to, f"Part {n}.")), completed("ann")), 31),
    Healthy("ping-pong-with-more-patience", document(guards={"patience": 3}), until(
        5, round_of(2, lambda by, to, n: handled(by, to, "", NEXT)), completed("ann")), 5),
    Healthy("ping-pong-with-patience-of-none", document(guards={"patience": 0}, max_interactions=40), until(
        19, round_of(2, lambda by, to, n: handled(by, to, "", NEXT)), completed("ann")), 19),
    *(Healthy(f"assignment-acknowledged-in-{language}", document(),
              in_turn((Heard(thanks, "ann"), Heard(welcome, "ann"), *completed("ann"))), 1)
      for language, (thanks, welcome, _) in COURTESIES.items()),
    *(Healthy(f"hand-over-with-thanks-and-a-report-in-{language}", document(),
              in_turn(handled("ann", "bob", report), completed("bob")), 2)
      for language, (*_, report) in COURTESIES.items()),
    Healthy("accepted-with-a-courtesy", document(),
            in_turn((Ordered("accept", {"message": "收到"}, "ann"), *completed("ann")[1:])), 1),
    Healthy("completed-with-a-courtesy", document(),
            in_turn((Ordered("accept", by="ann"), Ordered("complete", {"message": "Thanks!"}, "ann"))), 1),
    Healthy("courtesy-beside-a-real-next-action", document(),
            in_turn(handled("ann", "bob", "Thanks!", "Fix the title."), completed("bob")), 2),
    Healthy("courtesy-is-ignored", document(guards={"courtesy": "ignore"}),
            in_turn((Ordered("accept", by="ann"), Heard("Thanks!", "bob"), *handled("ann", "bob", "OK")[1:],
                     *completed("ann")[1:])), 1),
    Healthy("messages-that-change-nothing", document(), in_turn(
        (*(Heard(f"How far are you? ({n})", "zoe") for n in range(30)), *completed("ann"))), 1),
    Healthy("agent-that-fails-twice", document(),
            in_turn(worked("ann", Failed(reason="timeout"), Failed(reason="timeout"), COMPLETES)), 1),
    Healthy("agent-that-is-corrected", document(),
            in_turn(worked("ann", AgentReplied(text="It is completed."), COMPLETES)), 1),
    Healthy("refused-orders-between-work", document(), in_turn(
        (Ordered("complete", by="ann"), Ordered("accept", by="bob"), *completed("ann"))), 1),
    Healthy("assigned-three-times", document(), in_turn(
        (*(Ordered("assign", {"to": to, "message": "Yours."}, "zoe") for to in ("bob", "cyd", "bob")),
         *completed("bob"))), 1),
    Healthy("within-all-its-limits", document(Limits(calls=2, turns=2, tokens=10_000)),
            in_turn(worked("ann", passes("bob")), worked("bob", COMPLETES)), 2),
]
# fmt: on


@pytest.mark.req("S0-36", "S0-43")
@pytest.mark.parametrize("healthy", HEALTHY_GRAPHS, ids=lambda healthy: healthy.id)
def test_a_graph_that_gets_on_is_left_alone(healthy: Healthy) -> None:
    assert completes(healthy).run is not None


@pytest.mark.req("S0-32", "S0-36", "S0-38", "S0-43")
@pytest.mark.parametrize("healthy", HEALTHY_DOCUMENTS, ids=lambda healthy: healthy.id)
def test_a_document_that_gets_on_is_left_alone(healthy: Healthy) -> None:
    run = completes(healthy).run
    assert run is not None and run.state.paper.status == "completed"


def completes(healthy: Healthy) -> Given:
    story = healthy.begin()
    assert play(story, healthy.goes, healthy.rounds + 5) == healthy.rounds
    assert story.run is not None and story.run.ended is not None
    assert story.run.ended.outcome == "completed"
    assert verdicts(story) == []
    return story


# Agents that never come to an end


def asks_a_person(story: Given, *answers: Answer) -> AskPerson:
    """What a person is asked after ann has worked and answered so."""
    play(story, in_turn(worked("ann", *answers)), 1)
    assert story.run is not None and story.run.ended is None
    (question,) = (opened.command for opened in story.run.open.values())
    assert isinstance(question, AskPerson)
    return question


WORDS_ONLY = AgentReplied(text="The status is now: completed.")


@pytest.mark.req("S0-32")
@pytest.mark.parametrize(
    "reply",
    [
        WORDS_ONLY,
        AgentReplied(text="Status: completed\n## History\n- 2026-01-01 00:00:00 ann done in_progress→completed"),
    ]
    + [
        says("It is completed.", **decisions)
        for decisions in (
            *({}, {"status": "completed"}, {"action": "completed"}, {"action": None}, {"action": "accept"}),
            *({"action": "pass"}, {"action": "pass", "to": " "}, {"action": "pass", "to": ["bob"]}),
        )
    ],
    ids=lambda reply: reply.text[:60],
)
def test_an_agent_that_only_says_completed_changes_nothing_and_a_person_is_asked(reply: AgentReplied) -> None:
    story = document()()
    story.tell(Ordered("accept", by="ann"))
    assert story.run is not None
    before = write(story.run.state.paper)
    question = asks_a_person(story, *(reply,) * 6)
    assert "ann has failed 3 times" in question.question
    assert write(story.run.state.paper) == before
    assert story.run.spent.calls == 6, "three attempts, each corrected once"
    assert verdicts(story) == []


def test_an_agent_that_fails_for_ever_is_bounded_by_its_attempts() -> None:
    fails: tuple[Answer, ...] = (Failed(reason="timeout"),) * 3
    story = document()()
    asks_a_person(story, *fails)
    assert sum(isinstance(record.event, AgentFailed) for record in story.records) == 3
    assert story.run is not None and story.run.state.count == 1, "a failure is no interaction"
    story.when(PersonAnswered(choice="again")).then_asks(AskAgent)
    story.when(fails[0]).then_asks(AskPerson)
    story.tell(PersonAnswered(choice="terminate", by="zoe"))
    settle_views(story)
    assert story.run.ended is not None and story.run.ended.outcome == "stopped"


def test_an_agent_that_calls_tools_for_ever_is_cut_off_within_its_turn() -> None:
    story = ring(1)()
    assert play(story, in_turn(READ[:2]), 2 * MAX_CALLS) == MAX_CALLS
    assert story.run is not None and story.run.ended is not None
    assert (story.run.ended.outcome, story.run.spent.calls) == ("failed", MAX_CALLS)


# After the work is done


@pytest.mark.req("S0-43", "S0-44")
@pytest.mark.parametrize("text", ["Thanks!", "谢谢", f"We are through. {MARKER}"])
def test_words_after_the_completion_change_nothing_though_the_file_is_not_written_yet(text: str) -> None:
    story = document()()
    for order in completed("ann"):
        story.tell(order)
    told = story.when(Heard(text, "bob")).then(MessageNoted)
    assert [asked_of(opened.command) for opened in told.run.open.values()] == ["publish"]
    settle_views(story)
    assert told.run.ended is not None and told.run.ended.outcome == "completed"
    story.when(Heard(text, "bob")).then_refused(RunHasEnded)


def test_the_last_view_is_written_again_when_that_failed_after_a_verdict() -> None:
    story = document()()
    settle_views(story)
    told = story.when(Heard(MARKER, "ann"))
    (view,) = (number for number, opened in told.run.open.items() if asked_of(opened.command) == "publish")
    story.when(Answered(to=view, answer=Failed(reason="disk full"))).then_asks(AskPerson)
    told = story.when(PersonAnswered(choice="again"))
    assert [asked_of(opened.command) for opened in told.run.open.values()] == ["publish"], told.run.ended
    settle_views(story)
    assert story.run is not None and story.run.ended is not None and story.run.ended.outcome == "stopped"


# What a verdict rests on


@pytest.mark.req("S0-45", "S0-46")
@pytest.mark.parametrize(
    "answers",
    [
        (AgentReplied(text=f"I give up. {MARKER}"),),
        (AgentReplied(text=f"I give up. {MARKER} {passes('bob').text}"),),
        writes("collab/a.md", "# A", content=f"I give up. {MARKER}", action="pass", to="bob"),
    ],
    ids=["in-a-reply-without-decisions", "before-the-decisions", "in-a-reply-with-a-file"],
)
def test_the_end_marker_counts_wherever_it_stands_in_a_reply_and_the_reply_is_the_evidence(answers: Round) -> None:
    story = document()()
    settle_views(story)
    play(story, in_turn(worked("ann", *answers)), 1)
    (verdict,) = verdicts(story)
    assert verdict.guard == "end_marker"
    (shown,) = evidence(story, verdict)
    assert isinstance(shown, Answered) and isinstance(shown.answer, AgentReplied) and MARKER in shown.answer.text


# The file's door


def edited_round(story: Given, by: str, to: str) -> None:
    """Somebody accepts the document and passes it on, by changing header lines in its file."""
    for headers in ({"Status": "in_progress"}, {"Status": "pending", "Current_Owner": to, "Previous_Owner": by}):
        if over(story):
            return
        assert story.run is not None
        paper = story.run.state.paper
        for key, value in headers.items():
            paper = paper.with_header(key, value)
        story.tell(Ordered("edit", {"found": write(paper), "base": story.run.state.views[-1][0]}))
        settle_views(story)


@pytest.mark.req("S0-36", "S0-37", "S0-47")
def test_a_circle_of_edits_is_terminated_like_any_other() -> None:
    story = document(max_interactions=1000)()
    settle_views(story)
    for by, to in (("ann", "bob"), ("bob", "ann")) * 3:
        edited_round(story, by, to)
    assert [verdict.guard for verdict in verdicts(story)] == ["circle"]
    assert story.run is not None and story.run.state.count == 8


@pytest.mark.req("S0-32", "S0-33")
def test_an_edit_that_would_be_one_interaction_too_many_terminates() -> None:
    story = document(max_interactions=2)()
    settle_views(story)
    edited_round(story, "ann", "bob")
    edited_round(story, "bob", "ann")
    assert [verdict.guard for verdict in verdicts(story)] == ["interactions"]
    assert story.run is not None and story.run.state.paper.status == "terminated"
