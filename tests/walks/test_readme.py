"""What the README promises is true: its Python runs, its commands exist, its workflow is one."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.walks.test_command_line import ripstop

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_the_python_of_the_readme_runs(tmp_path: Path) -> None:
    (code,) = blocks("python")
    environment = {**os.environ, "RIPSTOP_STORE": f"sqlite:{tmp_path / 'journal.db'}"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240
    )
    assert done.stdout == "completed Yes. That is the one.\n", done.stderr


def test_the_workflow_of_the_readme_has_no_mistakes(tmp_path: Path) -> None:
    (text,) = blocks("yaml")
    (tmp_path / "readme.yaml").write_text(text, encoding="utf-8")
    checked = ripstop("check", "--strict", "readme.yaml", cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_that_is_shown_exists(page: Path, tmp_path: Path) -> None:
    shown = set(re.findall(r"^ripstop (?:--\S+ \S+ )?([a-z]+)", page.read_text(encoding="utf-8"), re.MULTILINE))
    known = ripstop("--help", cwd=tmp_path).stdout
    assert {name for name in shown if f"  {name} " not in known} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []
