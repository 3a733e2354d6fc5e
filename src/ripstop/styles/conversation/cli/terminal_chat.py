"""A chat on a terminal, from either side: what is typed is sent, and what happens is shown."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace
from rich.cells import set_cell_size

from ripstop.faces.cli.blocks import print_indented, print_labelled, print_line
from ripstop.faces.cli.errors import error_report
from ripstop.faces.cli.signals import STOPPING, interruption, resume_with, stop_requested, undisturbed
from ripstop.faces.cli.terminal import Part, keep_working_without_readers, say
from ripstop.faces.cli.words import GRACE, exit_code, first_line, seconds
from ripstop.kernel.effects import AskAgent
from ripstop.kernel.errors import RipstopError, UsageError
from ripstop.kernel.events import Asked, Record
from ripstop.kernel.style import Notice

from ..feed import DraftPiece, SessionNow, SpokenLine, feed, session_now
from ..session_view import why_broken_off
from .line_editor import PromptArea
from .user_side import UserSide

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ripstop.app.application import App
    from ripstop.app.settings.settings_file import Settings
    from ripstop.engine.worker import Worker
    from ripstop.kernel.run import Run

    from ..feed import SessionNow, SpokenLine


# What a line that is typed into a chat is: a command, or words for the other side.
#
# A line that begins with `/` and a letter is a command. One that is not known is refused, because a slip such as
# `/relase` must not reach a customer. `//` sends what follows with one `/`.


QUIT, RELEASE, TAKE = "/quit", "/release", "/take"


def command_in(line: str, commands: Collection[str]) -> str:
    """The command that a line is; empty if it is words. Raises `UsageError` for one that is not known."""
    text = line.strip()
    if text in commands:
        return text
    if text[:1] != "/" or not text[1:2].isalpha():
        return ""
    first = text.split()[0]
    if first in commands:
        raise UsageError(f"{first} is typed alone. Send your words before it.")
    raise UsageError(
        f"{first[:40]} is not a command here; there are: {', '.join(commands)}. To send it as a message, begin with //."
    )


def words_in(line: str) -> str:
    """The words of a line that is not a command."""
    return line.replace("//", "/", 1) if line.lstrip().startswith("//") else line


# The one line that says where a session is.


WORDS = {"acknowledged": "has read it", "processing": "is at work", "typing": "is typing"}
LONGEST_TIMER = 60
SECOND = 1_000_000


def status_line(
    now: "SessionNow",
    at: int,
    since: float,
    doing: str = "",
    is_desk: bool = False,
    held: "Mapping[str, int] | None" = None,
) -> Part:
    """Args:
    at: The time, in microseconds.
    since: Seconds for which it has been at work.
    doing: The action under way.
    is_desk: The person at the desk is looking.
    held: Providers that take no calls now, with the seconds left.
    """
    if now.ended:
        return f"ended ({now.ended})", "yellow"
    if now.status == "transferred":
        return _transferred(now, is_desk), "magenta"
    if now.asks:
        return "waits for the user's answer" if is_desk else "waits for your answer", "dim"
    if now.in_pass:
        if held and not doing:
            waits = ", ".join(f"{provider} ({left} s)" for provider, left in held.items())
            return f"{now.name} waits for {waits}, which takes no more calls now", "yellow"
        words = f"is using {doing}" if doing else WORDS.get(now.status, "is at work")
        return f"{now.name} {words} … {seconds(since) if since >= 1 else ''}".rstrip(), "cyan"
    timers = sorted(now.timers, key=lambda timer: timer.due)
    coming = f"  ·  in {_left(timers[0].due - at)}: {first_line(timers[0].name, LONGEST_TIMER)}" if timers else ""
    if now.closed:
        return f"closed{coming}", "dim"
    return f"{'broken off' if now.status == 'cancelled' else now.status}{coming}", "dim"


def _transferred(now: "SessionNow", is_desk: bool) -> str:
    if is_desk:
        return f"{now.taken_by} has this conversation" if now.taken_by else "nobody has taken this conversation yet"
    if now.taken_by:
        return f"a person has this conversation ({now.taken_by})"
    return f"waits for a person ({now.handed_to} was asked)"


def _left(microseconds: int) -> str:
    left = max(0, round(microseconds / SECOND))
    return f"{left // 3600} h {left // 60 % 60} min" if left >= 3600 else f"{left // 60}:{left % 60:02d}"


TICK = 0.5
"""Seconds between two updates of the status."""
WIDEST_LABEL = 16
INDENT = 8
STYLES = {"user": "bold cyan", "bot": "bold green", "desk": "bold magenta"}


class TerminalChat:
    def __init__(self, app: "App", send: Callable[[str], Awaitable[None]], is_desk: bool, by: str) -> None:
        """Args:
        send: Sends what is typed. Raises `UsageError` if it cannot be sent.
        is_desk: It is the side of a person at the desk, called `by`.
        """
        self._app = app
        self._send = send
        self._is_desk = is_desk
        self._by = by
        self._typed: asyncio.Queue[str | None] = asyncio.Queue()
        self.area = PromptArea(self._typed.put_nowait, lambda: self._typed.put_nowait(None))
        self._following: asyncio.Task[None] | None = None
        self._worker: Worker | None = None
        self._now: SessionNow | None = None
        self._told = ""
        """The status that the records up to here have told; the session itself can be ahead."""
        self._began = 0.0
        self._doing = ""
        self._draft: tuple[tuple[int, int], str] = ((0, 0), "")

    # What happens

    async def begin(
        self, run_id: str, after: int, worker: "Worker | None" = None, before: Sequence[SpokenLine] = ()
    ) -> None:
        """Show what was said before, and what happens to a run after a record."""
        self._worker = worker
        self._told = (await self._look(run_id)).status
        for line in before:
            self.show(line)
        self._following = asyncio.ensure_future(self._follow(run_id, after))

    async def talk(self, interrupted: "asyncio.Future[int]") -> None:
        """Send what is typed, until the person leaves, the run ends, or a signal comes."""
        try:
            with self.area.open():
                self._tick()
                while not interrupted.done() and not (self._now and self._now.ended):
                    typing = asyncio.ensure_future(self._typed.get())
                    waited: list[asyncio.Future[Any]] = [typing, interrupted]
                    waited += [self._following] if self._following else []
                    await asyncio.wait(waited, timeout=TICK, return_when=asyncio.FIRST_COMPLETED)
                    typing.cancel()
                    if typing.done() and not typing.cancelled():
                        text = typing.result()
                        if text is None or text.strip() == QUIT:
                            return
                        await self._say(text)
                    self._tick()
        finally:
            if self._following:
                self._following.cancel()
                await asyncio.gather(self._following, return_exceptions=True)

    async def _say(self, text: str) -> None:
        try:
            await self._send(text)
        except RipstopError as error:
            self.note(f"{error_report(error).error}  (↑ brings your line back)", "yellow")

    def _tick(self) -> None:
        if self._worker and self._worker.failure:
            raise self._worker.failure
        if self._following and self._following.done():
            self._following.result()
        if self._now:
            now = replace(self._now, status="typing") if self._draft[1] else self._now
            since = time.monotonic() - self._began
            held = self._worker.held() if self._worker else None
            self.area.show_status(status_line(now, self._app.engine.clock(), since, self._doing, self._is_desk, held))

    async def _follow(self, run_id: str, after: int) -> None:
        async for item in feed(self._app, run_id, after):
            match item:
                case SpokenLine():
                    self._forget_draft()
                    self.show(item)
                case DraftPiece(key=key, text=text):
                    self._draft = (key, self._draft[1] + text if key == self._draft[0] else text)
                    self.area.show_draft(self._label("bot", ""), self._draft[1].lstrip())
                case Notice():
                    self._forget_draft()
                    self._note_notice(item)
                case Record(event=event):
                    if because := why_broken_off(event):
                        self.note(f"· broken off: {because}", "dim")
                    if isinstance(event, Asked) and isinstance(event.command, AskAgent):
                        self._doing = ""  # what was done is known to the model now
                    await self._look(run_id)
                    self._tick()
        await self._look(run_id)

    async def _look(self, run_id: str) -> SessionNow:
        run = (await self._app.engine.look(run_id)).run
        was_idle = self._now is None or not self._now.in_pass
        self._now = session_now(self._app.engine, run)
        if was_idle and self._now.in_pass:
            self._began = time.monotonic()
        if not self._now.in_pass:
            self._doing = ""
        return self._now

    def _note_notice(self, notice: Notice) -> None:
        match notice.kind:
            case "action":
                self._doing = str(notice.data["target"])
                self.note(f"· {str(notice.data['type']).lower()} {self._doing}", "dim")
            case "action_failed":
                self._doing = ""
                self.note(f"· {str(notice.data['type']).lower()} {notice.data['target']} failed", "dim")
            case "closed":
                self.note("· the conversation is closed; the next message opens it again", "dim")
            case "taken":
                self.note(f"· {notice.data['by']} has taken the conversation", "dim")
            case "status":
                before, self._told = self._told, str(notice.data["status"])
                self._doing = ""
                if before == "transferred" != self._told:
                    self.note("· the bot has the conversation again", "dim")

    # What is shown

    def show(self, line: "SpokenLine") -> None:
        """Print what one side has said."""
        with self.area.printing() as console:
            if line.side == "user":
                console.print()
            print_labelled(console, f"{self._label(line.side, line.by)} ", line.text, STYLES[line.side])

    def note(self, text: str, style: str) -> None:
        with self.area.printing() as console:
            print_indented(console, INDENT, (text, style))

    def _forget_draft(self) -> None:
        self._draft = ((0, 0), "")
        self.area.show_draft("", "")

    def _label(self, side: str, by: str) -> str:
        if side == "bot":
            name = self._now.name if self._now else "bot"
        elif side == ("desk" if self._is_desk else "user") and by in ("", self._by):
            name = "you"
        else:
            name = by or side
        return set_cell_size(name, WIDEST_LABEL).rstrip()


# `chat` on a terminal: the user's side.


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
        from ..feed import spoken_before

        await self._work(run.length, spoken_before(run)[-LINES_BEFORE:])

    async def _send(self, text: str) -> None:
        command_in(text, (QUIT,))
        number = await self._user.tell(words_in(text))
        if self.worker is None:
            await self._work(number - 1)

    async def _work(self, after: int, before: "Sequence[SpokenLine]" = ()) -> None:
        from ripstop.engine.ports import Tree

        resume_with(self._user.again(self._settings))
        self.worker = await self.stack.enter_async_context(self._app.working(Tree(self._user.run_id)))
        await self.terminal.begin(self._user.run_id, after, self.worker, before)
