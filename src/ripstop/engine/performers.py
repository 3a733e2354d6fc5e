"""What the engine needs from performers, as a small protocol.

All times are microseconds since 1970-01-01 UTC.
"""

import asyncio
import contextvars
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from ripstop.kernel.effects import Answer, AskPerson, Command, PersonAnswered, TimerFired, Usage
from ripstop.kernel.errors import RipstopError
from ripstop.kernel.events import Record, RunSettings
from ripstop.kernel.prompt import Prompt
from ripstop.kernel.restoring import key_of
from ripstop.kernel.style import Child

# Calls what blocks in its own thread, so that deadlines and signals are heard meanwhile.
#
# Not in the pool of `asyncio.to_thread`: a process waits for that pool before it ends, however long its threads take.


def start_thread(function: Callable[..., Any], **arguments: Any) -> "asyncio.Future[Any]":
    """Call a function in its own thread; what it returns or raises comes with the future."""
    loop = asyncio.get_running_loop()
    working: asyncio.Future[Any] = loop.create_future()
    # if its caller has gone, its exception is not reported
    working.add_done_callback(lambda done: None if done.cancelled() else done.exception())

    def settle(value: Any, error: BaseException | None) -> None:
        if working.done():
            return
        if error is None:
            working.set_result(value)
        else:
            working.set_exception(error)

    def call() -> None:
        value: Any = None
        error: BaseException | None = None
        try:
            value = context.run(function, **arguments)
        except StopIteration as raised:  # no future can hold it
            error = RuntimeError(f"{function.__name__} raised {type(raised).__name__}.")
        except BaseException as raised:  # noqa: BLE001  # it is raised again where it is awaited
            error = raised
        with suppress(RuntimeError):  # the loop is closed: the process is about to end
            loop.call_soon_threadsafe(settle, value, error)

    context = contextvars.copy_context()
    threading.Thread(target=call, name=f"ripstop-{function.__name__}", daemon=True).start()
    return working


# A tool as an agent is told about it: a name, what it is for, and what it takes.


class ToolSpec(Struct, frozen=True):
    name: str
    description: str
    parameters: dict[str, Any]
    """JSON Schema of the arguments: an object."""


ToolSpecs = Callable[[tuple[str, ...]], list[ToolSpec]]
"""The specs of the tools with these names, in this order."""


def no_tools(_names: tuple[str, ...]) -> list[ToolSpec]:
    """For agents that have no tools."""
    return []


# What a call of a model has cost so far, so that it counts even if the call is cut off or its reply is useless.
#
# Servers are not believed: one that reports too few tokens, or none, would make every limit void. So a call counts at
# least one token for every `BYTES_PER_TOKEN` bytes that were sent and received. That is about half of what real
# models need, so an honest report is never below it by much.


BYTES_PER_TOKEN = 8
"""At most. A server that reports less than one token for this many bytes does not report all."""
MILLION = 1_000_000

Price = tuple[float, float]
"""Money per million tokens, (input, output)."""


class CallProgress:
    """What is known of a call in progress. A performer reports to it as bytes arrive, watched or not."""

    # on the class, because making one costs a call of Python in every step
    _began = 0.0
    _sent = 0
    _received = -1
    _reported = Usage()
    _price: Price | None = None
    lost = Usage()
    """What an earlier attempt has cost at the least, whose worker died before it recorded an answer."""
    first_token = 0.0
    """Seconds until the first token came; 0: none has."""
    made = 0.0
    """When the call was made, as the rate limit's clock says."""
    on_left: Callable[[], None] | None = None
    """Called when the request has left; can be called again."""

    def begin(self, sent: int, price: Price | None = None) -> None:
        """So many bytes are sent now."""
        self._began, self._sent, self._price = time.monotonic(), sent, price

    def left(self) -> None:
        """The request has left this process, so the pause before the next counts. In the loop's thread only."""
        if self.on_left:
            self.on_left()

    def repeat(self) -> None:
        """The same was sent before, by a worker that died; what it cost will never be reported, so it counts here."""
        self.lost = priced(with_floor(Usage(), self._sent, 0), self._price)

    def receive(self, size: int) -> None:
        """So many more bytes of the reply came: text, thoughts, arguments of calls; 0: the reply began."""
        if size and self._received <= 0:
            self.first_token = time.monotonic() - self._began
        self._received = max(0, self._received) + size

    def report(self, usage: Usage) -> None:
        """The server says that the call cost so much."""
        self._reported = usage

    def usage(self, cut_off: bool = False) -> Usage:
        """What the call has cost at the least. One that got no reply costs nothing, unless it was cut off."""
        if self._received < 0 and not cut_off:
            return self.lost
        return priced(with_floor(self._reported, self._sent, max(0, self._received)), self._price).plus(self.lost)


def with_floor(usage: Usage, sent: int, received: int) -> Usage:
    """The usage, raised to the least number of tokens that this many bytes can have."""
    return replace(
        usage,
        unreported_input=max(0, sent // BYTES_PER_TOKEN - usage.input_tokens),
        unreported_output=max(0, received // BYTES_PER_TOKEN - usage.output_tokens),
    )


def priced(usage: Usage, price: Price | None) -> Usage:
    """The usage with what it costs, unless it says so itself."""
    if price is None or usage.money:
        return usage
    usage = replace(usage, money=(usage.input_tokens * price[0] + usage.output_tokens * price[1]) / MILLION)
    unreported = (usage.unreported_input * price[0] + usage.unreported_output * price[1]) / MILLION
    return replace(usage, unreported_money=unreported) if unreported else usage


# What an effect is like, which decides what happens to it after a crash


class Kind(Enum):
    """What may be done with a call whose end is not known."""

    PURE = "pure"
    """Repeating it changes nothing."""
    KEYED = "keyed"
    """It takes our key (`run/number`), so the other side does it once."""
    PROBEABLE = "probeable"
    """It can be asked whether it happened."""
    UNSAFE = "unsafe"
    """None of these: after a crash, and after a call that broke off, a person is asked."""

    def __init__(self, name: str) -> None:
        self.repeatable = name in ("pure", "keyed")


class RunAccess(Protocol):
    """What a request lets a performer learn and do besides answering it; `Request` says what each of them is."""

    def history(self) -> Awaitable[list[Record]]: ...
    def ask(self, key: str, question: AskPerson) -> Awaitable[PersonAnswered | None]: ...
    def reread(self, run_id: str) -> Awaitable[bool]: ...
    def is_over(self, run_id: str) -> Awaitable[bool]: ...


class Request(Struct, frozen=True, kw_only=True):
    """A command ready to be performed, with everything a performer may need."""

    run_id: str
    number: int
    command: Command
    attempt: int
    ordinal: int = 0
    """For `AskAgent`: which one of the run's calls it is, counted from 1; 0 if they are not counted."""
    settings: RunSettings
    prompt: Prompt | None = None
    """For `AskAgent`."""
    arguments: Mapping[str, Any] = {}
    """For `CallTool`."""
    text: str = ""
    """For `Say`."""
    child: Child | None = None
    """For `StartRun`: what the child gets."""
    superseded: bool = False
    """It is no longer needed: undo what it started."""
    repeated: bool = False
    """Another worker had begun it, and never recorded how it ended."""
    woken: int = 0
    """How often the run that it awaits has ended since it was asked."""
    mark: str = ""
    """What its key ends with."""
    access: RunAccess
    progress: CallProgress

    @property
    def key(self) -> str:
        """The idempotency key: the same for every attempt at this command, and for nothing else."""
        return key_of(self.run_id, self.number, self.mark)

    @property
    def name(self) -> str:
        """The command, as people and other runs name it."""
        return f"{self.run_id}/{self.number}"

    async def history(self) -> list[Record]:
        """The run's records so far."""
        return await self.access.history()

    async def ask(self, key: str, question: AskPerson) -> PersonAnswered | None:
        """Ask a person, by a key that is the same for the same question: the answer, or `None` if there is none yet.

        Then the performer returns `None`, and is called again when the person has answered.
        """
        return await self.access.ask(key, question)

    async def reread(self, run_id: str) -> bool:
        """Read the definition of a run again from its files, and continue with it if it has changed: whether it has.

        Raises `Refused` if it is wrong now.
        """
        return await self.access.reread(run_id)

    async def is_over(self, run_id: str) -> bool:
        """Whether another run of this journal has ended; false if the journal has no such run."""
        return await self.access.is_over(run_id)


class TryAgain(RipstopError):
    """Raised by a performer: it did not work, surely had no effect, and may work later."""

    def __init__(self, reason: str, after: float | None = None, provider_wide: bool = False, most: int = 0) -> None:
        """`most`: refusals of a call after which this reason is final; 0: as the retry policy says."""
        super().__init__(reason)
        self.after = after
        self.provider_wide = provider_wide
        self.most = most


class Refused(RipstopError):
    """Raised by a performer: it did not work and never will. `fault` says whose fault that is."""

    def __init__(self, reason: str, fault: str = "tool") -> None:
        super().__init__(reason)
        self.fault = fault


class Unavailable(Refused):
    """Raised by a performer of model calls: it works once somebody has put something right, such as a key, a quota or
    the name of a model. The run is paused until then."""


class PromptTooLong(Refused):
    """Raised by a performer of model calls: the prompt has more tokens than the model can take."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, fault="agent")


class InDoubt(RipstopError):
    """Raised by a performer: it broke off after the request left, so the effect may have happened.

    `evidence` says what is known, for the person who has to decide. Any other exception of an unsafe
    performer means the same; `Refused` and `TryAgain` are its word that nothing happened.
    """

    def __init__(self, evidence: str) -> None:
        super().__init__(evidence)


class Performer(Protocol):
    """Carries out commands of one type."""

    async def perform(self, request: Request) -> Answer | None:
        """Perform it. `None`: the answer will come later, from elsewhere."""

    def kind(self, command: Command) -> Kind: ...

    def offers(self) -> Sequence[str]:
        """What commands may need that it can perform: `tool:NAME`, `channel:NAME`."""

    def provider(self, request: Request) -> str:
        """The provider whose rate limit counts; empty for none."""

    async def probe(self, request: Request) -> Answer | None:
        """Only for `probeable`: the answer if it happened, `None` if it did not."""


# The clock. The outbox holds a timer back until it is due, so there is nothing left to wait for.


class TimerPerformer:
    async def perform(self, request: Request) -> Answer | None:
        return TimerFired()

    def kind(self, command: Command) -> Kind:
        return Kind.PURE

    def offers(self) -> tuple[str, ...]:
        return ()

    def provider(self, request: Request) -> str:
        return ""

    async def probe(self, request: Request) -> Answer | None:
        return None
