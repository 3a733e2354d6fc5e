"""Spoils journals at random, and finds out whether any command falls over, hangs, or writes where it must not.

    python -m tests.harness.mutate_journals --count 5000

Bytes and pages are changed as a bad disk or transfer would; rows, records, schema and side files as an enemy would, who
can also make every hash right again. Every command must end by itself, quickly, with an exit code: any exception, any
command over the limit, and any file outside the current folder is a bug.
"""

import argparse
import json
import os
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from ripstop.journals import hash_chain as chain
from ripstop.testing.commands import command

LONGEST = 10.0
"""Seconds of CPU that a command can take."""
HANGS = 240
"""Seconds after which it is broken off."""
PAGE = 4096
WORKFLOW = """\
name: ask
initial_message: Write it.
agents: [{name: ada, type: coder}, {name: bob, type: ask}]
states:
  - name: work
    agent: ada
    prompt: "{{COLLABORATION_GUIDE}} {{initial_message}} {{last_agent_content}}"
    transitions: [{to: judge, condition: ready}, {to: END}]
  - {name: judge, agent: bob, prompt: "{{COLLABORATION_GUIDE}} {{last_agent_content}}", transitions: [{to: END}]}
"""
SCRIPT = (
    {"calls": [{"tool": "write_file", "args": {"path": "a.md", "content": "x"}}]},
    {"reply": '{"content": "written", "decisions": {"ready": true}}'},
    {"reply": '{"content": "fine", "decisions": {}}'},
    {"reply": '{"content": "again", "decisions": {}}'},
)
ODD: tuple[Any, ...] = (
    0, -1, 1, 2**31, 2**53, 2**63 - 1, -(2**63), 1e308, 1.5, "", "x", "\x00", "\x1b[31m", "a" * 70_000, b"", b"\xff",
    "[" * 3000, "[" * 500 + "]" * 500, "null", "[]", "{}", '[{"type":"started"}]', "../../etc", "completed", "working",
)  # fmt: skip
"""Values for a column."""
ODD_JSON: tuple[Any, ...] = (
    None, True, 0, -1, 10**18, 10**30, 1e308, "", "x", "END", "work", "nobody", "\ud800", "\x1b]0;x\x07", [], {}, [[]],
    {"type": "x"}, ["a"] * 50, "a" * 5000, "/etc", "..",
)  # fmt: skip
"""Values inside a record."""
COLUMNS = {
    "runs": ("key", "id", "style", "status", "created", "updated", "length", "last", "head", "parent", "parent_number",
             "fork_of", "fork_at", "root", "gist", "tokens", "money", "set_aside"),
    "records": ("position", "run", "number", "at", "before", "body", "hash"),
    "outbox": ("run", "number", "record", "waits", "due", "holder", "state", "attempt", "needs", "awaits", "woken"),
    "blobs": ("hash", "body"),
    "blob_uses": ("run", "hash"),
    "documents": ("collection", "key", "body", "run", "number"),
    "workers": ("id", "until"),
    "followers": ("name", "cursor"),
    "tombstones": ("id", "at", "status", "length", "head"),
    "total": ("runs", "position"),
}  # fmt: skip
WITH_ROWID = ("runs", "records", "blobs", "workers", "total")
OBJECTS = (
    "CREATE TABLE notes (text)",
    "CREATE VIEW v AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n",
    "CREATE TRIGGER t AFTER INSERT ON records BEGIN DELETE FROM runs; END",
    "CREATE TRIGGER u AFTER UPDATE ON outbox BEGIN INSERT INTO workers (until) VALUES (1); END",
    "CREATE INDEX extra ON records (at)",
    "DROP TABLE outbox",
    "DROP INDEX outbox_due",
    "ALTER TABLE runs ADD COLUMN more TEXT",
    "PRAGMA user_version = 1",
    "PRAGMA user_version = 99",
    "PRAGMA user_version = -1",
    "PRAGMA application_id = 7",
    "PRAGMA journal_mode = DELETE",
    "DELETE FROM records",
    "DELETE FROM runs",
    "DELETE FROM outbox",
    "DELETE FROM blobs",
    "DELETE FROM total",
    "INSERT INTO tombstones SELECT id, 1, status, length, head FROM runs",
    "UPDATE outbox SET awaits = (SELECT id FROM runs), waits = 'run', due = NULL",
    "UPDATE runs SET root = 'x', parent = id, parent_number = 1",
    "UPDATE records SET before = position + 1",
    "UPDATE records SET before = position",
    "UPDATE runs SET fork_of = id",
    "INSERT INTO outbox (run, number, record, waits, due) SELECT run, number + 50, position, 'worker', 1 FROM records",
)
Spoil = Callable[[random.Random, Path], None]


# Bytes


def _flip(chance: random.Random, path: Path) -> None:
    data = bytearray(path.read_bytes())
    near = chance.randrange(len(data))
    for _ in range(chance.choice((1, 1, 4, 40))):
        data[min(near + chance.randrange(200), len(data) - 1)] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def _head(chance: random.Random, path: Path) -> None:
    """The header of the file, or of a page: sizes, pointers, counts."""
    data = bytearray(path.read_bytes())
    page = chance.randrange(len(data) // PAGE) * PAGE
    data[page + chance.randrange(100)] = chance.choice((0, 1, 2, 5, 10, 13, 0x7F, 0xFF, chance.randrange(256)))
    path.write_bytes(data)


def _pages(chance: random.Random, path: Path) -> None:
    data = bytearray(path.read_bytes())
    a, b = (chance.randrange(len(data) // PAGE) * PAGE for _ in range(2))
    one, other = bytes(data[a : a + PAGE]), bytes(data[b : b + PAGE])
    match chance.randrange(3):
        case 0:
            data[a : a + PAGE], data[b : b + PAGE] = other, one
        case 1:
            data[a : a + PAGE] = other
        case _:
            data[a : a + PAGE] = bytes(PAGE)
    path.write_bytes(data)


def _cut(chance: random.Random, path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: chance.randrange(len(data))] + bytes(chance.choice((0, 0, 10, PAGE))))


def _beside(chance: random.Random, path: Path) -> None:
    """Garbage in the write-ahead log, its index or a rollback journal."""
    garbage = chance.choice((b"", b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x82\x00\x2d\xe2\x18", path.read_bytes()))
    name = f"{path.name}{chance.choice(('-wal', '-shm', '-journal', '-queue', '-worker-1'))}"
    path.with_name(name).write_bytes(garbage + chance.randbytes(chance.choice((0, 32, 5000, 40_000))))


# Rows


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    db = sqlite3.connect(path, isolation_level=None)
    try:
        # what SQLite will not do need not be tried, nor a record be changed that was spoilt before
        with suppress(sqlite3.Error, ValueError, TypeError, AttributeError, LookupError):
            yield db
    finally:
        db.close()


def _column(chance: random.Random, path: Path) -> None:
    table = chance.choice(sorted(COLUMNS))
    column = chance.choice(COLUMNS[table])
    where = chance.choice(("", f" WHERE rowid % {chance.randrange(2, 5)} = 0")) if table in WITH_ROWID else ""
    with _opened(path) as db:
        db.execute(f"UPDATE OR IGNORE {table} SET {column} = ?{where}", (chance.choice(ODD),))


def _object(chance: random.Random, path: Path) -> None:
    with _opened(path) as db:
        db.execute(chance.choice(OBJECTS))


def _record(chance: random.Random, path: Path, sealed: bool = False) -> None:
    """Change something inside a record; `sealed`: and make all hashes right again."""
    with _opened(path) as db:
        position, body = chance.choice(db.execute("SELECT position, body FROM records").fetchall())
        changed = json.dumps(_changed(chance, json.loads(body)), separators=(",", ":"))
        db.execute("UPDATE records SET body = ? WHERE position = ?", (changed, position))
        if sealed:
            _seal(db)


def _sealed(chance: random.Random, path: Path) -> None:
    _record(chance, path, sealed=True)


def _changed(chance: random.Random, value: Any) -> Any:
    if isinstance(value, dict) and value and chance.randrange(8):
        key = chance.choice(sorted(value))
        if not chance.randrange(8):
            return {name: one for name, one in value.items() if name != key}
        return {**value, key: _changed(chance, value[key])}
    if isinstance(value, list) and value and chance.randrange(8):
        at = chance.randrange(len(value))
        if not chance.randrange(8):
            return value[:at] + value[at + 1 :]
        return [*value[:at], _changed(chance, value[at]), *value[at + 1 :]]
    return chance.choice(ODD_JSON)


def _seal(db: sqlite3.Connection) -> None:
    heads: dict[int, bytes] = {}
    runs = {key: (run, fork, at) for key, run, fork, at in db.execute("SELECT key, id, fork_of, fork_at FROM runs")}
    rows = db.execute("SELECT position, run, number, at, before, body FROM records ORDER BY position").fetchall()
    by_position: dict[int, bytes] = {}
    for position, run, number, at, before, body in rows:
        if run not in heads:
            heads[run] = chain.first(runs[run][0], by_position.get(before, b""))
        heads[run] = by_position[position] = chain.link(heads[run], number, at, body.encode(errors="replace"))
        db.execute("UPDATE records SET hash = ? WHERE position = ?", (heads[run], position))
    for run, head in heads.items():
        db.execute("UPDATE runs SET head = ? WHERE key = ?", (head, run))


SPOILS: tuple[Spoil, ...] = (_flip, _head, _pages, _cut, _beside, _column, _column, _object, _record, _sealed, _sealed)


# Trying


class Tally(Struct):
    """What came of it."""

    files: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0
    """Seconds."""
    slowest_command: str = ""
    failures: list[str] = []


def sample(here: Path) -> tuple[bytes, list[str]]:
    """A journal with a run that was completed, one that a limit stopped, a fork that is at work, and a document."""
    (here / "ask.yaml").write_text(WORKFLOW, encoding="utf-8")
    (here / "script.jsonl").write_text("\n".join(map(json.dumps, SCRIPT)), encoding="utf-8")
    names = []
    for more in ((), ("--max-calls", "2")):
        done = command("run", "ask.yaml", "--model", "script:script.jsonl", "--json", *more)
        names.append(json.loads(done.out)["run"])
    names.append(json.loads(command("fork", names[0], "--at", "2", "--json").out)["run"])
    names.append(json.loads(command("docs", "new", "Add", "--to", "ann", "--from", "me", "--json").out)["run"])
    return (here / ".ripstop" / "journal.db").read_bytes(), names


def _times_out(_number: int, _frame: Any) -> None:
    raise TimeoutError(f"broken off after {HANGS} s")


def try_one(tally: Tally, here: Path, runs: list[str], chance: random.Random, keep: Path) -> None:
    store = here / ".ripstop" / "journal.db"
    spoilt = {path: path.read_bytes() for path in store.parent.glob("journal.db*") if path.is_file()}
    run = chance.choice(runs)
    for args in (("runs",), ("desk",), ("show", run), ("log", run), ("why", run), ("verify",), ("resume", run)):
        start = time.process_time()
        signal.alarm(HANGS)
        try:
            done = command(*args)
            tally.codes[f"{args[0]} {done.code}"] += 1
            wrong = (
                ""
                if done.code in (0, 1, 2, 3, 4, 5) and "Traceback" not in done.err
                else f"{done.code}: {done.err[-300:]}"
            )
        except BaseException as error:  # whatever a person would see
            wrong = f"{type(error).__name__}: {error}"
        finally:
            signal.alarm(0)
        took = time.process_time() - start
        if took > tally.slowest:
            tally.slowest, tally.slowest_command = took, " ".join(args)
        if wrong or took > LONGEST:
            place = keep / str(tally.files)
            place.mkdir(parents=True, exist_ok=True)
            for path, data in spoilt.items():
                (place / path.name).write_bytes(data)
            tally.failures.append(f"{place}: {' '.join(args)}: {wrong or f'took {took:.1f} s'}")
            print(tally.failures[-1], file=sys.stderr, flush=True)  # as it happens


def try_all(count: int, seed: int, folder: Path, keep: Path) -> Tally:
    """Spoil `count` journals and use each. `folder` is made the current folder, with nothing else in it."""
    chance = random.Random(seed)  # repeatable, not secret
    here, home = folder / "here", folder / "home"
    here.mkdir()
    home.mkdir()
    os.chdir(here)
    os.environ.update(HOME=str(home), XDG_STATE_HOME=str(home))
    sound, runs = sample(here)
    before = _outside(folder)
    tally = Tally()
    signal.signal(signal.SIGALRM, _times_out)
    store = here / ".ripstop" / "journal.db"
    for _ in range(count):
        tally.files += 1
        for path in store.parent.glob("journal.db*"):
            path.unlink()
        store.write_bytes(sound)
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            if store.stat().st_size >= PAGE:
                chance.choice(SPOILS)(chance, store)
        try_one(tally, here, runs, chance, keep)
        if _outside(folder) != before:
            tally.failures.append(f"file {tally.files}: something was written outside: {_outside(folder) ^ before}")
            print(tally.failures[-1], file=sys.stderr, flush=True)  # as it happens
            before = _outside(folder)
    return tally


def _outside(folder: Path) -> set[str]:
    """Every file but those in the folder of the journal and of the documents, and of what is known of journals."""
    ours = (folder / "here" / ".ripstop", folder / "here" / ".workflows", folder / "home" / "ripstop")
    return {str(path) for path in folder.rglob("*") if not any(path.is_relative_to(one) for one in ours)}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.harness.mutate_journals", description="Spoil journals.")
    parser.add_argument("--count", type=int, default=5_000, help="how many files (5000)")
    parser.add_argument("--seed", type=int, default=1, help="where the choices start (1)")
    chosen = parser.parse_args()
    keep, folder = (Path(tempfile.mkdtemp(prefix="ripstop-journals-")) for _ in range(2))
    start = time.perf_counter()
    try:
        tally = try_all(chosen.count, chosen.seed, folder, keep)
    finally:
        os.chdir("/")
        shutil.rmtree(folder)
    print(  # a program
        f"{tally.files} journals, {tally.codes.total()} commands: {len(tally.failures)} failures; the slowest was "
        f"`{tally.slowest_command}` with {tally.slowest:.2f} s of CPU; {time.perf_counter() - start:.0f} s in all\n"
        + ", ".join(f"{name}: {number}" for name, number in sorted(tally.codes.items()))
    )
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
