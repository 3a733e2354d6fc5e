"""The shop assistant, in English and in Chinese: right as it is written, and ready to talk without a model."""

import sys
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from ripstop.definitions.checking import check
from ripstop.definitions.conversation.files import READER
from ripstop.definitions.reader import Environment, write_example
from ripstop.faces.cli.main import cli
from ripstop.kernel.errors import UsageError
from ripstop.performers.tools.modules import load_tools
from ripstop.plugins import BUILT_IN, Plugins
from ripstop.styles.conversation.definition import Bot

OTHERS = Plugins([plugin for plugin in BUILT_IN if plugin.name != "conversation"]).readers
SCENARIOS = ("shop", "shop-zh")


def test_both_languages_are_there() -> None:
    assert READER.scenarios == SCENARIOS


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_example_checks_clean_and_has_all_parts(
    tmp_path: Path, scenario: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = write_example(READER, tmp_path / scenario, scenario)
    assert all("__pycache__" not in str(path) for path in files)
    monkeypatch.chdir(tmp_path / scenario)
    monkeypatch.delitem(sys.modules, "shop_tools", raising=False)
    tools = load_tools(["shop_tools"])
    monkeypatch.delitem(sys.modules, "shop_tools", raising=False)
    assert [tool.name for tool in tools] == ["order_status", "request_refund"]
    found = check([*OTHERS, READER], ".", Environment(tools=tuple(tool.name for tool in tools)))
    assert found == {"bot.yaml": []}
    bot = msgspec.json.decode(READER.read(Path("bot.yaml"), Environment())[1], type=Bot)
    assert bot.name == scenario and len(bot.tools) == 2 and bot.unknown == ()
    assert [(one.match, one.workflow) for one in bot.flows] == [("contains", "sizes")]
    assert [(one.delay, one.action is not None) for one in bot.timers] == [(300.0, False), (600.0, True)]
    assert 4 <= len(list(Path(bot.knowledge).glob("*.md"))) <= 6
    assert check([*OTHERS, READER], "sizes", Environment()) == {"sizes/workflow.yaml": []}
    assert check([*OTHERS, READER], "sizes/measure", Environment()) == {"sizes/measure": []}


def test_the_example_overwrites_nothing(tmp_path: Path) -> None:
    write_example(READER, tmp_path / "bot")
    with pytest.raises(UsageError, match="already"):
        write_example(READER, tmp_path / "bot")


def test_init_says_how_to_chat_with_it(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["init", "conversation", str(tmp_path / "my shop")])
    said = " ".join(done.stderr.split())
    assert f"cd '{tmp_path / 'my shop'}' && ripstop chat . --tools shop_tools --model script:script.jsonl" in said
