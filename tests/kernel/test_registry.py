"""Kits are checked when they are registered, and make up one codec."""

import msgspec
import pytest

from ripstop.kernel.errors import DefinitionError
from ripstop.kernel.events import FORMAT, Event, Fact, Started
from ripstop.kernel.registry import Registry
from ripstop.kernel.style import StyleKit
from ripstop.testing import ERRANDS, Errands, ErrandStyle
from ripstop.testing.stub_style import RoundBegan


class Painted(Fact, tag="errands.painted", frozen=True):
    colour: str


class Stolen(Event, tag="errands.painted", frozen=True):
    pass


class Foreign(Event, tag="graph.painted", frozen=True):
    pass


class Kernels(Event, tag="heard", frozen=True):
    pass


class Shared(Event, tag="turn.painted", frozen=True):
    pass


class Lenient(Event, tag="errands.lenient", frozen=True, forbid_unknown_fields=False):
    pass


class Other(ErrandStyle):
    name = "other"


def kit(*events: type[Event]) -> StyleKit:
    return StyleKit(style=ErrandStyle(), definition=Errands, events=events)


def test_the_codec_knows_the_events_of_all_kits() -> None:
    codec = Registry([kit(RoundBegan, Painted)]).codec
    for event in (RoundBegan(index=1), Painted(colour="red"), Started("s", "d", FORMAT)):
        assert codec.load(codec.dump(event)) == event


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ((Painted, Stolen), "two events with the tag 'errands.painted'"),
        ((Foreign,), "'graph.painted' of Foreign does not begin with 'errands' and a dot"),
        ((Kernels,), "does not begin with 'errands'"),
        ((Lenient,), "Lenient is not frozen, or does not refuse unknown fields"),
    ],
)
def test_events_that_would_make_unreadable_journals_are_refused(events: tuple[type[Event], ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Registry([kit(*events)])


@pytest.mark.parametrize("name", ["errands", "question"])
def test_two_styles_of_one_name_are_refused(name: str) -> None:
    class Again(ErrandStyle):
        pass

    Again.name = name
    with pytest.raises(ValueError, match=f"two styles named '{name}'"):
        Registry([ERRANDS, StyleKit(style=Again(), definition=Errands)])


def test_styles_may_share_the_events_of_agent_turns() -> None:
    both = Registry([kit(Shared), StyleKit(style=Other(), definition=Errands, events=(Shared,))])
    assert set(both.styles) == {"question", "errands", "other"}


def test_a_definition_is_loaded_as_its_styles_type() -> None:
    errands = Errands(prompt="Go.")
    assert Registry([ERRANDS]).load("errands", errands.content()) == errands


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff", b'{"rounds":7}', b"[" * 100_000, msgspec.json.encode("x")])
def test_a_definition_that_cannot_be_read_is_refused(content: bytes) -> None:
    with pytest.raises(DefinitionError, match="pinned definition of a errands workflow cannot be read"):
        Registry([ERRANDS]).load("errands", content)
