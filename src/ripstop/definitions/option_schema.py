"""JSON Schemas of what the definitions of several styles set: guards and limits."""

from typing import Any

MOST_PATIENCE = 1000
MOST_LIMIT = 10**12
COURTESY = ("terminate", "ignore")
THEN = ("end", "ask")
TEXT = {"type": "string", "minLength": 1, "pattern": r"\S"}

_AMOUNT = {"type": ["integer", "null"], "minimum": 1, "maximum": MOST_LIMIT}
_FRACTION = {"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": MOST_LIMIT}

LIMITS: dict[str, Any] = {
    "type": ["object", "null"],
    "description": "What a workflow may spend at most, of what the run has left.",
    "properties": {
        "tokens": {**_AMOUNT, "description": "Tokens of its prompts and replies."},
        "money": {**_FRACTION, "description": "Money, in the currency of the prices."},
        "calls": {**_AMOUNT, "description": "Calls of models."},
        "seconds": {**_FRACTION, "description": "Seconds at work."},
        "turns": {**_AMOUNT, "description": "Turns of its agents."},
    },
    "additionalProperties": False,
}

GUARDS: dict[str, Any] = {
    "type": ["object", "null"],
    "description": "How the run is watched for loops and idle talk.",
    "properties": {
        "patience": {
            "type": ["integer", "null"],
            "minimum": 0,
            "maximum": MOST_PATIENCE,
            "default": 5,
            "description": "How often the same may be done with nothing changed, by one agent or by several in a "
            "circle; 0: for ever.",
        },
        "courtesy": {
            "enum": [*COURTESY, None],
            "default": "terminate",
            "description": "Whether two turns in a row of nothing but courtesies end the run.",
        },
        "phrases": {
            "type": ["array", "null"],
            "items": TEXT,
            "description": "Courtesies besides the built-in ones.",
        },
        "end_marker": {
            "type": ["string", "null"],
            "default": "",
            "description": "Words with which an agent ends the run, such as [WORKFLOW_END].",
        },
        "then": {
            "enum": [*THEN, None],
            "default": "end",
            "description": "Whether a guard's verdict ends the run, or asks a person whether it may continue.",
        },
    },
    "additionalProperties": False,
}


def fields(schema: dict[str, Any]) -> tuple[str, ...]:
    """The fields that a mapping of this schema may have."""
    return tuple(schema["properties"])
