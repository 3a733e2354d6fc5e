"""A workspace that agents share: its own files are theirs, what the project is run by is not."""

import asyncio
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ripstop.app.application import App
from ripstop.app.settings.settings_file import Models, Settings
from ripstop.app.start import check_shared
from ripstop.engine.children import _inside
from ripstop.engine.performers import Refused
from ripstop.kernel.effects import ToolReturned
from ripstop.kernel.errors import UsageError
from ripstop.kernel.events import RunSettings
from ripstop.kernel.style import Uses
from ripstop.styles.graph.style import GraphStyle
from ripstop.tools.toolbox import Toolbox
from ripstop.tools.workspace_tools import FileTools
from tests.tools.tool_requests import tool_request

BOX = Toolbox(files=FileTools())


def call(project: Path, name: str, agent: str = "writer", **arguments: Any) -> Any:
    settings = RunSettings(
        workspace=str(project), shared_workspace=True, read_only=(str(project / "plans" / "pipeline.yaml"),)
    )
    answer = asyncio.run(BOX.perform(tool_request(arguments, "soup-1", name, settings, agent, number=7)))
    assert isinstance(answer, ToolReturned)
    return answer.value


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for path, text in {
        "src/main.py": "print(1)\n",
        ".git/config": "secret\n",
        ".ripstop/journal": "secret\n",
        ".env": "KEY=secret\n",
        "sub/.env.local": "KEY=secret\n",
        ".cowork/artifacts/idea.md": "an idea\n",
        "node_modules/x/index.js": "secret\n",
        ".venv/bin/x": "secret\n",
        "src/__pycache__/x.txt": "secret\n",
        "plans/pipeline.yaml": "stages\n",
        "ripstop.toml": "",
        "workflows/a/workflow.yaml": "a\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def test_all_agents_work_in_the_workspace_itself(project: Path) -> None:
    call(project, "write_file", "coder", path="src/a.py", content="a = 1\n")
    assert (project / "src/a.py").read_text() == "a = 1\n"
    assert call(project, "read_file", "critic", path="./src/a.py") == "a = 1\n"
    call(project, "edit_file", "critic", path="src/a.py", search="1", replace="2")
    assert call(project, "search_files", text="a = 2")["hits"] == [{"path": "src/a.py", "line": 1, "text": "a = 2"}]


def test_an_agents_name_and_collab_are_paths_like_any_other(project: Path) -> None:
    for path in ("writer/x.md", "collab/x.md", "a..b.txt"):
        assert call(project, "write_file", path=path, content="x\n")["path"] == path
        assert (project / path).read_text() == "x\n"


@pytest.mark.parametrize(
    "path",
    [
        ".git/hooks/pre-commit",
        ".GIT/config",
        "sub/.git/config",
        "git~1/config",
        ".g\u200bit/config",
        ".ripstop/journal",
        "ripstop.toml",
        "RIPSTOP.TOML",
        "ripstop.toml.",
        "workflows/new/workflow.yaml",
        "Workflows/a/workflow.yaml",
        "roles/x.md",
        ".workflows/x",
        ".inbox/x",
        ".cowork/artifacts/idea.md",
        ".cowork/session/meta.json",
        ".COWORK/x",
        ".cowork",
        "plans/pipeline.yaml",
        "Plans/Pipeline.yaml",
        ".env",
        "sub/.env.local",
    ],
)
def test_refuses_to_write_what_a_project_is_run_by(project: Path, path: str) -> None:
    before = {one: one.read_bytes() for one in sorted(project.rglob("*")) if one.is_file()}
    for name, arguments in (
        ("write_file", {"content": "x"}),
        ("edit_file", {"search": "", "replace": "x"}),
        ("edit_file", {"search": "e", "replace": "x"}),
    ):
        with pytest.raises(Refused):
            call(project, name, path=path, **arguments)
    assert before == {one: one.read_bytes() for one in sorted(project.rglob("*")) if one.is_file()}


def test_says_how_records_are_written(project: Path) -> None:
    with pytest.raises(Refused, match="tools for data"):
        call(project, "write_file", path=".cowork/data/x.json", content="{}")


def test_refuses_a_protected_folder_under_another_name(project: Path) -> None:
    (project / ".cowork").rename(project / "moved")
    os.symlink("moved", project / ".cowork")
    with pytest.raises(Refused):
        call(project, "write_file", path=".cowork/artifacts/idea.md", content="x")
    assert (project / "moved/artifacts/idea.md").read_text() == "an idea\n"


@pytest.mark.parametrize("path", [".git/config", ".ripstop/journal", ".env", "sub/.env.local", ".ENV", ".env."])
def test_refuses_to_read_secrets(project: Path, path: str) -> None:
    with pytest.raises(Refused, match="not for agents"):
        call(project, "read_file", path=path)


def test_searches_meet_no_secrets(project: Path) -> None:
    assert call(project, "search_files", text="secret")["hits"] == []


def test_records_can_be_read_and_listed_by_name(project: Path) -> None:
    assert call(project, "read_file", path=".cowork/artifacts/idea.md") == "an idea\n"
    assert call(project, "list_files", path=".cowork")["entries"] == [
        ".cowork/artifacts/",
        ".cowork/artifacts/idea.md",
    ]


def test_a_list_leaves_out_what_others_made(project: Path) -> None:
    entries = call(project, "list_files")["entries"]
    assert "src/main.py" in entries and "ripstop.toml" in entries
    assert not [one for one in entries if "secret" in one or one.startswith((".", "node_modules")) or "__py" in one]


@pytest.mark.req("S3-86")
def test_a_missing_file_is_named_with_the_reason(project: Path) -> None:
    with pytest.raises(Refused) as refused:
        call(project, "read_file", path=".cowork/artifacts/prd.md")
    assert "Failed to read file .cowork/artifacts/prd.md: No such file or directory" in str(refused.value)


@pytest.mark.req("S3-87", "S3-88")
@pytest.mark.parametrize("path", ["../x", "src/../../x", "/etc/passwd", "~/x", "C:/x", "src\\x", "", "a\0b"])
def test_refuses_paths_that_lead_out(project: Path, path: str) -> None:
    for name, arguments in (("read_file", {}), ("write_file", {"content": "x"})):
        with pytest.raises(Refused):
            call(project, name, path=path, **arguments)


def test_links_are_not_followed(project: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    os.symlink(outside, project / "link")
    with pytest.raises(Refused, match="link"):
        call(project, "write_file", path="link/x", content="x")
    assert list(outside.iterdir()) == []


def test_a_child_inherits_the_shared_workspace(project: Path) -> None:
    settings = RunSettings(workspace=str(project), shared_workspace=True, read_only=("x",))
    assert _inside(settings, "") == settings
    assert _inside(settings, "sub") == replace(settings, workspace=f"{project}/sub")


def test_refuses_the_home_folder_as_a_shared_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "people" / "me"
    home.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    for folder in (home, home.parent, Path("/")):
        with pytest.raises(UsageError, match="home folder"):
            check_shared(folder.resolve())
    check_shared((home / "project").resolve())


WORKFLOW = """\
name: shop
initial_message: work
max_turns: 2
agents:
  - { name: src, type: coder, tools: [write_file] }
states:
  - name: work
    agent: src
    start: true
    prompt: "{{COLLABORATION_GUIDE}} Go."
"""
SCRIPT = (
    '{"reply": "", "calls": [{"tool": "write_file", "args": {"path": "src/new.py", "content": "x = 1"}},'
    ' {"tool": "write_file", "args": {"path": "shop.yaml", "content": "x"}}]}\n{"reply": "{\\"decisions\\": {}}"}\n'
)


async def _run_shop(project: Path) -> RunSettings:
    async with App(Settings(models=Models(default="script:s.jsonl"), default_limits=False)) as app:
        run = await app.start("shop.yaml", workspace=project)
        await app.wait(run)
        return run.settings


def test_a_style_says_whether_its_agents_share_the_workspace(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    (project / "shop.yaml").write_text(WORKFLOW)
    (project / "s.jsonl").write_text(SCRIPT)
    uses = GraphStyle.uses

    def shared(self: GraphStyle, definition: Any) -> Uses:
        return replace(uses(self, definition), shares_workspace=True)

    monkeypatch.setattr(GraphStyle, "uses", shared)
    settings = asyncio.run(_run_shop(project))
    assert settings.shared_workspace and settings.read_only == (str(project / "shop.yaml"),)
    assert (project / "src/new.py").read_text() == "x = 1"
    assert (project / "shop.yaml").read_text() == WORKFLOW


def test_other_styles_keep_their_agents_out_of_a_projects_folders(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    (project / "shop.yaml").write_text(WORKFLOW.replace("src", "workflows"))
    (project / "s.jsonl").write_text(SCRIPT)
    with pytest.raises(UsageError, match="part of this project"):
        asyncio.run(_run_shop(project))


@pytest.mark.parametrize("path", ["HEAD", "docs/HEAD", "a/b/HEAD"])
def test_refuses_the_file_that_makes_a_folder_a_repository(project: Path, path: str) -> None:
    with pytest.raises(Refused, match="a git repository"):
        call(project, "write_file", path=path, content="ref: refs/heads/x")
    call(project, "write_file", path=f"{path}.md", content="any other file")


@pytest.mark.parametrize("path", ["git/config", "git/hooks/pre-commit", "git/new/deep/file"])
def test_refuses_to_write_in_a_repository_of_any_name(project: Path, path: str) -> None:
    subprocess.run(["git", "init", "-q", "--bare", str(project / "git")], check=True)
    with pytest.raises(Refused, match="git takes that folder for a repository"):
        call(project, "write_file", path=path, content="[core]")
    assert not (project / "git" / "new").exists()


@pytest.mark.parametrize("path", ["docs/commondir", "docs/refs/x"])
def test_refuses_what_would_make_a_folder_with_a_head_a_repository(project: Path, path: str) -> None:
    call(project, "write_file", path=path.replace("docs", "other"), content="../x")
    (project / "docs").mkdir(exist_ok=True)
    (project / "docs" / "HEAD").write_text("ref: refs/heads/x")
    with pytest.raises(Refused, match="git takes that folder for a repository"):
        call(project, "write_file", path=path, content="../x")
    assert not (project / "docs" / "refs").exists()
