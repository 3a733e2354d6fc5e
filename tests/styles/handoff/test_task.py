"""A run that begins with a task instead of a document, as another workflow starts it: who works, and what comes out."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given as for_all
from hypothesis import strategies

from ripstop.kernel.codec import Codec
from ripstop.kernel.effects import AgentReplied, AskAgent, AskPerson, CallTool, Failed, PersonAnswered, ToolReturned
from ripstop.kernel.errors import UsageError
from ripstop.kernel.events import FORMAT, CancelRequested, Record, Redefined, Started
from ripstop.kernel.folding import replay
from ripstop.kernel.questions import name_problem
from ripstop.kernel.run import Contents
from ripstop.kernel.style import Sample
from ripstop.styles.handoff.calls import PUBLISH
from ripstop.styles.handoff.definition import Policy, Role
from ripstop.styles.handoff.document import oddities, read, write
from ripstop.styles.handoff.events import DocumentDrafted, TransitionMade, TransitionRequested
from ripstop.styles.handoff.kit import KIT
from ripstop.styles.handoff.state import FAILED
from ripstop.styles.handoff.style import HandoffStyle
from ripstop.testing.scenarios import Given, given

STYLE = HandoffStyle()
DONE = ToolReturned(value={"file": "f.md", "done": "written"})
TEAM = Policy(roles=(Role("ann", "You are ann.", "script:ann.jsonl"), Role("bob", "You are bob.")))


def says(action: str, to: str = "", **more: str) -> AgentReplied:
    return AgentReplied(text=json.dumps({"content": "done", "decisions": {"action": action, "to": to, **more}}))


def child(policy: Policy = TEAM, task: str = "Write add(a, b)\nand test it", run: str = "flow-k3f9x.12") -> Given:
    """A run that a command of another run has started with nothing but a task."""
    story = Given(STYLE, {"definition": policy}, run)
    story.tell(Started("handoff", "definition", FORMAT, task, parent=("flow-k3f9x", 12), depth=1))
    return story


def result_of(story: Given) -> dict[str, Any]:
    assert story.run is not None and story.run.ended is not None
    found: dict[str, Any] = story.contents.results[story.run.ended.result]
    return found


def test_a_task_becomes_a_document_with_an_id_a_file_and_a_time_of_its_own() -> None:
    story = child()
    assert story.run is not None
    paper = story.run.state.document
    assert paper.id == "Write-add-a-b_flow-k3f9x.12"
    assert story.run.state.file == f"workflow_{paper.id}.md"
    assert (paper.task, paper.previous, paper.created) == (
        "Write add(a, b)\nand test it",
        "flow-k3f9x",
        "1970-01-01 00:00:01",
    )
    assert oddities(paper) == ()


def test_two_tasks_that_are_the_same_become_two_documents() -> None:
    ids = {child(run=run).run.state.document.id for run in ("a.1", "a.2", "a" * 90, "a" * 91, "a/b", "a-b")}  # type: ignore[union-attr]  # they were started
    assert len(ids) == 6


def test_the_first_role_of_the_folder_works_without_being_asked_to() -> None:
    story = child()
    assert story.run is not None
    asked = [opened.command for opened in story.run.open.values()]
    assert asked == [CallTool(tool=PUBLISH), AskAgent("ann", "coder", "script:ann.jsonl", (1,))]
    (number,) = (n for n, opened in story.run.open.items() if isinstance(opened.command, AskAgent))
    prompt = STYLE.render(story.run.open[number].state, story.run.open[number].command)  # type: ignore[arg-type]  # it is an AskAgent
    assert "You are ann." in prompt.messages[0].text and "bob" in prompt.messages[0].text


def test_a_role_that_gets_the_document_takes_over_and_says_nothing_in_its_name() -> None:
    story = child()
    story.tell(DONE)
    story.when(says("pass", "bob", next_action="Check it", result="half")).then_asks(CallTool, CallTool, AskAgent)
    accepted = [record.event for record in story.records if isinstance(record.event, TransitionMade)][-1]
    assert (accepted.action, accepted.by, accepted.words) == ("accept", "bob", "accepted it")
    assert story.run is not None and story.run.state.document.next_action == "Check it"


def test_whoever_waits_for_the_document_gets_what_came_out_of_it() -> None:
    story = child()
    for answer in (DONE, says("pass", "bob"), DONE, says("complete", result="def add"), DONE):
        story.tell(answer)
    result = result_of(story)
    assert (result["status"], result["owner"], result["result"], result["interactions"]) == (
        "completed",
        "bob",
        "def add",
        4,
    )
    assert story.run is not None
    assert (result["title"], result["path"]) == (story.run.state.document.id, f".workflows/{story.run.state.file}")


def test_a_document_that_is_cancelled_or_stopped_has_a_result_too() -> None:
    cancelled = child()
    cancelled.tell(DONE)
    cancelled.tell(CancelRequested(by="flow-k3f9x/12"))
    cancelled.tell(DONE)
    assert result_of(cancelled)["status"] == "terminated"
    stopped = child(Policy(max_interactions=1, roles=TEAM.roles))
    for answer in (DONE, says("complete", result="x"), DONE):
        stopped.tell(answer)
    assert stopped.run is not None and stopped.run.ended is not None and stopped.run.ended.outcome == "limit"
    assert result_of(stopped)["status"] == "terminated"


def test_a_document_that_people_hand_to_a_role_is_worked_on_at_once() -> None:
    story = given(STYLE, TEAM, input="Ask around", arguments={"owner": "eve"})
    assert story.run is not None and [*map(type, (o.command for o in story.run.open.values()))] == [CallTool, AskPerson]
    story.tell(DONE)
    story.when(TransitionRequested("assign", "eve", "bob")).then_asks(CallTool, CallTool, AskAgent)


def test_a_role_that_fails_too_often_becomes_a_question_and_nobody_is_asked_meanwhile() -> None:
    story = child(Policy(attempts=1, roles=TEAM.roles))
    story.tell(DONE)
    outcome = story.when(Failed(reason="timeout")).then_asks(AskPerson)
    (question,) = outcome.commands
    assert isinstance(question, AskPerson)
    assert (question.purpose, list(question.choices), question.about) == (FAILED, ["again", "terminate"], (8,))
    story.when(PersonAnswered(choice="again")).then_asks(AskAgent)


def test_a_new_definition_changes_how_its_roles_are_told_to_work() -> None:
    story = child()
    story.contents.definitions["other"] = Policy(roles=(Role("ann", "You are another ann."), Role("bob")))
    story.tell(DONE)
    story.tell(Redefined("other"))
    story.when(Failed(reason="timeout")).then_asks(AskAgent("ann", "coder", "", (1,)))


@pytest.mark.parametrize(
    ("policy", "task", "said"), [(TEAM, " \n", "needs a task"), (Policy(), "Do it", "has no owner")]
)
def test_a_task_that_nobody_could_work_on_ends_the_run_and_says_why(policy: Policy, task: str, said: str) -> None:
    story = child(policy, task)
    assert story.run is not None and story.run.ended is not None
    assert story.run.ended.outcome == "failed" and said in story.run.ended.because


def test_arguments_that_are_not_known_are_refused_before_anything_is_recorded() -> None:
    story = Given(STYLE, {"definition": TEAM})
    start = Started("handoff", "definition", FORMAT, "x", {"ownr": "ann"})
    story.when(start).then_refused(UsageError)
    assert story.records == []


@for_all(strategies.text(max_size=300), strategies.text(max_size=60), strategies.text(max_size=60))
def test_any_task_makes_a_document_that_reads_back(task: str, title: str, owner: str) -> None:
    story = given(STYLE, TEAM, input=task, arguments={"title": title, "owner": owner})
    assert story.run is not None
    drafted = [record.event for record in story.records if isinstance(record.event, DocumentDrafted)]
    assert bool(drafted) == (bool(task.strip()) and not name_problem(owner.strip()))
    if drafted:
        assert read(write(story.run.state.document)).id == drafted[0].id
        assert "/" not in drafted[0].file and len(drafted[0].file.encode()) < 220


@pytest.mark.parametrize("sample", KIT.samples() if KIT.samples else (), ids=lambda sample: sample.name)
def test_a_sample_ends_and_folds_to_the_same_state_from_its_bytes(sample: Sample) -> None:
    story = given(STYLE, sample.definition, *sample.answers, input=sample.input, arguments=sample.arguments)
    assert story.run is not None and story.run.ended is not None
    codec = Codec(KIT.events)
    records = [Record(r.number, r.at, codec.load(codec.dump(r.event))) for r in story.records]
    content = msgspec.json.encode(sample.definition)
    definitions = {"definition": msgspec.json.decode(content, type=Policy)}
    again = replay(STYLE, Contents(definitions, story.contents.results), "story", records)
    assert again == story.run
