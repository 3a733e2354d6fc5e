"""The prices of models, and limits of money that hold before a call."""

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from ripstop.engine.performers import Price
from ripstop.kernel.effects import Limits
from ripstop.kernel.errors import UsageError

FREE = ("script", "local")
"""Kinds of models that cost no money: a script says itself what it costs, and the local model runs here."""

Prices = Mapping[str, Price]
"""By SPEC."""


def is_free(spec: str) -> bool:
    """Whether calls of a model cost nothing, so that repeating one after a crash does not either."""
    return spec.partition(":")[0] in FREE


def with_prices(limits: Limits, models: Iterable[str], prices: Prices) -> Limits:
    """Limits that hold before a call, at the price of the dearest of the models. Without a money limit: as they are.

    Raises `UsageError` if a model has no price: the limit could not hold.
    """
    if limits.money is None:
        return limits
    used = [model for model in dict.fromkeys(models) if not is_free(model) or model in prices]
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
