"""A folder as a board: recognised, read, checked, and pinned."""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from ripstop.app.plugins import BUILT_IN, Plugins
from ripstop.app.start import workspace_for
from ripstop.definitions.loading import find
from ripstop.definitions.problems import WrongDefinition
from ripstop.definitions.reader import Environment, ModelProblem
from ripstop.kernel.errors import UsageError
from ripstop.styles.blackboard.definition import Board, Gate, Specialist
from ripstop.styles.blackboard.kit import KIT
from ripstop.styles.blackboard.reader import READER
from tests.styles.blackboard.board_definitions import board, checked, policy, read, wrong

PROMPTS = "memory/prompts"
POLICY = "memory/verification_policy.json"


@pytest.mark.req("S4-9", "S4-10", "S4-11", "S4-12", "S4-13", "S4-14")
def test_policy_prompts_and_plan_become_a_board(tmp_path: Path) -> None:
    root = board(tmp_path / "kitchen")
    found = read(root)
    assert (found.name, found.folder, found.plan) == ("kitchen", str(root.resolve()), "memory/dev_plan.md")
    assert (found.main.name, found.main.prompt) == ("MAIN", "You are main.")
    assert [(one.name, one.file, one.report) for one in found.agents] == [
        ("COOK", "cook", "reports/report_cook.md"),
        ("TASTER", "taster", "reports/report_taster.md"),
    ]
    assert found.files == (POLICY, *(f"{PROMPTS}/subagent_prompt_{name}.md" for name in ("main", "cook", "taster")))
    assert checked(root) == []


@pytest.mark.parametrize("named", ["kitchen", "kitchen/memory", f"kitchen/{POLICY}", "kitchen/"])
def test_the_folder_can_be_named_by_its_parts(tmp_path: Path, named: str) -> None:
    board(tmp_path / "kitchen")
    found = find(Plugins(BUILT_IN).readers, named, beside=tmp_path)
    assert (found.style, found.name) == ("blackboard", "kitchen")


def test_the_folder_can_be_named_from_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    board(tmp_path / "kitchen")
    monkeypatch.chdir(tmp_path / "kitchen" / "memory")
    for named in (".", "verification_policy.json"):
        found = READER.find(Path(named))
        assert found is not None and found.resolve().name == "kitchen"
        assert read(found).files[0] == POLICY


def test_other_folders_and_files_are_not_boards(tmp_path: Path) -> None:
    (tmp_path / "prompts").mkdir()
    (tmp_path / "memory").mkdir()
    (tmp_path / "a.json").write_text("{}")
    (tmp_path / "verification_policy.json").write_text("{}")
    for name in (".", "prompts", "memory", "a.json", "verification_policy.json", "nowhere"):
        assert READER.find(tmp_path / name) is None, name
    graph = board(tmp_path / "graph")
    (graph / "workflow.yaml").write_text("name: graph")
    assert READER.find(graph) is None


def test_every_board_in_a_folder_is_found(tmp_path: Path) -> None:
    board(tmp_path / "a" / "one")
    board(tmp_path / "b")
    (tmp_path / "verification_policy.json").write_text("{}")
    assert READER.find_all(tmp_path) == [tmp_path / "a" / "one", tmp_path / "b"]


@pytest.mark.req("S4-50", "S4-74")
@pytest.mark.parametrize(
    ("missing", "said"),
    [
        (POLICY, f"{POLICY}:1:1: error: there is no such file"),
        (f"{PROMPTS}/subagent_prompt_main.md", "subagent_prompt_main.md:1:1: error: there is no such file"),
        ("memory/dev_plan.md", "memory/dev_plan.md:1:1: error: there is no such file; it is the plan"),
        (f"{PROMPTS}/subagent_prompt_cook.md", f"'COOK' is in 'apply_to', but has no prompt: there is no {PROMPTS}/"),
    ],
)
def test_a_missing_file_is_named(tmp_path: Path, missing: str, said: str) -> None:
    root = board(tmp_path)
    os.remove(root / missing)
    assert said in wrong(root)


def test_an_agent_without_prompt_is_shown_at_its_place(tmp_path: Path) -> None:
    text = '{"report_rules": {"apply_to": ["COOK",\n "TASTR"], "require_verdict": true, "verdict_prefix": "V:",\n'
    text += '"verdict_allowed": ["A"], "blocker_prefix": "B:", "blocker_clear_value": "-"}}'
    said = wrong(board(tmp_path, text))
    assert f"{POLICY}:2:2: error: 'TASTR' is in 'apply_to'" in said
    assert f"{PROMPTS}/subagent_prompt_tastr.md; did you mean 'TASTER'?" in said


def test_everything_that_is_missing_is_told_at_once(tmp_path: Path) -> None:
    root = board(tmp_path, policy(gates=[{"gate": "befor"}], max_iterations=0), agents=("cook",))
    os.remove(root / "memory" / "dev_plan.md")
    said = wrong(root)
    for part in ("'befor'", "'max_iterations'", "'TASTER'", "subagent_prompt_main.md", "dev_plan.md"):
        assert part in said, part


def test_a_board_needs_somebody_to_call(tmp_path: Path) -> None:
    root = board(tmp_path, policy(report_rules={**policy()["report_rules"], "apply_to": []}), agents=("main",))
    assert "MAIN has nobody to call" in wrong(root)


def test_history_and_reports_may_be_missing_or_there(tmp_path: Path) -> None:
    root = board(tmp_path)
    (root / "memory" / "project_history.md").write_text("# History\n")
    (root / "reports").mkdir()
    assert checked(root) == []


@pytest.mark.req("S4-9")
def test_the_plan_can_have_another_name(tmp_path: Path) -> None:
    root = board(tmp_path, policy(settings={"plan": "memory/menu.md"}), plan="menu.md")
    assert read(root).plan == "memory/menu.md"
    os.remove(root / "memory" / "menu.md")
    assert "memory/menu.md:1:1: error: there is no such file" in wrong(root)


@pytest.mark.parametrize("plan", ["../plan.md", "/etc/hosts", "", "a//b", "reports/report_cook.md", POLICY])
def test_a_plan_elsewhere_is_refused(tmp_path: Path, plan: str) -> None:
    assert "plan" in wrong(board(tmp_path, policy(plan=plan)))


def test_a_misspelt_key_is_named_beside_the_one_that_is_missing(tmp_path: Path) -> None:
    rules = {**policy()["report_rules"], "blockers_clear_value": "none"}
    del rules["blocker_clear_value"]
    told = wrong(board(tmp_path, policy(report_rules=rules)))
    assert "'report_rules' has no 'blocker_clear_value'" in told
    assert "warning: 'report_rules' has no field 'blockers_clear_value', so it is ignored; did you mean" in told


def test_what_prompts_name_is_looked_up(tmp_path: Path) -> None:
    root = board(tmp_path)
    prompts = root / PROMPTS
    (prompts / "subagent_prompt_cook.md").write_text("---\nmodel: nope\ntools: [read_file, fry]\n---\nCook.\n")
    (prompts / "subagent_prompt_taster.md").write_text("---\nworkflow: tasting\n---\n")
    environment = Environment(
        about_model=lambda name: ModelProblem(f"there is no model {name}") if name == "nope" else None,
        about_workflow=lambda name: f"There is no workflow {name!r}",
        tools=("read_file",),
    )
    assert [str(one).partition("prompt_")[2].partition(";")[0] for one in checked(root, environment)] == [
        "cook.md:2:8: error: there is no model nope",
        "cook.md:3:20: warning: there is no tool 'fry' here",
        "taster.md:2:11: error: There is no workflow 'tasting'",
    ]
    found = checked(root, replace(environment, about_model=None, about_workflow=None))
    assert ["there is no tool 'fry' here" in one.text for one in found] == [True]


@pytest.mark.parametrize(
    "change",
    [
        {"folder": "kitchen"},
        {"files": ("../x",)},
        {"plan": "/etc/hosts"},
        {"agents": ()},
        {"agents": (Specialist("COOK", "p", "../cook"),)},
        {"agents": (Specialist("FINISH", "p", "finish"),)},
        {"main": Specialist("COOK", "p", "cook")},
        {"guards": {"patience": -1}},
        {"guards": {"x": 1}},
    ],
)
def test_a_pinned_board_that_no_folder_has_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    good = read(board(tmp_path))
    with pytest.raises(WrongDefinition):
        READER.check_pinned(replace(good, **change))


def test_a_pinned_policy_that_no_file_has_is_refused(tmp_path: Path) -> None:
    good = read(board(tmp_path, policy(gates=[{"gate": "min_number", "prefix": "salt:", "number": 0}])))
    rules = good.policy.report_rules

    def refused(bad: Board) -> bool:
        with pytest.raises(WrongDefinition):
            READER.check_pinned(bad)
        return True

    assert refused(replace(good, policy=replace(good.policy, max_iterations=0)))
    assert refused(replace(good, policy=replace(good.policy, gates=(Gate("min_number"),))))
    assert refused(replace(good, policy=replace(good.policy, report_rules=replace(rules, verdict_prefix=" "))))
    assert refused(replace(good, policy=replace(good.policy, report_rules=replace(rules, apply_to=("GONE",)))))


@pytest.mark.parametrize(
    "part",
    [
        "memory",
        "memory/prompts",
        "memory/verification_policy.json",
        "memory/prompts/subagent_prompt_cook.md",
        "memory/prompts/subagent_prompt_main.md",
        "memory/dev_plan.md",
    ],
)
def test_a_part_of_the_definition_behind_a_link_is_refused_by_name(tmp_path: Path, part: str) -> None:
    root = board(tmp_path / "kitchen")
    (root / part).rename(tmp_path / "elsewhere")
    (root / part).symlink_to(tmp_path / "elsewhere")
    name = Path(part).name
    assert f"{root / part}:1:1: error: {name!r} is a symbolic link" in wrong(root)
    assert [problem.text for problem in checked(root) if "symbolic link" in problem.text]


def test_a_workspace_behind_a_link_is_used_only_if_the_user_names_it(tmp_path: Path) -> None:
    root, elsewhere = board(tmp_path / "kitchen"), tmp_path / "elsewhere"
    assert workspace_for(KIT.style, read(root), "r", None) == root / "workspace"
    elsewhere.mkdir()
    (root / "workspace").symlink_to(elsewhere)
    with pytest.raises(UsageError, match=r"workspace is a symbolic link to .*--workspace DIR"):
        workspace_for(KIT.style, read(root), "r", None)
    assert workspace_for(KIT.style, read(root), "r", root / "workspace") == elsewhere
