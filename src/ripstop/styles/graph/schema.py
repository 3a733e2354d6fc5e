"""The JSON Schema of `workflow.yaml`, for editors: `ripstop schema graph`.

It is also where the fields of a graph are listed; the reader takes them from here, so that the two agree.
"""

from typing import Any

from ripstop.definitions.options import GUARDS, LIMITS_SCHEMA, TEXT

TYPES = ("coder", "architect", "ask")
ACTIONS = ("force_end", "save_and_end")
LANGUAGES = ("en", "zh")
MOST_TURNS = 1_000_000
MOST_REASKS = 5
MOST_VALUES = 100
LONGEST_NAME = 60

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
        "name": {**TEXT, "description": "The name that states refer to; also the agent's folder in the workspace."},
        "type": {
            "enum": list(TYPES),
            "description": "coder writes files; architect reasons first, with the stronger model, and then edits; "
            "ask only reads.",
        },
        "model": {**TEXT, "description": "The model to use: local, openai:NAME, …, or a role of ripstop.toml."},
        "tools": {
            "type": "array",
            "items": TEXT,
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
        "to": {**TEXT, "description": "The next state, or END."},
        "condition": _CONDITION,
    },
    "required": ["to"],
    "additionalProperties": False,
}

STATE: dict[str, Any] = {
    "type": "object",
    "description": "One turn, taken by one agent; or another workflow, run to its end.",
    "properties": {
        "name": {**TEXT, "not": {"const": "END"}, "description": "A unique name; transitions refer to it."},
        "agent": {**TEXT, "description": "The agent whose turn it is; one of `agents`."},
        "workflow": {
            **TEXT,
            "description": "Instead of an agent: the workflow to run, as `ripstop run` takes it. Its `outcome` and the "
            "keys of its result are decisions.",
        },
        "input": {
            "type": ["string", "null"],
            "description": "What the workflow gets as its goal; filled in like a prompt. Left out: what was said last.",
        },
        "limits": {"$ref": "#/$defs/limits", "description": "What the workflow may spend at most."},
        "start": {"type": ["boolean", "null"], "description": "Marks where the workflow begins; only one state may."},
        "prompt": {
            **TEXT,
            "description": "What the agent is told. {{initial_message}}, {{last_agent_name}}, "
            "{{last_agent_content}}, {{last_agent_decisions}}, {{COLLABORATION_GUIDE}} and `values` are filled in, and "
            '{% if last_agent_name == "x" %} … {% else %} … {% endif %} chooses.',
        },
        "transitions": {
            "type": ["array", "null"],
            "items": {"$ref": "#/$defs/transition"},
            "description": "Where it continues, tried in order. None: the workflow ends after this state.",
        },
    },
    "required": ["name"],
    "oneOf": [
        {"required": ["agent", "prompt"], "properties": {"workflow": False, "input": False, "limits": False}},
        {"required": ["workflow"], "properties": {"agent": False, "prompt": False}},
    ],
    "additionalProperties": False,
}

EXIT: dict[str, Any] = {
    "type": "object",
    "description": "Ends the workflow from any state; checked before the transitions.",
    "properties": {
        "condition": _CONDITION,
        "action": {
            "enum": list(ACTIONS),
            "description": "force_end ends the run; save_and_end parks it, and `ripstop resume` continues from there.",
        },
    },
    "required": ["condition", "action"],
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
        "name": {**TEXT, "description": "The workflow's name; the same as the folder that holds the file."},
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
            "description": "Who takes part. Not needed if every state runs a workflow.",
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
    "required": ["name", "states"],
    "anyOf": [{"required": ["agents"]}, {"properties": {"states": {"items": {"required": ["workflow"]}}}}],
    "additionalProperties": False,
    "$defs": {
        "agent": AGENT,
        "state": STATE,
        "limits": LIMITS_SCHEMA,
        "transition": TRANSITION,
        "exit_condition": EXIT,
        "guards": GUARDS,
    },
}
