"""When who worked: a lane for each agent and one for the tools, on an axis from which long silence is cut out.

- A stretch in which nothing was at work is cut to a narrow gap, with its length in words, if it would take more than a
  tenth of what is drawn.
- At most `MOST_SPANS` spans are drawn. Of a longer run the oldest are merged, those of one lane that are near.
- Pure: from calls to places on the axis, as fractions from 0 to 1, and from these to SVG in which colours are classes.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple, Protocol
from xml.sax.saxutils import escape, quoteattr

from .shapes import clean, cut_to

TOOLS = "tools"
OTHERS = "others"
LONGEST_NAME = 200
"""Characters."""
MOST_LANES = 8
MOST_SPANS = 400
OLD_SPANS = 100
"""How many of them are merged ones, at most."""
LONGEST_GAP = 0.1
"""Of what is drawn."""
GAP, ALL_GAPS = 0.05, 0.3
"""How wide a gap that is cut is drawn, and all of them together at most."""
LEAST_GAP, LEAST_LABEL = 0.004, 0.045
"""The narrowest gap that is marked, and the narrowest that has a label."""
TICKS, NEAREST_TICK = 8, 0.07
HUES = 6
SECOND = 1_000_000
STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)
"""Seconds between two ticks; whole days above."""


class LaneCall(NamedTuple):
    """An agent, a tool or a workflow at work. Times are microseconds."""

    lane: str
    """Who; empty for a tool."""
    start: int
    end: int
    """0 while it is at work."""
    number: int = 0
    """The record that asked for it."""


class HasCalls(Protocol):
    @property
    def calls(self) -> Iterable[LaneCall]: ...


@dataclass(frozen=True, slots=True)
class LaneSpan:
    start: float
    end: float
    seconds: float
    number: int
    calls: int = 1
    """How many calls it is merged from."""
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Lane:
    name: str
    spans: tuple[LaneSpan, ...]
    is_tools: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """A place on the axis, or a stretch that is cut."""

    at: float
    label: str
    width: float = 0.0


@dataclass(frozen=True, slots=True)
class Lanes:
    lanes: tuple[Lane, ...]
    gaps: tuple[Mark, ...] = ()
    ticks: tuple[Mark, ...] = ()
    now: float | None = None
    """Where the present is, if something is at work."""
    merged: int = 0
    """How many calls are not drawn on their own."""


def lanes(outline: HasCalls, now: int, tools: str = TOOLS) -> Lanes:
    """The lanes of a run. `now`, in microseconds, is the end of what is still at work; `tools` names their lane."""
    calls = sorted(outline.calls, key=itemgetter(1))
    if not calls:
        return Lanes(())
    names = _names(dict.fromkeys(call.lane for call in calls))
    rows = [_Row(names[lane], start, end or max(now, start), number, 1, not end) for lane, start, end, number in calls]
    axis = _Axis(rows)
    spans: dict[str, list[LaneSpan]] = {name: [] for name in names.values()}
    recent = MOST_SPANS - OLD_SPANS
    for row in [*_merged(rows[:-recent], OLD_SPANS // len(spans)), *rows[-recent:]]:
        start, end, seconds = axis.place(row.start), axis.place(row.end), (row.end - row.start) / SECOND
        spans[row.lane].append(LaneSpan(start, end, seconds, row.number, row.calls, row.is_open))
    drawn = [Lane((name or tools)[:LONGEST_NAME], tuple(found), not name) for name, found in spans.items()]
    drawn.sort(key=lambda lane: lane.is_tools)
    is_open = any(row.is_open for row in rows)
    merged = max(0, len(rows) - recent)
    return Lanes(tuple(drawn), axis.gaps(), axis.ticks(), axis.place(now) if is_open else None, merged)


def _names(given: Iterable[str]) -> dict[str, str]:
    """The lane in which each is drawn: the first ones have their own, all others share one."""
    names = list(given)
    agents = [name for name in names if name]
    own = agents if len(names) <= MOST_LANES else agents[: MOST_LANES - 2]
    return {name: name if name in own or not name else OTHERS for name in names}


class _Row(NamedTuple):
    lane: str
    start: int
    end: int
    number: int
    calls: int
    is_open: bool


def _merged(rows: Sequence[_Row], most: int) -> list[_Row]:
    """At most so many of each lane: the rows in parts of one size, those of a lane in each part as one."""
    found: list[_Row] = []
    size = -(-len(rows) // most) or 1
    for at in range(0, len(rows), size):
        part: dict[str, _Row] = {}
        for row in rows[at : at + size]:
            one = part.get(row.lane, row)
            end, calls, is_open = max(one.end, row.end), one.calls + (one is not row), one.is_open or row.is_open
            part[row.lane] = _Row(row.lane, one.start, end, one.number, calls, is_open)
        found += part.values()
    return found


class _Axis:
    """Time, without the silence in it: stretches that are drawn, with gaps of one width between them."""

    def __init__(self, rows: Sequence[_Row]) -> None:
        """`rows`: in the order in which they began."""
        busy: list[list[int]] = []
        until = -1
        for _, start, end, *_ in rows:
            if start > until:
                busy.append([start, end])
                until = end
            elif end > until:
                busy[-1][1] = until = end
        longest = _longest_kept(busy)
        parts = [busy[0]]
        for start, end in busy[1:]:
            if start - parts[-1][1] > longest:
                parts.append([start, end])
            else:
                parts[-1][1] = end
        self._zero = parts[0][0]
        self._starts, self._ends = [part[0] for part in parts], [part[1] for part in parts]
        self._gap = min(GAP, ALL_GAPS / (len(parts) - 1)) if len(parts) > 1 else 0.0
        shown = sum(self._ends) - sum(self._starts)
        room = 1.0 - self._gap * (len(parts) - 1)
        self._scale = room / shown if shown else 0.0
        self._shown = shown
        self._places: list[float] = []
        place = 0.0
        for start, end in parts:
            self._places.append(place)
            place += (end - start) * self._scale + self._gap

    def place(self, at: int) -> float:
        part = max(0, bisect_right(self._starts, at) - 1)
        within = min(max(at, self._starts[part]), self._ends[part]) - self._starts[part]
        return min(1.0, self._places[part] + within * self._scale)

    def gaps(self) -> tuple[Mark, ...]:
        found = []
        for part in range(1, len(self._starts) if self._gap >= LEAST_GAP else 1):
            silence = self._starts[part] - self._ends[part - 1]
            label = roughly(silence / SECOND) if self._gap >= LEAST_LABEL else ""
            found.append(Mark(self._places[part] - self._gap, label, self._gap))
        return tuple(found)

    def ticks(self) -> tuple[Mark, ...]:
        """At round times since the beginning, and since the end of each gap (`+5 s`), as far as there is room."""
        step = _step(self._shown / SECOND / TICKS) * SECOND
        found: list[Mark] = []
        for start, end in zip(self._starts, self._ends, strict=True):
            is_first = start == self._zero
            for elapsed in range(0, end - start + 1, step):
                place = self.place(start + elapsed)
                if found and place - found[-1].at < NEAREST_TICK:
                    continue
                label = in_words(elapsed // SECOND)
                if not is_first:
                    label = f"+{label}" if elapsed else roughly((start - self._zero) / SECOND)
                found.append(Mark(place, label))
        return tuple(found)


def _longest_kept(busy: Sequence[Sequence[int]]) -> float:
    """The longest silence that is drawn as long as it was, in microseconds."""
    shown = sum(end - start for start, end in busy)
    longest = 0
    for gap in sorted(busy[at][0] - busy[at - 1][1] for at in range(1, len(busy))):
        if gap > LONGEST_GAP * (shown + gap):
            break
        shown += gap
        longest = gap
    return longest


def _step(seconds: float) -> int:
    return next((step for step in STEPS if step >= seconds), -(-int(seconds) // STEPS[-1]) * STEPS[-1])


def in_words(seconds: int) -> str:
    """`5 s`, `2 min`, `1 h 30 min`, `3 d`: two units at most."""
    units = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))
    at = next((at for at, (_, size) in enumerate(units) if seconds >= size), len(units) - 1)
    found: list[str] = []
    for unit, size in units[at : at + 2]:
        number, seconds = divmod(seconds, size)
        if number or not found:
            found.append(f"{number} {unit}")
    return " ".join(found)


def roughly(seconds: float) -> str:
    """The same in one unit."""
    for unit, size, until in (("s", 1, 90), ("min", 60, 5400), ("h", 3600, 129_600)):
        if seconds < until:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86_400:.0f} d"


# Drawing

WIDTH, LABELS, RIGHT = 960.0, 92.0, 16.0
ROW, BAR, TOP, AXIS = 20.0, 12.0, 8.0, 18.0
LEAST_BAR = 2.0
LETTERS = 11.0


def lanes_svg(shown: Lanes, title: str, hue: Callable[[str], int] | None = None) -> str:
    """The lanes as SVG to put into a page. Colours are classes: `lane-1` to `lane-6`, `lane-tool`, and so on.

    Args:
        title: What it is, for people who cannot see it.
        hue: Which of the colours 1 to 6 an agent has; left out: in the order in which they appear.
    """
    bottom = TOP + ROW * len(shown.lanes)
    size = f'viewBox="0 0 {_n(WIDTH)} {_n(bottom + AXIS)}"'
    parts = [
        f'<svg class="lanes" {size} role="img" aria-label={quoteattr(clean(title))}>',
        f"<desc>{escape(clean(_told(shown)))}</desc>",
        *(_gap(gap, bottom) for gap in shown.gaps),
        *(_tick(tick, bottom) for tick in shown.ticks),
        *(_lane(lane, row, hue) for row, lane in enumerate(shown.lanes)),
    ]
    if shown.now is not None:
        parts.append(f'<path class="lane-now" d="M{_n(_x(shown.now))} {_n(TOP - 6)}V{_n(bottom + 2)}"/>')
    return "".join([*parts, "</svg>"])


def _n(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


def _x(place: float) -> float:
    return LABELS + place * (WIDTH - LABELS - RIGHT)


def _gap(gap: Mark, bottom: float) -> str:
    x, width = _x(gap.at), gap.width * (WIDTH - LABELS - RIGHT)
    box = f'<rect x="{_n(x)}" y="{_n(TOP)}" width="{_n(width)}" height="{_n(bottom - TOP)}"/>'
    label = _text(x + width / 2, (TOP + bottom) / 2 + 4, gap.label, ' text-anchor="middle"') if gap.label else ""
    return f'<g class="lane-gap">{box}{label}</g>'


def _tick(tick: Mark, bottom: float) -> str:
    x = _x(tick.at)
    line = f'<path d="M{_n(x)} {_n(TOP - 2)}V{_n(bottom)}"/>'
    return f'<g class="lane-tick">{line}{_text(x, bottom + 13, tick.label, " text-anchor=" + quoteattr("middle"))}</g>'


def _lane(lane: Lane, row: int, hue: Callable[[str], int] | None) -> str:
    top = TOP + ROW * row + (ROW - BAR) / 2
    colour = "lane-tool" if lane.is_tools else f"lane-{hue(lane.name) if hue else row % HUES + 1}"
    name = _text(0, top + BAR - 2, cut_to(clean(lane.name), LETTERS, LABELS - 8), ' class="lane-name"')
    return f"<g>{name}{''.join(_span(lane, span, top, colour) for span in lane.spans)}</g>"


def _span(lane: Lane, span: LaneSpan, top: float, colour: str) -> str:
    x = _x(span.start)
    width = max(LEAST_BAR, _x(span.end) - x)
    state = " lane-open" if span.is_open else ""
    often = f"{span.calls} calls, " if span.calls > 1 else ""
    told = f"{clean(lane.name)}: {often}{_duration(span.seconds)}{', at work' if span.is_open else ''}"
    return (
        f'<rect class="{colour}{state}" x="{_n(x)}" y="{_n(top)}" width="{_n(width)}" height="{_n(BAR)}" rx="3">'
        f"<title>{escape(told)}</title></rect>"
    )


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else in_words(round(seconds))


def _text(x: float, y: float, text: str, more: str) -> str:
    return f'<text x="{_n(x)}" y="{_n(y)}"{more}>{escape(text)}</text>'


def _told(shown: Lanes) -> str:
    """The lanes in words."""
    said = [f"{lane.name}: {sum(span.calls for span in lane.spans)} times." for lane in shown.lanes]
    silent = [gap.label for gap in shown.gaps if gap.label]
    return " ".join([*said, *([f"Silence of {', '.join(silent)} is cut out."] if silent else [])])
