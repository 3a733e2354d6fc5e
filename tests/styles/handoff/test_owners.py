"""A document that a person owns is on the desk, and moves on by what the person answers there."""

import json
from pathlib import Path
from typing import Any

import pytest

from ripstop.kernel.effects import AskAgent, AskPerson, CallTool, PersonAnswered
from ripstop.kernel.events import Answered, Withdrawn
from ripstop.styles.handoff.definition import Policy, Role
from ripstop.styles.handoff.events import AgentsChanged, TransitionMade, TransitionRequested, WorkRequested
from ripstop.styles.handoff.kit import KIT
from ripstop.styles.handoff.state import OWNED, owner_asked
from ripstop.testing import Given, given
from ripstop.testing.commands import command

TEAM = Policy(roles=(Role("clerk"),))


def owned(policy: Policy = TEAM, owner: str = "cfo") -> Given:
    return given(KIT.style, policy, input="Approve the budget", arguments={"owner": owner})


def question(story: Given) -> AskPerson | None:
    assert story.run is not None
    found = [opened.command for opened in story.run.open.values() if isinstance(opened.command, AskPerson)]
    assert len(found) <= 1
    return found[0] if found else None


def number(story: Given) -> int:
    assert story.run is not None
    return owner_asked(story.run.open)


@pytest.mark.parametrize(
    ("policy", "owner", "is_asked"),
    [
        (TEAM, "cfo", True),
        (TEAM, "clerk", False),
        (Policy(agents=()), "cfo", True),
        (Policy(agents=("clerk",)), "clerk", False),
        (Policy(), "cfo", False),
    ],
    ids=["no role", "a role", "nobody is an agent", "an agent of the folder", "not known"],
)
def test_an_owner_who_is_not_an_agent_is_a_person(policy: Policy, owner: str, is_asked: bool) -> None:
    ask = question(owned(policy, owner))
    assert (ask is not None) == is_asked
    if ask:
        assert (ask.purpose, ask.to, [*ask.choices]) == (OWNED, "cfo", ["complete", "pass", "terminate"])
        assert "Approve the budget" in ask.question


@pytest.mark.parametrize(
    ("answer", "moves"),
    [
        (PersonAnswered(choice="complete", text="Yes."), [("accept", ""), ("complete", "")]),
        (PersonAnswered(choice="pass", fields={"to": "clerk"}), [("accept", ""), ("pass", "clerk")]),
        (PersonAnswered(choice="terminate", text="No."), [("terminate", "")]),
    ],
)
def test_an_answer_moves_the_document_on(answer: PersonAnswered, moves: list[tuple[str, str]]) -> None:
    story = owned()
    story.tell(Answered(to=number(story), answer=answer))
    made = [record.event for record in story.records if isinstance(record.event, TransitionMade)]
    who = {"cfo", "unnamed"} if answer.choice == "terminate" else {"cfo"}
    assert [(one.action, one.to) for one in made if one.by in who] == moves
    assert question(story) is None


def test_the_next_owner_gets_what_the_person_says() -> None:
    story = owned()
    fields = {"to": "bob", "next_action": "Sign it.", "result": "4,000"}
    story.tell(Answered(to=number(story), answer=PersonAnswered(choice="pass", fields=fields)))
    ask = question(story)
    assert ask is not None and ask.to == "bob" and "Sign it." in ask.question
    assert story.run is not None and story.run.state.document.section("Result") == "4,000"


def test_a_hand_over_to_nobody_is_asked_about_again() -> None:
    story = owned()
    story.tell(Answered(to=number(story), answer=PersonAnswered(choice="pass")))
    ask = question(story)
    assert ask is not None and ask.question.endswith("Say to whom it is handed over.")
    assert story.run is not None and story.run.state.document.status == "pending"


def test_the_question_goes_when_the_document_moves_on_otherwise() -> None:
    story = owned()
    asked = number(story)
    story.tell(TransitionRequested("assign", "eve", "clerk"))
    assert any(isinstance(record.event, Withdrawn) and record.event.number == asked for record in story.records)
    assert question(story) is None


def test_a_role_that_is_added_takes_its_documents_off_the_desk() -> None:
    story = owned(Policy(agents=()))
    story.tell(AgentsChanged(agents=("cfo",)))
    assert question(story) is None
    story.tell(AgentsChanged(agents=()))
    assert question(story) is not None
    story.when(WorkRequested(agent="cfo"))
    assert story.run is not None and question(story) is None
    assert any(isinstance(opened.command, AskAgent | CallTool) for opened in story.run.open.values())


@pytest.mark.parametrize("long", ["", "and so on. " * 300])
def test_the_desk_shows_what_the_document_says_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, long: str) -> None:
    monkeypatch.chdir(tmp_path)
    words = f"Approve 100 euros, {long}then pay 9999"
    new = ("docs", "new", "The invoice", "--to", "cfo", "--from", "ann", "--id", "pay", "--next", words)
    assert command(*new).code == 0
    (before,) = json.loads(command("desk", "--json").out)
    (file,) = (tmp_path / ".workflows").glob("workflow_*.md")
    file.write_text(file.read_text().replace(", then pay 9999", "").replace("then pay 9999", ""))
    assert command("docs", "list").code == 0
    (item,) = json.loads(command("desk", "--json").out)
    assert "9999" not in item["question"] and item["id"] != before["id"]
    assert command("answer", before["id"], "complete").code != 0, "it was another document that was read"
    assert command("answer", item["id"], "complete").code == 0


def test_a_person_completes_a_document_from_the_desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert command("docs", "new", "Approve the budget", "--to", "cfo", "--from", "ann", "--id", "budget").code == 0
    (item,) = json.loads(command("desk", "--to", "cfo", "--json").out)
    assert (item["title"], item["to"], item["choices"]) == ("budget", "cfo", ["complete", "pass", "terminate"])
    done = command("answer", item["id"], "complete", "Yes.", "--field", "result=4,000", "--as", "cfo")
    assert done.code == 0, done
    shown: dict[str, Any] = json.loads(command("docs", "show", "budget", "--json").out)
    assert (shown["status"], shown["result"]) == ("completed", "4,000")
    assert command("desk").out.startswith("Nothing waits for you.")


def history(folder: Path) -> str:
    assert command("docs", "list").code == 0  # writes the file
    (file,) = (folder / ".workflows").glob("workflow_*.md")
    return file.read_text().partition("## History")[2]


def test_the_history_says_who_did_it_in_the_owners_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert command("docs", "new", "Approve the budget", "--to", "cfo", "--from", "ann", "--id", "budget").code == 0
    for who, choice in (("bob", ("pass", "Yours.", "--field", "to=eve")), ("eve", ("complete", "Done."))):
        (item,) = json.loads(command("desk", "--json").out)
        assert command("answer", item["id"], *choice, "--as", who).code == 0
    lines = history(tmp_path)
    assert "cfo accepted it (by bob)" in lines and "cfo handed it to eve (by bob): Yours." in lines
    assert "eve completed it: Done." in lines, "who is the owner need not be named twice"
    listed: dict[str, Any] = json.loads(command("docs", "show", "budget", "--json").out)
    assert listed["previous_owner"] == "cfo" and command("docs", "show", "budget").err.count("odd:") == 0


def test_a_person_without_a_name_is_not_taken_for_the_owner() -> None:
    story = owned()
    story.tell(Answered(to=number(story), answer=PersonAnswered(choice="complete", text="Yes.")))
    words = [record.event.words for record in story.records if isinstance(record.event, TransitionMade)]
    assert words[-1] == "completed it (by unnamed): Yes."
    story = owned()
    story.tell(Answered(to=number(story), answer=PersonAnswered(choice="terminate", text="No.")))
    (made,) = [record.event for record in story.records if isinstance(record.event, TransitionMade)]
    assert made.by == "unnamed"


@pytest.mark.parametrize("first", [("answer", "complete"), ("docs", "terminate")], ids=["on the desk", "by a command"])
def test_of_two_people_who_see_to_a_document_one_is_told_who_was_first_and_when(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: tuple[str, str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command("docs", "new", "Approve the budget", "--to", "cfo", "--from", "ann", "--id", "budget").code == 0
    (item,) = json.loads(command("desk", "--json").out)
    arguments = (item["id"], "complete") if first[0] == "answer" else ("terminate", "budget")
    assert command(first[0], *arguments, "--as", "bob").code == 0
    late = command("answer", item["id"], "complete", "--as", "eve")
    assert late.code == 2 and "bob" in late.err and first[1] in late.err and "That was at 20" in late.err, late
    assert "eve" not in history(tmp_path)
