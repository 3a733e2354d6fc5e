"""What a journal in memory holds: runs with their steps as bytes, as any store would keep them, and their outbox."""

from collections.abc import Callable

from msgspec import Struct

from ripstop.kernel.codec import Codec
from ripstop.kernel.events import Record
from ripstop.runtime.ports import RunInfo, Tombstone

NOT_BEGUN, BEGUN, BEGUN_UNSAFE, IN_DOUBT, SUPERSEDED = range(5)
"""States of a command in the outbox."""


class Item(Struct):
    """A command, as the outbox knows it."""

    waits: str
    due: int | None
    asked: int
    """The position of the step that asks."""
    holder: int | None = None
    state: int = NOT_BEGUN
    attempt: int = 0
    needs: str = ""
    awaits: str = ""
    woken: int = 0


class StoredStep(Struct, frozen=True):
    position: int
    number: int
    at: int
    body: bytes
    digest: bytes


class StoredRun(Struct):
    key: int
    style: str
    created: int
    root: str
    status: str = ""
    updated: int = 0
    parent: tuple[str, int] | None = None
    fork: tuple[str, int] | None = None
    steps: list[StoredStep] = []
    head: bytes = b""
    length: int = 0
    outbox: dict[int, Item] = {}
    gist: str = ""
    tokens: int = 0
    money: float = 0.0
    set_aside: str = ""
    blobs: set[str] = set()


class Store:
    """The base of the parts of a journal in memory."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._runs: dict[str, StoredRun] = {}
        self._started = 0
        self._steps = 0
        """The last position; like the number of runs it never becomes smaller."""
        self._blobs: dict[str, bytes] = {}
        self._documents: dict[tuple[str, str], tuple[bytes, str]] = {}
        """Documents, each with the run that wrote it."""
        self._followers: dict[str, str] = {}
        self._tombstones: dict[str, Tombstone] = {}
        self._workers: dict[int, int] = {}
        """Until when each worker counts as alive."""
        self._enrolled = 0
        self._listeners: list[Callable[[], None]] = []

    def _read(self, run_id: str) -> list[Record]:
        stored = self._runs.get(run_id)
        if stored is None:
            return []
        source, shared = stored.fork or ("", 0)
        return [*self._read(source)[:shared], *(record for step in stored.steps for record in self._records(step))]

    def _records(self, step: StoredStep) -> list[Record]:
        return [
            Record(number, step.at, event) for number, event in enumerate(self._codec.load_step(step.body), step.number)
        ]

    def _step_with(self, run_id: str, number: int) -> StoredStep:
        """The step that holds a record."""
        stored = self._runs[run_id]
        source, shared = stored.fork or ("", 0)
        if number <= shared:
            return self._step_with(source, number)
        return next(step for step in reversed(stored.steps) if step.number <= number)

    def _info(self, run_id: str) -> RunInfo:
        stored = self._runs[run_id]
        fork_of, fork_at = stored.fork or (None, 0)
        return RunInfo(
            run_id=run_id,
            style=stored.style,
            status="set_aside" if stored.set_aside else stored.status,
            length=stored.length,
            created=stored.created,
            updated=stored.updated,
            parent=stored.parent[0] if stored.parent else None,
            root=stored.root,
            fork_of=fork_of,
            fork_at=fork_at,
            gist=stored.gist,
            tokens=stored.tokens,
            money=stored.money,
            set_aside=stored.set_aside,
        )
