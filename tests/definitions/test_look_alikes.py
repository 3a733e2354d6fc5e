"""A character that only looks like YAML's own is named where it is, not where YAML gives up."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripstop.definitions.yaml_tree import look_alike
from tests.definitions.wrong_definitions import RIGHT, ok
from tests.harness.workflows import check_graph

ANN = "  - name: ann\n    type: coder"
CASES = [
    ("a colon of the goal", ok("initial_message: a", "initial_message：a"), 2, 16, "`：` is not `:`"),
    ("a colon on the first line", ok("name: right", "name：right"), 1, 5, "`：` is not `:`"),
    ("a colon before a list", ok("agents:", "agents："), 4, 7, "`：` is not `:`"),
    ("a colon in an item", ok("  - name: ann", "  - name：ann"), 5, 9, "`：` is not `:`"),
    ("a colon on the last line", ok("action: force_end", "action：force_end"), 30, 11, "`：` is not `:`"),
    ("a ratio sign", ok("type: coder", "type∶ coder"), 6, 9, "`∶` is not `:`"),
    ("a comma in braces", ok(ANN, "  - {name: ann， type: coder}"), 5, 15, "`，` is not `,`"),
    ("full-width braces", ok(ANN, "  - ｛name: ann, type: coder}"), 5, 5, "`｛` is not `{`"),
    ("curly quotes", ok("a goal", "“a: goal”"), 2, 18, '`“` is not `"`'),
    ("curly single quotes", ok("a goal", "‘a: goal’"), 2, 18, "`‘` is not `'`"),
    ("a curly quote at the end", ok("a goal", '"a goal”'), 2, 25, '`”` is not `"`'),
    ("non-breaking indentation", ok("    type: coder", "\u00a0   type: coder"), 6, 1, "a non-breaking space"),
    ("full-width indentation", ok("    type: coder", "\u3000\u3000type: coder"), 6, 1, "a full-width space"),
    ("a full-width space after a colon", ok("type: coder", "type:\u3000coder"), 6, 10, "a full-width space"),
    ("a dash", ok("  - name: ann", "  – name: ann"), 5, 3, "`–` is not `-`"),
]


@pytest.mark.parametrize(("text", "line", "column", "said"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_a_look_alike_is_named_where_it_is(tmp_path: Path, text: str, line: int, column: int, said: str) -> None:
    path = tmp_path / "any.yaml"
    path.write_text(text, encoding="utf-8")
    (problem,) = check_graph(path)
    assert (problem.place.line, problem.place.column) == (line, column), str(problem)
    assert said in problem.text and problem.source in text


def test_texts_with_such_characters_are_not_blamed(tmp_path: Path) -> None:
    text = ok("      Second line.", "      注意：“第二”，行。").replace("a goal", "海：“夜”，静")
    path = tmp_path / "any.yaml"
    path.write_text(text, encoding="utf-8")
    assert check_graph(path) == []
    path.write_text(ok("type: coder", "type: [coder").replace("a goal", "“海”：夜，静"), encoding="utf-8")
    assert all("is not" not in problem.text for problem in check_graph(path))


@given(st.text(alphabet=":：，“”‘’{[｛]}\u00a0\u3000\t\n -–'\"akey#", max_size=300), st.integers(0, 300))
def test_any_text_is_searched_without_failing(text: str, index: int) -> None:
    found = look_alike(text, min(index, len(text)), "f")
    assert found is None or found.place.line <= text.count("\n") + 1


def test_long_lines_are_searched_in_bounded_time() -> None:
    for part in ("{", '"”', "\\'\"", "a:", "{a，"[:2], "- "):
        text = RIGHT + "k: " + part * 200_000
        look_alike(text, len(text), "f")
