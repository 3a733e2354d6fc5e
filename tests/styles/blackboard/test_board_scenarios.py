"""Scenarios: boards that are ready to run, and hold nothing but files."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ripstop.definitions.reader import write_example
from ripstop.faces.cli.main import cli
from ripstop.kernel.effects import AgentReplied
from ripstop.kernel.errors import UsageError
from ripstop.kernel.events import Warned
from ripstop.styles.blackboard.calls import ClaimResult
from ripstop.styles.blackboard.definition import USER
from ripstop.styles.blackboard.reader import READER
from ripstop.styles.graph.reader import READER as GRAPHS
from tests.styles.blackboard.board_definitions import checked, read
from tests.styles.blackboard.boards import arguments, begun, tell, written
from tests.styles.blackboard.boards import checked as found

AGENTS = {
    "tdd": ["DEV", "REVIEW", "TEST"],
    "novel": ["CRITIQUE", "DRAFT", "OUTLINE", "POLISH"],
    "analysis": ["ANALYZE", "COLLECT", "CONCLUDE", "VERIFY"],
    "tdd-zh": ["DEV", "REVIEW", "TEST"],
}


def ripstop(*args: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(arg) for arg in args])


@pytest.mark.req("S4-60", "S4-61", "S4-62", "S4-63", "S4-8")
@pytest.mark.parametrize("scenario", AGENTS)
def test_a_scenario_is_a_board_with_nothing_wrong(tmp_path: Path, scenario: str) -> None:
    files = write_example(READER, tmp_path, scenario)
    assert files and all(file.is_file() for file in files) and (tmp_path / "reports").is_dir()
    assert checked(tmp_path) == []
    board = read(tmp_path)
    assert [one.name for one in board.agents] == AGENTS[scenario]
    assert board.policy.gates and board.policy.evidence


@pytest.mark.req("S4-37", "S4-38")
def test_each_field_of_work_has_its_own_verdicts(tmp_path: Path) -> None:
    found = {}
    for scenario in ("tdd", "novel", "analysis"):
        write_example(READER, tmp_path / scenario, scenario)
        found[scenario] = read(tmp_path / scenario).policy.report_rules.verdict_allowed
    assert found == {
        "tdd": ("PASS", "FAIL", "BLOCKED"),
        "novel": ("APPROVED", "NEEDS_REVISION", "BLOCKED"),
        "analysis": ("VALID", "INVALID", "INSUFFICIENT_EVIDENCE"),
    }


@pytest.mark.parametrize("scenario", AGENTS)
def test_a_script_goes_to_the_end_by_the_rules_of_its_policy(tmp_path: Path, scenario: str) -> None:
    """Decisions, reports, gates and the plan fit one another; some verdict is not the best one and is mended."""
    write_example(READER, tmp_path, scenario)
    board, plan = read(tmp_path), (tmp_path / read(tmp_path).plan).read_text(encoding="utf-8")
    story = begun(board, plan=plan)
    for line in (tmp_path / "script.jsonl").read_text(encoding="utf-8").splitlines():
        said = json.loads(line)
        if "calls" in said:
            continue
        events = tell(story, AgentReplied(text=said["reply"]))
        assert not [event for event in events if isinstance(event, Warned)]
        assert story.run is not None
        assert story.run.ended is None, story.run.ended
        if said["agent"] != "MAIN":
            looked = arguments(story)["evidence"]
            tell(story, found(*(ClaimResult(True, "it is there") for _ in looked)))
        tell(story, written())
    run = story.run
    assert run is not None
    assert run.ended is not None and run.ended.outcome == "completed", run.ended
    assert {one.verdict for one in run.state.reports} > {board.policy.report_rules.verdict_allowed[0]}
    assert all(task.status in board.policy.done_statuses for task in run.state.known.tasks)
    assert run.state.decisions[-1].shown and all(one.holds for one in run.state.decisions[-1].shown)
    assert USER not in (tmp_path / "script.jsonl").read_text(encoding="utf-8")


def test_a_later_run_finishes_nothing_that_an_earlier_one_only_called_finished(tmp_path: Path) -> None:
    folder = tmp_path / "b"
    assert ripstop("init", "blackboard", folder, "--scenario", "tdd").exit_code == 0
    plan = (folder / "memory/dev_plan.md").read_text(encoding="utf-8")
    claims = {
        "next_agent": "USER",
        "reason": "All is verified.",
        "dev_plan": "update M1-T1 status to VERIFIED; update M1-T2 status to VERIFIED",
        "finish_review_override": None,
    }
    ends = {**claims, "next_agent": "FINISH", "dev_plan": ""}
    script = folder / "lies.jsonl"
    for decision in (claims, ends):
        line = json.dumps({"agent": "MAIN", "reply": json.dumps(decision)})
        script.write_text(f"{line}\n" * 5, encoding="utf-8")
        ran = ripstop("run", folder, "--model", f"script:{script}", "--store", f"sqlite:{tmp_path}/journal.db")
        assert ran.exit_code == 1, ran.output
        assert (folder / "memory/dev_plan.md").read_text(encoding="utf-8") == plan


def test_the_first_scenario_is_written_if_none_is_named(tmp_path: Path) -> None:
    assert READER.scenarios == ("tdd", "analysis", "novel", "tdd-zh")
    READER.example(tmp_path / "a")
    READER.example(tmp_path / "b", "tdd")
    texts = [(tmp_path / name / "script.jsonl").read_text() for name in ("a", "b")]
    assert texts[0] == texts[1]


def test_init_writes_the_scenario_that_is_named(tmp_path: Path) -> None:
    made = ripstop("--json", "init", "blackboard", tmp_path / "book", "--scenario", "novel")
    assert made.exit_code == 0 and len(json.loads(made.stdout)["files"]) == 9
    again = ripstop("init", "blackboard", tmp_path / "book", "--scenario", "novel")
    assert again.exit_code == 2 and "already" in again.stderr
    assert ripstop("check", tmp_path / "book").stdout == "1 file checked: nothing wrong.\n"


def test_an_unknown_scenario_is_refused(tmp_path: Path) -> None:
    made = ripstop("init", "blackboard", tmp_path / "x", "--scenario", "nowel")
    assert made.exit_code == 2 and "did you mean 'novel'?" in made.stderr and not (tmp_path / "x").exists()
    with pytest.raises(UsageError, match="has one example only"):
        write_example(GRAPHS, tmp_path / "x", "novel")


def test_nothing_in_a_scenario_is_left_out_of_a_package() -> None:
    """What Git ignores is not in a wheel."""
    root = Path(__file__).parents[3]
    ignored = [line.strip("/") for line in (root / ".gitignore").read_text().splitlines() if not line.startswith("*")]
    for path in (root / "src/ripstop/styles/blackboard").rglob("*"):
        assert not {*path.parts} & {one for one in ignored if re.fullmatch(r"[\w.-]+", one)} - {"__pycache__"}, path
