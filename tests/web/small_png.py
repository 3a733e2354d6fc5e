"""Makes a picture of a page small: its colours become a palette of 256, which is what a page nearly has anyway.

Only reads what a browser writes: eight bits a channel, RGB or RGBA, not interlaced.
"""

import struct
import zlib
from collections import Counter

SIGNATURE = b"\x89PNG\r\n\x1a\n"
COLOURS = 256
Colour = tuple[int, int, int]


def small_png(picture: bytes) -> bytes:
    width, rows = _read(picture)
    counts: Counter[Colour] = Counter()
    for row in rows:
        counts.update(zip(row[0::3], row[1::3], row[2::3], strict=True))
    palette = _palette(counts)
    place = {colour: at for at, group in enumerate(palette) for colour in group}
    colours = b"".join(bytes(_mean(group, counts)) for group in palette)
    lines = b"".join(
        b"\0" + bytes(place[colour] for colour in zip(row[0::3], row[1::3], row[2::3], strict=True)) for row in rows
    )
    head = struct.pack(">IIBBBBB", width, len(rows), 8, 3, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"PLTE", colours), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return SIGNATURE + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _read(picture: bytes) -> tuple[int, list[bytes]]:
    """The width, and the rows as RGB."""
    assert picture.startswith(SIGNATURE)
    at, packed, width, channels = len(SIGNATURE), [], 0, 3
    while at < len(picture):
        size, kind = struct.unpack(">I4s", picture[at : at + 8])
        data = picture[at + 8 : at + 8 + size]
        if kind == b"IHDR":
            width, _, depth, colours, _, _, interlaced = struct.unpack(">IIBBBBB", data)
            assert (depth, interlaced) == (8, 0) and colours in (2, 6), "not as a browser writes it"
            channels = 3 if colours == 2 else 4
        elif kind == b"IDAT":
            packed.append(data)
        at += size + 12
    raw, line = zlib.decompress(b"".join(packed)), width * channels
    rows, above = [], bytes(line)
    for start in range(0, len(raw), line + 1):
        above = _unfiltered(raw[start], bytearray(raw[start + 1 : start + 1 + line]), above, channels)
        rows.append(above if channels == 3 else bytes(one for at, one in enumerate(above) if at % 4 < 3))
    return width, rows


def _unfiltered(kind: int, row: bytearray, above: bytes, channels: int) -> bytes:
    for at in range(len(row)) if kind else ():
        left = row[at - channels] if at >= channels else 0
        up = above[at]
        if kind == 1:
            guess = left
        elif kind == 2:
            guess = up
        elif kind == 3:
            guess = (left + up) // 2
        else:
            corner = above[at - channels] if at >= channels else 0
            near = left + up - corner
            guess = min((left, up, corner), key=lambda one: abs(near - one))
        row[at] = (row[at] + guess) & 255
    return bytes(row)


def _palette(counts: Counter[Colour]) -> list[list[Colour]]:
    """Groups of similar colours: the one that differs most in itself is halved until there are enough."""
    groups = [sorted(counts)]
    while len(groups) < min(COLOURS, len(counts)):
        widest = max(groups, key=lambda group: len(group) > 1 and _spread(group)[0] * sum(counts[one] for one in group))
        channel = _spread(widest)[1]
        groups.remove(widest)
        widest.sort(key=lambda colour: colour[channel])
        middle = (widest[0][channel] + widest[-1][channel]) / 2
        cut = next(at for at, colour in enumerate(widest) if colour[channel] > middle)
        groups += [widest[:cut], widest[cut:]]
    return groups


def _spread(group: list[Colour]) -> tuple[int, int]:
    """How far the colours are apart, and in which channel most."""
    return max((max(c[at] for c in group) - min(c[at] for c in group), at) for at in range(3))


def _mean(group: list[Colour], counts: Counter[Colour]) -> Colour:
    total = sum(counts[colour] for colour in group)
    red, green, blue = (round(sum(colour[at] * counts[colour] for colour in group) / total) for at in range(3))
    return red, green, blue
