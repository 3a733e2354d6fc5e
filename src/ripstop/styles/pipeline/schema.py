"""The JSON Schema of `pipeline.yaml`, for editors. The reader takes its fields and bounds from here."""

from typing import Any, get_args

from ripstop.definitions.options import GUARDS, TEXT

from .definition import MAX_RETURNS, MAX_REVIEWS, RATE_LIMIT, StageKind

KINDS: tuple[str, ...] = get_args(StageKind)
MOST_STAGES = 50
MOST_ITERATIONS = 10
MOST_REVIEWS = 100
MOST_RETURNS = 10
SLOWEST = 3600
"""Seconds between two calls of models."""
MOST_PATHS = 100
MOST_TOOLS = 200
LONGEST_NAME = 64
LONGEST_TITLE = 120
LONGEST_PATH = 200
LONGEST_INSTRUCTIONS = 50_000
NAME = rf"^[^\W\d_][\w-]{{0,{LONGEST_NAME - 1}}}$"
PATH = r"^[^./\\][^/\\]*(/[^./\\][^/\\]*)+$"
"""In a folder; no part is hidden, or leads out."""

_NAME = {"type": "string", "pattern": NAME}
_NAME_OR_NONE = {"type": ["string", "null"], "pattern": NAME}
_TEXT_OR_NONE = {"type": ["string", "null"]}
_PATHS = {
    "type": ["array", "null"],
    "items": {"type": "string", "pattern": PATH, "maxLength": LONGEST_PATH},
    "maxItems": MOST_PATHS,
    "uniqueItems": True,
}
_TOOLS = {"type": ["array", "null"], "items": TEXT, "maxItems": MOST_TOOLS, "uniqueItems": True}
_INSTRUCTIONS: dict[str, Any] = {
    "instructions": {
        "type": ["string", "null"],
        "maxLength": LONGEST_INSTRUCTIONS,
        "description": "How the agent works.",
    },
    "instructions_file": {
        **_TEXT_OR_NONE,
        "description": "A file with the instructions, in the folder of this one or below it.",
    },
    "model": {**_TEXT_OR_NONE, "description": "Its model; left out: the run's."},
}

CRITIC: dict[str, Any] = {
    "type": ["object", "null"],
    "description": "The agent that checks what the stage has made. A critical or major finding starts an iteration.",
    "properties": {
        "agent": {**_NAME_OR_NONE, "description": "Its name; left out: that of the stage with _critic."},
        **_INSTRUCTIONS,
        "tools": {**_TOOLS, "description": "What it may call; it reports with provide_feedback."},
    },
    "additionalProperties": False,
}

STAGE: dict[str, Any] = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {**_NAME, "description": "What commands call it."},
        "title": {"type": ["string", "null"], "maxLength": LONGEST_TITLE, "description": "What people read."},
        "kind": {
            "enum": [*KINDS, None],
            "default": "work",
            "description": "check: the engine looks for facts, and the agent judges them. delivery: the engine writes "
            "the report, and the agent the words around it.",
        },
        "agent": {**_NAME_OR_NONE, "description": "The actor's name; left out: the stage's."},
        **_INSTRUCTIONS,
        "inputs": {**_PATHS, "description": "Files below .cowork that an earlier stage has made."},
        "draft": {
            "type": ["string", "null"],
            "pattern": PATH,
            "maxLength": LONGEST_PATH,
            "description": "The file below .cowork that the actor's draft is kept in.",
        },
        "draft_tools": {**_TOOLS, "description": "What the actor may call while it writes the draft."},
        "review": {
            "type": ["boolean", "null"],
            "default": False,
            "description": "Whether a person reviews the draft, and the code of a stage that writes it.",
        },
        "outputs": {**_PATHS, "description": "Files below .cowork that have to be there, and valid, at the end."},
        "tools": {
            **_TOOLS,
            "description": "What the actor may call to make the output; none: the draft is the output.",
        },
        "critic": CRITIC,
        "max_iterations": {
            "type": ["integer", "null"],
            "minimum": 1,
            "maximum": MOST_ITERATIONS,
            "default": 1,
            "description": "How often actor and critic take turns, at most.",
        },
        "workflow": {**_TEXT_OR_NONE, "description": "A workflow that makes the output in the actor's place."},
        "writes_code": {
            "type": ["boolean", "null"],
            "default": False,
            "description": "Whether it writes files of the project, outside of .cowork.",
        },
    },
    "additionalProperties": False,
}

PIPELINE: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "A pipeline",
    "type": "object",
    "required": ["name", "stages"],
    "properties": {
        "name": {**_NAME, "description": "The pipeline's name."},
        "description": _TEXT_OR_NONE,
        "rate_limit": {
            "type": ["number", "null"],
            "minimum": 0,
            "maximum": SLOWEST,
            "description": f"Seconds between two calls of models; left out: {RATE_LIMIT:g}, or 0 for scripted agents.",
        },
        "max_reviews": {
            "type": ["integer", "null"],
            "minimum": 1,
            "maximum": MOST_REVIEWS,
            "default": MAX_REVIEWS,
            "description": "Reviews of one stage in one run.",
        },
        "max_returns": {
            "type": ["integer", "null"],
            "minimum": 0,
            "maximum": MOST_RETURNS,
            "default": MAX_RETURNS,
            "description": "How often a product that cannot be delivered goes back to the stage that writes code.",
        },
        "auto_goto": {
            "type": ["boolean", "null"],
            "default": False,
            "description": "Whether a run goes back by itself where an agent asks for it.",
        },
        "guards": GUARDS,
        "stages": {
            "type": "array",
            "minItems": 1,
            "maxItems": MOST_STAGES,
            "items": STAGE,
            "description": "In the order in which they work.",
        },
    },
    "additionalProperties": False,
}
