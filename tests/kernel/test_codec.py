"""Events to bytes and back, and what is refused loudly."""

import types
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st

from ripstop.kernel.codec import Codec
from ripstop.kernel.effects import AgentReplied, CallTool, ToolCall, ToolReturned, Usage
from ripstop.kernel.errors import UnknownRecord, Unwritable
from ripstop.kernel.events import DECISIONS, FACTS, FORMAT, Answered, Asked, Event, Ordered, Started
from ripstop.styles.graph.events import GRAPH_EVENTS
from ripstop.testing import ERRAND_EVENTS

CODEC = Codec((*GRAPH_EVENTS, *ERRAND_EVENTS))
EVENTS: tuple[type[Event], ...] = (*FACTS, *DECISIONS, *GRAPH_EVENTS, *ERRAND_EVENTS)

numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.just("type"), inner, max_size=3),
    max_leaves=8,
)
PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    Any: json_values,
    int: st.integers(-(2**62), 2**62),
    float: st.floats(allow_nan=False, allow_infinity=False),
    str: st.text(max_size=40),
    bool: st.booleans(),
    type(None): st.none(),
}


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Anything that a field of this type may hold."""
    if kind in PLAIN:
        return PLAIN[kind]
    if get_origin(kind) in (Union, types.UnionType):
        return st.one_of(*(values(part) for part in get_args(kind)))
    if get_origin(kind) is dict:
        return st.dictionaries(st.text(), json_values, max_size=3)
    if get_origin(kind) is tuple:
        first, *rest = get_args(kind)
        if rest == [...]:
            return st.lists(values(first), max_size=3).map(tuple)
        return st.tuples(values(first), *(values(part) for part in rest))
    hints = get_type_hints(kind)
    return st.builds(kind, **{name: values(hints[name]) for name in kind.__struct_fields__})


@pytest.mark.parametrize("kind", EVENTS, ids=[str(kind.__struct_config__.tag) for kind in EVENTS])
def test_every_event_comes_back_as_it_went(kind: type[Event]) -> None:
    @settings(max_examples=25, deadline=None)
    @for_all(event=values(kind))
    def there_and_back(event: Event) -> None:
        if isinstance(event, Started) and event.format > FORMAT:
            event = msgspec.structs.replace(event, format=FORMAT)
        assert CODEC.load(CODEC.dump(event)) == event

    there_and_back()


def test_every_tag_is_its_own() -> None:
    tags = [kind.__struct_config__.tag for kind in EVENTS]
    assert len(set(tags)) == len(tags)


@pytest.mark.parametrize(
    "event",
    [
        Answered(to=1, answer=ToolReturned(value={"type": "asked", "command": {"type": "no such"}})),
        Answered(to=1, answer=AgentReplied(calls=(ToolCall(id="1", tool="t", arguments={"type": "x"}),))),
        Asked(command=CallTool(tool="t", arguments={"type": ["started", {"type": None}]})),
        Ordered(order="o", arguments={"type": "heard", "text": 1}),
        Started(style="s", definition="d", settings={"type": "forked"}),
    ],
)
def test_a_free_form_dictionary_with_a_type_passes_untouched(event: Event) -> None:
    assert CODEC.load(CODEC.dump(event)) == event


@pytest.mark.parametrize(
    "data",
    [
        b'{"type":"melted","text":"x"}',
        b'{"text":"x"}',
        b'{"type":"heard"}',
        b'{"type":"heard","text":7}',
        b'{"type":"asked","command":{"type":"build_a_house"}}',
        b'{"type":"answered","to":1,"answer":{"type":"shrugged"}}',
        b"[]",
        b"",
        b"\xff",
        b'{"type":"heard","text":"x"',
    ],
)
def test_what_cannot_be_read_stops_loudly(data: bytes) -> None:
    with pytest.raises(UnknownRecord, match="cannot be read"):
        CODEC.load(data)


def test_an_event_of_a_style_that_is_not_installed_stops_loudly() -> None:
    with pytest.raises(UnknownRecord, match=r"errands\.round_began"):
        Codec().load(b'{"type":"errands.round_began","index":0}')


def test_a_newer_format_stops_loudly_and_says_to_upgrade() -> None:
    newer = CODEC.dump(Started(style="s", definition="d", format=FORMAT + 1))
    with pytest.raises(UnknownRecord, match=rf"format {FORMAT + 1}.*Upgrade"):
        CODEC.load(newer)


def test_a_field_that_a_later_version_added_does_not_stop_an_earlier_one() -> None:
    assert CODEC.load(b'{"type":"withdrawn","number":3,"because":"x","mood":"good"}')


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_json_has_not_is_refused_before_it_is_written(number: float) -> None:
    with pytest.raises(Unwritable, match="not JSON"):
        CODEC.dump(Answered(to=1, answer=AgentReplied(usage=Usage(money=number))))


@pytest.mark.parametrize("value", [object(), "\ud800", {"deep": [object()]}])
def test_what_json_has_no_form_for_is_refused(value: object) -> None:
    with pytest.raises(Unwritable, match="This Answered cannot be recorded"):
        CODEC.dump(Answered(to=1, answer=ToolReturned(value=value)))


def test_defaults_are_not_written() -> None:
    assert CODEC.dump(Answered(to=1, answer=AgentReplied(text="x"))) == (
        b'{"type":"answered","to":1,"answer":{"type":"agent_replied","text":"x"}}'
    )
