"""Tools that a style brings for agents of any workflow."""

from pathlib import Path

import pytest

from ripstop import tool
from ripstop.app.application import App
from ripstop.app.plugins import BUILT_IN, Plugins
from ripstop.app.start import environment
from ripstop.kernel.errors import UsageError
from tests.app.plugins import broken
from tests.toy_style import PLUGIN


def test_an_app_has_the_tools_of_its_styles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert App(plugins=Plugins([*BUILT_IN, PLUGIN])).toolbox.has("weather")
    assert not App(plugins=Plugins(BUILT_IN)).toolbox.has("weather")


def test_a_tool_that_a_program_brings_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @tool("pure")
    def weather() -> str:
        """What this program says."""
        return "rain"

    monkeypatch.chdir(tmp_path)
    app = App(plugins=Plugins([*BUILT_IN, PLUGIN]), tools=[weather])
    assert [spec.description for spec in app.toolbox.specs(("weather",))] == ["What this program says."]


def test_a_check_knows_them() -> None:
    tools = list(Plugins([PLUGIN]).agent_tools())
    assert environment(tools=tools).tools is not None and "weather" in (environment(tools=tools).tools or ())


def test_tools_that_cannot_be_made_are_refused_and_two_styles_cannot_bring_the_same() -> None:
    with pytest.raises(UsageError, match="another style brings a tool 'weather'"):
        Plugins([PLUGIN, broken.plugin("FINE", agent_tools=PLUGIN.agent_tools)]).agent_tools()
    with pytest.raises(UsageError, match="The plug-in 'broken' cannot be used"):
        Plugins([broken.plugin("FINE", agent_tools="tests.app.plugins.nowhere:TOOLS")]).agent_tools()
