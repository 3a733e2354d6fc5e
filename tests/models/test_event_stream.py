"""Server-sent events from bytes, however they are cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripstop.models.openai_compatible import EventStream, TooLong


def events(*pieces, limit=1000):
    stream = EventStream(limit)
    return [event for piece in pieces for event in stream.feed(piece)] + stream.end()


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_reads_lines_with_every_ending(end):
    lines = (b"\xef\xbb\xbf: hello", b"event: x", b"data: a", b"data:b", b"id: 7", b"", b"", b"data", b"", b"data: c")
    assert events(end.join(lines)) == [b"a\nb", b"", b"c"]


@given(
    st.lists(st.sampled_from([b"data: x", b"data:", b": c", b"", b"id", b"data: \xc3\xa9"]), max_size=12),
    st.sampled_from([b"\n", b"\r", b"\r\n"]),
    st.lists(st.integers(1, 5), max_size=80),
)
def test_cuts_between_bytes_change_nothing(lines, end, cuts):
    whole = b"".join(line + end for line in lines)
    pieces, rest = [], whole
    for cut in cuts:
        pieces.append(rest[:cut])
        rest = rest[cut:]
    assert events(*pieces, rest) == events(whole)


@given(st.binary(max_size=300))
def test_any_bytes_are_read(data):
    assert events(data) == events(*(data[i : i + 1] for i in range(len(data))))


@pytest.mark.parametrize("data", [b"data: " + b"x" * 1000, b"data: x\n" * 200, b"x" * 1001])
def test_an_event_that_is_too_large_is_refused(data):
    with pytest.raises(TooLong):
        events(data)
