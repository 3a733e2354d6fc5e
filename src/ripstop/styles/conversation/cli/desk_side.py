"""`chat --as-desk`: the side of a person who has a conversation that was handed over.

Somebody has to work on what is sent and, when the conversation is given back, on the bot's answer: this process does
unless another one is at work on the journal.
"""

import asyncio
import shlex
import sys
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from ripstop.faces.cli.options import Options, user_name
from ripstop.faces.cli.signals import interruption, leaving_at_once, resume_with, stop_requested, undisturbed
from ripstop.faces.cli.terminal import at_terminal, console_for, keep_working_without_readers, say, say_json
from ripstop.faces.cli.words import GRACE, command_for
from ripstop.kernel.errors import UsageError

from .messages import plain, resolve_session, settled, stdin_lines
from .terminal_chat import QUIT, RELEASE, TAKE, command_in, words_in
from .user_side import same_options, take_up

if TYPE_CHECKING:
    from ripstop.app.application import App
    from ripstop.app.settings.settings_file import Settings
    from ripstop.engine.worker import Worker
    from ripstop.kernel.run import Run

    from ..chats import Chats

LINES_BEFORE = 40
COMMANDS = (RELEASE, TAKE, QUIT)


class DeskSide:
    def __init__(self, options: Options, named: str, by: str) -> None:
        self.options = options
        self.named = named
        self.by = by
        self.chats: Chats
        self.run_id = ""

    async def prepare(self, app: "App") -> "Run[Any]":
        """The session's run. Raises `UsageError`."""
        from ..chats import Chats

        if not self.by:
            raise UsageError("Say who you are: --by NAME.")
        self.chats = Chats(app)
        self.run_id = await resolve_session(app.engine, self.named)
        return (await app.engine.look(self.run_id)).run

    async def type(self, text: str) -> None:
        """Do what was typed: a command, or words for the user. Raises `UsageError`."""
        command = command_in(text, COMMANDS)
        if command == TAKE:
            await self.chats.take(self.run_id, self.by)
        elif command == RELEASE:
            await self.release(TAKE)
        else:
            await self.speak(words_in(text), TAKE)

    async def speak(self, text: str, how_to_take: str) -> None:
        await self._check_free(how_to_take)
        await self.chats.speak(self.run_id, text, self.by)

    async def release(self, how_to_take: str) -> None:
        await self._check_free(how_to_take)
        await self.chats.release(self.run_id, self.by)

    async def _check_free(self, how_to_take: str) -> None:
        """Raise `UsageError` unless this person has the conversation, or it waits for one."""
        from ..feed import session_now

        engine = self.chats.app.engine
        now = session_now(engine, (await engine.look(self.run_id)).run)
        if now.status != "transferred":
            raise UsageError(f"The bot has this conversation. Take it over with {how_to_take}.")
        if now.taken_by not in ("", self.by):
            raise UsageError(f"{now.taken_by} has this conversation. Take it over with {how_to_take}.")

    async def work(self, app: "App", stack: AsyncExitStack) -> "Worker | None":
        """Work on the session, unless others are at work."""
        from ripstop.engine.ports import Tree

        if await app.engine.has_workers():
            return None
        await take_up(self.options, app, (await app.engine.look(self.run_id)).run)
        return await stack.enter_async_context(app.working(Tree(self.run_id)))


async def work_at_desk(side: DeskSide, settings: "Settings", words: str | None, take: bool, release: bool) -> int:
    interrupted = stop_requested()
    keep_working_without_readers()
    options = side.options
    async with options.app(settings, create=False, scope=None) as app, AsyncExitStack() as stack:
        run = await side.prepare(app)
        is_chat = words is None and not release and not options.as_json
        if is_chat and at_terminal(options.as_json):
            return await _chat(side, settings, app, stack, run, take, interrupted)
        if take:
            await side.chats.take(side.run_id, side.by)
        if words is not None:
            await side.speak(words, "--take")
        elif is_chat and sys.stdin is not None and not sys.stdin.isatty():
            with leaving_at_once():
                async for line in stdin_lines():
                    if line.strip() == QUIT:
                        break
                    if line.strip():
                        await side.type(line)
                        words = line
        if release:
            await side.release("--take")
        worker = await side.work(app, stack) if take or release or words is not None else None
        again = f"{command_for(settings.store)} resume {side.run_id}{same_options(options)}"
        if worker and await settled(app, worker, side.run_id, interrupted, again) is None:
            return 128 + interrupted.result()
        await _tell(side, run, is_chat and words is None)
    return 0


async def _tell(side: DeskSide, before: "Run[Any]", with_history: bool) -> None:
    """Say what came of a command, with what was said before it if nothing was sent."""
    from ..feed import spoken_before

    session = await side.chats.look(side.run_id, before.length)
    if side.options.as_json:
        return say_json(plain(session))
    if with_history:
        from ripstop.faces.cli.blocks import print_indented

        run = (await side.chats.app.engine.look(side.run_id)).run
        for line in spoken_before(run):
            say((f"{line.by or line.side}:", "bold"))
            print_indented(console_for(), 2, line.text)
    return say(f"{session.run} is {session.status}.", err=True)


async def _chat(
    side: DeskSide,
    settings: "Settings",
    app: "App",
    stack: AsyncExitStack,
    run: "Run[Any]",
    take: bool,
    interrupted: "asyncio.Future[int]",
) -> int:
    from ripstop.faces.cli.blocks import print_line

    from ..feed import spoken_before
    from .terminal_chat import TerminalChat

    name = f" --by {shlex.quote(side.by)}" if side.by != user_name() else ""
    again = f"{command_for(settings.store)} chat --as-desk {side.run_id}{name}{same_options(side.options)}"
    terminal = TerminalChat(app, side.type, is_desk=True, by=side.by)
    ways = f"  ·  you are {side.by}  ·  {RELEASE} gives it back to the bot  ·  {QUIT} leaves it as it is"
    print_line(terminal.area.console, (run.id, "bold"), (ways, "dim"))
    worker = await side.work(app, stack)
    resume_with(again)
    await terminal.begin(side.run_id, run.length, worker, spoken_before(run)[-LINES_BEFORE:])
    if take:
        await side.chats.take(side.run_id, side.by)
    await terminal.talk(interrupted)
    if worker:
        await worker.stop(GRACE)
    with undisturbed():
        say(interruption(again) if interrupted.done() else f"The conversation stays as it is:  {again}")
    return 128 + interrupted.result() if interrupted.done() else 0
