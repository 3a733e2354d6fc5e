"""What a person may do with a document, and what any face shows of it."""

from typing import Any

import pytest

from ripstop.kernel.effects import ToolReturned
from ripstop.kernel.errors import UsageError
from ripstop.kernel.events import Heard, ResumeRequested
from ripstop.kernel.parts import Facts, Ledger, Paper
from ripstop.kernel.run import Run
from ripstop.styles.handoff.definition import Policy
from ripstop.styles.handoff.document import write
from ripstop.styles.handoff.events import EditFound, TransitionMade, TransitionRefused, TransitionRequested
from ripstop.styles.handoff.state import RULES, HandoffState
from ripstop.styles.handoff.style import HandoffStyle
from ripstop.styles.handoff.transitions import TRANSITIONS
from ripstop.testing.scenarios import Given, given

STYLE = HandoffStyle()
DONE = ToolReturned(value={"file": "f.md", "done": "written"})


def document(**policy: Any) -> Given:
    return given(STYLE, Policy(**policy), DONE, input="What is 2 + 2?", arguments={"owner": "ann", "creator": "boss"})


def run_of(story: Given) -> Run[HandoffState]:
    assert story.run is not None
    return story.run


def names(story: Given) -> list[str]:
    return [action.name for action in STYLE.people.actions(run_of(story))]


def act(story: Given, name: str, by: str = "ann", **fields: Any) -> Any:
    """What came of an action; its file is written, if it is to be."""
    outcome = story.when(STYLE.people.act(run_of(story), name, fields, by))
    if run_of(story).open:
        story.tell(DONE)
    return outcome


def test_the_actions_are_the_transitions_that_are_legal_now() -> None:
    story = document()
    assert names(story) == ["assign", "accept", "terminate"]
    act(story, "accept")
    assert names(story) == ["pass", "complete", "terminate"]
    act(story, "complete", result="4")
    assert names(story) == []


def test_an_action_names_the_owner_if_nobody_else_may_do_it() -> None:
    story = document()
    assert {action.name: action.by for action in STYLE.people.actions(run_of(story))} == {
        "assign": "",
        "accept": "ann",
        "terminate": "",
    }
    act(story, "accept")
    act(story, "pass", to="bob")
    [accept] = [action for action in STYLE.people.actions(run_of(story)) if action.name == "accept"]
    assert accept.by == "bob"


def test_every_rule_has_an_action_whose_fields_its_fact_has() -> None:
    assert [*TRANSITIONS] == [*RULES]
    for action in TRANSITIONS.values():
        assert {*action.fields} <= {*TransitionRequested.__struct_fields__}


@pytest.mark.parametrize(
    ("name", "by", "said"),
    [("complete", "ann", "is not legal; from pending one may: assign, accept, terminate"), ("accept", "eve", "'ann'")],
)
def test_an_action_that_is_not_legal_now_is_refused(name: str, by: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        STYLE.people.act(run_of(document()), name, {}, by)


def test_an_action_that_was_legal_a_moment_ago_is_refused_and_recorded() -> None:
    story = document()
    fact = STYLE.people.act(run_of(story), "accept", {}, "ann")
    act(story, "accept")
    assert isinstance(story.when(fact).decided[0], TransitionRefused)


@pytest.mark.parametrize(
    ("name", "fields", "said"),
    [
        ("dance", {}, "assign, accept, pass, complete, terminate, reopen"),
        ("accept", {"to": "bob"}, "no field 'to'"),
        ("pass", {"to": 7}, "must be a text"),
        ("reopen", {}, "cannot be reopened"),
    ],
)
def test_an_action_that_is_not_one_says_what_is_wrong(name: str, fields: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        STYLE.people.act(run_of(document()), name, fields, "ann")


def test_a_document_that_a_guard_terminated_can_be_reopened() -> None:
    story = document(max_interactions=1)
    act(story, "accept")
    act(story, "complete")
    (action,) = STYLE.people.actions(run_of(story))
    assert action.name == "reopen" and action.fields["raise"].required
    fact = STYLE.people.act(run_of(story), "reopen", {"raise": "2"}, "boss")
    assert fact == ResumeRequested(raises={"interactions": 2.0}, by="boss")
    outcome = story.when(fact)
    made = [event for event in outcome.decided if isinstance(event, TransitionMade)]
    assert [(one.action, one.by) for one in made] == [("reopen", "boss")]
    assert run_of(story).state.document.status == "in_progress"


def test_another_run_that_continues_a_document_is_not_named_as_a_person() -> None:
    story = document()
    story.tell(Heard("[WORKFLOW_END]", "eve"))
    story.tell(DONE)
    outcome = story.when(ResumeRequested(by="flow-k3f9x/12"))
    assert [event.by for event in outcome.decided if isinstance(event, TransitionMade)] == ["ripstop"]


def test_the_parts_show_facts_transitions_and_the_document() -> None:
    story = document()
    act(story, "accept")
    act(story, "pass", to="bob", message="Check it")
    facts, ledger, paper = STYLE.view.parts(run_of(story))
    assert isinstance(facts, Facts) and isinstance(ledger, Ledger) and isinstance(paper, Paper)
    assert dict(facts.rows)["Owner"] == "bob" and dict(facts.rows)["Interactions"] == "2 of at most 10 interactions"
    assert [(entry.by, entry.text, entry.note) for entry in ledger.entries] == [
        ("ann", "accepted it", "pending→in_progress"),
        ("ann", "handed it to bob: Check it", "in_progress→pending"),
    ]
    made = [record.number for record in story.records if isinstance(record.event, TransitionMade)]
    assert [entry.number for entry in ledger.entries] == made
    assert paper.text == write(run_of(story).state.document)
    assert STYLE.view.gist(run_of(story)) == "pending, bob"


def test_every_decision_of_the_style_is_explained() -> None:
    story = document()
    before = run_of(story).state
    assert [reason.text for reason in STYLE.view.explain(before, story.records[1].event).reasons]
    accepted = act(story, "accept").decided[0]
    held = STYLE.view.explain(before, accepted).reasons
    assert [(reason.holds, reason.taken) for reason in held] == [(True, True), (True, False)]
    refused = story.when(TransitionRequested(action="accept", by="ann")).decided[0]
    assert STYLE.view.explain(run_of(story).state, refused).reasons[0].holds is False
    text = write(run_of(story).state.document).replace("Status: in_progress", "Status: weird")
    edit = story.when(EditFound(text, base=2)).decided[0]
    (reason, stayed) = STYLE.view.explain(run_of(story).state, edit).reasons
    assert reason.source == f"{run_of(story).state.file}:2" and "in_progress" in stayed.text
    noted = story.when(Heard("How far are you?", "boss")).decided[0]
    assert STYLE.view.explain(run_of(story).state, noted).reasons
