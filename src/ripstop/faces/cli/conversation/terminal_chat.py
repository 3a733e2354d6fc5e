"""A chat on a terminal, from either side: what is typed is sent, and what happens is shown."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace
from rich.cells import set_cell_size

from ripstop.faces.cli.complaints import complaint_about
from ripstop.faces.cli.paragraphs import print_indented, print_labelled
from ripstop.kernel.effects import AskAgent
from ripstop.kernel.errors import RipstopError
from ripstop.kernel.events import Asked, Record
from ripstop.kernel.style import Notice
from ripstop.services.conversation.feed import DraftPiece, SessionNow, SpokenLine, feed, session_now
from ripstop.services.conversation.session_view import why_broken_off

from .prompt_area import PromptArea
from .slash_commands import QUIT
from .status_line import status_line

if TYPE_CHECKING:
    from ripstop.app import App
    from ripstop.runtime.worker import Worker

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
            self.note(f"{complaint_about(error).error}  (↑ brings your line back)", "yellow")

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
