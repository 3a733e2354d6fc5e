"""A plug-in that is wrong is refused with the reason; where it is only installed, everything else goes on."""

import json
from pathlib import Path

import pytest

from ripstop.app.application import App
from ripstop.app.plugin import Plugin
from ripstop.app.plugins import BUILT_IN, Plugins
from ripstop.kernel.errors import UsageError
from tests.app.plugins import broken
from tests.app.plugins.installation import ROOT, as_json, install, installed_packages, process, ripstop
from tests.toy_style import PLUGIN

HAIKU = ROOT / "examples" / "haiku"


@pytest.mark.parametrize(("name", "reason"), broken.KITS.items())
def test_a_kit_that_would_make_unreadable_journals_is_refused(name: str, reason: str) -> None:
    with pytest.raises(UsageError, match="The plug-in 'broken' cannot be used") as refused:
        _ = Plugins([*BUILT_IN, broken.PLUGINS[name]]).registry
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    ("plugin", "reason"),
    [
        (broken.READER, "HALF_A_READER) has no looks_like, greedy, find, find_all"),
        (broken.SERVICE, "No module named 'tests.app.plugins.nowhere'"),
        (broken.TOOLS, "OSError: the disk is full"),
    ],
)
def test_a_part_that_cannot_be_loaded_is_refused(plugin: Plugin, reason: str) -> None:
    plugins = Plugins([*BUILT_IN, plugin])
    with pytest.raises(UsageError, match="The plug-in 'broken' cannot be used") as refused:
        _ = plugins.readers, plugins.services, plugins.own_tools()
    assert reason in str(refused.value)


NAMES = ["graph", "blackboard", "handoff", "conversation", "planning", "pipeline"]


def test_two_plugins_that_share_a_tool_or_a_collection_are_refused() -> None:
    with pytest.raises(UsageError, match="there is another plug-in named 'chores'"):
        _ = Plugins([PLUGIN, PLUGIN]).kits
    other = broken.plugin("FINE", tools=PLUGIN.tools)
    with pytest.raises(UsageError, match="another style has a tool 'file_report' of its own"):
        Plugins([PLUGIN, other]).own_tools()


def test_a_program_with_a_broken_plugin_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="'broken' cannot be used"):
        App(plugins=Plugins([*BUILT_IN, broken.TOOLS]))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "target",
    [
        "tests.app.plugins.nowhere:PLUGIN",
        "tests.app.plugins.broken:MISSING",
        "tests.app.plugins.broken:NUMBER",
        "tests.app.plugins.broken:AGAIN",
        "tests.app.plugins.broken:FIRST",
        "tests.app.plugins.broken:READER",
        "tests.app.plugins.broken:SERVICE",
        "tests.app.plugins.broken:TOOLS",
        "tests.app.plugins.broken:COMMAND",
        "tests.app.plugins.broken:SHADOW",
    ],
)
def test_other_styles_work_beside_a_broken_package(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    install(tmp_path / "packages", "bad", target)
    with installed_packages(tmp_path / "packages"):
        assert ripstop("--help").exit_code == 0
        assert as_json("runs") == []
        listed = [one["style"] for one in as_json("styles")]
        assert listed[:3] == ["graph", "blackboard", "handoff"]
        assert as_json("check", str(HAIKU))["ok"]
        assert as_json("run", str(HAIKU), "--model", f"script:{HAIKU / 'script.jsonl'}")["outcome"] == "completed"
        assert len(as_json("runs")) == 1


def test_a_person_is_told_which_package_is_left_out_and_why(tmp_path: Path) -> None:
    install(tmp_path / "packages", "bad", "tests.app.plugins.broken:FIRST")
    done = process(tmp_path, tmp_path / "packages", "styles", "--json")
    assert done.returncode == 0, done.stderr
    assert [one["style"] for one in json.loads(done.stdout)] == NAMES
    assert "'broken' is left out: The tag 'graph.stolen' of Foreign does not begin with 'broken'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_command_that_cannot_be_loaded_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    install(tmp_path / "packages", "bad", "tests.app.plugins.broken:COMMAND")
    with installed_packages(tmp_path / "packages"):
        done = ripstop("sweep")
    assert done.exit_code == 2
    assert "The command 'sweep' (tests.app.plugins.nowhere:sweep) cannot be loaded: ModuleNotFoundError" in done.stderr


def test_a_style_that_is_left_out_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    install(tmp_path / "packages", "bad", "tests.app.plugins.broken:READER")
    with installed_packages(tmp_path / "packages"):
        for command in (("schema", "broken"), ("init", "broken", "here")):
            done = ripstop(*command)
            assert done.exit_code == 2 and "There is no style 'broken'" in done.stderr
