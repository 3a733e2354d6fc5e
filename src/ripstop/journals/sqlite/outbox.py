"""Which commands are due: looked up by what they need, or within one family, so that what waits costs nothing."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from ripstop.runtime.ports import Prefixed, Scope, Tree

from .sql import queries

NOT_BEGUN, BEGUN, BEGUN_UNSAFE, IN_DOUBT, SUPERSEDED = range(5)
"""States of a row."""
Query = Callable[[str, Any], Iterable[tuple[Any, ...]]]
MAX_FAMILIES = 100
"""Families of named runs that a family waits for, directly or not."""


class SqliteOutbox:
    def __init__(self) -> None:
        self._sql = queries()

    def due(self, query: Query, now: int, room: int, scope: Scope, offers: Sequence[str]) -> list[tuple[Any, ...]]:
        """Up to `room` rows, those first that are due first: (run, id, number, attempt, state, woken, due, awaits)."""
        if isinstance(scope, Tree):
            given = {**self._within(query, scope, offers), "now": now, "room": room}
            return list(query(self._sql["due_now_in"], given))
        if isinstance(scope, Prefixed):
            return list(query(self._sql["due_now_named"], {**_named(scope, offers), "now": now, "room": room}))
        found: list[tuple[Any, ...]] = []
        for needs in offers:
            found += query(self._sql["due_now"], {"needs": needs, "now": now, "room": room})
        return sorted(found, key=lambda row: (row[6], row[0], row[2]))[:room] if len(offers) > 1 else found

    def next_due(self, query: Query, scope: Scope, offers: Sequence[str]) -> list[int]:
        """The times of which the first is wanted."""
        if isinstance(scope, Tree):
            rows = list(query(self._sql["next_due_in"], self._within(query, scope, offers)))
        elif isinstance(scope, Prefixed):
            rows = list(query(self._sql["next_due_named"], _named(scope, offers)))
        else:
            rows = [row for needs in offers for row in query(self._sql["next_due"], (needs,))]
        return [due for (due,) in rows if due is not None]

    def _within(self, query: Query, scope: Tree, offers: Sequence[str]) -> dict[str, Any]:
        return {"roots": _json(self._families(query, scope.run_id)), "offers": _json(offers)}

    def _families(self, query: Query, run_id: str) -> list[str]:
        """The root of a run's family, and those of the named runs that it waits for, directly or not."""
        found = [str(root) for (root,) in query(self._sql["root_of"], (run_id,))]
        for root in found:
            for (other,) in query(self._sql["awaited_roots"], (root,)):
                if other not in found and len(found) < MAX_FAMILIES:
                    found.append(other)
        return found


def _named(scope: Prefixed, offers: Sequence[str]) -> dict[str, Any]:
    first, behind = scope.bounds
    return {"first": first, "behind": behind, "offers": _json(offers)}


def _json(texts: Sequence[str]) -> str:
    return msgspec.json.encode(list(texts)).decode()
