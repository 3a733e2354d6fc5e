"""`ripstop check` and `ripstop schema`, as authors and editors call them."""

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ripstop.faces.cli.main import cli
from ripstop.styles.graph.schema import GRAPH
from tests.definitions.wrong_definitions import RIGHT, ok


def ripstop(*args: str | Path) -> Result:
    result = CliRunner().invoke(cli, [str(arg) for arg in args])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def folder(parent: Path, text: str = RIGHT, name: str = "right") -> Path:
    made = parent / name
    made.mkdir()
    (made / "workflow.yaml").write_text(text, encoding="utf-8")
    return made


def test_says_that_nothing_is_wrong(tmp_path: Path) -> None:
    result = ripstop("check", folder(tmp_path))
    assert (result.exit_code, result.stdout) == (0, "1 file checked: nothing wrong.\n")


def test_errors_are_shown_with_place_and_caret_and_end_with_2(tmp_path: Path) -> None:
    made = folder(tmp_path, ok("condition: good", "condition: good &&").replace("to: END", "to: end"))
    result = ripstop("check", made)
    file = made / "workflow.yaml"
    assert result.exit_code == 2
    assert result.stdout.splitlines() == [
        f"{file}:25:13: error: there is no state 'end'; did you mean 'END'?",
        f"{file}:26:25: error: the condition cannot be read: '&&' is not an operator here; write AND",
        "            condition: good &&",
        "                            ^",
        "",
        "1 file checked: 2 errors.",
    ]


def test_warnings_are_allowed_unless_they_are_not(tmp_path: Path) -> None:
    made = folder(tmp_path, ok("max_turns: 5\n", ""))
    result = ripstop("check", made)
    assert result.exit_code == 0 and ":1:1: warning: 'max_turns' is not set" in result.stdout
    assert result.stdout.endswith("1 file checked: 1 warning.\n")
    assert ripstop("check", made, "--strict").exit_code == 2


def test_editors_get_one_json_document(tmp_path: Path) -> None:
    made = folder(tmp_path, ok("to: END", "to: end"))
    result = ripstop("check", made, "--json")
    problem = {"file": str(made / "workflow.yaml"), "line": 25, "column": 13, "severity": "error"}
    said = {"text": "there is no state 'end'", "hint": "did you mean 'END'?"}
    assert (result.exit_code, json.loads(result.stdout)) == (2, {"ok": False, "problems": [problem | said]})
    (made / "workflow.yaml").write_text(RIGHT, encoding="utf-8")
    assert json.loads(ripstop("--json", "check", made).stdout) == {"ok": True, "problems": []}


@pytest.mark.req("S1-5", "S1-86")
def test_files_folders_and_names_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workflows = tmp_path / "workflows"
    workflows.mkdir()
    folder(workflows)
    folder(workflows, RIGHT.replace("name: right", "name: other"), "other")
    monkeypatch.chdir(tmp_path)
    assert ripstop("check", "right").stdout.startswith("1 file checked")
    assert ripstop("check", "workflows").stdout.startswith("2 files checked")
    assert ripstop("check", "workflows/right/workflow.yaml", "other").stdout.startswith("2 files checked")
    result = ripstop("check", "rihgt", "other")
    assert result.exit_code == 2 and "rihgt:1:1: error: There is no workflow 'rihgt'" in result.stdout
    assert "did you mean 'right'?" in result.stdout and "2 files checked: 1 error." in result.stdout


@pytest.mark.req("S1-5")
def test_any_name_waives_the_folders_name_for_files_and_folders(tmp_path: Path) -> None:
    made = folder(tmp_path, name="elsewhere")
    for named in (tmp_path, made, made / "workflow.yaml"):
        result = ripstop("check", named)
        assert result.exit_code == 2 and "named 'right', but its folder is 'elsewhere'" in result.stdout
        assert "waive this with --any-name" in result.stdout
        assert ripstop("check", "--any-name", named).exit_code == 0
    (made / "workflow.yaml").rename(made / "mine.yaml")
    assert ripstop("check", made / "mine.yaml").exit_code == 0


def test_help_shows_an_example() -> None:
    for command in ("check", "schema"):
        assert f"ripstop {command} " in ripstop(command, "--help").stdout


def test_the_schema_is_printed_and_an_unknown_style_is_refused() -> None:
    assert json.loads(ripstop("schema", "graph").stdout) == GRAPH
    assert ripstop("schema", "grpah").exit_code == 2


@pytest.mark.parametrize(
    ("model", "hint"), [("lcoal", "did you mean 'local'?"), ("nosuch", "it can be `local`"), ("'openai:'", "NAME")]
)
def test_a_model_that_cannot_be_is_an_error_at_its_place(tmp_path: Path, model: str, hint: str) -> None:
    made = folder(tmp_path, ok("type: ask", f"type: ask\n    model: {model}"))
    result = ripstop("check", made)
    assert result.exit_code == 2
    assert f"{made / 'workflow.yaml'}:9:12: error: {model if chr(39) in model else repr(model)} names" in result.stdout
    assert hint in result.stdout


@pytest.mark.parametrize("model", ["strong", "default", "local", "script:replies.jsonl", "openai:any"])
def test_a_model_that_can_be_is_nothing_to_speak_of(tmp_path: Path, model: str) -> None:
    assert ripstop("check", folder(tmp_path, ok("type: ask", f"type: ask\n    model: {model}"))).exit_code == 0


def test_a_tool_that_only_a_program_can_bring_is_a_warning_at_its_place(tmp_path: Path) -> None:
    made = folder(tmp_path, ok("type: ask", "type: ask\n    tools: [read_file, reed_file]"))
    result = ripstop("check", made)
    assert result.exit_code == 0
    assert f"{made / 'workflow.yaml'}:9:24: warning: there is no tool 'reed_file' here; did you mean 'read_file'?" in (
        result.stdout
    )


def test_a_tool_that_a_named_module_brings_is_no_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    (tmp_path / "shop_of_check.py").write_text("import ripstop\n\n@ripstop.tool\ndef pay() -> int:\n    return 1\n")
    made = folder(tmp_path, ok("type: ask", "type: ask\n    tools: [pay]"))
    alone = ripstop("check", made, "--strict")
    assert alone.exit_code == 2
    said = ":9:13: warning: there is no tool 'pay' here; bring it with --tools MODULE, or from a program"
    assert said in alone.stdout
    brought = ripstop("check", made, "--strict", "--tools", "shop_of_check")
    assert (brought.exit_code, brought.stdout) == (0, "1 file checked: nothing wrong.\n")
    assert ripstop("--tools", "shop_of_chekc", "check", made).exit_code == 2


STEP = """\
name: {name}
initial_message: Go.
max_turns: 3
states:
  - name: only
    start: true
    workflow: {child}
    transitions: [{{to: END, condition: always}}]
"""


def test_a_workflow_that_reaches_itself_is_a_warning_that_names_the_way(tmp_path: Path) -> None:
    for name, child in (("a", "../b"), ("b", "../c"), ("c", "../a"), ("own", "../own"), ("into", "../own")):
        folder(tmp_path, STEP.format(name=name, child=child), name)
    (tmp_path / "end").mkdir()
    found = ripstop("check", tmp_path, "--json")
    told = {Path(one["file"]).parent.name: one for one in json.loads(found.stdout)["problems"]}
    assert {(one["line"], one["column"], one["severity"]) for one in told.values()} == {(7, 15, "warning")}
    assert told["a"]["text"] == "the workflow 'a' reaches itself: a → ../b → ../c → ../a"
    assert told["own"]["text"] == "the workflow 'own' reaches itself: own → ../own"
    assert told["into"]["text"] == "the workflow '../own' reaches itself: ../own → ../own"


def test_workflows_that_share_a_child_do_not_reach_themselves(tmp_path: Path) -> None:
    for name, child in (("a", "../c"), ("b", "../c")):
        folder(tmp_path, STEP.format(name=name, child=child), name)
    folder(tmp_path, RIGHT.replace("name: right", "name: c"), "c")
    assert ripstop("check", tmp_path, "--strict").exit_code == 0
