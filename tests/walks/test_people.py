"""What people do with runs from the command line: look at questions, answer them, and act."""

import json
import shlex
from pathlib import Path

import pytest

from ripstop.kernel.effects import AskPerson, Field
from ripstop.testing.commands import command
from tests.walks import foreign_style
from tests.walks.commands import log_of, ripstop, succeed
from tests.walks.test_command_line import HAIKU

REVIEW = AskPerson(
    question="Is the draft good?",
    purpose="errands.review",
    title="draft.md",
    about=(1,),
    choices={"pass": "It is good", "edit": "I have edited it", "feedback": "Say what to change"},
    other="feedback",
    edit="edit",
    fields={"score": Field(label="Score", type="integer")},
)


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return foreign_style.install(tmp_path)


def asked(folder: Path, command: AskPerson = REVIEW) -> str:
    """The id of a question that is open."""
    foreign_style.start(folder, "draft-1", command)
    return "draft-1/3"


def test_a_style_from_another_package_is_listed_and_worked_on(tmp_path: Path, env: dict[str, str]) -> None:
    listed = {one["style"]: one for one in json.loads(ripstop("styles", "--json", cwd=tmp_path, env=env).stdout)}
    assert {*listed} == {"graph", "blackboard", "handoff", "conversation", "planning", "pipeline", "errands"}
    assert listed["errands"]["summary"] == "Asks for what its definition lists." and not listed["errands"]["init"]
    assert len({one["summary"] for one in listed.values()}) == len(listed), "each says what it is for"
    assert listed["conversation"]["commands"] == ["chat", "sessions", "kb", "serve"]
    assert "serve" not in listed["graph"]["commands"], "only some styles can be served"
    assert "ripstop init graph DIR" in ripstop("styles", cwd=tmp_path, env=env).stdout


def test_the_desk_shows_one_question_with_the_text_behind_it(tmp_path: Path, env: dict[str, str]) -> None:
    question = asked(tmp_path)
    told = ripstop("desk", question, cwd=tmp_path, env=env).stdout
    assert "draft.md" in told and "record 1" in told
    assert f"  ripstop answer {question} CHOICE --field score=…\n  CHOICE: pass, edit or feedback\n" in told
    (item,) = json.loads(ripstop("desk", question, "--json", cwd=tmp_path, env=env).stdout)
    assert (item["choices"], item["labels"]["pass"]) == (["pass", "edit", "feedback"], "It is good")
    assert item["fields"]["score"]["type"] == "integer" and item["evidence"][0]["number"] == 1
    wrong = ripstop("desk", "draft-1/99", cwd=tmp_path, env=env)
    assert (wrong.returncode, "is not an open question" in wrong.stderr) == (2, True)


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (("pass",), {"choice": "pass"}),
        (("It is good",), {"choice": "pass"}),
        (("pass", "well done", "--as", "ann"), {"choice": "pass", "text": "well done", "by": "ann"}),
        (("Shorter, please.",), {"choice": "feedback", "text": "Shorter, please."}),
        (("pass", "--field", "score=7"), {"choice": "pass", "fields": {"score": 7}}),
        (("edit", "--file", "edited.md"), {"choice": "edit", "document": "# Better\n"}),
        (("feedback", "--file", "edited.md"), {"choice": "feedback", "text": "# Better\n"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_an_answer_is_recorded_as_it_was_meant(
    tmp_path: Path, env: dict[str, str], words: tuple[str, ...], answer: dict[str, object]
) -> None:
    (tmp_path / "edited.md").write_text("# Better\n", encoding="utf-8")
    done = ripstop("answer", asked(tmp_path), *words, cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    log = ripstop("log", "draft-1", "--json", cwd=tmp_path, env=env).stdout.splitlines()
    (recorded,) = [record["answer"] for record in map(json.loads, log) if record["type"] == "answered"]
    assert answer.items() <= recorded.items(), recorded


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("pass", "--field", "score=high"), "score"),
        (("pass", "--field", "colour=red"), "colour"),
        (("edit", "--file", "missing.md"), "missing.md cannot be read"),
    ],
)
def test_an_answer_that_cannot_be_leaves_the_question_open(
    tmp_path: Path, env: dict[str, str], words: tuple[str, ...], said: str
) -> None:
    done = ripstop("answer", asked(tmp_path), *words, cwd=tmp_path, env=env)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert json.loads(ripstop("desk", "--json", cwd=tmp_path, env=env).stdout)


def test_a_second_answer_hears_who_gave_the_first_and_when(tmp_path: Path, env: dict[str, str]) -> None:
    question = asked(tmp_path)
    ripstop("answer", question, "pass", "--as", "ann", cwd=tmp_path, env=env)
    late = ripstop("answer", question, "feedback", "too long", cwd=tmp_path, env=env)
    assert late.returncode == 2
    assert f"{question} was answered already, by ann: 'pass'. Nothing was changed. That was at 20" in late.stderr


def test_act_writes_the_file_of_a_document_at_once(tmp_path: Path) -> None:
    made = json.loads(succeed("docs", "new", "Write a poem", "--to", "ann", "--id", "poem", "--json", cwd=tmp_path))
    file = tmp_path / ".workflows" / made["file"]
    done = succeed("act", made["run"], "accept", "--as", "ann", cwd=tmp_path)
    assert "Status: in_progress" in file.read_text(encoding="utf-8") and "interrupted" not in done
    succeed("act", made["run"], "pass", "--as", "ann", "--field", "to=bob", cwd=tmp_path)
    assert "Current_Owner: bob" in file.read_text(encoding="utf-8")


def test_the_commands_that_show_prints_work_as_they_are_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = json.loads(command("docs", "new", "Write a poem", "--to", "Ann Lee", "--json").out)["run"]
    for action in ("accept", "pass"):
        [line] = [one for one in command("show", run).out.splitlines() if f"ripstop act {run} {action}" in one]
        typed = shlex.split(line.partition("ripstop ")[2])
        assert typed[3:5] == ["--as", "Ann Lee"], line
        done = command(*typed)
        assert done.code == 0, done.err
    anyone = {action["name"]: action["by"] for action in json.loads(command("show", run, "--json").out)["actions"]}
    assert anyone == {"assign": "", "accept": "…", "terminate": ""}


@pytest.mark.long
def test_a_document_is_moved_on_with_act_and_shown_with_its_actions(tmp_path: Path) -> None:
    made = json.loads(succeed("docs", "new", "Write a poem", "--to", "ann", "--id", "poem", "--json", cwd=tmp_path))
    run = made["run"]
    shown = json.loads(succeed("show", "poem", "--json", cwd=tmp_path))
    assert [action["name"] for action in shown["actions"]] == ["assign", "accept", "terminate"]
    assert f"ripstop act {run} accept" in succeed("show", "poem", cwd=tmp_path)
    refused = ripstop("act", run, "accept", "--as", "eve", cwd=tmp_path)
    assert (refused.returncode, "belongs to 'ann'" in refused.stderr) == (2, True), refused.stderr
    unknown = ripstop("act", run, "dance", cwd=tmp_path)
    assert (unknown.returncode, "possible now: assign, accept, terminate" in unknown.stderr) == (2, True)
    succeed("act", run, "accept", "--as", "ann", cwd=tmp_path)
    needs = ripstop("act", run, "pass", "--as", "ann", cwd=tmp_path)
    assert (needs.returncode, "needs the field 'to'" in needs.stderr) == (2, True)
    succeed("act", run, "pass", "--as", "ann", "--field", "to=bob", "--field", "message=Check it", cwd=tmp_path)
    told = succeed("show", run, cwd=tmp_path)
    assert "Owner: bob" in told and "handed it to bob: Check it" in told
    assert ripstop("resume", run, cwd=tmp_path).returncode == 4, "it waits for bob"
    assert "Current_Owner: bob" in (tmp_path / ".workflows" / made["file"]).read_text(encoding="utf-8")


@pytest.mark.long
def test_a_run_is_shown_with_the_parts_of_its_style(tmp_path: Path) -> None:
    script = f"script:{HAIKU / 'script.jsonl'}"
    run = json.loads(succeed("run", str(HAIKU), "--model", script, "--json", cwd=tmp_path))["run"]
    told = succeed("show", run, cwd=tmp_path)
    assert "● write  poet, 2 turns" in told and "Said last" in told
    kinds = {part["type"] for part in json.loads(succeed("show", run, "--json", cwd=tmp_path))["parts"]}
    assert "rail" in kinds
    assert log_of(run, tmp_path)[0]["type"] == "started"


FORM = AskPerson(
    question="What is it worth?",
    purpose="errands.review",
    fields={
        "grade": Field(label="Grade", type="one_of", allowed=("a", "b"), required=True),
        "tags": Field(type="some_of", allowed=("x", "y")),
        "again": Field(label="Once more?", type="boolean"),
    },
)


def test_the_desk_shows_the_fields_that_an_answer_takes(tmp_path: Path, env: dict[str, str]) -> None:
    question = asked(tmp_path, FORM)
    told = ripstop("desk", question, cwd=tmp_path, env=env).stdout.splitlines()
    assert "  field grade  Grade: one of a, b" in told
    assert "  field tags  some of x, y, with commas between them (can be left out)" in told
    assert "  field again  Once more?: yes or no (can be left out)" in told
    assert f"  ripstop answer {question} TEXT --field grade=… --field tags=… --field again=…" in told
    listed = ripstop("desk", cwd=tmp_path, env=env).stdout.splitlines()
    assert f"  ripstop answer {question} TEXT --field grade=…" in listed
    fields = ("--field", "grade=b", "--field", "tags=y,x")
    assert ripstop("answer", question, *fields, cwd=tmp_path, env=env).returncode == 0


def test_the_guide_names_the_folder_of_the_documents(tmp_path: Path) -> None:
    (tmp_path / "office").mkdir()
    told = succeed("docs", "guide", "tester", "--folder", "office", cwd=tmp_path)
    assert "`office/.workflows/`" in told and "`office/.inbox/tester/`" in told
    assert "`.workflows/`" in succeed("docs", "guide", "tester", cwd=tmp_path)
