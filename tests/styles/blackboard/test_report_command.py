"""`ripstop board report`: one report, read by a policy."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from ripstop.faces.cli.main import cli
from ripstop.styles.blackboard.cli import check_report
from ripstop.styles.blackboard.definition import ReportRules
from ripstop.styles.blackboard.policy_reader import read_policy
from ripstop.styles.blackboard.report import read_report
from tests.styles.blackboard.board_definitions import RULES, policy

GOOD = "iteration: 3\nwords\nVerdict: GOOD\nBlockers: none\n"


def report(folder: Path, text: str | bytes, written: Any = None, *more: str) -> Result:
    file, by = folder / "report_cook.md", folder / "policy.json"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    by.write_text(json.dumps(written or policy()), encoding="utf-8")
    arguments = ["board", "report", str(file), "--policy", str(by), "--agent", "cook", *more]
    return CliRunner().invoke(cli, arguments)


def as_json(folder: Path, text: str | bytes, written: Any = None, *more: str) -> tuple[int, Any]:
    done = report(folder, text, written, "--json", *more)
    return done.exit_code, json.loads(done.stdout)


@pytest.mark.req("S4-18", "S4-19", "S4-25")
@pytest.mark.parametrize("text", [GOOD, GOOD.replace("\n", "\r\n"), "\ufeff" + GOOD, GOOD.replace(":", "：")])
def test_an_accepted_report_ends_with_0(tmp_path: Path, text: str) -> None:
    said = {"iteration": 3, "verdict": "GOOD", "blockers": ["none"], "clear": True, "problems": []}
    assert as_json(tmp_path, text) == (0, said)
    assert as_json(tmp_path, text, None, "--iteration", "3") == (0, said)


@pytest.mark.req("S4-21", "S4-22", "S4-23", "S4-26", "S4-36", "S4-74")
@pytest.mark.parametrize(
    ("text", "found", "place", "said"),
    [
        ("Verdict: GOOD\nBlockers: none", {"iteration": None}, (1, 1), "Report missing iteration (critical field)"),
        (GOOD.replace("3", "4"), {"iteration": 4}, (1, 12), "and the current one is 3 (line 1: 'iteration: 4')"),
        (GOOD.replace("GOOD", "FINE"), {"verdict": None}, (3, 10), "'FINE' is not allowed; allowed are GOOD, BAD"),
        ("iteration: 3\nBlockers: none", {"verdict": None}, (2, 1), "no verdict: a line 'Verdict:'"),
        ("iteration: 3\nVerdict: BAD", {"blockers": [], "clear": None}, (2, 1), "a line 'Blockers:' with 'none'"),
        (GOOD + "Verdict: BAD", {"verdict": None}, (5, 10), "several verdicts that differ: GOOD, BAD"),
    ],
)
def test_a_refused_report_ends_with_2(
    tmp_path: Path, text: str, found: dict[str, Any], place: tuple[int, int], said: str
) -> None:
    code, document = as_json(tmp_path, text, None, "--iteration", "3")
    assert code == 2 and set(document) == {"iteration", "verdict", "blockers", "clear", "problems"}
    assert {key: document[key] for key in found} == found
    (problem,) = document["problems"]
    assert set(problem) == {"line", "column", "text"} and (problem["line"], problem["column"]) == place
    assert said in problem["text"]


def test_blockers_are_listed_in_order(tmp_path: Path) -> None:
    text = GOOD.replace("Blockers: none", "Blockers: no salt\n  Blockers：no oil  ")
    code, document = as_json(tmp_path, text)
    assert (code, document["blockers"], document["clear"]) == (0, ["no salt", "no oil"], False)


def test_a_report_that_says_both_what_blocks_and_that_nothing_does_is_refused(tmp_path: Path) -> None:
    code, document = as_json(tmp_path, GOOD.replace("Blockers: none", "Blockers: none\nBlockers: no salt"))
    assert (code, document["clear"]) == (2, False)


@pytest.mark.req("S4-20", "S4-40")
def test_a_report_that_needs_no_verdict_may_leave_it_out(tmp_path: Path) -> None:
    relaxed = policy(report_rules={**RULES, "require_verdict": False})
    code, document = as_json(tmp_path, "iteration: 1", relaxed)
    assert (code, document["verdict"], document["clear"]) == (0, None, None)
    assert as_json(tmp_path, "iteration: 1\nVerdict: FINE", relaxed)[0] == 2


@pytest.mark.req("S4-20", "S4-27")
def test_of_agents_outside_the_rules_only_the_iteration_is_checked(tmp_path: Path) -> None:
    others = policy(report_rules={**RULES, "apply_to": ["TASTER"]})
    assert as_json(tmp_path, "iteration: 1", others)[0] == 0
    code, document = as_json(tmp_path, "iteration: 1\nVerdict: FINE\nBlockers:", others)
    assert (code, document["verdict"], document["blockers"], document["clear"]) == (0, None, [""], False)
    code, document = as_json(tmp_path, "iteration: 1\nVerdict: GOOD\nBlockers: no salt", others)
    assert (code, document["verdict"], document["blockers"]) == (0, "GOOD", ["no salt"])
    assert as_json(tmp_path, "Verdict: GOOD", others)[0] == 2


@pytest.mark.req("S4-35")
def test_gates_are_checked_as_well(tmp_path: Path) -> None:
    gates = policy(gates=[{"gate": "min_number", "name": "heat", "prefix": "degrees:", "number": 60}])
    code, document = as_json(tmp_path, GOOD + "degrees: 55 C", gates)
    assert code == 2 and document["verdict"] == "GOOD"
    assert "the gate 'heat' wants at least 60, and the report says 55" in document["problems"][0]["text"]
    assert document["problems"][0]["line"] == 5


def test_people_are_told_that_the_rules_do_not_apply_to_an_agent(tmp_path: Path) -> None:
    done = report(tmp_path, GOOD, policy(report_rules={**RULES, "apply_to": ["TASTER"]}))
    assert done.exit_code == 0 and "'cook' is not in 'apply_to', so only the iteration is needed." in done.stderr


def test_people_get_place_and_caret(tmp_path: Path) -> None:
    done = report(tmp_path, GOOD.replace("GOOD", "FINE"))
    file = tmp_path / "report_cook.md"
    assert done.exit_code == 2
    assert done.stdout.splitlines() == [
        "iteration  3",
        "verdict    none",
        "blockers   none",
        f"{file}:3:10: error: the verdict 'FINE' is not allowed; allowed are GOOD, BAD",
        "    Verdict: FINE",
        "             ^",
        f"{file}: refused.",
    ]
    assert report(tmp_path, GOOD).stdout.splitlines()[-1] == f"{file}: accepted."


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (GOOD.encode("utf-16"), "this is not UTF-8 text"),
        (GOOD.encode("utf-16-le"), "it holds a NUL"),
        (b"\x89PNG\r\n\x1a\n\x00", "this is not UTF-8 text"),
        (b"x" * 10_000_001, "at most 10000000 are read"),
    ],
)
def test_a_file_that_is_not_a_report_is_told(tmp_path: Path, data: bytes, said: str) -> None:
    code, document = as_json(tmp_path, data)
    assert (code, document["kind"]) == (2, "usage") and said in document["error"]


def test_missing_files_and_folders_are_told(tmp_path: Path) -> None:
    by = tmp_path / "policy.json"
    by.write_text(json.dumps(policy()))
    for file, said in ((tmp_path / "gone.md", "there is no such file"), (tmp_path, "it is a folder, not a file")):
        done = CliRunner().invoke(cli, ["board", "report", str(file), "--policy", str(by), "--agent", "cook"])
        assert done.exit_code == 2 and said in done.stderr
    done = CliRunner().invoke(cli, ["board", "report", str(by), "--policy", str(tmp_path / "x"), "--agent", "cook"])
    assert done.exit_code == 2 and f"{tmp_path / 'x'}:1:1: error: there is no such file" in done.stderr


def test_a_wrong_policy_is_told_with_its_place(tmp_path: Path) -> None:
    code, document = as_json(tmp_path, GOOD, {"report_rules": {**RULES, "verdict_prefix": 5}})
    assert (code, document["kind"]) == (2, "definition") and "'verdict_prefix' must hold text" in document["error"]


def test_no_prompts_are_needed(tmp_path: Path) -> None:
    (tmp_path / "r.md").write_text(GOOD)
    (tmp_path / "p.json").write_text(json.dumps(policy()))
    checked = check_report(tmp_path / "r.md", tmp_path / "p.json", "COOK", 3)
    assert checked.problems == () and read_policy(tmp_path / "p.json").policy.report_rules.apply_to == (
        "COOK",
        "TASTER",
    )


# Reports that are put together from parts

BASE = ReportRules(("COOK",), True, "结论：", ("PASS", "FAIL", "BLOCKED"), "阻塞：", "无")
WORDS = st.text("abc :：结论阻塞无PASS-#*`.\t", max_size=20).filter(
    lambda text: not re.search(r"(?:结论|阻塞)[\s*`]*[:：]|```", text)
)
COLON, BLANK = st.sampled_from([":", "："]), st.sampled_from(["", " ", "  ", "\t", "\u3000"])
INDENT = BLANK.filter(lambda blank: blank != "\t")  # it would be a block of code
BLOCKER = st.text("abc无 没有锅-(）", min_size=1, max_size=12).map(str.strip).filter(bool)


@st.composite
def reports(draw: st.DrawFn) -> tuple[str, int, str, list[str]]:
    number, verdict = draw(st.integers(0, 10**8)), draw(st.sampled_from(BASE.verdict_allowed))
    blockers = draw(st.lists(BLOCKER, min_size=1, max_size=4))

    def line(field: str, value: str) -> str:
        return f"{draw(INDENT)}{field}{draw(COLON)}{draw(BLANK)}{value}{draw(BLANK)}"

    fields = [line("iteration", str(number))] * draw(st.integers(1, 2))
    fields += [line("结论", verdict)] * draw(st.integers(1, 2)) + draw(
        st.lists(st.just("结论：见下文"), max_size=2)
    )  # lines without an allowed value do not count
    lines = draw(st.permutations(fields + draw(st.lists(WORDS, max_size=6))))
    where = sorted(draw(st.integers(0, len(lines))) for _ in blockers)
    for place, blocker in reversed(list(zip(where, blockers, strict=True))):
        lines = [*lines[:place], line("阻塞", blocker), *lines[place:]]
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    return newline.join(lines), number, verdict, blockers


@pytest.mark.req("S4-18", "S4-24", "S4-25")
@given(reports())
def test_fields_are_found_wherever_they_are(made: tuple[str, int, str, list[str]]) -> None:
    text, number, verdict, blockers = made
    found = read_report(text, BASE, "cook", number)
    is_contradictory = "无" in blockers and any(one != "无" for one in blockers)
    assert [one.field for one in found.problems] == ["blockers"] * is_contradictory
    assert (found.iteration, found.verdict, list(found.blockers)) == (number, verdict, blockers)
    assert found.clear == all(one == "无" for one in blockers)


@given(st.text(max_size=200), st.booleans())
def test_any_text_is_read(text: str, needed: bool) -> None:
    found = read_report(text, BASE, "COOK" if needed else "TASTER", 1)
    lines = max(1, len(text.splitlines()))
    assert all(1 <= one.line <= lines and one.column >= 1 and one.text for one in found.problems)
