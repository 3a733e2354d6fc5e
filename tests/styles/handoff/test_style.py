"""The hand-off style: given a document and what people and agents want with it, what becomes of it."""

import json
import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from ripstop.kernel.effects import AgentReplied, AskAgent, AskPerson, CallTool, Failed, PersonAnswered, ToolReturned
from ripstop.kernel.errors import RunHasEnded, UsageError
from ripstop.kernel.events import (
    FORMAT,
    Answered,
    Asked,
    CancelRequested,
    Event,
    Fact,
    GuardTripped,
    Heard,
    ResumeRequested,
    Started,
    Warned,
    Withdrawn,
)
from ripstop.kernel.style import arguments_for
from ripstop.styles.handoff.calls import PUBLISH, SEND, PublishedDocument
from ripstop.styles.handoff.definition import Policy
from ripstop.styles.handoff.document import HandoffDocument, read, write
from ripstop.styles.handoff.events import (
    AgentFailed,
    Assignment,
    EditAccepted,
    EditFound,
    EditRefused,
    MessageNoted,
    PublishRequested,
    TransitionMade,
    TransitionRefused,
    TransitionRequested,
    WorkRequested,
)
from ripstop.styles.handoff.message import HandoffMessage, read_message
from ripstop.styles.handoff.state import draft, sha
from ripstop.styles.handoff.style import HandoffStyle
from ripstop.testing import given
from ripstop.testing.scenarios import Given, ScenarioOutcome
from tests.styles.handoff.loops import settle_views

STYLE = HandoffStyle()


def published_as(**answer: Any) -> ToolReturned:
    """The answer of the tool that publishes, as the journal has it."""
    return ToolReturned(value=msgspec.to_builtins(PublishedDocument(file="f.md", **answer)))


DONE = published_as(done="written")


def paper(owner: str = "ann", **more: Any) -> HandoffDocument:
    return draft("calc", "boss", owner, "What is 2 + 2?", "2026-01-01 10:00:00", **more)


def document(text: str | None = None, **policy: Any) -> Given:
    """A document that was taken in, its file written."""
    return given(STYLE, Policy(**policy), started(text or write(paper())), DONE)


def started(text: str, **arguments: Any) -> Started:
    arguments = {"is_document": True, "file": "f.md", **arguments}
    return Started(style="handoff", definition="definition", format=FORMAT, input=text, arguments=arguments)


def request(action: str, by: str = "", **words: str) -> TransitionRequested:
    return TransitionRequested(action=action, by=by, **words)


def work(agent: str) -> WorkRequested:
    return WorkRequested(agent=agent, assignment=Assignment(f"You are {agent}.", team=("ann", "bob")))


def now(story: Given) -> HandoffDocument:
    assert story.run is not None
    found: HandoffDocument = story.run.state.document
    return found


def told(story: Given, *facts: Fact) -> ScenarioOutcome:
    """Each fact, and the file written after it, but for the last."""
    for one in facts[:-1]:
        story.tell(one)
        story.tell(DONE)
    return story.when(facts[-1])


def published(told: ScenarioOutcome) -> dict[str, Any]:
    """What the last command to write the file would write."""
    number = max(n for n, o in told.run.open.items() if isinstance(o.command, CallTool))
    return arguments_for(STYLE, told.run.open[number].state, told.run.open[number].command)  # type: ignore[arg-type]  # it is a CallTool


def guards(story: Given) -> list[GuardTripped]:
    return [record.event for record in story.records if isinstance(record.event, GuardTripped)]


# Transitions


@pytest.mark.req("S0-22", "S0-29", "S0-53", "S0-54", "S0-57")
def test_accepting_is_recorded_counted_and_published() -> None:
    result = told(document(), request("accept", "ann")).then(TransitionMade, Asked)
    after = read(published(result)["text"])
    assert (after.status, after.owner, after.count) == ("in_progress", "ann", 1)
    assert (after.history[-1].agent, after.history[-1].before, after.history[-1].after) == (
        "ann",
        "pending",
        "in_progress",
    )
    assert after.created == "2026-01-01 10:00:00"
    assert after.updated == after.history[-1].at != after.created


@pytest.mark.req("S0-24", "S0-30", "S0-55", "S0-56")
def test_a_hand_over_names_the_new_owner_and_what_comes_next() -> None:
    result = told(document(), request("accept"), request("pass", "ann", to="bob", next_action="Check it"))
    after = read(published(result)["text"])
    assert (after.status, after.owner, after.previous, after.next_action) == ("pending", "bob", "ann", "Check it")
    assert after.count == 2


@pytest.mark.parametrize("name", ["bob\x07", "bob\nann", "b\u200bob", "b" * 201])
def test_a_new_owner_must_have_a_name_that_can_be_shown(name: str) -> None:
    story = document()
    result = told(story, request("accept"), request("pass", "ann", to=name)).then(TransitionRefused)
    assert "name" in result.run.state.refusal.reason
    assert now(story).owner == "ann"


@pytest.mark.req("S0-23")
def test_completing_keeps_the_result_and_ends_the_run_once_the_file_is_written() -> None:
    story = document()
    result = told(story, request("accept"), request("complete", "ann", result="4"))
    assert result.run.ended is None
    assert now(story).section("Result") == "4"
    story.when(DONE).then_ends("completed", "ann completed it")


@pytest.mark.req("S0-25")
def test_anybody_may_terminate_what_is_not_finished() -> None:
    story = document()
    told(story, request("terminate", "boss", message="no longer needed"))
    story.when(DONE).then_ends("stopped", "no longer needed")
    assert now(story).status == "terminated"


@pytest.mark.req("S0-28")
def test_assigning_a_pending_document_does_not_count() -> None:
    story = document()
    told(story, request("assign", "boss", to="bob"))
    assert (now(story).owner, now(story).previous, now(story).status) == ("bob", "boss", "pending")
    assert now(story).count == 0


@pytest.mark.req("S0-26", "S0-3")
@pytest.mark.parametrize(
    ("before", "wanted"),
    [
        ((), request("complete", "ann")),
        ((), request("pass", "ann", to="bob")),
        ((request("accept"),), request("accept", "ann")),
        ((request("accept"),), request("assign", "boss", to="bob")),
        ((request("accept"),), request("complete", "bob")),
        ((request("accept"),), request("pass", "ann", to=" ")),
        ((), request("accept", "bob")),
        ((), request("dance", "ann")),
    ],
)
def test_an_illegal_transition_is_refused_and_changes_nothing(before: tuple[Fact, ...], wanted: Fact) -> None:
    story = document()
    if before:
        told(story, *before)
        story.tell(DONE)
    was = write(now(story))
    result = story.when(wanted).then(TransitionRefused)
    refused = result.decided[0]
    assert isinstance(refused, TransitionRefused) and refused.reason
    assert write(now(story)) == was


@pytest.mark.req("S0-26")
def test_a_refusal_names_what_would_be_legal() -> None:
    refused = told(document(), request("complete", "ann")).decided[0]
    assert isinstance(refused, TransitionRefused)
    assert "pending→completed" in refused.reason and "accept" in refused.reason


@pytest.mark.req("S0-25", "S0-50")
def test_completed_is_final_even_for_terminate() -> None:
    story = document()
    told(story, request("accept"), request("complete", "ann"))
    story.when(request("terminate", "boss")).then(TransitionRefused)
    story.tell(DONE)
    story.when(request("terminate", "boss")).then_refused(RunHasEnded)
    assert now(story).status == "completed"


# Guards


@pytest.mark.req("S0-32", "S0-33", "S0-35", "S0-47")
def test_ten_interactions_are_allowed_and_the_eleventh_terminates() -> None:
    story = document()
    steps: list[Fact] = []
    for turn in range(5):
        me, you = ("ann", "bob") if turn % 2 == 0 else ("bob", "ann")
        steps += [request("accept", me), request("pass", me, to=you, next_action=f"step {turn}")]
    told(story, *steps)
    story.tell(DONE)
    assert (now(story).status, now(story).count) == ("pending", 10)
    story.when(request("accept", "bob"))
    assert now(story).status == "terminated"
    assert [verdict.guard for verdict in guards(story)] == ["interactions"]
    story.when(DONE).then_ends("limit", "10 interactions")


@pytest.mark.req("S0-34")
def test_the_limit_can_be_set_and_raised_after_the_stop() -> None:
    story = document(max_interactions=1)
    told(story, request("accept"), request("complete", "ann"))
    story.tell(DONE)
    story.when(ResumeRequested()).then_refused(UsageError)
    story.when(ResumeRequested(raises={"interactions": 2}, by="boss"))
    story.tell(DONE)
    assert now(story).status == "in_progress"
    told(story, request("complete", "ann")).then(TransitionMade, Asked)
    assert now(story).status == "completed"


@pytest.mark.req("S0-36", "S0-37", "S0-38")
def test_the_same_owner_twice_without_progress_terminates() -> None:
    story = document()
    again = (request("accept", "ann"), request("pass", "ann", to="ann", next_action="think"))
    told(story, *again, *again)
    assert now(story).status == "terminated"
    assert guards(story)[0].guard == "no_progress"


@pytest.mark.req("S0-36")
def test_the_same_owner_twice_with_progress_goes_on() -> None:
    story = document()
    once = (request("accept", "ann"), request("pass", "ann", to="ann", next_action="first half"))
    twice = (request("accept", "ann"), request("pass", "ann", to="ann", next_action="second half"))
    told(story, *once, *twice)
    assert now(story).status == "pending" and not guards(story)


@pytest.mark.req("S0-36")
def test_accepting_and_completing_is_not_the_same_owner_twice() -> None:
    story = document()
    told(story, request("accept", "ann"), request("complete", "ann"))
    assert now(story).status == "completed" and not guards(story)


@pytest.mark.req("S0-45", "S0-46")
def test_the_end_marker_counts_wherever_it_stands_in_a_message() -> None:
    story = document()
    result = story.when(Heard(text="I think we are done [WORKFLOW_END] here", by="bob"))
    assert now(story).status == "terminated"
    assert guards(story)[0].guard == "end_marker"
    assert read(published(result)["text"]).status == "terminated"


ANSWER = "The answer is 4. [WORKFLOW_END]"


def by_pass(story: Given) -> None:
    story.tell(request("pass", "ann", to="bob", message=ANSWER))


def by_message(story: Given) -> None:
    story.tell(Heard(text=ANSWER, by="ann"))


def by_reply(story: Given) -> None:
    story.tell(work("ann"))
    story.tell(says("pass", "bob", content=ANSWER))


def by_reply_without_decisions(story: Given) -> None:
    story.tell(work("ann"))
    story.tell(AgentReplied(text=f"<think>2 + 2</think>{ANSWER}"))


def by_edit(story: Given) -> None:
    text = write(now(story).with_next_action(ANSWER)).replace("Status: in_progress", "Status: pending")
    story.tell(EditFound(text=text.replace("Owner: ann", "Owner: bob", 1), base=0))


@pytest.mark.req("S0-45", "S0-47")
@pytest.mark.parametrize("said", [by_pass, by_message, by_reply, by_reply_without_decisions, by_edit])
def test_words_said_with_the_end_marker_are_kept_and_reach_the_asker(said: Callable[[Given], None]) -> None:
    story = sent_in()
    said(story)
    assert now(story).status == "terminated" and guards(story)[-1].guard == "end_marker"
    assert now(story).section("Result") == "The answer is 4."
    assert "The answer is 4." in letter(story.when(DONE)).body


def test_words_said_with_the_end_marker_do_not_replace_an_earlier_result() -> None:
    story = document()
    told(story, request("accept", "ann"), request("pass", "ann", to="bob", result="half"), request("accept", "bob"))
    story.tell(DONE)
    story.tell(Heard(text=ANSWER, by="bob"))
    assert now(story).section("Result") == "half\n\nThe answer is 4."


@pytest.mark.parametrize("said", ["谢谢！", "答案是4 [WORKFLOW_END]"])
def test_a_guard_speaks_the_language_of_the_document(said: str) -> None:
    story = document(language="zh")
    story.tell(Heard(text=said, by="bob"))
    words = now(story).history[-1].action
    assert not re.search("[a-z]", words.replace("bob", "")), words


def test_no_progress_is_told_in_the_language_of_the_document() -> None:
    story = document(language="zh")
    again = (request("accept", "ann"), request("pass", "ann", to="ann", next_action="想一想"))
    told(story, *again, *again)
    assert "没有任何变化" in now(story).history[-1].action


@pytest.mark.req("S0-36", "S0-38")
def test_case_and_spaces_in_the_next_action_are_not_progress() -> None:
    story = document()
    for words in ("Think about it", "think  ABOUT it"):
        told(story, request("accept", "ann"), request("pass", "ann", to="ann", next_action=words))
        story.tell(DONE)
    assert guards(story)[0].guard == "no_progress"


@pytest.mark.req("S0-45")
def test_the_end_marker_in_the_document_itself_ends_nothing() -> None:
    text = write(paper(conditions=["a message says [WORKFLOW_END]"]))
    story = document(text)
    told(story, request("accept", "ann"))
    assert now(story).status == "in_progress"


@pytest.mark.req("S0-43", "S0-44")
def test_a_courtesy_on_an_active_document_terminates_it() -> None:
    story = document()
    story.when(Heard(text="谢谢！", by="bob"))
    assert now(story).status == "terminated" and guards(story)[0].guard == "courtesy"


@pytest.mark.req("S0-43")
def test_courtesy_can_be_ignored_instead() -> None:
    story = document(guards={"courtesy": "ignore"})
    story.when(Heard(text="Thanks!", by="bob")).then(MessageNoted)
    assert now(story).status == "pending" and not guards(story)


@pytest.mark.req("S0-43")
@pytest.mark.parametrize("policy", ["terminate", "ignore"])
def test_a_bare_acknowledgement_by_the_new_owner_is_no_answer(policy: str) -> None:
    story = document(guards={"courtesy": policy})
    story.when(Heard(text="收到", by="ann")).then(MessageNoted)
    assert now(story).status == "pending"


@pytest.mark.req("S0-43")
def test_a_message_of_work_changes_nothing_and_is_kept() -> None:
    story = document()
    was = write(now(story))
    story.when(Heard(text="Thanks, the bug is fixed and all tests pass.", by="bob")).then(MessageNoted)
    assert write(now(story)) == was


# Foreign documents


@pytest.mark.req("S0-31", "S0-26")
def test_a_foreign_illegal_history_is_taken_in_and_flagged() -> None:
    text = write(paper()).replace(
        "- 2026-01-01 10:00:00 boss created pending→pending\n",
        "- 2026-01-01 10:00:00 boss finished pending→completed\n",
    )
    story = given(STYLE, Policy(), started(text))
    warnings = [record.event.text for record in story.records if isinstance(record.event, Warned)]
    assert any("pending→completed" in warning for warning in warnings)
    assert write(now(story)) == text


# Edits


def edited(story: Given, text: str) -> ScenarioOutcome:
    return story.when(EditFound(text=text, base=2))


def test_an_edit_of_the_status_becomes_the_transition_it_means() -> None:
    story = document()
    text = write(now(story)).replace("Status: pending", "Status: in_progress")
    result = edited(story, text).then(EditAccepted, TransitionMade, Asked, Withdrawn, Asked)
    moved = result.decided[1]
    assert isinstance(moved, TransitionMade)
    assert (moved.action, moved.by, moved.before, moved.after) == ("accept", "ann", "pending", "in_progress")
    after = read(published(result)["text"])
    assert (after.status, after.count, len(after.history)) == ("in_progress", 1, 3)
    assert published(result)["over"] == sha(text) and not published(result)["keep"]


def test_an_edit_that_two_processes_report_has_one_verdict() -> None:
    story = document()
    text = write(now(story)).replace("Status: pending", "Status: in_progress")
    edited(story, text)
    edited(story, text).then()
    story.tell(DONE)
    edited(story, text).then()
    assert now(story).status == "in_progress" and now(story).count == 1


def test_a_refused_edit_that_two_processes_report_is_refused_once() -> None:
    story = document()
    text = write(now(story)).replace("Status: pending", "Status: completed")
    edited(story, text).then(EditRefused, Asked)
    edited(story, text).then()
    result = story.when(EditFound(text=text, base=9))
    assert any(isinstance(event, EditRefused) for event in result.decided), "the same text saved again is another edit"


def test_an_edit_with_wrong_engine_headers_is_taken_over_with_notes() -> None:
    story = document()
    text = write(now(story)).replace("Status: pending", "Status: in_progress")
    text = text.replace("Interaction_Count: 0", "Interaction_Count: 7").replace(
        "2026-01-01 10:00:00\nUp", "2020-01-01 10:00:00\nUp"
    )
    result = edited(story, text)
    edit = result.decided[0]
    assert isinstance(edit, EditAccepted) and len(edit.notes) == 2
    after = read(published(result)["text"])
    assert (after.status, after.count, after.created) == ("in_progress", 1, "2026-01-01 10:00:00")


def test_a_history_line_appended_to_the_file_moves_into_the_history() -> None:
    story = document()
    result = edited(story, write(now(story)) + "- 2026-01-02 10:00:00 ann took it pending→in_progress\n")
    text = published(result)["text"]
    assert read(text).status == "in_progress" and text.index("ann took it") < text.index("## Next_Action")


@pytest.mark.req("S0-26")
def test_a_senders_illegal_history_completes_a_known_document_and_is_flagged() -> None:
    story = document()
    line = "- 2026-01-02 10:00:00 ann answered 4 pending→completed\n"
    text = write(now(story)).replace("Status: pending", "Status: completed").replace("## Next", f"{line}\n## Next")
    result = story.when(EditFound(text=text, base=2, sender="ann"))
    edit = result.decided[0]
    assert isinstance(edit, EditAccepted) and any("pending→completed" in note for note in edit.notes)
    assert (now(story).status, now(story).history[-1].raw) == ("completed", line.rstrip())


def test_an_illegal_edit_is_refused_with_its_line_and_kept() -> None:
    story = document()
    was = write(now(story))
    result = edited(story, was.replace("Status: pending", "Status: completed")).then(EditRefused, Asked)
    refused = result.decided[0]
    assert isinstance(refused, EditRefused)
    assert refused.line == 2 and "pending→completed is not legal" in refused.reason
    order_ = published(result)
    assert order_["text"] == was and order_["keep"]


def test_an_earlier_text_saved_again_is_refused_and_kept() -> None:
    story = document()
    before = write(now(story))
    told(story, request("accept", "ann"), request("pass", "ann", to="bob", next_action="Check it"))
    story.tell(DONE)
    done = edited(story, before)
    refused = next(event for event in done.events if isinstance(event, EditRefused))
    assert "with nothing new in it" in refused.reason
    wanted = published(done)
    assert (wanted["over"], wanted["text"]) == (sha(before), write(now(story)))
    assert wanted["keep"] and now(story).owner == "bob"


def test_an_edit_that_was_found_after_a_kill_is_told() -> None:
    story = document()
    story.tell(request("accept", "ann"))
    done = story.when(published_as(done="written", kept="f.md.refused-interrupted"))
    assert ["f.md.refused-interrupted" in event.text for event in done.events if isinstance(event, Warned)] == [True]


def test_a_hand_over_by_edit_keeps_what_was_written_as_the_next_action() -> None:
    story = document()
    told(story, request("accept", "ann"))
    story.tell(DONE)
    text = write(now(story).with_next_action("Test add(2, 2)"))
    text = text.replace("Status: in_progress", "Status: pending").replace("Owner: ann", "Owner: bob", 1)
    result = story.when(EditFound(text=text, base=0))
    after = read(published(result)["text"])
    assert (after.owner, after.status, after.next_action) == ("bob", "pending", "Test add(2, 2)")


@pytest.mark.req("S0-45")
def test_a_hand_over_by_edit_with_the_end_marker_terminates() -> None:
    story = document()
    told(story, request("accept", "ann"))
    story.tell(DONE)
    text = write(now(story).with_next_action("enough [WORKFLOW_END]"))
    text = text.replace("Status: in_progress", "Status: pending").replace("Owner: ann", "Owner: bob", 1)
    story.tell(EditFound(text=text, base=0))
    assert now(story).status == "terminated" and guards(story)[0].guard == "end_marker"


def test_an_edit_that_is_found_while_the_file_is_written_is_read_back_too() -> None:
    story = document()
    text = write(now(story)).replace("Status: pending", "Status: in_progress")
    story.tell(request("assign", "boss", to="ann"))
    found = published_as(done="edited", found=text, base=2)
    result = story.when(found)
    assert any(isinstance(event, (EditAccepted, EditRefused)) for event in result.decided)


# Agents


# Replies


def sent_in(**more: Any) -> Given:
    """A document that came in by a message of boss, accepted, its file written."""
    story = given(STYLE, Policy(), started(write(paper(**more)), reply_to="boss"), DONE)
    story.tell(request("accept", "ann"))
    story.tell(DONE)
    return story


def letter(told: ScenarioOutcome) -> HandoffMessage:
    (number,) = told.run.open
    command = told.run.open[number].command
    assert isinstance(command, CallTool)
    return read_message(arguments_for(STYLE, told.run.open[number].state, command)["text"])


def test_whoever_sent_a_document_in_is_told_its_result_before_the_run_ends() -> None:
    story = sent_in()
    story.tell(request("complete", "ann", result="It is 4."))
    told = story.when(DONE).then_asks(CallTool(tool=SEND))
    sent = letter(told)
    assert (sent.sender, sent.to, sent.type, sent.title) == ("ann", "boss", "workflow_reply", "calc")
    assert sent.body == "calc is completed.\n\nIt is 4."
    story.when(ToolReturned(value={"to": "boss"})).then_ends("completed")


def test_whoever_sent_a_document_in_is_told_why_it_was_terminated() -> None:
    story = sent_in()
    story.tell(request("terminate", "eve", message="nobody needs it"))
    assert letter(story.when(DONE)).body == "calc is terminated.\n\neve terminated it: nobody needs it"


def test_a_reply_that_cannot_be_sent_is_told_and_keeps_nobody_waiting() -> None:
    story = sent_in()
    story.tell(request("complete", "ann"))
    story.tell(DONE)
    told = story.when(Failed(reason="no such inbox"))
    assert ["no such inbox" in event.text for event in told.events if isinstance(event, Warned)] == [True]
    told.then_ends("completed")


def test_a_reply_that_nobody_sends_is_asked_for_anew_with_the_file() -> None:
    story = sent_in()
    story.tell(request("complete", "ann"))
    first = letter(story.when(DONE))
    story.tell(PublishRequested())
    assert len(story.when(DONE).then_asks(CallTool(tool=SEND)).run.open) == 1
    story.when(ToolReturned(value={"to": "boss"})).then_ends("completed")
    assert first.title == "calc"


def test_a_document_that_nobody_sent_in_is_answered_to_nobody() -> None:
    story = document()
    told(story, request("accept", "ann"), request("complete", "ann"))
    story.when(DONE).then_asks().then_ends("completed")


def says(action: str = "complete", to: str = "", content: str = "done", **more: Any) -> AgentReplied:
    return AgentReplied(text=json.dumps({"content": content, "decisions": {"action": action, "to": to, **more}}))


def at_work(story: Given, agent: str = "ann") -> ScenarioOutcome:
    result = story.when(work(agent))
    story.tell(DONE)
    return result


@pytest.mark.req("S0-52")
def test_an_agent_that_is_to_work_accepts_first() -> None:
    story = document()
    at_work(story).then_asks(CallTool, AskAgent)
    assert now(story).status == "in_progress"
    asked = next(o for o in story.run.open.values() if isinstance(o.command, AskAgent))  # type: ignore[union-attr]  # it was started
    prompt = STYLE.render(asked.state, asked.command)  # type: ignore[arg-type]  # it is an AskAgent
    assert "You are ann." in prompt.messages[0].text and prompt.text == write(now(story))


@pytest.mark.parametrize("recorded", [False, True])
def test_a_file_that_is_still_missing_is_a_failure_of_the_agent_unless_it_is_recorded(recorded: bool) -> None:
    story = document()
    at_work(story)
    text = "collab/a.md\n```\nA\n```\n" + says("complete", result="4").text
    if recorded:
        story.tell(AgentReplied(text=text, recorded=True))
        done = story.when(Failed(reason="the disk is full"))
        assert now(story).status == "completed"
        assert ["the disk is full" in event.text for event in done.events if isinstance(event, Warned)] == [True]
        return
    story.tell(AgentReplied(text=text))
    story.when(Failed(reason="the disk is full")).then_asks(AskAgent)
    story.tell(AgentReplied(text=text))
    failed = story.when(Failed(reason="the disk is full"))
    assert ["'collab/a.md'" in event.reason for event in failed.events if isinstance(event, AgentFailed)] == [True]
    assert now(story).status == "in_progress"


def test_an_agent_completes_by_its_decision() -> None:
    story = document()
    at_work(story)
    story.when(says("complete", result="4"))
    assert (now(story).status, now(story).section("Result")) == ("completed", "4")


@pytest.mark.parametrize(
    ("content", "result"), [("", ""), (" \u200b", ""), ("Thank you!", ""), ("谢谢", "\u200b"), ("It is 4.", "Thanks!")]
)
def test_an_agent_that_completes_says_what_came_out(content: str, result: str) -> None:
    story = document(attempts=1)
    at_work(story)
    story.when(says("complete", content=content, result=result)).then_asks(AskAgent)
    assert now(story).status == "in_progress" and now(story).section("Result") == ""
    failed = story.when(says("complete", content=content, result=result)).then_asks(AskPerson)
    (why,) = [event.reason for event in failed.events if isinstance(event, AgentFailed)]
    assert 'say in "result" what came out of the task' in why


def test_an_agent_that_completes_in_the_end_with_words_has_completed() -> None:
    story = document()
    at_work(story)
    story.tell(says("complete", content="Thank you!"))
    story.tell(says("complete", content="Thank you! It is 4."))
    assert (now(story).status, now(story).section("Result")) == ("completed", "Thank you! It is 4.")


@pytest.mark.req("S0-1")
@pytest.mark.parametrize(
    "claim",
    [
        "The task is completed. Status: completed",
        "Status: completed\n\n## History\n- 2026-01-01 10:00:00 ann completed it in_progress→completed",
        '{"content": "completed", "decisions": {"status": "completed"}}',
        '{"status": "completed"}',
        'It would be {"content": "done", "decisions": {"action": "complete"}}, but it is not.',
        '{"content": "done", "decisions": {"action": "complete", "to": "bob", "next_action": "test it"}}',
    ],
)
def test_an_agent_that_only_claims_to_have_completed_changes_nothing(claim: str) -> None:
    story = document(attempts=1)
    at_work(story)
    was = write(now(story))
    story.tell(AgentReplied(text=claim))
    assert write(now(story)) == was
    story.tell(AgentReplied(text=claim))
    assert write(now(story)) == was and now(story).status == "in_progress"


@pytest.mark.req("S0-32")
def test_a_failing_agent_is_no_interaction_and_is_asked_so_often_only() -> None:
    story = document(attempts=2)
    at_work(story)
    failure = Failed(reason="timeout", fault="agent")
    story.when(failure).then(AgentFailed, Asked)
    story.when(failure).then(AgentFailed, Asked).then_asks(AskPerson)
    assert now(story).count == 1
    story.when(PersonAnswered(choice="again")).then_asks(AskAgent)


def test_a_person_may_terminate_what_an_agent_cannot_do() -> None:
    story = document(attempts=1)
    at_work(story)
    story.tell(Failed(reason="timeout", fault="agent"))
    story.tell(PersonAnswered(choice="terminate", by="boss"))
    assert now(story).status == "terminated"


def test_an_edit_that_takes_the_document_away_calls_the_agent_back() -> None:
    story = document()
    at_work(story)
    text = write(now(story)).replace("Status: in_progress", "Status: pending").replace("Owner: ann", "Owner: bob", 1)
    result = story.when(EditFound(text=text, base=0))
    assert any(isinstance(event, Withdrawn) for event in result.decided)
    assert not any(isinstance(o.command, AskAgent) for o in result.run.open.values())
    assert (now(story).owner, now(story).status) == ("bob", "pending")


def test_an_agent_whose_document_was_edited_meanwhile_is_shown_it_and_asked_again() -> None:
    story = document()
    at_work(story)
    text = write(now(story)).replace("What is 2 + 2?", "What is 3 + 3?")
    story.when(EditFound(text=text, base=0)).then(EditAccepted, Asked)
    story.tell(DONE)
    story.when(says("complete", result="4")).then_asks(AskAgent)
    asked = next(o for o in story.run.open.values() if isinstance(o.command, AskAgent))  # type: ignore[union-attr]  # it was started
    prompt = STYLE.render(asked.state, asked.command)  # type: ignore[arg-type]  # it is an AskAgent
    assert "What is 3 + 3?" in prompt.text
    story.when(says("complete", result="6"))
    assert (now(story).status, now(story).section("Result"), now(story).task) == ("completed", "6", "What is 3 + 3?")


def test_a_file_that_cannot_be_written_becomes_a_question() -> None:
    story = document()
    story.tell(request("accept", "ann"))
    story.when(Failed(reason="the disk is full")).then_asks(AskPerson)
    story.when(PersonAnswered(choice="retry")).then_asks(CallTool(tool=PUBLISH))


def test_the_question_why_a_file_cannot_be_written_goes_when_it_can() -> None:
    story = document()
    story.tell(request("accept", "ann"))
    story.tell(Failed(reason="the disk is full"))
    story.tell(PublishRequested())
    result = story.when(DONE)
    assert not result.run.open


def test_why_a_file_cannot_be_written_is_asked_once() -> None:
    story = document()
    story.tell(request("accept", "ann"))
    result = story.when(Failed(reason="the disk is full")).then_asks(AskPerson)
    asked = list(result.run.open)
    again = story.when(PublishRequested())
    answered = story.when(Answered(to=max(again.run.open), answer=Failed(reason="the disk is full")))
    assert list(answered.run.open) == asked


def test_a_question_about_an_agent_goes_when_the_document_moves_on() -> None:
    story = document(attempts=1)
    at_work(story)
    story.tell(Failed(reason="timeout", fault="agent"))
    story.tell(request("pass", "ann", to="bob", next_action="You try"))
    result = story.when(DONE)
    assert not result.run.open and now(story).owner == "bob"


def test_cancelling_terminates_the_document_before_the_run_ends() -> None:
    story = document()
    result = story.when(CancelRequested(by="boss"))
    assert result.run.ended is None
    assert read(published(result)["text"]).status == "terminated"
    story.when(DONE).then_ends("stopped", "cancelled by boss")


def test_what_a_person_lets_go_on_is_done_as_it_was_ordered() -> None:
    story = document(guards={"then": "ask"})
    told(story, request("accept", "ann"))
    story.tell(DONE)
    story.when(request("pass", "ann", to="bob", message="Thanks!")).then_asks(AskPerson)
    assert now(story).owner == "ann"
    story.when(PersonAnswered(choice="continue"))
    assert (now(story).owner, now(story).status) == ("bob", "pending")


def test_only_the_newest_view_is_written() -> None:
    story = document()
    story.tell(request("accept", "ann"))
    result = story.when(request("pass", "ann", to="bob"))
    open_: list[Event] = [event for event in result.decided if isinstance(event, Withdrawn)]
    assert len(open_) == 1
    assert sum(isinstance(o.command, CallTool) for o in result.run.open.values()) == 1


def test_a_document_that_is_too_long_for_a_model_is_shortened_for_it() -> None:
    text = write(draft("d", "zoe", "ann", "x" * 90_000, "2026-01-01 00:00:00", "Read the task."))
    story = given(
        STYLE, Policy(), Started("handoff", "definition", FORMAT, text, {"is_document": True, "file": "d.md"})
    )
    settle_views(story)
    story.tell(WorkRequested("ann", Assignment("Do your best.")))

    def prompt() -> str:
        assert story.run is not None
        opened = story.run.open[story.opened(AskAgent)]
        assert isinstance(opened.command, AskAgent)
        return "\n".join(one.text for one in STYLE.render(opened.state, opened.command).messages)

    before = prompt()
    refused = Failed(reason="too long", fault="agent", too_long=len(before) // 3)
    story.tell(Answered(to=story.opened(AskAgent), answer=refused))
    assert len(prompt()) < len(before) / 2 and "Do your best." in prompt() and "left out here" in prompt()
