"""The bars that ripstop has to clear, and whether it did in this run."""

import statistics
from collections.abc import Callable
from typing import Any, NamedTuple

Results = dict[str, Any]
"""measure → contestant → {"arguments", "repeats", "median"}, or {"error"}."""


class Bar(NamedTuple):
    title: str
    wanted: str
    measured: Callable[["Medians"], float]
    clears: Callable[[float], bool]
    shown: Callable[[float], str]


class Verdict(NamedTuple):
    title: str
    wanted: str
    measured: str
    verdict: str
    """ok, short, or – if it was not measured."""


class Medians:
    def __init__(self, results: Results) -> None:
        self._results = results

    def __call__(self, measure: str, contestant: str, figure: str) -> float:
        """Raises `KeyError` if it was not measured."""
        return float(self._results[measure][contestant]["median"][figure])

    def ratio(self, measure: str, other: str) -> float:
        """ripstop's steps per second to another's: the median of the ratios within each turn.

        Contestants of one turn ran right after one another, so a slow minute of the machine cancels out.
        """
        own, others = (self._results[measure][name]["repeats"] for name in ("ripstop", other))
        pairs = zip(own, others, strict=True)
        return float(statistics.median(a["steps_per_second"] / b["steps_per_second"] for a, b in pairs))


def _at_least(limit: float) -> Callable[[float], bool]:
    return lambda value: value >= limit


def _at_most(limit: float) -> Callable[[float], bool]:
    return lambda value: value <= limit


def _times(value: float) -> str:
    return f"{value:.2f} ×" if value < 10 else f"{value:.0f} ×"


def _seconds(value: float) -> str:
    return f"{value:.3f} s"


def _milliseconds(value: float) -> str:
    return f"{value * 1000:.1f} ms"


def _megabytes(value: float) -> str:
    return f"{value / 1e6:.2f} MB"


def _ratio(title: str, measure: str, other: str, limit: float, wanted: str) -> Bar:
    return Bar(title, wanted, lambda m: m.ratio(measure, other), _at_least(limit), _times)


def _value(title: str, place: tuple[str, str], limit: float, wanted: str, shown: Callable[[float], str]) -> Bar:
    measure, figure = place
    return Bar(title, wanted, lambda m: m(measure, "ripstop", figure), _at_most(limit), shown)


def _chat(title: str, place: tuple[str, str], limit: float, wanted: str, shown: Callable[[float], str]) -> Bar:
    measure, figure = place
    return Bar(title, wanted, lambda m: m(measure, "ripstop-chats", figure), _at_most(limit), shown)


def _growth(median: Medians, before: str, unit: str = "") -> float:
    return median("growth", "ripstop", f"last{unit}") / median("growth", "ripstop", f"{before}{unit}")


BARS = (
    Bar(
        "many runs: steps/s",
        "≥ 10,000",
        lambda m: m("concurrent", "ripstop", "steps_per_second"),
        _at_least(10_000),
        lambda value: f"{value:,.0f}",
    ),
    _ratio("many runs: to bare group commit", "concurrent", "group", 1 / 3, "≥ 1/3"),
    _ratio("many runs: to LangGraph", "concurrent", "langgraph", 15, "≥ 15 ×"),
    _ratio("many runs: to DBOS", "concurrent", "dbos", 25, "≥ 25 ×"),
    _ratio("one run: to bare inline SQLite", "single", "inline", 0.5, "≥ 0.5 ×"),
    _ratio("one run: to LangGraph", "single", "langgraph", 3, "≥ 3 ×"),
    _ratio("one run: to DBOS", "single", "dbos", 5, "≥ 5 ×"),
    Bar("growth: last steps to first 100", "≤ 1.2 ×", lambda m: _growth(m, "first"), _at_most(1.2), _times),
    Bar("growth: last steps to those from 1,000", "≤ 1.2 ×", lambda m: _growth(m, "settled"), _at_most(1.2), _times),
    Bar("growth: the same in CPU", "≤ 1.1 ×", lambda m: _growth(m, "settled", "_cpu"), _at_most(1.1), _times),
    _value("growth: bytes on disk, 5,000 steps", ("growth", "bytes"), 10e6, "≤ 10 MB", _megabytes),
    _value("400 steps × 1 KB on disk", ("bytes", "bytes"), 1e6, "≤ 1.0 MB", _megabytes),
    _value("resume at step 1,000", ("resume", "seconds"), 0.4, "≤ 0.4 s", _seconds),
    _value("memory of a waiting run", ("waiting", "bytes_per_run"), 1000, "≤ 1 KB", lambda v: f"{v:,.0f} B"),
    _value("CPU while all wait", ("waiting", "cpu_share"), 0.005, "none (≤ 0.5 %)", lambda v: f"{v:.2%} of a core"),
    Bar(
        "1,000 sessions: messages/s",
        "≥ 1,000",
        lambda m: m("chats", "ripstop-chats", "messages_per_second"),
        _at_least(1000),
        lambda value: f"{value:,.0f}",
    ),
    _chat("300 messages/s: late by, p50", ("chats-open", "p50"), 0.005, "≤ 5 ms", _milliseconds),
    _chat("300 messages/s: late by, p99", ("chats-open", "p99"), 0.050, "≤ 50 ms", _milliseconds),
    _chat("10,000 idle sessions: memory", ("chats-idle", "resident"), 150e6, "≤ 150 MB", _megabytes),
    _chat("10,000 idle sessions: CPU", ("chats-idle", "cpu_share"), 0.01, "≤ 1 %", lambda v: f"{v:.2%} of a core"),
    _value("import ripstop", ("startup", "import"), 0.15, "≤ 0.15 s", _seconds),
    _value("ripstop --help", ("startup", "help"), 0.25, "≤ 0.25 s", _seconds),
    _value("distributions installed", ("startup", "distributions"), 20, "≤ 20", lambda v: f"{v:.0f}"),
    _value("size of the install", ("startup", "installed_bytes"), 20e6, "≤ 20 MB", _megabytes),
)


def verdicts(results: Results) -> list[Verdict]:
    median = Medians(results)
    found = []
    for bar in BARS:
        try:
            value = bar.measured(median)
        except KeyError:
            found.append(Verdict(bar.title, bar.wanted, "not measured", "–"))
            continue
        found.append(Verdict(bar.title, bar.wanted, bar.shown(value), "ok" if bar.clears(value) else "short"))
    return found
