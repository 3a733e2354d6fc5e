"""The hash chain: the hash of every step covers the one before it, so a changed, dropped, swapped or
inserted step shows in all later hashes. The length of a run and its last hash are stored apart from
the chain, so that a cut-off end also shows."""

import hashlib
from collections.abc import Iterable


def first(run_id: str, shared: bytes = b"") -> bytes:
    """Where a run's chain begins: its id, and for a fork the hash of the step that holds the last shared record."""
    return hashlib.sha256(shared + run_id.encode()).digest()


def link(before: bytes, number: int, at: int, body: bytes) -> bytes:
    """`number`: of the first record that `body` holds."""
    return hashlib.sha256(b"%b%d %d %b" % (before, number, at, body)).digest()


def heads(last: Iterable[tuple[str, bytes]]) -> str:
    """One hash over those of the last steps of runs, in the order of their ids."""
    digest = hashlib.sha256()
    for run_id, head in last:
        digest.update(first(run_id, head))
    return digest.hexdigest()
