"""A worker: hands that perform commands, and a sweeper that finds them.

What it works on is said when it is made (`scope`): every run of the journal, one run with its family, or nothing but
what its own process asks for. `stop` lets running calls finish for a while, then gives everything back; the runs can
be resumed.
"""

from collections.abc import Callable, Mapping

from ripstop.kernel.outbox import Opened
from ripstop.kernel.run import Open

from .command_runner import Hands
from .engine import Engine
from .entries import Job
from .failpoints import failpoint
from .performers import Performer
from .ports import ALL, Clock, Scope
from .rate_limit import RateLimit
from .sweeper import Admit, Sweeper


class Worker:
    def __init__(
        self,
        engine: Engine,
        performers: Mapping[type, Performer],
        clock: Clock,
        concurrency: int = 32,
        attempts: int = 5,
        backoff: float = 1.0,
        rate_limit: RateLimit | None = None,
        scope: Scope = ALL,
        admit: Admit | None = None,
        patient: bool = False,
    ) -> None:
        """Args:
        admit: Checks a run before the first of its commands that this worker finds is performed.
        patient: Whether it goes on when a store that was unreachable works again, as a service must, or gives up.
        """
        self._engine = engine
        self._clock = clock
        self.scope = scope
        self.offers = tuple(
            dict.fromkeys(["", *(offer for performer in performers.values() for offer in performer.offers())])
        )
        """What its commands may need."""
        self._offered = frozenset(self.offers)
        limit = rate_limit or RateLimit()
        self.held = limit.held
        """Which providers get no calls now, for how many seconds."""
        self._hands = Hands(engine, performers, clock, limit, concurrency, attempts, backoff, patient)
        self._sweeper = Sweeper(engine, self._hands, clock, scope, self.offers, admit)
        self.dispatch = self._hands.dispatch
        self.withdraw = self._hands.withdraw
        self.kind = self._hands.kind
        self.idle = self._hands.idle
        self.wake = self._sweeper.wake
        self.wake_by = self._sweeper.wake_by
        self._stop_listening: Callable[[], None] | None = None

    async def start(self) -> None:
        failpoint("worker.before_enrol")
        self._hands.began = self._clock()
        self._sweeper.holder = await self._engine.journal.enrol(self._hands.began)
        failpoint("worker.after_enrol")
        self._engine.dispatcher = self
        self._stop_listening = self._engine.journal.listen(self.wake)
        self._sweeper.start()

    async def stop(self, grace: float = 5.0) -> None:
        """Claim nothing new, let running commands finish for `grace` seconds, release the rest."""
        self._hands.stopping = True
        await self._sweeper.stop()
        await self._hands.stop(grace)
        if self._stop_listening:
            self._stop_listening()
        self._engine.dispatcher = None
        failpoint("worker.before_leave")
        await self._engine.journal.leave(self.holder, self._clock())
        failpoint("worker.after_leave")

    @property
    def holder(self) -> int:
        """Its number in the journal, once it has started."""
        return self._sweeper.holder

    @property
    def busy(self) -> bool:
        """Whether this process is performing something."""
        return self._hands.busy

    @property
    def failure(self) -> BaseException | None:
        """Why the worker gave up, if it did."""
        return self._hands.failure

    @property
    def foreign_writes(self) -> int:
        """How often the worker has noticed that another process may have written."""
        return self._sweeper.foreign_writes

    def take(self, run_id: str, change: Opened, opened: Open) -> Job | None:
        if change.needs not in self._offered or self._hands.stopping:
            return None
        begun = self.kind(opened.command).repeatable
        return Job(run_id, change.number, opened, self._sweeper.holder, begun=begun, awaits=change.awaits)
