"""Loops of documents are terminated in time and with evidence; work that only looks like one goes on to its end."""

import pytest

from ripstop.kernel.effects import AgentReplied, Answer, AskAgent, AskPerson, Failed, Limits, PersonAnswered
from ripstop.kernel.errors import RunHasEnded
from ripstop.kernel.events import Answered, Heard
from ripstop.styles.handoff.document import write
from ripstop.styles.handoff.events import AgentFailed, EditFound, MessageNoted, TransitionRequested
from ripstop.styles.handoff.state import asked_of
from ripstop.testing import Given
from tests.styles.handoff.loops import (
    COMPLETES,
    HANDOFF_LOOPS,
    NEXT,
    Handling,
    completed,
    delivers,
    document,
    handled,
    passes,
    round_of,
    settle_views,
    worked,
)
from tests.styles.loops import (
    COURTESIES,
    MARKER,
    Healthy,
    Loop,
    Round,
    completes,
    evidence,
    in_turn,
    over,
    play,
    says,
    stopped,
    until,
    verdicts,
    writes,
)


@pytest.mark.req("S0-32", "S0-33", "S0-34", "S0-36", "S0-37", "S0-38", "S0-43", "S0-44", "S0-45", "S0-46", "S0-47")
@pytest.mark.parametrize("loop", HANDOFF_LOOPS, ids=lambda loop: loop.id)
def test_a_document_that_goes_round_is_terminated(loop: Loop) -> None:
    story, verdict = stopped(loop, settle_views)
    evidence(story, verdict)
    assert story.run is not None
    paper = story.run.state.document
    assert (paper.status, story.run.state.count) == ("terminated", loop.interactions)
    assert paper.history[-1].after == "terminated"
    assert verdict.progress == 0, "a document has one file, so it cannot be forked"


# Healthy documents

# fmt: off
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
            in_turn((TransitionRequested("accept", "ann", message="收到"), *completed("ann")[1:])), 1),
    Healthy("completed-with-a-courtesy", document(),
            in_turn((TransitionRequested("accept", "ann"), TransitionRequested("complete", "ann", message="Thanks!"))),
            1),
    Healthy("courtesy-beside-a-real-next-action", document(),
            in_turn(handled("ann", "bob", "Thanks!", "Fix the title."), completed("bob")), 2),
    Healthy("courtesy-is-ignored", document(guards={"courtesy": "ignore"}),
            in_turn((TransitionRequested("accept", "ann"), Heard("Thanks!", "bob"), *handled("ann", "bob", "OK")[1:],
                     *completed("ann")[1:])), 1),
    Healthy("messages-that-change-nothing", document(), in_turn(
        (*(Heard(f"How far are you? ({n})", "zoe") for n in range(30)), *completed("ann"))), 1),
    Healthy("agent-that-fails-twice", document(),
            in_turn(worked("ann", Failed(reason="timeout"), Failed(reason="timeout"), COMPLETES)), 1),
    Healthy("agent-that-is-corrected", document(),
            in_turn(worked("ann", AgentReplied(text="It is completed."), COMPLETES)), 1),
    Healthy("refused-orders-between-work", document(), in_turn(
        (TransitionRequested("complete", "ann"), TransitionRequested("accept", "bob"), *completed("ann"))), 1),
    Healthy("assigned-three-times", document(), in_turn(
        (*(TransitionRequested("assign", "zoe", to, "Yours.") for to in ("bob", "cyd", "bob")),
         *completed("bob"))), 1),
    Healthy("within-all-its-limits", document(Limits(calls=2, turns=2, tokens=10_000)),
            in_turn(worked("ann", passes("bob")), worked("bob", COMPLETES)), 2),
]
# fmt: on


@pytest.mark.req("S0-32", "S0-36", "S0-38", "S0-43")
@pytest.mark.parametrize("healthy", HEALTHY_DOCUMENTS, ids=lambda healthy: healthy.id)
def test_a_document_that_gets_on_is_left_alone(healthy: Healthy) -> None:
    run = completes(healthy, settle_views).run
    assert run is not None and run.state.document.status == "completed"


# Agents that never come to an end


def asks_a_person(story: Given, *answers: Answer) -> AskPerson:
    """What a person is asked after ann has worked and answered so."""
    play(story, in_turn(worked("ann", *answers)), 1, settle_views)
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
    story.tell(TransitionRequested("accept", "ann"))
    assert story.run is not None
    before = write(story.run.state.document)
    question = asks_a_person(story, *(reply,) * 6)
    assert "ann has failed 3 times" in question.question
    assert write(story.run.state.document) == before
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
    play(story, in_turn(worked("ann", *answers)), 1, settle_views)
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
        paper = story.run.state.document
        for key, value in headers.items():
            paper = paper.with_header(key, value)
        story.tell(EditFound(write(paper), story.run.state.views[-1][0]))
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
    assert story.run is not None and story.run.state.document.status == "terminated"
