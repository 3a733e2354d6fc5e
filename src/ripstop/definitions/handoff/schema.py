"""The JSON Schema of `handoff.yaml`, for editors. The reader takes its fields and bounds from here."""

from typing import Any

from ripstop.definitions.option_schema import GUARDS

LANGUAGES = ("en", "zh")
MAX_INTERACTIONS, MAX_ATTEMPTS = 1_000_000, 100

HANDOFF: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "A folder of hand-off documents",
    "description": "The agents of the folder are in roles/NAME.md, a file for each. Every field has a default, and so "
    "has the whole file.",
    "type": ["object", "null"],
    "properties": {
        "max_interactions": {
            "type": ["integer", "null"],
            "minimum": 1,
            "maximum": MAX_INTERACTIONS,
            "default": 10,
            "description": "Acceptances, hand-overs and completions that are allowed for a document.",
        },
        "attempts": {
            "type": ["integer", "null"],
            "minimum": 1,
            "maximum": MAX_ATTEMPTS,
            "default": 3,
            "description": "How often an agent may fail at a document before a person is asked.",
        },
        "language": {
            "enum": [*LANGUAGES, None],
            "description": "The language of what is written into documents. Left out: that of the task.",
        },
        "first": {
            "type": ["string", "null"],
            "description": "The role that gets a document for which no owner is named. Left out: the first by name.",
        },
        "models": {
            "type": ["object", "null"],
            "additionalProperties": {"type": "string", "minLength": 1, "pattern": r"\S"},
            "description": "The model of a role, by its name. Left out: the default model.",
        },
        "guards": GUARDS,
    },
    "additionalProperties": False,
}
