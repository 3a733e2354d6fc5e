"""What is delivered of a step of a run: one request for each notice that its style makes of a record.

The id and the body of a delivery depend on the record alone, so that a receiver knows one that comes again.
"""

import logging
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from ripstop.app.settings.tables import Webhook
from ripstop.engine.engine import Engine
from ripstop.engine.ports import Moved, text_in
from ripstop.kernel.errors import RipstopError, RunNotFound
from ripstop.kernel.events import Record
from ripstop.kernel.style import NO_AUDIENCE, Notice, Style

log = logging.getLogger("ripstop.webhooks")

MOST_KNOWN = 10_000
"""Runs whose style and workflow are remembered."""
MICROS = 1_000_000


class Delivery(NamedTuple):
    id: str
    """`run/number`; a further notice of the same record has its own number behind that."""
    run_id: str
    body: bytes


class _KnownRun(NamedTuple):
    style: Style[Any] | None
    """None: nothing is told about the run."""
    workflow: str = ""


class Deliveries:
    """Makes the deliveries of one webhook."""

    def __init__(self, engine: Engine, hook: Webhook) -> None:
        self._engine = engine
        self._hook = hook
        self._known: dict[str, _KnownRun] = {}

    async def of(self, step: Moved) -> AsyncIterator[Delivery]:
        known = self._known.get(step.run_id) or await self._look(step.run_id)
        if known.style is None or (self._hook.workflows and known.workflow not in self._hook.workflows):
            return
        for record in step.records:
            for index, notice in self._notices(known.style, step.run_id, record):
                told = {"run": step.run_id, "number": record.number, "workflow": known.workflow, **notice.data}
                if notice.about:
                    told["text"] = await self._text(step.run_id, notice.about)
                yield _delivery(step.run_id, record, index, f"{known.style.name}.{notice.kind}", told)

    def _notices(self, style: Style[Any], run_id: str, record: Record) -> Sequence[tuple[int, Notice]]:
        """The notices of a record that this webhook wants, each with its index."""
        try:
            every = list(enumerate(style.audience.public_events(record)))
        except Exception as error:  # noqa: BLE001  # a style can be anybody's code
            log.warning("Nothing is told about %s/%d: its style failed (%r).", run_id, record.number, error)
            return ()
        return [one for one in every if not self._hook.kinds or one[1].kind in self._hook.kinds]

    async def _look(self, run_id: str) -> _KnownRun:
        info = await self._engine.journal.run(run_id)
        kit = self._engine.registry.kits.get(info.style) if info else None
        found = _KnownRun(None)
        if kit is not None and kit.style.audience is not NO_AUDIENCE:
            try:
                run = await self._engine.current(run_id)
            except RunNotFound:
                return found  # forgotten meanwhile
            except RipstopError as error:
                log.warning("Nothing is told about %s, because it cannot be read: %s", run_id, error)
                return found
            found = _KnownRun(kit.style, str(getattr(self._engine.definition(run), "name", "")))
        while len(self._known) >= MOST_KNOWN:
            del self._known[next(iter(self._known))]
        self._known[run_id] = found
        return found

    async def _text(self, run_id: str, number: int) -> str:
        found = await self._engine.journal.read(run_id, after=number - 1, most=1)
        return text_in(found[0]) if found else ""  # none: the run was forgotten meanwhile


def _delivery(run_id: str, record: Record, index: int, type: str, told: dict[str, Any]) -> Delivery:
    key = f"{run_id}/{record.number}" + (f"/{index + 1}" if index else "")
    # a full stop separates what is signed, so a name that a user chose must not have one
    id = quote(key, safe="/:").replace(".", "%2E")
    when = datetime.fromtimestamp(record.at / MICROS, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return Delivery(id, run_id, msgspec.json.encode({"type": type, "timestamp": when, "data": told}))
