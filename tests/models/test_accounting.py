"""What a call counts at the least, and what it costs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripstop.engine.performers import priced, with_floor
from ripstop.kernel.effects import Limits, Usage
from ripstop.kernel.errors import UsageError
from ripstop.models.accounting import with_prices

PRICES = {"openai:m": (1.0, 4.0), "openai:n": (3.0, 2.0)}


@given(st.integers(0, 9000), st.integers(0, 9000), st.integers(0, 99_000), st.integers(0, 99_000))
def test_a_call_counts_a_token_for_every_eight_bytes(sent, received, said_in, said_out):
    usage = with_floor(Usage(said_in, said_out), sent, received)
    assert (usage.input_tokens, usage.output_tokens) == (said_in, said_out)
    assert usage.counted_tokens == max(said_in, sent // 8) + max(said_out, received // 8)


def test_unreported_tokens_cost_what_reported_ones_do():
    usage = priced(with_floor(Usage(), 8_000_000, 16_000_000), (1.0, 4.0))
    assert (usage.money, usage.unreported_money, usage.counted_money) == (0.0, 9.0, 9.0)
    assert priced(Usage(1, 1, money=7.0), (1.0, 4.0)).money == 7.0


def test_a_money_limit_holds_at_the_price_of_the_dearest_model():
    limits = with_prices(Limits(money=1.0), ["openai:m", "openai:n", "script:x", "local"], PRICES)
    assert (limits.input_price, limits.output_price) == (3.0, 4.0)


def test_a_money_limit_without_a_price_is_refused_with_the_next_step():
    with pytest.raises(UsageError, match=r"'openai:o' has no price.*\[prices\.\"openai:o\"\].*--max-tokens"):
        with_prices(Limits(money=1.0), ["openai:m", "openai:o"], PRICES)


@pytest.mark.parametrize("models", [["local"], ["script:x"], ["local:x.gguf"]])
def test_a_money_limit_holds_for_models_that_cost_nothing(models):
    assert with_prices(Limits(money=1.0), models, {}) == Limits(money=1.0)


def test_other_limits_need_no_price():
    assert with_prices(Limits(tokens=5), ["openai:o"], {}) == Limits(tokens=5)
