"""A command imports the styles that it works with, and no other."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Barrier

import click
import pytest

from ripstop.app.plugins import BUILT_IN, STYLES, Plugins, imported, installed
from ripstop.faces.cli.main import COMMANDS
from ripstop.kernel.codec import Codec
from ripstop.kernel.events import FORMAT, Started
from ripstop.kernel.registry import LazyKit, Registry
from ripstop.kernel.style import StyleKit
from ripstop.styles.graph.state import TurnFinished
from ripstop.testing import given
from ripstop.tools.http.tool import NAME as HTTP_REQUEST
from tests.toy_style import PLUGIN as TOY

EXAMPLES = Path(__file__).parents[3] / "examples"
SHOWN = """
import sys
from ripstop.__main__ import main
try:
    main()
finally:
    print("\\n".join(sys.modules), file=sys.stderr)
"""


def modules_loaded_by(folder: Path, *words: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", SHOWN, *words], cwd=folder, capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def other_styles(modules: set[str], *styles: str) -> list[str]:
    """What of a style's room is loaded beside its list of what it brings."""
    rooms = tuple(f"ripstop.styles.{style}." for style in STYLES if style not in styles)
    return sorted(name for name in modules if name.startswith(rooms) and not name.endswith(".plugin"))


def test_help_loads_no_style_and_no_large_library(tmp_path: Path) -> None:
    loaded = modules_loaded_by(tmp_path, "--help")
    assert not {"msgspec", "rich", "yaml", "asyncio", "sqlite3"} & loaded and other_styles(loaded) == []


def test_a_run_of_a_graph_loads_graphs_only(tmp_path: Path) -> None:
    haiku = EXAMPLES / "haiku"
    loaded = modules_loaded_by(tmp_path, "--model", f"script:{haiku / 'script.jsonl'}", "run", str(haiku))
    assert other_styles(loaded, "graph") == []
    assert len([name for name in loaded if name.partition(".")[0] == "ripstop"]) <= 200


def test_a_check_of_a_graph_loads_graphs_only(tmp_path: Path) -> None:
    assert other_styles(modules_loaded_by(tmp_path, "check", str(EXAMPLES / "haiku")), "graph") == []


def test_lists_load_no_style(tmp_path: Path) -> None:
    for command in ("runs", "desk"):
        assert other_styles(modules_loaded_by(tmp_path, command)) == []


def test_the_names_that_a_plugin_gives_beforehand_are_those_of_what_it_makes() -> None:
    plugins = Plugins(BUILT_IN)
    for plugin in BUILT_IN:
        assert plugin.styles == tuple(imported(kit).name for kit in plugin.kits)
        if plugin.tools:
            assert sorted(plugin.tool_names) == sorted(imported(plugin.tools)())
        if plugin.agent_tools:
            assert list(plugin.agent_tool_names) == [tool.name for tool in imported(plugin.agent_tools)()]
        if plugin.reader:
            assert imported(plugin.reader).style == plugin.name == plugins.reader_of(plugin.name).style
    from ripstop.app import toolbox

    assert toolbox.HTTP_REQUEST == HTTP_REQUEST


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_a_command_says_of_itself(name: str) -> None:
    command: click.Command = imported(COMMANDS[name].target)
    assert command.name == name and command.get_short_help_str(100) == COMMANDS[name].help


@pytest.mark.parametrize("kit", installed().kits, ids=lambda kit: kit.name)
def test_a_record_of_a_style_that_is_not_loaded_yet_is_read(kit: StyleKit) -> None:
    every = installed().kits
    known = Codec(event for one in every for event in one.events)
    assert kit.samples
    for sample in kit.samples():
        story = given(kit.style, sample.definition, input=sample.input, arguments=sample.arguments)
        for answer in sample.answers:
            story.tell(answer)
        events = [record.event for record in story.records]
        whole = Registry(LazyKit(one.name, partial(_same, one)) for one in every).codec
        assert whole.load_step(known.dump_step(events)) == known.load_step(known.dump_step(events))
        for event in events:
            lazy = Registry(LazyKit(one.name, partial(_same, one)) for one in every).codec
            assert (
                lazy.load(known.dump(event)) == known.load(known.dump(event))
                and lazy.foreign_events(known.dump_step([event])) == 0
            )


def _same(kit: StyleKit) -> StyleKit:
    return kit


def test_the_start_of_a_run_loads_its_style() -> None:
    loaded: list[str] = []

    def load(name: str) -> object:
        loaded.append(name)
        return None

    codec = Codec((), ("graph", "handoff"), load)
    codec.load_step(Codec().dump_step([Started(style="graph", definition="x", format=FORMAT)]))
    assert loaded == ["graph"]


def test_a_kit_under_another_name_is_refused() -> None:
    kit = installed().kits[0]
    with pytest.raises(ValueError, match=f"The kit of 'other' is one of '{kit.name}'"):
        _ = Registry([LazyKit("other", lambda: kit)]).kits["other"]


def test_a_plugin_of_others_cannot_promise_tools_that_it_does_not_make() -> None:
    promising = TOY._replace(tool_names=("no_such_tool",), agent_tool_names=("nor_this",), styles=("nor_that",))
    plugins = Plugins([*BUILT_IN, promising])
    assert "no_such_tool" not in plugins.own_tools() and "nor_this" not in plugins.agent_tools()
    assert "weather" in plugins.agent_tools() and plugins.styles_of(promising) == ("chores",)


def test_a_style_that_another_thread_has_loaded_meanwhile_is_read() -> None:
    """The other app learns the style after this one could not read the record, and before it asks for the style."""
    kit = next(kit for kit in installed().kits if kit.name == "graph")
    event = TurnFinished(reply=2, to="END", agent="poet")
    data = Codec(kit.events).dump_step([event])

    class Overtaken(Codec):
        def _load_styles_of(self, data: bytes | str) -> None:
            self.learn(kit.events)
            self._lazy.clear()
            super()._load_styles_of(data)

    assert Overtaken((), ("graph",), lambda name: kit).load_step(data) == [event]


def test_two_threads_can_load_a_style_at_once() -> None:
    kit = next(kit for kit in installed().kits if kit.collections)
    both = Barrier(2)

    def load() -> StyleKit:
        both.wait(timeout=30)
        return kit

    registry = Registry([LazyKit(kit.name, load)])
    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(lambda _: registry.kits[kit.name], range(2))) == [kit, kit]
