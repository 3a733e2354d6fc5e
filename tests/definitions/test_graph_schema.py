"""The JSON Schema that editors use says what the reader says, as far as a schema can."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from ripstop.definitions.graph.schema import GRAPH
from tests.definitions.wrong_definitions import RIGHT, ok
from tests.harness.workflows import WORKFLOWS

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").rglob("workflow.yaml"))
KINDS: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "null": type(None),
}
UNDERSTOOD = {
    "$schema", "$defs", "$ref", "title", "description", "default", "type", "enum", "const", "not", "properties",
    "required", "additionalProperties", "items", "minItems", "uniqueItems", "minLength", "pattern", "minimum",
    "maximum", "propertyNames", "maxProperties", "maxLength",
}  # fmt: skip


def is_kind(value: Any, kind: str) -> bool:
    return isinstance(value, KINDS[kind]) and not (kind == "integer" and isinstance(value, bool))


def accepts(schema: dict[str, Any], value: Any) -> bool:
    """Whether a value fits a schema; knows exactly the words that ours uses."""
    assert schema.keys() <= UNDERSTOOD, schema.keys() - UNDERSTOOD
    if "$ref" in schema:
        return accepts(GRAPH["$defs"][schema["$ref"].removeprefix("#/$defs/")], value)
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    fits = [
        not kinds or any(is_kind(value, kind) for kind in kinds),
        value in schema.get("enum", [value]),
        "not" not in schema or value != schema["not"]["const"],
    ]
    if isinstance(value, str):
        fits += [
            schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)),
            bool(re.search(schema.get("pattern", ""), value)),
        ]
    if isinstance(value, int) and not isinstance(value, bool):
        fits.append(schema.get("minimum", value) <= value <= schema.get("maximum", value))
    if isinstance(value, list):
        fits += [accepts(schema.get("items", {}), item) for item in value]
        fits += [len(value) >= schema.get("minItems", 0), not schema.get("uniqueItems") or len({*value}) == len(value)]
    if isinstance(value, dict):
        fits.append(value.keys() >= {*schema.get("required", ())})
        fits.append(len(value) <= schema.get("maxProperties", len(value)))
        for key, v in value.items():
            known = schema.get("properties", {}).get(key, schema["additionalProperties"])
            fits.append(accepts(schema.get("propertyNames", {}), key) and known is not False and accepts(known, v))
    return all(fits)


def fits(text: str) -> bool:
    return accepts(GRAPH, yaml.safe_load(text))


@pytest.mark.parametrize("text", [RIGHT, *WORKFLOWS.values()], ids=["right", *WORKFLOWS])
def test_accepts_what_is_right(text: str) -> None:
    assert fits(text)


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
