"""Carries out open commands and tells the engine the answers.

- What this process asks for it does at once, without a poll. The outbox is for recovery, timers
  and other processes; it is swept again and again, not only at start-up.
- At most `concurrency` commands at a time; one pace per provider, shared by all runs.
- Only what surely had no effect (`TryAgain`), or is keyed, is tried again, with growing pauses.
- A call that breaks in any way but `TryAgain` and `Refused` may have had its effect: a pure one has failed, a keyed
  one is tried again with its key, a probeable one is asked, and an unsafe one becomes a question to a person.
- What another worker had begun and never finished: pure and keyed effects are repeated (the answer
  says which attempt it was), probeable ones are asked, unsafe ones become a question to a person.
- `stop` lets running calls finish for a while, then gives everything back; the runs can be resumed.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from msgspec.structs import replace

from ripstop.kernel.effects import Answer, AskAgent, CallTool, Command, Failed, Say, text_of
from ripstop.kernel.errors import JournalError, LeaseLost, Unwritable
from ripstop.kernel.events import Answered, Doubted
from ripstop.kernel.run import Run

from .doubts import call_broke, cancelled_by_us, describe, probe, unreadable_answer, worker_died
from .engine import Engine
from .failpoints import failpoint
from .jobs import Job
from .live import Began, Retrying
from .ports import Clock, InDoubt, Kind, Performer, Refused, Request, TryAgain
from .rate_limit import RateLimit, pause_before_retry
from .soundness import UNUSABLE

log = logging.getLogger("ripstop.worker")

MICROS = 1_000_000
HEARTBEAT = 10.0
"""Seconds between two signs of life. A lease lasts three times as long."""
TICK = 0.5
"""Seconds between two looks at whether another process has written (one counter, no query)."""


class Worker:
    def __init__(
        self,
        engine: Engine,
        performers: Mapping[type, Performer],
        clock: Clock,
        concurrency: int = 32,
        attempts: int = 5,
        backoff: float = 1.0,
        pace: RateLimit | None = None,
        only: str | None = None,
        takes: Callable[[Command], bool] = lambda _: True,
    ) -> None:
        """`only`: sweep up nothing but this run and its children. `takes`: whether this process can do a command."""
        self._engine = engine
        self._journal = engine.journal
        self._performers = performers
        self._clock = clock
        self._concurrency = concurrency
        self._attempts = attempts
        self._backoff = backoff
        self._pace = pace or RateLimit()
        self.only = only
        self._takes = takes
        self.holder = 0
        """Its number in the journal, once it has started."""
        self._began = 0
        """When it started. What was asked before was left by another process."""
        self._waiting: deque[Job] = deque()
        self._running: dict[str, dict[int, asyncio.Task[None]]] = {}
        self._threads: set[asyncio.Task[None]] = set()
        self._sweeper: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._stopping = False
        self._full = False
        """The sweeper found no room; it is to look again when there is some."""
        self.foreign_writes = 0
        """How often the worker has noticed that another process may have written."""
        self.failure: BaseException | None = None
        """Why the worker gave up, if it did: the journal cannot be written, say."""

    # Life

    async def start(self) -> None:
        failpoint("worker.before_enrol")
        self._began = self._clock()
        self.holder = await self._journal.enrol(self._began)
        failpoint("worker.after_enrol")
        self._engine.dispatcher = self
        self._sweeper = asyncio.create_task(self._sweep_for_ever(), name="ripstop-sweeper")

    async def stop(self, grace: float = 5.0) -> None:
        """Take nothing new, let what runs finish for `grace` seconds, give the rest back."""
        self._stopping = True
        self._waiting.clear()
        if self._sweeper:
            self._sweeper.cancel()
            await asyncio.gather(self._sweeper, return_exceptions=True)
        if self._threads:
            await asyncio.wait(self._threads, timeout=grace)
        for thread in tuple(self._threads):
            thread.cancel()
        await asyncio.gather(*self._threads, return_exceptions=True)
        self._engine.dispatcher = None
        failpoint("worker.before_leave")
        await self._journal.leave(self.holder)
        failpoint("worker.after_leave")

    @property
    def busy(self) -> bool:
        """Whether this process has something in hand."""
        return not self._idle.is_set()

    async def idle(self) -> None:
        """Return when this process has nothing in hand. Raises what made the worker give up."""
        await self._idle.wait()
        if self.failure:
            raise self.failure

    # What the engine calls

    def kind(self, command: Command) -> Kind:
        return self._performers[type(command)].kind(command)

    def dispatch(self, jobs: list[Job]) -> None:
        self._waiting.extend(jobs)
        self._pump()

    def withdraw(self, run_id: str, numbers: list[int] | None) -> None:
        if self._waiting:
            gone = [j for j in self._waiting if j.run_id == run_id and (numbers is None or j.number in numbers)]
            for job in gone:
                self._waiting.remove(job)
        running = self._running.get(run_id)
        if not running:
            return
        me = asyncio.current_task()
        for number, thread in list(running.items()):
            if (numbers is None or number in numbers) and thread is not me:
                thread.cancel()

    def wake(self) -> None:
        self._wake.set()

    def wake_by(self, seconds: float) -> None:
        if seconds <= HEARTBEAT:  # it never sleeps longer, and learns of what is due whenever it looks
            self._wake.set()

    # Doing

    def _pump(self) -> None:
        while self._waiting and len(self._threads) < self._concurrency and not self._stopping:
            self._idle.clear()
            thread = asyncio.create_task(self._follow(self._waiting.popleft()))
            self._threads.add(thread)
            thread.add_done_callback(self._thread_ended)

    def _thread_ended(self, thread: "asyncio.Task[None]") -> None:
        self._threads.discard(thread)
        if not thread.cancelled() and thread.exception() is not None:
            self._give_up(thread.exception())
        self._pump()
        if self._full and self._room() > 0:
            self.wake()
        if not self._threads:
            self._idle.set()

    def _give_up(self, error: BaseException | None) -> None:
        """The journal cannot be trusted to take answers: doing more would lose them."""
        self.failure = self.failure or error
        self._stopping = True
        self._waiting.clear()

    async def _follow(self, job: Job | None) -> None:
        """Carry out a command, then what its answer leads to, as long as that is one thing."""
        me = asyncio.current_task()
        assert me is not None
        while job and not self._stopping:
            running = self._running.setdefault(job.run_id, {})
            running[job.number] = me
            following: list[Job] = []
            try:
                fact = await self._carry_out(job)
                if fact is not None:
                    following = await self._tell(job, fact)
            except LeaseLost as lost:
                log.warning("%s", lost)
                return
            finally:
                if running.get(job.number) is me:  # taken anew after a lost lease, it is another's by now
                    del running[job.number]
                if not running and self._running.get(job.run_id) is running:
                    del self._running[job.run_id]
            failpoint("worker.after_tell")
            if len(following) > 1:
                self.dispatch(following[1:])
            job = following[0] if following else None
        if job:
            self._waiting.append(job)

    async def _tell(self, job: Job, fact: Answered | Doubted) -> list[Job]:
        fence = (job.number, job.holder)
        try:
            _, following = await self._engine.tell(job.run_id, fact, fence)
        except Unwritable as error:
            assert isinstance(fact, Answered)  # a doubt is text that can be encoded
            answer = unreadable_answer(fact.answer, self.kind(job.opened.command), error)
            _, following = await self._engine.tell(job.run_id, replace(fact, answer=answer), fence)
        return following

    async def _carry_out(self, job: Job) -> Answered | Doubted | None:
        """What the run is to be told; nothing if the command stays open."""
        command = job.opened.command
        performer = self._performers[type(command)]
        run = self._engine.known(job.run_id) or await self._engine.standing(job.run_id)
        try:
            request = self._request(job, run)
        except Exception as error:
            log.exception("%s/%s cannot be put into words", job.run_id, job.number)
            return self._answered(job, Failed(reason=describe(error), fault="ours"))
        if type(command) is Say:
            request = replace(request, text=await self._words(job))
        if job.doubtful and not performer.kind(command).repeatable:
            settled = await self._clear_up(job, performer, request, worker_died(job, request))
            if settled is not None:
                return settled
        if not job.begun:
            failpoint("worker.before_begin")
            await self._journal.begin(job.run_id, job.number, job.holder)
            failpoint("worker.after_begin")
        return await self._perform(job, performer, request)

    async def _perform(self, job: Job, performer: Performer, request: Request) -> Answered | Doubted | None:
        provider = performer.provider(request)
        live = self._engine.live
        try:
            if provider and self._pace.limits(provider):
                await self._pace.wait(provider)
            if live.watched:
                live.show(Began(job.run_id, job.number, job.opened.command, job.attempt))
            failpoint("worker.before_perform")
            answer = await performer.perform(request)
            failpoint("worker.after_perform")
        except TryAgain as trouble:
            if job.attempt < self._attempts:
                await self._later(job, provider, trouble)
                return None
            return self._answered(job, Failed(reason=f"{trouble} (tried {job.attempt} times)", fault="agent"))
        except Refused as refusal:
            return self._answered(job, Failed(reason=str(refusal), fault=refusal.fault))
        except JournalError:
            raise
        except InDoubt as doubt:
            return await self._after_break(job, performer, request, str(doubt))
        except asyncio.CancelledError as error:
            if cancelled_by_us():
                raise
            return await self._after_break(job, performer, request, f"It was cancelled from within: {error}")
        except (Exception, SystemExit) as error:  # a tool that calls sys.exit() must not end the process
            log.exception("%s failed", request.key)
            return await self._after_break(job, performer, request, describe(error))
        if answer is None:
            failpoint("worker.before_park")
            await self._journal.park(job.run_id, job.number, job.holder)
            failpoint("worker.after_park")
            return None
        return self._answered(job, answer)

    async def _after_break(
        self, job: Job, performer: Performer, request: Request, reason: str
    ) -> Answered | Doubted | None:
        """The call broke off, perhaps after it took effect. `None`: it is tried again later."""
        command = job.opened.command
        kind = performer.kind(command)
        failed = self._answered(job, Failed(reason=reason, fault="ours"))
        doubted = call_broke(job, request, reason)
        if not kind.repeatable:
            return await self._clear_up(job, performer, request, doubted) or failed
        if kind is Kind.PURE or type(command) is not CallTool:
            return failed
        if job.attempt < self._attempts:
            await self._later(job, performer.provider(request), TryAgain(reason))
            return None
        return doubted

    def _answered(self, job: Job, answer: Answer) -> Answered:
        began = self._began if job.opened.at < self._began else 0
        return Answered(to=job.number, answer=answer, attempt=job.attempt, began=began)

    async def _clear_up(
        self, job: Job, performer: Performer, request: Request, doubted: Doubted
    ) -> Answered | Doubted | None:
        """The call was begun and may have taken effect. `None`: it surely did not."""
        if performer.kind(job.opened.command) is Kind.PROBEABLE:
            failpoint("worker.before_probe")
            known, found = await probe(performer, request)
            failpoint("worker.after_probe")
            if known:
                return None if found is None else self._answered(job, found)
        failpoint("worker.before_doubt")
        return doubted

    async def _later(self, job: Job, provider: str, trouble: TryAgain) -> None:
        seconds = pause_before_retry(trouble.after, self._backoff, job.attempt)
        if trouble.provider_wide:
            self._pace.pause(provider, seconds)
        failpoint("worker.before_retry")
        await self._journal.retry(job.run_id, job.number, job.holder, self._clock() + round(seconds * MICROS))
        failpoint("worker.after_retry")
        self._engine.live.show(Retrying(job.run_id, job.number, str(trouble), seconds))
        self.wake()

    def _request(self, job: Job, run: Run[Any]) -> Request:
        command, state = job.opened.command, job.opened.state
        style = self._engine.style(run)
        return Request(
            run_id=job.run_id,
            number=job.number,
            command=command,
            attempt=job.attempt,
            ordinal=job.opened.ordinal,
            settings=run.settings,
            prompt=style.render(state, command) if type(command) is AskAgent else None,
            arguments=style.arguments(state, command) if type(command) is CallTool else {},
            history=partial(self._journal.read, job.run_id),
        )

    async def _words(self, job: Job) -> str:
        """What a `Say` says: its own words, or those of the record that it names."""
        command = job.opened.command
        assert isinstance(command, Say)
        if command.about is None:
            return command.text
        event = (await self._journal.read(job.run_id, after=command.about - 1))[0].event
        return text_of(event.answer) if isinstance(event, Answered) else str(getattr(event, "text", ""))

    # Sweeping

    async def _sweep_for_ever(self) -> None:
        beat = self._clock()
        while not self._stopping:
            try:
                if self._clock() - beat >= HEARTBEAT * MICROS:
                    beat = self._clock()
                    if not await self._journal.heartbeat(self.holder, beat):
                        self.holder = await self._journal.enrol(beat)
                await self._sweep()
                await self._sleep(beat)
            except Exception as error:  # whatever it is: nobody else would notice that the sweeping has ended
                self._give_up(error)
                for thread in tuple(self._threads):
                    thread.cancel()
                self._idle.set()
                return

    def _room(self) -> int:
        return self._concurrency - len(self._threads) - len(self._waiting)

    async def _sweep(self) -> None:
        room = self._room()
        if room <= 0:
            return
        jobs = []
        failpoint("worker.before_claim")
        holder = self.holder
        for task in await self._journal.claim(holder, self._clock(), room, self.only):
            failpoint("worker.after_claim")
            try:
                opened = await self._engine.opened(task.run_id, task.number)
            except UNUSABLE as error:
                if self.only is not None:
                    raise  # its caller waits for this very run
                log.error("Skipping %s/%s: %s", task.run_id, task.number, error)  # it stays ours until we leave
                continue
            if opened is None:
                continue  # settled in the meantime; the journal has dropped it from the outbox
            if not task.doubtful and not self._takes(opened.command):
                continue  # held until this worker leaves: a failure would be the agent's, and wrong
            jobs.append(Job(task.run_id, task.number, opened, holder, attempt=task.attempt, doubtful=task.doubtful))
        self.dispatch(jobs)

    async def _sleep(self, beat: int) -> None:
        """Until a timer is due, somebody wakes us, or another process has written."""
        until = beat + HEARTBEAT * MICROS
        self._full = self._room() <= 0
        if not self._full:
            due = await self._journal.next_due(self.only)
            if due is not None:
                until = min(until, due)
        while not self._stopping:
            left = (until - self._clock()) / MICROS
            if self._journal.changed():
                self.foreign_writes += 1
                return
            if left <= 0:
                return
            try:
                async with asyncio.timeout(min(left, TICK)):  # wait_for can swallow a cancellation
                    await self._wake.wait()
            except TimeoutError:
                continue
            self._wake.clear()
            return
