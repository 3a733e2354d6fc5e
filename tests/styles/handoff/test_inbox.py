"""The inbox: which messages start something, and what their senders are told. Real journal, real files."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ripstop.app.application import App
from ripstop.app.settings.settings_file import Settings
from ripstop.engine.ports import NOTHING
from ripstop.styles.handoff.document import write
from ripstop.styles.handoff.inbox import Inbox, messages
from ripstop.styles.handoff.message import embedded
from ripstop.styles.handoff.service import HandoffService


def in_office(root: Path, work: Callable[[HandoffService], Awaitable[Any]]) -> Any:
    async def go() -> Any:
        async with App(Settings(store=f"sqlite:{root / 'journal.db'}"), scope=NOTHING) as app:
            return await work(HandoffService(app, root, lambda trouble: None))

    return asyncio.run(go())


def post(root: Path, agent: str, name: str, text: str) -> None:
    folder = root / ".inbox" / agent
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")


async def handle_all(documents: HandoffService) -> dict[str, str]:
    room = Inbox(documents)
    return {letter.file: (await room.handle(letter))[0] for letter in await messages(documents)}


HEAD = "# Message\nFrom: 李四\nTo: 张三\nTime: 2026-01-01 10:00:00\n"
COURTESIES = [
    HEAD + "Type: normal\n\n## Content\n谢谢！\n",
    HEAD + "Type: normal\n\n## Answer\n好的，收到。\n",
    HEAD + "\n### 回复：\n谢谢张三\n",
    HEAD + "\n**Answer:** Thank you!\n",
    HEAD + "\n**回复**\n不客气\n",
    HEAD + "\nContent：谢谢\n",
    HEAD + "\nThanks!\n\n> Please add 2 and 2.\n> It is urgent.\n",
    HEAD + "\n谢谢！\n\n-----Original Message-----\nFrom: 张三\n请计算 2+2\n",
    HEAD + "\n收到，谢谢。\n\n—— 李四\n2026-01-01 10:00:00\n",
    HEAD + "\nThank you, 张三!\n\n李四\n",
    "**From:** 李四\n**To:** 张三\n**Type:** normal\n\n## Content\n好的\n",
    "发件人：李四\n收件人：张三\n时间：2026-01-01 10:00:00\n内容：收到，谢谢\n",
    "- From: 李四\n- To: 张三\n\n谢谢\n",
    "From: 李四\nTo: 张三\n谢谢",
    HEAD + "\n## 原消息\n请计算 2+2\n\n## 回复\n谢谢\n",
]
ANSWERS = [
    "From: 秘书\nTo: 张三\nTime: 2025-09-08 04:22:46\nAnswer: 收到您的任务，已安排程序员开发add函数。",
    HEAD + "\n## Answer\n2+2=4\n",
    HEAD + "Type: normal\n\n2+2=4 [WORKFLOW_END]\n",
    HEAD + "\n## Content\n已完成add函数。\n\n[WORKFLOW_END]\n",
    HEAD + "\n**回答：** 等于4\n",
]


@pytest.mark.req("S0-39", "S0-40", "S0-41", "S0-43", "S0-45")
def test_courtesies_and_finished_answers_start_nothing_in_any_shape(tmp_path: Path) -> None:
    for number, text in enumerate([*COURTESIES, *ANSWERS]):
        post(tmp_path, "张三", f"{number:02}.md", text)

    async def work(documents: HandoffService) -> Any:
        return await handle_all(documents), await documents.reconcile()

    became, stock = in_office(tmp_path, work)
    assert stock == [], became
    filed = {path.name for path in (tmp_path / ".inbox" / "张三" / "processed").iterdir()}
    assert len(filed) == len(COURTESIES) + len(ANSWERS), became


@pytest.mark.parametrize(
    ("text", "task"),
    [
        (HEAD + "Type: normal\n\n## Content\n请计算 2+2\n", "请计算 2+2"),
        (HEAD + "\n**Content:** Please add 2 and 2.\n", "Please add 2 and 2."),
        (HEAD + "\n## Task\nWrite add(a, b)\n\n## Details\nin Python\n", "Write add(a, b)\n\n## Details\nin Python"),
        (HEAD + "\nThanks! Please test it now.\n\n> add is done [WORKFLOW_END]\n", None),
        (HEAD + "\n```\n## Answer\n```\nWhat is wrong with this?\n", None),
    ],
)
def test_a_request_becomes_a_task_without_its_labels(tmp_path: Path, text: str, task: str | None) -> None:
    post(tmp_path, "张三", "a.md", text)

    async def work(documents: HandoffService) -> Any:
        return await handle_all(documents), await documents.reconcile()

    became, stock = in_office(tmp_path, work)
    (document,) = stock
    assert document.content.task == task if task else document.content.task, became


def replying(paper_text: str, body: str = "") -> str:
    head = "# Message\nFrom: ann\nTo: boss\nType: workflow_reply"
    return f"{head}\n\n{body}\n\n## Workflow Document\n{embedded(paper_text)}\n"


@pytest.mark.req("S0-26")
def test_a_reply_with_an_illegal_history_completes_a_known_document(tmp_path: Path) -> None:
    async def work(documents: HandoffService) -> Any:
        made = await documents.new("What is 2 + 2?", "ann", "boss")
        line = "- 2026-01-02 10:00:00 ann answered 4 pending→completed\n"
        text = write(made.content).replace("Status: pending", "Status: completed")
        post(tmp_path, "boss", "a.md", replying(text.replace("## Next_Action", f"{line}\n## Next_Action")))
        return await handle_all(documents), await documents.find(made.id)

    became, document = in_office(tmp_path, work)
    assert document.content.status == "completed" and "pending→completed" in became["a.md"]
    assert any("pending→completed" in odd for odd in document.oddities)


def test_a_refused_document_is_kept_and_its_sender_is_told_why(tmp_path: Path) -> None:
    async def work(documents: HandoffService) -> Any:
        made = await documents.new("What is 2 + 2?", "bob", "boss")
        text = write(made.content).replace("Status: pending", "Status: completed")
        post(tmp_path, "boss", "a.md", replying(text))
        became = await handle_all(documents)
        kept = [*(tmp_path / ".workflows").glob("*.refused-*")]
        (notice,) = await messages(documents, "ann")
        again = await handle_all(documents)
        return became["a.md"], kept, notice.message, again, await documents.reconcile(), text

    became, kept, notice, again, stock, text = in_office(tmp_path, work)
    assert became.startswith("refused") and "ann was notified" in became
    assert [path.read_text(encoding="utf-8") for path in kept] == [text]
    assert "pending→in_progress" in notice.body and "pending→completed" in notice.body and kept[0].name in notice.body
    assert "filed" in next(iter(again.values())) and [d.content.status for d in stock] == ["pending"]


def test_words_with_the_end_marker_above_a_document_end_it_and_are_kept(tmp_path: Path) -> None:
    async def work(documents: HandoffService) -> Any:
        made = await documents.new("What is 2 + 2?", "ann", "boss")
        post(tmp_path, "boss", "a.md", replying(write(made.content), "It is 4. [WORKFLOW_END]"))
        await handle_all(documents)
        return await documents.find(made.id)

    document = in_office(tmp_path, work)
    assert (document.content.status, document.content.section("Result")) == ("terminated", "It is 4.")


def test_two_processes_handle_a_message_once(tmp_path: Path) -> None:
    async def work(documents: HandoffService) -> Any:
        made = await documents.new("What is 2 + 2?", "bob", "boss")
        text = write(made.content).replace("Status: pending", "Status: completed")
        post(tmp_path, "boss", "a.md", replying(text))
        found = await messages(documents)
        rooms = [Inbox(documents) for _ in range(4)]
        return await asyncio.gather(*(room.handle(letter) for room in rooms for letter in found))

    handled = in_office(tmp_path, work)
    assert sum(away for _, away in handled) == 1
    assert len([*(tmp_path / ".inbox" / "ann").glob("*.md")]) == 1
