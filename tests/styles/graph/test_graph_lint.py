"""Warnings: what an author would want to know although the workflow runs."""

from pathlib import Path

import pytest

from ripstop.definitions.problems import WARNING
from tests.definitions.wrong_definitions import BOB, DONE, PROMPT, RIGHT, ok
from tests.harness.workflows import WORKFLOWS, check_graph

MANY = " OR ".join(f"d{n}" for n in range(20))

RUNS = "    workflow: review\n"
ASKS = "'{% if last_agent_name == \"bib\" %}x{% endif %}'"


def told(folder: Path, text: str) -> list[tuple[int, int, str]]:
    path = folder / "any.yaml"
    path.write_text(text, encoding="utf-8")
    problems = check_graph(path)
    assert all(problem.severity == WARNING for problem in problems), problems
    return [(p.place.line, p.place.column, f"{p.text}; {p.hint}") for p in problems]


WARNED = [
    # what it is about, the file, line, column, a part of the message
    ("no guide", ok("{{COLLABORATION_GUIDE}} Do", "Do"), 13, 13, "lacks {{COLLABORATION_GUIDE}}"),
    ("no limit", ok("max_turns: 5\n", ""), 1, 1, "add `max_turns: 10`"),
    ("no start", ok("    start: true\n", ""), 10, 5, "begins with the first, 'one'"),
    ("an agent without work", ok("agent: bob", "agent: ann"), 7, 11, "'bob' has no state"),
    ("no way on", ok("      - to: one\n        condition: NOT done\n", ""), 16, 5, "done=false"),
    ("what to add", ok("      - to: one\n        condition: NOT done\n", ""), 16, 5, "`condition: NOT done`"),
    ("a gap", ok("NOT done", "NOT done AND score < 7"), 16, 5, "done=false, score=7;"),
    ("shadowed", ok("condition: NOT done", "condition: done AND score > 1"), 20, 20, "line 17 always comes first"),
    ("shadowed by two", ok("  - name: two", "      - to: END\n  - name: two"), 21, 9, "in line 17 and 19 always come"),
    ("contradictory", ok(DONE, "        condition: score > 8 AND score < 3\n"), 18, 20, "its condition cannot hold"),
    ("unreachable", ok("to: two", "to: END"), 21, 11, "'two' can never be reached"),
    ("no way out", ok("to: END", "to: two"), 10, 11, "from 'one', 'two' no way leads to END"),
    ("not described", ok('"done" and "score"', '"score"'), 18, 20, "does not describe the decision 'done'"),
    ("a misspelt name", ok(DONE, "        condition: max_turn_exceeded\n"), 18, 20, "'max_turns_exceeded'?"),
    ("a misspelt name in an exit", ok("error_occurred", "error_ocurred"), 29, 16, "did you mean 'error_occurred'?"),
    ("the old variable", ok("Second line.", "Turn {{turn_count}}."), 15, 12, "{{turn_count}} is deprecated"),
    ("the old counter", ok("condition: NOT done", "condition: NOT done OR turn_count > 3"), 20, 32, "write turns"),
    ("turns of no state", ok("NOT done", "NOT done OR turn_count_tow > 1"), 20, 32, "'turn_count_two'?"),
    ("an open tag", ok("Second line.", "Second {{last_agent_name"), 15, 14, "'{{' is never closed"),
    ("an exit at once", ok("condition: error_occurred", "condition: done OR NOT done"), 29, 16, "the first turn"),
    ("an outcome that is none", ok(BOB, RUNS).replace("on: good", 'on: outcome == "done"'), 25, 20, "never ends"),
    ("an open tag in an input", ok(BOB, RUNS + "    input: see {{x\n"), 23, 16, "so the workflow sees it"),
    ("a speaker in an input", ok(BOB, f"{RUNS}    input: {ASKS}\n"), 23, 13, "no agent is named 'bib'"),
    ("a result that is not covered", ok(BOB, RUNS).replace("      - to: one\nexit", "exit"), 23, 5, "good=false"),
    ("too much to look at", ok(DONE, f"        condition: {MANY}\n"), 16, 5, "not checked"),
]  # fmt: skip


@pytest.mark.req("S1-8", "S1-25", "S1-38", "S1-50", "S1-81", "S1-82", "S1-83")
@pytest.mark.parametrize(("text", "line", "column", "said"), [w[1:] for w in WARNED], ids=[w[0] for w in WARNED])
def test_warns_where_it_matters(tmp_path: Path, text: str, line: int, column: int, said: str) -> None:
    found = told(tmp_path, text)
    assert [f for f in found if f[:2] == (line, column) and said in f[2]], found


@pytest.mark.parametrize("text", [RIGHT, *WORKFLOWS.values()], ids=["right", *WORKFLOWS])
def test_says_nothing_about_a_workflow_that_is_right(tmp_path: Path, text: str) -> None:
    assert told(tmp_path, text) == []


def test_a_transition_that_is_switched_off_is_left_alone(tmp_path: Path) -> None:
    assert told(tmp_path, ok("      - to: END", "      - {to: END, condition: never}\n      - to: END")) == []


def test_an_exit_on_a_decision_is_a_way_out(tmp_path: Path) -> None:
    text = ok("to: END", "to: two").replace("error_occurred", "good")
    assert not any("no way leads to END" in said for _, _, said in told(tmp_path, text))


def test_a_state_that_is_reached_only_by_a_dead_transition_is_unreachable(tmp_path: Path) -> None:
    text = ok(DONE, "        condition: done AND NOT done\n").replace("condition: NOT done", "condition: true", 1)
    assert any("'two' can never be reached" in said for _, _, said in told(tmp_path, text))


def test_chinese_words_may_touch_the_name_of_a_decision(tmp_path: Path) -> None:
    text = ok(PROMPT, "    prompt: '{{COLLABORATION_GUIDE}}字段done表示完成'\n")
    assert told(tmp_path, text) == []
    text = ok(PROMPT, "    prompt: '{{COLLABORATION_GUIDE}} undone'\n")
    assert len(told(tmp_path, text)) == 1


def test_a_guide_of_ones_own_may_describe_decisions(tmp_path: Path) -> None:
    (tmp_path / "guide.md").write_text("Always decide done and score.", encoding="utf-8")
    assert told(tmp_path, ok('decide "done" and "score"', "go")) == []


def test_errors_come_without_warnings(tmp_path: Path) -> None:
    path = tmp_path / "any.yaml"
    path.write_text(ok("max_turns: 5\n", "").replace("to: END", "to: nowhere"), encoding="utf-8")
    assert [problem.severity for problem in check_graph(path)] == ["error"]


def test_a_workflow_is_a_speaker_and_describes_its_own_decisions(tmp_path: Path) -> None:
    text = ok(BOB, RUNS).replace("  - name: bob\n    type: ask\n", "")
    text = text.replace("Second line.", '{% if last_agent_name == "review" %}Again.{% endif %}')
    assert told(tmp_path, text) == []


def test_an_outcome_that_no_transition_takes_is_not_a_gap(tmp_path: Path) -> None:
    text = ok(BOB, RUNS).replace("  - name: bob\n    type: ask\n", "").replace("      - to: one\nexit", "exit")
    assert told(tmp_path, text.replace("condition: good", 'condition: outcome == "completed"')) == []
