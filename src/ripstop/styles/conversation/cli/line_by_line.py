"""A chat without a terminal: each line of stdin is a message, and what the other side says is printed as it comes.

The next line is sent when the one before it is dealt with. Messages of timers and of people appear between them.
"""

import asyncio
from typing import TYPE_CHECKING, Any

from ripstop.faces.cli.signals import interruption, resume_with, stop_requested, undisturbed
from ripstop.faces.cli.terminal import keep_working_without_readers, say, say_text
from ripstop.faces.cli.words import GRACE

from .messages import code_of, stdin_lines, tell_waiting
from .user_side import UserSide

if TYPE_CHECKING:
    from ripstop.app.application import App
    from ripstop.app.settings.settings_file import Settings
    from ripstop.engine.worker import Worker


async def chat_line_by_line(user: UserSide, settings: "Settings") -> int:
    """Send every line of stdin. Returns the exit code of the last message."""
    from ripstop.engine.ports import Tree

    interrupted = stop_requested()
    keep_working_without_readers()
    async with user.options.app(settings, scope=None) as app:
        run = await user.prepare(app)
        async with app.working(Tree(user.run_id)) as worker:
            printer = PrintedLines(app, user.run_id)
            if run:
                printer.begin(run.length)
            talking = asyncio.ensure_future(_talk(user, settings, app, worker, printer))
            waited: list[asyncio.Future[Any]] = [talking, interrupted]
            try:
                await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
                if talking.done():
                    return talking.result()
                talking.cancel()
                await asyncio.wait([talking])
            finally:
                await printer.stop()
            await worker.stop(GRACE)
            with undisturbed():
                say(interruption(user.again(settings)), err=True)
            return 128 + interrupted.result()


async def _talk(user: UserSide, settings: "Settings", app: "App", worker: "Worker", printer: "PrintedLines") -> int:
    from ripstop.engine.following import until_settled

    code = 0
    async for line in stdin_lines():
        if not line.strip():
            continue
        number = await user.tell(line)
        if not printer.began:
            resume_with(user.again(settings))
            if user.is_unnamed:
                say((f"session {user.session}   {user.again(settings)}", "dim"), err=True)
            printer.begin(number)
        view = await until_settled(app.engine, worker, user.run_id)
        session = await user.chats.look(user.run_id, number)
        await printer.reach(session.records)
        tell_waiting(view, session)
        code = code_of(view, session)
        if view.run.ended:
            break
    return code


class PrintedLines:
    """Prints what the bot and the desk say in a session."""

    def __init__(self, app: "App", run_id: str) -> None:
        self._app = app
        self._run_id = run_id
        self._printed = 0
        self._advanced = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def began(self) -> bool:
        return self._task is not None

    def begin(self, after: int) -> None:
        self._printed = after
        self._task = asyncio.ensure_future(self._print(after))

    async def reach(self, number: int) -> None:
        """Return when everything up to a record is printed."""
        assert self._task is not None
        while self._printed < number and not self._task.done():
            self._advanced.clear()
            advanced = asyncio.ensure_future(self._advanced.wait())
            await asyncio.wait([advanced, self._task], return_when=asyncio.FIRST_COMPLETED)
            advanced.cancel()
        if self._task.done():
            self._task.result()

    async def stop(self) -> None:
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _print(self, after: int) -> None:
        from ripstop.kernel.events import Record

        from ..feed import SpokenLine, feed

        async for item in feed(self._app, self._run_id, after):
            if isinstance(item, SpokenLine) and item.side != "user":
                say_text(item.text)
            elif isinstance(item, Record):
                self._printed = item.number
                self._advanced.set()
