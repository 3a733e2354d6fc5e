"""Warnings about words that do not fit together, and about decisions that transitions rely on."""

from pathlib import Path

import pytest

from tests.definitions.wrong_definitions import DONE, RIGHT, ok, valued
from tests.styles.graph.test_graph_lint import told

ELSE = "        condition: NOT done\n"


def when(condition: str, otherwise: str | None = "NOT done", text: str = RIGHT) -> str:
    """The workflow with other conditions in its first state; `None` for no condition."""
    assert DONE in text and ELSE in text
    last = "" if otherwise is None else f"        condition: {otherwise}\n"
    return text.replace(DONE, f"        condition: {condition}\n").replace(ELSE, last)


def prompted(text: str) -> str:
    return ok("Second line.", text)


def tools(kind: str, listed: str) -> str:
    return ok(f"type: {kind}", f"type: {kind}\n    tools: {listed}")


EXAMPLE = prompted('{"decisions": {"done": true}}')
WARNED = [
    # what it is about, the file, line, column, a part of the message
    ("a tool that ask never uses", tools("ask", "[read_file, write_file]"), 9, 24, "never writes"),
    ("the limit leads to a state", when("max_turns_exceeded"), 18, 20, "it holds only after the last turn"),
    ("the limit in turns", when("turns >= 5"), 18, 20, "lead it to END"),
    ("the limit as a part", when("done OR max_turns_exceeded"), 18, 28, "cannot lead to 'two'"),
    ("an agent in other case", prompted('{% if last_agent_name == "Bob" %}x{% endif %}'), 15, 7, "mean 'bob'?"),
    ("no such agent", prompted("{% if last_agent_name == 'eve' %}x{% endif %}"), 15, 7, "known are ann, bob"),
    ("a word in other case", when('score == "Done"'), 18, 20, 'did you mean "done"?'),
    ("a word with a space", when('score == "done "'), 18, 20, 'the prompt says "done"'),
    ("true as a text", when('done == "true"'), 18, 20, "did you mean `done == true`?"),
    ("True as a text", when("'\"True\" != done'"), 18, 31, "did you mean `done != true`?"),
    ("a number as a text", when('done AND score == "9"'), 18, 29, "did you mean `score == 9`?"),
    ("a type unlike the example's", when('done == "yes"', text=EXAMPLE), 18, 20, "the prompt shows it as true"),
    ("a count as a decision", ok('"score"', '"turn_count_two"'), 14, 57, "cannot be named 'turn_count_two'"),
    ("turns as a decision", ok('"score"', "`turns`"), 14, 57, "cannot be named 'turns'"),
    ("missing or no number", when("score > 7", "score <= 7"), 16, 5, "score is missing or not a number; the agent"),
    ("missing only", when('score == "a"', 'score != "a"'), 16, 5, "when score is missing; the agent is asked again"),
    ("a value for nothing", valued("{tone: soft}"), 4, 10, "no prompt uses the value 'tone'"),
    ("a required value for nothing", valued("{tone: }"), 4, 10, "no prompt uses the value 'tone'"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "column", "said"), [w[1:] for w in WARNED], ids=[w[0] for w in WARNED])
def test_warns_where_words_do_not_fit(tmp_path: Path, text: str, line: int, column: int, said: str) -> None:
    found = told(tmp_path, text)
    assert [f for f in found if f[:2] == (line, column) and said in f[2]], found


FITTING = {
    "the first turn": prompted('{% if last_agent_name == "" %}Begin.{% endif %}'),
    "an agent": prompted('{% if last_agent_name == "bob" %}x{% endif %}'),
    "a described word": when('done AND score == "Good"', None, prompted('Say "Good" or "bad".')),
    "a described text": when('done == "true"', None, prompted('Say "done": "true" or "false".')),
    "the engine's names in prose": when("done", text=prompted("After ten turns an error_occurred.")),
    "before the limit": when("done AND NOT max_turns_exceeded"),
    "a way on for odd values": when("score > 7", None),
    "tools that fit": tools("coder", "[write_file]"),
    "values in use": valued("{tone: soft, who: }").replace("Second line.", "{{tone}} {{ who }}"),
}


@pytest.mark.parametrize("text", FITTING.values(), ids=FITTING)
def test_says_nothing_about_words_that_fit(tmp_path: Path, text: str) -> None:
    assert told(tmp_path, text) == []


def test_an_exit_condition_is_compared_with_all_prompts(tmp_path: Path) -> None:
    text = ok("condition: error_occurred", "condition: verdict == 'Good'")
    assert any('did you mean "good"?' in said for *_, said in told(tmp_path, text))


def test_a_text_that_is_used_as_a_boolean_elsewhere_is_warned_of(tmp_path: Path) -> None:
    text = when('done == "true"', "NOT done", prompted('Say "done": "true" or "false".'))
    assert any("did you mean `done == true`?" in said for *_, said in told(tmp_path, text))


def test_a_state_gets_one_warning_about_decisions_that_can_be_odd(tmp_path: Path) -> None:
    text = when("score > 7 AND done == true", "score <= 7 OR done == false")
    (said,) = [said for *_, said in told(tmp_path, text) if "is missing" in said]
    assert "score is missing or not a number, or done is missing or not true or false" in said
