"""When who worked, on an axis without the silence."""

import re
from typing import NamedTuple
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripstop.text.diagrams.lanes import (
    MOST_LANES,
    MOST_SPANS,
    Lane,
    LaneCall,
    Lanes,
    in_words,
    lanes,
    lanes_svg,
    roughly,
)
from tests.text.diagrams.diagrams import TEXTS

S = 1_000_000
CLASSES = {"lanes", "lane-tool", "lane-open", "lane-gap", "lane-now", "lane-tick", "lane-name"}
CLASSES |= {f"lane-{hue}" for hue in range(1, 7)}
COLOUR = re.compile(r"#[0-9a-fA-F]{3}|rgb|fill=|stroke=|style|\bid=|<script|\bon\w+=")


class Calls(NamedTuple):
    calls: tuple[LaneCall, ...]


def drawn(*calls: tuple[str, float, float], now: float = 0) -> Lanes:
    """From (lane, start, end) in seconds; an end of 0: still at work."""
    return lanes(Calls(tuple(LaneCall(lane, int(a * S), int(b * S), 7) for lane, a, b in calls)), int(now * S))


def lane(shown: Lanes, name: str) -> Lane:
    return next(one for one in shown.lanes if one.name == name)


@st.composite
def some_calls(draw: st.DrawFn) -> Calls:
    starts = draw(st.lists(st.integers(0, 10**12), max_size=60))
    lengths = st.integers(0, 10**10)
    return Calls(
        tuple(
            LaneCall(draw(TEXTS), start, draw(st.sampled_from((0, start + 1 + draw(lengths)))), number)
            for number, start in enumerate(starts)
        )
    )


def test_every_agent_has_a_lane_and_the_tools_come_last() -> None:
    shown = drawn(("writer", 0, 4), ("", 4, 5), ("reviewer", 5, 10))
    assert [(one.name, one.is_tools) for one in shown.lanes] == [
        ("writer", False),
        ("reviewer", False),
        ("tools", True),
    ]
    (span,) = lane(shown, "reviewer").spans
    assert (span.start, span.end, span.seconds, span.number) == (0.5, 1.0, 5.0, 7)
    assert shown.gaps == () and shown.now is None


def test_long_silence_is_cut_to_a_gap_with_its_length() -> None:
    shown = drawn(("writer", 0, 10), ("writer", 7210, 7220))
    (gap,) = shown.gaps
    assert gap.label == "2 h" and gap.width == 0.05
    first, second = lane(shown, "writer").spans
    assert first.end == pytest.approx(gap.at) and second.start == pytest.approx(gap.at + gap.width)
    assert first.end - first.start == pytest.approx(second.end - second.start) == pytest.approx(0.475)


def test_short_silence_is_drawn_as_long_as_it_was() -> None:
    shown = drawn(("writer", 0, 10), ("writer", 11, 20))
    assert shown.gaps == () and lane(shown, "writer").spans[1].start == pytest.approx(0.55)


def test_many_long_silences_are_all_cut_though_each_is_a_small_part_of_the_time() -> None:
    shown = drawn(*(("bot", at * 600, at * 600 + 2) for at in range(20)))
    assert len(shown.gaps) == 19 and all(not gap.label for gap in shown.gaps), "they are too narrow for a label"
    assert sum(gap.width for gap in shown.gaps) == pytest.approx(0.3)
    assert sum(span.end - span.start for span in lane(shown, "bot").spans) == pytest.approx(0.7)


def test_what_is_at_work_lasts_until_now() -> None:
    shown = drawn(("writer", 0, 4), ("writer", 4, 0), now=8)
    assert [span.is_open for span in lane(shown, "writer").spans] == [False, True]
    assert lane(shown, "writer").spans[1].end == shown.now == 1.0


def test_ticks_are_at_round_times_and_begin_again_after_a_gap() -> None:
    assert [tick.label for tick in drawn(("a", 0, 31)).ticks] == [f"{at} s" for at in range(0, 31, 5)]
    after = drawn(("a", 0, 20), ("a", 7220, 7240)).ticks
    assert [tick.label for tick in after] == ["0 s", "5 s", "10 s", "15 s", "20 s", "+5 s", "+10 s", "+15 s", "+20 s"]
    assert [tick.label for tick in drawn(("a", 0, 90_000)).ticks][-2:] == ["18 h", "1 d"]


def test_of_a_long_run_the_oldest_calls_are_merged() -> None:
    calls = [(("writer", "reviewer", "")[at % 3], at * 2.0, at * 2.0 + 1.9) for at in range(9000)]
    shown = drawn(*calls)
    spans = [span for one in shown.lanes for span in one.spans]
    assert len(spans) <= MOST_SPANS and sum(span.calls for span in spans) == 9000
    assert shown.merged == 9000 - sum(span.calls == 1 for span in spans) == 8700
    assert all(one.spans[0].calls > 1 and one.spans[-1].calls == 1 for one in shown.lanes)


def test_agents_beyond_the_lanes_share_one() -> None:
    shown = drawn(*((f"agent {at}", at, at + 1.0) for at in range(20)), ("", 20, 21))
    assert len(shown.lanes) == MOST_LANES and len(lane(shown, "others").spans) == 14


def test_nothing_is_drawn_of_a_run_without_calls() -> None:
    assert drawn() == Lanes(())
    assert drawn(("a", 5, 5)).lanes[0].spans[0].start == 0.0, "a call that took no time is where it was"


def test_a_length_of_time_is_told_in_two_units_or_in_one() -> None:
    assert [in_words(one) for one in (0, 59, 60, 90, 3600, 5400, 90_000)] == [
        "0 s",
        "59 s",
        "1 min",
        "1 min 30 s",
        "1 h",
        "1 h 30 min",
        "1 d 1 h",
    ]
    assert [roughly(one) for one in (59, 89.6, 90, 7199, 129_600)] == ["59 s", "90 s", "2 min", "2 h", "2 d"]


def test_the_drawing_has_classes_and_no_colours() -> None:
    picture = lanes_svg(drawn(("writer", 0, 4), ("", 4, 5), ("<b>&", 7000, 0), now=7010), "When <who> worked")
    root = ElementTree.fromstring(picture)
    assert root.get("role") == "img" and root.get("aria-label") == "When <who> worked"
    assert {name for one in root.iter() for name in (one.get("class") or "").split()} == {
        "lanes",
        "lane-name",
        "lane-tick",
        "lane-gap",
        "lane-1",
        "lane-2",
        "lane-open",
        "lane-tool",
        "lane-now",
    }
    assert not COLOUR.search(picture)
    described = root.find("desc")
    assert described is not None and "Silence of 2 h is cut out." in (described.text or "")


def test_an_agents_colour_can_be_given() -> None:
    assert 'class="lane-5"' in lanes_svg(drawn(("writer", 0, 4)), "x", lambda name: 5)


@settings(deadline=None, max_examples=100)
@given(some_calls(), st.integers(0, 10**12))
def test_everything_is_on_the_axis_whatever_the_times_are(calls: Calls, now: int) -> None:
    shown = lanes(calls, now)
    for one in shown.lanes:
        assert all(0 <= span.start <= span.end <= 1 for span in one.spans)
    assert all(0 <= mark.at <= 1 for mark in (*shown.gaps, *shown.ticks))
    assert len(shown.ticks) <= 16
    root = ElementTree.fromstring(lanes_svg(shown, "x"))
    assert {name for one in root.iter() for name in (one.get("class") or "").split()} <= CLASSES
