"""What a call of a model has cost so far, so that it counts even if the call is cut off or its reply is useless.

Servers are not believed: one that reports too few tokens, or none, would make every limit void. So a call counts at
least one token for every `BYTES_PER_TOKEN` bytes that were sent and received. That is about half of what real
models need, so an honest report is never below it by much.
"""

import time

from msgspec import Struct
from msgspec.structs import replace

from ripstop.kernel.effects import Usage

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

    def begin(self, sent: int, price: Price | None = None) -> None:
        """So many bytes are sent now."""
        self._began, self._sent, self._price = time.monotonic(), sent, price

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


class Retries(Struct, frozen=True):
    """The attempts at a command that failed and were followed by another."""

    reasons: tuple[tuple[str, float], ...] = ()
    """With the seconds until the next one."""
    usage: Usage = Usage()

    def plus(self, reason: str, seconds: float, usage: Usage) -> "Retries":
        return Retries((*self.reasons, (reason[:200], round(seconds, 3))), self.usage.plus(usage))


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
