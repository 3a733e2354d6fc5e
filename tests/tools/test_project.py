"""The project's own files are out of an agent's reach, whatever they are called."""

import os
from pathlib import Path

import pytest

from ripstop.engine.performers import Refused
from ripstop.tools.files import Files
from ripstop.tools.workspace import Project, check_agents, is_off_limits


@pytest.mark.parametrize(
    "name", [".git", ".GIT", ".Git ", ".git.", "GIT~1", ".\u200cgit", "．git", ".ripstop", ".RIPSTOP"]
)
def test_git_s_folder_and_ours_are_off_limits_in_every_spelling(tmp_path: Path, name: str) -> None:
    assert is_off_limits(name)
    with pytest.raises(Refused):
        Files(tmp_path, "ada").write(f"{name}/hooks/post-commit", "x")
    with pytest.raises(Refused):
        Files(tmp_path, "ada").read(f"collab/{name}/config")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", [".gitignore", ".github", "git", "ripstop", ".gitlab-ci.yml"])
def test_names_that_only_resemble_them_are_not(name: str) -> None:
    assert not is_off_limits(name)


@pytest.mark.parametrize("agent", [".ssh", ".git", ".workflows", ".inbox"])
def test_an_agent_whose_name_begins_with_a_dot_has_no_folder(tmp_path: Path, agent: str) -> None:
    with pytest.raises(Refused, match=r"dot|not for agents"):
        Files(tmp_path, agent)


@pytest.mark.parametrize("name", ["roles", "workflows"])
def test_a_file_tool_refuses_a_folder_of_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Refused, match="part of this project"):
        Files(tmp_path, name).write("a.md", "x")
    with pytest.raises(Refused, match="part of this project"):
        Files(tmp_path.parent, tmp_path.name).write("ripstop.toml", "x")
    assert [*tmp_path.rglob("*")] == [tmp_path / name]


def test_an_agent_named_like_a_part_of_a_project_works_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for _ in range(2):
        assert Files(tmp_path / "work", "roles").write("a.md", "x")
    with pytest.raises(Refused, match="part of this project"):
        Files(tmp_path / "here", "roles").write("a.md", "x")
    assert [*(tmp_path / "here").rglob("*.md")] == []


def test_a_folder_that_another_name_leads_to_is_recognised(tmp_path: Path) -> None:
    (tmp_path / "roles").mkdir()
    (tmp_path / "office").symlink_to(tmp_path, target_is_directory=True)
    project = Project(tmp_path / "elsewhere", tmp_path / "office")
    with pytest.raises(Refused):
        project.check_path(tmp_path / "roles", "roles")
    project.check_path(tmp_path / "missing", "missing")


@pytest.mark.parametrize("definition", ["wf1/workflow.yaml", "wf1/Workflow.yaml", "wf1/review/workflow.yaml"])
@pytest.mark.parametrize("workspace", [".", "../definitions"])
def test_a_folder_with_a_definition_is_not_an_agent_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, definition: str, workspace: str
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    file = Path(workspace) / definition
    file.parent.mkdir(parents=True)
    file.write_text("name: wf1")
    with pytest.raises(Refused, match="part of this project"):
        check_agents(Project(Path(workspace), Path.cwd()), Path(workspace), ["wf1"])
    if workspace == ".":
        with pytest.raises(Refused, match="part of this project"):
            Files(Path(workspace), "wf1").write("workflow.yaml", "name: evil")
    assert file.read_text() == "name: wf1"


def test_an_agent_can_write_definitions_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = Files(tmp_path, "ada")
    for path in ("workflow.yaml", "more/workflow.yaml", "collab/workflow.yaml", "notes.md"):
        assert files.write(path, "name: x")
    assert Files(tmp_path, "bob").write("collab/workflow.yaml", "name: y")
    own = tmp_path / ".ripstop" / "workspaces" / "run"
    for _ in range(2):  # also in the process that resumes
        assert Files(own, "ada").write("workflow.yaml", "name: x")
