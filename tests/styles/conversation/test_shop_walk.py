"""The shop assistant talks: its script leads through tools, a flow with a question, and a hand-over."""

import asyncio
import sys
from pathlib import Path

import pytest

import ripstop
from ripstop.definitions.reader import write_example
from ripstop.styles.conversation.chats import Chats
from ripstop.styles.conversation.reader import READER
from ripstop.tools.toolbox import load_tools

ENGLISH = {
    "Where is my order 1001?": [
        "Hello! I am Mina, the assistant of Linden Clothing. How can I help?",
        "Your order 1001 is on its way: the parcel left our warehouse on Monday.",
    ],
    "I want my money back for 1002": [
        "I have asked for your refund: the request is R-1002. The money goes back the way you paid."
    ],
    "Which size do I need?": [
        "How many centimetres around is your chest?",
        "- S: 86 to 92 cm\n- M: 93 to 100 cm\n- L: 101 to 108 cm\n- something else",
    ],
    "M": ["Size M will fit you: it is made for a chest of 93 to 100 cm."],
    "I want to talk to a person": ["Of course. A colleague from the shop will write to you here."],
}
CHINESE = {
    "我的订单 1001 在哪里？": [
        "您好！我是菩提树服装店的客服小米娜，请问有什么可以帮您？",
        "您的订单 1001 正在运输中，包裹周一已离开仓库。",
    ],
    "1002 我要退款": ["退款已经申请，编号是 R-1002，款项会按原付款方式退回。"],
    "我该选什么尺码？": [
        "请问您的胸围是多少厘米？",
        "- S: 86 到 92 厘米\n- M: 93 到 100 厘米\n- L: 101 到 108 厘米\n- something else",
    ],
    "M": ["M 码适合您：它对应的胸围是 93 到 100 厘米。"],
    "转人工": ["好的，店里的同事会在这里回复您。"],
}


@pytest.mark.parametrize(("scenario", "talk"), [("shop", ENGLISH), ("shop-zh", CHINESE)])
def test_the_shop_assistant_answers_as_its_script_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scenario: str, talk: dict[str, list[str]]
) -> None:
    write_example(READER, tmp_path / "bot", scenario)
    monkeypatch.chdir(tmp_path / "bot")
    monkeypatch.delitem(sys.modules, "shop_tools", raising=False)
    tools = load_tools(["shop_tools"])
    monkeypatch.delitem(sys.modules, "shop_tools", raising=False)

    async def story() -> None:
        settings = ripstop.read_settings(Path.cwd(), model="script:script.jsonl")
        async with ripstop.App(settings, tools=tools) as app:
            chats = Chats(app)
            said: list[str] = []
            for text, answers in talk.items():
                run = await chats.tell(".", "ann", text)
                said += answers
                async with asyncio.timeout(30):
                    while (messages := await _messages(chats, run.id)) != said:
                        assert len(messages) < len(said) + 1, messages
                        await asyncio.sleep(0.01)
            assert (await chats.look(run.id)).status == "transferred"

    asyncio.run(story())


async def _messages(chats: Chats, run: str) -> list[str]:
    return [message.text for message in (await chats.look(run)).answers]
