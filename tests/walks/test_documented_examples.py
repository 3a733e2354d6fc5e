"""The examples of the documentation are true: files as they are shown, commands with what they print."""

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ripstop.faces.cli.main import cli
from tests.harness.workflows import check_graph

DOCS = Path(__file__).parents[2] / "docs"


def ripstop(*args: str) -> Result:
    return CliRunner().invoke(cli, list(args))


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What the first console of `models.md` shows, by command; its files are in the current folder."""
    monkeypatch.chdir(tmp_path)
    found = re.search(r"```console\n(.*?)```", (DOCS / "models.md").read_text(encoding="utf-8"), re.DOTALL)
    assert found
    printed = dict(part.split("\n", 1) for part in found[1].removeprefix("$ ").split("\n$ "))
    for command, text in printed.items():
        if command.startswith("cat "):
            path = Path(command.removeprefix("cat "))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{text}\n", encoding="utf-8")
    return printed


def test_the_first_example_of_models_prints_what_it_shows(shown: dict[str, str]) -> None:
    assert check_graph(Path("hello/workflow.yaml")) == []
    (command,) = (command for command in shown if command.startswith("ripstop run"))
    done = ripstop(*command.split()[1:])
    assert done.exit_code == 0, done.output
    without_times = [re.sub(r"[\d.]+ s at work$", "", line) for line in shown[command].splitlines()]
    printed = [re.sub(r"[\d.]+ s at work$", "", line) for line in done.stdout.splitlines()]
    assert [line for line in without_times if line not in printed] == []


def test_an_agent_reads_a_file_that_its_run_was_given(shown: dict[str, str]) -> None:
    run = json.loads(
        ripstop("run", "hello", "--model", "script:replies.jsonl", "--workspace", "work", "--json").stdout
    )["run"]
    assert "short lines" in ripstop("log", run, "--json").stdout


def test_a_bot_follows_the_script_of_its_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (DOCS / "conversations.md").read_text(encoding="utf-8")
    (lines,) = re.findall(r'```json\n(\{"agent": "planner".*?)```', page, re.DOTALL)
    (console,) = re.findall(r"```console\n(\$ ripstop chat \. .*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    assert ripstop("init", "conversation", "shop").exit_code == 0
    monkeypatch.chdir(tmp_path / "shop")
    monkeypatch.syspath_prepend(str(tmp_path / "shop"))
    Path("mine.jsonl").write_text(lines, encoding="utf-8")
    commands = [part.split("\n", 1) for part in console.removeprefix("$ ").split("\n$ ")]
    assert len(commands) == 2
    for typed, printed in commands:
        done = ripstop(*shlex.split(typed)[1:])
        assert done.exit_code == 0, done.stderr
        assert done.stdout.strip() == printed.strip()


def test_the_letter_of_the_graph_page_checks_clean(tmp_path: Path) -> None:
    page = (DOCS / "graph.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```yaml\n(name: letter.*?)```", page, re.DOTALL)
    (tmp_path / "letter").mkdir()
    path = tmp_path / "letter" / "workflow.yaml"
    path.write_text(text, encoding="utf-8")
    assert check_graph(path) == []


def test_help_names_only_example_folders_that_exist() -> None:
    sources = (path.read_text(encoding="utf-8") for path in (DOCS.parent / "src").rglob("*.py"))
    named = {name for text in sources for name in re.findall(r"\bexamples/\w+", text)}
    assert named and {name for name in named if not (DOCS.parent / name).exists()} == set()
