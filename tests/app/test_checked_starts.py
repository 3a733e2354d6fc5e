"""A start is checked once, without a journal, and its definition is decoded once."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ripstop import App, Limits, UsageError, find
from ripstop.app.plugins import installed
from ripstop.app.settings.settings_file import Settings
from ripstop.app.start import CheckedStart, check_start
from ripstop.app.trust import Trust
from ripstop.faces.cli.main import cli
from ripstop.kernel.registry import Registry

EXAMPLES = Path(__file__).parents[2] / "examples"
HAIKU = "examples/haiku"
SETTINGS = Settings(model_for_all=f"script:{HAIKU}/script.jsonl")


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(EXAMPLES / "haiku", tmp_path / HAIKU)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The styles of the definitions that are decoded, as it happens."""
    found: list[str] = []
    load = Registry.load

    def counted(registry: Registry, style: str, content: bytes) -> Any:
        found.append(style)
        return load(registry, style, content)

    monkeypatch.setattr(Registry, "load", counted)
    return found


def checked(**more: Any) -> CheckedStart:
    return check_start(SETTINGS, installed(), Trust(SETTINGS), find(HAIKU), **more)


def test_a_run_from_the_command_line_decodes_its_definition_once(decoded: list[str]) -> None:
    done = CliRunner().invoke(cli, ["run", HAIKU, "--model", SETTINGS.model_for_all, "--json"])
    assert done.exit_code == 0, done.output
    assert decoded == ["graph"]


def test_a_run_from_python_decodes_its_definition_once(decoded: list[str]) -> None:
    async def story() -> str:
        async with App(SETTINGS) as app:
            return (await app.wait(await app.start(HAIKU))).status

    assert asyncio.run(story()) == "completed"
    assert decoded == ["graph"]


def test_checking_a_start_leaves_nothing_behind(project: Path) -> None:
    before = sorted(project.rglob("*"))
    found = checked(limits=Limits(calls=7), key="one")
    with pytest.raises(UsageError, match="There is no script 'nothing'"):
        checked(model="script:nothing")
    assert sorted(project.rglob("*")) == before
    assert (found.limits.calls, found.workspace) == (7, project / ".ripstop" / "workspaces" / found.run_id)


def test_a_checked_start_is_started_as_it_was_checked() -> None:
    found = checked(limits=Limits(calls=7), workspace="files")

    async def story() -> None:
        async with App(SETTINGS, scope=None) as app:
            run = await app.start(found, "rain")
            assert (run.id, run.limits.calls, run.started.input) == (found.run_id, 7, "rain")
            assert run.settings.workspace == str(Path("files").resolve())
            others: list[dict[str, Any]] = [{"key": "k"}, {"model": "local"}, {"workspace": "x"}, {"values": {}}]
            for more in others:
                with pytest.raises(UsageError, match="A CheckedStart has its workspace, values, limits, key and model"):
                    await app.start(found, "rain", **more)

    asyncio.run(story())


def test_a_start_with_a_key_is_the_same_run_however_often_it_is_checked() -> None:
    async def story() -> list[str]:
        async with App(SETTINGS, scope=None) as app:
            return [(await app.start(checked(key="order-7"), "rain")).id for _ in range(2)]

    first, second = asyncio.run(story())
    assert first == second
