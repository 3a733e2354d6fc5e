"""What lies beside a workflow is read only if it is there itself: a link could put any file into a prompt."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ripstop.app.plugins import installed
from ripstop.definitions.families import check
from ripstop.definitions.loading import find, locate_child, read
from ripstop.definitions.problems import WrongDefinition
from ripstop.definitions.reader import Environment, Readers
from ripstop.kernel.errors import DefinitionError
from ripstop.models.scripted import read_script
from tests.definitions.wrong_definitions import RIGHT

SECRET = "Rosebud is the sledge."
ANY = Environment(any_name=True)
GRAPH = {"workflow.yaml": RIGHT}
PIPELINE = {
    "pipeline.yaml": "name: p\nstages:\n  - name: a\n    instructions_file: deep/how.md\n    draft: artifacts/a.md\n",
    "deep/how.md": "Write.\n",
}
BOT = {"bot.yaml": "name: Ann\nsop: ./deep/sop.md\n", "deep/sop.md": "Be kind.\n"}
ROLES = {"handoff.yaml": "first: bob\n", "roles/bob.md": "Work.\n"}
BOARD = {
    "memory/verification_policy.json": json.dumps({"extends": "base.json"}),
    "memory/base.json": json.dumps(
        {"extends": "base", "report_rules": {"apply_to": ["coder"], "verdict_allowed": ["PASS", "FAIL"]}}
    ),
    "memory/prompts/subagent_prompt_main.md": "Decide.\n",
    "memory/prompts/subagent_prompt_coder.md": "Code.\n",
    "memory/dev_plan.md": "# Plan\n",
}
FLOW = {
    "flows/quick.json": json.dumps({"id": "quick", "stages": [{"stage_id": "poem"}]}),
    "stages/poem.json": json.dumps(
        {
            "id": "poem",
            "stage_type": "simple",
            "agent": "poet",
            "artifacts": [{"path": "artifacts/poem.md", "required": True}],
        }
    ),
}
PARTS = [
    ({**GRAPH, "guide.md": "Be good.\n"}, "", "guide.md"),
    (GRAPH, "", "workflow.yaml"),
    (PIPELINE, "", "deep/how.md"),
    (PIPELINE, "", "pipeline.yaml"),
    (BOT, "", "deep/sop.md"),
    (BOT, "", "bot.yaml"),
    (ROLES, "", "roles/bob.md"),
    (ROLES, "", "handoff.yaml"),
    *((BOARD, "", part) for part in BOARD),
    (FLOW, "flows/quick.json", "stages/poem.json"),
]
FOLDERS = [(PIPELINE, "", "deep"), (BOT, "", "deep"), (ROLES, "", "roles"), (BOARD, "", "memory/prompts")]
FOLDERS.append((FLOW, "flows/quick.json", "stages"))


@pytest.fixture(scope="module")
def readers() -> Readers:
    return installed().readers


def laid_out(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def led_out(root: Path, part: str, link: Callable[[Path, Path], None]) -> None:
    """Put a part of a definition in another place, and a link where it was."""
    elsewhere = root / "elsewhere"
    os.rename(root / part, elsewhere)
    link(elsewhere, root / part)


def said(readers: Readers, path: Path) -> tuple[str, str]:
    """What `run` and `check` say."""
    with pytest.raises(DefinitionError) as raised:
        find(readers, str(path), ANY)
    problems = check(readers, str(path), ANY)
    return str(raised.value), "\n".join(str(one) for found in problems.values() for one in found)


@pytest.mark.parametrize(("files", "named", "part"), PARTS, ids=[one[2] for one in PARTS])
@pytest.mark.parametrize(("link", "why"), [(os.symlink, "is a symbolic link"), (os.link, "is a hard link")])
def test_no_part_of_a_definition_is_read_through_a_link(
    tmp_path: Path,
    readers: Readers,
    files: dict[str, str],
    named: str,
    part: str,
    link: Callable[[Path, Path], None],
    why: str,
) -> None:
    root = laid_out(tmp_path / "right", files)
    find(readers, str(root / named), ANY)
    led_out(root, part, link)
    for text in said(readers, root / named):
        assert why in text


@pytest.mark.parametrize(("files", "named", "part"), FOLDERS, ids=[f"{one[2]}-of-{min(one[0])}" for one in FOLDERS])
def test_no_folder_of_a_definition_is_read_through_a_link(
    tmp_path: Path, readers: Readers, files: dict[str, str], named: str, part: str
) -> None:
    root = laid_out(tmp_path / "right", files)
    led_out(root, part, os.symlink)
    for text in said(readers, root / named):
        assert "is a symbolic link" in text


@pytest.mark.parametrize(
    "files", [GRAPH, PIPELINE, BOT, ROLES, BOARD], ids=["graph", "pipeline", "bot", "docs", "board"]
)
def test_a_folder_that_the_user_names_may_be_a_link(tmp_path: Path, readers: Readers, files: dict[str, str]) -> None:
    laid_out(tmp_path / "right", files)
    (tmp_path / "mine").symlink_to(tmp_path / "right")
    assert find(readers, str(tmp_path / "mine"), ANY).content
    assert all(
        one.severity != "error" for found in check(readers, str(tmp_path / "mine"), ANY).values() for one in found
    )


def test_a_file_that_the_user_names_may_be_a_link_but_not_the_guide_beside_it(tmp_path: Path, readers: Readers) -> None:
    root = laid_out(tmp_path / "right", GRAPH)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "workflow.yaml").symlink_to(root / "workflow.yaml")
    assert find(readers, str(mine / "workflow.yaml"), ANY).name == "right"
    (mine / "guide.md").symlink_to(root / "workflow.yaml")
    with pytest.raises(WrongDefinition, match=r"'guide\.md' is a symbolic link"):
        find(readers, str(mine / "workflow.yaml"), ANY)


@pytest.mark.parametrize("named", ["child", "child/workflow.yaml", "deep/child"])
def test_a_workflow_that_a_definition_names_is_behind_no_link(tmp_path: Path, readers: Readers, named: str) -> None:
    laid_out(tmp_path / "private" / "child", GRAPH)
    root = laid_out(tmp_path / "right", GRAPH)
    (root / "child").symlink_to(tmp_path / "private" / "child")
    (root / "deep").symlink_to(tmp_path / "private")
    with pytest.raises(WrongDefinition, match="is a symbolic link"):
        locate_child(readers, named, root / "workflow.yaml")
    (root / "child").unlink()
    laid_out(root / "child", GRAPH)
    assert read(locate_child(readers, "child", root / "workflow.yaml"), ANY).name == "right"


@pytest.mark.parametrize(
    ("part", "link"), [("ann", os.symlink), ("ann/01_reply.txt", os.symlink), ("ann/01_reply.txt", os.link)]
)
def test_a_folder_of_replies_has_no_links(tmp_path: Path, part: str, link: Callable[[Path, Path], None]) -> None:
    root = laid_out(tmp_path / "replies", {"ann/01_reply.txt": SECRET})
    read_script(root)
    led_out(root, part, link)
    with pytest.raises(DefinitionError, match="link") as raised:
        read_script(root)
    assert SECRET not in str(raised.value) and part in str(raised.value)
