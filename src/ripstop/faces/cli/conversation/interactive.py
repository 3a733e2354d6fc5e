"""`chat` on a terminal: the user's side."""

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from ripstop.faces.cli.output import keep_working_without_readers
from ripstop.faces.cli.paragraphs import print_line
from ripstop.faces.cli.signals import STOPPING, interruption, resume_with, stop_requested, undisturbed
from ripstop.faces.cli.summary import GRACE, exit_code
from ripstop.faces.cli.terminal import say

from .slash_commands import QUIT, command_in, words_in
from .terminal_chat import TerminalChat
from .user_side import UserSide

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ripstop.app import App
    from ripstop.kernel.run import Run
    from ripstop.runtime.worker import Worker
    from ripstop.services.conversation.feed import SpokenLine
    from ripstop.settings.settings_file import Settings

LINES_BEFORE = 10
"""Lines of an earlier conversation that are shown."""


async def chat_at_terminal(user: UserSide, settings: "Settings") -> int:
    interrupted = stop_requested()
    keep_working_without_readers()
    async with user.options.app(settings, scope=None) as app:
        run = await user.prepare(app)
        known = await user.chats.bots.get(user.config)
        chatting = _UserChat(app, user, settings)
        ways = f"  session {user.session}  ·  {QUIT} or Ctrl-D leaves, and the session stays"
        print_line(chatting.terminal.area.console, (known.bot.name, "bold"), (ways, "dim"))
        async with AsyncExitStack() as stack:
            chatting.stack = stack
            if run:
                await chatting.go_on(run)
            await chatting.terminal.talk(interrupted)
            if chatting.worker is None:
                return 128 + interrupted.result() if interrupted.done() else 0
            if chatting.worker.busy:
                say((STOPPING, "dim"))
            await chatting.worker.stop(GRACE)
        view = await app.engine.look(user.run_id)
        if view.run.ended:
            say(f"The session has ended ({view.run.ended.outcome}: {view.run.ended.because}).")
            return exit_code(view.status)
        with undisturbed():
            again = user.again(settings)
            say(interruption(again) if interrupted.done() else f"The session stays. Continue it with:  {again}")
        return 128 + interrupted.result() if interrupted.done() else 0


class _UserChat:
    """Begins to work on the session when there is one."""

    def __init__(self, app: "App", user: UserSide, settings: "Settings") -> None:
        self.terminal = TerminalChat(app, self._send, is_desk=False, by=user.by)
        self.worker: Worker | None = None
        self.stack: AsyncExitStack
        self._app = app
        self._user = user
        self._settings = settings

    async def go_on(self, run: "Run[Any]") -> None:
        """Show how far an earlier session is, and continue it."""
        from ripstop.services.conversation.feed import spoken_before

        await self._work(run.length, spoken_before(run)[-LINES_BEFORE:])

    async def _send(self, text: str) -> None:
        command_in(text, (QUIT,))
        number = await self._user.tell(words_in(text))
        if self.worker is None:
            await self._work(number - 1)

    async def _work(self, after: int, before: "Sequence[SpokenLine]" = ()) -> None:
        from ripstop.runtime.ports import Tree

        resume_with(self._user.again(self._settings))
        self.worker = await self.stack.enter_async_context(self._app.working(Tree(self._user.run_id)))
        await self.terminal.begin(self._user.run_id, after, self.worker, before)
