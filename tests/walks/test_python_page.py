"""What docs/python.md shows is true: its programs run and print what the page says, and every public name exists."""

import asyncio
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

import ripstop
from ripstop.app.settings.settings_file import Models, Settings
from ripstop.engine.ports import Question
from ripstop.events import LiveEvent
from ripstop.kernel.statuses import STATUSES
from tests.walks.test_readme import ROOT

PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
NAMES = ["script", "app", "resume and fork", "act", "follow", "plug-in", "agent and question"]
HAIKU = "examples/haiku"
MODEL = f"script:{HAIKU}/script.jsonl"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for example in (HAIKU, "examples/handoff"):
        shutil.copytree(ROOT / example, tmp_path / example)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_program_of_the_page_shows_its_output() -> None:
    assert len(PROGRAMS) == PAGE.count("```python\n") == len(NAMES)


@pytest.mark.parametrize(("program", "output"), PROGRAMS, ids=NAMES)
def test_a_program_of_the_page_prints_what_it_shows(program: str, output: str, project: Path) -> None:
    done = subprocess.run([sys.executable, "-c", program], cwd=project, capture_output=True, text=True, timeout=240)
    assert done.stdout == output, done.stderr


def test_the_programs_of_the_page_pass_a_strict_type_check(tmp_path: Path) -> None:
    for number, (program, _) in enumerate(PROGRAMS):
        (tmp_path / f"program_{number}.py").write_text(program, encoding="utf-8")
    # with this project's settings, so that what it has checked of itself before need not be checked again
    command = [sys.executable, "-m", "mypy", "--strict", *map(str, sorted(tmp_path.glob("*.py")))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_public_name_can_be_imported() -> None:
    for name in ripstop.__all__:
        assert getattr(ripstop, name) is not None
    used = set(re.findall(r"ripstop\.([A-Za-z_]+)", " ".join(program for program, _ in PROGRAMS)))
    public_modules = {"events", "style_api", "store_api", "testing"}
    assert used - {"toml"} <= set(ripstop.__all__) | public_modules


def test_every_method_of_the_page_exists() -> None:
    methods = set(re.findall(r"app\.(\w+)\(", PAGE))
    assert {name for name in methods if not hasattr(ripstop.App, name)} == set()


def test_the_page_names_every_status_of_a_run() -> None:
    told = PAGE.partition("`RunQuery(statuses=…)`")[2].partition("\n\n")[0]
    assert {status for status in STATUSES if f"`{status}`" not in told} == set()


def test_the_page_names_every_live_event_that_a_follower_gets() -> None:
    told = PAGE.partition("## Following a run")[2].partition("\n## ")[0]
    names = {one.__name__ for one in get_args(LiveEvent)} - {"Appended"}  # its records come instead
    assert {name for name in names if f"`{name}`" not in told} == set()


def test_run_sync_works_inside_a_running_event_loop(project: Path) -> None:
    async def notebook() -> ripstop.RunResult:
        return ripstop.run_sync(HAIKU, model=MODEL)

    assert asyncio.run(notebook()).status == "completed"


def test_run_sync_answers_questions_or_hands_them_back(project: Path) -> None:
    settings = Settings(models=Models(default=MODEL), guards={"then": "ask"})
    waiting = ripstop.run_sync(HAIKU, settings=settings, limits=ripstop.Limits(calls=1))
    assert (waiting.status, len(waiting.questions), waiting.result) == ("waiting", 1, None)

    def answer(question: Question) -> str:
        return "stop"

    stopped = ripstop.run_sync(HAIKU, settings=settings, limits=ripstop.Limits(calls=1), answer=answer)
    assert stopped.status == "limit" and "limit" in stopped.because


def test_run_sync_with_the_same_key_is_the_same_run(project: Path) -> None:
    first, second = (ripstop.run_sync(HAIKU, "rain", model=MODEL, key="order-7") for _ in range(2))
    assert (first.run, first.result) == (second.run, second.result)
    with pytest.raises(ripstop.UsageError, match="exists already"):
        ripstop.run_sync(HAIKU, "snow", model=MODEL, key="order-7")


def test_run_sync_raises_what_is_wrong(project: Path) -> None:
    with pytest.raises(ripstop.UsageError, match="There is no workflow 'nothing'"):
        ripstop.run_sync("nothing", model=MODEL)
    assert not (project / ".ripstop").exists()


def test_a_tool_needs_no_parentheses() -> None:
    @ripstop.tool
    def ring(what: str) -> str:
        return what

    assert (ring.name, ring.kind.value, ring("bell")) == ("ring", "unsafe", "bell")
