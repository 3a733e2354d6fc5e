"""Performs commands that this process has claimed, and passes the answers to the engine.

- Commands that this process asks for start at once, without a poll. At most `concurrency` commands at a time; one rate
  limit per provider, shared by all runs.
- Only what surely had no effect (`TryAgain`), or is keyed, is tried again, with growing pauses. Each refusal is a fact
  of the run, so that it is counted once, and only refusals use up the patience of a `RetryPolicy`, not processes that
  end. Then a call of a tool has failed; a call of a model pauses its run.
- A call that breaks in any way but `TryAgain` and `Refused` may have had its effect: a pure one has failed, a keyed
  one is tried again with its key, a probeable one is asked, and an unsafe one becomes a question to a person.
- What another worker had begun and never finished: pure and keyed effects are repeated (the answer
  says which attempt it was), probeable ones are asked, unsafe ones become a question to a person. What was begun as
  unsafe stays so, even if this process knows the tool otherwise, or not at all.
- A command that is no longer needed is cut off, and what it cost is reported late.
"""

import asyncio
import hashlib
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ripstop.kernel.doubts import what_of
from ripstop.kernel.effects import Answer, AskAgent, AskPerson, CallTool, Command, Failed, PersonAnswered, Say, StartRun
from ripstop.kernel.errors import (
    JournalError,
    LeaseLost,
    NotNeeded,
    RunAlreadyStarted,
    RunForgotten,
    RunHasEnded,
    RunNotFound,
    RunUnreadable,
    Unwritable,
)
from ripstop.kernel.events import Answered, CallHeldBack, CallRefused, Doubted, Record
from ripstop.kernel.outages import RetryPolicy, is_between_attempts, pause_of_outage, refusals_of
from ripstop.kernel.prompt import Prompt, estimate
from ripstop.kernel.registry import QUESTION_STYLE
from ripstop.kernel.restoring import acts_outside, has_happened, has_its_key, mark_of, may_have_happened
from ripstop.kernel.run import AT_WORK, Run
from ripstop.kernel.style import CallPolicy, Child, arguments_for

from .doubts import (
    call_broke,
    cancelled_by_us,
    describe,
    made_before,
    may_recur,
    not_as_shown,
    not_needed,
    probe,
    unreadable_answer,
    worker_died,
)
from .engine import Engine
from .entries import Job
from .failpoints import failpoint
from .live import Began, Retrying
from .performers import (
    CallProgress,
    InDoubt,
    Kind,
    Performer,
    PromptTooLong,
    Refused,
    Request,
    TryAgain,
    Unavailable,
)
from .pinned_definitions import digest_of
from .ports import MAX_PAGE, RunQuery, until_reachable, words_of
from .rate_limit import Departure, RateLimit, pause_before_retry
from .soundness import UNUSABLE

# Asking a person in the middle of a command: a child run of the style `question`, whose end makes the command due.
#
# A question is known by a key, so performing the command again does not ask again. The command's row awaits the
# question before it is asked: however quickly the person answers, the wake-up is not lost.


_encode = msgspec.json.Encoder(order="deterministic").encode


async def withdraw_questions(engine: Engine, job: Job) -> None:
    """Cancel the questions of a command that is no longer needed."""
    query = RunQuery(parent=job.run_id, size=MAX_PAGE)
    while True:
        page = await engine.runs(query)
        for info in page.items:
            if info.style == QUESTION_STYLE and info.run_id.startswith(f"{job.run_id}.{job.number}."):
                with suppress(RunHasEnded, RunNotFound):
                    await engine.cancel(info.run_id, because=f"{job.run_id} does not need the answer any more")
        if not page.next:
            return
        query = replace(query, cursor=page.next)


async def ask_person(engine: Engine, job: Job, key: str, question: AskPerson) -> PersonAnswered | None:
    """The answer, or `None` if there is none yet. Raises `Refused` if the question was withdrawn."""
    name = f"{job.run_id}.{job.number}.{hashlib.sha256(key.encode()).hexdigest()[:12]}"
    await engine.journal.await_run(job.run_id, job.number, job.worker_id, name)
    try:
        run = (await engine.look(name)).run
    except RunNotFound:
        asker = await engine.current(job.run_id)
        try:
            run = await engine.start(
                name,
                QUESTION_STYLE,
                _encode(question),
                parent=(job.run_id, job.number),
                surface=asker.started.surface,
                depth=asker.started.depth + 1,
            )
        except RunAlreadyStarted:
            run = (await engine.look(name)).run
    if run.ended is None:
        return None
    if run.state.definition.shown != question.shown:
        raise Refused("The person agreed to a call with other arguments.", fault="ours")
    if not run.ended.result:
        raise Refused(f"The question was not answered: {run.ended.because}.", fault="person")
    body = await engine.journal.blob(run.ended.result)
    assert digest_of(body) == run.ended.result
    return msgspec.json.decode(body, type=PersonAnswered, strict=False)


# What a performer is given to perform a command: its words, put together from the records that it names.


class _Access(Struct, frozen=True):
    """`RunAccess` by way of the engine."""

    engine: Engine
    job: Job

    def history(self) -> Awaitable[list[Record]]:
        return self.engine.journal.read(self.job.run_id)

    def ask(self, key: str, question: AskPerson) -> Awaitable[PersonAnswered | None]:
        return ask_person(self.engine, self.job, key, question)

    def reread(self, run_id: str) -> Awaitable[bool]:
        return self.engine.reread(run_id)

    def is_over(self, run_id: str) -> Awaitable[bool]:
        return self.engine.is_over(run_id)


def request_for(engine: Engine, job: Job, run: Run[Any], progress: CallProgress) -> Request:
    opened, style = job.opened, engine.style(run)
    command, state = opened.command, opened.state
    prompt: Prompt | None = None
    arguments: Mapping[str, Any] = {}
    child: Child | None = None
    if type(command) is AskAgent:
        prompt = style.render(state, command)
    elif type(command) is CallTool:
        arguments = arguments_for(style, state, command)
    elif type(command) is StartRun and not job.superseded:  # one that is only undone was asked in a state not kept
        child = style.start_child(state, command)
    return Request(  # CPython calls with more than 15 arguments by name much more slowly
        run_id=job.run_id,
        number=job.number,
        command=command,
        attempt=job.attempt + opened.attempts,
        ordinal=opened.ordinal,
        settings=run.settings,
        prompt=prompt,
        arguments=arguments,
        child=child,
        superseded=job.superseded,
        repeated=job.doubtful,
        woken=job.woken,
        mark=mark_of(run, job.number) if run.marks else "",
        access=_Access(engine, job),
        progress=progress,
    )


log = logging.getLogger("ripstop.worker")

MICROS = 1_000_000
LEAST_REPORTED = 1_000_000
"""Nanoseconds. How long a call took is recorded in milliseconds, and not at all if it is less than one."""
WORTH_TELLING = 1.0
"""Seconds for which a call is held back, from which on they are not counted as time at work. Of a run whose time is not
counted it is recorded only if its provider has said that there were too many calls."""
LONGEST_REASON = 1000
"""Characters of a refusal that are recorded."""

Outcome = Answered | Doubted | CallRefused


def _named(command: Command) -> str:
    return f"{type(command).__name__} {what_of(command)}".rstrip()


async def _raise(_: Job, error: Exception) -> None:
    raise error


class CommandRunner:
    def __init__(
        self,
        engine: Engine,
        performers: Mapping[type, Performer],
        rate_limit: RateLimit,
        concurrency: int,
        retry: RetryPolicy,
        retries: Mapping[str, RetryPolicy],
        patient: bool = False,
    ) -> None:
        self._engine = engine
        self._journal = engine.journal
        self._performers = performers
        self._clock = engine.clock
        self._concurrency = concurrency
        self._retry = retry
        self._retries = retries
        self._rate_limit = rate_limit
        self.waits_now: Callable[[], bool] = lambda: patient and not self.stopping
        self.began = 0
        """When the worker started. What was asked before was left by another process."""
        self._waiting: deque[Job] = deque()
        self._running: dict[str, dict[int, asyncio.Task[None]]] = {}
        self._progress: dict[tuple[str, int], CallProgress] = {}
        """Of calls that are at work."""
        self._unneeded: set[tuple[str, int]] = set()
        """Commands that are cut off because they are no longer needed."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        self.stopping = False
        self.failure: BaseException | None = None  # why it gave up, if it did
        self.before_effect: Callable[[], Awaitable[None]] | None = None
        """Awaited before each call that may have an effect outside: its command is on record by then."""
        self.on_room: Callable[[], None] = lambda: None
        """Called when there is room for another command."""
        self.on_unusable: Callable[[Job, Exception], Awaitable[None]] = _raise
        """Called with a command whose run, or one that it has to do with, cannot be worked on."""
        self.on_retry: Callable[[float], None] = lambda _: None
        """Called when a parked command may be due again, with the seconds until then."""

    @property
    def busy(self) -> bool:
        """Whether this process has something in hand."""
        return not self._idle.is_set()

    @property
    def room(self) -> int:
        """How many more commands can be taken."""
        return self._concurrency - len(self._tasks) - len(self._waiting)

    async def idle(self) -> None:
        """Return when this process has nothing in hand. Raises what made it give up."""
        await self._idle.wait()
        if self.failure:
            raise self.failure

    async def stop(self, grace: float) -> None:
        """Take nothing new, let what runs finish for `grace` seconds, cut off the rest."""
        self.stopping = True
        self._waiting.clear()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=grace)
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def give_up(self, error: BaseException | None) -> None:
        """The journal cannot be trusted to take answers: doing more would lose them."""
        self.failure = self.failure or error
        self.stopping = True
        self._waiting.clear()

    def abandon(self) -> None:
        """Cut off everything that is at work."""
        for task in tuple(self._tasks):
            task.cancel()
        self._idle.set()

    def kind(self, command: Command) -> Kind:
        if type(command) is CallTool and command.effect:
            return Kind(command.effect)
        return self._performers[type(command)].kind(command)

    def dispatch(self, jobs: list[Job]) -> None:
        self._waiting.extend(jobs)
        self._pump()

    def withdraw(self, run_id: str, number: int) -> None:
        """Cut off a command that is no longer needed. One that starts a run is not: it has to be undone in order."""
        for job in [job for job in self._waiting if job.run_id == run_id and job.number == number]:
            if type(job.opened.command) is not StartRun:
                self._waiting.remove(job)
                self._waiting.append(replace(job, superseded=True))
        task = self._running.get(run_id, {}).get(number)
        key = (run_id, number)
        if task and task is not asyncio.current_task() and key in self._progress and key not in self._unneeded:
            self._unneeded.add(key)  # once: a second cancellation would disturb a performer that is tidying up
            task.cancel()

    # Doing

    def _pump(self) -> None:
        while self._waiting and len(self._tasks) < self._concurrency and not self.stopping:
            self._idle.clear()
            task = asyncio.create_task(self._follow(self._waiting.popleft()))
            self._tasks.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.give_up(task.exception())
        self._pump()
        self.on_room()
        if not self._tasks:
            self._idle.set()

    async def _follow(self, job: Job | None) -> None:
        """Perform a command, then what its answer leads to, as long as that is one thing."""
        me = asyncio.current_task()
        assert me is not None
        while job and not self.stopping:
            running = self._running.setdefault(job.run_id, {})
            running[job.number] = me
            following: list[Job] = []
            try:
                fact = await until_reachable(self.waits_now, self._carry_out, job)
                if fact is not None:  # in hand until it is recorded, so nothing is performed again
                    following = await until_reachable(self.waits_now, self._tell, job, fact)
                    if type(fact) is CallRefused:
                        failpoint("worker.after_retry")
            except (LeaseLost, RunForgotten) as lost:
                log.warning("%s", lost)
                return
            except UNUSABLE as error:
                await self.on_unusable(job, error)
                return
            except JournalError:
                raise
            except Exception as error:  # a bug in a style or in ripstop: only this run cannot continue
                log.exception("%s/%s cannot be performed", job.run_id, job.number)
                await self.on_unusable(job, RunUnreadable(job.run_id, error))
                return
            finally:
                if running.get(job.number) is me:  # taken again after a lost lease, it is another's by now
                    del running[job.number]
                if not running and self._running.get(job.run_id) is running:
                    del self._running[job.run_id]
            failpoint("worker.after_tell")
            if len(following) > 1:
                self.dispatch(following[1:])
            job = following[0] if following else None
        if job:
            self._waiting.append(job)

    async def _tell(self, job: Job, fact: Outcome) -> list[Job]:
        fence = (job.number, job.worker_id)
        try:
            _, following = await self._engine.tell(job.run_id, fact, fence)
        except Unwritable as error:
            assert isinstance(fact, Answered)  # a doubt is text that can be encoded
            answer = unreadable_answer(fact.answer, self.kind(job.opened.command), error)
            _, following = await self._engine.tell(job.run_id, replace(fact, answer=answer), fence)
        return following

    async def _carry_out(self, job: Job) -> Outcome | None:
        """The fact for the run; `None` if the command stays open."""
        command = job.opened.command
        if job.superseded and type(command) is not StartRun:
            return await self._report_unneeded(job)
        run = self._engine.known(job.run_id) or await self._engine.current(job.run_id)
        progress = CallProgress()
        try:
            request = request_for(self._engine, job, run, progress)
        except Exception as error:
            log.exception("Cannot render the request for %s/%s", job.run_id, job.number)
            return self._answered(job, Failed(reason=describe(error), fault="ours"))
        if type(command) is Say:
            request = replace(request, text=await words_of(self._journal, job.run_id, command))
        kind = type(command)
        performer = self._performers[kind]
        is_again = job.doubtful or job.attempt > 1 or run.held is not None
        if is_again and (settled := await self._before_again(job, run, performer, request)):
            return settled
        if not job.begun and not await self._begin(job):
            return await self._report_unneeded(job)
        await self._note_before(command)
        key = (job.run_id, job.number)
        if kind is not StartRun:
            self._progress[key] = progress
        began = time.monotonic_ns()
        departure = Departure()
        try:
            provider = performer.provider(request)
            if provider and (allowed := await self._allowed(job, run, provider)):
                departure, began = allowed, time.monotonic_ns()
                progress.on_left = departure.left
            await self._hold(job, over=True)
            progress.made = self._rate_limit.now()
            fact = await self._perform(job, run, performer, request, provider)
        except asyncio.CancelledError:
            me = asyncio.current_task()
            if key not in self._unneeded or me is None or self.stopping:
                raise
            me.uncancel()
            fact = await self._cut_off(job, progress)
        finally:
            departure.left()
            self._progress.pop(key, None)
            if self._unneeded:
                self._unneeded.discard(key)
        elapsed = time.monotonic_ns() - began
        if type(fact) is not Answered or elapsed < LEAST_REPORTED:
            return fact
        first = int(progress.first_token * 1000) / 1000
        return replace(fact, took=elapsed // 1_000_000 / 1000, first_token=first)

    async def _begin(self, job: Job) -> bool:
        """Record that an attempt begins; false if it is no longer needed. A child is undone by its performer."""
        failpoint("worker.before_begin")
        repeatable = self.kind(job.opened.command).repeatable
        try:
            await self._journal.begin(job.run_id, job.number, job.worker_id, job.attempt, repeatable)
        except NotNeeded:
            return type(job.opened.command) is StartRun
        failpoint("worker.after_begin")
        return True

    async def _note_before(self, command: Command) -> None:
        """Let it be noted how far the journal has come, so that a copy of before shows that a call may be missing."""
        if self.before_effect and acts_outside(command) and self.kind(command) is not Kind.PURE:
            await self.before_effect()

    async def _allowed(self, job: Job, run: Run[Any], provider: str) -> Departure | None:
        """Wait until a call to a provider may go out; at once if somebody wants it made again now."""
        refused = refusals_of(run, job.number) if run.refused else None
        if refused and not refused.tries:
            self._rate_limit.lift(provider)
        interval = self._policy(run).interval_for(provider)
        waiting = self._rate_limit.wait(provider, interval, self._engine.live, (job.run_id, job.number))
        if not (interval or self._rate_limit.limits(provider)):
            return await waiting
        task = asyncio.ensure_future(waiting)
        try:
            is_long = not (await asyncio.wait([task], timeout=WORTH_TELLING))[0]
            if is_long and (run.limits.seconds is not None or provider in self._rate_limit.held()):
                await self._hold(job, provider)
            return await asyncio.shield(task)
        except BaseException:
            task.cancel()
            with suppress(asyncio.CancelledError):
                if departure := await task:  # it has its turn meanwhile, and others wait for that
                    departure.left()
            raise

    async def _hold(self, job: Job, by: str = "", over: bool = False) -> None:
        """Record that a call waits for what its run has not caused, or that it waits no longer.

        Of runs without a limit of seconds only the wait for a provider (`by`) is of interest.
        """
        run = self._engine.known(job.run_id) or await self._engine.current(job.run_id)
        has_limit = run.limits.seconds is not None
        waits = job.number in run.held_back or (over and has_limit and is_between_attempts(run, job.number))
        if waits is not over or not (by or over or has_limit):
            return
        fact = CallHeldBack(to=job.number, by=by, over=over)
        _, following = await self._engine.tell(job.run_id, fact, (job.number, job.worker_id))
        self.dispatch(following)

    def _policy(self, run: Run[Any]) -> CallPolicy:
        """How the run's definition wants calls made."""
        return self._engine.uses(run).calls

    async def _cut_off(self, job: Job, progress: CallProgress) -> Answered:
        """The call was in progress when it was withdrawn: what it cost is the answer."""
        uncertain = may_recur(job.opened.command, self.kind(job.opened.command))
        await withdraw_questions(self._engine, job)
        reason = "It was cut off, because it was no longer needed."
        return self._answered(job, not_needed(reason, uncertain, progress.usage(cut_off=True)))

    async def _report_unneeded(self, job: Job) -> Answered:
        """A command that is no longer needed, and that is not at work here: its questions to people go with it."""
        await withdraw_questions(self._engine, job)
        uncertain = job.doubtful and may_recur(job.opened.command, self.kind(job.opened.command))
        reason = "It was no longer needed." + (" A worker had begun it and recorded no answer." if uncertain else "")
        return self._answered(job, not_needed(reason, uncertain))

    async def _perform(
        self, job: Job, run: Run[Any], performer: Performer, request: Request, provider: str
    ) -> Outcome | None:
        live = self._engine.live
        try:
            if live.watched:
                live.show(Began(job.run_id, job.number, job.opened.command, job.attempt))
            log.info("%s: performing %s, attempt %d", request.name, _named(job.opened.command), job.attempt)
            failpoint("worker.before_perform")
            answer = await performer.perform(request)
            failpoint("worker.after_perform")
        except TryAgain as trouble:
            failpoint("worker.before_retry")
            by_itself = trouble.provider_wide or self._policy(run).retry == "all"
            return self._refused(job, run, provider, request, trouble, by_itself)
        except Unavailable as trouble:
            return self._refused(job, run, provider, request, TryAgain(str(trouble)), by_itself=False)
        except Refused as refusal:
            usage, too_long = request.progress.usage(), 0
            if isinstance(refusal, PromptTooLong) and request.prompt is not None:
                too_long = estimate(request.prompt)
            failed = Failed(reason=str(refusal), fault=refusal.fault, usage=usage, too_long=too_long)
            return self._answered(job, failed)
        except JournalError:
            raise
        except InDoubt as doubt:
            return await self._after_break(job, performer, request, str(doubt))
        except asyncio.CancelledError as error:
            if cancelled_by_us():
                raise
            return await self._after_break(job, performer, request, f"It was cancelled from within: {error}")
        except (Exception, SystemExit) as error:  # a tool that calls sys.exit() must not end the process
            log.debug("%s failed", request.name, exc_info=True)  # the run says what went wrong; this says where
            return await self._after_break(job, performer, request, describe(error))
        if answer is None:
            log.debug("%s: waits for something else", request.name)
            await self._park(job)
            return None
        log.debug("%s: answered with %s", request.name, type(answer).__name__)
        self._rate_limit.served(provider, request.progress.made)
        return self._answered(job, answer)

    async def _park(self, job: Job) -> None:
        if type(job.opened.command) in AT_WORK:
            await self._hold(job)
        failpoint("worker.before_park")
        await self._journal.park(job.claim, job.worker_id, self._clock())
        failpoint("worker.after_park")
        self.on_retry(0.0)  # what it awaits may have ended meanwhile, or it is not needed any more: then it is due

    async def _after_break(self, job: Job, performer: Performer, request: Request, reason: str) -> Outcome | None:
        """The call broke off, perhaps after it took effect. `None`: it is tried again later."""
        command = job.opened.command
        kind = self.kind(command)
        failed = self._answered(job, Failed(reason=reason, fault="ours", usage=request.progress.usage()))
        doubted = call_broke(job, request, reason)
        if type(command) is AskPerson:  # it could not be shown elsewhere; it is on the desk all the same
            await self._park(job)
            return None
        if not kind.repeatable:
            return await self._clear_up(job, performer, request, doubted) or failed
        if kind is Kind.PURE or type(command) is not CallTool:
            return failed
        run = await self._engine.current(job.run_id)
        refused = self._refused(job, run, performer.provider(request), request, TryAgain(reason), by_itself=True)
        return refused if type(refused) is CallRefused else doubted

    def _answered(self, job: Job, answer: Answer) -> Answered:
        began = self.began if job.opened.at < self.began else 0
        return Answered(to=job.number, answer=answer, attempt=job.attempt + job.opened.attempts, began=began)

    async def _before_again(
        self, job: Job, run: Run[Any], performer: Performer, request: Request
    ) -> Answered | Doubted | None:
        """What became of an earlier attempt, if that can be known now. `None`: another one can be made."""
        settled = await self._of_before(job, run, performer, request) if job.doubtful or run.held else None
        return settled or await not_as_shown(self._journal, job, request)

    async def _of_before(
        self, job: Job, run: Run[Any], performer: Performer, request: Request
    ) -> Answered | Doubted | None:
        """Another worker had begun the call, and died; or the journal was put back from a copy, and the call may have
        been made since. `None`: it can be made."""
        command = job.opened.command
        kind = self.kind(command)
        has_effect = acts_outside(command) and (job.unsafe or kind is not Kind.PURE) and not run.ended
        is_in_doubt = has_effect and may_have_happened(run, job.number)
        if is_in_doubt and not has_its_key(run, job.number):  # a probe would look for another call
            return made_before(job, request)
        if is_in_doubt and has_happened(run, job.number):
            doubted = made_before(job, request)
            return await self._clear_up(job, performer, request, doubted) or doubted
        if not job.unsafe and kind.repeatable:
            return None
        if job.doubtful:
            return await self._clear_up(job, performer, request, worker_died(job, request))
        return await self._clear_up(job, performer, request, made_before(job, request)) if is_in_doubt else None

    async def _clear_up(
        self, job: Job, performer: Performer, request: Request, doubted: Doubted
    ) -> Answered | Doubted | None:
        """The call was begun and may have taken effect. `None`: it surely did not."""
        if self.kind(job.opened.command) is Kind.PROBEABLE:
            failpoint("worker.before_probe")
            known, found = await probe(performer, request)
            failpoint("worker.after_probe")
            if known:
                return None if found is None else self._answered(job, found)
        failpoint("worker.before_doubt")
        return doubted

    def _refused(
        self, job: Job, run: Run[Any], provider: str, request: Request, trouble: TryAgain, by_itself: bool
    ) -> CallRefused | Answered:
        """What becomes of a call that was refused.

        Args:
            by_itself: Whether it is tried again without a person's word.
        """
        run, now, usage = self._engine.known(job.run_id) or run, self._clock(), request.progress.usage()
        if job.number in run.late:  # withdrawn meanwhile: only what it cost is of interest
            return self._answered(job, not_needed(f"It was no longer needed, and refused: {trouble}", False, usage))
        known = refusals_of(run, job.number)
        tries, since = (known.tries + 1, known.since) if known and known.tries else (1, now)
        policy = self._retries.get(provider, self._retry)
        pause = pause_before_retry(trouble.after, policy.pause_after(tries))
        waited = now - max(since, self.began)  # no time in which perhaps nobody was there to try
        is_used_up = not by_itself or policy.is_used_up(tries, waited / MICROS, pause)
        can_pause = type(job.opened.command) is AskAgent and self._engine.style(run).pauses(run)
        if trouble.most and tries >= trouble.most:
            return self._answered(job, Failed(reason=str(trouble), fault="agent", usage=usage))
        if is_used_up and not can_pause:
            tried = f" (tried {tries} times)" if tries > 1 else ""
            return self._answered(job, Failed(reason=f"{trouble}{tried}", fault="agent", usage=usage))
        if is_used_up:
            pause = max(pause, pause_of_outage(known.pauses + 1 if known else 1))
        if trouble.provider_wide:  # however long this call waits: others may be served

            def hold_after(times: int) -> float:
                return pause_before_retry(trouble.after, policy.pause_after(times))

            self._rate_limit.refused(provider, request.progress.made, hold_after)
        then = "pausing the run" if is_used_up else f"retrying in {pause:g} s"
        log.info("%s: refused (%d), %s: %s", request.name, tries, then, trouble)
        if by_itself and not is_used_up:
            self._engine.live.show(Retrying(job.run_id, job.number, str(trouble), pause))
        return CallRefused(
            to=job.number,
            reason=str(trouble)[:LONGEST_REASON],
            by=provider,
            attempt=request.attempt,
            again=now + round(pause * MICROS) if by_itself else 0,
            pauses=is_used_up,
            usage=usage,
        )
