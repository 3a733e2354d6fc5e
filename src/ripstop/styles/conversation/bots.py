"""The bots of this process: configurations as they are in their files now.

Every message is answered with the configuration of its moment. Reading a file for each would be the slowest part of a
message, so it is read again when it looks different, and in any case after a second or a few: a text beside it, or a
workflow that it names, may have changed.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ripstop.app.application import App
from ripstop.app.start import Pinned, pin_with_folders
from ripstop.app.trust import NotTrusted, private_addresses, unset_secrets
from ripstop.definitions.loading import Workflow, locate, read
from ripstop.definitions.reader import Environment
from ripstop.engine.pinned_definitions import digest_of
from ripstop.kernel.advice import Advice, NextStep
from ripstop.kernel.errors import RunNotFound, UsageError
from ripstop.kernel.run import Run

from .definition import Bot
from .events import purpose_named
from .reader import FILES, workflow_id

STYLE = "conversation"
FRESH = 1.0
LONGEST_FRESH = 5.0
SHARE = 100
"""Reading it again takes at most one part in so many of this process's time: a large bot is fresh for longer."""
MOST_GENERATIONS = 1000


class KnownBot(Struct, frozen=True):
    workflow: Workflow
    bot: Bot
    pinned: Pinned
    digest: str
    """Of the content: what a run's definition is compared with."""

    @property
    def own_tools(self) -> list[str]:
        """The tools that a process has to bring: those without an address."""
        tools = (tool.name for tool in self.bot.tools if not tool.endpoint and not tool.purpose)
        named = (flow.tool for flow in self.bot.flows if flow.tool and not self.bot.tool(flow.tool))
        flows = (name for name in named if not purpose_named(name))
        return list(dict.fromkeys((*tools, *flows)))


class Bots:
    def __init__(self, app: App) -> None:
        self._app = app
        self._known: dict[str, tuple[KnownBot, float, Any]] = {}
        self._reading: dict[str, asyncio.Lock] = {}

    async def get(self, named: str | Path) -> KnownBot:
        """The bot that a path or a name means. Raises `UsageError` or `DefinitionError`."""
        key = str(named)
        known = self._fresh(key)
        if known:
            return known
        async with self._reading.setdefault(key, asyncio.Lock()):  # a hundred messages at once read it once
            known = self._fresh(key)
            if known is None:
                began = time.thread_time()
                known = await self._read(str(named))
                path, fresh = str(known.workflow.path), SHARE * (time.thread_time() - began)
                until = time.monotonic() + min(max(FRESH, fresh), LONGEST_FRESH)
                self._known[key] = (known, until, (path, _signature(path)))
            return known

    def _fresh(self, key: str) -> KnownBot | None:
        found = self._known.get(key)
        if found is None:
            return None
        known, until, (path, signature) = found
        return known if time.monotonic() < until and _signature(path) == signature else None

    async def _read(self, named: str) -> KnownBot:
        located = locate(self._app.plugins.readers, named)
        check_is_bot(named, located.reader.style)
        workflow = read(located, Environment(any_name=True))
        bot: Bot = self._app.plugins.registry.load(STYLE, workflow.content)
        generation = await self._generation(bot)
        if generation != bot.generation:
            bot = msgspec.structs.replace(bot, generation=generation)
            content = msgspec.json.encode(bot, order="deterministic")
            workflow = msgspec.structs.replace(workflow, content=content)
        pinned = pin_with_folders(self._app.plugins, workflow, self._app.folders, bot)
        return KnownBot(workflow, bot, pinned, digest_of(workflow.content))

    async def _generation(self, bot: Bot) -> int:
        """The newest plan that was made. One that is still being made, or has failed, keeps no session waiting."""
        made = 1
        async for generation, run in self.plans(bot):
            if run.ended and run.ended.outcome == "completed":
                made = generation
        return made

    async def plans(self, bot: Bot) -> AsyncIterator[tuple[int, Run[Any]]]:
        """The planning runs of a configuration that were asked for after the first one, each with its generation."""
        for generation in range(2, MOST_GENERATIONS):
            try:
                named = msgspec.structs.replace(bot, generation=generation).plan_name
                yield generation, (await self._app.engine.look(named)).run
            except RunNotFound:
                return
        raise UsageError(f"{MOST_GENERATIONS:,} plans were made for this configuration. Change it, and try again.")

    def name_of(self, named: str) -> str:
        """The name that the bot at a path has, or would have if it could be read. Raises `UsageError`."""
        path = locate(self._app.plugins.readers, named).path
        return workflow_id(path / FILES[0] if path.is_dir() else path)

    def forget(self) -> None:
        """Read everything again when it is needed next."""
        self._known.clear()


def check_is_bot(named: str, style: str) -> None:
    """Raises `UsageError` for a workflow of another style."""
    if style != STYLE:
        start = NextStep("run", "Start it as a run", "Start it with `{}`")
        raise UsageError(Advice(f"{named} is a {style}, not a bot, so there is nobody to chat with. ", start, "."))


def _signature(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


# What keeps a bot's tools from working in this process, for those who start it.


def bot_warnings(app: App, known: KnownBot) -> list[str]:
    """Tools that this process does not have, addresses without consent, and secrets that are not set."""
    missing = [tool for tool in known.own_tools if not app.toolbox.has(tool)]
    reasons = list(dict.fromkeys(filter(None, map(app.why_missing, missing))))
    unexplained = [tool for tool in missing if not app.why_missing(tool)]
    if unexplained:
        names = ", ".join(map(repr, unexplained))
        reasons.append(f"This process does not have the tools {names}: calls wait for one that has (--tools MODULE).")
    uses = known.pinned.endpoints
    unagreed = app.trust.unagreed_endpoints(uses)
    private = [
        text for origin, text in private_addresses(uses, app.trust.endpoints).items() if not _says(unagreed, origin)
    ]
    return [*reasons, *(refusal.message for refusal in unagreed), *private, *unset_secrets(uses)]


def _says(refusals: list[NotTrusted], origin: str) -> bool:
    """Whether one of the refusals already says how to allow an origin."""
    return any(f"--allow {origin}" in str(refusal) for refusal in refusals)
