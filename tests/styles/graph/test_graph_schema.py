"""The JSON Schema that editors use says what the reader says, as far as a schema can."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from ripstop.styles.graph.definition import INSTRUCTIONS, MODELS, SHORT_INSTRUCTIONS, TOOLS
from ripstop.styles.graph.schema import AGENT, GRAPH, LANGUAGES, TYPES
from tests.definitions.wrong_definitions import BOB, RIGHT, ok
from tests.harness.workflows import WORKFLOWS, check_graph

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").rglob("workflow.yaml"))
KINDS: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "null": type(None),
}
UNDERSTOOD = {
    "$schema", "$defs", "$ref", "title", "description", "default", "type", "enum", "const", "not", "properties",
    "required", "additionalProperties", "items", "minItems", "maxItems", "uniqueItems", "minLength", "pattern",
    "minimum", "maximum", "propertyNames", "maxProperties", "maxLength", "oneOf", "anyOf", "exclusiveMinimum",
}  # fmt: skip


def is_kind(value: Any, kind: str) -> bool:
    return isinstance(value, KINDS[kind]) and not (kind in ("integer", "number") and isinstance(value, bool))


def accepts(schema: dict[str, Any] | bool, value: Any) -> bool:
    """Whether a value fits a schema; knows exactly the words that ours uses."""
    if isinstance(schema, bool):
        return schema
    assert schema.keys() <= UNDERSTOOD, schema.keys() - UNDERSTOOD
    if "$ref" in schema:
        return accepts(GRAPH["$defs"][schema["$ref"].removeprefix("#/$defs/")], value)
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    fits = [
        not kinds or any(is_kind(value, kind) for kind in kinds),
        value in schema.get("enum", [value]),
        "not" not in schema or value != schema["not"]["const"],
        "oneOf" not in schema or sum(accepts(one, value) for one in schema["oneOf"]) == 1,
        "anyOf" not in schema or any(accepts(one, value) for one in schema["anyOf"]),
    ]
    if isinstance(value, str):
        fits += [
            schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)),
            bool(re.search(schema.get("pattern", ""), value)),
        ]
    if isinstance(value, int | float) and not isinstance(value, bool):
        fits.append(value > schema.get("exclusiveMinimum", value - 1))
        fits.append(schema.get("minimum", value) <= value <= schema.get("maximum", value))
    if isinstance(value, list):
        fits += [accepts(schema.get("items", {}), item) for item in value]
        fits.append(schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)))
        fits.append(not schema.get("uniqueItems") or len({*value}) == len(value))
    if isinstance(value, dict):
        fits.append(value.keys() >= {*schema.get("required", ())})
        fits.append(len(value) <= schema.get("maxProperties", len(value)))
        for key, v in value.items():
            known = schema.get("properties", {}).get(key, schema.get("additionalProperties", True))
            fits.append(accepts(schema.get("propertyNames", {}), key) and accepts(known, v))
    return all(fits)


def fits(text: str) -> bool:
    return accepts(GRAPH, yaml.safe_load(text))


@pytest.mark.parametrize("text", [RIGHT, *WORKFLOWS.values()], ids=["right", *WORKFLOWS])
def test_accepts_what_is_right(text: str) -> None:
    assert fits(text)


NESTED = "    workflow: review\n    input: Check it.\n    limits: {calls: 5, money: 0.5, turns: }\n"


def test_accepts_states_that_run_workflows() -> None:
    assert fits(ok(BOB, NESTED))
    assert fits("name: x\nstates: [{name: s, workflow: other}]")


@pytest.mark.parametrize(
    "state",
    [
        NESTED + "    agent: bob\n",
        NESTED + "    prompt: Go.\n",
        "    workflow: ''\n",
        "    workflow: 3\n",
        "    workflow: a\n    input: [b]\n",
        "    workflow: a\n    limits: {calls: 0}\n",
        "    workflow: a\n    limits: {money: 0}\n",
        "    workflow: a\n    limits: {cals: 1}\n",
        "    workflow: a\n    limits: 5\n",
        "    input: a\n" + BOB,
        "    limits: {calls: 1}\n" + BOB,
        "",
    ],
)
def test_refuses_what_the_reader_refuses_of_a_workflow(state: str, tmp_path: Path) -> None:
    text = ok(BOB, state)
    assert not fits(text)
    (tmp_path / "any.yaml").write_text(text, encoding="utf-8")
    assert [problem.severity for problem in check_graph(tmp_path / "any.yaml")][:1] == ["error"]


def test_a_graph_with_an_agents_turn_needs_agents() -> None:
    assert not fits("name: x\nstates: [{name: s, agent: a, prompt: p}, {name: t, workflow: other}]")


def test_accepts_values_with_and_without_a_default() -> None:
    assert fits(ok("max_turns: 5", "values: {tone: friendly, 客户: }"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_accepts_the_examples(path: Path) -> None:
    assert fits(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("name: right\n", ""),
        ("name: right", "name: 42"),
        ("name: right", "name: ' '"),
        ("max_turns: 5", "max_turns: 0"),
        ("max_turns: 5", "max_turns: five"),
        ("max_turns: 5", "max_turn: 5"),
        ("max_turns: 5", "reasks: 6"),
        ("max_turns: 5", "language: fr"),
        ("max_turns: 5", "values: {tone: 3}"),
        ("max_turns: 5", "values: {'a b': c}"),
        ("max_turns: 5", "values: [tone]"),
        ("max_turns: 5", "strict_decisions: 1"),
        ("type: ask", "type: asker"),
        ("    type: ask\n", ""),
        ("type: ask", "type: ask\n    tools: [a, a]"),
        ("start: true", "start: 1"),
        ("    agent: bob\n", ""),
        ("agents:\n  - name: ann\n    type: coder\n  - name: bob\n    type: ask\n", ""),
        ("name: two", "name: END"),
        ("condition: good", "condition: 7"),
        ("to: two", "too: two"),
        ("action: force_end", "action: stop"),
        ("  - condition: error_occurred\n    action", "  - action"),
    ],
)
def test_refuses_what_is_wrong(old: str, new: str) -> None:
    assert not fits(ok(old, new))


def test_every_field_is_described_and_nothing_else_is_allowed() -> None:
    assert GRAPH["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    for schema in (GRAPH, *GRAPH["$defs"].values()):
        assert schema["additionalProperties"] is False and schema["description"]
        assert all(field["description"].strip() for field in schema["properties"].values())


def test_every_agent_type_has_tools_and_words_in_each_language() -> None:
    assert TOOLS.keys() == set(TYPES) >= MODELS.keys()
    told = {(kind, language) for kind in TYPES for language in LANGUAGES}
    assert INSTRUCTIONS.keys() == SHORT_INSTRUCTIONS.keys() == told
    assert all(text.strip() for texts in (INSTRUCTIONS, SHORT_INSTRUCTIONS) for text in texts.values())
    assert all(re.search(rf"\b{kind}\b", AGENT["properties"]["type"]["description"]) for kind in TYPES)
