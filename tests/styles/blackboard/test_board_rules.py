"""Overlays on other policies, and sections of rules that become gates."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

import ripstop
from ripstop.definitions.problems import WrongDefinition
from ripstop.styles.blackboard.definition import Gate
from ripstop.styles.blackboard.policy_reader import PolicyRead, read_policy, shipped, shipped_rule_keys
from tests.styles.blackboard.board_definitions import RULES, policy

SHORT = {"report_rules": {"apply_to": ["OUTLINE"], "verdict_allowed": ["APPROVED", "BLOCKED"]}}

UNLESS = ("test_required: no", "test_required: false", "测试：不需要")


def written(folder: Path, what: Any, name: str = "p.json") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(what, ensure_ascii=False), encoding="utf-8")
    return folder / name


def read(folder: Path, what: Any) -> PolicyRead:
    return read_policy(written(folder, what))


def wrong(folder: Path, what: Any) -> str:
    with pytest.raises(WrongDefinition) as raised:
        read(folder, what)
    return str(raised.value)


@pytest.mark.req("S4-39", "S4-37", "S4-63")
@pytest.mark.parametrize(
    ("base", "prefixes"), [("base", ("结论：", "阻塞：", "无")), ("base-en", ("Verdict:", "Blockers:", "none"))]
)
def test_the_short_form_is_complete_on_a_shipped_base(tmp_path: Path, base: str, prefixes: tuple[str, ...]) -> None:
    found = read(tmp_path, {"extends": base, **SHORT})
    rules = found.policy.report_rules
    assert (rules.verdict_prefix, rules.blocker_prefix, rules.blocker_clear_value) == prefixes
    assert rules.require_verdict and rules.verdict_allowed == ("APPROVED", "BLOCKED")
    assert found.policy.gates == () and found.warnings == ()


@pytest.mark.req("S4-39", "S4-6")
def test_the_short_form_alone_is_refused(tmp_path: Path) -> None:
    said = wrong(tmp_path, SHORT)
    for key in ("require_verdict", "verdict_prefix", "blocker_prefix", "blocker_clear_value"):
        assert f"'report_rules' has no {key!r}" in said
    assert '"extends"' in said


def test_main_sees_the_whole_policy_of_an_overlay(tmp_path: Path) -> None:
    text = read(tmp_path, {"extends": "base", **SHORT}).text
    seen = json.loads(text)
    assert seen["report_rules"]["verdict_prefix"] == "结论：" and "结论：" in text
    assert seen["report_rules"]["apply_to"] == ["OUTLINE"] and "rule_keys" not in seen
    own = tmp_path / "own" / "p.json"
    assert read(tmp_path / "own", policy()).text == own.read_text()


def test_an_overlay_wins_key_by_key_and_replaces_lists(tmp_path: Path) -> None:
    written(
        tmp_path / "shared", {**policy(max_iterations=5, gates=[{"gate": "forbid_line", "prefix": "x:"}])}, "b.json"
    )
    middle = {"extends": "b.json", "settings": {"max_iterations": 6, "recent_reports": 1}}
    written(tmp_path / "shared", middle, "m.json")
    found = read(
        tmp_path / "memory",
        {"extends": "../shared/m.json", "report_rules": {"apply_to": ["TASTER"]}, "max_iterations": 7, "gates": []},
    )
    assert found.policy.report_rules.apply_to == ("TASTER",) and found.policy.report_rules.verdict_prefix == "Verdict:"
    assert (found.policy.max_iterations, found.policy.recent_reports, found.policy.gates) == (7, 1, ())
    assert [path.name for path in found.files] == ["p.json", "m.json", "b.json"]


def test_an_error_in_another_file_is_told_there(tmp_path: Path) -> None:
    written(tmp_path, policy(max_iterations=0), "b.json")
    assert f"{tmp_path}/b.json:1:" in wrong(tmp_path, {"extends": "b.json"})


@pytest.mark.parametrize(
    ("extends", "said"),
    [
        ("bass", "1:13: error: there is no shipped policy 'bass'; did you mean 'base'?"),
        ("", "1:13: error: 'extends' must be the name of a policy or a file"),
        (5, "1:13: error: 'extends' must be the name of a policy or a file"),
        ("gone.json", "the policy 'gone.json' cannot be extended: there is no such file"),
        ("p.json", "the policy extends itself, by way of 'p.json'"),
        ("./p.json", "the policy extends itself"),
        ("round.json", "the policy extends itself, by way of 'p.json'"),
        ("/etc/hosts", "relative to its own folder"),
        ("c0.json", "more than 10 policies extend one another"),
        ("../", "cannot be extended"),
        ("x\0.json", "1:13: error: 'extends' has a character"),
        ("loop.json", "cannot be extended"),
    ],
)
def test_what_cannot_be_extended_is_told_at_its_place(tmp_path: Path, extends: Any, said: str) -> None:
    written(tmp_path, {"extends": "p.json"}, "round.json")
    (tmp_path / "loop.json").symlink_to("loop.json")
    for number in range(12):
        written(tmp_path, {"extends": f"c{number + 1}.json"}, f"c{number}.json")
    assert said in wrong(tmp_path, {"extends": extends, **policy()})


@pytest.mark.parametrize(
    "extends", ["../secret.json", "../../secret.json", "link.json", "deep/link.json", "folder/secret.json"]
)
def test_a_policy_extends_no_file_outside_of_the_boards_folder(tmp_path: Path, extends: str) -> None:
    secret = policy(description="secret")
    written(tmp_path, secret, "secret.json")
    for folder in (tmp_path / "policies", tmp_path / "board" / "memory"):
        (folder / "deep").mkdir(parents=True)
        (folder / "folder").symlink_to(tmp_path)
        for link in ("link.json", "deep/link.json"):
            (folder / link).symlink_to(tmp_path / "secret.json")
    if extends != "../secret.json":  # a board's policy may extend files beside memory/
        assert_refused(tmp_path / "board" / "memory", extends, tmp_path / "board")
    assert_refused(tmp_path / "policies", extends, tmp_path / "policies")


def test_a_policy_extends_no_hard_link_to_a_file_elsewhere(tmp_path: Path) -> None:
    written(tmp_path, policy(description="secret"), "secret.json")
    (tmp_path / "policies").mkdir()
    os.link(tmp_path / "secret.json", tmp_path / "policies" / "hard.json")
    said = wrong(tmp_path / "policies", {"extends": "hard.json", **SHORT})
    assert "it is a hard link" in said and "description" not in said


def assert_refused(folder: Path, extends: str, within: Path) -> None:
    said = wrong(folder, {"extends": extends, **SHORT})
    assert f"p.json:1:13: error: {extends!r} is outside of the folder {str(within)!r}" in said
    assert "description" not in said


# Rules


@pytest.mark.req("S4-33", "S4-34", "S4-35", "S4-70")
def test_rules_of_the_original_become_gates_without_a_base(tmp_path: Path) -> None:
    rules = {"test_first": True, "test_required_gate": True, "min_coverage": 80}
    allowed = {**RULES, "verdict_allowed": ["PASS", "FAIL"]}
    found = read(tmp_path, policy(report_rules=allowed, tdd_rules=rules))
    assert found.policy.gates == (
        Gate("before", "test_first", first="TEST", then="DEV", per_task=True, unless=UNLESS),
        Gate(
            "finish_needs",
            "test_required_gate",
            ("TEST",),
            ("PASS",),
            on_failure="tell",
            per_task=True,
            after=("DEV",),
            unless=UNLESS,
        ),
        Gate("min_number", "min_coverage", verdicts=("PASS",), prefix="coverage:", number=80.0, also=("覆盖率：",)),
        Gate("min_number", "min_coverage", ("TEST",), ("PASS",), "coverage:", (), 80.0, True, also=("覆盖率：",)),
        Gate("max_number", "min_coverage", verdicts=("PASS",), prefix="coverage:", number=100.0, also=("覆盖率：",)),
    )
    assert found.warnings == ()


@pytest.mark.parametrize("off", [False, None])
def test_a_rule_can_be_switched_off(tmp_path: Path, off: Any) -> None:
    written(tmp_path, policy(any_rules={"test_first": True, "min_coverage": 80}), "b.json")
    found = read(tmp_path, {"extends": "b.json", "any_rules": {"test_first": off}})
    assert {gate.name for gate in found.policy.gates} == {"min_coverage"}


def test_a_policy_can_have_rules_of_its_own(tmp_path: Path) -> None:
    keys = {
        "salted": {"gate": "require_line", "prefix": "salt:", "allowed": "$value"},
        "hot": [{"gate": "min_number", "name": "heat", "prefix": "degrees:", "number": "$value"}],
        "min_coverage": {"gate": "min_number", "prefix": "covered:", "number": "$value"},
    }
    rules = {"salted": ["yes"], "hot": 60.5, "min_coverage": 1}
    found = read(tmp_path, policy(rule_keys=keys, kitchen_rules=rules))
    assert found.policy.gates == (
        Gate("require_line", "salted", prefix="salt:", allowed=("yes",)),
        Gate("min_number", "heat", prefix="degrees:", number=60.5),
        Gate("min_number", "min_coverage", prefix="covered:", number=1.0),
    )


def test_zero_is_a_value_and_not_off(tmp_path: Path) -> None:
    (first,) = read(tmp_path, policy(logic_rules={"max_contradictions": 0})).policy.gates
    assert (first.gate, first.number) == ("max_number", 0.0)


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ({"a_rules": {"min_coverage": "80"}}, "'number' must be a number, but this is text"),
        ({"a_rules": {"min_coverage": True}}, "'number' must be a number, but this is true or false"),
        ({"a_rules": {"test_first": 5}}, "'test_first' must be true or false, but this is a whole number"),
        ({"a_rules": []}, "'a_rules' must be an object, but this is a list"),
        ({"rule_keys": []}, "'rule_keys' must be an object"),
        ({"rule_keys": {"x": 5}, "a_rules": {"x": True}}, "a gate must be an object, but this is a whole number"),
        ({"rule_keys": {"x": {"gate": "soup"}}, "a_rules": {"x": True}}, "there is no gate 'soup'"),
    ],
)
def test_wrong_rules_are_errors(tmp_path: Path, others: Any, said: str) -> None:
    assert said in wrong(tmp_path, policy(**others))


def test_a_wrong_value_is_told_where_its_author_wrote_it(tmp_path: Path) -> None:
    text = json.dumps(policy(a_rules={"min_coverage": "x"}))
    column = text.index('"x"') + 1
    assert f"p.json:1:{column}: error: 'number'" in wrong(tmp_path, policy(a_rules={"min_coverage": "x"}))


def test_an_unknown_rule_is_a_warning_with_a_guess(tmp_path: Path) -> None:
    found = read(tmp_path, policy(a_rules={"min_coverag": 80}))
    assert [(one.severity, one.hint) for one in found.warnings] == [("warning", "did you mean 'min_coverage'?")]


# Where the field of work is


@pytest.mark.req("S4-5", "S4-8", "S4-64", "S4-68")
def test_no_code_knows_a_field_of_work() -> None:
    fields = re.compile(r"\b(?:TEST|DEV|REVIEW|TDD|tdd_rules|novel)\b")
    sources = Path(ripstop.__file__).parent.rglob("*.py")
    assert [str(path) for path in sources if fields.search(path.read_text(encoding="utf-8"))] == []


def test_every_shipped_rule_is_a_gate(tmp_path: Path) -> None:
    assert shipped() == ["base", "base-en"]
    rules = {key: 1 if "$value" in str(entry.value) else True for key, entry in shipped_rule_keys().items()}
    found = read(tmp_path, policy(all_rules=rules))
    assert {gate.name for gate in found.policy.gates} == set(rules)
