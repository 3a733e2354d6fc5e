"""Draws which room of the source imports which, from the imports themselves: `make architecture`.

    python -m tests.harness.architecture

The layers are those of the contract in `pyproject.toml`; what a room imports comes from grimp, the library under
import-linter, so imports inside functions count, and neither those for a type checker nor import strings do.

Every direct import is named in the box of its room. An arrow is drawn only where no way through other rooms says the
same: with all of them drawn, none could be followed. There are no figures in the picture, so it changes only with the
structure.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import grimp

from ripstop.text.diagrams.layout import Rect, Route, assign
from ripstop.text.diagrams.rows import Order, Thing, Thread, arrange, tie
from ripstop.text.diagrams.shapes import Label, width, wrap
from ripstop.text.diagrams.svg import AGENT_COLOURS, EDGE, FRAME, GROUND, INK, MONO, SANS, SOFT, box, n, way

PACKAGE = "ripstop"
ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "architecture.svg"

NAME, SMALL = 15.0, 11.0
NAME_LINE, SMALL_LINE = 20.0, 15.0
PADDING, LAYER_GAP, MARGIN, GUTTER = 12.0, 46.0, 24.0, 34.0
BAND = 12.0
"""How far the band of a layer reaches above and below its rooms."""
TEXT_WIDTH = {"wide": 430.0, "narrow": 150.0}
"""Of the lines in a box: in a layer of one room, and in one of several."""
BEND = 8.0
LEGEND = 58.0
PURE, PARTLY_PURE, IMPURE = AGENT_COLOURS[1], AGENT_COLOURS[5], AGENT_COLOURS[0]
BAND_GROUND = "#f5f6f9"
NOTE = "Arrows leave out what follows from other arrows; “imports” names every room that is imported directly."


@dataclass(frozen=True)
class Room:
    name: str
    parts: tuple[str, ...]
    """The packages in it."""
    imports: tuple[str, ...]
    """The rooms that it imports directly, from the highest layer to the lowest."""
    pure: str = ""
    """`all`: the whole room is pure; `some`: files of it are."""


@dataclass(frozen=True)
class House:
    layers: tuple[tuple[str, ...], ...]
    """The names of rooms, from the top."""
    rooms: Mapping[str, Room]

    def arrows(self) -> list[tuple[str, str]]:
        """Imports of a lower layer that are not implied by others."""
        height = {name: place for place, layer in enumerate(self.layers) for name in layer}
        below = {name: [one for one in room.imports if height[one] > height[name]] for name, room in self.rooms.items()}
        reached: dict[str, set[str]] = {}
        for layer in reversed(self.layers):
            for name in layer:
                reached[name] = {far for one in below[name] for far in (one, *reached[one])}
        return [
            (name, one)
            for layer in self.layers
            for name in layer
            for one in below[name]
            if not any(one in reached[other] for other in below[name])
        ]


def read(project: Mapping[str, Any], graph: grimp.ImportGraph) -> House:
    contracts: list[dict[str, Any]] = project["tool"]["importlinter"]["contracts"]
    written = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    layers = tuple(tuple(part.strip(" ()") for part in re.split(r"[|:]", layer)) for layer in written)
    pure = next(
        contract["source_modules"] for contract in contracts if "asyncio" in contract.get("forbidden_modules", ())
    )
    names = [name for layer in layers for name in layer]
    found: dict[str, set[str]] = {name: set() for name in names}
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            importer, other = _room_of(module), _room_of(imported)
            if importer != other and {importer, other} <= found.keys():
                found[importer].add(other)
    return House(
        layers,
        {
            name: Room(name, _parts(graph, name), tuple(one for one in names if one in found[name]), _pure(name, pure))
            for name in names
        },
    )


def _room_of(module: str) -> str:
    """Empty for the package itself."""
    return module.partition(".")[2].partition(".")[0]


def _parts(graph: grimp.ImportGraph, room: str) -> tuple[str, ...]:
    found = graph.find_children(f"{PACKAGE}.{room}")
    return tuple(sorted(child.rpartition(".")[2] for child in found if graph.find_children(child)))


def _pure(room: str, pure: Iterable[str]) -> str:
    own = f"{PACKAGE}.{room}"
    return "all" if own in pure else "some" if any(one.startswith(f"{own}.") for one in pure) else ""


# Where everything is


@dataclass(frozen=True)
class Plan:
    width: float
    height: float
    bands: tuple[Rect, ...]
    boxes: Mapping[str, Rect]
    routes: Mapping[tuple[str, str], Route]


def lay_out(house: House) -> Plan:
    things: dict[str, Thing] = {}
    for row, layer in enumerate(house.layers):
        for name in layer:
            wide, high = _size(house.rooms[name], _room_for_text(layer))
            things[name] = Thing(row, wide / 2, wide / 2, high, is_node=True)
    every = list(things.values())
    ways = {pair: _chain(things[pair[0]], things[pair[1]], every) for pair in house.arrows()}
    bends = [[thread.lower for thread in threads[:-1]] for threads in ways.values()]
    rows = arrange(every, every[0], bends)
    for thing in things.values():
        _spread(thing)
    assign(rows, bends)
    tops, height = _tops(rows)
    wide = max(thing.x + thing.right for row in rows for thing in row)
    reach = [max(thing.height for thing in row) for row in rows]
    return Plan(
        round(wide + 2 * MARGIN + GUTTER, 1),
        round(height + 2 * MARGIN + LEGEND, 1),
        tuple(Rect(MARGIN, top - BAND, round(wide + GUTTER, 1), reach[row] + 2 * BAND) for row, top in enumerate(tops)),
        {
            name: Rect(
                round(_x(thing.x - thing.left), 1),
                round(tops[thing.row] + (reach[thing.row] - thing.height) / 2, 1),
                round(thing.left + thing.right, 1),
                thing.height,
            )
            for name, thing in things.items()
        },
        {pair: _route(threads, tops, reach) for pair, threads in ways.items()},
    )


def _x(x: float) -> float:
    return x + MARGIN + GUTTER - 8


def _room_for_text(layer: tuple[str, ...]) -> float:
    return TEXT_WIDTH["wide" if len(layer) == 1 else "narrow"]


def _size(room: Room, most: float) -> tuple[float, float]:
    parts, imports = _lines(room, most)
    widest = max(
        width(_title(room), NAME, monospaced=True) * 1.05,
        *(width(line, SMALL, monospaced=True) for line in parts),
        *(width(line, SMALL) for line in imports),
        60.0,
    )
    high = NAME_LINE + (len(parts) + len(imports)) * SMALL_LINE + PADDING + 4
    return round(widest + 2 * PADDING, 1), high


def _title(room: Room) -> str:
    return f"{room.name}.py" if room.name.startswith("__") else f"{room.name}/"


def _lines(room: Room, most: float) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The packages in a room, and what it imports."""
    imports = f"imports {', '.join(room.imports)}" if room.imports else "imports no other room"
    return wrap(" ".join(room.parts), SMALL, most, 3, monospaced=True), wrap(imports, SMALL, most, 4)


def _chain(upper: Thing, lower: Thing, things: list[Thing]) -> list[Thread]:
    """The pieces of an arrow, which has a column of its own in every layer that it passes."""
    threads, above = [], upper
    for row in range(upper.row + 1, lower.row):
        bend = Thing(row, BEND, BEND)
        things.append(bend)
        threads.append(tie(above, bend))
        above = bend
    return [*threads, tie(above, lower)]


def _spread(thing: Thing) -> None:
    """Let arrows leave and enter a room over its whole width, in the order of where they lead."""
    for threads, below in ((thing.down, True), (thing.up, False)):
        threads.sort(key=lambda thread: (thread.lower if thread.upper is thing else thread.upper).place)
        for place, thread in enumerate(threads, 1):
            offset = (place / (len(threads) + 1) - 0.5) * (thing.left + thing.right)
            if below:
                thread.upper_offset = offset
            else:
                thread.lower_offset = offset


def _tops(rows: Order) -> tuple[list[float], float]:
    tops, y = [], MARGIN + BAND
    for row in rows:
        tops.append(y)
        y += max(thing.height for thing in row) + LAYER_GAP
    return tops, y - LAYER_GAP - MARGIN + BAND


def _route(threads: list[Thread], tops: list[float], reach: list[float]) -> Route:
    first, last = threads[0], threads[-1]
    source, target = first.upper, last.lower
    x, bottom = _x(source.x + first.upper_offset), tops[source.row] + reach[source.row]
    points = [(x, bottom - (reach[source.row] - source.height) / 2), (x, bottom)]
    for thread in threads[:-1]:
        bend = thread.lower
        points += [(_x(bend.x), tops[bend.row]), (_x(bend.x), tops[bend.row] + reach[bend.row])]
    x = _x(target.x + last.lower_offset)
    points += [(x, tops[target.row]), (x, tops[target.row] + (reach[target.row] - target.height) / 2)]
    rounded = [(round(a, 1), round(b, 1)) for a, b in points]
    kept = [point for place, point in enumerate(rounded) if place == 0 or point != rounded[place - 1]]
    return Route(tuple(kept), Rect(0, 0, 0, 0), Label("", (), 0.0, 0.0))


# The picture


def draw(house: House) -> str:
    plan = lay_out(house)
    wide, high = n(plan.width), n(plan.height)
    size = f'width="{wide}" height="{high}" viewBox="0 0 {wide} {high}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="The rooms of ripstop, in layers">',
        "<title>The rooms of ripstop, in layers, and what they import</title>",
        f"<desc>{escape(_in_words(house))}</desc>",
        _rect(Rect(0.5, 0.5, plan.width - 1, plan.height - 1), 10, GROUND, FRAME, 1),
        f'<g font-family="{SANS}" fill="{INK}">',
        *(_band(band, len(plan.bands) - place) for place, band in enumerate(plan.bands)),
        *(_arrow(plan.routes[pair]) for pair in plan.routes),
    ]
    for layer in house.layers:
        parts += [_box(house.rooms[name], plan.boxes[name], _room_for_text(layer)) for name in layer]
    return "\n".join([*parts, *_legend(plan), "</g>", "</svg>"]) + "\n"


def _in_words(house: House) -> str:
    return " ".join(
        f"{room.name} imports {', '.join(room.imports) or 'no other room'}."
        for layer in house.layers
        for room in map(house.rooms.__getitem__, layer)
    )


def _band(band: Rect, number: int) -> str:
    where = f'x="{n(band.left + 12)}" y="{n(band.middle[1] + 4.5)}" font-size="13" text-anchor="middle" fill="{SOFT}"'
    return f'<rect {box(band, 6)} fill="{BAND_GROUND}"/><text {where}>{number}</text>'


def _arrow(route: Route) -> str:
    line, head = way(route)
    return f'<path d="{line}" fill="none" stroke="{EDGE}" stroke-width="1.4"/><path d="{head}" fill="{EDGE}"/>'


def _box(room: Room, rect: Rect, most: float) -> str:
    ground, border = {"all": PURE, "some": PARTLY_PURE}.get(room.pure, IMPURE)
    parts, imports = _lines(room, most)
    x, y = rect.middle[0], rect.top + NAME_LINE + 1
    drawn = [_rect(rect, 8, ground, border, 1.5)]
    drawn.append(_text(x, y, _title(room), f'font-size="{n(NAME)}" font-weight="600" font-family="{MONO}"'))
    y += 1
    for line in parts:
        y += SMALL_LINE
        drawn.append(_text(x, y, line, f'font-size="{n(SMALL)}" fill="{border}" font-family="{MONO}"'))
    for line in imports:
        y += SMALL_LINE
        drawn.append(_text(x, y, line, f'font-size="{n(SMALL)}" fill="{SOFT}"'))
    return "".join(drawn)


def _legend(plan: Plan) -> list[str]:
    x, y = MARGIN, plan.height - MARGIN - 24
    parts = []
    meanings = ((PURE, "pure"), (PARTLY_PURE, "pure by file"), (IMPURE, "may touch the world"))
    for (ground, border), meaning in meanings:
        parts.append(_rect(Rect(round(x, 1), y - 11, 22, 14), 4, ground, border, 1.5))
        parts.append(f'<text x="{n(x + 30)}" y="{n(y)}" font-size="12">{meaning}</text>')
        x += 30 + width(meaning, 12) + 26
    parts.append(f'<text x="{n(MARGIN)}" y="{n(y + 22)}" font-size="12" fill="{SOFT}">{NOTE}</text>')
    return parts


def _rect(rect: Rect, radius: float, ground: str, border: str, thick: float) -> str:
    return f'<rect {box(rect, radius)} fill="{ground}" stroke="{border}" stroke-width="{n(thick)}"/>'


def _text(x: float, y: float, text: str, looks: str) -> str:
    return f'<text x="{n(x)}" y="{n(y)}" text-anchor="middle" {looks}>{escape(text)}</text>'


def house_here() -> House:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return read(project, grimp.build_graph(PACKAGE, exclude_type_checking_imports=True, cache_dir=None))


def main() -> None:
    PICTURE.write_text(draw(house_here()), encoding="utf-8")


if __name__ == "__main__":
    main()
