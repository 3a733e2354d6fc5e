"""A webhook is told what a shop assistant says and where the conversation is, with what its knowledge base has."""

import json
from pathlib import Path

import pytest

from ripstop.app.application import App
from ripstop.app.settings.settings_file import Models, Settings
from ripstop.app.settings.tables import Webhook
from ripstop.kernel.effects import ToolReturned
from ripstop.kernel.events import Answered
from ripstop.styles.conversation.chats import Chats
from tests.app.webhooks.receiver import SECRET, a_receiver, in_a_loop

PLAN = {
    "plan": {"name": "Mina", "tone": "warm", "greeting": "Hello!", "sop": "Answer.", "timers": None, "constraints": ""},
    "decision": {"next_status": "typing", "action": None, "response": "Within 30 days."},
}


@in_a_loop
async def test_a_conversation_is_told_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CRM_SECRET", SECRET)
    bot = tmp_path / "shop"
    (bot / "knowledge").mkdir(parents=True)
    (bot / "knowledge" / "returns.md").write_text("# Returns\n\nUnworn shoes can be returned within 30 days.\n")
    (bot / "bot.yaml").write_text("name: Mina\ngreeting: Hello!\nsop: Answer.\nknowledge: knowledge\n")
    (tmp_path / "script.jsonl").write_text(json.dumps({"agent": "planner", "reply": json.dumps(PLAN)}) + "\n")
    async with a_receiver() as receiver:
        settings = Settings(
            models=Models(default=f"script:{tmp_path / 'script.jsonl'}"),
            webhooks={"crm": Webhook(receiver.url, "CRM_SECRET", kinds=("message", "status"))},
        )
        async with App(settings) as app, app.webhooks():
            run = await Chats(app).tell(bot, "ann", "How do I return shoes?")
            await receiver.until(lambda one: one.got and one.got[-1].body["data"].get("status") == "ready")
            answers = [one.event.answer for one in await app.engine.journal.read(run.id) if type(one.event) is Answered]
    told = [one.body["data"].get("text") or one.body["data"]["status"] for one in receiver.got]
    assert told == ["acknowledged", "Hello!", "processing", "typing", "Within 30 days.", "ready"]
    assert {one.body["data"]["workflow"] for one in receiver.got} == {"shop"}
    found = [one.value for one in answers if isinstance(one, ToolReturned)]
    passage = {"source": "returns.md#Returns", "text": "Unworn shoes can be returned within 30 days."}
    assert found == [{"passages": [passage]}]
