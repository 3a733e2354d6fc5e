"""A document on its way, and the rules of all documents."""

import pytest

from ripstop.kernel.errors import UsageError
from ripstop.kernel.folding import replay
from ripstop.kernel.style import Sample
from ripstop.styles.handoff.definition import Policy, Role
from ripstop.styles.handoff.document import LEGAL
from ripstop.styles.handoff.drawing import draw_definition, draw_file
from ripstop.styles.handoff.kit import KIT
from ripstop.styles.handoff.state import RULES
from ripstop.testing import given
from ripstop.text.diagrams.diagram import Chapter, Diagram, in_words
from ripstop.text.diagrams.formats import FORMATS

HEAD = """# Workflow: sums
Status: {status}
Current_Owner: {owner}
Previous_Owner: ann
Created_At: 2026-11-16 09:30:00
Updated_At: 2026-11-16 09:42:10

## Task
Write add(a, b)

## History
- 2026-11-16 09:30:00 ann created pending→pending
- 2026-11-16 09:30:00 ann assigned to coder pending→pending
"""
TO_TESTER = """- 2026-11-16 09:35:00 coder accepted it pending→in_progress
- 2026-11-16 09:42:10 coder handed it to tester in_progress→pending
"""
BACK = """- 2026-11-16 09:43:00 tester accepted it pending→in_progress
- 2026-11-16 09:44:00 tester handed it to coder in_progress→pending
"""
DONE = """- 2026-11-16 09:45:00 coder accepted it pending→in_progress
- 2026-11-16 09:46:00 coder completed it in_progress→completed
"""


def drawn(status: str, owner: str, history: str) -> Diagram:
    return draw_file(HEAD.format(status=status, owner=owner) + history, "sums.md")


def steps(diagram: Diagram) -> dict[int, str]:
    names = [f"{node.agent}:{node.name}" for node in diagram.nodes]
    return {
        turn: f"{names[edge.source]} {edge.condition} {names[edge.target]}"
        for edge in diagram.edges
        for turn in edge.turns
    }


def untaken(diagram: Diagram) -> list[str]:
    return [edge.condition for edge in diagram.edges if not edge.turns]


def here(diagram: Diagram) -> str:
    assert diagram.journey is not None
    assert diagram.journey.here is not None
    node = diagram.nodes[diagram.journey.here]
    return f"{node.agent}:{node.name}"


def test_every_owner_has_the_document_in_turn() -> None:
    diagram = drawn("completed", "coder", TO_TESTER + BACK + DONE)
    assert steps(diagram) == {
        1: "coder:pending accept coder:in_progress",
        2: "coder:in_progress pass tester:pending",
        3: "tester:pending accept tester:in_progress",
        4: "tester:in_progress pass coder:pending",
        5: "coder:pending accept coder:in_progress",
        6: "coder:in_progress complete :completed",
    }
    assert here(diagram) == ":completed"
    assert untaken(diagram) == []
    assert "pending (tester) leads to in_progress (tester) if accept (after step 3)." in in_words(diagram)


def test_what_may_come_next_is_drawn_as_not_taken() -> None:
    pending = drawn("pending", "tester", TO_TESTER)
    assert (here(pending), untaken(pending)) == ("tester:pending", ["accept"])
    assert "Anybody may terminate it before it is completed." in pending.notes
    working = drawn("in_progress", "tester", TO_TESTER + BACK.splitlines()[0] + "\n")
    assert (here(working), untaken(working)) == ("tester:in_progress", ["complete"])


def test_whoever_terminates_it_does_not_own_it() -> None:
    end = "- 2026-11-16 09:50:00 ripstop terminated it pending→terminated\n"
    diagram = drawn("terminated", "tester", TO_TESTER + end)
    assert steps(diagram)[3] == "tester:pending terminate :terminated"
    assert {node.agent for node in diagram.nodes} == {"coder", "tester", ""}


def test_a_history_that_is_not_legal_is_drawn_all_the_same() -> None:
    diagram = drawn("completed", "coder", "- 2026-11-16 09:50:00 coder said so pending→completed\n- nonsense\n")
    assert steps(diagram) == {1: "coder:pending said so :completed"}


def test_a_document_without_a_history_stands_where_its_header_says() -> None:
    diagram = draw_file("# Workflow: sums\nStatus: pending\nCurrent_Owner: coder\n\n## Task\nx\n", "sums.md")
    assert (here(diagram), steps(diagram)) == ("coder:pending", {})


def test_what_is_not_a_document_is_named() -> None:
    with pytest.raises(UsageError, match=r"notes\.md is not a hand-off document: line 1"):
        draw_file("just notes\n", "notes.md")


def test_the_rules_are_drawn_from_their_table() -> None:
    diagram = draw_definition(Policy(roles=(Role("coder"), Role("tester"))))
    names = [node.name for node in diagram.nodes]
    edges = {(names[e.source], e.condition, names[e.target]) for e in diagram.edges}
    assert edges == {(before, action, rule.after) for action, rule in RULES.items() for before in rule.before}
    assert {(a, b) for a, _, b in edges if a != b} == {(a, b) for a, afters in LEGAL.items() for b in afters if a != b}
    assert "Roles here: coder, tester." in diagram.notes


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_shows_owners_and_ends(name: str) -> None:
    text = FORMATS[name](drawn("completed", "coder", TO_TESTER + BACK + DONE))
    for word in ("coder", "tester", "in_progress", "completed", "accept"):
        assert word in text
    assert "terminated" in FORMATS[name](draw_definition(Policy()))


def chapters_of(sample: Sample) -> list[Chapter]:
    """A sample as it is drawn: every record, with the run before and after it."""
    story = given(KIT.style, sample.definition, *sample.answers, input=sample.input, arguments=sample.arguments)
    chapters: list[Chapter] = []
    before = None
    for record in story.records:
        after = replay(KIT.style, story.contents, "story", [record], before)
        assert after is not None
        chapters.append(Chapter(record.event, before, after))
        before = after
    return chapters


def test_a_run_is_drawn_with_the_transitions_on_record() -> None:
    assert KIT.samples is not None and KIT.draw_run is not None
    sample = KIT.samples()[1]
    diagram = KIT.draw_run(sample.definition, chapters_of(sample))
    assert steps(diagram) == {
        1: "writer:pending accept writer:in_progress",
        2: "writer:in_progress pass reviewer:pending",
        3: "reviewer:pending accept reviewer:in_progress",
        4: "reviewer:in_progress complete :completed",
    }
    assert here(diagram) == ":completed"
    assert "4 of at most 10 interactions." in diagram.notes
    assert diagram.journey is not None and (diagram.journey.status, diagram.journey.turns) == ("completed", 4)
