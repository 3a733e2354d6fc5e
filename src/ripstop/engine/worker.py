"""A worker: a runner that performs commands, and a sweeper that finds them.

What it works on is said when it is made (`scope`): every run of the journal, one run with its family, or nothing but
what its own process asks for. Whatever the scope, the family of a run that its process has moved belongs to it: the end
of a child, a timer or a second attempt is found in the outbox, not asked for. `stop` lets running calls finish for a
while, then gives everything back; the runs can be resumed.

It has no clock of its own: leases and timers go by the engine's, which is the store's where that has one.
"""

from collections.abc import Awaitable, Callable, Mapping

from ripstop.kernel.outages import RetryPolicy
from ripstop.kernel.outbox import Opened
from ripstop.kernel.run import Open

from .command_runner import CommandRunner
from .engine import Engine
from .entries import Job
from .failpoints import failpoint
from .performers import Performer
from .ports import ALL, Scope
from .rate_limit import RateLimit
from .sweeper import Admit, Sweeper


class Worker:
    def __init__(
        self,
        engine: Engine,
        performers: Mapping[type, Performer],
        concurrency: int = 32,
        retry: RetryPolicy = RetryPolicy(),
        retries: Mapping[str, RetryPolicy] | None = None,
        rate_limit: RateLimit | None = None,
        scope: Scope = ALL,
        admit: Admit | None = None,
        patient: bool = False,
        before_effect: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Args:
        retry: How patient it is with those that refuse calls.
        retries: The same for single providers, by their names.
        admit: Checks a run before the first of its commands that this worker finds is performed.
        patient: Whether it goes on when a store that was unreachable works again, as a service must, or gives up.
        before_effect: Awaited before each call that may have an effect outside, once its command is on record.
        """
        self._engine = engine
        self._clock = engine.clock
        self.scope = scope
        self.offers = tuple(
            dict.fromkeys(["", *(offer for performer in performers.values() for offer in performer.offers())])
        )
        """What its commands may need."""
        self._offered = frozenset(self.offers)
        limit = rate_limit or RateLimit()
        self.held = limit.held
        """Which providers get no calls now, for how many seconds."""
        self._runner = CommandRunner(engine, performers, limit, concurrency, retry, retries or {}, patient)
        self._runner.before_effect = before_effect
        self._sweeper = Sweeper(engine, self._runner, scope, self.offers, admit)
        self.dispatch = self._runner.dispatch
        self.withdraw = self._runner.withdraw
        self.kind = self._runner.kind
        self.idle = self._runner.idle
        self.waits_now = self._runner.waits_now
        self.give_up = self._runner.give_up
        self.wake = self._sweeper.wake
        self.wake_by = self._sweeper.wake_by
        self.include = self._sweeper.include
        self.works_on = self._sweeper.works_on
        self.next_due = self._sweeper.next_due
        self._stop_listening: Callable[[], None] | None = None

    async def start(self) -> None:
        failpoint("worker.before_enrol")
        self._runner.began = self._clock()
        self._sweeper.worker_id = await self._engine.journal.enrol(self._runner.began)
        failpoint("worker.after_enrol")
        self._engine.dispatcher = self
        self._stop_listening = self._engine.journal.listen(self.wake)
        self._sweeper.start()

    def take_no_more(self) -> None:
        """Claim nothing new from now on; what runs goes on."""
        self._runner.stopping = True

    async def stop(self, grace: float = 5.0) -> None:
        """Claim nothing new, let running commands finish for `grace` seconds, release the rest."""
        self.take_no_more()
        await self._sweeper.stop()
        async with self._sweeper.beating():  # or another worker would take what still runs
            await self._runner.stop(grace)
        if self._stop_listening:
            self._stop_listening()
        self._engine.dispatcher = None
        failpoint("worker.before_leave")
        await self._engine.journal.leave(self.worker_id, self._clock())
        failpoint("worker.after_leave")

    @property
    def worker_id(self) -> int:
        """Its number in the journal, once it has started."""
        return self._sweeper.worker_id

    @property
    def busy(self) -> bool:
        """Whether this process is performing something."""
        return self._runner.busy

    @property
    def failure(self) -> BaseException | None:
        """Why the worker gave up, if it did."""
        return self._runner.failure

    @property
    def foreign_writes(self) -> int:
        """How often the worker has noticed that another process may have written."""
        return self._sweeper.foreign_writes

    def take(self, run_id: str, change: Opened, opened: Open) -> Job | None:
        if change.needs not in self._offered or self._runner.stopping:
            return None
        begun = self.kind(opened.command).repeatable
        return Job(run_id, change.number, opened, self._sweeper.worker_id, begun=begun, awaits=change.awaits)
