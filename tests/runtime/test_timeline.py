"""A run told from its journal."""

from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import settings

from ripstop.app import STYLES
from ripstop.kernel.events import DECISIONS, FACTS, Event, Forked, Record, Withdrawn
from ripstop.runtime.timeline import TimelineEntry, iso, plain
from ripstop.styles.graph.events import GRAPH_EVENTS
from ripstop.styles.handoff.events import HANDOFF_EVENTS
from tests.kernel.test_codec import values

EVENTS: tuple[type[Event], ...] = tuple(dict.fromkeys((*FACTS, *DECISIONS, *GRAPH_EVENTS, *HANDOFF_EVENTS)))
AT = 1_800_000_000_000_000


def told(event: Event, number: int = 7) -> dict[str, Any]:
    run: Any = None  # `plain` looks at the record only
    return plain(TimelineEntry(Record(number, AT, event), run, None))


@pytest.mark.parametrize("kind", EVENTS, ids=[str(kind.__struct_config__.tag) for kind in EVENTS])
def test_number_time_and_type_are_always_the_records(kind: type[Event]) -> None:
    @settings(max_examples=25, deadline=None)
    @for_all(event=values(kind))
    def is_told(event: Event) -> None:
        shown = told(event)
        assert (shown["number"], shown["at"], shown["type"]) == (7, iso(AT), kind.__struct_config__.tag)

    is_told()


def test_an_events_own_number_and_place_keep_their_value_under_another_name() -> None:
    assert told(Withdrawn(3, "late"))["of"] == 3
    assert told(Forked("haiku-k3f9x", 5))["event_at"] == 5


def test_every_style_of_the_app_is_looked_at_here() -> None:
    assert set(STYLES) == {"graph", "handoff"}
