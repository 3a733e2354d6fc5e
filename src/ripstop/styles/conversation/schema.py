"""The JSON Schema of a bot's configuration, for editors. The reader takes its fields and bounds from here.

A configuration can have fields of its own: they are for the planner.
"""

from typing import Any

from ripstop.definitions.options import TEXT

from .definition import APOLOGY, CHECKING, HANDOFF_ROLE, HANDOVER, SYSTEM_ACTIONS

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
EFFECTS = ("pure", "keyed", "unsafe")
PURPOSES = SYSTEM_ACTIONS
MATCHES = ("exact", "contains", "regex")
ON_NEW_MESSAGE = ("supersede", "queue")
MOST_TOOLS = 200
MOST_SKILLS = 500
MOST_FLOWS = 200
MOST_PATTERNS = 200
MOST_HEADERS = 50
MOST_ITERATIONS = 100
MOST_FAILED_PLANS = 100
MOST_PASSAGES = 20
MOST_FIXED = 100
MOST_TRIGGERS = 1000
LONGEST_NAME = 100
LONGEST_URL = 2000
LONGEST_HEADER = 4000
LONGEST_PATTERN = 200
LONGEST_MESSAGE = 4000
LONGEST_TIMEOUT = 600
MOST_TEXT = 1_000_000
"""Characters in all texts of a configuration, aliases and files included."""

_PROSE = {"type": ["string", "array", "object", "null"]}
_TEXT_OR_NONE = {"type": ["string", "null"]}
_TEXTS = {"type": ["array", "string", "null"], "items": {"type": "string"}}
_NAME = {**TEXT, "maxLength": LONGEST_NAME}

ENDPOINT: dict[str, Any] = {
    "type": ["object", "string", "null"],
    "description": "An HTTP address. {name} is an argument of the call, or a variable of the session; #name# is a "
    "variable of the session.",
    "properties": {
        "url": {
            "type": "string",
            "maxLength": LONGEST_URL,
            "description": "Absolute. Placeholders can be in the path and in the query.",
        },
        "method": {"enum": [*METHODS, None], "default": "GET"},
        "headers": {
            "type": ["object", "null"],
            "additionalProperties": {"type": "string", "maxLength": LONGEST_HEADER},
            "maxProperties": MOST_HEADERS,
            "description": "${NAME} in a value is a secret from the environment.",
        },
        "body": {"description": "JSON. A text that is one placeholder becomes the value itself."},
        "timeout": {"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": LONGEST_TIMEOUT, "default": 30},
        "effect": {
            "enum": [*EFFECTS, None],
            "description": "What is done if it is not known whether a call took effect. Left out: pure for GET and "
            "HEAD, unsafe for the others. keyed: the other side takes an Idempotency-Key.",
        },
    },
}
TOOL: dict[str, Any] = {
    "type": ["object", "string"],
    "description": "What the bot can call. Without an endpoint: a function of this process, or SERVER__TOOL of an MCP "
    "server.",
    "properties": {
        "name": _NAME,
        "description": {**_TEXT_OR_NONE, "description": "What it does, for the model."},
        "parameters": {"type": ["object", "array", "null"], "description": "The JSON Schema of its arguments."},
        "endpoint": ENDPOINT,
        "system": {"type": ["boolean", "null"], "description": "Whether it runs silently; see system_actions."},
        "purpose": {"enum": [*PURPOSES, "", None], "description": "The built-in action that it is."},
    },
}
SKILL: dict[str, Any] = {
    "type": ["object", "string"],
    "properties": {
        "id": _NAME,
        "action_id": _NAME,
        "name": _TEXT_OR_NONE,
        "condition": {**_PROSE, "description": "When it applies."},
        "action": {**_PROSE, "description": "What to do then."},
        "tools": {**_TEXTS, "description": "With which tools."},
        "endpoint": ENDPOINT,
    },
}
FLOW: dict[str, Any] = {
    "type": ["object", "string"],
    "properties": {
        "id": _NAME,
        "flow_id": _NAME,
        "name": _TEXT_OR_NONE,
        "description": _TEXT_OR_NONE,
        "type": {
            "enum": ["intent", "keyword", None],
            "description": "intent: the model decides. keyword: a pattern starts it before the model is asked.",
        },
        "trigger_patterns": {**_TEXTS, "maxItems": MOST_PATTERNS},
        "keywords": {**_TEXTS, "maxItems": MOST_PATTERNS},
        "trigger": _TEXTS,
        "match_type": {"enum": [*MATCHES, None], "default": "contains"},
        "workflow": {**_TEXT_OR_NONE, "description": "Another workflow, whose questions are asked in this chat."},
        "tool": {**_TEXT_OR_NONE, "description": "A tool that is the flow."},
        "endpoint": ENDPOINT,
    },
}
ACTION: dict[str, Any] = {
    "type": ["object", "string", "null"],
    "properties": {
        "type": {"enum": ["SKILL", "TOOL", "FLOW", "SYSTEM"]},
        "target": _NAME,
        "params": {"type": ["object", "null"]},
    },
}
TIMER: dict[str, Any] = {
    "type": ["object", "string"],
    "description": "What happens when the user says nothing for a while.",
    "properties": {
        "delay": {
            "type": ["number", "string"],
            "description": "Seconds, or a text such as 5m, 1h30m, 5 minutes, 5 分钟.",
        },
        "message": {"type": ["string", "null"], "maxLength": LONGEST_MESSAGE},
        "action": ACTION,
        "max_triggers": {
            "type": ["integer", "null"],
            "minimum": 0,
            "maximum": MOST_TRIGGERS,
            "default": 1,
            "description": "How often it fires before the user says something; 0: without end.",
        },
    },
}
OPTIONS: dict[str, Any] = {
    "on_new_message": {
        "enum": [*ON_NEW_MESSAGE, None],
        "default": "supersede",
        "description": "What a message does while the bot is at work on another: both are answered in one pass, or it "
        "waits.",
    },
    "max_iterations": {
        "type": ["integer", "null"],
        "minimum": 1,
        "maximum": MOST_ITERATIONS,
        "default": 10,
        "description": "Decisions of the model in one pass.",
    },
    "max_failed_plans": {
        "type": ["integer", "null"],
        "minimum": 1,
        "maximum": MOST_FAILED_PLANS,
        "default": 3,
        "description": "Plans in a row that cannot be used, after which a person is asked.",
    },
    "apology": {
        "type": ["string", "null"],
        "maxLength": LONGEST_MESSAGE,
        "default": APOLOGY,
        "description": "What the user is told if the bot cannot answer. The default of a Chinese bot is Chinese.",
    },
    "checking": {
        "type": ["string", "null"],
        "maxLength": LONGEST_MESSAGE,
        "default": CHECKING,
        "description": "What the user is told while it is not known whether a call took effect.",
    },
    "handover": {
        "type": ["string", "null"],
        "maxLength": LONGEST_MESSAGE,
        "default": HANDOVER,
        "description": "What the user is told if a person takes over and the model has no words for it.",
    },
    "greet_once": {
        "type": ["boolean", "null"],
        "default": False,
        "description": "Not to greet again after the configuration has changed.",
    },
    "fixed_variables": {
        **_TEXTS,
        "maxItems": MOST_FIXED,
        "description": "Variables of a session that its user cannot change by what he says of himself, besides those "
        "whose names end in id.",
    },
    "handoff_to": {"type": ["string", "null"], "maxLength": LONGEST_NAME, "default": HANDOFF_ROLE},
    "knowledge": {**_TEXT_OR_NONE, "description": "A folder of Markdown and text files beside this file."},
    "passages": {
        "type": ["integer", "null"],
        "minimum": 1,
        "maximum": MOST_PASSAGES,
        "default": 4,
        "description": "Passages of the knowledge base in a prompt.",
    },
    "model": {**_TEXT_OR_NONE, "description": "The model of the bot; left out: the run's."},
}


def _listed(item: dict[str, Any], most: int) -> dict[str, Any]:
    return {"type": ["array", "object", "string", "null"], "items": item, "maxItems": most}


DESCRIBED: dict[str, Any] = {
    "name": {**_TEXT_OR_NONE, "description": "What users know the bot as."},
    "tone": _PROSE,
    "greeting": {**_TEXT_OR_NONE, "description": "Its own message, before the first answer."},
    "language": _PROSE,
    "description": _PROSE,
    "background": _PROSE,
    "instruction": {**_PROSE, "description": "As sop."},
    "instructions": {**_PROSE, "description": "As sop."},
    "sop": {**_PROSE, "description": "How the bot works: text, or the path of a Markdown file beside this one."},
    "constraints": {**_PROSE, "description": "What the bot must not do, and how it has to answer."},
}
BOT: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "A bot",
    "type": "object",
    "properties": {
        **DESCRIBED,
        "basic_settings": {"type": ["object", "null"], "properties": DESCRIBED},
        "tools": _listed(TOOL, MOST_TOOLS),
        "system_tools": _listed(TOOL, MOST_TOOLS),
        "system_actions": {
            **_listed(TOOL, MOST_TOOLS),
            "description": "Names of tools that run silently: neither the model nor the user hears of them.",
        },
        "agent_actions": {**_listed(TOOL, MOST_TOOLS), "description": "Names of tools that do not."},
        "skills": _listed(SKILL, MOST_SKILLS),
        "action_books": {**_listed(SKILL, MOST_SKILLS), "description": "As skills."},
        "flows": _listed(FLOW, MOST_FLOWS),
        "timers": {"type": ["array", "object", "string", "null"], "items": TIMER},
        "options": {"type": ["object", "null"], "properties": OPTIONS},
        **OPTIONS,
    },
}
