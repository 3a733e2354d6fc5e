"""The JSON Schema of `verification_policy.json`, for editors. The reader takes its fields and bounds from here."""

from typing import Any

from ripstop.definitions.options import GUARDS, TEXT

from .definition import EvidenceKind

Fields = tuple[tuple[str, ...], tuple[str, ...]]
"""The fields that a check of some kind needs, and those that it can have."""
GATES: dict[str, Fields] = {
    "require_line": (("prefix",), ("agents", "verdicts", "also", "allowed")),
    "forbid_line": (("prefix",), ("agents", "verdicts", "also")),
    "min_number": (("prefix", "number"), ("agents", "verdicts", "also", "required")),
    "max_number": (("prefix", "number"), ("agents", "verdicts", "also", "required")),
    "before": (("first", "then"), ("verdicts", "after", "marked", "unless", "per_task")),
    "finish_needs": (("agents", "verdicts"), ("if_reported", "after", "marked", "unless", "per_task")),
    "finish_needs_plan": ((), ("statuses",)),
    "no_open_blockers": ((), ("agents",)),
}


_ABOUT = ("agents", "verdicts")


def _evidence_fields(kind: EvidenceKind) -> Fields:
    match kind:
        case EvidenceKind.FILE:
            return (), (*_ABOUT, "path", "line", "sha256")
        case EvidenceKind.NUMBER:
            return (), (*_ABOUT, "path", "line", "prefix", "at_least", "at_most")
        case EvidenceKind.QUOTE:
            return ("line", "path"), _ABOUT
        case EvidenceKind.COMMAND:
            return ("command",), (*_ABOUT, "exit_code")


EVIDENCE: dict[str, Fields] = {kind.value: _evidence_fields(kind) for kind in EvidenceKind}
ON_FAILURE = ("stop", "tell")
PICKS = ("one", "last")
MAIN_JSON = ("strict", "last")
NUMBERS: dict[str, tuple[int, int, int, str]] = {
    # setting: default, least, most, what it is
    "max_iterations": (50, 1, 1_000_000, "Iterations of one run, at most."),
    "recent_reports": (3, 0, 1_000, "How many of the last reports MAIN sees."),
    "recent_history": (20, 0, 10_000, "How many of the last entries of the history MAIN sees."),
    "max_report_chars": (20_000, 1, 1_000_000, "How many characters of a report MAIN sees; more are cut."),
    "main_retries": (0, 0, 100, "How often MAIN is asked again if its reply cannot be read."),
}
REQUIRED_RULES = (
    "apply_to",
    "require_verdict",
    "verdict_prefix",
    "verdict_allowed",
    "blocker_prefix",
    "blocker_clear_value",
)
_TEXTS = {"type": "array", "items": TEXT}
_GATE: dict[str, Any] = {
    "type": "object",
    "required": ["gate"],
    "properties": {
        "gate": {"enum": list(GATES)},
        "name": {"type": "string", "description": "What messages call it."},
        "agents": {**_TEXTS, "description": "Whose reports; left out: those of 'apply_to'."},
        "verdicts": {**_TEXTS, "description": "Only reports with one of these verdicts, or the verdicts needed."},
        "prefix": {**TEXT, "description": "How the line begins."},
        "allowed": {**_TEXTS, "description": "What the rest of a required line may be."},
        "number": {"type": "number"},
        "required": {"type": "boolean", "description": "Whether a number that is not there fails the gate."},
        "first": {**TEXT, "description": "The agent that has to report …"},
        "then": {**TEXT, "description": "… before this one is called."},
        "also": {**_TEXTS, "description": "Other ways in which the line may begin."},
        "marked": {"type": "string", "description": "Only if the task or its lines in the plan hold this word."},
        "after": {**_TEXTS, "description": "The report has to be later than the last one of these agents."},
        "unless": {**_TEXTS, "description": "Not for tasks whose lines in the plan hold one of these."},
        "per_task": {
            "type": "boolean",
            "description": "Whether the report has to be about the same task; left out: yes for 'before', else no.",
        },
        "statuses": {
            **_TEXTS,
            "description": "What every task of the plan has to be; left out: one of 'done_statuses'.",
        },
        "if_reported": {
            "type": "boolean",
            "description": "Whether an agent that has not reported in this run is not asked for.",
        },
        "on_failure": {"enum": list(ON_FAILURE), "default": "stop"},
    },
}
_EVIDENCE: dict[str, Any] = {
    "type": "object",
    "required": ["evidence"],
    "properties": {
        "evidence": {"enum": list(EVIDENCE)},
        "name": {"type": "string", "description": "What messages call it."},
        "agents": {**_TEXTS, "description": "Whose reports; left out: those of 'apply_to'."},
        "verdicts": {**_TEXTS, "description": "Only reports with one of these verdicts; left out: all."},
        "path": {**TEXT, "description": "A file of the workspace ({agent}: the agent that reports) …"},
        "line": {
            **TEXT,
            "description": "… or how a line of the report begins that names it. For a quote: that quotes.",
        },
        "sha256": {"type": "string", "pattern": "^[0-9a-fA-F]{64}$"},
        "prefix": {**TEXT, "description": "How the line with the number begins."},
        "at_least": {"type": "number"},
        "at_most": {"type": "number"},
        "command": {**_TEXTS, "description": "A program and its arguments, run in the workspace; there is no shell."},
        "exit_code": {"type": "integer", "minimum": 0, "maximum": 255, "default": 0},
        "on_failure": {"enum": list(ON_FAILURE), "default": "tell"},
    },
}
_PICK = {"enum": [*PICKS, None], "description": "Of several verdicts that differ: an error, or the last."}
_SETTINGS: dict[str, Any] = {
    **{
        name: {"type": ["integer", "null"], "minimum": least, "maximum": most, "default": default, "description": what}
        for name, (default, least, most, what) in NUMBERS.items()
    },
    "main_json": {
        "enum": [*MAIN_JSON, None],
        "default": "strict",
        "description": "Whether MAIN's reply has to be JSON alone, or may have words before it.",
    },
    "done_statuses": {
        **_TEXTS,
        "type": ["array", "null"],
        "description": "Statuses of a task in the plan that mean that it is done.",
    },
    "finish_override": {
        "type": ["boolean", "null"],
        "default": True,
        "description": "Whether MAIN can pass the gates 'finish_needs' with 'finish_review_override'.",
    },
    "plan": {"type": ["string", "null"], "description": "The plan's file, relative to the board's folder."},
    "guards": GUARDS,
}

POLICY_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "The verification policy of a blackboard",
    "description": "What it leaves out has to be in the policy that it extends. Keys that are not known are ignored, "
    "with a warning.",
    "type": "object",
    "properties": {
        "$schema": {"type": "string"},
        "version": {"type": ["integer", "string", "null"]},
        "description": {"type": ["string", "null"]},
        "extends": {
            "type": ["string", "null"],
            "description": "A shipped policy by its name, or a file relative to this one's folder.",
        },
        "report_rules": {
            "type": "object",
            "properties": {
                "apply_to": {**_TEXTS, "description": "Agents whose reports need a verdict and blockers."},
                "require_verdict": {"type": "boolean"},
                "verdict_prefix": TEXT,
                "verdict_allowed": {**_TEXTS, "minItems": 1},
                "blocker_prefix": TEXT,
                "blocker_clear_value": {**TEXT, "description": "What the line says if nothing blocks."},
                "verdict_pick": _PICK,
                "iteration_prefix": {**TEXT, "default": "iteration:"},
            },
        },
        "verdict_pick": _PICK,
        "gates": {"type": ["array", "null"], "items": _GATE},
        "evidence": {"type": ["array", "null"], "items": _EVIDENCE},
        "settings": {"type": ["object", "null"], "properties": _SETTINGS},
        **_SETTINGS,
        "rule_keys": {
            "type": ["object", "null"],
            "description": 'What a key of a section NAME_rules means: a gate, or several; "$value" is its value.',
            "additionalProperties": {"type": ["object", "array"]},
        },
    },
    "patternProperties": {"_rules$": {"type": ["object", "null"]}},
}
