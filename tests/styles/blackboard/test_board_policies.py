"""What a policy says: report rules, gates, evidence, settings, and keys of its own."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripstop.definitions.problems import WrongDefinition
from ripstop.styles.blackboard.definition import Evidence, EvidenceKind, Gate, ReportRules
from ripstop.styles.blackboard.policy_reader import read_policy
from ripstop.styles.blackboard.schema import POLICY_SCHEMA, REQUIRED_RULES
from tests.styles.blackboard.board_definitions import RULES, board, checked, policy, read, wrong


def without(key: str) -> dict[str, Any]:
    return policy(report_rules={name: value for name, value in RULES.items() if name != key})


def with_rules(**rules: Any) -> dict[str, Any]:
    return policy(report_rules={**RULES, **rules})


@pytest.mark.req("S4-27", "S4-28", "S4-29", "S4-30", "S4-31", "S4-32")
def test_report_rules_are_read_as_they_are_written(tmp_path: Path) -> None:
    rules = read(board(tmp_path)).policy.report_rules
    assert rules == ReportRules(("COOK", "TASTER"), True, "Verdict:", ("GOOD", "BAD"), "Blockers:", "none")


@pytest.mark.req("S4-3", "S4-6", "S4-39", "S4-74")
@pytest.mark.parametrize("key", REQUIRED_RULES)
def test_a_missing_key_is_an_error_that_names_it(tmp_path: Path, key: str) -> None:
    for written in (without(key), with_rules(**{key: None})):
        said = wrong(board(tmp_path, written))
        assert f"verification_policy.json:2:18: error: 'report_rules' has no {key!r}" in said


@pytest.mark.parametrize("written", [{}, {"report_rules": None}, {"tdd": {}}])
def test_a_policy_without_report_rules_is_refused(tmp_path: Path, written: Any) -> None:
    assert "the policy has no 'report_rules'" in wrong(board(tmp_path, written))


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (with_rules(apply_to="COOK"), "'apply_to' must be a list, but this is text; write [ … ]"),
        (with_rules(apply_to=["COOK", 5]), "'apply_to' must hold text, but this is a whole number"),
        (with_rules(require_verdict="yes"), "'require_verdict' must be true or false"),
        (with_rules(verdict_allowed=[]), "'verdict_allowed' is empty"),
        (with_rules(verdict_allowed=["GOOD "]), "remove the blanks around it"),
        (with_rules(blocker_clear_value="none "), "remove the blanks around it"),
        (with_rules(apply_to=["COOK", "main"]), "MAIN is in 'apply_to', but decides and does not report"),
        (with_rules(verdict_prefix=""), "'verdict_prefix' holds a blank text"),
        (with_rules(verdict_prefix="a\nb"), "of several lines"),
        (with_rules(blocker_prefix="Verdict："), "'blocker_prefix' and 'verdict_prefix' are the same"),
        (with_rules(blocker_prefix="VERDICT:"), "'blocker_prefix' and 'verdict_prefix' are the same"),
        (with_rules(verdict_pick="first"), "there is no verdict_pick 'first'"),
        (policy(report_rules=[]), "'report_rules' must be an object, but this is a list"),
        (policy(max_iterations=0), "'max_iterations' must be from 1 to 1000000, but this is 0"),
        (policy(max_iterations=1.5), "'max_iterations' must be a whole number"),
        (policy(recent_reports=True), "'recent_reports' must be a whole number"),
        (policy(recent_history=-1), "'recent_history' must be from 0"),
        (policy(max_report_chars="many"), "'max_report_chars' must be a whole number"),
        (policy(main_retries=1000), "'main_retries' must be from 0 to 100"),
        (policy(main_json="loose"), "there is no main_json 'loose'"),
        (policy(settings=[]), "'settings' must be an object"),
        (policy(settings={"main_json": "last"}, main_json="strict"), "'main_json' is also outside of 'settings'"),
        (policy(guards={"patience": -1}), "'patience' must be from 0"),
        (policy(done_statuses="DONE"), "'done_statuses' must be a list"),
        (policy(version=[]), "'version' must be"),
        (policy(gates={}), "'gates' must be a list, but this is an object"),
        (policy(gates=[1]), "a gate must be an object"),
        (policy(gates=[{}]), "there is no 'gate' that says what is checked"),
        (policy(gates=[{"gate": "before", "first": "COOK"}]), "a gate 'before' needs 'then'"),
        (policy(gates=[{"gate": "min_number", "prefix": "a:"}]), "a gate 'min_number' needs 'number'"),
        (policy(gates=[{"gate": "min_number", "prefix": "a:", "number": "9"}]), "'number' must be a number"),
        (policy(gates=[{"gate": "finish_needs", "agents": ["COOK"], "verdicts": []}]), "needs 'verdicts'"),
        (policy(gates=[{"gate": "forbid_line", "prefix": "a:", "on_failure": "x"}]), "there is no on_failure 'x'"),
        (policy(evidence=[{"evidence": "file"}]), "evidence of a file needs a 'path'"),
        (policy(evidence=[{"evidence": "quote", "line": "q:"}]), "an evidence 'quote' needs 'path'"),
        (policy(evidence=[{"evidence": "file", "path": "../x"}]), "'path' must be a file in the workspace"),
        (policy(evidence=[{"evidence": "file", "path": "x", "sha256": "1"}]), "must be 64 hexadecimal digits"),
        (
            policy(evidence=[{"evidence": "number", "path": "x", "at_least": 2, "at_most": 1}]),
            "'at_least' is more than 'at_most'",
        ),
        (policy(evidence=[{"evidence": "prayer"}]), "there is no evidence 'prayer'"),
        (policy(evidence=[{"evidence": "command"}]), "needs 'command'"),
        (policy(evidence=[{"evidence": "command", "command": []}]), "needs 'command'"),
        (policy(evidence=[{"evidence": "command", "command": "make"}]), "'command'"),
        (policy(evidence=[{"evidence": "command", "command": ["make"], "exit_code": 256}]), "from 0 to 255"),
    ],
)
def test_wrong_values_are_errors(tmp_path: Path, written: Any, said: str) -> None:
    assert said in wrong(board(tmp_path, written))


def test_settings_can_be_at_the_top_or_in_their_section(tmp_path: Path) -> None:
    given = {
        "max_iterations": 7,
        "recent_reports": 0,
        "recent_history": 5,
        "max_report_chars": 100,
        "main_json": "last",
        "main_retries": 2,
        "done_statuses": ["EATEN"],
        "guards": {"patience": 3},
    }
    top, section = (read(board(tmp_path, policy(**one))) for one in (given, {"settings": given}))
    assert top.policy == section.policy and top.guards == section.guards == {"patience": 3}
    assert (top.policy.max_iterations, top.policy.main_json, top.policy.done_statuses) == (7, "last", ("EATEN",))


def test_the_pick_of_verdicts_can_be_at_the_top(tmp_path: Path) -> None:
    for written in (policy(verdict_pick="last"), with_rules(verdict_pick="last")):
        assert read(board(tmp_path, written)).policy.report_rules.verdict_pick == "last"
    both = {**with_rules(verdict_pick="last"), "verdict_pick": "one"}
    assert "'verdict_pick' is also in 'report_rules'" in wrong(board(tmp_path, both))


def test_gates_and_evidence_are_read_in_order(tmp_path: Path) -> None:
    written = policy(
        gates=[
            {"gate": "require_line", "name": "salted", "prefix": "salt:", "allowed": ["yes"], "agents": ["cook"]},
            {"gate": "max_number", "prefix": "minutes:", "number": 0, "required": True, "on_failure": "tell"},
            {"gate": "before", "first": "COOK", "then": "TASTER", "marked": "hot"},
            {"gate": "finish_needs_plan", "name": "eaten", "statuses": ["EATEN"]},
            {"gate": "no_open_blockers", "agents": ["COOK"], "on_failure": "tell"},
        ],
        evidence=[
            {"evidence": "file", "line": "dish:", "verdicts": ["GOOD"]},
            {"evidence": "number", "path": "{agent}/scale.txt", "prefix": "grams:", "at_least": 1},
            {"evidence": "quote", "line": "recipe:", "path": "collab/recipes.md", "on_failure": "stop"},
        ],
    )
    found = read(board(tmp_path, written)).policy
    assert found.gates == (
        Gate("require_line", "salted", ("cook",), prefix="salt:", allowed=("yes",)),
        Gate("max_number", "max_number", prefix="minutes:", required=True, on_failure="tell"),
        Gate("before", "before", first="COOK", then="TASTER", marked="hot", per_task=True),
        Gate("finish_needs_plan", "eaten", statuses=("EATEN",)),
        Gate("no_open_blockers", "no_open_blockers", ("COOK",), on_failure="tell"),
    )
    assert found.evidence == (
        Evidence(EvidenceKind.FILE, "file", verdicts=("GOOD",), line="dish:"),
        Evidence(EvidenceKind.NUMBER, "number", path="{agent}/scale.txt", prefix="grams:", at_least=1.0),
        Evidence(EvidenceKind.QUOTE, "quote", path="collab/recipes.md", line="recipe:", on_failure="stop"),
    )


def test_unknown_keys_are_warnings_with_a_guess(tmp_path: Path) -> None:
    written = {
        **with_rules(verdict_alowed=["GOOD"]),
        "max_iteration": 5,
        "kitchen_hours": {"from": 9},
        "parsing_rules": {"use_defaults_on_failure": True},
        "settings": {"recent_report": 1},
        "gates": [{"gate": "forbid_line", "prefix": "mould:", "number": 3}],
        "guards": {"patients": 3},
    }
    found = checked(board(tmp_path, written))
    assert {one.severity for one in found} == {"warning"}
    said = "\n".join(map(str, found))
    for key, guess in (
        ("verdict_alowed", "verdict_allowed"),
        ("max_iteration", "max_iterations"),
        ("recent_report", "recent_reports"),
        ("patients", "patience"),
    ):
        assert f"has no field {key!r}, so it is ignored; did you mean {guess!r}?" in said
    assert "'kitchen_hours'" in said and "'parsing_rules' is ignored" in said and "has no field 'number'" in said
    assert len(found) == 7 and read(tmp_path).policy.max_iterations == 50


def test_agents_and_verdicts_that_there_are_not_are_told(tmp_path: Path) -> None:
    gates = [
        {"gate": "finish_needs", "name": "clean", "agents": ["WASHER"], "verdicts": ["GOOD"], "if_reported": True},
        {"gate": "forbid_line", "name": "mould", "prefix": "mould:", "verdicts": ["GOD"]},
    ]
    found = checked(board(tmp_path, policy(gates=gates)))
    assert sorted(one.text for one in found) == [
        "'clean' is about 'WASHER', which has no prompt",
        "'mould' is about the verdict 'GOD', which is not in 'verdict_allowed'",
    ]
    never = policy(gates=[{"gate": "before", "name": "shop", "first": "BUYER", "then": "COOK"}])
    assert "COOK could never be called: the gate 'shop' wants a report of 'BUYER' first" in wrong(
        board(tmp_path, never)
    )


def test_a_gate_that_no_run_could_pass_is_an_error(tmp_path: Path) -> None:
    gates = [{"gate": "finish_needs", "name": "clean", "agents": ["WASHER"], "verdicts": ["GOOD"]}]
    assert "error: a run could never finish: the gate 'clean' wants a verdict of 'WASHER'" in wrong(
        board(tmp_path, policy(gates=gates))
    )


def test_the_schema_knows_every_field_that_is_read() -> None:
    rules = POLICY_SCHEMA["properties"]["report_rules"]["properties"]
    assert set(REQUIRED_RULES) <= set(rules)
    assert "command" in POLICY_SCHEMA["properties"]["evidence"]["items"]["properties"]["evidence"]["enum"]
    json.dumps(POLICY_SCHEMA)


# Hostile files


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "1:1: error: the file is empty"),
        (b"[]", "1:1: error: a policy must be an object, but this is a list"),
        (b"{} {}", "1:4: error: something follows the end"),
        (b'{"a": 1,}', "1:9: error: a key must be a text in double quotes; remove the comma"),
        (b'// hello\n{"a": 1}', "1:1: error: JSON has no comments"),
        (b'{\n\t"a": 1,\n\t"a": 2}', "3:2: error: the key 'a' is already in line 2"),
        ('{"a"：1}'.encode(), "1:5: error: ： is not :"),
        ('{"a": 1}'.encode("utf-16"), "1:1: error: this is not UTF-8 text"),
        ('{"a": 1}'.encode("utf-16-le"), "1:2: error: U+0000 is not allowed here"),
        (b'{"a":' * 200, "nested more than 40 deep"),
        (b"[" * 100_000, "nested more than 40 deep"),
        (b'{"a": [' + b"1," * 100_000 + b"1]}", "more than 20000 values"),
        (b'{"a": "' + b"x" * 1_000_001 + b'"}', "at most 1000000 are read"),
    ],
)
def test_a_file_that_is_not_json_says_where(tmp_path: Path, data: bytes, said: str) -> None:
    file = tmp_path / "p.json"
    file.write_bytes(data)
    with pytest.raises(WrongDefinition) as raised:
        read_policy(file)
    assert said in str(raised.value)


def test_a_byte_order_mark_and_windows_lines_are_fine(tmp_path: Path) -> None:
    file = tmp_path / "p.json"
    file.write_bytes(b"\xef\xbb\xbf" + json.dumps(policy(), indent=1).replace("\n", "\r\n").encode())
    assert read_policy(file).policy.report_rules.verdict_prefix == "Verdict:"


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
GOOD = policy(
    extends="base-en",
    version=1,
    settings={"max_iterations": 9, "plan": "memory/p.md", "guards": {"patience": 2}},
    gates=[{"gate": "min_number", "prefix": "a:", "number": 1}, {"gate": "before", "first": "COOK", "then": "TASTER"}],
    evidence=[{"evidence": "file", "path": "x", "sha256": "0" * 64}],
    rule_keys={"salted": {"gate": "require_line", "prefix": "salt:", "allowed": "$value"}},
    kitchen_rules={"salted": ["yes"], "min_coverage": 80},
)


@st.composite
def mutated(draw: st.DrawFn) -> Any:
    """A good policy with one part of it replaced, dropped or added."""
    whole = json.loads(json.dumps(GOOD))
    at: Any = whole
    while True:
        keys: list[Any] = list(at) if isinstance(at, dict) else list(range(len(at)))
        if not keys:
            return whole
        key = draw(st.sampled_from(keys))
        inside = at[key]
        if isinstance(inside, dict | list) and draw(st.booleans()):
            at = inside
            continue
        change = draw(st.sampled_from(["drop", "replace", "add"]))
        if change == "drop":
            del at[key]
        elif change == "replace":
            at[key] = draw(PLAIN)
        elif isinstance(at, dict):
            at[draw(st.text(max_size=8))] = draw(PLAIN)
        else:
            at.append(draw(PLAIN))
        return whole


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("policy") / "p.json"


@settings(max_examples=150)
@given(mutated())
def test_a_mutated_policy_is_read_or_refused(file: Path, written: Any) -> None:
    file.write_text(json.dumps(written), encoding="utf-8")
    try:
        read_policy(file)
    except WrongDefinition as error:
        assert error.problems and all(one.place.line >= 1 and one.text for one in error.problems)


@settings(max_examples=150)
@given(st.data())
def test_a_damaged_text_is_read_or_refused(file: Path, data: st.DataObject) -> None:
    text = json.dumps(GOOD, indent=1, ensure_ascii=False)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 20)))
    damaged = text[:start] + data.draw(st.text(alphabet='{}[]":,\\ \t\n\x00aé：', max_size=4)) + text[end:]
    file.write_text(damaged, encoding="utf-8")
    try:
        read_policy(file)
    except WrongDefinition as error:
        assert error.problems
