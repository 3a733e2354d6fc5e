"""A bot whose journal is restored elsewhere searches its knowledge where that is now."""

import asyncio
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from ripstop import ALL, App, Settings
from ripstop.app.bulk_answers import answer_all
from ripstop.app.plugins import installed
from ripstop.app.restore import restore_journal
from ripstop.app.restoring import UnmappedFolders
from ripstop.app.settings.settings_file import Models, read_settings
from ripstop.kernel.effects import ToolReturned
from ripstop.kernel.events import Answered
from ripstop.kernel.restoring import CONTINUE
from ripstop.kernel.run import RESTORED
from ripstop.styles.conversation.chats import Chats
from tests.app.webhooks.test_webhook_conversations import PLAN


def write_bot(project: Path) -> None:
    (project / "shop" / "knowledge").mkdir(parents=True)
    (project / "shop" / "knowledge" / "returns.md").write_text("# Returns\n\nWithin 30 days.\n")
    (project / "shop" / "bot.yaml").write_text("name: Mina\ngreeting: Hello!\nsop: Answer.\nknowledge: knowledge\n")
    (project / "script.jsonl").write_text(json.dumps({"agent": "planner", "reply": json.dumps(PLAN)}) + "\n")


async def found_in(app: App, run_id: str) -> list[object]:
    """What the bot's searches found."""
    events = [record.event for record in await app.engine.journal.read(run_id)]
    answers = [event.answer for event in events if type(event) is Answered]
    return [answer.value for answer in answers if isinstance(answer, ToolReturned)]


@pytest.mark.req("V18")
def test_a_restored_bot_searches_its_knowledge_where_it_is_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new, copy = tmp_path / "old", tmp_path / "new", tmp_path / "copy.db"
    write_bot(old)

    def settings() -> Settings:
        return replace(read_settings(Path.cwd()), models=Models(default=f"script:{Path.cwd() / 'script.jsonl'}"))

    async def ask() -> str:
        async with App(settings(), scope=None) as app:
            run = await Chats(app).tell(old / "shop", "ann", "How do I return shoes?")
            await app.engine.journal.backup(copy, app.engine.clock())
            return run.id

    async def go_on(run_id: str) -> list[object]:
        async with App(settings(), scope=None) as app:
            await answer_all(app.engine, RESTORED, CONTINUE)
            async with app.working(ALL), asyncio.timeout(25):
                while not (found := await found_in(app, run_id)):
                    await asyncio.sleep(0.01)
        return found

    monkeypatch.delenv("RIPSTOP_STORE", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(old)
    run_id = asyncio.run(ask())
    old.rename(new)
    monkeypatch.chdir(new)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))
    for part in (new / ".ripstop").glob("journal.db*"):
        part.unlink()
    with pytest.raises(UnmappedFolders) as missing:
        asyncio.run(restore_journal(settings(), installed(), copy, {}))
    assert old / "shop" / "knowledge" in missing.value.folders
    asyncio.run(restore_journal(settings(), installed(), copy, {old: new}))
    passage = {"source": "returns.md#Returns", "text": "Within 30 days."}
    assert asyncio.run(go_on(run_id)) == [{"passages": [passage]}]
