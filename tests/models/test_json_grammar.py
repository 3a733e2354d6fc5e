import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripstop.kernel.errors import DefinitionError
from ripstop.models.json_grammar import grammar

TEXT = {"type": "string"}


def test_strings_share_the_room_so_that_the_reply_always_ends():
    schema = {"type": "object", "properties": {"a": TEXT, "b": TEXT}}
    # {"a":"…","b":"…"} has 15 bytes around its texts, and two commas are counted
    assert grammar(schema, room=216, bytes_a_character=1).count("character{0,100}") == 2
    assert grammar(schema, room=216, bytes_a_character=3).count("character{0,33}") == 2


def test_a_short_string_leaves_its_room_to_the_others():
    schema = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 10}, "b": TEXT}}
    written = grammar(schema, room=216, bytes_a_character=1)
    assert "character{0,10}" in written
    assert "character{0,190}" in written


def test_optional_properties_are_left_out_where_others_are_required():
    schema = {"type": "object", "properties": {"a": TEXT, "b": TEXT}, "required": ["b"]}
    written = grammar(schema, room=200, bytes_a_character=1)
    assert '\\"b\\":' in written and '\\"a\\":' not in written


def test_a_schema_that_cannot_fit_is_refused_with_what_it_needs():
    with pytest.raises(DefinitionError, match=r"needs up to 32 tokens .* only 10"):
        grammar({"type": "string", "minLength": 10}, room=10)


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"type": "string", "pattern": "a+"}, "`pattern`"),
        ({"type": "object", "properties": {"x": {"type": "array", "uniqueItems": True}}}, r"\$\.x: .*`uniqueItems`"),
        ({"allOf": []}, "`allOf`"),
        ({"type": "text"}, "'text' is unknown"),
        ({"type": "object", "required": ["x"]}, "'x' is required"),
        ({"$ref": "#/$defs/none"}, "points to nothing"),
        ({"$ref": "other.json"}, "does not point into"),
        ({"type": "object", "properties": {"x": {"$ref": "#"}}}, "refers to itself"),
        ({"type": "integer", "minimum": 3, "maximum": 2}, "no number"),
        ({"enum": []}, "`enum` is empty"),
        ({"enum": [1, True], "type": "string"}, "none of its values"),
        ({"const": True, "type": "integer"}, "none of its values"),
        ({"const": "a", "pattern": "b"}, "`pattern`"),
        ({"$ref": "#/$defs/a", "maxLength": 3, "$defs": {"a": {"type": "string"}}}, "`maxLength`"),
        ({"type": "string", "minLength": 5, "maxLength": 2}, "at least 5 and at most 2"),
        ({"type": "array", "minItems": 3, "maxItems": 1}, "at least 3 and at most 1"),
        (False, "not a schema"),
    ],
)
def test_what_cannot_be_promised_is_refused_by_name(schema, problem):
    with pytest.raises(DefinitionError, match=problem):
        grammar(schema, room=1000)


def test_references_that_multiply_are_refused():
    names = "abcdef"
    doubled = {one: {"anyOf": [{"$ref": f"#/$defs/{other}"}] * 50} for one, other in pairwise(names)}
    with pytest.raises(DefinitionError, match="more than 1000 parts"):
        grammar({"$ref": "#/$defs/a", "$defs": {**doubled, "f": TEXT}}, room=1000)


schemas = st.recursive(
    st.sampled_from(
        [
            TEXT,
            {"type": "boolean"},
            {"type": "integer"},
            {"type": "number", "minimum": 0, "maximum": 1},
            {"enum": ["好", 'say "hi"', None, 3]},
            {"type": ["string", "null"], "maxLength": 5},
        ]
    ),
    lambda inner: st.one_of(
        st.dictionaries(st.text(max_size=5), inner, max_size=3).map(lambda p: {"type": "object", "properties": p}),
        inner.map(lambda i: {"type": "array", "items": i, "maxItems": 2}),
        st.lists(inner, min_size=1, max_size=2).map(lambda o: {"anyOf": o}),
    ),
    max_leaves=6,
)


@given(schemas)
def test_no_grammar_repeats_without_bound_or_leaves_a_line_open(schema):
    written = grammar(schema, room=5000)
    assert len(written.strip().split("\n")) == 2
    rules = re.sub(r'"(?:[^"\\]|\\.)*"', "", written.split("\n", maxsplit=1)[0])
    assert not re.search(r"[*+]|,\}", rules)
    assert written.isascii()
