"""Bots for tests: in the two forms that bots of the original system have, with invented content; and small ones."""

import json
from pathlib import Path
from typing import Any

import msgspec

from ripstop.definitions.problems import Problem
from ripstop.definitions.reader import Environment
from ripstop.styles.conversation.definition import Bot
from ripstop.styles.conversation.reader import READER

HOST = "https://desk.example"
JSON_HEADERS = {"Content-Type": "application/json"}


def tool(name: str, path: str, parameters: dict[str, Any] | None = None, **endpoint: Any) -> dict[str, Any]:
    schema = {} if parameters is None else {"parameters": {"type": "object", "properties": parameters}}
    return {
        "name": name,
        "description": f"What {name} does",
        **schema,
        "endpoint": {"url": path if path.startswith("/") else f"{HOST}/{path}", "headers": JSON_HEADERS, **endpoint},
    }


def first_form() -> dict[str, Any]:
    """Tools are `system_tools`, skills name them, and the procedure is in a file beside it."""
    return {
        "basic_settings": {
            "name": "Harbour Ferries",
            "description": "Answer travellers.",
            "background": "Three ferries, two islands.",
            "instruction": "./procedure.md",
            "language": "English",
            "tone": "Calm",
            "chatbot_id": "42",
        },
        "retrieve_knowledge_url": f"{HOST}/knowledge",
        "skills": [
            {"condition": "Wants a ticket", "action": "Save the traveller's address", "tools": ["save_traveller"]},
            {"condition": "Wants a person", "action": "Use handoff_to", "tools": ["handoff_to"]},
        ],
        "system_tools": [
            tool("find_text", "knowledge", {}, method="GET", body={"bot": "{botId}", "words": "{words}"}),
            tool("save_traveller", "people", {"email": {"type": "string"}}, method="POST", body={"mail": "{email}"}),
            tool("handoff_to", "handoff", {"team": {"type": "string"}}, method="POST", body={"team": "{team}"}),
            tool("close_conversation", "close", {}, method="POST", body={"dialog": 7}),
        ],
    }


def second_form() -> dict[str, Any]:
    """Tools are named by `system_actions` and `agent_actions`, skills are `action_books`, and there are flows."""
    return {
        "flows": [
            {
                "description": "Timetable",
                "type": "intent",
                "flow_id": "f-1",
                "trigger_patterns": ['Asks "when", 几点 or anything about times'],
                "match_type": "contains",
            }
        ],
        "tools": [
            tool("find_person", "people?phone=#phoneNumber#&town=3", None, method="GET", body={}),
            tool("flow_executor", "flows", {"flow_id": {"type": "string"}}, method="POST", body={"id": "{flow_id}"}),
            tool("hand_off", "handoff", {"team": {"type": "string"}}, method="POST", body={"team": "{team}"}),
            tool("close_conversation", "close?dialog=#dialogId#", None, method="POST", body={}),
            tool("tag_person", "tags", {"tag": {"type": "string"}}, method="POST", body={"tag": "{tag}"}),
            tool(
                "upsert_contact_attributes",
                "/people/upsert",
                {"1seat": {"type": "string"}},
                method="POST",
                body=[{"seat": "{1seat}"}],
            ),
        ],
        "basic_settings": {"instruction": "Greet.\nAsk for the island.", "tone": "Calm", "language": "English"},
        "action_books": [
            {"condition": "Wants a ticket", "action": "Save the address", "tools": ["save_traveller"]},
            {"condition": "Wants a person", "action": "Use handoff_to", "tools": ["handoff_to"]},
        ],
        "system_actions": ["hand_off", "close_conversation", "tag_person", "upsert_contact_attributes"],
        "agent_actions": ["find_person", "flow_executor"],
    }


def write(folder: Path, config: Any, name: str = "bot.json") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    text = config if isinstance(config, str) else json.dumps(config, ensure_ascii=False, indent=1)
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def read(path: Path) -> Bot:
    """The bot as a run gets it: from its pinned form."""
    name, content = READER.read(path, Environment())
    bot = msgspec.json.decode(content, type=Bot)
    assert bot.name == name
    READER.check_pinned(bot)
    return bot


def bot_of(folder: Path, config: Any, name: str = "bot.json") -> Bot:
    return read(write(folder, config, name))


def problems(folder: Path, config: Any, name: str = "bot.json", **known: Any) -> list[Problem]:
    return READER.check(write(folder, config, name), Environment(**known))


def said(found: list[Problem]) -> str:
    return "\n".join(str(one) for one in found)
