"""What a call costs: as its server reports it, at the least by its bytes, and in money.

Servers are not believed: one that reports too few tokens, or none, would make every limit void. So a call counts at
least one token for every `BYTES_PER_TOKEN` bytes that were sent and received. That is about half of what real
models need, so an honest report is never below it by much.
"""

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from ripstop.kernel.effects import Limits, Usage
from ripstop.kernel.errors import UsageError

MILLION = 1_000_000
BYTES_PER_TOKEN = 8
FREE = ("script", "local")
"""Kinds of models that cost no money: a script says itself what it costs, and the local model runs here."""

Prices = Mapping[str, tuple[float, float]]
"""SPEC → money per million tokens, (input, output)."""


def with_floor(usage: Usage, sent: int, received: int) -> Usage:
    """The usage, and what it does not report of the tokens that so many bytes have at the least."""
    return replace(
        usage,
        unreported_input=max(0, sent // BYTES_PER_TOKEN - usage.input_tokens),
        unreported_output=max(0, received // BYTES_PER_TOKEN - usage.output_tokens),
    )


def priced(usage: Usage, price: tuple[float, float] | None) -> Usage:
    """The usage with what it costs, unless it says so itself."""
    if price is None or usage.money:
        return usage
    usage = replace(usage, money=(usage.input_tokens * price[0] + usage.output_tokens * price[1]) / MILLION)
    unreported = (usage.unreported_input * price[0] + usage.unreported_output * price[1]) / MILLION
    return replace(usage, unreported_money=unreported) if unreported else usage


def with_prices(limits: Limits, models: Iterable[str], prices: Prices) -> Limits:
    """Limits that hold before a call, at the price of the dearest of the models. Without a money limit: as they are.

    Raises `UsageError` if a model has no price: the limit could not hold.
    """
    if limits.money is None:
        return limits
    used = [model for model in dict.fromkeys(models) if model.partition(":")[0] not in FREE or model in prices]
    unknown = [model for model in used if model not in prices]
    if unknown:
        raise UsageError(
            f"The money limit of {limits.money:g} cannot hold, because {unknown[0]!r} has no price. "
            f'Set [prices."{unknown[0]}"] with input and output (money per million tokens) in ripstop.toml, '
            "or limit tokens in its place: --max-tokens N."
        )
    return replace(
        limits,
        input_price=max((prices[model][0] for model in used), default=0.0),
        output_price=max((prices[model][1] for model in used), default=0.0),
    )
