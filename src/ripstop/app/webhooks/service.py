"""The webhooks of the settings, followed beside a worker for as long as it works."""

import asyncio
import logging
import os
import random
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ripstop.app.settings.settings_file import Settings
from ripstop.engine.engine import Engine
from ripstop.engine.live import Appended, LiveEvent
from ripstop.engine.ports import Moved
from ripstop.kernel.errors import JournalError
from ripstop.security.consent import EndpointConsents
from ripstop.security.endpoints import parse_endpoint
from ripstop.security.files import PRIVATE_FILE
from ripstop.tools.shared_folder import open_lock, try_lock

from .deliveries import Deliveries, Delivery
from .sending import NotDelivered, ReceiverGone, WebhookSender, signing_key

# Whose turn it is: one process delivers for a webhook, however many work on the journal.
#
# It holds a lock on a file next to the journal, which the kernel releases when it dies. Then another takes over.


LEADER_POLL_INTERVAL = 1.0
"""Seconds between two looks at whether the process that delivers has gone."""


@asynccontextmanager
async def turn_of(journal: Path | None, name: str) -> AsyncIterator[None]:
    """Wait for the turn of a webhook, and have it. A journal without a file is this process's own."""
    if journal is None:
        yield
        return
    path = journal.with_name(f"{journal.name}-webhook-{name}")
    handle = open_lock(path, PRIVATE_FILE)
    try:
        while not try_lock(handle):  # noqa: ASYNC110  # the kernel does not say when a lock is free
            await asyncio.sleep(LEADER_POLL_INTERVAL)
        yield
    finally:
        os.close(handle)


# Follows a journal for one webhook, and delivers what its styles tell about their runs.
#
# - The place up to which everything was delivered is kept in the journal. A process that was killed continues there, so
#   what it had delivered since comes again, with the same id.
# - Runs are delivered side by side, each in its order. What fails is tried again with growing pauses, without end: only
#   then is it at least once. Nothing behind the steps at hand is read meanwhile, so memory is bounded.
# - A webhook that is new begins with what happens from now on.


log = logging.getLogger("ripstop.webhooks")

STEPS = 100
"""Steps that are read at a time."""
AT_ONCE = 8
"""Runs that are delivered side by side."""
UNTOLD = 1_000
"""Steps about which nothing was to tell, after which the place is kept all the same."""
POLL_INTERVAL = 1.0
"""Seconds between two looks at whether another process has written."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 300.0


class WebhookFollower:
    def __init__(self, engine: Engine, name: str, deliveries: Deliveries, sender: WebhookSender) -> None:
        self._engine = engine
        self._name = name
        self._deliveries = deliveries
        self._sender = sender
        self._news = asyncio.Event()
        self._working = False
        self._failing = 0
        """Runs whose delivery failed and waits to be tried again."""

    @property
    def busy(self) -> bool:
        """Whether there is something to deliver, and the receiver takes it."""
        return self._working and not self._failing

    async def prepare(self) -> None:
        """A new webhook is told what happens from now on."""
        if not await self._engine.journal.follower(self._key):
            await self._keep(await self._engine.journal.cursor())

    async def follow(self) -> None:
        """Deliver until this is cancelled, or the receiver wants nothing any more."""
        async with turn_of(self._engine.journal.path, self._name):
            stop = self._engine.live.watch(self._see)
            try:
                self._working = True
                await self._follow()
            except ReceiverGone as error:
                log.warning("The webhook %r is left out until this process starts again: %s.", self._name, error)
            finally:
                self._working = False
                stop()

    def _see(self, event: LiveEvent) -> None:
        if isinstance(event, Appended):
            self._working = True
            self._news.set()

    async def _follow(self) -> None:
        cursor = await self._engine.journal.follower(self._key)
        untold, pause = 0, FIRST_PAUSE
        while True:
            self._news.clear()
            try:
                steps = await self._engine.journal.since(cursor, STEPS)
                told = await self._deliver(steps)
                untold = 0 if told else untold + len(steps)
                if steps:
                    cursor = steps[-1].cursor
                if told or untold >= UNTOLD:
                    await self._keep(cursor)
                    untold = 0
                pause = FIRST_PAUSE
            except JournalError as error:
                log.warning("The webhook %r cannot read the journal, and tries again: %s", self._name, error)
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
                continue
            if not steps and not self._news.is_set():
                self._working = False
                await self._wait_for_news()

    @property
    def _key(self) -> str:
        return f"webhook:{self._name}"

    async def _keep(self, cursor: str) -> None:
        await self._engine.journal.keep_follower(self._key, cursor)

    async def _wait_for_news(self) -> None:
        try:
            async with asyncio.timeout(POLL_INTERVAL):
                await self._news.wait()
        except TimeoutError:
            return

    async def _deliver(self, steps: Sequence[Moved]) -> bool:
        """Deliver what there is to tell about some steps; whether there was anything."""
        runs: dict[str, list[Delivery]] = {}
        for step in steps:
            async for delivery in self._deliveries.of(step):
                self._working = True
                runs.setdefault(delivery.run_id, []).append(delivery)
        room = asyncio.Semaphore(AT_ONCE)

        async def deliver_run(deliveries: list[Delivery]) -> None:
            async with room:
                for delivery in deliveries:
                    await self._until_delivered(delivery)

        if len(runs) == 1:
            await deliver_run(next(iter(runs.values())))
        elif runs:
            await _all_of([deliver_run(deliveries) for deliveries in runs.values()])
        return bool(runs)

    async def _until_delivered(self, delivery: Delivery) -> None:
        pause = FIRST_PAUSE
        while True:
            try:
                await self._sender.send(delivery)
                return
            except NotDelivered as error:
                # receivers that are overloaded do not get everything again at one moment
                seconds = max(pause * random.uniform(0.75, 1.25), error.after)  # noqa: S311
                log.warning("The webhook %r: %s. %s comes again in %.1f s.", self._name, error, delivery.id, seconds)
            self._failing += 1
            try:
                await asyncio.sleep(seconds)
            finally:
                self._failing -= 1
            pause = min(pause * 2, LONGEST_PAUSE)


async def _all_of(works: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Do all of them side by side. The first that raises ends the others."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        for done in asyncio.as_completed(tasks):
            await done
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class WebhookService:
    """The followers that are at work."""

    def __init__(self, followers: Sequence[WebhookFollower]) -> None:
        self._followers = followers
        self._tasks = [asyncio.create_task(follower.follow()) for follower in followers]

    @property
    def busy(self) -> bool:
        """Whether something is to be delivered, to a receiver that takes it."""
        return any(follower.busy for follower in self._followers)

    @property
    def failure(self) -> BaseException | None:
        """What stopped a follower: a mistake in ripstop, or a full disk."""
        ended = [task for task in self._tasks if task.done() and not task.cancelled()]
        return next((error for task in ended if (error := task.exception())), None)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def following(engine: Engine, settings: Settings, consents: EndpointConsents) -> AsyncIterator[WebhookService]:
    """Deliver to every webhook of the settings. The caller has checked that the user agrees to them.

    Private addresses are reached only if the user named them, in a webhook of their own or under `[http] allow`.

    Raises `UsageError` if the secret of one is missing.
    """
    followers = []
    for name, hook in settings.webhooks.items():
        url = parse_endpoint(hook.url)
        is_users = name not in settings.project_webhooks
        sender = WebhookSender(
            url, signing_key(name, hook.secret), allow_private=is_users or consents.allow_private(url.origin)
        )
        followers.append(WebhookFollower(engine, name, Deliveries(engine, hook), sender))
    for follower in followers:
        await follower.prepare()
    service = WebhookService(followers)
    try:
        yield service
    finally:
        await service.stop()
