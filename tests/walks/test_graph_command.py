"""`ripstop graph`, as a person or a script would use it."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.walks.commands import a_run, ripstop, succeed
from tests.walks.test_command_line import HAIKU


def test_a_workflow_is_drawn_as_mermaid_without_a_journal(tmp_path: Path) -> None:
    drawn = succeed("graph", str(HAIKU), cwd=tmp_path)
    assert drawn.startswith("flowchart TD\n")
    assert '-->|"NOT approved"|' in drawn
    assert not (tmp_path / ".ripstop").exists()


def test_the_name_of_the_file_chooses_the_format(tmp_path: Path) -> None:
    assert succeed("graph", str(HAIKU / "workflow.yaml"), "--output", "haiku.svg", cwd=tmp_path) == ""
    ElementTree.fromstring((tmp_path / "haiku.svg").read_text(encoding="utf-8"))
    succeed("graph", str(HAIKU), "--output", "haiku.svg", "--format", "dot", cwd=tmp_path)
    assert (tmp_path / "haiku.svg").read_text(encoding="utf-8").startswith('digraph "haiku"')


def test_a_run_is_drawn_with_the_path_it_took(tmp_path: Path) -> None:
    run = a_run(tmp_path)["run"]
    shown = json.loads(succeed("graph", run, "--format", "svg", "--json", cwd=tmp_path))
    assert set(shown) == {"format", "text"} and shown["format"] == "svg"
    assert "write leads to judge if done (after turn 1, 3)." in shown["text"]
    words = " ".join("".join(ElementTree.fromstring(shown["text"]).itertext()).split())  # on however many lines
    assert f"run {run} · completed after 4 turns" in words


def test_what_is_neither_a_workflow_nor_a_run_is_said_to_be_neither(tmp_path: Path) -> None:
    for _ in ("without a journal", "with one"):
        done = ripstop("graph", "nothing-like-it", cwd=tmp_path)
        assert done.returncode == 2
        assert "no workflow 'nothing-like-it'" in done.stderr and "Nor is there a run" in done.stderr
        assert "Traceback" not in done.stderr
        a_run(tmp_path)


def test_a_wrong_definition_is_told_with_its_place(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text((HAIKU / "workflow.yaml").read_text(encoding="utf-8").replace("to: judge", "to: jury"), "utf-8")
    done = ripstop("graph", str(wrong), cwd=tmp_path)
    assert done.returncode == 2
    assert "wrong.yaml:" in done.stderr and "jury" in done.stderr


def test_a_file_that_cannot_be_written_is_no_traceback(tmp_path: Path) -> None:
    done = ripstop("graph", str(HAIKU), "--output", "no/such/folder/x.svg", cwd=tmp_path)
    assert done.returncode == 2
    assert "cannot be written" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.long
def test_a_document_is_drawn_from_its_run_its_file_and_its_folder(tmp_path: Path) -> None:
    made = json.loads(succeed("docs", "new", "Write a poem", "--to", "poet", "--id", "poem", "--json", cwd=tmp_path))
    succeed("docs", "pass", "poem", "--to", "critic", cwd=tmp_path)
    succeed("docs", "accept", "poem", "--as", "critic", cwd=tmp_path)
    run = succeed("graph", made["run"], cwd=tmp_path)
    for line in ('s0["pending<br/>poet · 1×"]', 's0 -->|"(1)<br/>assign"| s1', 's1 -->|"(2)<br/>accept"| s2'):
        assert line in run
    file = succeed("graph", f".workflows/{made['file']}", cwd=tmp_path)
    assert 's1["in_progress<br/>critic · 1×"]' in file
    assert '-->|"terminate"|' in succeed("graph", ".", cwd=tmp_path)
    (tmp_path / "notes.md").write_text("no document\n")
    done = ripstop("graph", "notes.md", cwd=tmp_path)
    assert (done.returncode, "notes.md is not a hand-off document" in done.stderr) == (2, True)


@pytest.mark.parametrize("name", ["haiku.png", "haiku"])
def test_a_file_whose_name_tells_no_format_is_refused_with_the_formats_there_are(tmp_path: Path, name: str) -> None:
    done = ripstop("graph", str(HAIKU), "--output", name, cwd=tmp_path)
    assert done.returncode == 2
    assert ".svg" in done.stderr and "mermaid, svg, dot" in done.stderr
    assert not (tmp_path / name).exists()
    succeed("graph", str(HAIKU), "--output", name, "--format", "dot", cwd=tmp_path)
    assert (tmp_path / name).read_text(encoding="utf-8").startswith("digraph")
