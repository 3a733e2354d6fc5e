"""Is every record the one that was written? Recomputes every hash, from the file alone."""

import hashlib
import sqlite3

from ripstop.kernel.codec import Codec
from ripstop.kernel.errors import UnknownRecord
from ripstop.runtime.ports import Damage

from . import chain
from .sql import queries


def verify(db: sqlite3.Connection, codec: Codec, only: str | None) -> list[Damage]:
    sql = queries()
    damage: list[Damage] = []
    db.execute("BEGIN")  # one view of the file, even while others write
    try:
        runs = {row[1]: row for row in db.execute(sql["all_runs"])}
        for run_id in runs:
            if only in (None, run_id):
                damage += _verify_run(db, codec, runs, run_id)
        if only is None:
            damage += _verify_whole(db)
    finally:
        db.execute("COMMIT")
    return damage


def _verify_run(db: sqlite3.Connection, codec: Codec, runs: dict[str, tuple], run_id: str) -> list[Damage]:  # type: ignore[type-arg]
    key, _, length, head, fork_of, fork_at = runs[run_id]
    digest: bytes | None = chain.first(run_id, _shared_hash(db, runs, fork_of, fork_at))
    expected = fork_at + 1
    damage: list[Damage] = []

    def report(number: int, text: str) -> None:
        damage.append(Damage(run_id=run_id, number=number, text=text))

    for number, at, body, stored in db.execute(queries()["records_of"], (key,)):
        if number != expected:
            missing = f"{expected}" if number == expected + 1 else f"{expected} to {number - 1}"
            report(expected, f"record {missing} is missing")
        data = body.encode() if isinstance(body, str) else bytes(body)
        digest = chain.link(digest, number, at, data) if digest else None
        if digest != stored:
            report(number, "record changed, moved or inserted: its hash does not fit the one before it")
        digest, expected = bytes(stored), number + 1
        try:
            codec.load(data)
        except UnknownRecord as error:
            report(number, str(error))
    if expected <= length:
        report(expected, f"the end was cut off: records {expected} to {length} are missing")
    elif expected > length + 1:
        report(length + 1, f"records {length + 1} to {expected - 1} were added behind the run's end")
    elif digest != head:
        report(length, "the run's last hash does not fit its last record")
    return damage


def _shared_hash(db: sqlite3.Connection, runs: dict[str, tuple], run_id: str | None, number: int) -> bytes:  # type: ignore[type-arg]
    while run_id:
        key, _, _, _, fork_of, fork_at = runs.get(run_id, (None, None, None, None, None, 0))
        if number > fork_at:
            row = db.execute(queries()["hash_at"], (key, number)).fetchone()
            return bytes(row[0]) if row else b""
        run_id = fork_of
    return b""


def _verify_whole(db: sqlite3.Connection) -> list[Damage]:
    sql = queries()
    damage = []
    count, last = db.execute(sql["positions"]).fetchone()
    if count != last:
        damage.append(Damage(run_id="", number=0, text=f"{last - count} records are missing from the file"))
    (strays,) = db.execute(sql["strays"]).fetchone()
    if strays:
        damage.append(Damage(run_id="", number=0, text=f"{strays} records belong to a run that is not in the list"))
    for digest, body in db.execute(sql["all_blobs"]):
        data = body.encode() if isinstance(body, str) else bytes(body)
        if hashlib.sha256(data).hexdigest() != digest:
            damage.append(Damage(run_id="", number=0, text=f"the definition {digest[:12]}… was changed"))
    return damage
