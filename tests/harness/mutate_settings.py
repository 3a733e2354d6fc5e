"""Spoils settings files at random: each must be valid settings or a `UsageError` that names the file.

    python -m tests.harness.mutate_settings --count 30000

Any other exception is a bug, and so is a file that takes more than two seconds. Some files are not spoilt but built to
be costly: deeply nested, with huge numbers, with many keys.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from msgspec import Struct

from ripstop.app.settings.number_ranges import ANY_KEY, NUMBERS
from ripstop.app.settings.settings_file import FILE, MAX_BYTES, Settings, read_settings
from ripstop.kernel.errors import UsageError
from tests.harness.mutate import spoilt

LONGEST = 2.0
"""Seconds of processor time that reading a file can take; the clock would also count other processes."""
WHOLE = """\
store = "sqlite:.ripstop/journal.db"
concurrency = 32
attempts = 5

[models]
default = "local"
strong = "openai:bigger"
base_url = "http://127.0.0.1:8080/v1"

[limits]
tokens = 200000
calls = 200
seconds = 3600
money = 2.0
turns = 100

[guards]
patience = 5
phrases = ["cheers", "ta"]

[docs]
max_interactions = 10
keep_days = 7
language = "en"
replies = true

[docs.models]
programmer = "openai:name"

[rate_limits]
openai = 2.0

[prices."openai:name"]
input = 0.5
output = 1.5
"""
SAMPLES = (
    WHOLE,
    "concurrency = 1\nattempts = 2\nmodels.default = 'local'\nrate_limits = {openai = 1, google = 0.5}\n",
    "limits = {tokens = 10, money = 0.5}\n[guards]\nthen = 'ask'\ncourtesy = 'ignore'\n",
)
TOKENS = (
    b"=", b" = ", b"[", b"]", b"[[", b"]]", b"{", b"}", b".", b",", b"#", b"'", b'"', b'"""', b"'''", b"\\", b"\n",
    b"\r", b"\t", b"\0", b"\xff", b"\xef\xbb\xbf", b"\\uD800", b"\\U00110000", b"nan", b"inf", b"-inf", b"true",
    b"false", b"-1", b"0", b"-0.0", b"1e400", b"0x", b"0b2", b"1_000", b"9" * 40, b"1979-05-27", b"25:00:00", b"a.b.c",
    b"a", b'""', b"@", b"?x", b"http://", b"user:hidden@", b"models", b"limits", b"docs.models", b"prices",
    "密钥".encode(),
)  # fmt: skip
"""Pieces that mean something to TOML or to an address."""
VALUES = (
    "0",
    "-1",
    "nan",
    "inf",
    "-inf",
    "1e400",
    "9" * 30,
    "9" * 5000,
    "true",
    "0.5",
    "1",
    "'1'",
    "[1]",
    "{}",
)


def numbered(count: int, seed: int) -> Iterator[bytes]:
    """Files that set one number each, mostly out of its range."""
    chance = random.Random(seed)  # repeatable, not secret
    for _ in range(count):
        keys = ('"a:b"' if key == ANY_KEY else key for key in chance.choice(list(NUMBERS)))
        yield f"{'.'.join(keys)} = {chance.choice(VALUES)}\n".encode()


def costly() -> Iterator[bytes]:
    """Files that are as long as they can be, built so that each kind of work is the most it can be."""
    for text in (
        "guards.x = " + "[" * 49_000,
        "guards.x = " + "[" * 400 + "]" * 400,
        "x = " + "{a=" * 20_000,
        "guards." + "a." * 30_000 + "a = 1",
        "guards." + "a." * 90 + "a = 1",
        "".join(f"guards{'.a' * 90}.b{n} = 1\n" for n in range(300)),
        "".join(f"guards.a{n}.b = 1\n" for n in range(3_000)),
        "".join(f"k{n} = 1\n" for n in range(5_000)),
        "".join(f"[guards.a{n}]\n" for n in range(3_500)),
        "[[guards]]\n" * 5_000,
        "concurrency = " + "9" * 60_000,
        "store = '''" + "\n" * 60_000 + "'''\nx = 1",
        '"' + "k" * 60_000 + '" = 1',
        "x" + " " * 60_000 + "= 1",
        "[limits]\n" + "# comment\n" * 6_000 + "tokens = -1",
        "[rate_limits]\n" + "".join(f"p{n} = 1\n" for n in range(5_000)),
        "guards.phrases = [" + "'a b'," * 10_000 + "]",
        "guards.phrases = ['" + "a" * 60_000 + "']",
        "models.base_url = 'http://" + "a-" * 30_000 + "'",
    ):
        assert len(text) <= MAX_BYTES, text[:100]
        yield text.encode()


class Tally(Struct):
    """What the files turned out to be."""

    valid: int = 0
    refused: int = 0
    slowest: float = 0.0
    """Seconds."""

    @property
    def count(self) -> int:
        return self.valid + self.refused


def read_all(files: Iterable[bytes], folder: Path) -> Tally:
    """Read every file as a project's settings. An unexpected exception is raised, and the file stays in `folder`."""
    tally, path = Tally(), folder / FILE
    for data in files:
        path.write_bytes(data)
        start = time.process_time()
        try:
            settings = read_settings(folder, {})
        except UsageError as error:
            text = str(error)
            assert text.startswith(str(path)) and len(text) < 2_000, text[:2_000]
            assert "hidden" not in text or "`models.base_url`" not in text, text
            text.encode()
            tally.refused += 1
        else:
            _check(settings)
            tally.valid += 1
        took = time.process_time() - start
        assert took < LONGEST, f"{took:.1f} s"
        tally.slowest = max(tally.slowest, took)
    return tally


def _check(settings: Settings) -> None:
    """What was accepted can be used: no number out of its range, nobody's choice but the project's."""
    assert settings.concurrency >= 1 and settings.attempts >= 1, settings
    assert all(0 <= gap <= 86_400 for gap in settings.rate_limits.values()), settings
    assert all(0 <= price.input <= 10**9 and 0 <= price.output <= 10**9 for price in settings.prices.values()), settings
    assert settings.model_for_all == "" and bool(settings.address_from) == bool(settings.models.base_url), settings


def files(count: int, seed: int) -> Iterator[bytes]:
    """Files of every kind, `count` in all besides the costly ones."""
    numbers = count // 10
    return chain(costly(), numbered(numbers, seed), spoilt(count - numbers, seed, SAMPLES, TOKENS))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.harness.mutate_settings", description="Spoil settings.")
    parser.add_argument("--count", type=int, default=30_000, help="how many files (30000)")
    parser.add_argument("--seed", type=int, default=1, help="where the choices start (1)")
    chosen = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="ripstop-settings-"))
    start = time.perf_counter()
    try:
        tally = read_all(files(chosen.count, chosen.seed), folder)
    except BaseException:
        print(f"The file that did it is kept in {folder}.", file=sys.stderr)  # a program
        raise
    (folder / FILE).unlink(missing_ok=True)
    folder.rmdir()
    print(  # a program
        f"{tally.count} files: {tally.valid} valid, {tally.refused} refused; "
        f"the slowest took {tally.slowest * 1000:.0f} ms; {time.perf_counter() - start:.0f} s in all"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
