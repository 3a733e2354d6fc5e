"""The results as plain text: what was measured, side by side, then the bars."""

from collections.abc import Callable
from typing import NamedTuple

from bars import Medians, Results, Verdict
from plan import CONTESTANTS

COLUMNS = ("ripstop", "inline", "group", "group-thread", "langgraph", "langgraph-delta", "dbos")
TALKERS = ("ripstop-chats", "langgraph-chats", "burr-chats")
RATIOS = ("inline", "group", "langgraph", "dbos")
UNKNOWN, CRASHED = "·", "crashed"


class Row(NamedTuple):
    title: str
    measure: str
    shown: Callable[[dict[str, float]], str]


def _rate(figures: dict[str, float]) -> str:
    return f"{figures['steps_per_second']:,.0f}"


def _milliseconds(name: str) -> Callable[[dict[str, float]], str]:
    return lambda figures: f"{figures[name] * 1000:.2f}" if name in figures else UNKNOWN


def _growth(figures: dict[str, float]) -> str:
    return f"{figures['last'] / figures['first']:.2f} ×"


def _megabytes(figures: dict[str, float]) -> str:
    return f"{figures['bytes'] / 1e6:,.2f}"


def _per_step(figures: dict[str, float]) -> str:
    return f"{figures['bytes'] / figures['steps']:,.0f}"


ROWS = (
    Row("many runs, steps/s", "concurrent", _rate),
    Row("one run, steps/s", "single", _rate),
    Row("growing conversation: steps", "growth", lambda f: f"{f['steps']:,.0f}"),
    Row("  ms/step, first 100", "growth", _milliseconds("first")),
    Row("  ms/step, from step 1,000", "growth", _milliseconds("settled")),
    Row("  ms/step, last", "growth", _milliseconds("last")),
    Row("  last to first 100", "growth", _growth),
    Row("  ms of CPU/step, from step 1,000", "growth", _milliseconds("settled_cpu")),
    Row("  ms of CPU/step, last", "growth", _milliseconds("last_cpu")),
    Row("  MB on disk", "growth", _megabytes),
    Row("  bytes per step", "growth", _per_step),
    Row("400 steps × 1 KB, MB", "bytes", _megabytes),
    Row("resume at step 1,000, s", "resume", lambda f: f"{f['seconds']:.3f}"),
    Row("waiting runs", "waiting", lambda f: f"{f['runs']:,.0f}"),
    Row("  bytes of memory each", "waiting", lambda f: f"{f['bytes_per_run']:,.0f}"),
    Row("  CPU, % of a core", "waiting", lambda f: f"{100 * f['cpu_share']:.2f}"),
)

CHAT_ROWS = (
    Row("next message when answered, messages/s", "chats", lambda f: f"{f['messages_per_second']:,.0f}"),
    Row("  ms of CPU/message", "chats", _milliseconds("cpu_per_message")),
    Row("  MB on disk", "chats", _megabytes),
    Row("300 messages/s, ms late: p50", "chats-open", _milliseconds("p50")),
    Row("  p99", "chats-open", _milliseconds("p99")),
    Row("  most", "chats-open", _milliseconds("most")),
    Row("  CPU, % of a core", "chats-open", lambda f: f"{100 * f['cpu_share']:.0f}"),
    Row("idle sessions with timers", "chats-idle", lambda f: f"{f['sessions']:,.0f}"),
    Row("  MB of memory", "chats-idle", lambda f: f"{f['resident'] / 1e6:,.0f}"),
    Row("  CPU, % of a core", "chats-idle", lambda f: f"{100 * f['cpu_share']:.2f}"),
)


def render(results: Results, verdicts: list[Verdict]) -> str:
    tables = [("", COLUMNS, ROWS), ("conversations", TALKERS, CHAT_ROWS)]
    blocks = [
        _grid([title, *(CONTESTANTS[name].title for name in columns)], found)
        for title, columns, rows in tables
        if (found := _figures(results, columns, rows))
    ]
    ratios = _ratios(results)
    if ratios:
        blocks.append(_grid(["ripstop divided by", *(CONTESTANTS[name].title for name in RATIOS)], ratios))
    if "startup" in results:
        blocks.append(_startup(results["startup"]["ripstop"]))
    blocks.append(_grid(["the bars", "wanted", "measured", ""], [list(verdict) for verdict in verdicts]))
    return "\n\n".join(blocks)


def _figures(results: Results, columns: tuple[str, ...], rows: tuple[Row, ...]) -> list[list[str]]:
    found = []
    for row in rows:
        contestants = results.get(row.measure)
        if contestants:
            found.append([row.title, *(_cell(contestants.get(name), row.shown) for name in columns)])
    return found


def _cell(result: dict[str, dict[str, float]] | None, shown: Callable[[dict[str, float]], str]) -> str:
    if result is None:
        return UNKNOWN
    return shown(result["median"]) if "median" in result else CRASHED


def _ratios(results: Results) -> list[list[str]]:
    median = Medians(results)

    def shown(measure: str, other: str) -> str:
        try:
            return f"{median.ratio(measure, other):.2f}"
        except KeyError:
            return UNKNOWN

    chosen = [(title, name) for title, name in (("many runs", "concurrent"), ("one run", "single")) if name in results]
    return [[title, *(shown(name, other) for other in RATIOS)] for title, name in chosen]


def _startup(result: dict[str, dict[str, float]]) -> str:
    if "median" not in result:
        return f"start-up: {result['error']}"
    figures = result["median"]
    bare = figures["bare"]
    return (
        f"start-up: python -c pass {bare:.3f} s; "
        f"import ripstop {figures['import']:.3f} s ({figures['import'] / bare:.1f} ×); "
        f"ripstop --help {figures['help']:.3f} s ({figures['help'] / bare:.1f} ×); "
        f"{figures['distributions']:.0f} distributions, {figures['installed_bytes'] / 1e6:.1f} MB"
    )


def _grid(head: list[str], rows: list[list[str]]) -> str:
    widths = [max(len(line[column]) for line in (head, *rows)) for column in range(len(head))]

    def line(cells: list[str]) -> str:
        first, *rest = cells
        padded = [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
        return "  ".join([first.ljust(widths[0]), *padded]).rstrip()

    return "\n".join([line(head), "-" * len(line(["-" * width for width in widths])), *map(line, rows)])
