"""Delivers messages: on a channel that this process serves, or to the ancestor that a run speaks through.

Each message carries its key, so a channel that must not deliver a thing twice can tell. After a crash the same words
may be sent again, with the same key and a higher attempt.
"""

from collections.abc import Awaitable, Callable

from msgspec import Struct

from ripstop.kernel.effects import Answer, AskPerson, Command, Said, Say
from ripstop.kernel.errors import RunNotFound
from ripstop.kernel.events import ChildSpoke

from .engine import Engine
from .failpoints import failpoint
from .performers import Kind, Refused, Request
from .pinned_definitions import digest_of

LONGEST_SHOWN = 4_000
"""Characters of a document that are shown with a question about it in an ancestor; the desk shows all of it."""


class DeliveredMessage(Struct, frozen=True):
    """A message of a run, as whoever delivers it gets it."""

    run_id: str
    key: str
    text: str
    attempt: int
    channel: str = ""
    to: str = ""


Deliver = Callable[[DeliveredMessage], Awaitable[None]]
"""Takes a message, or raises `TryAgain` or `Refused`."""


class Messages:
    """The performer of `Say`, and of `AskPerson` where a question appears in an ancestor."""

    def __init__(self, engine: Engine, channels: dict[str, Deliver] | None = None) -> None:
        self._engine = engine
        self._channels = channels or {}

    async def perform(self, request: Request) -> Answer | None:
        command = request.command
        if isinstance(command, Say) and command.channel:
            return await self._deliver(request, command)
        run = await self._engine.current(request.run_id)
        if run.started.surface is None or request.number not in run.open:
            return None  # a question that is on the desk, and nowhere else; or one that was answered meanwhile
        ancestor, started = run.started.surface
        ask = command if isinstance(command, AskPerson) else None
        text, blobs = request.text, dict[str, bytes]()
        if ask and ask.document:
            record = (await self._engine.journal.read(request.run_id, after=ask.document - 1, most=1))[0]
            document = self._engine.style(run).view.document(record)
            text, body = _with_document(ask.question, document), document.encode()
            blobs[digest_of(body)] = body
        spoke = ChildSpoke(
            command=started,
            run=request.run_id,
            number=request.number,
            text=text,
            ask=ask,
            document=next(iter(blobs), ""),
        )
        try:
            await self._engine.tell_fact(ancestor, spoke, blobs)
        except RunNotFound as error:
            if ask:
                return None  # it stays on the desk
            raise Refused(f"The run {ancestor!r}, where this appears, no longer exists.", "ours") from error
        return None if ask else Said()

    async def _deliver(self, request: Request, command: Say) -> Answer:
        message = DeliveredMessage(
            request.run_id, request.key, request.text, request.attempt, command.channel, command.to
        )
        failpoint("messages.before_send")
        await self._channels[command.channel](message)
        failpoint("messages.after_send")
        return Said()

    def kind(self, command: Command) -> Kind:
        return Kind.KEYED

    def offers(self) -> tuple[str, ...]:
        return tuple(f"channel:{name}" for name in self._channels)

    def provider(self, request: Request) -> str:
        return ""

    async def probe(self, request: Request) -> Answer | None:
        return None


def _with_document(question: str, document: str) -> str:
    """A question with what it is about, for a reader who sees nothing but its words."""
    shown, left = document.strip(), len(document.strip()) - LONGEST_SHOWN
    if left > 0:
        shown = f"{shown[:LONGEST_SHOWN]}…\n\n({left:,} more characters are on the desk.)"
    return f"{shown}\n\n{question}" if shown else question
