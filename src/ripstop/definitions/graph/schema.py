"""The JSON Schema of `workflow.yaml`, for editors: `ripstop schema graph`.

It is also where the fields of a graph are listed; the reader takes them from here, so that the two agree.
"""

from typing import Any

TYPES = ("coder", "architect", "ask")
ACTIONS = ("force_end", "save_and_end")
LANGUAGES = ("en", "zh")
MOST_TURNS = 1_000_000
MOST_REASKS = 5
MOST_PATIENCE = 1000
MOST_VALUES = 100
LONGEST_NAME = 60
COURTESY = ("terminate", "ignore")
THEN = ("end", "ask")

_TEXT = {"type": "string", "minLength": 1, "pattern": r"\S"}
_CONDITION = {
    "type": ["string", "boolean", "null"],
    "description": "Decision fields joined with AND, OR, NOT, comparisons and brackets, such as "
    "`approved AND score >= 8`. Empty, `true` and `always` hold; `false` and `never` do not. Besides the decisions "
    "there are max_turns_exceeded, error_occurred, turns and turn_count_<state>.",
}

AGENT: dict[str, Any] = {
    "type": "object",
    "description": "A member of the team.",
    "properties": {
        "name": {**_TEXT, "description": "The name that states refer to; also the agent's folder in the workspace."},
        "type": {
            "enum": list(TYPES),
            "description": "coder writes files; architect reasons first, with the stronger model, and then edits; "
            "ask only reads.",
        },
        "model": {**_TEXT, "description": "The model to use: local, openai:NAME, …, or a role of ripstop.toml."},
        "tools": {
            "type": "array",
            "items": _TEXT,
            "uniqueItems": True,
            "description": "The tools it may call. Left out: those of its type.",
        },
    },
    "required": ["name", "type"],
    "additionalProperties": False,
}

TRANSITION: dict[str, Any] = {
    "type": "object",
    "description": "A way on. The first transition whose condition holds is taken.",
    "properties": {
        "to": {**_TEXT, "description": "The next state, or END."},
        "condition": _CONDITION,
    },
    "required": ["to"],
    "additionalProperties": False,
}

STATE: dict[str, Any] = {
    "type": "object",
    "description": "One turn, taken by one agent.",
    "properties": {
        "name": {**_TEXT, "not": {"const": "END"}, "description": "A name of its own; transitions refer to it."},
        "agent": {**_TEXT, "description": "The agent whose turn it is; one of `agents`."},
        "start": {"type": ["boolean", "null"], "description": "Marks where the workflow begins; only one state may."},
        "prompt": {
            **_TEXT,
            "description": "What the agent is told. {{initial_message}}, {{last_agent_name}}, "
            "{{last_agent_content}}, {{last_agent_decisions}}, {{COLLABORATION_GUIDE}} and `values` are filled in, and "
            '{% if last_agent_name == "x" %} … {% else %} … {% endif %} chooses.',
        },
        "transitions": {
            "type": ["array", "null"],
            "items": {"$ref": "#/$defs/transition"},
            "description": "Where it goes on, tried in order. None: the workflow ends after this state.",
        },
    },
    "required": ["name", "agent", "prompt"],
    "additionalProperties": False,
}

EXIT: dict[str, Any] = {
    "type": "object",
    "description": "Ends the workflow from any state; looked at before the transitions.",
    "properties": {
        "condition": _CONDITION,
        "action": {
            "enum": list(ACTIONS),
            "description": "force_end ends the run; save_and_end parks it, and `ripstop resume` goes on from there.",
        },
    },
    "required": ["condition", "action"],
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
            "items": _TEXT,
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
            "description": "Whether a guard's verdict ends the run, or asks a person whether it may go on.",
        },
    },
    "additionalProperties": False,
}

VALUES: dict[str, Any] = {
    "type": ["object", "null"],
    "description": "Texts that prompts use as {{name}}, and that `ripstop run --set name=TEXT` sets: each with its "
    "default. Without a default (null) a run must set it.",
    "propertyNames": {"pattern": r"^[^\s\d{}%][^\s{}%]*$", "maxLength": LONGEST_NAME},
    "maxProperties": MOST_VALUES,
    "additionalProperties": {"type": ["string", "null"]},
}

GRAPH: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "ripstop graph workflow",
    "type": "object",
    "description": "Agents take turns along the edges of a state graph.",
    "properties": {
        "name": {**_TEXT, "description": "The workflow's name; the same as the folder that holds the file."},
        "description": {"type": ["string", "null"], "description": "What the workflow is for."},
        "initial_message": {"type": ["string", "null"], "description": "The goal; `--input` takes its place."},
        "max_turns": {
            "type": ["integer", "null"],
            "minimum": 1,
            "maximum": MOST_TURNS,
            "default": 10,
            "description": "How many turns are taken at most, by all agents together.",
        },
        "language": {
            "enum": [*LANGUAGES, None],
            "default": "en",
            "description": "The language of the built-in collaboration guide.",
        },
        "strict_decisions": {
            "type": ["boolean", "null"],
            "default": False,
            "description": "Whether a decision that a condition needs and the agent left out is an error.",
        },
        "reasks": {
            "type": ["integer", "null"],
            "minimum": 0,
            "maximum": MOST_REASKS,
            "default": 1,
            "description": "How often an agent is asked again when its reply cannot be read.",
        },
        "guards": {"$ref": "#/$defs/guards", "description": "How the run is watched for loops and idle talk."},
        "values": VALUES,
        "agents": {
            "type": "array",
            "minItems": 1,
            "items": {"$ref": "#/$defs/agent"},
            "description": "Who takes part.",
        },
        "states": {
            "type": "array",
            "minItems": 1,
            "items": {"$ref": "#/$defs/state"},
            "description": "The turns, and how they follow one another.",
        },
        "exit_conditions": {
            "type": ["array", "null"],
            "items": {"$ref": "#/$defs/exit_condition"},
            "description": "What ends the workflow whatever the transitions say. The turn limit always does.",
        },
    },
    "required": ["name", "agents", "states"],
    "additionalProperties": False,
    "$defs": {"agent": AGENT, "state": STATE, "transition": TRANSITION, "exit_condition": EXIT, "guards": GUARDS},
}


def fields(schema: dict[str, Any]) -> tuple[str, ...]:
    """The fields that a mapping of this schema may have."""
    return tuple(schema["properties"])
