"""What a server says about a tool becomes a card, or a reason why not; and pins say what the user agreed to."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripstop.faces.next_steps import in_commands
from ripstop.kernel.errors import UsageError
from ripstop.text.visible_text import without_hidden
from ripstop.tools.mcp.card import LONGEST_NAME, MAX_BYTES, ToolCard, Unusable, read_card
from ripstop.tools.mcp.schema_check import wrong_arguments
from ripstop.tools.mcp.servers import FILE, MOST_NOTES, MOST_TOOLS, Pins, ServerSpec, ToolListing

GIT = ServerSpec(name="git", command=("mcp-server-git",))
OBJECT: dict[str, Any] = {"type": "object", "properties": {"path": {"type": "string"}}}
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
TOOLS = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["status", "log", "a.b", "x" * 200, ""]) | ANYTHING,
        "inputSchema": st.just(OBJECT) | ANYTHING,
    },
    optional={"description": ANYTHING, "annotations": ANYTHING, "execution": ANYTHING},
)


def a_card(**more: Any) -> ToolCard:
    return read_card("git", {"name": "status", "description": "Show it.", "inputSchema": OBJECT, **more})


@settings(max_examples=50)
@given(st.lists(ANYTHING | TOOLS, max_size=6))
def test_whatever_a_server_lists_is_a_card_or_a_note(tools: list[Any]) -> None:
    listing = ToolListing("git")
    taken = listing.take(tools)
    assert len(taken) == len(listing.cards) <= MOST_TOOLS and len(listing.notes) <= MOST_NOTES
    for card in taken:
        assert len(card.name) <= LONGEST_NAME and card.name.startswith("git__")
        assert without_hidden(card.description) == card.description
        assert len(json.dumps(card.schema)) <= 7 * MAX_BYTES
        assert card.schema["type"] == "object"


@pytest.mark.parametrize(
    "change",
    [
        {"description": "Show it!"},
        {"inputSchema": {**OBJECT, "required": ["path"]}},
        {"inputSchema": {"type": "object", "properties": {"path": {"type": "string", "description": "Also send it."}}}},
        {"annotations": {"readOnlyHint": True}},
        {"annotations": {"destructiveHint": False}},
    ],
)
def test_every_change_of_what_is_told_or_decided_by_changes_the_pin(change: dict[str, Any]) -> None:
    assert a_card(**change).pin != a_card().pin


@pytest.mark.parametrize(
    "same", [{"title": "Status"}, {"outputSchema": OBJECT}, {"description": "Show\u200b it.\x1b"}, {"icons": []}]
)
def test_what_nobody_is_told_does_not_change_the_pin(same: dict[str, Any]) -> None:
    assert a_card(**same).pin == a_card().pin


def test_words_lose_what_hides_and_values_must_not_hide_anything() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "description": "Hid\u2066den\u200b"}}}
    assert a_card(inputSchema=schema).schema["properties"]["a"]["description"] == "Hidden"
    hidings: list[dict[str, Any]] = [{"enum": ["a\u200b"]}, {"default": "\u202ea"}, {"properties": {"a\x00": {}}}]
    for hiding in hidings:
        with pytest.raises(Unusable, match="hides characters"):
            a_card(inputSchema={"type": "object", **hiding})


def test_a_long_name_is_shortened_and_stays_the_only_one() -> None:
    first, second = (read_card("git", {"name": "x" * 100 + end, "inputSchema": OBJECT}) for end in "ab")
    assert len(first.name) == len(second.name) == LONGEST_NAME and first.name != second.name


@pytest.mark.parametrize("name", ["a.b", "a b", "a/b", "", "ä", "a\nb", "x" * 129, None, 7, ["a"]])
def test_a_name_that_not_every_model_takes_is_refused(name: Any) -> None:
    with pytest.raises(Unusable, match="its name has other characters"):
        a_card(name=name)


def test_arguments_are_checked_by_the_schema() -> None:
    schema = {**OBJECT, "required": ["path"], "additionalProperties": False}
    assert wrong_arguments(schema, {"path": "a"}) == ""
    assert "'path' is a required property" in wrong_arguments(schema, {})
    assert wrong_arguments(schema, {"path": 7}) == "['path']: 7 is not of type 'string'"
    assert "Additional properties are not allowed" in wrong_arguments(schema, {"path": "a", "b": 1})


def test_a_schema_cannot_keep_us_busy() -> None:
    twice = {f"a{at}": {"allOf": [{"$ref": f"#/$defs/a{at + 1}"}] * 2} for at in range(40)}
    bomb = {"type": "object", "properties": {"x": {"$ref": "#/$defs/a0"}}, "$defs": {**twice, "a40": {}}}
    assert wrong_arguments(bomb, {"x": 1}) == "its schema refers to itself too often to be checked"
    for at in ("#", "#/properties/x"):
        circle = {"type": "object", "properties": {"x": {"$ref": at}}, "$ref": "#"}
        assert "refers to itself too often" in wrong_arguments(circle, {"x": {}})
    slow = {"type": "object", "properties": {"x": {"type": "string", "pattern": "^(a+)+$"}}}
    assert wrong_arguments(slow, {"x": "a" * 40 + "b"}) == ""
    assert "does not have" in wrong_arguments({"type": "object", "$ref": "#/nowhere"}, {})


def test_pins_are_for_one_server_in_one_project(tmp_path: Path) -> None:
    pins, card = Pins(tmp_path), a_card()
    pins.remember(GIT, [card])
    assert Pins(tmp_path).cards(GIT) == {"status": card}
    for other in (
        ServerSpec(name="git", command=("another",)),
        ServerSpec(name="git", command=GIT.command, project="/cloned"),
        ServerSpec(name="git2", command=GIT.command),
        ServerSpec(name="git", url="https://mcp.example"),
    ):
        assert pins.cards(other) == {}
    pins.remember(ServerSpec(name="git2", command=GIT.command), [])
    pins.remember(GIT, [])
    assert pins.cards(GIT) == {}


def test_pins_that_others_could_have_written_are_an_error_and_not_a_consent(tmp_path: Path) -> None:
    pins = Pins(tmp_path)
    pins.remember(GIT, [a_card()])
    assert (tmp_path / FILE).stat().st_mode & 0o077 == 0
    os.chmod(tmp_path / FILE, 0o666)
    with pytest.raises(UsageError, match="can be written by other users") as refused:
        pins.cards(GIT)
    assert in_commands(refused.value.message).endswith("agree again: ripstop tools trust SERVER")
    os.chmod(tmp_path / FILE, 0o600)
    (tmp_path / FILE).write_text("{")
    with pytest.raises(UsageError, match="is damaged"):
        pins.cards(GIT)


def test_a_card_in_the_file_that_does_not_fit_its_pin_counts_as_none(tmp_path: Path) -> None:
    pins = Pins(tmp_path)
    pins.remember(GIT, [a_card()])
    (tmp_path / FILE).write_text((tmp_path / FILE).read_text().replace("Show it.", "Do it."))
    assert pins.cards(GIT) == {}
