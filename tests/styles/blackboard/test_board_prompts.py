"""Prompts: who the agents are, and what the beginning of a file says about them."""

from pathlib import Path

import pytest

from tests.styles.blackboard.board_definitions import board, checked, policy, read, wrong


def prompt(root: Path, name: str, text: str) -> Path:
    (root / "memory" / "prompts" / f"subagent_prompt_{name}.md").write_text(text, encoding="utf-8")
    return root


@pytest.mark.req("S4-73")
def test_scenario_prompts_beside_mains_are_not_agents(tmp_path: Path) -> None:
    root = board(tmp_path, agents=("main", "cook", "taster", "main_feast", "MAIN_fast"))
    assert [one.name for one in read(root).agents] == ["COOK", "TASTER"]


@pytest.mark.req("S4-64")
def test_a_new_agent_needs_a_prompt_only(tmp_path: Path) -> None:
    root = board(tmp_path, agents=("main", "cook", "taster", "dish-washer", "厨师"))
    assert [one.name for one in read(root).agents] == ["COOK", "DISH-WASHER", "TASTER", "厨师"]


@pytest.mark.req("S4-27")
def test_case_does_not_matter_in_names(tmp_path: Path) -> None:
    rules = {**policy()["report_rules"], "apply_to": ["cook", "Taster"]}
    found = read(board(tmp_path, policy(report_rules=rules), agents=("Main", "COOK", "taster")))
    assert next((one.name, one.report) for one in found.agents) == ("COOK", "reports/report_COOK.md")


def test_the_beginning_of_a_prompt_sets_model_tools_and_workflow(tmp_path: Path) -> None:
    root = prompt(board(tmp_path), "cook", "---\nmodel: local\ntools: [read_file]\n---\n\nCook.\n---\nWell.\n")
    prompt(root, "taster", "\ufeff---\r\nworkflow: tasting\r\n---\r\n")
    cook, taster = read(root).agents
    assert (cook.model, cook.tools, cook.workflow, cook.prompt) == ("local", ("read_file",), "", "Cook.\n---\nWell.")
    assert (taster.workflow, taster.tools, taster.prompt) == ("tasting", None, "")


@pytest.mark.parametrize("beginning", ["", "---\n---\n", "---\n\n---\n", "---\ntools:\n---\n"])
def test_the_beginning_may_say_nothing(tmp_path: Path, beginning: str) -> None:
    cook = read(prompt(board(tmp_path), "cook", f"{beginning}Cook.")).agents[0]
    assert (cook.prompt, cook.model, cook.tools) == ("Cook.", "", None)


def test_no_tools_are_not_all_tools(tmp_path: Path) -> None:
    assert read(prompt(board(tmp_path), "cook", "---\ntools: []\n---\nCook.")).agents[0].tools == ()


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("cook", "", "cook.md:1:1: error: the prompt of COOK is empty"),
        ("cook", "---\nmodel: x\n", "cook.md:1:1: error: the line --- opens a part that never ends"),
        ("cook", "---\njust words\n---\nCook.", "cook.md:2:1: error: the beginning of a prompt must be a mapping"),
        ("cook", "---\nmodel: 5\n---\nCook.", "cook.md:2:8: error: 'model' must be text"),
        ("cook", "---\ntools: read_file\n---\nCook.", "cook.md:2:8: error: 'tools' must be a list"),
        ("cook", "---\ntools: [5]\n---\nCook.", "cook.md:2:9: error: a tool must be a name"),
        ("cook", "---\na: [\n---\nCook.", "cook.md:3:1: error:"),
        ("main", "---\nworkflow: x\n---\nDecide.", "main.md:2:1: error: a workflow cannot be MAIN"),
        ("user", "Hello.", "an agent cannot be called USER"),
        ("finish", "Hello.", "an agent cannot be called FINISH"),
        ("a b", "Hello.", "the name of an agent has letters"),
        ("Cook", "Hello.", "subagent_prompt_Cook.md is the prompt of COOK as well"),
    ],
)
def test_what_is_wrong_with_a_prompt_is_told_with_its_place(tmp_path: Path, name: str, text: str, said: str) -> None:
    assert said in wrong(prompt(board(tmp_path), name, text))


def test_unknown_keys_of_a_prompt_are_warnings(tmp_path: Path) -> None:
    found = checked(prompt(board(tmp_path), "cook", "---\nmodle: x\n---\nCook."))
    assert [(one.severity, one.place.line, one.hint) for one in found] == [("warning", 2, "did you mean 'model'?")]


def test_a_prompt_that_is_not_text_is_refused(tmp_path: Path) -> None:
    root = board(tmp_path)
    (root / "memory/prompts/subagent_prompt_cook.md").write_bytes("Koch: Grüße".encode("utf-16"))
    assert "cook.md:1:1: error: this is not UTF-8 text" in wrong(root)
    assert "apply_to" not in wrong(root)
