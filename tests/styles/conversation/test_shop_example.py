"""The shop assistant, in English and in Chinese: right as it is written, and ready to talk without a model."""

import json
import sys
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from ripstop.app.plugins import BUILT_IN, Plugins
from ripstop.definitions.families import check
from ripstop.definitions.reader import Environment, write_example
from ripstop.faces.cli.main import cli
from ripstop.kernel.errors import UsageError
from ripstop.styles.conversation.definition import Bot
from ripstop.styles.conversation.reader import READER
from ripstop.tools.toolbox import load_tools

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


QUESTIONS = {
    "shop": {
        "delivery time": "shipping.md#Delivery time",
        "how long is delivery": "shipping.md#Delivery time",
        "when will my parcel arrive": "shipping.md#Delivery time",
        "Do you ship abroad?": "shipping.md#Delivery time",
        "How much is shipping?": "shipping.md#Delivery costs",
        "How do I return something?": "returns.md#Returns",
        "When do I get my money back?": "returns.md#Refunds",
        "opening hours": "shop.md#",
        "How can I pay?": "payment.md#",
        "Which size should I take?": "sizes.md#",
        "Can I wash wool?": "care.md#",
    },
    "shop-zh": {
        "配送时间": "shipping.md#配送时间",
        "多久能到": "shipping.md#配送时间",
        "我的包裹什么时候到": "shipping.md#配送时间",
        "运费多少": "shipping.md#运费",
        "怎么退货": "returns.md#退货",
        "退款多久到账": "returns.md#退款",
        "营业时间": "shop.md#",
        "怎么付款": "payment.md#",
        "怎么选尺码": "sizes.md#",
        "羊毛怎么洗": "care.md#",
    },
}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_obvious_questions_find_the_passage_that_answers_them_first(tmp_path: Path, scenario: str) -> None:
    write_example(READER, tmp_path / scenario, scenario)
    folder = str(tmp_path / scenario / "knowledge")
    found = {}
    for question in QUESTIONS[scenario]:
        done = CliRunner().invoke(cli, ["kb", "search", question, "--folder", folder, "--json"])
        found[question] = [one["source"] for one in json.loads(done.stdout)["passages"]]
    wrong = {question: sources for question, sources in found.items()
             if not sources or not sources[0].startswith(QUESTIONS[scenario][question])}  # fmt: skip
    assert not wrong


def test_the_example_overwrites_nothing(tmp_path: Path) -> None:
    write_example(READER, tmp_path / "bot")
    with pytest.raises(UsageError, match="already"):
        write_example(READER, tmp_path / "bot")


def test_init_says_how_to_chat_with_it(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["init", "conversation", str(tmp_path / "my shop")])
    said = " ".join(done.stderr.split())
    assert f"cd '{tmp_path / 'my shop'}' && ripstop chat . --tools shop_tools --model script:script.jsonl" in said
