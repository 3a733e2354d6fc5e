"""What a configuration says in prose, by the names that ripstop knows, whether at the top or in its basic settings.

Tools, skills, flows, timers and options are read when a bot is loaded. What is left is for models: the procedure and
the constraints, which the planner rewrites, and everything else, which every prompt has as its author wrote it.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

PROCEDURE = ("sop", "instruction", "instructions", "procedure")
SETTINGS = "basic_settings"
READ_ELSEWHERE = frozenset(
    {
        *("name", "tone", "greeting", "constraints", *PROCEDURE),
        *("tools", "system_tools", "system_actions", "agent_actions", "skills", "action_books", "flows", "timers"),
        *("options", "on_new_message", "max_iterations", "max_failed_plans", "apology", "checking", "handover"),
        *("greet_once", "fixed_variables", "handoff_to", "knowledge", "passages", "model"),
    }
)
"""Fields that are not part of the background: the plan has them, or the engine reads them."""
LONGEST_TEXT = 100_000
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_encode = msgspec.json.Encoder(order="deterministic").encode


def snake(key: str) -> str:
    return _HUMP.sub("_", key).replace("-", "_").lower()


def fields_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a configuration by their names in snake_case; what is at the top wins."""
    top = {snake(key): value for key, value in config.items()}
    below = top.pop(SETTINGS, None)
    inside = {snake(key): value for key, value in below.items()} if isinstance(below, dict) else {}
    return inside | {key: value for key, value in top.items() if key not in inside or value not in (None, "", [], {})}


def procedure_of(config: Mapping[str, Any]) -> str:
    """The procedure as its author wrote it; empty: there is none."""
    fields = fields_of(config)
    return next(filter(None, (as_prose(fields.get(key)) for key in PROCEDURE)), "")


def background_of(config: Mapping[str, Any]) -> str:
    """What else it says, a line for each field: language, description, background, and fields of its own."""
    found = {key: as_prose(value) for key, value in fields_of(config).items() if key not in READ_ELSEWHERE}
    return "\n".join(f"{key}: {text}" for key, text in found.items() if text)[:LONGEST_TEXT]


def as_prose(said: Any) -> str:
    """What stands where a text belongs, as text: lists become lines, objects JSON."""
    if said is None or said in ({}, []):
        return ""
    if isinstance(said, list):
        said = "\n".join(as_prose(one) for one in said[:1000])
    if not isinstance(said, str):
        said = _encode(said).decode()
    return str(said).strip()[:LONGEST_TEXT]
