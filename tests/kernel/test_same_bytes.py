"""Every event, of the kernel and of each style, has the same bytes whenever it is written."""

import importlib
from typing import Any

import msgspec
import pytest
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st

from ripstop.app.plugins import STYLES
from ripstop.kernel.codec import Codec
from ripstop.kernel.effects import AgentReplied
from ripstop.kernel.events import FORMAT, KERNEL_EVENTS, Answered, Event, GuardTripped, Started
from ripstop.testing import ERRANDS
from tests.kernel import test_codec

KITS = (ERRANDS, *(importlib.import_module(f"ripstop.styles.{style}.kit").KIT for style in STYLES))
OF_STYLES = tuple(dict.fromkeys(event for kit in KITS for event in kit.events))
EVENTS: tuple[type[Event], ...] = (*KERNEL_EVENTS, *OF_STYLES)
CODEC = Codec(OF_STYLES)
GOOD = Answered(to=1, answer=AgentReplied(text="x"))
"""A fact that is written without being read back first."""


@pytest.fixture(autouse=True)
def whole_numbers_for_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a type checker lets through for a float."""
    monkeypatch.setitem(test_codec.PLAIN, float, st.integers(-(2**60), 2**60) | test_codec.PLAIN[float])


@pytest.mark.parametrize("kind", EVENTS, ids=[str(kind.__struct_config__.tag) for kind in EVENTS])
def test_an_event_that_was_read_is_written_with_the_same_bytes(kind: type[Event]) -> None:
    @settings(max_examples=40, deadline=None)
    @for_all(event=test_codec.values(kind))
    def read_and_written(event: Any) -> None:
        if isinstance(event, Started):
            event = msgspec.structs.replace(event, format=FORMAT)
        data = CODEC.dump(event)
        assert CODEC.dump(CODEC.load(data)) == data
        step = CODEC.dump_step([event] if event.is_fact else [GOOD, event])
        assert CODEC.dump_step(CODEC.load_step(step)) == step

    read_and_written()


def test_a_verdict_is_the_same_before_and_after_it_is_read() -> None:
    step = CODEC.dump_step([GOOD, GuardTripped(guard="depth", limit=10, value=11, text="x")])
    assert b'"limit":10.0,"value":11.0' in step
    assert CODEC.dump_step(CODEC.load_step(step)) == step
