"""The webhooks of the settings, followed beside a worker for as long as it works."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from ripstop.journals.sqlite.journal import SqliteJournal
from ripstop.runtime.engine import Engine
from ripstop.security.endpoint_consents import EndpointConsents
from ripstop.security.endpoints import parse_endpoint
from ripstop.settings.settings_file import Settings

from .deliveries import Deliveries
from .follower import WebhookFollower
from .sending import WebhookSender
from .signature import signing_key


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
    journal = engine.journal.path if isinstance(engine.journal, SqliteJournal) else None
    followers = []
    for name, hook in settings.webhooks.items():
        url = parse_endpoint(hook.url)
        is_users = name not in settings.project_webhooks
        sender = WebhookSender(
            url, signing_key(name, hook.secret), allow_private=is_users or consents.allow_private(url.origin)
        )
        followers.append(WebhookFollower(engine, name, Deliveries(engine, hook), sender, journal))
    for follower in followers:
        await follower.prepare()
    service = WebhookService(followers)
    try:
        yield service
    finally:
        await service.stop()
