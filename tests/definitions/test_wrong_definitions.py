"""Every mistake is found before the run, with its line and column and what would be right."""

from pathlib import Path

import pytest

from ripstop.definitions.problems import ERROR, WrongDefinition
from ripstop.styles.graph.parsing import read_graph
from tests.definitions.wrong_definitions import DONE, RIGHT, WRONG, ok
from tests.harness.workflows import check_graph


def written(folder: Path, text: str | bytes, name: str = "any.yaml") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def refused(path: Path) -> WrongDefinition:
    with pytest.raises(WrongDefinition) as caught:
        read_graph(path)
    return caught.value


def test_the_workflow_that_the_table_spoils_is_right(tmp_path: Path) -> None:
    assert check_graph(written(tmp_path, RIGHT)) == []


def test_there_are_many_and_they_differ() -> None:
    assert len({text for _, text, *_ in WRONG}) == len(WRONG) >= 60


@pytest.mark.req("S1-4", "S1-7", "S1-8", "S1-9", "S1-11", "S1-12", "S1-13", "S1-21", "S1-22", "S1-24", "S1-26")
@pytest.mark.req("S1-30", "S1-42", "S1-72", "S1-74")
@pytest.mark.parametrize(("text", "line", "column", "said"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG])
def test_a_mistake_is_shown_where_it_stands(tmp_path: Path, text: str, line: int, column: int, said: str) -> None:
    path = written(tmp_path, text)
    error = refused(path)
    found = [(p.place.line, p.place.column) for p in error.problems if said in f"{p.text}; {p.hint}"]
    assert (line, column) in found, str(error)
    assert all(p.severity == ERROR and p.place.file == str(path) for p in error.problems)
    assert f"{path}:{line}:{column}: error: " in str(error)


def test_all_mistakes_are_told_at_once_and_in_order(tmp_path: Path) -> None:
    text = ok("max_turns: 5", "max_turns: 0\nname: twice").replace("type: ask", "type: asks")
    text = text.replace("condition: good", "condition: good AND").replace("Second line.", "{{a}} {{b}} {% c %} {{d}}")
    error = refused(written(tmp_path, text))
    assert [p.place.line for p in error.problems] == [3, 4, 9, 16, 16, 16, 27]
    assert [p.place.column for p in error.problems if p.place.line == 16] == [7, 13, 19]


def test_an_alias_repeats_no_mistake(tmp_path: Path) -> None:
    text = ok(DONE, "        condition: &c done AND\n").replace("condition: NOT done", "condition: *c")
    assert len(refused(written(tmp_path, text)).problems) == 1


def test_a_bad_condition_is_shown_with_a_caret(tmp_path: Path) -> None:
    text = str(refused(written(tmp_path, ok(DONE, "        condition: done && score\n"))))
    _, source, caret = text.splitlines()
    assert source[caret.index("^") :].startswith("&& score")


def test_the_caret_fits_below_full_width_text(tmp_path: Path) -> None:
    text = str(refused(written(tmp_path, ok(DONE, "        condition: 完成 && 通过\n"))))
    _, source, caret = text.splitlines()
    assert caret.index("^") == source.index("&&") + len("完成")


def test_bytes_that_are_no_text_are_found(tmp_path: Path) -> None:
    problem = refused(written(tmp_path, "name: 海\n".encode() + b"a: \xff\xfe\n")).problems[0]
    assert (problem.place.line, problem.place.column, problem.hint) == (2, 4, "save the file as UTF-8")
    guide = written(tmp_path, b"ok\n\xff", "guide.md")
    problem = refused(written(tmp_path, RIGHT)).problems[0]
    assert (problem.place.file, problem.place.line) == (str(guide), 2)


def test_a_file_that_is_not_there_or_no_file_is_a_problem(tmp_path: Path) -> None:
    assert "no such file" in str(refused(tmp_path / "gone.yaml"))
    assert "cannot be read" in str(refused(tmp_path))
    assert "at most" in str(refused(written(tmp_path, "# " + "x" * 600_000)))


@pytest.mark.req("S1-5")
def test_the_name_must_be_the_folders_and_the_message_shows_both(tmp_path: Path) -> None:
    path = written(tmp_path, RIGHT, "workflow.yaml")
    problem = refused(path).problems[0]
    assert "'right'" in problem.text and repr(tmp_path.name) in problem.text
    assert (problem.place.line, problem.place.column) == (1, 7)
    assert read_graph(path, any_name=True).name == "right"
    folder = tmp_path / "right"
    folder.mkdir()
    assert read_graph(written(folder, RIGHT, "workflow.yaml")).name == "right"


@pytest.mark.req("S1-7")
def test_a_goal_from_outside_takes_the_place_of_the_initial_message(tmp_path: Path) -> None:
    path = written(tmp_path, ok("initial_message: a goal\n", ""))
    refused(path)
    assert read_graph(path, goal="another").initial_message == ""


@pytest.mark.req("S1-3", "S1-6", "S1-8", "S1-10", "S1-25", "S1-27", "S1-28")
def test_what_is_optional_may_be_left_out(tmp_path: Path) -> None:
    small = "name: x # a comment\ninitial_message: y\nagents: [{name: a, type: ask}]\nstates:\n"
    graph = read_graph(
        written(tmp_path, small + "  - {name: s, agent: a, prompt: p}\n  - {name: t, agent: a, prompt: p}")
    )
    assert (graph.max_turns, graph.start, graph.exit_conditions, graph.states[0].transitions) == (10, "s", (), ())
    assert (graph.language, graph.strict_decisions, graph.reasks, graph.agents[0].tools) == ("en", False, 1, None)


def test_the_extra_fields_are_read(tmp_path: Path) -> None:
    text = ok("max_turns: 5", "max_turns: 5\nlanguage: zh\nstrict_decisions: true\nreasks: 0")
    text = text.replace("type: ask", "type: ask\n    model: strong\n    tools: []")
    graph = read_graph(written(tmp_path, text))
    assert (graph.language, graph.strict_decisions, graph.reasks) == ("zh", True, 0)
    assert (graph.agents[1].model, graph.agents[1].tools) == ("strong", ())


def test_merged_mappings_and_split_characters_are_understood(tmp_path: Path) -> None:
    text = ok("  - name: ann\n", "  - &ann\n    name: ann\n").replace("    type: ask", "    <<: *ann")
    text = text.replace("a goal", r'"\ud83c\udf0a"')
    graph = read_graph(written(tmp_path, text))
    assert (graph.agents[1].name, graph.agents[1].type, graph.initial_message) == ("bob", "coder", "🌊")


def test_windows_line_ends_and_a_byte_order_mark_move_nothing(tmp_path: Path) -> None:
    text = ok("Second line.", "Second {{line}}.").replace("\n", "\r\n")
    problem = refused(written(tmp_path, b"\xef\xbb\xbf" + text.encode())).problems[0]
    assert (problem.place.line, problem.place.column) == (15, 14)


@pytest.mark.parametrize("target", ["/dev/zero", "/nowhere", "/"])
def test_a_guide_that_is_not_a_file_is_a_problem(tmp_path: Path, target: str) -> None:
    (tmp_path / "guide.md").symlink_to(target)
    problem = refused(written(tmp_path, RIGHT)).problems[0]
    assert problem.place.file == str(tmp_path / "guide.md")
