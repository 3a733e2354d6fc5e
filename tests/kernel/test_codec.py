"""Events to bytes and back, and what is refused loudly."""

import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st

from ripstop.kernel.codec import Codec
from ripstop.kernel.effects import (
    AgentReplied,
    Answer,
    CallTool,
    Failed,
    PersonAnswered,
    RunFinished,
    ToolCall,
    ToolReturned,
    Usage,
)
from ripstop.kernel.errors import UnknownRecord, Unwritable
from ripstop.kernel.events import (
    FORMAT,
    KERNEL_EVENTS,
    Answered,
    Asked,
    Event,
    Fact,
    ResumeRequested,
    RunSettings,
    Started,
)
from ripstop.kernel.text_limits import is_plain, plain
from ripstop.testing import ERRANDS


class Painted(Fact, tag="painted.wall", frozen=True):
    """A fact that a style adds."""

    colour: str
    coats: int = 1


EVENTS: tuple[type[Event], ...] = (*KERNEL_EVENTS, *ERRANDS.events, Painted)
CODEC = Codec((*ERRANDS.events, Painted))

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
    if get_origin(kind) is Literal:
        return st.sampled_from(get_args(kind))
    if get_origin(kind) is dict:
        return st.dictionaries(st.text(), values(get_args(kind)[1]), max_size=3)
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
        if isinstance(event, Started):
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
        Started(style="s", definition="d", format=FORMAT, arguments={"type": "forked"}, guards={"type": "heard"}),
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


@pytest.mark.parametrize(
    ("number", "advice"), [(FORMAT + 1, "Upgrade"), (1, "before 0.2"), (0, "before 0.2"), (-1, "before 0.2")]
)
def test_another_format_is_refused_and_says_what_to_do(number: int, advice: str) -> None:
    other = msgspec.json.encode(Started(style="s", definition="d", format=number))
    with pytest.raises(UnknownRecord, match=rf"format {number}; this version reads format {FORMAT}.*{advice}"):
        CODEC.load(other)
    with pytest.raises(UnknownRecord, match=advice):
        CODEC.load_step(b"[" + other + b"]")


def test_the_format_is_written_although_it_never_varies() -> None:
    assert f'"format":{FORMAT}'.encode() in CODEC.dump(Started(style="s", definition="d", format=FORMAT))


def test_a_start_without_its_format_is_refused() -> None:
    with pytest.raises(UnknownRecord, match="format"):
        CODEC.load(b'{"type":"started","style":"s","definition":"d"}')


@pytest.mark.parametrize(
    "data",
    [
        b'{"type":"withdrawn","number":3,"because":"x","mood":"good"}',
        b'{"type":"asked","command":{"type":"say","text":"x","mood":"good"}}',
        b'{"type":"answered","to":1,"answer":{"type":"failed","reason":"x","usage":{"water":1}}}',
        b'{"type":"started","style":"s","definition":"d","format":2,"settings":{"mood":"good"}}',
        b'{"type":"errands.round_began","index":0,"mood":"good"}',
    ],
)
def test_an_unknown_field_stops_the_reader(data: bytes) -> None:
    with pytest.raises(UnknownRecord, match=r"cannot be read.*unknown field.*(mood|water).*newer version"):
        CODEC.load(data)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_json_has_not_is_refused_before_it_is_written(number: float) -> None:
    with pytest.raises(Unwritable, match="not JSON"):
        CODEC.dump(Answered(to=1, answer=AgentReplied(usage=Usage(money=number))))


def nested(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "answer",
    [
        AgentReplied(usage=Usage(input_tokens=1.5)),  # type: ignore[arg-type]
        AgentReplied(usage=Usage(output_tokens=True)),
        AgentReplied(usage=Usage(money="9")),  # type: ignore[arg-type]
        AgentReplied(text=7),  # type: ignore[arg-type]
        AgentReplied(model={}),  # type: ignore[arg-type]
        AgentReplied(recorded=1),  # type: ignore[arg-type]
        AgentReplied(calls=(ToolCall(id=7, tool="t"),)),  # type: ignore[arg-type]
        AgentReplied(calls=(ToolCall(id="c", tool={}),)),  # type: ignore[arg-type]
        AgentReplied(calls=(ToolCall(id="c", tool="t", arguments=[]),)),  # type: ignore[arg-type]
        AgentReplied(calls=(ToolCall(id="c", tool="t", arguments={"a": nested(300)}),)),
        ToolReturned(value=nested(300)),
        Failed(reason=None),  # type: ignore[arg-type]
        Failed(reason="x", usage=Usage(output_tokens=1.5)),  # type: ignore[arg-type]
        PersonAnswered(text=7),  # type: ignore[arg-type]
        RunFinished(run="r", outcome="completed", calls="3"),  # type: ignore[arg-type]
    ],
)
def test_an_answer_that_could_not_be_read_back_is_refused(answer: Answer) -> None:
    with pytest.raises(Unwritable, match="This Answered cannot be recorded"):
        CODEC.dump_step([Answered(to=1, answer=answer)])


@pytest.mark.parametrize("timing", [{"retries": (("busy", "long"),)}, {"retries": ((1, 2.0),)}, {"took": "1"}], ids=str)
def test_an_answer_with_wrong_times_is_refused(timing: dict[str, Any]) -> None:
    with pytest.raises(Unwritable, match="This Answered cannot be recorded"):
        CODEC.dump_step([Answered(to=1, answer=AgentReplied(), **timing)])


def test_facts_of_a_wrong_type_are_refused_before_they_are_written() -> None:
    with pytest.raises(Unwritable):
        CODEC.dump(Started(style="s", definition="d", format=FORMAT, input=7))  # type: ignore[arg-type]
    with pytest.raises(Unwritable, match="levels deep"):
        CODEC.dump(Started(style="s", definition="d", format=FORMAT, arguments={"x": nested(300)}))
    with pytest.raises(Unwritable):
        CODEC.dump(Started(style="s", definition="d", format=FORMAT, settings=RunSettings(model=7)))  # type: ignore[arg-type]
    with pytest.raises(Unwritable):
        CODEC.dump(ResumeRequested(raises={"turns": "5"}))  # type: ignore[dict-item]


@for_all(json_values | st.tuples(json_values) | st.frozensets(numbers))
def test_a_plain_value_is_read_back_as_it_is(value: object) -> None:
    made = plain(value)
    assert is_plain(made)
    event = Answered(to=1, answer=ToolReturned(value=made))
    assert CODEC.load(CODEC.dump(event)) == event


@pytest.mark.parametrize(
    ("value", "made"),
    [
        ((1, {2}), [1, [2]]),
        ({"a": float("nan")}, {"a": None}),
        ({1: "\ud800"}, {"1": "\ufffd"}),
        (b"x", "eA=="),
        (2**70, 2**70),
    ],
)
def test_a_value_is_made_what_it_is_after_reading(value: object, made: object) -> None:
    assert plain(value) == made
    assert is_plain(plain(value))


@pytest.mark.parametrize("value", [object(), nested(101), nested(5000), [10**5000], {None: 1}])
def test_a_value_without_a_plain_form_is_refused(value: object) -> None:
    with pytest.raises(Unwritable):
        plain(value)


@pytest.mark.parametrize("value", [object(), "\ud800", {"deep": [object()]}])
def test_what_json_has_no_form_for_is_refused(value: object) -> None:
    with pytest.raises(Unwritable, match="This Answered cannot be recorded"):
        CODEC.dump(Answered(to=1, answer=ToolReturned(value=value)))


def test_defaults_are_not_written() -> None:
    assert CODEC.dump(Answered(to=1, answer=AgentReplied(text="x"))) == (
        b'{"type":"answered","to":1,"answer":{"type":"agent_replied","text":"x"}}'
    )


def test_one_event_of_a_step_is_read_though_another_is_of_an_unknown_style() -> None:
    step = CODEC.dump_step([Painted(colour="red"), Asked(command=CallTool(tool="brush"))])
    stranger = Codec()
    assert stranger.load_one(step, 1) == Asked(command=CallTool(tool="brush"))
    assert stranger.load_one(step, 2) is None and stranger.load_one(step, -1) is None
    for data, place in ((step, 0), (b'{"type": "asked"}', 0), (b"[1", 0)):
        with pytest.raises(UnknownRecord):
            stranger.load_one(data, place)
