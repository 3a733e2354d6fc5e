"""Spoils workflows at random and finds out whether anything but a plain answer comes of it.

    python -m tests.harness.mutate --count 20000

Every spoilt file must be a graph (perhaps with warnings) or be refused with problems that have a place in it;
any other exception is a bug. The slowest file is named, because a check has to answer while somebody types.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from tests.harness.workflows import WORKFLOWS, check_graph

TOKENS = (
    b"&a ", b"*a", b"<<: *a", b"!!int ", b"!x ", b"|", b">", b"'", b'"', b"[", b"]", b"{", b"}", b"- ", b": ", b"? ",
    b"#", b"%", b"@", b"`", b"\t", b"\r", b"\0", b"\xff", b"\xe2\x80\xa8", b"\xef\xbb\xbf", b"---\n", b"...\n", b"~",
    b"{{", b"}}", b"{{x}}", b"{% if x %}", b"{% endif %}", b"{% else %}", b"{% if last_agent_name == 'a' %}",
    b"AND ", b"OR ", b"NOT ", b"(", b")", b"==", b"= ", b"1e999", b"-1", b"99999999999999999999999", b"true", b"null",
    b"\\uD800", b"\\UFFFFFFFF", b"\\x", "：".encode(), "，".encode(), b"condition: ", b"states:\n", b"name: x\n",
)  # fmt: skip
"""Pieces that mean something to YAML, templates or conditions."""

Spoil = Callable[[random.Random, bytes], bytes]


def _flip(chance: random.Random, data: bytes) -> bytes:
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]


def _delete(chance: random.Random, data: bytes) -> bytes:
    at = chance.randrange(len(data))
    return data[:at] + data[at + chance.choice((1, 1, 2, 5, 40, 400)) :]


def inserting(tokens: Sequence[bytes]) -> Spoil:
    """A way of spoiling that puts one of these pieces anywhere, sometimes many times."""

    def insert(chance: random.Random, data: bytes) -> bytes:
        at = chance.randrange(len(data) + 1)
        return data[:at] + chance.choice(tokens) * chance.choice((1, 1, 1, 2, 50)) + data[at:]

    return insert


def _swap(chance: random.Random, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    a, b = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]
    return b"".join(lines)


def _indent(chance: random.Random, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    at = chance.randrange(len(lines))
    lines[at] = lines[at].lstrip(b" ") if chance.randrange(2) else b" " * chance.randrange(1, 9) + lines[at]
    return b"".join(lines)


def _repeat(chance: random.Random, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    at = chance.randrange(len(lines))
    return b"".join(lines[:at] + lines[at : at + chance.choice((1, 3, 10))] * 2 + lines[at:])


def _reword(chance: random.Random, data: bytes) -> bytes:
    """One word of the file takes the place of another, so that the result is often nearly right."""
    words = data.split(b" ")
    words[chance.randrange(len(words))] = chance.choice(words)
    return b" ".join(words)


SPOILS: tuple[Spoil, ...] = (_flip, _delete, _swap, _indent, _repeat, _reword)


def spoilt(
    count: int, seed: int, samples: Iterable[str] = WORKFLOWS.values(), tokens: Sequence[bytes] = TOKENS
) -> Iterator[bytes]:
    """Samples, each spoilt one to four times."""
    chance = random.Random(seed)  # repeatable, not secret
    texts, spoils = [text.encode() for text in samples], (*SPOILS, inserting(tokens))
    for _ in range(count):
        data = chance.choice(texts)
        for _ in range(chance.choice((1, 1, 2, 4))):
            data = chance.choice(spoils)(chance, data) or b" "
        yield data


class Tally(Struct):
    """What came of it."""

    right: int = 0
    warned: int = 0
    refused: int = 0
    slowest: float = 0.0
    """Seconds."""
    slowest_file: bytes = b""

    @property
    def count(self) -> int:
        return self.right + self.warned + self.refused


def try_all(files: Iterator[bytes], folder: Path) -> Tally:
    """Check every file. Whatever is raised is a bug, and is raised on with the file kept in `folder`."""
    tally, path = Tally(), folder / "spoilt.yaml"
    for data in files:
        path.write_bytes(data)
        start = time.perf_counter()
        problems = check_graph(path)
        took = time.perf_counter() - start
        lines = data.count(b"\n") + data.count(b"\r") + len(data.decode(errors="replace").splitlines()) + 1
        for problem in problems:
            assert 1 <= problem.place.line <= lines and problem.place.column >= 1 and problem.text, problem
            str(problem).encode()
        if any(problem.severity == "error" for problem in problems):
            tally.refused += 1
        elif problems:
            tally.warned += 1
        else:
            tally.right += 1
        if took > tally.slowest:
            tally.slowest, tally.slowest_file = took, data
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.harness.mutate", description="Spoil workflows.")
    parser.add_argument("--count", type=int, default=20_000, help="how many files (20000)")
    parser.add_argument("--seed", type=int, default=1, help="where the choices start (1)")
    chosen = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="ripstop-mutate-"))
    start = time.perf_counter()
    try:
        tally = try_all(spoilt(chosen.count, chosen.seed), folder)
    except Exception:
        print(f"The file that did it is kept in {folder}.", file=sys.stderr)  # a program
        raise
    (folder / "spoilt.yaml").unlink(missing_ok=True)
    folder.rmdir()
    print(  # a program
        f"{tally.count} files: {tally.right} right, {tally.warned} with warnings, {tally.refused} refused; "
        f"the slowest took {tally.slowest * 1000:.0f} ms; {time.perf_counter() - start:.0f} s in all"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
