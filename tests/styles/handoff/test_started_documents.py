"""Documents that other workflows start in a folder: found and moved on like any other. Real journal, real files."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from ripstop.app.application import App
from ripstop.app.settings.settings_file import Settings
from ripstop.engine.ports import NOTHING
from ripstop.kernel.effects import AskPerson
from ripstop.kernel.events import Heard
from ripstop.styles.handoff.definition import Policy, Role
from ripstop.styles.handoff.inbox import Inbox, messages
from ripstop.styles.handoff.service import HandoffService, open_documents

RUN = "flow-k3f9x.4"
ID = f"Write-add-a-b_{RUN}"


def in_office(root: Path, work: Callable[[App, HandoffService], Awaitable[Any]]) -> Any:
    async def go() -> Any:
        async with App(Settings(store=f"sqlite:{root / 'journal.db'}"), scope=NOTHING) as app:
            return await work(app, await open_documents(app, root, lambda trouble: None))

    return asyncio.run(go())


async def start(app: App, folder: Path, run: str = RUN) -> None:
    """What a command of another run does with a task for the folder."""
    policy = Policy(folder=str(folder.resolve()), roles=(Role("zoe", "You are zoe."),))
    await app.engine.start(
        run,
        "handoff",
        msgspec.json.encode(policy),
        input="Write add(a, b)",
        arguments={"owner": "carl"},
        parent=("flow-k3f9x", 4),
        depth=1,
    )


def test_a_document_that_another_run_started_is_listed_at_once_and_in_another_process(tmp_path: Path) -> None:
    async def begin(app: App, documents: HandoffService) -> list[tuple[str, str]]:
        await documents.new("Something else", "ann", "boss", named="else")
        await start(app, tmp_path)
        return [(document.id, document.run) for document in await documents.reconcile()]

    async def look(app: App, documents: HandoffService) -> list[tuple[str, str]]:
        return [(document.id, document.run) for document in await documents.reconcile()]

    assert (ID, RUN) in in_office(tmp_path, begin)
    found = in_office(tmp_path, look)
    assert (ID, RUN) in found and len(found) == 2


def test_it_is_moved_on_by_id_file_and_run(tmp_path: Path) -> None:
    async def work(app: App, documents: HandoffService) -> None:
        await documents.identify()
        await start(app, tmp_path)
        for named in (ID, RUN, f"workflow_{ID}.md"):
            assert (await documents.find(named)).run == RUN
        document = await documents.act(await documents.find(ID), "accept", "carl")
        await documents.act(document, "complete", "carl", result="def add")
        run = (await app.engine.look(RUN)).run
        assert run.ended is not None and run.ended.outcome == "completed"
        result = msgspec.json.decode(await app.engine.journal.blob(run.ended.result))
        assert (result["status"], result["result"]) == ("completed", "def add")
        assert await documents.ids() == {ID}

    in_office(tmp_path, work)


def test_an_edit_of_its_file_is_read_back(tmp_path: Path) -> None:
    async def work(app: App, documents: HandoffService) -> str:
        await documents.identify()
        await start(app, tmp_path)
        await documents.reconcile()
        file = tmp_path / ".workflows" / f"workflow_{ID}.md"
        file.write_text(file.read_text().replace("Status: pending", "Status: in_progress"))
        (document,) = await documents.reconcile()
        return document.content.status

    assert in_office(tmp_path, work) == "in_progress"


def test_a_message_about_it_is_heard_once_however_often_it_is_handled(tmp_path: Path) -> None:
    text = f"# Message\nFrom: eve\nTo: carl\nType: workflow_reply\nTitle: {ID}\n\nHow far are the tests of it?\n"

    async def work(app: App, documents: HandoffService) -> int:
        await documents.identify()
        await start(app, tmp_path)
        await documents.reconcile()
        inbox = tmp_path / ".inbox" / "carl"
        inbox.mkdir(parents=True)
        for _ in range(2):  # a process was killed before it had put the message away
            (inbox / "m.md").write_text(text, encoding="utf-8")
            for letter in await messages(documents):
                assert (await Inbox(documents).handle(letter))[0].startswith(f"delivered to {ID}")
        return sum(isinstance(record.event, Heard) for record in await app.engine.journal.read(RUN))

    assert in_office(tmp_path, work) == 1


def test_a_folder_that_its_user_has_not_named_gets_no_documents(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (tmp_path / "office").mkdir()

    async def work(app: App, documents: HandoffService) -> list[str]:
        await start(app, elsewhere)
        run = await documents.written(RUN)
        return [o.command.question for o in run.open.values() if isinstance(o.command, AskPerson)]

    (question,) = in_office(tmp_path / "office", work)
    assert "was not named for this journal" in question
    assert not elsewhere.exists()


def test_a_document_of_another_folder_is_not_listed(tmp_path: Path) -> None:
    (tmp_path / "office").mkdir()

    async def work(app: App, documents: HandoffService) -> tuple[list[Any], bool]:
        await documents.identify()
        await start(app, tmp_path / "other")
        return await documents.reconcile(), documents.runs.holds(RUN)

    assert in_office(tmp_path / "office", work) == ([], False)
