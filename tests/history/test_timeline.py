"""A run told from its journal."""

from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import settings

from ripstop.app.plugins import installed
from ripstop.history.timeline import TimelineEntry, iso, record_as_json
from ripstop.kernel.events import KERNEL_EVENTS, Event, Forked, Record, Withdrawn
from tests.kernel.test_codec import values

STYLE_EVENTS = (event for kit in installed().registry.kits.values() for event in kit.events)
EVENTS: tuple[type[Event], ...] = tuple(dict.fromkeys((*KERNEL_EVENTS, *STYLE_EVENTS)))
AT = 1_800_000_000_000_000


def told(event: Event, number: int = 7) -> dict[str, Any]:
    run: Any = None  # `record_as_json` looks at the record only
    return record_as_json(TimelineEntry(Record(number, AT, event), run, None))


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
